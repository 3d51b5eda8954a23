"""Stores that come with somebody's clone and hold links: nothing is read or written through them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import commonplace
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.erasure.copies import notes_of
from commonplace.errors import CommonplaceError, StoreError
from commonplace.index.files import replace_file
from commonplace.index.writer import empty_and_remove, remove_unless_open
from commonplace.locks import FileLock
from commonplace.logs import LineFile, RetrievalLog, blank_lines

LINKED = [
    "index",
    "index/lock",
    "index/current.json",
    "index/current.json.draft",
    "index/g00000000",
    "index/g00000001",
    "index/g00000001/dense",
    "index/g00000001/dense/dead",
    "index/g00000099",
    "logs",
    "logs/commonplace.jsonl",
    "logs/retrieval",
    "logs/retrieval/retrieval.jsonl",
    "store.db",
    "store.db-wal",
    "store.db-shm",
    "store.db.lock",
    "settings.json",
    "forgetting.lock",
    "embedding.lock",
    "memory.lock",
    f"draft-{'ab' * 16}.json",
    "restore.json",
]
TEXT = "The amber lighthouse was painted on Tuesday"
COMMANDS = [
    ["remember", "The basalt lighthouse was painted on Friday"],
    ["search", "lighthouse"],
    ["index", "build"],
    ["doctor"],
    ["doctor", "--secrets"],
    ["forget", "a", "--yes"],
    ["store", "gc", "--older-than-days", "0"],
    ["backup", "../b.zip"],
    ["export", "../e.jsonl"],
    ["settings", "show"],
    ["sync"],
    ["init"],
]


def make(store: Path) -> Path:
    """Make a store with an index, logs and everything that locks leave."""
    with commonplace.open(store) as book:
        book.remember(TEXT, id="a")
        book.remember("The cedar lighthouse was painted on Monday", id="b")
        book.index_documents([])
        book._runtime.maintenance.update_index()
        book.archive("b")
        book.forget("b")
    RetrievalLog(store / "logs", queries="text").write(TEXT, {})
    LineFile(store / "logs" / "commonplace.jsonl").write({"at": 0})
    (store / "settings.json").write_text("{}")
    return store


def state(place: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a directory, with what it holds and when it was changed."""
    files = {str(path): path for path in sorted(place.rglob("*"))}
    return {
        name: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for name, path in files.items()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, to be copied."""
    return make(tmp_path_factory.mktemp("made") / ".commonplace")


@pytest.fixture
def other(tmp_path: Path, made: Path) -> Path:
    """The store of another project."""
    return shutil.copytree(made, tmp_path / "other" / ".commonplace")


@pytest.fixture
def project(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a store, in which the process stands."""
    shutil.copytree(made, tmp_path / "project" / ".commonplace")
    (tmp_path / "project" / "a.md").write_text("# A page\n")
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def link(store: Path, other: Path, name: str) -> Path:
    """Put a link in the place of a part of a store, to the same part of another one, or to nothing there."""
    place = store / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(other / name)
    return place


def calls(book: Engine, out: Path) -> list[Callable[[], object]]:
    return [
        lambda: book.remember("The basalt lighthouse was painted on Friday"),
        lambda: book.search("lighthouse"),
        lambda: book.forget("a"),
        lambda: book.doctor(secrets=True),
        lambda: book.backup(out),
    ]


@pytest.mark.parametrize("name", LINKED)
def test_a_store_with_a_link_is_refused_and_what_it_leads_to_is_left_alone(
    project: Path, other: Path, name: str
) -> None:
    """A clone may hold a link to the store of another project, or to anybody's files."""
    place = link(project / ".commonplace", other, name)
    before = state(other)
    with pytest.raises(StoreError, match="is a link") as raised, commonplace.open() as book:
        for call in calls(book, project / "b.zip"):
            call()
    assert str(place) in str(raised.value)
    assert state(other) == before


def test_a_store_that_is_a_link_is_refused_unless_it_is_named(project: Path, other: Path) -> None:
    """Who names it means it; who only stands in a clone does not."""
    shutil.rmtree(project / ".commonplace")
    (project / ".commonplace").symlink_to(other)
    before = state(other)
    with pytest.raises(CommonplaceError, match=r"\.commonplace is a link"):
        commonplace.open()
    assert CliRunner().invoke(cli, ["remember", "Something"]).exit_code == 1
    assert state(other) == before
    with commonplace.open(project / ".commonplace") as book:
        assert book.get("a").content == TEXT


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("name", LINKED)
def test_no_command_follows_a_link(project: Path, other: Path, name: str, command: list[str]) -> None:
    """Each goes its own way to the store before it is opened."""
    place = link(project / ".commonplace", other, name)
    before = state(other)
    done = CliRunner().invoke(cli, command)
    assert (done.exit_code, f"{place} is a link" in done.output + done.stderr) == (1, True), done.output + done.stderr
    assert state(other) == before


def test_a_restore_over_a_store_with_a_link_is_refused(project: Path, other: Path, tmp_path: Path) -> None:
    with commonplace.open() as book:
        book.backup(tmp_path / "b.zip")
    link(project / ".commonplace", other, "store.db")
    before = state(other)
    with pytest.raises(StoreError, match="is a link"):
        commonplace.restore(tmp_path / "b.zip", project / ".commonplace", replace=True)
    assert state(other) == before


class TestLinksThatComeLater:
    """A `git pull` may bring one while the store is open."""

    @pytest.mark.parametrize("remove", [empty_and_remove, remove_unless_open])
    def test_a_generation_that_is_a_link_is_not_emptied(
        self, other: Path, tmp_path: Path, remove: Callable[[Path], bool]
    ) -> None:
        [generation] = (other / "index").glob("g*")
        (tmp_path / "g00000009").symlink_to(generation)
        before = state(other)
        assert remove(tmp_path / "g00000009")
        assert state(other) == before

    def test_a_file_of_a_generation_that_is_a_link_is_not_emptied(self, other: Path, tmp_path: Path) -> None:
        generation = tmp_path / "g00000009"
        (generation / "dense").mkdir(parents=True)
        (generation / "dense" / "dead").write_bytes(b"")
        (generation / "dense" / "a").symlink_to(other / "settings.json")
        before = state(other)
        assert empty_and_remove(generation)
        assert state(other) == before

    def test_a_draft_that_is_a_link_is_not_written(self, other: Path, tmp_path: Path) -> None:
        (tmp_path / "current.json.draft").symlink_to(other / "settings.json")
        before = state(other)
        with pytest.raises(OSError, match=r"current\.json\.draft"):
            replace_file(tmp_path / "current.json", b"new")
        assert state(other) == before

    def test_a_lock_that_is_a_link_is_not_taken(self, tmp_path: Path) -> None:
        (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="is a link"):
            FileLock(tmp_path / "lock").acquire(0.0)
        assert not (tmp_path / "elsewhere").exists()

    def test_a_log_that_is_a_link_is_neither_written_nor_blanked_nor_read(self, other: Path, tmp_path: Path) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        (logs / "retrieval").symlink_to(other / "logs" / "retrieval")
        (logs / "commonplace.jsonl").symlink_to(other / "logs" / "commonplace.jsonl")
        before = state(other)
        log = RetrievalLog(logs, queries="text")
        log.write("a question", {})
        assert list(log.lines()) == []
        with pytest.raises(OSError, match="link"):
            LineFile(logs / "commonplace.jsonl").write({})
        assert blank_lines(logs, lambda data: range(len(data))) == 0
        assert state(other) == before

    def test_notes_in_a_vault_that_is_a_link_are_none_of_the_store(self, tmp_path: Path) -> None:
        """They would be removed with the memory of the same id."""
        notes = tmp_path / "elsewhere" / "notes"
        notes.mkdir(parents=True)
        (notes / "a.md").write_text("---\nmemory_id: a\n---\nMine\n")
        store = tmp_path / "store"
        store.mkdir()
        (store / "vault").symlink_to(tmp_path / "elsewhere")
        assert notes_of(store, ["a"], ["vault/notes/a.md"]) == []
        (store / "vault").unlink()
        (store / "vault").mkdir()
        (store / "vault" / "b.md").symlink_to(notes / "a.md")
        assert notes_of(store, ["a"], []) == []
