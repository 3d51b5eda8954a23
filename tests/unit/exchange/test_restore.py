"""What a store knows of its copies elsewhere after a restore, so that whoever forgets is told of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.exchange import restore as swapping
from commonplace.exchange.restore import restore

BACKED_UP, REPLACED = "2026-03-02T09:00:00Z", "2026-03-03T09:00:00Z"


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """A store with a memory, backed up; a day later."""
    with commonplace.open(tmp_path / "store", clock=clock) as book:
        book.remember("Ada's phone number is 030 1234567", id="ada")
        book.backup(tmp_path / "b.zip")
        clock.move(days=1)
        yield book


def outside(directory: Path) -> list[str]:
    """Return the copies that a forgetting names, but for those that it always names."""
    with commonplace.open(directory) as book:
        receipt = book.forget("ada")
        assert receipt.verified
        return sorted(receipt.outside[:-1])


def test_a_restored_store_knows_the_backup_it_was_made_of(book: Engine, tmp_path: Path) -> None:
    restore(tmp_path / "b.zip", tmp_path / "new")
    assert outside(tmp_path / "new") == [f"the backup {tmp_path / 'b.zip'} of {BACKED_UP}"]


def test_a_store_that_replaced_another_knows_where_that_is_kept(book: Engine, tmp_path: Path, clock: Clock) -> None:
    book.close()
    kept = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    assert outside(tmp_path / "store") == [
        f"the backup {tmp_path / 'b.zip'} of {BACKED_UP}",
        f"the store that was replaced at {REPLACED}, kept at {kept}",
    ]


def test_what_the_replaced_store_knew_of_is_still_known(book: Engine, tmp_path: Path, clock: Clock) -> None:
    """A later backup is not in an earlier one, and holds the same."""
    book.backup(tmp_path / "c.zip")
    book.close()
    first = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    second = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    assert outside(tmp_path / "store") == [
        f"the backup {tmp_path / 'b.zip'} of {BACKED_UP}",
        f"the backup {tmp_path / 'c.zip'} of {REPLACED}",
        f"the store that was replaced at {REPLACED}, kept at {second}",
        f"the store that was replaced at {REPLACED}, kept at {first}",
    ]


def test_a_copy_that_is_gone_is_not_named_as_if_it_were_there(book: Engine, tmp_path: Path, clock: Clock) -> None:
    """It may have been moved, so it is named all the same."""
    book.close()
    kept = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    assert kept is not None
    shutil.rmtree(kept)
    (tmp_path / "b.zip").unlink()
    assert outside(tmp_path / "store") == [
        f"the backup {tmp_path / 'b.zip'} of {BACKED_UP}, no longer there",
        f"the store that was replaced at {REPLACED}, no longer at {kept}",
    ]


def test_a_replaced_store_that_keeps_another_name_is_known_by_that(
    book: Engine, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two have changed places already when the name with the time cannot be given."""
    book.close()
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if target.name.endswith(".replaced"):
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    if not swapping._exchange(tmp_path / "b.zip", tmp_path / "b.zip"):
        pytest.skip("this system cannot let two directories change places")
    kept = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    assert kept is not None
    assert kept.name.endswith(".new")
    assert f"the store that was replaced at {REPLACED}, kept at {kept}" in outside(tmp_path / "store")


def test_a_damaged_store_is_replaced_and_known_all_the_same(book: Engine, tmp_path: Path, clock: Clock) -> None:
    book.close()
    (tmp_path / "store" / "store.db").write_bytes(b"no database at all" * 500)
    kept = restore(tmp_path / "b.zip", tmp_path / "store", replace=True, clock=clock).kept
    assert f"the store that was replaced at {REPLACED}, kept at {kept}" in outside(tmp_path / "store")


def test_the_notes_of_a_store_as_a_whole_are_no_namespace(book: Engine, tmp_path: Path) -> None:
    restore(tmp_path / "b.zip", tmp_path / "new")
    with commonplace.open(tmp_path / "new") as new:
        assert new.namespaces() == ["default"]
