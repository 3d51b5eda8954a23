"""Backups and what is made of them: complete, read back, and put in place without touching what was there."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from tests.contract.graphs import entity, episode, put, relation, whole
from tests.contract.memories import FULL_MEMORY_OWNER, FULL_RECORD, add, everything, expire, update, written
from tests.contract.stores import file

import commonplace
from commonplace.errors import StoreBusyError, StoreDamagedError, StoreError
from commonplace.exchange import restore as swapping
from commonplace.exchange.backup import BackupReport, back_up
from commonplace.exchange.restore import restore
from commonplace.store.store import Store
from commonplace.types import JournalBlock, JournalPage, Link, MemoryWrite, Note
from commonplace.types.graph import Alias, Happening, Mention

NOW = 1_772_355_600.0  # 2026-03-01T09:00:00Z
IDS = ("a", "b", "Ünï\ue000", FULL_MEMORY_OWNER.id)
PAGES = {"memory/2026-03-01.md": "## 09:00 Café\n", "memory/n/MEMORY.md": "# Decisions\n", "vault/notes/a.md": ""}


def fill(directory: Path) -> None:
    """Make a store with everything that one can hold, and Markdown beside it."""
    store = Store.create(directory / "store.db")
    add(store, written("a", "one", tags=("t",), dates=((1.0, 2.0),)), written("b", "two", session="s"), at=10.0)
    update(store, written("a", "one", "more", version=2), 20.0)
    expire(store, "b", 25.0)
    add(store, MemoryWrite(FULL_MEMORY_OWNER, (), FULL_RECORD, is_placed=True), written("Ünï\ue000", "\x01"), name="m")
    store.put_owners("n", [file("f", "src/a.py", "def f(): ...")], at=5.0)
    with store.change_memories("n") as change:
        change.link(Link("a", "b", "related", 0.5, 3.0))
        change.put(JournalPage("memory/2026-03-01.md", 15, 1, "ab" * 32))
        change.put(JournalBlock("a", "memory/2026-03-01.md", "d"))
        change.put(Note("receipt", "r", 1.0, "{}"))
    put(store, episode("e"), entity("a", "Ann"), entity("b", expired_at=12.0, merged_into="a"), relation("r"))
    put(store, Mention("e", "entity", "a", 0, 1, "Ann"), Alias("a", "Ann", "ann", 10.0, "e"))
    put(store, Happening("relation", "r", 10.0, "created", "They said so"))
    store.close()
    for name, text in PAGES.items():
        page = directory / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
        os.utime(page, ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    for name in ("index/current.json", "logs/a.log", "memory/a.md.tmp", "vault/picture.png"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("not in a backup")


def readable(directory: Path) -> dict[str, object]:
    """Return all that a store tells and the Markdown beside it."""
    store = Store.open(directory / "store.db", create=False)
    try:
        told: dict[str, object] = {name: everything(store, name, IDS, ("s",)) for name in store.namespaces() if name}
        told |= {f"graph of {name}": whole(store.graph(name), (*IDS, "e", "r")) for name in store.namespaces() if name}
        told |= {"id": store.id, "tokens": [store.token("n", number) for number in range(store.change() + 1)]}
        told |= {"notes": store.notes(None, "receipt"), "checked": store.check(), "embedding": store.embedding()}
    finally:
        store.close()
    for folder in ("memory", "vault"):
        for path in sorted((directory / folder).rglob("*.md")):
            told[str(path.relative_to(directory))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return told


def back_up_from(directory: Path, target: Path) -> BackupReport:
    store = Store.open(directory / "store.db", create=False)
    try:
        return back_up(store, directory, target, now=NOW)
    finally:
        store.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A filled store."""
    fill(tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture
def archive(place: Path, tmp_path: Path) -> Path:
    """A backup of it."""
    return back_up_from(place, tmp_path / "b.zip").path


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_a_restored_store_tells_all_that_the_old_one_did(place: Path, tmp_path: Path) -> None:
    before = readable(place)
    report = back_up_from(place, tmp_path / "b.zip")
    restored = restore(report.path, tmp_path / "elsewhere" / "store")
    assert readable(restored.directory) == before
    assert (restored.store, restored.change, restored.files, restored.kept) == (report.store, report.change, 3, None)
    assert names(restored.directory) == {"store.db", "store.db.lock", "memory", "vault"}


def test_what_is_restored_is_found(tmp_path: Path) -> None:
    """The index is not part of a backup: the first search builds it."""
    with commonplace.open(tmp_path / "store") as book:
        book.remember("We chose Postgres for billing", id="m")
        back_up(book._runtime.store, book.directory, tmp_path / "b.zip", now=NOW)
        book.remember("Sessions expire after thirty minutes")
    restore(tmp_path / "b.zip", tmp_path / "other")
    with commonplace.open(tmp_path / "other") as book:
        assert [hit.owner_id for hit in book.search("which database does billing use").hits] == ["m"]
        assert book.doctor(mend=False).is_healthy


def test_the_manifest_names_every_member_with_its_sum(archive: Path, place: Path) -> None:
    with zipfile.ZipFile(archive) as packed:
        manifest = json.loads(packed.read("manifest.json"))
        members = manifest.pop("members")
        assert {member["path"] for member in members} == {"store.db", *PAGES}
        assert set(packed.namelist()) == {"manifest.json", "store.db", *PAGES}
        for member in members:
            data = packed.read(member["path"])
            assert (member["size"], member["sha256"]) == (len(data), sha256(data).hexdigest())
    store = Store.open(place / "store.db", create=False)
    assert manifest == {
        "format": "commonplace-backup",
        "version": 1,
        "commonplace": commonplace.__version__,
        "store": store.id,
        "change": store.change(),
        "created_at": "2026-03-01T09:00:00Z",
    }
    store.close()


def test_the_store_remembers_where_its_backups_are(archive: Path, place: Path) -> None:
    """What is forgotten later is still in them, and whoever forgets must be told."""
    store = Store.open(place / "store.db", create=False)
    body = f'{{"path": "{archive}", "at": "2026-03-01T09:00:00Z"}}'
    assert store.notes(None, "backup") == [Note("backup", str(archive), NOW, body)]
    store.close()


def test_a_backup_replaces_nothing(archive: Path, place: Path, tmp_path: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(StoreError, match="exists already; name a file that does not exist yet"):
        back_up_from(place, archive)
    with pytest.raises(StoreError, match="is no directory"):
        back_up_from(place, tmp_path / "missing" / "b.zip")
    assert archive.read_bytes() == before
    assert names(tmp_path) == {"store", "b.zip"}


def test_links_are_left_out_and_named(place: Path, tmp_path: Path) -> None:
    """A link leads out of the store, and a restore would not know where to."""
    (tmp_path / "secret.md").write_text("elsewhere")
    (place / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
    report = back_up_from(place, tmp_path / "b.zip")
    assert report.notices == (f"{place / 'memory' / 'link.md'} is a link, and was skipped",)
    assert report.files == 3


def test_a_page_whose_name_no_archive_can_hold_is_named(place: Path, tmp_path: Path) -> None:
    (place / "memory" / os.fsdecode(b"caf\xe9.md")).write_text("x")
    with pytest.raises(StoreError, match="has a name that is not UTF-8, which no backup can hold; rename it"):
        back_up_from(place, tmp_path / "b.zip")
    assert names(tmp_path) == {"store"}


def test_no_backup_is_kept_of_a_damaged_store(place: Path, tmp_path: Path) -> None:
    """It would take the place of an earlier one that is whole."""
    with sqlite3.connect(place / "store.db") as db:
        db.execute("UPDATE counts SET owners = owners + 1")
    db.close()
    with pytest.raises(StoreDamagedError, match="the store is damaged, so that no backup of it was kept"):
        back_up_from(place, tmp_path / "b.zip")
    assert names(tmp_path) == {"store"}


def test_a_store_is_replaced_only_if_that_is_said(archive: Path, place: Path) -> None:
    before = readable(place)
    with pytest.raises(StoreError, match=r"holds a store already; replace it with replace=True, "):
        restore(archive, place)
    assert readable(place) == before


@pytest.mark.parametrize("exchanges", [True, False])
def test_what_is_replaced_is_kept_beside(
    archive: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    """Also where the system cannot let two directories change places in one step."""
    if not exchanges:
        monkeypatch.setattr(swapping.ctypes, "CDLL", lambda *_, **__: object())
    backed_up = readable(place)
    (place / "settings.json").write_text("{}")
    add(open_store := Store.open(place / "store.db", create=False), written("late", "later"))
    open_store.close()
    replaced = readable(place)
    report = restore(archive, place, replace=True, clock=lambda: NOW)
    assert report.kept == tmp_path / "store.2026-03-01T09-00-00Z.replaced"
    assert readable(place) == backed_up
    assert readable(report.kept) == replaced
    assert names(place) == {"store.db", "store.db.lock", "memory", "vault", "settings.json"}
    again = restore(archive, place, replace=True, clock=lambda: NOW)
    assert again.kept == tmp_path / "store.2026-03-01T09-00-00Z.1.replaced"
    assert names(tmp_path) == {"store", "b.zip", report.kept.name, again.kept.name}


def test_a_damaged_store_can_be_replaced(archive: Path, place: Path) -> None:
    backed_up = readable(place)
    (place / "store.db").write_bytes(b"no database at all" * 500)
    report = restore(archive, place, replace=True)
    assert readable(place) == backed_up
    assert report.kept is not None


def test_a_store_that_is_open_is_not_replaced(archive: Path, place: Path, tmp_path: Path) -> None:
    """What its holder acknowledged afterwards would go to a store that nobody reads."""
    holder = Store.open(place / "store.db", create=False)
    with pytest.raises(StoreBusyError, match=r"another program has the store .* open; close every program"):
        restore(archive, place, replace=True)
    add(holder, written("late", "later"))
    assert holder.check() == []
    holder.close()
    assert names(tmp_path) == {"store", "b.zip"}


@pytest.mark.parametrize(
    ("occupy", "message"),
    [
        (lambda place: place.write_text("x"), "is a file"),
        (lambda place: (place / "photos").mkdir(parents=True), "holds no store, but 'photos'"),
    ],
)
def test_nothing_but_a_store_is_replaced(
    archive: Path, tmp_path: Path, occupy: Callable[[Path], object], message: str
) -> None:
    occupy(tmp_path / "other")
    with pytest.raises(StoreError, match=message):
        restore(archive, tmp_path / "other", replace=True)
    assert names(tmp_path) == {"store", "b.zip", "other"}


def test_a_directory_that_waits_for_its_store_gets_it(archive: Path, place: Path, tmp_path: Path) -> None:
    waiting = tmp_path / ".commonplace"
    waiting.mkdir()
    (waiting / ".gitignore").write_text("mine\n")
    (waiting / "settings.json").write_text("{}")
    restore(archive, waiting)
    assert names(waiting) == {"store.db", "store.db.lock", "memory", "vault", "settings.json", ".gitignore"}
    assert (waiting / ".gitignore").read_text() == "mine\n"
    assert names(tmp_path) == {"store", "b.zip", ".commonplace"}


def test_a_project_s_store_stays_out_of_its_history(archive: Path, tmp_path: Path) -> None:
    restore(archive, tmp_path / ".commonplace")
    assert (tmp_path / ".commonplace" / ".gitignore").read_text() == "*\n"


def test_a_link_to_a_store_is_followed(archive: Path, place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place)
    assert restore(archive, tmp_path / "link", replace=True).directory == place
    assert (tmp_path / "link").is_symlink()


def test_a_store_is_restored_only_where_there_is_room(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match=r"the backup needs [\d,]+ bytes unpacked, 10 are free"):
        restore(archive, tmp_path / "other")
    assert names(tmp_path) == {"store", "b.zip"}
