"""Whatever is done to memories in whatever order, the SQLite store answers as the reference store does."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.contract.memories import everything
from tests.reference_store.store import MemoryStore

from commonplace.errors import CommonplaceError
from commonplace.store.store import Store
from commonplace.types import (
    KINDS,
    ORIGINS,
    STATUSES,
    TIERS,
    Chunk,
    Filter,
    JournalBlock,
    JournalPage,
    Link,
    MemoryRecord,
    MemoryWrite,
    NewPassage,
    Note,
    Owner,
    OwnerWrite,
    Selection,
)

NAMES = ("default", "Ünï\ue000")
IDS = ("a", "B", "é\x01", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab")
SESSIONS = ("", "s", "t")
KINDS_OF_NOTES = ("receipt", "\uf8ff")

names, ids, sessions = st.sampled_from(NAMES), st.sampled_from(IDS), st.sampled_from(SESSIONS)
words = st.sampled_from(["", "x", "y\x01z", "\ue000", "'"])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
some_words = st.lists(words, max_size=2).map(tuple)
times = st.sampled_from([float("-inf"), 0.0, 5.0, 10.0, 20.0, 30.0, float("inf")]) | st.floats(allow_nan=False)
some_times = st.lists(times, max_size=2).map(tuple)
numbers = st.integers(-1, 12)
small = st.integers(-2, 4)
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])

records = st.builds(
    MemoryRecord,
    content=texts,
    tier=st.sampled_from(TIERS),
    status=st.sampled_from(STATUSES),
    category=words,
    entities=some_words,
    source=words,
    origin=st.sampled_from(ORIGINS),
    trust=shares,
    metadata=texts,
    version=small,
    born_at=times,
    last_used=times,
    use_count=small,
    strength=shares,
    uses=some_times,
    review_count=small,
    derived_from=some_words,
    is_forced=st.booleans(),
    promoted_at=st.none() | times,
    vault_path=texts,
)
passages = st.builds(
    NewPassage,
    id=ids,
    chunk=st.builds(Chunk, texts, st.integers(1, 9), st.integers(1, 9), texts),
    token_ids=st.binary(max_size=3).map(lambda half: 2 * half),
    vector=st.binary(min_size=4, max_size=4),
)
some_passages = st.lists(passages, max_size=2).map(tuple)
owners = st.builds(
    Owner,
    id=ids,
    kind=st.just("memory"),
    title=texts,
    summary=texts,
    tags=some_words,
    type=words,
    phase=words,
    references=some_words,
    session=sessions,
    position=small,
    at=st.none() | times,
)
writes = st.builds(
    MemoryWrite,
    owner=owners,
    passages=some_passages,
    record=records,
    digest=words,
    bands=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    dates=st.lists(st.tuples(times, times), max_size=2).map(tuple),
    is_placed=st.booleans(),
)
others = st.builds(
    OwnerWrite,
    st.builds(
        Owner,
        id=ids,
        kind=st.sampled_from(KINDS),
        tags=some_words,
        session=sessions,
        position=small,
        at=st.none() | times,
    ),
    some_passages,
)
links = st.builds(Link, ids, ids, words, shares, times)
filters = st.builds(
    Filter,
    kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple),
    tags=some_words,
    tiers=st.lists(st.sampled_from(TIERS), max_size=2).map(tuple),
    sessions=st.lists(sessions, max_size=2).map(tuple),
    sources=some_words,
    min_trust=shares,
    as_of=st.none() | times,
)
selections = st.builds(
    Selection,
    ids=st.lists(ids, max_size=2).map(tuple),
    tiers=st.lists(st.sampled_from(TIERS), max_size=2).map(tuple),
    statuses=st.lists(st.sampled_from(STATUSES), max_size=2).map(tuple),
    tags=some_words,
    sources=some_words,
    sessions=st.lists(sessions, max_size=2).map(tuple),
    categories=some_words,
    since=st.none() | times,
    until=st.none() | times,
    min_trust=st.sampled_from([0.0, 0.5]),
    order=st.sampled_from(["newest", "id", "used", "idle", "stored", "changed"]),
    limit=st.none() | st.integers(0, 3),
    offset=st.integers(0, 2),
)

Step = tuple[str, tuple[Any, ...], dict[str, Any]]


def step(name: str, *values: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """Return calls of one method of a change."""
    return st.tuples(st.just(name), st.tuples(*values), st.fixed_dictionaries(options))


id_lists = st.lists(ids, max_size=2)
adding = step("add", writes, created_at=times, expired_at=st.none() | st.none() | times)
steps = st.lists(
    st.one_of(
        adding,
        adding,
        adding,
        step("find", ids),
        step("alike", words, st.lists(st.integers(0, 3), max_size=2)),
        step("revise", numbers, records),
        step("expire", numbers, records, times),
        step("expire", numbers, records, times),
        step("revive", numbers, records, bands=st.lists(st.integers(0, 3), max_size=2).map(tuple)),
        step("revive", numbers, records),
        step("links", id_lists),
        step("erase", id_lists),
        step("link", links),
        step("unlink", ids, ids, st.none() | words),
        step("put", st.builds(JournalBlock, ids, texts, words)),
        step("drop", st.just(JournalBlock), id=ids),
        step("put", st.builds(JournalPage, words, small, small, texts)),
        step("drop", st.just(JournalPage), page=words),
        step("settle_due", id_lists),
        step("put", st.builds(Note, st.sampled_from(KINDS_OF_NOTES), ids, times, texts)),
        step("drop", st.just(Note), kind=st.sampled_from(KINDS_OF_NOTES)),
        step("drop", st.just(Note), kind=st.sampled_from(KINDS_OF_NOTES), id=ids),
    ),
    max_size=8,
)


class _GivenUpError(Exception):
    """Raised in a change that is to be rolled back."""


def outcome(act: Callable[[], object]) -> object:
    """Return what a call returns, or the error that it raises."""
    try:
        return act()
    except CommonplaceError as error:
        return type(error), str(error)


def take(store: Store, name: str, taken: list[Step], *, is_given_up: bool) -> list[object]:
    """Take steps in one change and return what each of them gave."""
    results: list[object] = []
    with suppress(_GivenUpError), store.change_memories(name) as change:
        for method, values, options in taken:
            results.append(outcome(partial(getattr(change, method), *values, **options)))
        if is_given_up:
            raise _GivenUpError
    return results


class MemoriesAgree(RuleBasedStateMachine):
    """Do the same to both stores and compare every answer."""

    @initialize()
    def create(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.sqlite = Store.create(self.sqlite_path)
        self.memory = MemoryStore()

    @rule(name=names, taken=steps, is_given_up=st.sampled_from([False, False, False, True]))
    def change(self, name: str, taken: list[Step], is_given_up: bool) -> None:
        got = take(self.sqlite, name, taken, is_given_up=is_given_up)
        assert got == take(self.memory, name, taken, is_given_up=is_given_up)
        self.compare(name, self.sqlite)

    @rule(name=names, batch=st.lists(others, max_size=2), at=times)
    def put(self, name: str, batch: list[OwnerWrite], at: float) -> None:
        assert self.sqlite.put_owners(name, batch, at=at) == self.memory.put_owners(name, batch, at=at)
        self.compare(name, self.sqlite)

    @rule(name=names, doomed=st.lists(numbers, max_size=3))
    def delete(self, name: str, doomed: list[int]) -> None:
        assert self.sqlite.delete_owners(name, doomed) == self.memory.delete_owners(name, doomed)
        self.compare(name, self.sqlite)

    @rule(name=names)
    def erase_namespace(self, name: str) -> None:
        assert self.sqlite.erase_namespace(name) == self.memory.erase_namespace(name)
        self.compare(name, self.sqlite)

    @rule(name=names, wanted=filters, chosen=selections)
    def choose(self, name: str, wanted: Filter, chosen: Selection) -> None:
        assert self.sqlite.matching_owners(name, wanted) == self.memory.matching_owners(name, wanted)
        assert self.sqlite.memories(name, chosen) == self.memory.memories(name, chosen)
        assert self.sqlite.count_memories(name, chosen) == self.memory.count_memories(name, chosen)
        assert self.sqlite.memory_facets(name, chosen) == self.memory.memory_facets(name, chosen)

    @rule(name=names, since=times, until=times, as_of=st.none() | times, asked=id_lists)
    def ask(self, name: str, since: float, until: float, as_of: float | None, asked: list[str]) -> None:
        dated = self.memory.dated(name, since, until, as_of=as_of)
        assert self.sqlite.dated(name, since, until, as_of=as_of) == dated
        assert self.sqlite.past(name, since) == self.memory.past(name, since)
        assert self.sqlite.links(name, asked) == self.memory.links(name, asked)

    @rule(change=st.integers(-1, 12), upto=st.integers(-1, 12), name=names)
    def follow(self, change: int, upto: int, name: str) -> None:
        assert list(self.sqlite.entries_since(name, change, upto)) == list(
            self.memory.entries_since(name, change, upto)
        )
        assert self.sqlite.deleted_since(name, change, upto) == self.memory.deleted_since(name, change, upto)
        assert self.sqlite.tail(name, change) == self.memory.tail(name, change)
        assert self.sqlite.pending(name, change) == self.memory.pending(name, change)

    @rule(thorough=st.booleans())
    def reopen(self, thorough: bool) -> None:
        assert self.sqlite.compact(thorough=thorough) is self.memory.compact(thorough=thorough) is True
        self.sqlite.close()
        self.sqlite = Store.open(self.sqlite_path, create=False)

    @rule(is_of_memory=st.booleans())
    def back_up(self, is_of_memory: bool) -> None:
        copy_path = Path(self.directory.name) / "copy.db"
        (self.memory if is_of_memory else self.sqlite).backup(copy_path)
        copy = Store.open(copy_path, create=False)
        try:
            assert copy.check() == []
            for name in NAMES:
                assert copy.deleted_since(name, 0, 99) == self.memory.deleted_since(name, 0, 99)
                self.compare(name, copy)
        finally:
            copy.close()
            copy_path.unlink()

    @invariant()
    def same_whole(self) -> None:
        if hasattr(self, "sqlite"):
            assert self.sqlite.change() == self.memory.change()
            assert self.sqlite.namespaces() == self.memory.namespaces()
            assert self.sqlite.counts() == self.memory.counts()
            assert self.sqlite.check() == []

    def compare(self, name: str, store: Store) -> None:
        """Compare everything that can be read of a namespace."""
        assert everything(store, name, IDS, SESSIONS) == everything(self.memory, name, IDS, SESSIONS)
        for kind in KINDS_OF_NOTES:
            assert store.notes(name, kind) == self.memory.notes(name, kind)
            assert store.notes(None, kind) == self.memory.notes(None, kind)

    @property
    def sqlite_path(self) -> Path:
        return Path(self.directory.name) / "store.db"

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            self.directory.cleanup()


TestMemoriesAgree = MemoriesAgree.TestCase
TestMemoriesAgree.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
