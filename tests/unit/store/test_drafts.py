"""Copies that killed processes left outside of a store: what is removed, what is not, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.store.drafts import Draft, clear_drafts, draft


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with commonplace.open(tmp_path / "store") as book:
        book.remember("The amber lighthouse was painted on Tuesday", id="a")
    return tmp_path / "store"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory elsewhere."""
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def abandon(store: Path, target: Path) -> Path:
    """Leave a draft as a process does that is killed; return its file."""
    process = os.fork()
    if not process:
        with suppress(BaseException), draft(store, target) as base:
            base.with_name(f"{base.name}.new").write_text("The amber lighthouse")
            os._exit(0)
        os._exit(1)
    assert os.waitpid(process, 0)[1] == 0
    [file] = target.parent.glob(f"{target.name}.*.new")
    return file


def note_of(store: Path) -> Path:
    [note] = store.glob("draft-*.json")
    return note


def change(note: Path, **values: Any) -> None:
    """Change what a note says, in the file that it is."""
    note.write_text(json.dumps({**json.loads(note.read_bytes()), **values}))


def test_the_next_backup_and_export_remove_what_was_left(store: Path, out: Path) -> None:
    with commonplace.open(store) as book:
        for write in (book.backup, book.export, book.graph.export_graphiti):
            left = abandon(store, out / "b.zip")
            write(out / write.__name__)
            assert not left.exists()
    assert not list(store.glob("draft-*"))
    assert {path.name for path in out.iterdir()} == {"backup", "export", "export_graphiti"}


def test_the_next_restore_removes_what_was_left(store: Path, out: Path) -> None:
    """Also what is noted in the store that it replaces."""
    with commonplace.open(store) as book:
        book.backup(out / "b.zip")
    left = abandon(store, out / "c.zip")
    commonplace.restore(out / "b.zip", store, replace=True)
    assert not left.exists()
    assert not list(store.glob("draft-*"))


def test_doctor_tells_of_it_and_removes_it_unless_it_only_looks(store: Path, out: Path) -> None:
    left = abandon(store, out / "b.zip")
    shown = str(left).removesuffix("new") + "*"
    with commonplace.open(store) as book:
        [finding] = book.doctor(mend=False).findings
        assert finding.part == "drafts"
        assert finding.problem.startswith(f"{shown} was left when a backup, restore or export was killed")
        assert (finding.mended, left.exists()) == (False, True)
        [finding] = book.doctor().findings
        assert (finding.mended, left.exists()) == (True, False)
        assert book.doctor().findings == ()


def test_a_rehearsed_forgetting_removes_nothing(store: Path, out: Path) -> None:
    left = abandon(store, out / "b.zip")
    with commonplace.open(store) as book:
        book.forget("a", dry_run=True)
    assert left.exists()


class TestUnreachable:
    """The receipt says so, is no proof, and the doctor finishes it as soon as it can be reached."""

    @pytest.fixture
    def book(self, store: Path) -> Iterator[Engine]:
        with commonplace.open(store) as book:
            yield book

    def test_on_a_disk_that_is_not_mounted(self, store: Path, out: Path, book: Engine) -> None:
        left = abandon(store, out / "b.zip")
        was = json.loads(note_of(store).read_bytes())
        shutil.move(out, out.with_name("unplugged"))
        out.mkdir()
        change(note_of(store), device=was["device"] + 1)
        receipt = book.forget("a")
        assert not receipt.verified
        [waiting] = receipt.waiting
        assert str(left).removesuffix("new") in waiting
        assert "the disk that it was written to is not mounted" in waiting
        [finding] = [each for each in book.doctor().findings if each.part == "forgetting"]
        assert not finding.mended
        out.rmdir()
        shutil.move(out.with_name("unplugged"), out)
        assert book.doctor().is_healthy
        assert not left.exists()
        assert book.receipts()[-1].verified

    def test_in_a_directory_that_is_gone_with_its_disk(self, store: Path, out: Path, book: Engine) -> None:
        abandon(store, out / "b.zip")
        shutil.rmtree(out)
        change(note_of(store), device=0)
        [waiting] = book.forget("a").waiting
        assert "not mounted" in waiting

    def test_what_cannot_be_removed(self, store: Path, out: Path, book: Engine) -> None:
        left = abandon(store, out / "b.zip")
        left.unlink()
        left.mkdir()
        [waiting] = book.forget("a").waiting
        assert "cannot be removed" in waiting
        report = book.backup(out / "c.zip")
        assert any("cannot be removed" in notice for notice in report.notices)
        left.rmdir()
        assert book.doctor().is_healthy
        assert book.receipts()[-1].verified

    def test_a_restore_hands_the_note_on(self, store: Path, out: Path, book: Engine) -> None:
        """Whoever forgets in the new store has to hear of what the old one left."""
        backup = book.backup(out / "c.zip").path
        book.close()
        left = abandon(store, out / "b.zip")
        left.unlink()
        left.mkdir()
        commonplace.restore(backup, store, replace=True)
        with commonplace.open(store) as restored:
            assert not restored.forget("a").verified
            left.rmdir()
            left.write_text("The amber lighthouse")
            assert restored.doctor().is_healthy
        assert not left.exists()


def test_what_is_gone_with_its_directory_on_the_same_disk_is_gone(store: Path, out: Path) -> None:
    abandon(store, out / "b.zip")
    shutil.rmtree(out)
    with commonplace.open(store) as book:
        assert book.doctor().findings == ()
        assert book.forget("a").verified
    assert not list(store.glob("draft-*"))


def test_a_thread_of_this_process_is_alive_too(store: Path, out: Path) -> None:
    with draft(store, out / "b.zip") as base:
        file = base.with_name(f"{base.name}.new")
        file.write_text("")
        found: list[Draft] = []
        thread = threading.Thread(target=lambda: found.extend(clear_drafts(store)))
        thread.start()
        thread.join()
        assert [(each.state, each.target) for each in found] == [("live", str(out / "b.zip"))]
        assert file.exists()
    assert not file.exists()


def test_a_copy_of_the_store_removes_nothing_of_the_original(store: Path, out: Path, tmp_path: Path) -> None:
    """The note's copy is locked by nobody, and the writer may be alive."""
    with draft(store, out / "b.zip") as base:
        file = base.with_name(f"{base.name}.new")
        file.write_text("")
        shutil.copytree(store, tmp_path / "copy")
        [found] = clear_drafts(tmp_path / "copy")
        assert found.state == "unreachable"
        assert "copied" in found.why
        assert file.exists()


@pytest.mark.parametrize(
    "named", ["b.zip", "b.zip.{other}", "../out/b.zip.{other}", "/", "", 7, None, "\0.{id}", "\ud800.{id}"]
)
def test_a_note_that_came_with_a_clone_removes_no_file_of_ours(store: Path, out: Path, named: Any) -> None:
    """Only a writer of a draft can know a name that ends in the note's own number."""
    id_, other = "ab" * 16, "cd" * 16
    for name in ("b.zip", "b.zip.new", f"b.zip.{other}.new"):
        (out / name).write_text("mine")
    note = store / f"draft-{id_}.json"
    note.write_text("")
    path = f"{out}/{named}".format(id=id_, other=other) if isinstance(named, str) and named else named
    note.write_text(json.dumps({"draft": path, "device": 0, "directory": 0, "note": note.stat().st_ino}))
    assert clear_drafts(store) == []
    assert {path.name for path in out.iterdir()} == {"b.zip", "b.zip.new", f"b.zip.{other}.new"}


@pytest.mark.parametrize("text", ["", "{", "[" * 50_000, "[]", '{"draft": 1e999}'])
def test_a_note_that_says_nothing_goes(store: Path, text: str) -> None:
    """Its writer was killed before it wrote anything else."""
    note = store / f"draft-{'ab' * 16}.json"
    note.write_text(text)
    assert clear_drafts(store) == []
    assert not note.exists()


class TestBesideTheStore:
    """What a restore is unpacked into lies there, under a name that a restore alone gives."""

    NAME = f"store.{'ab' * 16}.new"

    def test_what_no_restore_made_stays(self, store: Path, tmp_path: Path) -> None:
        other = tmp_path / self.NAME
        (other / "a").mkdir(parents=True)
        (tmp_path / f"store.{'cd' * 16}.new").write_text("a file")
        assert clear_drafts(store) == []
        assert (other / "a").exists()

    @pytest.mark.parametrize("aside", ["../elsewhere.replaced", "/etc.replaced", "other", "store.replaced"])
    def test_a_note_in_a_clone_moves_nothing_elsewhere(self, store: Path, tmp_path: Path, aside: str) -> None:
        other = tmp_path / self.NAME
        (other / "a").mkdir(parents=True)
        (store / "restore.json").write_text(json.dumps({"draft": self.NAME, "aside": aside}))
        clear_drafts(store)
        assert (other / "a").exists()

    def test_links_in_it_are_not_followed(self, store: Path, tmp_path: Path) -> None:
        other, outside = tmp_path / self.NAME, tmp_path / "outside"
        outside.mkdir()
        (outside / "a").write_text("mine")
        other.mkdir()
        (other / "restore.json").write_text(json.dumps({"draft": self.NAME}))
        (other / "index").symlink_to(outside)
        assert [each.state for each in clear_drafts(store)] == ["removed"]
        assert (outside / "a").exists()

    def test_a_link_is_none(self, store: Path, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "restore.json").write_text(json.dumps({"draft": self.NAME}))
        (tmp_path / self.NAME).symlink_to(outside)
        assert clear_drafts(store) == []
        assert (outside / "restore.json").exists()
