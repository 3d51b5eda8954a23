"""Whatever is done to a graph in whatever order, the SQLite store answers as the reference store does."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.contract.graphs import whole
from tests.contract.memories import everything
from tests.property.graph_records import Drawn
from tests.property.test_memory_store import outcome
from tests.reference_store.store import MemoryStore

from commonplace.store.schema import texts_of
from commonplace.store.store import Store
from commonplace.types import GRAPH_KINDS, Chunk, NewPassage
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

NAMES = ("default", "Ünï\ue000")
IDS = ("", "a", "é\x01", "\ue000", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab", "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ac")

names, ids = st.sampled_from(NAMES), st.sampled_from(IDS)
words = st.sampled_from(["", "x", "y\x01z", "\ue000", "'"])
some_words = st.lists(words, max_size=2).map(tuple)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
finite = st.sampled_from([0.0, 5.0, 10.0, 20.0, float("inf")])
times = st.one_of(finite, finite, finite, st.floats())
maybe = st.none() | finite
shares = st.sampled_from([0.0, 0.25, 1.0])
small = st.integers(-2, 4)

passages = st.builds(
    NewPassage,
    id=ids,
    chunk=st.builds(Chunk, texts, st.integers(1, 9), st.integers(1, 9), texts),
    token_ids=st.binary(max_size=3).map(lambda half: 2 * half),
    vector=st.binary(min_size=4, max_size=4),
)
some_passages = st.none() | st.lists(passages, max_size=2)
drawn = Drawn(ids, words, times, maybe, shares, small)
episodes = drawn.records(Episode, content=texts, created_at=finite)
entities = drawn.records(Entity, name=words | texts, summary=texts, attributes=texts)
relations = drawn.records(Relation, fact=texts, created_at=finite, attributes=texts)
aliases = st.builds(Alias, entity=ids, name=texts, normal=words, created_at=times, episode=ids)
mentions = st.builds(Mention, ids, st.sampled_from(GRAPH_KINDS), ids, small, small, words)
some_mentions = st.lists(mentions, max_size=3)
happenings = st.builds(Happening, st.sampled_from(GRAPH_KINDS), ids, times, words, texts, ids, texts)
filters = st.builds(
    GraphFilter,
    types=some_words,
    groups=some_words,
    valid_at=st.none() | times,
    known_at=st.none() | times,
    with_past=st.booleans(),
    open_at=st.none() | times,
)

Step = tuple[str, tuple[Any, ...], dict[str, Any]]


def step(name: str, *values: st.SearchStrategy[Any], **options: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """Return calls of one method of a change."""
    return st.tuples(st.just(name), st.tuples(*values), st.fixed_dictionaries(options))


id_lists = st.lists(ids, max_size=6)
steps = st.lists(
    st.one_of(
        step("put", episodes),
        step("put_entity", entities, some_passages),
        step("put_entity", entities, some_passages),
        step("put_relation", relations, some_passages),
        step("put_relation", relations, some_passages),
        step("put_relation", relations),
        step("put", aliases),
        step("drop", st.just(Alias), entity=ids, normal=words),
        step("put", mentions, mentions),
        step("drop_mentions", some_mentions),
        step("put", happenings),
        step("erase_episodes", id_lists),
        step("erase_entities", id_lists),
        step("erase_relations", id_lists),
        step("drop", st.just(Happening), kind=st.sampled_from(GRAPH_KINDS), subject=ids),
        step("relations_of", id_lists, filters),
        step("entities_by_name", some_words),
        step("counts"),
    ),
    max_size=10,
)


class _GivenUpError(Exception):
    """Raised in a change that is to be rolled back."""


def take(store: Store, name: str, taken: list[Step], *, is_given_up: bool) -> list[object]:
    """Take steps in one change and return what each of them gave."""
    results: list[object] = []
    with suppress(_GivenUpError), store.change_memories(name) as change:
        for method, values, options in taken:
            results.append(outcome(partial(getattr(change.graph, method), *values, **options)))
        if is_given_up:
            raise _GivenUpError
    return results


class GraphsAgree(RuleBasedStateMachine):
    """Do the same to both stores and compare every answer."""

    @initialize()
    def create(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.sqlite_path = Path(self.directory.name) / "store.db"
        self.sqlite = Store.create(self.sqlite_path)
        self.memory = MemoryStore()

    @rule(name=names, taken=steps, is_given_up=st.sampled_from([False, False, False, True]))
    def change(self, name: str, taken: list[Step], is_given_up: bool) -> None:
        got = take(self.sqlite, name, taken, is_given_up=is_given_up)
        assert got == take(self.memory, name, taken, is_given_up=is_given_up)
        self.compare(name, self.sqlite)

    @rule(name=names, wanted=filters, asked=id_lists, limit=st.none() | st.integers(0, 3), offset=st.integers(0, 2))
    def ask(self, name: str, wanted: GraphFilter, asked: list[str], limit: int | None, offset: int) -> None:
        mine, other = self.sqlite.graph(name), self.memory.graph(name)
        for method in ("list_episodes", "list_entities", "list_relations"):
            got = outcome(partial(getattr(mine, method), wanted, limit=limit, offset=offset))
            assert got == outcome(partial(getattr(other, method), wanted, limit=limit, offset=offset))
        got = outcome(lambda: mine.relations_of(asked, wanted, limit=limit))
        assert got == outcome(lambda: other.relations_of(asked, wanted, limit=limit))
        for among in (None, asked[1:]):
            got = outcome(lambda among=among: mine.edges_of(asked, wanted, limit=limit, among=among))
            assert got == outcome(lambda among=among: other.edges_of(asked, wanted, limit=limit, among=among))
        assert outcome(lambda: sorted(mine.pairs(wanted))) == outcome(lambda: sorted(other.pairs(wanted)))

    @rule(name=names)
    def erase_namespace(self, name: str) -> None:
        assert self.sqlite.erase_namespace(name) == self.memory.erase_namespace(name)
        self.compare(name, self.sqlite)

    @rule(is_of_memory=st.booleans())
    def back_up(self, is_of_memory: bool) -> None:
        copy_path = Path(self.directory.name) / "copy.db"
        (self.memory if is_of_memory else self.sqlite).backup(copy_path)
        copy = Store.open(copy_path, create=False)
        try:
            assert copy.deleted_since("n", 0, 99) == self.memory.deleted_since("n", 0, 99)
            for name in NAMES:
                self.compare(name, copy)
        finally:
            copy.close()
            copy_path.unlink()

    def compare(self, name: str, store: Store) -> None:
        """Compare everything that can be read of a namespace's graph and its texts."""
        assert store.change() == self.memory.change()
        assert store.check() == self.memory.check()
        assert whole(store.graph(name), IDS) == whole(self.memory.graph(name), IDS)
        for kind in GRAPH_KINDS:
            space = texts_of(name, kind)
            assert everything(store, space, IDS) == everything(self.memory, space, IDS)
        assert store.namespaces(with_texts=True) == self.memory.namespaces(with_texts=True)

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            self.directory.cleanup()


TestGraphsAgree = GraphsAgree.TestCase
TestGraphsAgree.settings = settings(
    max_examples=15, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
