"""What is said when a backup, an export or a restore cannot be written or read: what it is, why, and what helps."""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import StoreDamagedError, StoreError
from commonplace.exchange import backup, restore
from commonplace.store.store import Store

HEX = re.compile(r"[0-9a-f]{32}")


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store") as book:
        book.remember("The ferry leaves at nine")
        yield book


def failing(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "somewhere")

    return fail


def refused(work: Callable[[], object]) -> StoreError:
    """Return the error; it names no file that nobody asked for."""
    with pytest.raises(StoreError) as raised:
        work()
    assert not HEX.search(str(raised.value))
    return raised.value


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EROFS, "name another place"),
        (errno.EACCES, "name another place"),
        (errno.ENOSPC, "make room, or name another place"),
        (errno.EDQUOT, "make room, or name another place"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_with_the_reason(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    commonplace.restore(book.backup(tmp_path / "whole.zip").path, tmp_path / "old")
    monkeypatch.setattr(Path, "open", failing(number))
    for target, write in ((tmp_path / "b.zip", book.backup), (tmp_path / "e.jsonl", book.export)):
        error = refused(lambda target=target, write=write: write(target))
        assert error.args[0] == f"cannot write {target}: {os.strerror(number)}"
        assert error.remedy == remedy
    new = tmp_path / "new"
    error = refused(lambda: commonplace.restore(tmp_path / "whole.zip", new))
    assert error.args[0] == f"cannot restore to {new}: {os.strerror(number)}"
    is_full = number in (errno.ENOSPC, errno.EDQUOT)
    assert error.remedy == (remedy if is_full else "make its parent writable, or name another place")


def full() -> StoreError:
    """Return the error of a database for which there is no room."""
    error = StoreError("the disk of /x is full", remedy="free some space")
    error.__cause__ = sqlite3.OperationalError("database or disk is full")
    return error


def test_a_disk_that_is_full_when_the_database_is_copied_is_told_as_the_backup_s(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backup(_: Store, target: Path) -> None:
        raise full()

    monkeypatch.setattr(Store, "backup", backup)
    error = refused(lambda: book.backup(tmp_path / "b.zip"))
    assert error.args[0] == f"cannot write {tmp_path / 'b.zip'}: database or disk is full"
    assert error.remedy == "make room, or name another place"
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_disk_that_is_full_when_the_restored_database_is_opened_is_told_as_the_restore_s(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.backup(tmp_path / "b.zip")

    def put_notes(*_: object) -> None:
        raise full()

    monkeypatch.setattr(restore, "put_notes", put_notes)
    error = refused(lambda: commonplace.restore(tmp_path / "b.zip", tmp_path / "new"))
    assert error.args[0] == f"cannot restore to {tmp_path / 'new'}: database or disk is full"
    assert error.remedy == "make room, or name another place"
    assert not (tmp_path / "new").exists()


def test_what_is_wrong_with_the_store_is_said_of_the_store(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backup(_: Store, target: Path) -> None:
        raise StoreDamagedError(f"the store {target} is damaged: malformed", remedy="run `commonplace doctor`")

    monkeypatch.setattr(Store, "backup", backup)
    error = refused(lambda: book.backup(tmp_path / "b.zip"))
    assert isinstance(error, StoreDamagedError)
    assert error.args[0] == f"the store {tmp_path / 'store' / 'store.db'} is damaged: malformed"


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_backup_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b.zip").write_bytes(content)
    error = refused(lambda: commonplace.restore(tmp_path / "b.zip", tmp_path / "new"))
    assert error.args[0].startswith(f"the backup {tmp_path / 'b.zip'} cannot be restored: ")


def test_a_backup_whose_medium_fails_is_named(book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book.backup(tmp_path / "b.zip")
    monkeypatch.setattr(backup.zipfile.ZipExtFile, "read", failing(errno.EIO))
    error = refused(lambda: commonplace.restore(tmp_path / "b.zip", tmp_path / "new"))
    assert error.args[0] == f"cannot read {tmp_path / 'b.zip'}: {os.strerror(errno.EIO)}"


def test_backup_restore_and_export_tell_how_far_they_are(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def progress(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    with commonplace.open(tmp_path / "store", embedder="hashing", progress=progress) as book:
        book.remember_many([{"content": f"Entry {n} of the log of lamp{n}"} for n in range(210)])
        told.clear()
        report = book.backup(tmp_path / "b.zip")
        book.export(tmp_path / "e.jsonl")
    commonplace.restore(report.path, tmp_path / "new", progress=progress)
    last = {what: (done, total) for what, done, total in told}
    assert list(last) == ["Copying the database", "Backing up", "Reading the backup", "Exporting", "Restoring"]
    assert last.pop("Copying the database") == (0, 0)
    assert last["Exporting"] == (210, 210)
    assert all(done == total > 0 for done, total in last.values())
    assert last["Backing up"] == last["Reading the backup"] == last["Restoring"]
    assert len([what for what, *_ in told if what == "Exporting"]) <= 202


def test_a_store_without_anything_is_exported_with_progress(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    with commonplace.open(tmp_path / "store", progress=lambda *each: told.append(each)) as book:
        book.export(tmp_path / "e.jsonl")
    assert told == [("Exporting", 0, 0)]


def test_a_backup_without_a_part_of_its_manifest_has_one_remedy(book: Engine, tmp_path: Path) -> None:
    """An entry that is missing is found by the check of exports, whose remedy is no remedy here."""
    book.backup(tmp_path / "b.zip")
    with ZipFile(tmp_path / "b.zip") as old, ZipFile(tmp_path / "c.zip", "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                data = json.dumps({key: each for key, each in json.loads(data).items() if key != "store"}).encode()
            new.writestr(name, data)
    error = refused(lambda: commonplace.restore(tmp_path / "c.zip", tmp_path / "new"))
    assert error.args[0] == f"the backup {tmp_path / 'c.zip'} cannot be restored: manifest lacks 'store'"
    assert error.remedy == "name a whole file that `commonplace backup` wrote; nothing was changed"
