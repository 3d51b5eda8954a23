"""Forgetting while other processes hold on to what was, and while it is killed itself."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.processes import Child, finish, start

import commonplace
from commonplace.engine import Engine
from commonplace.logs import RetrievalLog
from commonplace.store.store import Store
from commonplace.text.tokens import analyse
from commonplace.types import Document, Filter
from commonplace.types.graph import GraphFilter

SCRIPT = Path(__file__).with_name("forgetters.py")
SECRET = "The merger with Quillfeather closes on the ninth. Nobody but Ms Abernathy may know the price."
MARKS = (b"Quillfeather", b"quillfeath", b"Abernathy", b"abernathi", b"closes on the ninth")
SAID = "Ms Abernathy works for Quillfeather. Ms Abernathy lives in Oslo."
KETTLES = {f"kettle {n}": f"Kettle {n} boils in {n + 2} minutes" for n in range(9)}
TOLD = {**KETTLES, "secret": SECRET, "derived": f"As told: {SECRET} So be it"}
OTHER = {"other": "The lighthouse is of somebody else"}
LOG = "logs/retrieval/retrieval.jsonl"


@contextmanager
def running(*arguments: object) -> Iterator[Child]:
    """Start a process; it is gone afterwards, however the test ends."""
    with start(SCRIPT, *arguments) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: Child) -> str:
    return process.stdout.readline().strip()


def tell(process: Child) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


@dataclass(frozen=True)
class Filled:
    """A store whose index and logs hold what is to be forgotten, and what betrays it: bytes, and whole directories."""

    store: Path
    marks: tuple[bytes, ...]
    generations: tuple[str, ...]

    def left_in(self, store: Path) -> list[str]:
        """Return what still holds something of it in a store that was copied from this one."""
        # Terms are packed in the index: a directory that was made when they were known is taken to hold them.
        old = {name for name in self.generations if (store / name).exists()}
        files = {path.relative_to(store).as_posix(): path for path in store.rglob("*") if path.is_file()}
        others = {name: path for name, path in files.items() if not name.startswith(tuple(old))}
        return sorted(old.union(name for name, path in others.items() if self.betray(path.read_bytes())))

    def betray(self, data: bytes) -> bool:
        return any(mark in data for mark in self.marks)


def fill(store: Path, namespace: str = "default") -> Filled:
    with commonplace.open(store) as book:
        book.remember_many([{"content": text, "id": id_} for id_, text in OTHER.items()])
    with commonplace.open(store, namespace=namespace) as book:
        book.remember_many([{"content": KETTLES[id_], "id": id_} for id_ in KETTLES])
        book.remember(TOLD["secret"], id="secret", tags=["deal"])
        book.remember(TOLD["derived"], id="derived", derived_from=["secret"])
        book.graph.add_episode(SAID, uuid="talk", reference_time="2026-01-05")
        with book._runtime.store.change_memories(namespace) as change:
            # As if the memory itself had been read: its words are the memory's, what it says stands in the graph.
            episode = replace(change.graph.episodes(["talk"])["talk"], content="", memory="secret", version=1)
            change.graph.put(episode)
        book.graph.add_episode("The kettle is part of the kitchen.", uuid="kitchen", reference_time="2026-01-05")
        page, paper = "The tides are told by the harbour master", f"On paper: {SECRET}"
        book.index_documents([Document("page", page), Document("paper", paper, tags=("deal",))])
        assert in_dictionary(book) == {"quillfeath", "abernathi"}
        owners = book._runtime.store.owners(namespace, book._runtime.store.matching_owners(namespace, Filter()))
        secret = [number for number, owner in owners.items() if owner.id in ("secret", "derived", "paper")]
        numbers = book._runtime.store.passages_of(namespace, secret)
        vectors = [tokens.vector for tokens in book._runtime.store.tokens(namespace, numbers).values()]
    log = RetrievalLog(store / "logs", queries="text")
    for question in ("merger with Quillfeather closes on the ninth", "what does Quillfeather pay", "the lighthouse"):
        log.write(question, {})
    filled = Filled(
        store,
        (*MARKS, *vectors),
        tuple(path.relative_to(store).as_posix() for path in (store / "index").glob("g*")),
    )
    assert len(vectors) == 3
    assert {"store.db", LOG, *filled.generations} <= set(filled.left_in(store))
    return filled


def in_dictionary(book: Engine) -> set[str]:
    """Return the words of what is to be forgotten that the index knows."""
    terms = analyse("Quillfeather Abernathy")
    listed = book._runtime.index.reader().lexical.listed(terms, [])
    return {term for term in terms if listed[term]}


def forgetting_findings(book: Engine) -> list[bool]:
    return [finding.mended for finding in book.doctor().findings if finding.part == "forgetting"]


def test_a_reader_of_the_state_before_is_waited_for_and_the_doctor_finishes(tmp_path: Path) -> None:
    """The database's log cannot be emptied while somebody reads from it; the receipt must not hide that."""
    filled = fill(tmp_path / "store")
    with running("read", filled.store) as reader, commonplace.open(filled.store) as book:
        assert int(said(reader)) > 0
        receipt = book.forget(tag="deal")
        assert (receipt.verified, receipt.found) == (False, ())
        assert receipt.waiting == (
            "store.db: another process still reads the state before; `commonplace doctor` finishes it",
        )
        assert {name.removesuffix("-wal") for name in filled.left_in(filled.store)} == {"store.db"}
        assert forgetting_findings(book) == [False]
        assert book.receipts() == [receipt]
        tell(reader)
        finish(reader)
        assert forgetting_findings(book) == [True]
        assert filled.left_in(filled.store) == []
        [finished] = book.receipts()
        assert (finished.verified, finished.waiting, finished.id) == (True, (), receipt.id)
        assert forgetting_findings(book) == []


def test_a_process_that_rests_after_a_search_keeps_nothing_of_what_is_forgotten(tmp_path: Path) -> None:
    """A server that nobody asks any more, in another window, is the usual company: it must hold up no forgetting."""
    filled = fill(tmp_path / "store")
    with running("search", filled.store) as searcher, commonplace.open(filled.store) as book:
        assert said(searcher) == "9"
        for words in ("The kettle of Mrs Larkspur whistles in G", "The kettle of Mr Bellwether has a dent"):
            tell(searcher)
            assert said(searcher) == "9"
            memory = book.remember(words)
            receipt = book.forget(memory.id)
            assert (receipt.verified, receipt.waiting) == (True, ())
        receipt = book.forget(tag="deal")
        assert (receipt.verified, receipt.waiting) == (True, ())
        assert filled.left_in(filled.store) == []
        assert bytes_open(searcher.pid, filled.store / "index") == 0
        tell(searcher)
        assert said(searcher) == "9"
        assert book.doctor().findings == ()


def bytes_open(pid: int, directory: Path) -> int:
    """Return how much is in the removed files of a directory that a process has open; only Linux tells."""
    links = [path for path in Path(f"/proc/{pid}/fd").glob("*") if str(path.readlink()).startswith(f"{directory}/")]
    # A directory that was removed has a size of its own where the files of tests are in memory.
    return sum(path.stat().st_size for path in links if path.is_file())


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_search_that_goes_on_in_the_old_index_is_waited_for(tmp_path: Path, is_killed: bool) -> None:
    """It takes milliseconds, unless its process was halted: then the doctor finishes the forgetting."""
    filled = fill(tmp_path / "store")
    [old] = filled.generations
    with running("stay", filled.store) as searcher, commonplace.open(filled.store) as book:
        assert int(said(searcher)) > len(KETTLES)
        receipt = book.forget(tag="deal")
        assert receipt.waiting == (f"{old}: somebody is searching in it; `commonplace doctor` finishes it",)
        assert not receipt.verified
        assert filled.left_in(filled.store) == [old]
        assert forgetting_findings(book) == [False]
        book.remember("Another kettle that whistles", id="whistle")
        if is_killed:
            searcher.kill()
        else:
            tell(searcher)
        searcher.wait()
        assert forgetting_findings(book) == [True]
        assert [each.verified for each in book.receipts()] == [True]
        assert filled.left_in(filled.store) == []


def test_many_forgettings_that_wait_for_one_reader_keep_nobody_once_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second for each of those before made every next one slower."""
    filled = fill(tmp_path / "store")
    tried: list[bool] = []
    compact = Store.compact

    def counted(self: Store, *, thorough: bool) -> bool:
        tried.append(thorough)
        return compact(self, thorough=thorough)

    with running("read", filled.store) as reader, commonplace.open(filled.store) as book:
        assert int(said(reader)) > 0
        for id_ in ("secret", *list(KETTLES)[:3]):
            assert not book.forget(id_).verified
        monkeypatch.setattr(Store, "compact", counted)
        assert forgetting_findings(book) == [False] * 4
        assert tried == [True]
        tell(reader)
        finish(reader)
        assert forgetting_findings(book) == [True] * 4
        assert all(receipt.verified for receipt in book.receipts())


@pytest.mark.parametrize("what", ["tag:deal", "namespace:deal"])
def test_killed_at_any_moment_it_did_nothing_or_the_doctor_finishes_it(tmp_path: Path, what: str) -> None:
    """Either the memory is whole, or nothing of it is left in any file."""
    outcomes = kill_at_moments(tmp_path, what, 8)
    assert outcomes == sorted(outcomes, key=LATER.index)
    assert set(outcomes) == set(LATER)


@pytest.mark.soak
@pytest.mark.parametrize("what", ["tag:deal", "namespace:deal"])
def test_the_same_holds_at_every_seventh_moment(tmp_path: Path, what: str) -> None:
    outcomes = kill_at_moments(tmp_path, what, None)
    assert outcomes == sorted(outcomes, key=LATER.index)
    assert set(outcomes) == set(LATER)


LATER = ["whole", "unfinished", "finished"]


def kill_at_moments(directory: Path, what: str, kills: int | None) -> list[str]:
    """Return what became of each store, the earliest kill first."""
    namespace = what.partition(":")[2] if what.startswith("namespace") else "default"
    filled = fill(directory / "filled", namespace)
    shutil.copytree(filled.store, directory / "counted")
    with running("count", directory / "counted", what) as counting:
        moments = int(said(counting))
        finish(counting)
    middle = range(8, moments, 7) if kills is None else random.Random(6).sample(range(2, moments), kills)
    ended = [kill(filled, namespace, what, point) for point in sorted({1, *middle, moments})]
    outcomes = [outcome for outcome, _ in ended]
    assert any(left for outcome, left in ended if outcome == "unfinished"), "the doctor never had anything to do"
    return outcomes


def kill(filled: Filled, namespace: str, what: str, point: int) -> tuple[str, list[str]]:
    """Kill a forgetting at one moment, and mend; return what became of it, and what was left for the doctor."""
    store = filled.store.with_name(f"killed {point}")
    shutil.copytree(filled.store, store)
    with running("die", store, what, point) as victim:
        victim.communicate()
    assert victim.returncode == -signal.SIGKILL
    with commonplace.open(store, namespace=namespace) as book, commonplace.open(store) as default:
        left = filled.left_in(store)
        found = book.doctor().findings
        # Of a namespace that is gone the index cannot learn which passages were deleted: it is made anew.
        assert {finding.part for finding in found} <= {"forgetting", *(["index"] if "namespace" in what else [])}
        assert all(finding.mended for finding in found)
        assert book.doctor(mend=False).findings == ()
        assert default.get("other").content == OTHER["other"]
        memories = {memory.id: memory.content for memory in book.list()}
        if "secret" in memories:
            outcome = "whole"
            check_whole(book)
        else:
            outcome = "unfinished" if found else "finished"
            assert memories == ({**KETTLES, **OTHER} if namespace == "default" else {})
            assert [receipt.waiting for receipt in book.receipts()] == [()]
        assert {
            each.id for each in book._runtime.store.graph(namespace).list_episodes(GraphFilter()) if not each.memory
        } == ({"kitchen"} if memories else set())
        assert in_dictionary(book) == set()
        assert filled.left_in(store) == []
        assert b'"the lighthouse"' in (store / LOG).read_bytes(), "what others asked stays"
    shutil.rmtree(store)
    return outcome, left


def check_whole(book: Engine) -> None:
    """See that nothing was forgotten; then forget it, for it must still be possible."""
    assert {memory.id: memory.content for memory in book.list()}.items() >= TOLD.items()
    hits = book.search("Quillfeather", method="bm25", min_score=0.0).hits
    assert {hit.owner_id for hit in hits} == {"secret", "derived", "paper"}
    assert book.receipts() == []
    assert book.forget(tag="deal").verified
