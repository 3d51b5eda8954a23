"""A store that is deleted, put into another one's place, or lost in part: nothing is taken that would be lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import commonplace
from commonplace.errors import CommonplaceError, StoreDamagedError, StoreError
from commonplace.index.generations import Index
from commonplace.journal.folder import Folder, PageFile
from commonplace.store import database
from commonplace.store.store import Store
from commonplace.types import Embedding, Owner, OwnerWrite

LOST = r"the store at .*store\.db was deleted or replaced while it was open; open it again"


def one(id_: str) -> list[OwnerWrite]:
    return [OwnerWrite(Owner(id_, "memory"), ())]


def delete(path: Path) -> None:
    shutil.rmtree(path.parent)


def delete_and_make_the_directory_anew(path: Path) -> None:
    delete(path)
    path.parent.mkdir()


def replace(path: Path) -> None:
    """Put the store of another process in its place; the old file stays, so that its number is not given again."""
    path.parent.rename(path.parent.with_name("old"))
    Store.create(path).close()


@pytest.mark.parametrize("lose", [delete, delete_and_make_the_directory_anew, replace])
@pytest.mark.parametrize("has_written", [True, False])
def test_a_store_that_is_gone_takes_nothing(tmp_path: Path, lose: Callable[[Path], None], has_written: bool) -> None:
    """A write to the deleted file would be acknowledged and lost; one to another store would mix the two."""
    path = tmp_path / "store" / "store.db"
    Store.create(path).close()
    store = Store.open(path, create=False)
    if has_written:
        store.put_owners("n", one("a"))
    lose(path)
    left = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError, match=LOST):
        store.put_owners("n", one("b"))
    with pytest.raises(StoreError, match=LOST):
        store.compact(thorough=True)
    assert sorted(tmp_path.rglob("*")) == left
    store.close()


def test_a_store_replaced_while_the_lock_is_waited_for_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restoring a backup holds the lock, and then changes the places of the two."""
    path = tmp_path / "store" / "store.db"
    store = Store.create(path)
    store.put_owners("n", one("a"))
    acquire = store._connections._open_pool()._lock.acquire

    def replaced_meanwhile(timeout_s: float) -> bool:
        replace(path)
        return acquire(timeout_s)

    monkeypatch.setattr(store._connections._open_pool()._lock, "acquire", replaced_meanwhile)
    with pytest.raises(StoreError, match=LOST):
        store.put_owners("n", one("b"))
    store.close()


def test_a_store_that_was_moved_away_and_back_is_written_on(tmp_path: Path) -> None:
    path = tmp_path / "store" / "store.db"
    store = Store.create(path)
    path.parent.rename(tmp_path / "aside")
    with pytest.raises(StoreError, match=LOST):
        store.put_owners("n", one("a"))
    (tmp_path / "aside").rename(path.parent)
    assert store.put_owners("n", one("a")) == 1
    store.close()


def test_a_closed_store_that_was_deleted_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "store" / "store.db"
    store = Store.create(path)
    store.close()
    delete(path)
    with pytest.raises(StoreError, match=r"is closed; open it again"):
        store.put_owners("n", one("a"))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_an_engine_to_its_parent(tmp_path: Path) -> None:
    """What it says in the end must not be that the parent's store is none of its own."""
    with commonplace.open(tmp_path / "store") as engine:
        engine.remember("Tea is at four.")
        engine.recall("tea")
        child = os.fork()
        if child == 0:
            is_quiet = False
            with suppress(CommonplaceError):
                engine.close()
                is_quiet = True
            os._exit(0 if is_quiet else 1)
        assert os.waitpid(child, 0)[1] == 0
        engine.remember("Coffee is at ten.")
        assert len(engine.list()) == 2


def test_a_place_that_may_not_be_looked_into_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can tell then whether the store is still there."""
    path = tmp_path / "store.db"
    store = Store.create(path)

    def refuse(_: Path, **__: bool) -> os.stat_result:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "stat", refuse)
        with pytest.raises(StoreError, match=r"cannot read .*store\.db: Permission denied; make its directory"):
            store.put_owners("n", one("a"))
    store.close()


def test_neither_index_nor_pages_make_the_directory_of_a_store_anew(tmp_path: Path) -> None:
    """From then on it would look like a store that is there."""
    gone = tmp_path / "gone"
    index = Index(gone / "index", store_id="s", embedding=Embedding("test", "1", 8))
    with pytest.raises(StoreError, match=r"the store at .*gone was deleted while it was open; open it again"):
        index.claim(0)
    for namespace in ("default", "other"):
        for name in ("2026-11-21.md", "MEMORY.md"):
            with pytest.raises(FileNotFoundError):
                Folder(gone, namespace).replace(PageFile(name), "text")
    assert list(tmp_path.iterdir()) == []


def test_an_engine_whose_store_was_deleted_says_so_whatever_was_asked_before(tmp_path: Path) -> None:
    """Whatever it does beside, the directory stays gone and nothing is said to be kept."""
    directory = tmp_path / ".commonplace"
    book = commonplace.open(directory)
    book.remember("The door is blue.")
    shutil.rmtree(directory)
    for ask in (lambda: book.search("door"), book.sync, book.doctor, book.index_status):
        with suppress(CommonplaceError):
            ask()
    with pytest.raises(StoreError, match=LOST):
        book.remember("The roof is grey.")
    assert not directory.exists()
    book.close()
    assert not directory.exists()


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """A closed store with an index and pages."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("The door is blue.", id="door", tier="long")
        book.remember("The roof is grey.", id="roof")
        book.recall("door")
        book.backup(tmp_path / "kept.tar")
    return tmp_path / "store"


def everything(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*"))


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("gone", [(), ("index",), ("store.db.lock", "MEMORY.md", "memory"), ("MEMORY.md", "memory")])
def test_a_store_whose_database_is_gone_is_not_taken_for_a_new_one(
    used: Path, gone: tuple[str, ...], create: bool
) -> None:
    """An empty store would answer "nothing" for ever after, and hide that there is a backup to restore."""
    for name in ("store.db", *gone):
        path = used / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = everything(used)
    with pytest.raises(
        StoreDamagedError, match=r"store has lost its database: store\.db is gone, .* there; restore"
    ) as told:
        commonplace.open(used, embedder="hashing", create=create)
    assert f"`commonplace restore FILE --replace --store {used}`" in told.value.remedy
    assert f"`commonplace init --anew --store {used}`" in told.value.remedy
    assert ("Markdown pages" in told.value.remedy) == ("memory" not in gone)
    assert everything(used) == before


def test_pages_that_came_alone_make_a_store_of_what_stands_on_them(used: Path, tmp_path: Path) -> None:
    """A team may keep them in its project's history, where neither index nor database are."""
    clone = tmp_path / "clone"
    shutil.copytree(used / "memory", clone / "memory")
    shutil.copy(used / "MEMORY.md", clone)
    with commonplace.open(clone, embedder="hashing") as book:
        assert book.sync().added == 2
        assert sorted(memory.id for memory in book.list()) == ["door", "roof"]


@pytest.fixture
def pages_alone(used: Path) -> Path:
    delete_all_but(used, ("memory", "MEMORY.md"))
    return used


def test_a_store_that_could_not_be_made_is_made_the_next_time(
    pages_alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, or Ctrl-C, must not make a lost store of one that never was."""

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(database, "begin_store", full)
        with pytest.raises(StoreError, match="disk is full"):
            commonplace.open(pages_alone, embedder="hashing")
    with commonplace.open(pages_alone, embedder="hashing") as book:
        assert book.sync().added == 2


def test_a_store_that_another_process_is_just_making_is_not_lost(
    pages_alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server and a hook of an agent begin at the same time in a project that came with its pages."""
    path, looked, errors = pages_alone / "store.db", threading.Event(), list[CommonplaceError]()
    look, publish = database.left_behind, database._publish

    def looking(path: Path) -> list[str]:
        found = look(path)
        looked.set()
        return found

    def asking() -> None:
        try:
            database.refuse_lost(path)
        except CommonplaceError as error:
            errors.append(error)

    asker = threading.Thread(target=asking)

    def publishing(new: Path, path: Path) -> None:
        asker.start()
        assert looked.wait(60)
        publish(new, path)

    monkeypatch.setattr(database, "left_behind", looking)
    monkeypatch.setattr(database, "_publish", publishing)
    database.make(path, 10)
    asker.join()
    assert errors == []


def test_a_log_without_its_database_is_kept(used: Path) -> None:
    """It may hold what was acknowledged last; to make a store there would remove it."""
    with commonplace.open(used, embedder="hashing") as book:
        book.remember("The wall is green.")
        log = (used / "store.db-wal").read_bytes()
    delete_all_but(used, ())
    (used / "store.db-wal").write_bytes(log)
    with pytest.raises(StoreDamagedError, match=r"store\.db is gone, store\.db-wal is there"):
        commonplace.open(used, embedder="hashing")
    assert (used / "store.db-wal").read_bytes() == log


def delete_all_but(directory: Path, kept: tuple[str, ...]) -> None:
    for path in directory.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_what_no_store_has_left_is_no_lost_store(used: Path) -> None:
    """A `make` that was killed leaves its lock, and a person may put settings there before."""
    delete_all_but(used, ("store.db.lock",))
    (used / "settings.toml").touch()
    (used / "index").mkdir()
    with commonplace.open(used, embedder="hashing") as book:
        assert book.list() == []


def test_a_backup_takes_the_place_of_a_store_that_lost_its_database(used: Path, tmp_path: Path) -> None:
    (used / "store.db").unlink()
    before = [path.relative_to(used) for path in everything(used)]
    with pytest.raises(
        StoreError, match=r"holds files of a store, but not its store\.db: index, MEMORY\.md, memory; rep"
    ):
        commonplace.restore(tmp_path / "kept.tar", used)
    report = commonplace.restore(tmp_path / "kept.tar", used, replace=True)
    assert report.kept is not None
    assert {path.relative_to(report.kept) for path in everything(report.kept)} >= set(before)
    with commonplace.open(used, embedder="hashing") as book:
        assert sorted(memory.id for memory in book.list()) == ["door", "roof"]
        assert book.doctor().is_healthy
