"""Whatever is added, deleted, merged and split, a graph stays whole; and what is taken back leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.reference_store.store import MemoryStore
from tests.unit.search.notebook import model

from commonplace.extract.model import Claim, ExtractedEntity, Extraction
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_extraction import Understood
from commonplace.graph.runtime import GraphRuntime, Texts
from commonplace.graph.service import GraphService
from commonplace.ingest.passages import Destination
from commonplace.models.hashing import HashingEmbedder
from commonplace.types.graph import Episode, GraphFilter, Relation

PEOPLE = ("Mira Okafor", "Mira", "Tom Chen", "Tom Novak", "Tom")
PLACES = ("Berlin", "Munich", "Germany", "Smallville")
TYPES = ("LIVES_IN", "USES", "SIMILAR_TO")
EVERYTHING = GraphFilter(with_past=True)
NAMESPACE = "tests"

claims = st.tuples(
    st.sampled_from(PEOPLE),
    st.sampled_from(TYPES),
    st.sampled_from(PLACES),
    st.one_of(st.none(), st.integers(0, 9)),
    st.booleans(),
)
episodes = st.tuples(st.integers(0, 9), st.sampled_from((0.3, 0.8, 1.0)), st.lists(claims, min_size=1, max_size=3))
Told = tuple[int, float, list[tuple[str, str, str, int | None, bool]]]


class Book:
    """A graph in memory, whose ids count up and whose clock ticks at every change."""

    def __init__(self) -> None:
        embedder = HashingEmbedder()
        self.store = MemoryStore()
        self.store.set_embedding(embedder.stamp)
        self.ticks = count(100)
        self.ground = GraphRuntime(
            Texts(Destination(self.store, embedder, model().tokenize, NAMESPACE)),
            Kinds(),
            lambda: float(next(self.ticks)),
        )
        self.keeper = GraphService(self.ground)
        self.graph = self.store.graph(NAMESPACE)

    def add(self, id_: str, told: Told) -> None:
        when, trust, said = told
        found: dict[str, ExtractedEntity] = {}
        made = []
        for person, type_, place, since, is_end in said:
            for name, kind in ((person, "person"), (place, "place")):
                found.setdefault(name, ExtractedEntity(name, kind, ((len(found), len(found) + 1),)))
            ends = (list(found).index(person), list(found).index(place))
            valid_from = None if since is None else float(since)
            fact = f"{person} {type_} {place}"
            made.append(Claim(*ends, type_, fact, (len(made), len(made) + 1), valid_from, None, is_end))
        content = " ".join(found)
        episode = Episode(id_, content, float(when), float(next(self.ticks)), trust=trust)
        spans = {name: ((content.index(name), content.index(name) + len(name)),) for name in found}
        entities = tuple(ExtractedEntity(name, each.type, spans[name]) for name, each in found.items())
        self.keeper.add_episode(episode, Understood(Extraction(entities, tuple(made))))

    def relations(self) -> list[Relation]:
        return self.graph.list_relations(EVERYTHING)

    def facts(self) -> list[Any]:
        """Return what is known, by names and times as the world has them, whatever ids and clock."""
        names = {each.id: each.name for each in self.graph.list_entities(GraphFilter())}
        return sorted(
            (
                names[each.source],
                each.type,
                names[each.target],
                each.fact,
                str((each.valid_from, each.valid_to, each.stated_to, each.expired_at is None)),
                each.is_retracted,
                bool(each.dispute),
                each.trust,
            )
            for each in self.relations()
        )

    def everything(self) -> str:
        """Return all that is stored but for the remarks on entities, which tell of merges."""
        entities = self.graph.list_entities(GraphFilter())
        ids = [each.id for each in entities]
        relations = self.relations()
        known = [each.id for each in relations]
        return "\n".join(
            map(
                repr,
                [
                    entities,
                    self.graph.aliases(ids),
                    self.graph.mentions("entity", ids),
                    relations,
                    self.graph.mentions("relation", known),
                    {id_: self.graph.happenings("relation", id_) for id_ in known},
                    self.graph.counts(),
                ],
            )
        )

    def check(self) -> None:
        """Hold the graph to what must always be true of it."""
        entities = {each.id: each for each in self.graph.list_entities(GraphFilter())}
        disputes: dict[str, int] = {}
        for each in self.relations():
            assert {each.source, each.target} <= entities.keys()
            if each.valid_from is not None and each.valid_to is not None:
                assert each.valid_from < each.valid_to
            assert (each.disputed_at is None) == (not each.dispute)
            disputes[each.dispute] = disputes.get(each.dispute, 0) + 1
            rivals = json.loads(each.attributes)["_"].get("rivals", [])
            assert all(each.id in json.loads(other.attributes)["_"]["rivals"] for other in self._of(rivals))
        for entity in entities.values():
            names = {alias.name for alias in self.graph.aliases([entity.id])[entity.id]}
            assert entity.name in names
        assert self.store.check() == []

    def _of(self, ids: list[str]) -> list[Relation]:
        found = self.graph.relations(ids)
        assert found.keys() == set(ids)
        return list(found.values())


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(told=st.lists(episodes, min_size=1, max_size=6), data=st.data())
def test_a_graph_stays_whole_and_is_empty_when_all_is_deleted(told: list[Told], data: st.DataObject) -> None:
    book = Book()
    for number, each in enumerate(told):
        book.add(f"e{number}", each)
        book.check()
    for number in data.draw(st.permutations(range(len(told)))):
        book.keeper.delete_episode(f"e{number}")
        book.check()
    assert repr(book.graph.counts()) == "GraphCounts(episodes=0, entities=0, relations=0, disputed=0)"
    assert book.store.counts(None)["passages"] == 0


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(told=st.lists(episodes, min_size=1, max_size=5), extra=episodes, place=st.integers(0, 5))
def test_what_is_deleted_is_as_if_it_had_never_come(told: list[Told], extra: Told, place: int) -> None:
    """But for names: an episode may have told that two names are one, and what came then was understood so."""
    plain = [(when, trust, [each for each in said if " " in each[0]]) for when, trust, said in told]
    other = (extra[0], extra[1], [each for each in extra[2] if " " in each[0]])
    with_it, without = Book(), Book()
    for number, each in enumerate(plain):
        if number == place % (len(plain) + 1):
            with_it.add("extra", other)
        with_it.add(f"e{number}", each)
        without.add(f"e{number}", each)
    if place % (len(plain) + 1) == len(plain):
        with_it.add("extra", other)
    with_it.keeper.delete_episode("extra")
    assert with_it.facts() == without.facts()
    with_it.check()


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(told=st.lists(episodes, min_size=1, max_size=5), data=st.data())
def test_a_split_takes_a_merge_back_exactly(told: list[Told], data: st.DataObject) -> None:
    book = Book()
    for number, each in enumerate(told):
        book.add(f"e{number}", each)
    ids = [each.id for each in book.graph.list_entities(GraphFilter())]
    before = book.everything()
    chosen = data.draw(st.lists(st.sampled_from(ids), min_size=2, max_size=4, unique=True))
    for other in chosen[1:]:
        book.keeper.merge(chosen[0], other, "")
        book.check()
    book.keeper.split(chosen[0], [], "")
    book.check()
    assert book.everything() == before


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(told=st.lists(episodes, min_size=2, max_size=6), data=st.data())
def test_merges_settlements_and_deletions_in_any_order_leave_a_whole_graph(
    told: list[Told], data: st.DataObject
) -> None:
    book = Book()
    left: list[str] = []
    for number, each in enumerate(told):
        book.add(f"e{number}", each)
        left.append(f"e{number}")
        what = data.draw(st.sampled_from(("merge", "settle", "delete", "split", "nothing")))
        live = [each.id for each in book.graph.list_entities(GraphFilter())]
        if what == "merge" and len(live) > 1:
            one, other = data.draw(st.lists(st.sampled_from(live), min_size=2, max_size=2, unique=True))
            book.keeper.merge(one, other, "")
        elif what == "split":
            merged = [id_ for id_ in live if '"merged"' in book.graph.entities([id_])[id_].attributes]
            if merged:
                book.keeper.split(data.draw(st.sampled_from(merged)), [], "")
        elif what == "settle" and book.graph.disputed():
            book.keeper.settle(data.draw(st.sampled_from([each.id for each in book.graph.disputed()])), "")
        elif what == "delete":
            book.keeper.delete_episode(left.pop(data.draw(st.integers(0, len(left) - 1))))
        book.check()
    for id_ in left:
        book.keeper.delete_episode(id_)
    assert book.relations() == []
    assert book.graph.list_entities(GraphFilter()) == []


@pytest.fixture(autouse=True)
def loaded() -> Iterator[None]:
    """Load the token table before any example is timed."""
    model()
    yield


claims_on_one = st.tuples(
    st.just("Mira Okafor"),
    st.sampled_from(TYPES),
    st.sampled_from(PLACES),
    st.none() | st.integers(0, 9),
    st.booleans(),
)
statements = st.lists(
    st.tuples(st.integers(0, 99), st.sampled_from((0.3, 1.0)), st.lists(claims_on_one, min_size=1, max_size=2)),
    min_size=2,
    max_size=5,
    unique_by=lambda told: told[0],
)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(told=statements, data=st.data())
def test_the_same_is_known_in_whichever_order_it_arrives(told: list[Told], data: st.DataObject) -> None:
    """What is true follows from what was said when, not from when an import or another device delivered it."""
    in_order, late = Book(), Book()
    for number, each in enumerate(sorted(told)):
        in_order.add(f"e{number}", each)
    for number, each in enumerate(data.draw(st.permutations(told))):
        late.add(f"e{number}", each)
        late.check()
    assert late.facts() == in_order.facts()
