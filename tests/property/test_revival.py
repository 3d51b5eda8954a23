"""A memory that was made past and live again is as it was: in every answer, at every time, but for its numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.test_memory_store import IDS, records, writes
from tests.reference_store.store import MemoryStore
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.store.store import Store
from commonplace.text.similarity import signature
from commonplace.types import Filter, MemoryRecord, MemoryWrite, Selection, TokenEntry

TIMES = (0.0, 5.0, 15.0, 25.0, 35.0, 1e6)
ALL = float("-inf"), float("inf")


def dump(store: Store, writes_of: Sequence[MemoryWrite]) -> dict[str, Any]:
    """Return all that can be asked of a namespace, with ids in the place of numbers."""
    versions = {id_: store.versions("n", id_) for id_ in IDS}
    names = {each.number: (id_, place) for id_ in IDS for place, each in enumerate(versions[id_])}

    def entries(found: Sequence[TokenEntry]) -> list[Any]:
        return sorted((names[each.owner_number], each.token_ids, each.vector) for each in found)

    def named(numbers: Sequence[int]) -> list[Any]:
        return sorted(names[number] for number in numbers)

    with store.change_memories("n") as change:
        alike = [sorted(names[each.number] for each in change.alike(write.digest, write.bands)) for write in writes_of]
    return {
        "versions": {id_: [replace(each, number=0) for each in versions[id_]] for id_ in IDS},
        "passages": [
            (names[number], [(each.id, each.chunk) for each in passages_of(store, number)])
            for number in sorted(names, key=lambda n: names[n])
        ],
        "list": [each.owner.id for each in store.memories("n", Selection())],
        "live": named(store.matching_owners("n", Filter())),
        "then": [named(store.matching_owners("n", Filter(as_of=time))) for time in TIMES],
        "past": [entries(store.past("n", time)) for time in TIMES],
        "followed": entries(store.tail("n", 0)),
        "dated": sorted((names[number], since, until) for number, since, until in store.dated("n", *ALL)),
        "dated then": [
            sorted((names[number], *rest) for number, *rest in store.dated("n", *ALL, as_of=time)) for time in TIMES
        ],
        "alike": alike,
        "counts": store.counts("n"),
        "places": store.places("n", "memory", IDS),
        "check": store.check(),
    }


def passages_of(store: Store, number: int) -> list[Any]:
    found = store.passages("n", store.passages_of("n", [number])).values()
    return sorted(found, key=lambda passage: passage.ordinal)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(writes, records), min_size=1, max_size=5),
    st.integers(0, 4),
    records,
    st.booleans(),
)
def test_a_store_answers_as_before(
    given_writes: list[tuple[MemoryWrite, MemoryRecord]], chosen: int, archived: MemoryRecord, is_sqlite: bool
) -> None:
    """Whatever versions there are, before it and beside it."""
    with tempfile.TemporaryDirectory() as directory:
        store: Store = Store.create(Path(directory) / "store.db") if is_sqlite else MemoryStore()
        latest: dict[str, MemoryWrite] = {}
        with store.change_memories("n") as change:
            for number, (write, record) in enumerate(given_writes):
                placed, at = replace(write, is_placed=True), 10.0 * number
                before = change.find(write.owner.id)
                if before is not None:
                    change.expire(before.number, record, at)
                change.add(placed, created_at=at)
                latest[write.owner.id] = placed
        id_ = sorted(latest)[chosen % len(latest)]
        expected = dump(store, list(latest.values()))
        for in_one_change in (True, False):
            _go_and_come(store, id_, archived, latest[id_].bands, in_one_change=in_one_change)
            assert dump(store, list(latest.values())) == expected
        store.close()


def _go_and_come(
    store: Store, id_: str, archived: MemoryRecord, bands: tuple[int, ...], *, in_one_change: bool
) -> None:
    with store.change_memories("n") as change:
        before = change.find(id_)
        assert before is not None
        change.expire(before.number, archived, 1000.0)
        if in_one_change:
            change.revive(before.number, before.record, bands=bands)
            return
    with store.change_memories("n") as change:
        change.revive(before.number, before.record, bands=bands)


WORDS = ("the price of a kettle", "what the harbour master said", "kettles boil in May 2026", "a harbour in May")


def answers(book: Engine, then: float) -> list[Any]:
    asked = ("kettle", "harbour master", "May 2026", *WORDS)
    found = [book.search(each, 10, min_score=0.0, as_of=time) for each in asked for time in (None, then)]
    # Scores may differ in the last places: the index counts what it let go of until it tidies up.
    told = [sorted((hit.owner_id, hit.text) for hit in each.hits) for each in found]
    best = [each.hits[0].owner_id for each in found[6::2]]
    return [told, best, [(each.id, each.content, each.status) for each in book.list(statuses=())]]


@settings(max_examples=6, deadline=None)
@given(st.lists(st.sampled_from(range(len(WORDS))), min_size=1, max_size=4), st.booleans())
def test_a_search_finds_as_before(chosen: list[int], is_indexed: bool) -> None:
    """Through the index and beside it, now and as of then."""
    with tempfile.TemporaryDirectory() as directory:
        clock = Clock()
        with commonplace.open(Path(directory), embedder="hashing", clock=clock) as book:
            for number, words in enumerate(WORDS):
                book.remember(words, id=str(number))
            then = clock()
            clock.move(days=1)
            expected = answers(book, then)
            for number in chosen:
                with book._runtime.store.change_memories("default") as change:
                    found = change.find(str(number))
                    assert found is not None
                    change.expire(found.number, replace(found.record, status="archived"), clock())
                if is_indexed:
                    assert str(number) not in {hit.owner_id for hit in book.search(WORDS[number]).hits}
                    book._runtime.maintenance.update_index()
                with book._runtime.store.change_memories("default") as change:
                    change.revive(found.number, found.record, bands=signature(found.record.content).bands)
                if is_indexed:
                    book._runtime.maintenance.update_index()
            assert answers(book, then) == expected
            assert book.doctor(mend=False).findings == ()
