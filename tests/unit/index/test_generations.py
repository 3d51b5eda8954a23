"""Generations of the index: what an update publishes, what readers see, what the projection does."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reference_store.store import MemoryStore

from commonplace.errors import IndexFaultError, StoreError
from commonplace.index import writer as update
from commonplace.index.chunks import ChunkFile
from commonplace.index.contract import Scope
from commonplace.index.files import MISSING, OpenFiles
from commonplace.index.generations import Index
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.ranking.bm25 import code_of
from commonplace.store.store import Store
from commonplace.types import Chunk, Embedding, Head, IndexEntry, NewPassage, Owner, OwnerWrite

EMBEDDING = Embedding("test", "1", 8)
VECTOR = bytes([1] * 8)
QUERY = np.full(8, 8**-0.5, np.float32)


def vectors(_: str, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return that of every passage, as the store would."""
    return dict.fromkeys(numbers, VECTOR)


def entry(number: int, text: str, namespace: str = "default") -> IndexEntry:
    return IndexEntry(
        number, number, namespace, "memory", "", "", (), "", "", "", "", text, (7).to_bytes(2, "little"), VECTOR
    )


def make(directory: Path, store_id: str = "store", embedding: Embedding = EMBEDDING) -> Index:
    return Index(directory / "index", store_id=store_id, embedding=embedding)


def created(directory: Path, store_id: str = "store", embedding: Embedding = EMBEDDING) -> Index:
    """Return an index that has been built and holds nothing."""
    index = make(directory, store_id, embedding)
    assert index.claim(0)
    index.update([], [], heads={"n": Head(0)}, rebuild=True)
    index.release()
    return index


def held(index: Index, word: str, namespace: str = "default") -> list[int]:
    """Return the passages that hold a word, which lexical and dense part must agree on."""
    generation = index.reader()
    scope = Scope(namespace)
    lexical = sorted(generation.lexical.search([word], scope, 1000).numbers.tolist())
    dense = generation.dense.search(QUERY, scope, 1000, vectors).numbers.tolist()
    assert set(lexical) <= set(dense)
    return lexical


def put(store: Store, id_: str, *texts: str) -> int:
    passages = tuple(NewPassage(f"{id_}-{n}", Chunk(t, 1, 1), b"\x07\x00", VECTOR) for n, t in enumerate(texts))
    return store.put_owners("default", [OwnerWrite(Owner(id_, "memory"), passages)])


def published(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "index").glob("g*"))


def test_an_update_adds_to_what_is_held_and_takes_away_what_is_deleted(tmp_path: Path) -> None:
    """Both parts move together, and the change number tells how far."""
    index = created(tmp_path)
    assert index.update([entry(1, "apple"), entry(2, "apple pie")], [], heads={"n": Head(3)}) == (2, 0)
    assert index.update([entry(3, "apple")], [1, 99], heads={"n": Head(5)}) == (1, 1)
    generation = index.reader()
    assert (generation.head("n").change, generation.documents, generation.dead, generation.fault) == (5, 2, 1, "")
    assert held(index, "appl") == [2, 3]
    nearest = generation.dense.search(QUERY, Scope("default"), 10, vectors)
    assert nearest.numbers.tolist() == [2, 3]


def test_repeating_an_update_changes_nothing(tmp_path: Path) -> None:
    """After a crash the same changes may be projected again."""
    index = created(tmp_path)
    entries = [entry(1, "apple"), entry(2, "pie")]
    for _ in range(3):
        index.update(entries, [], heads={"n": Head(1)})
    generation = index.reader()
    assert generation.documents == 2
    assert held(index, "appl") == [1]
    statistics = generation.lexical.statistics(["appl"], Scope("default"))
    assert (statistics.documents, statistics.lengths.tolist()) == (2, [0, 2, 0, 0])
    assert statistics.frequencies["appl"] == (0, 1, 0, 0)


def test_an_entry_replaces_the_one_of_the_same_number_even_in_one_update(tmp_path: Path) -> None:
    """A number is one passage, whatever the caller repeats."""
    index = created(tmp_path)
    index.update([entry(1, "apple"), entry(1, "pear")], [], heads={"n": Head(1)})
    assert (held(index, "appl"), held(index, "pear"), index.reader().documents) == ([], [1], 1)
    index.update([entry(1, "plum")], [], heads={"n": Head(2)})
    assert (held(index, "pear"), held(index, "plum"), index.reader().documents) == ([], [1], 1)


def test_an_entry_that_is_also_deleted_is_not_added(tmp_path: Path) -> None:
    """Numbers are never used twice, so the deletion is the later of the two."""
    index = created(tmp_path)
    assert index.update([entry(1, "apple")], [1], heads={"n": Head(1)}) == (0, 0)
    assert held(index, "appl") == []


def test_a_rebuild_begins_with_nothing(tmp_path: Path) -> None:
    """What the store no longer has must be gone, terms and counts included."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    index.update([entry(2, "pear")], [], heads={"n": Head(2)}, rebuild=True)
    generation = index.reader()
    assert (generation.documents, generation.dead) == (1, 0)
    assert generation.lexical.listed(["appl"], []) == {"appl": 0}


def test_many_small_updates_leave_few_files_and_lose_nothing(tmp_path: Path) -> None:
    """Every remembered sentence may be an update of its own."""
    index = created(tmp_path)
    for number in range(1, 25):
        index.update([entry(number, f"apple{chr(97 + number % 26)}x apple")], [number - 5], heads={"n": Head(number)})
    assert held(index, "appl") == [20, 21, 22, 23, 24]
    assert len(list((tmp_path / "index").glob("g*/dense/*.chunk"))) <= 2 * 5
    assert len(published(tmp_path)) == 2


def test_an_update_without_changes_only_moves_the_change_number(tmp_path: Path) -> None:
    """Changes that touch no passage must not cost a generation."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    before = published(tmp_path)
    index.update([], [], heads={"n": Head(9, "nine")})
    assert index.reader().head("n") == (9, "nine")
    assert published(tmp_path) == before
    assert held(index, "appl") == [1]


def test_a_reader_notices_a_generation_that_another_process_published(tmp_path: Path) -> None:
    """A memory must be found by every process."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], heads={"n": Head(1)})
    old = reader.reader()
    assert reader.reader() is old
    writer.update([entry(2, "apple")], [], heads={"n": Head(2)})
    assert reader.reader().head("n").change == 2


def test_an_open_generation_answers_after_its_files_are_deleted(tmp_path: Path) -> None:
    """A search that has begun must not fail because a writer tidies up."""
    index = created(tmp_path)
    index.update([entry(number, "apple") for number in range(1, 50)], [], heads={"n": Head(1)})
    old = index.reader()
    for change in range(2, 6):
        index.update([entry(change * 100, "pear")], [], heads={"n": Head(change)})
    scope = Scope("default")
    assert len(old.lexical.search(["appl"], scope, 100).numbers) == 49
    assert len(old.dense.search(QUERY, scope, 100, vectors).numbers) == 49


def test_readers_never_see_a_fault_while_a_writer_publishes(tmp_path: Path) -> None:
    """Between reading a generation's name and its files, two newer ones may replace it."""
    writer = created(tmp_path)
    writer.update([entry(1, "apple")], [], heads={"n": Head(1)})
    faults: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            faults.append(make(tmp_path).reader().fault)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for change in range(2, 12):
        writer.update([entry(change, "apple")], [], heads={"n": Head(change)})
    done.set()
    for thread in threads:
        thread.join()
    assert set(faults) == {""}


def test_names_of_any_characters_are_kept_apart(tmp_path: Path) -> None:
    """Namespaces come from callers; no two of them may ever meet."""
    index = created(tmp_path)
    names = ["a", "A", "a ", "\ud800", "ä", "x" * 100_000, "x" * 100_001, ""]
    index.update([entry(n, "apple", name) for n, name in enumerate(names)], [], heads={"n": Head(1)})
    assert [held(make(tmp_path), "appl", name) for name in names] == [[n] for n in range(len(names))]


def test_a_vector_of_other_dimensions_is_refused(tmp_path: Path) -> None:
    """Vectors of different embedders are never compared."""
    index = created(tmp_path, embedding=Embedding("test", "1", 16))
    with pytest.raises(ValueError, match="passage 1 has 8 dimensions, expected 16"):
        index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    assert len(published(tmp_path)) == 1


def test_a_full_disk_is_told_as_such_and_leaves_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is derived: failing to write it must not take away what can be read."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})

    def fail(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(update.files, "replace_file", fail)
    with pytest.raises(StoreError, match=r"the index cannot be written.*No space left"):
        index.update([entry(2, "apple")], [], heads={"n": Head(2)})
    assert held(make(tmp_path), "appl") == [1]
    assert published(tmp_path) == ["g00000001", "g00000002"]


def test_files_are_copied_where_links_are_not_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems and shares have no hard links."""

    def refuse(source: Path, target: Path) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    index.update([entry(2, "apple")], [], heads={"n": Head(2)})
    assert held(make(tmp_path), "appl") == [1, 2]
    assert index.verify() == []


def test_closing_gives_every_file_back(tmp_path: Path) -> None:
    """A process that opens one store after another must not run out of descriptors."""
    created(tmp_path).update([entry(number, "apple") for number in range(1, 30)], [], heads={"n": Head(1)})
    before = open_files(tmp_path)
    index = make(tmp_path)
    assert held(index, "appl") == list(range(1, 30))
    assert open_files(tmp_path) > before
    index.close()
    index.close()
    assert open_files(tmp_path) == before


def test_a_closed_index_is_not_read(tmp_path: Path) -> None:
    """Using a thing after its end is a mistake of the caller, and told as one."""
    index = created(tmp_path)
    index.close()
    with pytest.raises(StoreError, match=r"the index .* is closed; open the store again"):
        index.reader()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_opens_the_index_again_while_a_thread_of_its_parent_is_opening_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web server forks its workers at any moment: the child must not wait for a thread that it does not have."""
    created(tmp_path).update([entry(1, "apple")], [], heads={"n": Head(1)})
    index = make(tmp_path)
    is_opening, may_open = threading.Event(), threading.Event()

    def wait(*arguments: Any) -> Any:
        is_opening.set()
        assert may_open.wait(60)
        return OpenFiles(*arguments)

    monkeypatch.setattr("commonplace.index.generations.OpenFiles", wait)
    thread = threading.Thread(target=index.reader)
    thread.start()
    assert is_opening.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        may_open.set()
        with pytest.raises(StoreError, match="was opened before this process forked; open it again"):
            index.reader()
        index.close()
        os._exit(0 if held(make(tmp_path), "appl") == [1] else 1)
    may_open.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert held(index, "appl") == [1]


def test_a_search_that_has_begun_ends_well_after_closing(tmp_path: Path) -> None:
    """Threads may still be searching when another closes."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    generation = index.reader()
    index.close()
    with generation.in_use():
        assert generation.lexical.search(["appl"], Scope("default"), 10).numbers.tolist() == [1]


def open_files(directory: Path) -> int:
    """Count this process's descriptors and mappings of files below a directory."""
    descriptors = [str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    mappings = Path("/proc/self/maps").read_text().splitlines()
    return sum(str(directory) in line for line in (*descriptors, *mappings))


# -- projection ------------------------------------------------------------------------------------------------


def test_projection_follows_the_store_step_by_step(tmp_path: Path) -> None:
    """Only what changed since the last time is read and written."""
    store = MemoryStore()
    index = make(tmp_path, store.id)
    assert index.reader().fault == MISSING
    first = bring_up_to_date(store, index)
    assert first is not None
    assert (index.reader().heads, first.rebuilt, index.reader().fault) == ({}, False, "")
    put(store, "a", "apple", "pear")
    put(store, "b", "apple")
    second = bring_up_to_date(store, index)
    assert second is not None
    assert index.reader().heads == store.heads() == {"default": store.head("default")}
    assert (second.added, second.deleted, second.rebuilt) == (3, 0, False)
    put(store, "a", "plum")
    third = bring_up_to_date(store, index)
    assert third is not None
    assert (index.reader().head("default").change, third.added, third.deleted) == (3, 1, 2)
    assert (len(held(index, "appl")), len(held(index, "plum"))) == (1, 1)
    fourth = bring_up_to_date(store, index)
    assert fourth is not None
    assert (fourth.added, fourth.deleted, fourth.rebuilt) == (0, 0, False)


def test_projection_returns_none_while_another_holds_the_lock(tmp_path: Path) -> None:
    """Whoever gets the lock does the work; the others search the tail."""
    store = MemoryStore()
    other, index = make(tmp_path, store.id), make(tmp_path, store.id)
    assert other.claim(0)
    assert bring_up_to_date(store, index) is None
    other.release()
    assert bring_up_to_date(store, index) is not None


@pytest.mark.parametrize(
    ("store_id", "embedding", "fault"),
    [
        ("another", EMBEDDING, "belongs to another store"),
        ("", Embedding("test", "2", 8), "was made with another embedder: test@1/8, not test@2/8"),
    ],
)
def test_a_foreign_index_is_rebuilt(tmp_path: Path, store_id: str, embedding: Embedding, fault: str) -> None:
    """A copied directory or a changed embedder must never give answers from other data."""
    store = MemoryStore()
    put(store, "a", "apple")
    bring_up_to_date(store, make(tmp_path, store_id or store.id))
    index = make(tmp_path, store.id, embedding)
    assert (index.reader().fault, index.reader().heads) == (fault, {})
    report = bring_up_to_date(store, index)
    assert report is not None
    assert (report.rebuilt, report.fault) == (True, fault)
    assert len(held(index, "appl")) == 1


def test_an_index_ahead_of_its_store_is_rebuilt(tmp_path: Path) -> None:
    """A restored backup has the same id and fewer changes."""
    store = MemoryStore()
    put(store, "a", "apple")
    index = created(tmp_path, store.id)
    index.update([entry(70, "pear")], [], heads={"n": Head(12)})
    report = bring_up_to_date(store, index)
    assert report is not None
    assert (report.rebuilt, report.fault) == (True, "is ahead of its store")
    assert (held(index, "pear"), len(held(index, "appl"))) == ([], 1)


def test_an_index_of_another_history_is_rebuilt(tmp_path: Path) -> None:
    """A backup that was put back and written to reaches the numbers of what was lost, with other passages."""
    with closing(Store.create(tmp_path / "lost.db")) as lost:
        put(lost, "a", "apple")
        lost.backup(tmp_path / "store.db")
        put(lost, "b", "pear")
        index = make(tmp_path, lost.id)
        bring_up_to_date(lost, index)
        assert index.reader().heads == {"default": lost.head("default")} == {"default": (2, lost.token("default", 2))}
    with closing(Store.open(tmp_path / "store.db", create=False)) as store:
        for number, text in enumerate(["plum", "cherry"], 2):
            put(store, text, text)
            report = bring_up_to_date(store, index)
            assert report is not None
            fault = "belongs to another history of its store" if number == 2 else ""
            assert (index.reader().heads, report.rebuilt) == (store.heads(), number == 2)
            assert report.fault == fault
        assert (len(held(index, "plum")), held(index, "pear"), index.reader().heads) == (1, [], store.heads())


def test_a_projection_goes_up_to_one_change_of_its_store(tmp_path: Path) -> None:
    """A passage that is replaced while the projection runs must not be missed under a number that is already past."""
    with closing(Store.create(tmp_path / "store.db")) as store:
        put(store, "a", *["apple"] * 1_500)
        index = make(tmp_path, store.id)

        def write(_what: str, done: int, _total: int) -> None:
            if done == 500 and store.change() == 1:
                put(store, "a", "pear")

        first = bring_up_to_date(store, index, progress=write)
        assert first is not None
        # Of the deleted ones only those that had been read already are held, until the next projection.
        assert (index.reader().head("default").change, held(index, "pear")) == (1, [])
        assert held(index, "appl") == list(range(1, first.added + 1))
        assert 500 <= first.added < 1_500
        assert index.reader().documents == first.added
        second = bring_up_to_date(store, index)
        assert second is not None
        assert (index.reader().heads, second.added, second.deleted) == (store.heads(), 1, first.added)
        assert (held(index, "appl"), held(index, "pear"), index.reader().documents) == ([], [1_501], 1)


def test_a_projection_does_not_keep_the_write_ahead_log_growing(tmp_path: Path) -> None:
    """A snapshot held for minutes stopped every checkpoint: the log grew by all that was written meanwhile."""
    with closing(Store.create(tmp_path / "store.db")) as store:
        put(store, "a", *["apple"] * 1_500)
        index = make(tmp_path, store.id)
        moved: list[tuple[int, int, int]] = []

        def checkpoint(_what: str, done: int, _total: int) -> None:
            if done == 500:
                put(store, "b", "pear")
                with closing(sqlite3.connect(tmp_path / "store.db")) as db:
                    moved.append(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())

        assert bring_up_to_date(store, index, progress=checkpoint) is not None
        assert moved == [(0, 0, 0)]


def test_an_index_that_is_mostly_deleted_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted passages weigh on statistics and space until then."""
    store = MemoryStore()
    index = make(tmp_path, store.id)
    for n in range(3):
        put(store, "a", *[f"apple {n}"] * 600)
        bring_up_to_date(store, index)
    assert index.reader().is_wasteful
    put(store, "b", "pear")
    report = bring_up_to_date(store, index)
    assert report is not None
    assert (report.rebuilt, report.added, index.reader().dead) == (True, 601, 0)


def rare(number: int) -> IndexEntry:
    """Return a passage with a word and a vector of its own."""
    return replace(entry(number, f"apple rare{number}"), vector=bytes([number, 99] * 4))


def rows(index: Index, *numbers: int) -> list[bool]:
    """Return of which passages the current generation has a row, be it dead."""
    return [owner >= 0 for owner in index.reader().dense.owners(np.array(numbers))]


def test_vectors_stand_in_no_file_of_it(tmp_path: Path) -> None:
    """The store has them: here they would take half as much again as all else."""
    index = created(tmp_path)
    index.update([rare(25)], [], heads={"n": Head(1)})
    current = tmp_path / "index" / published(tmp_path)[-1]
    assert not [path.name for path in current.glob("*/*") if rare(25).vector in path.read_bytes()]


def test_a_purge_leaves_nothing_of_what_was_deleted_in_any_file(tmp_path: Path) -> None:
    """Not of what an update before it deleted either, whose terms linger; and all else is found as before."""
    index = created(tmp_path)
    for number in range(20, 120, 20):
        index.update([rare(n) for n in range(number, number + 20)], [], heads={"n": Head(number)})
    index.update([], [25], heads={"n": Head(121)})
    assert index.reader().lexical.listed(["rare25", "rare26"], []) == {"rare25": 1, "rare26": 1}
    assert rows(index, 25, 26) == [True, True]
    gone = {25}
    for last, deleted in enumerate(([26, 119], [27], [], [29]), 130):
        gone.update(deleted)
        index.update([rare(last)], deleted, heads={"n": Head(last)}, purge=True)
        generation = index.reader()
        listed = generation.lexical.listed([f"rare{n}" for n in range(20, 120)], [])
        assert {term for term, n in listed.items() if not n} == {f"rare{n}" for n in gone}
        assert rows(index, *gone, 28) == [*[False] * len(gone), True]
        assert (generation.dead, held(index, "rare28")) == (0, [28])
    assert held(index, "appl") == sorted({*range(20, 120), *range(130, 134)} - gone)
    index.update([], [30], heads={"n": Head(140)})
    index.update([], [], heads={"n": Head(140)}, purge=True)
    assert index.reader().lexical.listed(["rare30", "rare31"], []) == {"rare30": 0, "rare31": 1}


def test_whoever_forgets_purges_the_index_and_does_not_make_it_anew(tmp_path: Path) -> None:
    """To make it anew takes many times as long, and as much memory."""
    store = MemoryStore()
    index = make(tmp_path, store.id)
    for name in ("apple", "pear", "quillfeather"):
        put(store, name, *[f"{name} {n}" for n in range(30)])
    bring_up_to_date(store, index)
    put(store, "quillfeather", "plum")
    report = bring_up_to_date(store, index, purge=True)
    assert report is not None
    assert (report.rebuilt, report.added, report.deleted) == (False, 1, 30)
    assert index.reader().lexical.listed(["quillfeath"], []) == {"quillfeath": 0}
    assert (held(index, "plum"), len(held(index, "pear")), index.reader().dead) == ([91], 30, 0)


@pytest.mark.parametrize("apart", [False, True])
def test_a_purge_takes_away_a_word_that_shares_its_code_with_one_that_stays(tmp_path: Path, apart: bool) -> None:
    """Of several words with a key only those are named that a passage has, whichever chunks they came from."""
    gone, stays = "tzkllzvtnuvnk", "ztocvzobtbrbk"
    assert code_of(gone) == code_of(stays)
    store = MemoryStore()
    index = make(tmp_path, store.id)
    put(store, "a", *[f"apple {gone}"] * 3)
    if apart:
        bring_up_to_date(store, index)
    put(store, "b", *[f"pear {stays}"] * 30)
    bring_up_to_date(store, index)
    assert index.reader().lexical.listed([gone, stays], []) == {gone: 33, stays: 33}
    put(store, "a", "plum")
    report = bring_up_to_date(store, index, purge=True)
    assert report is not None
    assert (report.rebuilt, report.deleted, index.reader().documents) == (False, 3, 31)
    assert index.reader().lexical.listed([gone, stays], []) == {gone: 0, stays: 30}
    assert len(held(index, stays)) == 30


def test_a_misspelt_word_is_found_where_another_shares_its_code(tmp_path: Path) -> None:
    """Each name of a key is compared."""
    index = created(tmp_path)
    index.update([entry(1, "tzkllzvtnuvnk"), entry(2, "ztocvzobtbrbk")], [], heads={"n": Head(1)})
    lexical = index.reader().lexical
    assert 1 in lexical.similar("tzkllzvtnuvn", 1, Scope("default"), 9)
    assert 2 in lexical.similar("ztocvzobtbrb", 1, Scope("default"), 9)
    assert lexical.similar("ztocvzobtb", 1, Scope("default"), 9) == []


def test_no_more_names_are_read_for_a_misspelt_word_than_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of a large chunk take tens of milliseconds."""
    index = created(tmp_path)
    index.update([entry(n, "apple") for n in range(1, 31)], [], heads={"n": Head(1)})
    index.update([entry(31, "apple")], [], heads={"n": Head(2)})
    lexical, reads = index.reader().lexical, list[str]()
    alike = ChunkFile.alike

    def counted(self: ChunkFile, space: int, term: str, distance: int) -> list[str]:
        reads.append(term)
        return alike(self, space, term, distance)

    monkeypatch.setattr(ChunkFile, "alike", counted)
    assert len(lexical.similar("aple", 2, Scope("default"), 31)) == 31
    assert len(reads) == 2
    assert len(lexical.similar("aple", 2, Scope("default"), 5)) == 5
    assert len(reads) == 3


def test_names_of_words_are_kept_apart_by_namespace(tmp_path: Path) -> None:
    """Another namespace's word of the same code is none of this one's."""
    gone, stays = "tzkllzvtnuvnk", "ztocvzobtbrbk"
    index = created(tmp_path)
    index.update([entry(1, gone), entry(2, stays, "other")], [], heads={"n": Head(1)})
    assert index.reader().lexical.listed([gone, stays], []) == {gone: 1, stays: 1}
    index.update([entry(3, "apple")], [1], heads={"n": Head(2)}, purge=True)
    assert index.reader().lexical.listed([gone, stays], []) == {gone: 0, stays: 1}


def test_progress_tells_done_and_total_of_a_rebuild(tmp_path: Path) -> None:
    """Long work shows how far it is."""
    store = MemoryStore()
    put(store, "a", *["apple"] * 1100)
    told: list[tuple[str, int, int]] = []
    bring_up_to_date(store, make(tmp_path, store.id), progress=lambda *step: told.append(step))
    assert told == [("indexing passages", done, 1100) for done in (500, 1000, 1100)]


# How older generations of the index go: whose files are emptied, and whose are left.


def test_only_the_published_generation_is_left_where_nobody_has_an_older_one_open(tmp_path: Path) -> None:
    """What was forgotten stands in the generations before: they must go, not some update later."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], heads={"n": Head(1)})
    index.update([entry(2, "pear")], [], heads={"n": Head(2)}, rebuild=True)
    assert len(published(tmp_path)) == 2
    assert index.claim(0)
    assert index.remove_older() == []
    index.release()
    assert published(tmp_path) == ["g00000003"]
    assert held(index, "pear") == [2]


def test_an_update_leaves_a_generation_that_somebody_has_open(tmp_path: Path) -> None:
    """A file that is only removed while it is open is on the disk all the same, and then nobody can find it."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], heads={"n": Head(1)})
    assert reader.reader().head("n").change == 1
    for number in range(2, 5):
        writer.update([entry(number, "pear")], [], heads={"n": Head(number)}, rebuild=True)
    assert published(tmp_path) == ["g00000002", "g00000004", "g00000005"]


def test_whoever_rests_in_an_older_generation_cannot_keep_it(tmp_path: Path) -> None:
    """A server that nobody asks for days must not keep on the disk what was forgotten meanwhile."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(number, "apple") for number in range(1, 50)], [], heads={"n": Head(1)})
    old = reader.reader()
    kept = [os.open(path, os.O_RDONLY) for path in tmp_path.rglob("g00000002/*/*")]
    writer.update([entry(2, "pear")], [], heads={"n": Head(2)}, rebuild=True)
    assert writer.remove_older() == []
    assert published(tmp_path) == ["g00000003"]
    assert [os.read(descriptor, 1) for descriptor in kept] == [b"", b""]
    for descriptor in kept:
        os.close(descriptor)
    with pytest.raises(IndexFaultError), old.in_use():
        pytest.fail("it was given out")
    assert held(reader, "pear") == [2]


def test_a_generation_that_is_read_stays_and_is_named_until_that_ends(tmp_path: Path) -> None:
    """To empty a file under a search would end its process."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], heads={"n": Head(1)})
    with reader.reading() as old, reader.reading() as same:
        assert same is old
        writer.update([entry(2, "pear")], [], heads={"n": Head(2)}, rebuild=True)
        with reader.reading() as later:
            assert later is old  # a search looks at the index twice
        assert writer.remove_older() == ["g00000002"]
        assert len(old.lexical.search(["appl"], Scope("default"), 10).numbers) == 1
    assert writer.remove_older() == []
    assert published(tmp_path) == ["g00000003"]


def test_files_that_two_generations_share_are_emptied_with_the_last_of_them(tmp_path: Path) -> None:
    """An update links what stays the same: the generation in use must lose nothing with the one before it."""
    writer = created(tmp_path)
    writer.update([entry(number, "apple") for number in range(1, 50)], [], heads={"n": Head(1)})
    writer.update([entry(50, "pear")], [], heads={"n": Head(2)})
    assert writer.remove_older() == []
    assert (writer.verify(), held(writer, "appl"), held(writer, "pear")) == ([], [*range(1, 50)], [50])


def test_what_is_removed_between_choosing_and_reading_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes to forget in that instant must not end a search."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], heads={"n": Head(1)})
    old = reader.reader()
    writer.update([entry(2, "pear")], [], heads={"n": Head(2)}, rebuild=True)
    assert writer.remove_older() == []
    current, chosen = reader.reader, [old]
    monkeypatch.setattr(reader, "reader", lambda: chosen.pop() if chosen else current())
    with reader.reading() as generation:
        assert generation.head("n").change == 2
