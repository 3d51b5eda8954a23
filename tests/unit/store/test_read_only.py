"""A SQLite store in a place that cannot be written: it can be searched, and says what it cannot do."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.permissions import without_rights

from commonplace.errors import StoreError
from commonplace.store.store import Store
from commonplace.types import Chunk, NewPassage, Owner, OwnerWrite


def memory(id_: str) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "memory"), (NewPassage("p", Chunk("text", 1, 1), b"", b""),))


@pytest.fixture
def directory() -> Iterator[Path]:
    """Give a directory that other users can reach, with a store of one owner, not writable."""
    directory = Path(tempfile.mkdtemp())
    store = Store.create(directory / "store.db")
    store.put_owners("n", [memory("a")])
    store.close()
    directory.chmod(0o555)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def test_a_store_on_a_read_only_place_is_read_and_nothing_is_made_there(directory: Path, tmp_path: Path) -> None:
    """People search what others keep: a mounted snapshot, a shared directory."""
    with without_rights():
        store = Store.open(directory / "store.db", create=True)
        assert store.is_read_only
        assert (store.change(), list(store.passages("n", [1])), store.check()) == (1, [1], [])
        with store.snapshot():
            assert [entry.number for entry in store.entries_since("n", 0, 1)] == [1]
        store.close()
    assert sorted(path.name for path in directory.iterdir()) == ["store.db", "store.db.lock"]


def test_writing_there_is_refused_with_a_remedy(directory: Path) -> None:
    """Before anything is embedded for it in vain, callers may ask `is_read_only`."""
    with without_rights(), closing(Store.open(directory / "store.db", create=False)) as store:
        with pytest.raises(StoreError, match=r"store\.db is read-only; make the file and its directory writable, or"):
            store.put_owners("n", [memory("b")])
        assert store.change() == 1


def test_what_a_writer_with_more_rights_adds_is_seen(directory: Path) -> None:
    """Reading a database as one that nobody changes must not outlast one read."""
    with without_rights():
        reader = Store.open(directory / "store.db", create=False)
        assert reader.change() == 1
    directory.chmod(0o755)
    writer = Store.open(directory / "store.db", create=False)
    writer.put_owners("n", [memory("b")])
    directory.chmod(0o555)
    with without_rights():
        assert reader.is_read_only
        assert reader.change() == 2
    directory.chmod(0o755)
    writer.close()
    directory.chmod(0o555)
    with without_rights():
        assert reader.change() == 2
        reader.close()


def test_a_log_that_cannot_be_read_is_told_and_not_passed_over(directory: Path, tmp_path: Path) -> None:
    """Without its log the database lacks writes that were acknowledged."""
    writer = Store.create(tmp_path / "store.db")
    writer.put_owners("n", [memory("b")])
    directory.chmod(0o755)
    for name in ("store.db", "store.db-wal"):
        shutil.copy(tmp_path / name, directory / name)
    directory.chmod(0o555)
    writer.close()
    with without_rights(), pytest.raises(StoreError, match=r"has a log \(store\.db-wal\) that .*; open the store once"):
        Store.open(directory / "store.db", create=False)


def test_a_directory_that_may_not_be_looked_into_is_told_with_a_remedy(directory: Path) -> None:
    """It is not the same as a store that is missing."""
    directory.chmod(0o000)
    with without_rights(), pytest.raises(StoreError, match=r"cannot read .*Permission denied; make its directory"):
        Store.open(directory / "store.db", create=True)
