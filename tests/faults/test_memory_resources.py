"""A full disk, a place that cannot be written, a wrong clock, a damaged store: a clear error, and nothing is lost."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.unit.permissions import without_rights

import commonplace
import commonplace.ledger.rules  # without rights, the interpreter may not read its own library
from commonplace.cli.app import cli
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, StoreDamagedError, StoreError, StoreVersionError
from commonplace.logs import RetrievalLog
from commonplace.store.schema import VERSION
from commonplace.types import Document

SENTENCES = {f"m{number}": f"The heron stands by pond {number}, in the {number}th reed bed" for number in range(20)}
LONG = "An egret came and stayed for as long as the water was high. " * 100
NOON = 1_800_000_000.0


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, tempfile.gettempdir())
    monkeypatch.chdir(tempfile.gettempdir())


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users can look into."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    yield place
    for path in (place, *place.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the sentences, to be copied."""
    directory = tmp_path_factory.mktemp("made") / "store"
    with commonplace.open(directory) as book:
        book.remember_many([{"id": id_, "content": text} for id_, text in SENTENCES.items()])
        book.search("heron")
    return directory


@pytest.fixture
def store(place: Path, made: Path) -> Path:
    return shutil.copytree(made, place / "store")


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """Let the system refuse to write beyond a size; Python ignores the signal that comes with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def no_more_pages(book: Engine) -> Iterator[None]:
    """Let SQLite take its file for the whole disk; any other connection stays free."""
    with book._runtime.store._connections.writing() as db:  # type: ignore[attr-defined]
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    yield
    with book._runtime.store._connections.writing() as db:  # type: ignore[attr-defined]
        db.execute("PRAGMA max_page_count = 1000000")


@dataclass
class Ended:
    """How a command ended."""

    code: int
    error: dict[str, Any]
    output: str


def command(store: Path, *arguments: str) -> Ended:
    """Run a command; an error of it is one JSON value on standard error, not a traceback."""
    done: Result = CliRunner().invoke(cli, [*arguments, "--store", str(store), "--json"])
    error = json.loads(done.stderr)["error"] if done.stderr else {}
    return Ended(done.exit_code, error, done.stdout)


def contents(book: Engine) -> dict[str, str]:
    return {memory.id: memory.content for memory in book.list(statuses=(), limit=1000)}


def check_whole(store: Path, expected: dict[str, str]) -> None:
    """Look at everything as the next process does."""
    with commonplace.open(store) as book:
        assert contents(book) == expected
        report = book.doctor()
        assert report.is_healthy, report.findings
        hits = book.search("heron egret", limit=100, method="bm25", min_score=0.0).hits
        assert {hit.owner_id for hit in hits} == set(expected)


@pytest.mark.parametrize("room", [0, 4096, 8192, 70_000, 200_000])
def test_a_disk_that_becomes_full_refuses_what_is_new_and_keeps_all_that_was_acknowledged(
    store: Path, room: int
) -> None:
    """Whichever page is the first that finds no room."""
    kept, refused = dict(SENTENCES), 0
    with commonplace.open(store) as book:
        book.touch("m0")
        with no_file_longer_than((store / "store.db-wal").stat().st_size + room):
            for number in range(20):
                try:
                    book.remember(f"{number} {LONG}", id=f"new{number}", force=True)
                    kept[f"new{number}"] = f"{number} {LONG}"
                except StoreError as error:
                    refused += 1
                    assert str(store / "store.db") in str(error)
                    assert "room on the disk" in error.remedy or "free some space" in error.remedy
            assert contents(book) == kept
            assert book.recall("heron", min_score=0.0).hits
        assert refused
        book.remember("An egret came", id="last")
    check_whole(store, {**kept, "last": "An egret came"})


def test_no_call_changes_anything_on_a_full_disk_but_reading_goes_on(store: Path) -> None:
    """A page of a database is written before it is known whether the next one finds room."""
    with commonplace.open(store) as book:
        with no_more_pages(book):
            calls: list[Callable[[], object]] = [
                lambda: book.remember(LONG * 20, id="new", force=True),
                lambda: book.remember_many([{"content": f"{n} {LONG}"} for n in range(30)], force=True),
                lambda: book.update("m1", LONG * 20),
            ]
            for call in calls:
                with pytest.raises(StoreError, match=r"the disk of .*store\.db is full .*; free some space"):
                    call()
                assert (contents(book), len(book.versions("m1"))) == (SENTENCES, 1)
            assert book.recall("heron by pond 3", min_score=0.0).hits[0].owner_id == "m3"
        book.update("m1", "An egret")
    check_whole(store, {**SENTENCES, "m1": "An egret"})


def holding(store: Path, text: str) -> set[str]:
    """Return the files that hold a text."""
    files = [path for path in store.rglob("*") if path.is_file()]
    return {path.relative_to(store).as_posix() for path in files if text.encode() in path.read_bytes()}


def test_forgetting_on_a_full_disk_changes_nothing_or_says_what_the_doctor_is_to_finish(store: Path) -> None:
    """To delete takes room, too; whoever asked for it must know whether it was done."""
    rest = {id_: text for id_, text in SENTENCES.items() if id_ != "m3"}
    outcomes = []
    for share in (0.0, 0.4, 0.75, 3.0):
        copy = store.with_name(f"store {share}")
        shutil.copytree(store, copy)
        with commonplace.open(copy) as book:
            with no_file_longer_than(int((copy / "store.db").stat().st_size * share)):
                try:
                    receipt = book.forget("m3")
                    outcomes.append("finished" if receipt.verified else "waiting")
                except StoreError as error:
                    outcomes.append("refused")
                    assert "room on the disk" in error.remedy or "free some space" in error.remedy
            assert contents(book) == (SENTENCES if outcomes[-1] == "refused" else rest)
            if outcomes[-1] == "waiting":
                assert all(each.endswith("; `commonplace doctor` finishes it") for each in receipt.waiting)
                assert any("store.db" in each for each in receipt.waiting)
                assert [(finding.part, finding.mended) for finding in book.doctor().findings] == [("forgetting", True)]
            if outcomes[-1] != "refused":
                assert holding(copy, SENTENCES["m3"]) == set()
                assert [each.waiting for each in book.receipts()] == [()]
        check_whole(copy, SENTENCES if outcomes[-1] == "refused" else rest)
    # The more room there is, the further it comes; where one ends and the next begins is not promised.
    assert outcomes == sorted(outcomes, key=["refused", "waiting", "finished"].index)
    assert set(outcomes) == {"refused", "waiting", "finished"}


@pytest.mark.parametrize("kept", ["memory", "vault", "index"])
def test_a_copy_that_cannot_be_removed_is_waited_for(store: Path, kept: str) -> None:
    """The memory is gone all the same; the receipt names the copy, and the doctor removes it once it can."""
    (store / "vault").mkdir()
    (store / "vault" / "note.md").write_text(f"---\nmemory_id: m3\n---\n{SENTENCES['m3']}")
    for path in (store, *store.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (store / kept).chmod(0o555)
    with without_rights(), commonplace.open(store) as book:
        receipt = book.forget("m3")
        assert not receipt.verified
        assert receipt.found == ()
        assert all(each.startswith(f"{kept}: ") and "Permission denied" in each for each in receipt.waiting)
        assert receipt.waiting
        assert "m3" not in contents(book)
        assert book.receipts() == [receipt]
        [finding] = book.doctor().findings
        assert (finding.part, finding.mended) == ("forgetting", False)
        assert "Permission denied" in finding.problem
        assert "writ" in finding.remedy
        ended = command(store, "forget", "--yes", "m4")
        # Nothing of the other memory is in the vault, so its own forgetting is complete.
        is_free = kept == "vault"
        assert (ended.code, json.loads(ended.output)["verified"]) == ((0, True) if is_free else (1, False))
        ended = command(store, "doctor")
        assert (ended.code, json.loads(ended.output)["healthy"]) == (1, False)
    (store / kept).chmod(0o777)
    with commonplace.open(store) as book:
        assert [(finding.part, finding.mended) for finding in book.doctor().findings] == [("forgetting", True)] * (
            1 if is_free else 2
        )
        assert holding(store, SENTENCES["m3"]) == holding(store, SENTENCES["m4"]) == set()
    assert command(store, "doctor").code == 0
    check_whole(store, {id_: text for id_, text in SENTENCES.items() if id_ not in ("m3", "m4")})


def test_nothing_is_forgotten_where_a_log_quotes_it_and_cannot_be_written(store: Path) -> None:
    """Once it is erased nobody knows what to look for."""
    log = store / "logs" / "retrieval" / "retrieval.jsonl"
    RetrievalLog(store / "logs", queries="text").write(SENTENCES["m3"], {})
    for path in (store, *store.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    log.chmod(0o444)
    with without_rights(), commonplace.open(store) as book:
        with pytest.raises(
            StoreError, match=r"the log .*retrieval\.jsonl cannot be written: .*; make it readable and wri"
        ):
            book.forget("m3")
        assert contents(book) == SENTENCES
        assert book.receipts() == []
        assert book.forget("m4").verified


def test_a_question_is_answered_where_its_use_cannot_be_counted(store: Path) -> None:
    """Whoever only asks must not be told of a disk that is full for those who write."""
    with commonplace.open(store) as book, no_file_longer_than(0):
        assert book.recall("heron by pond 3", min_score=0.0).hits[0].owner_id == "m3"
        book.close()
    check_whole(store, SENTENCES)


def test_a_store_that_nobody_has_open_is_read_on_a_full_disk(store: Path) -> None:
    """To open it takes room too: SQLite begins a log and its index."""
    with no_file_longer_than(0):
        assert json.loads(command(store, "get", "m3").output)["content"] == SENTENCES["m3"]
        found = json.loads(command(store, "recall", SENTENCES["m3"], "--min-score", "0").output)
        assert found["hits"][0]["owner_id"] == "m3"
        assert json.loads(command(store, "search", SENTENCES["m3"], "--min-score", "0").output)["hits"]
        assert len(json.loads(command(store, "list").output)) == len(SENTENCES)
    check_whole(store, SENTENCES)


def test_a_command_on_a_full_disk_says_so_and_ends_with_1(store: Path) -> None:
    """A hook sees the exit code, a person the remedy."""
    with no_file_longer_than(0):
        ended = command(store, "remember", "An egret came")
    assert (ended.code, ended.error["type"], ended.output) == (1, "StoreError", "")
    assert "store.db cannot be read or written" in ended.error["message"]
    assert "room on the disk" in ended.error["remedy"]
    check_whole(store, SENTENCES)


def test_a_read_only_store_is_asked_and_refuses_to_remember(store: Path) -> None:
    """A mounted snapshot, or another user's notebook."""
    for path in (store, *store.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted((path, path.stat().st_size) for path in store.rglob("*"))
    with without_rights(), commonplace.open(store) as book:
        assert contents(book) == SENTENCES
        result = book.recall("heron by pond 3", min_score=0.0)
        assert (result.hits[0].owner_id, book.why(result, result.hits[0].id).rank) == ("m3", 1)
        assert book.get("m3", as_of=book.get("m3").created_at).content == SENTENCES["m3"]
        calls: list[Callable[[], object]] = [
            lambda: book.remember("An egret came"),
            lambda: book.update("m1", "An egret came"),
            lambda: book.touch("m1"),
            lambda: book.get("m1", touch=True),
            lambda: book.archive("m1"),
            lambda: book.link("m1", "m2"),
            lambda: book.unlink("m1", "m2"),
            lambda: book.remember_many([{"content": "An egret came"}]),
            lambda: book.index_documents([Document("page", "An egret came")]),
            lambda: book.forget("m1"),
            lambda: book.forget_namespace("default", confirm="default"),
            lambda: book.gc(0),
        ]
        for call in calls:
            with pytest.raises(
                StoreError, match=r"the store .*store\.db is read-only; make the file and its directory"
            ):
                call()
        assert book.forget("m1", dry_run=True).counts["memories"] == 1
        assert book.doctor().is_healthy
        assert contents(book) == SENTENCES
    assert sorted((path, path.stat().st_size) for path in store.rglob("*")) == before
    store.chmod(0o755)
    for path in store.rglob("*"):
        path.chmod(0o755)
    check_whole(store, SENTENCES)


def test_commands_on_a_read_only_store_answer_or_end_with_1(store: Path) -> None:
    """Not even the log can be written there."""
    for path in (store, *store.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_rights():
        assert command(store, "list").code == 0
        assert json.loads(command(store, "recall", "heron by pond 3", "--min-score", "0").output)["hits"]
        ended = command(store, "remember", "An egret came")
    assert (ended.code, ended.error["type"], ended.output) == (1, "StoreError", "")
    assert "is read-only" in ended.error["message"]
    assert "make the file and its directory writable" in ended.error["remedy"]


@pytest.mark.parametrize("files", [6, 10, 12, 14])
def test_too_few_file_descriptors_are_told_with_their_number_and_lose_nothing(store: Path, files: int) -> None:
    """They may run out wherever a file is opened, be it a module of ours or the one that tells of errors."""
    (store.parent / "notes.json").write_text('[{"memory": "A crane stands by the weir"}]')
    run = f"import commonplace.cli.app as m; m.cli(['import', 'notes.json', '--store', {str(store)!r}])"
    done = subprocess.run(
        ["sh", "-c", f'ulimit -n {files}; exec "$0" -c "$1"', sys.executable, run],
        cwd=store.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr[:7]) == (1, "error: ")
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr
    assert (
        f"this process may have {files}" in done.stderr or "nothing is lost" in done.stderr or "unable" in done.stderr
    )
    with commonplace.open(store) as book:
        assert contents(book).items() >= SENTENCES.items()
        assert book.doctor().is_healthy


def test_a_store_cannot_be_made_where_nobody_may_write(place: Path) -> None:
    """The first word to a new user should be the remedy."""
    place.chmod(0o555)
    with without_rights():
        ended = command(place / "new", "init")
    assert (ended.code, ended.error["type"]) == (1, "StoreError")
    assert ended.error["remedy"] == "name a writable directory with --store"
    assert list(place.iterdir()) == []


def test_a_clock_that_was_set_back_neither_reorders_versions_nor_hides_them(tmp_path: Path) -> None:
    """Machines wake with a wrong clock, and correct it in the middle of a session."""
    now = NOON
    said = ["The heron stands", "The heron flew away", "The heron came back", "The heron sleeps"]
    with commonplace.open(tmp_path, clock=lambda: now) as book:
        book.remember(said[0], id="it")
        now = NOON + 100
        book.update("it", said[1])
        now = NOON - 5_000
        book.update("it", said[2])
        book.archive("it")
        now = NOON - 10_000
        book.restore_memory("it")
        assert book.remember(said[3], id="it").outcome == "updated"
        versions = book.versions("it")
        assert [version.content for version in versions] == [*said[:3], said[2], said[3]]
        assert [version.version for version in versions] == [1, 2, 3, 4, 5]
        assert all(earlier.expired_at == later.updated_at for earlier, later in pairwise(versions[:3]))
        assert all(
            (version.expired_at or later.updated_at) <= later.updated_at for version, later in pairwise(versions)
        )
        assert book.get("it", as_of=NOON).content == said[0]
        assert book.get("it", as_of=NOON + 99).content == said[0]
        assert book.get("it", as_of=NOON + 100).content == said[3]
        assert [hit.text for hit in book.recall("heron", as_of=NOON + 99, min_score=0.0).hits] == [said[0]]
        assert [hit.text for hit in book.recall("heron", min_score=0.0).hits] == [said[3]]
        with pytest.raises(NotFoundError):
            book.get("it", as_of=NOON - 1)


def test_retention_is_never_negative_nor_above_one_whatever_the_clock_says(tmp_path: Path) -> None:
    """An age below zero counts as none: the memory was used just now."""
    now = NOON
    with commonplace.open(tmp_path, clock=lambda: now) as book:
        book.remember("The heron stands", id="it")
        fresh = book.get("it").retention
        for moment in (NOON - 1e9, NOON - 1, 0.0, -1e9, NOON):
            now = moment
            used = book.touch("it")
            assert (fresh, used.retention, used.last_used.timestamp()) == (1.0, 1.0, NOON)
        now = NOON + 1e9
        assert 0.0 < book.get("it").retention < 0.1
        now = -6e10
        assert book.remember("An egret", id="early").retention == 1.0
        now = 2.5e11
        assert 0.0 < book.get("early").retention < 1e-3
        assert book.doctor().is_healthy


def test_a_store_of_a_newer_version_is_left_alone_and_both_versions_are_named(store: Path) -> None:
    """The older program cannot know what it would destroy."""
    with closing(sqlite3.connect(store / "store.db")) as db, db:
        db.execute("INSERT INTO schema_versions VALUES (?, 'later')", (VERSION + 1,))
    before = (store / "store.db").read_bytes()
    with pytest.raises(
        StoreVersionError, match=f"has schema version {VERSION + 1}, .* up to {VERSION}; upgrade Common"
    ):
        commonplace.open(store)
    for arguments in (["remember", "An egret came"], ["list"], ["recall", "heron"], ["doctor"]):
        ended = command(store, *arguments)
        assert (ended.code, ended.error["type"], ended.error["remedy"]) == (
            1,
            "StoreVersionError",
            "upgrade Commonplace",
        )
    assert (store / "store.db").read_bytes() == before


def shares(size: int) -> list[int]:
    return [0, 1, 100, 4096, 8192, size // 3, size // 2 // 8192 * 8192, size - 8192]


@pytest.mark.parametrize("which", range(8))
def test_a_truncated_database_is_told_and_what_is_left_of_it_is_not_touched(store: Path, which: int) -> None:
    """Somebody may still be able to read something from it; nobody can once a program has mended it."""
    database = store / "store.db"
    os.truncate(database, shares(database.stat().st_size)[which])
    before = database.read_bytes()
    with pytest.raises(StoreDamagedError, match=r"store\.db is .*; restore a backup"):
        commonplace.open(store)
    for arguments in (["remember", "An egret came"], ["recall", "heron"], ["doctor"]):
        ended = command(store, *arguments)
        assert (ended.code, ended.error["type"]) == (1, "StoreDamagedError")
        assert str(database) in ended.error["message"]
        assert "commonplace restore FILE --replace" in ended.error["remedy"]
        assert f"move it away and run `commonplace init --anew --store {store}`" in ended.error["remedy"]
    assert database.read_bytes() == before


def test_a_database_that_is_gone_is_not_silently_a_new_one_for_whoever_asks(store: Path) -> None:
    """An empty answer would be taken for the truth."""
    (store / "store.db").unlink()
    for arguments in (["recall", "heron"], ["list"], ["get", "m1"], ["doctor"]):
        ended = command(store, *arguments)
        assert (ended.code, ended.error["type"]) == (1, "StoreDamagedError")
        assert "commonplace restore FILE" in ended.error["remedy"]
        assert "commonplace init --anew" in ended.error["remedy"]


@pytest.mark.parametrize("gone", ["index", "memory", "logs", "store.db.lock"])
def test_whatever_can_be_made_anew_may_be_deleted(store: Path, gone: str) -> None:
    """People tidy up; the database alone is the truth."""
    command(store, "touch", "m1")
    path = store / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    check_whole(store, SENTENCES)
    with commonplace.open(store) as book:
        book.remember("An egret came", id="new")
        assert book.get("new").content == "An egret came"
    check_whole(store, {**SENTENCES, "new": "An egret came"})


def test_engines_of_one_store_share_its_files(store: Path) -> None:
    """A process that serves hundreds of namespaces has a thousand file descriptors at most."""

    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with commonplace.open(store) as first:
        first.recall("heron")
        before = open_files()
        others = [commonplace.open(store, namespace=f"n{number}") for number in range(20)]
        for number, book in enumerate(others):
            book.remember(f"The bittern hides in reed bed {number}")
            assert book.recall("where does the bittern hide").hits
        # One more state of the index than before may be open, that of whoever has not searched since.
        assert open_files() - before < 40
        for book in others:
            book.close()
        with pytest.raises(StoreError, match="is closed; open the store again"):
            others[0].recall("bittern")
        assert first.recall("heron").hits
