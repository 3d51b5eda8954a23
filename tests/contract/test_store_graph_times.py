"""What every store promises of facts through time: which are meant, in what order, and what a limit leaves out."""

from __future__ import annotations

import math
import random

import pytest
from tests.contract.graphs import EVER, NOW, entity, episode, ids, put, relation
from tests.contract.stores import UUID

from commonplace.errors import UsageError
from commonplace.store.store import Store
from commonplace.types.graph import GraphFilter, Relation

# Known from 10 on, true from 1 on; what was learnt of them at 20 is told by their names.
OPEN = relation("open", valid_from=1.0)
STATED = relation("stated", valid_from=1.0, valid_to=5.0, stated_to=5.0)
ENDED = relation("ended", valid_from=1.0, valid_to=7.0, expired_at=20.0)
RETRACTED = relation("retracted", valid_from=1.0, valid_to=1.0, expired_at=20.0, is_retracted=True)
EARLIER = relation("earlier", valid_from=1.0, valid_to=3.0, stated_to=9.0, expired_at=20.0)
EVERYTHING = (OPEN, STATED, ENDED, RETRACTED, EARLIER)


def meant(store: Store, *facts: Relation, **times: float | None) -> set[str]:
    put(store, *facts)
    wanted = GraphFilter(**times)  # type: ignore[arg-type]
    found = set(ids(store.graph("n").list_relations(wanted)))
    assert {id_ for id_, _, _ in store.graph("n").pairs(wanted)} == found
    assert set(ids(store.graph("n").relations_of(["a"], wanted).get("a", []))) == found
    assert {each.id for each in store.graph("n").edges_of(["a"], wanted).get("a", [])} == found
    return found


class TestWhichFactsAreMeant:
    def test_without_a_time_those_that_have_not_expired(self, store: Store) -> None:
        """A fact whose end was stated is still what was said; whoever asks for today gives the time."""
        assert meant(store, *EVERYTHING) == {"open", "stated"}

    def test_with_the_past_all_there_are(self, store: Store) -> None:
        """History tells what was believed and given up, too."""
        put(store, *EVERYTHING)
        assert set(ids(store.graph("n").list_relations(EVER))) == {fact.id for fact in EVERYTHING}

    @pytest.mark.parametrize(
        ("at", "expected"),
        [
            (0.5, set()),
            (1.0, {"open", "stated", "ended", "earlier"}),
            (3.0, {"open", "stated", "ended"}),
            (5.0, {"open", "ended"}),
            (6.9, {"open", "ended"}),
            (7.0, {"open"}),
            (math.inf, {"open"}),
        ],
    )
    def test_at_a_time_of_the_world_those_that_were_true_then(
        self, store: Store, at: float, expected: set[str]
    ) -> None:
        """Intervals are half-open, as they are known now: what expired was true until it ended."""
        assert meant(store, *EVERYTHING, valid_at=at) == expected

    @pytest.mark.parametrize(
        ("at", "expected"),
        [
            (-math.inf, {"open", "stated", "ended", "earlier"}),
            (0.5, {"open", "stated", "ended", "earlier"}),
            (3.0, {"open", "stated", "ended"}),
            (6.9, {"open", "ended"}),
            (7.0, {"open"}),
        ],
    )
    def test_open_at_a_time_those_that_had_not_ended_by_then(self, store: Store, at: float, expected: set[str]) -> None:
        """What is to end next week holds, whenever we learnt that it is; what begins then is known, too."""
        assert meant(store, *EVERYTHING, open_at=at) == expected
        assert meant(store, *EVERYTHING, open_at=at, valid_at=0.5) == set(), "the time when it was true decides"

    @pytest.mark.parametrize(
        ("known", "expected"),
        [
            (9.9, set()),
            (10.0, {"open", "stated", "ended", "retracted", "earlier"}),
            (19.9, {"open", "stated", "ended", "retracted", "earlier"}),
            (20.0, {"open", "stated"}),
        ],
    )
    def test_as_of_a_time_those_that_were_known_and_not_expired(
        self, store: Store, known: float, expected: set[str]
    ) -> None:
        """What was retracted later was believed then."""
        assert meant(store, *EVERYTHING, known_at=known) == expected

    @pytest.mark.parametrize(
        ("known", "at", "expected"),
        [
            (15.0, 8.0, {"open", "ended", "retracted", "earlier"}),
            (15.0, 9.0, {"open", "ended", "retracted"}),
            (15.0, 4.0, {"open", "stated", "ended", "retracted", "earlier"}),
            (20.0, 8.0, {"open"}),
            (20.0, 2.0, {"open", "stated", "ended", "earlier"}),
            (9.0, 2.0, set()),
        ],
    )
    def test_both_times_tell_what_was_then_believed_to_be_true(
        self, store: Store, known: float, at: float, expected: set[str]
    ) -> None:
        """Before it expired, the end of a fact was the one that its episode stated."""
        assert meant(store, *EVERYTHING, known_at=known, valid_at=at) == expected

    def test_a_fact_that_never_expired_ends_when_it_ends(self, store: Store) -> None:
        """Nobody needs to give the stated end of a fact of which no other end is known."""
        fact = relation("r", valid_to=5.0)
        assert meant(store, fact, valid_at=4.0) == meant(store, fact, valid_at=4.0, known_at=12.0) == {"r"}
        assert meant(store, fact, valid_at=5.0) == meant(store, fact, valid_at=5.0, known_at=12.0) == set()

    def test_a_fact_that_is_retracted_without_a_time_never_held(self, store: Store) -> None:
        """Then nobody can say when it was believed."""
        fact = relation("r", is_retracted=True)
        for times in ({}, {"valid_at": 12.0}, {"known_at": 12.0}, {"valid_at": 12.0, "known_at": 12.0}):
            assert meant(store, fact, **times) == set()

    def test_a_fact_may_have_been_true_for_no_time(self, store: Store) -> None:
        """Dates may be given backwards; such an interval holds nothing."""
        backwards = relation("r", valid_from=9.0, valid_to=3.0)
        assert meant(store, backwards, valid_at=5.0) == meant(store, backwards, valid_at=9.0) == set()
        assert meant(store, backwards) == {"r"}

    def test_a_fact_that_stood_again_is_meant_again(self, store: Store) -> None:
        """What a person settles may reopen what was closed."""
        put(store, ENDED)
        assert meant(store, relation("ended", valid_from=1.0)) == {"ended"}

    def test_a_time_that_is_no_number_is_refused(self, store: Store) -> None:
        """It would be compared with nothing."""
        for wanted in (GraphFilter(valid_at=math.nan), GraphFilter(known_at=math.nan)):
            with pytest.raises(UsageError, match="a time of the filter of a graph is not a number"):
                store.graph("n").list_relations(wanted)

    def test_episodes_and_entities_are_those_that_were_known(self, store: Store) -> None:
        """An entity that was merged later was one then."""
        put(store, episode("e", 10.0), entity("a"), entity("b", expired_at=20.0, merged_into="a"))
        graph = store.graph("n")
        for known, episodes, entities in (
            (9.0, [], []),
            (10.0, ["e"], ["a", "b"]),
            (20.0, ["e"], ["a"]),
            (None, ["e"], ["a"]),
        ):
            wanted = GraphFilter(known_at=known)
            assert ids(graph.list_episodes(wanted)) == episodes
            assert ids(graph.list_entities(wanted)) == entities

    def test_with_the_past_also_entities_that_were_merged_are_listed(self, store: Store) -> None:
        """Whoever copies a graph needs all there is; a time that is given decides instead."""
        put(store, entity("a"), entity("b", expired_at=20.0, merged_into="a"))
        graph = store.graph("n")
        assert ids(graph.list_entities(EVER)) == ["a", "b"]
        assert ids(graph.list_entities(GraphFilter(known_at=20.0, with_past=True))) == ["a"]


class TestOrderAndLimit:
    def test_relations_come_newest_knowledge_first_then_by_id(self, store: Store) -> None:
        """Ids are in the order of their code points."""
        other = UUID.replace("0b", "0a")
        put(
            store,
            relation("z", created_at=3.0),
            relation(UUID),
            relation("é"),
            relation(other),
            relation("\uf8ff"),
            relation("B"),
            relation("zz"),
            relation("x", created_at=11.0),
        )
        ordered = ["x", other, UUID, "B", "zz", "é", "\uf8ff", "z"]
        graph = store.graph("n")
        assert ids(graph.list_relations(NOW)) == ids(graph.relations_of(["a"], NOW)["a"]) == ordered
        for limit in range(9):
            assert ids(graph.list_relations(NOW, limit=limit, offset=1)) == ordered[1 : limit + 1]
            assert ids(graph.relations_of(["a"], NOW, limit=limit).get("a", [])) == ordered[:limit]

    def test_a_limit_is_of_each_entity_whichever_way_its_relations_go(self, store: Store) -> None:
        """A hub must not take the room of its neighbours."""
        chance = random.Random(5)
        facts = [
            relation(f"{number:02}", chance.choice("abc"), chance.choice("abc"), created_at=float(chance.randrange(4)))
            for number in range(60)
        ]
        past = [
            relation(f"p{number:02}", chance.choice("abc"), chance.choice("abc"), created_at=2.0, expired_at=5.0)
            for number in range(20)
        ]
        put(store, *facts, *past)
        ordered = sorted(facts, key=lambda fact: (-fact.created_at, fact.id))
        found = store.graph("n").relations_of(["a", "b", "c", "d", "a"], NOW, limit=7)
        assert found == {end: [fact for fact in ordered if end in (fact.source, fact.target)][:7] for end in "abc"}
        ever = sorted([*facts, *past], key=lambda fact: (-fact.created_at, fact.id))
        found = store.graph("n").relations_of(["a"], EVER, limit=30)
        assert found == {"a": [fact for fact in ever if "a" in (fact.source, fact.target)][:30]}

    def test_a_limit_counts_what_has_not_ended_however_much_has(self, store: Store) -> None:
        """What ended since is newer knowledge than what still holds, and there may be more of it than the limit."""
        ended = [relation(f"e{n}", created_at=50.0 + n, valid_to=60.0, expired_at=60.0) for n in range(5)]
        stated = [relation(f"s{n}", created_at=50.0 + n, valid_to=60.0) for n in range(5)]
        later = relation("later", created_at=5.0, valid_to=99.0, expired_at=60.0)
        put(store, *ended, *stated, later, relation("endless", expired_at=9.0), relation("old", created_at=1.0))
        graph, holding = store.graph("n"), GraphFilter(open_at=70.0)
        assert ids(graph.relations_of(["a"], holding, limit=2)["a"]) == ["endless", "later"]
        assert ids(graph.list_relations(holding)) == ["endless", "later", "old"]
        assert [each.id for each in graph.edges_of(["b"], holding, limit=3)["b"]] == ["endless", "later", "old"]
        assert ids(graph.list_relations(GraphFilter(valid_at=math.inf))) == ["endless", "old"]

    def test_edges_among_some_are_those_of_the_newest_that_lead_to_them(self, store: Store) -> None:
        """A hub's edges are cut before they are chosen, or a few that are wanted would cost all that it has."""
        put(
            store,
            relation("1", "a", "b", created_at=4.0),
            relation("2", "c", "a", created_at=3.0),
            relation("3", "a", "d", created_at=2.0),
            relation("4", "a", "a", created_at=1.0),
        )

        def found(*among: str, limit: int | None = None) -> dict[str, list[str]]:
            edges = store.graph("n").edges_of(["a", "d"], NOW, limit=limit, among=among)
            return {end: [each.id for each in some] for end, some in edges.items()}

        assert found("c", "d") == {"a": ["2", "3"]}
        assert found("a", "b") == {"a": ["1", "4"], "d": ["3"]}
        assert found("c", "d", limit=2) == {"a": ["2"]}
        assert found() == {}

    def test_facts_of_one_source_and_type_come_oldest_first_whatever_became_of_them(self, store: Store) -> None:
        """They are computed together, those that have ended among them."""
        put(
            store,
            relation("new", created_at=12.0),
            relation("ended", expired_at=20.0),
            relation("never", created_at=11.0, is_retracted=True),
            relation("c", target="c"),
            relation("back", "b", "a"),
            relation("typed", type_="PART_OF"),
        )
        graph = store.graph("n")
        assert ids(graph.facts("a", "USES", "b")) == ["ended", "never", "new"]
        assert ids(graph.facts("a", "USES")) == ["c", "ended", "never", "new"]
        assert graph.facts("a", "WORKS_FOR") == graph.facts("a", "USES", "") == []

    def test_a_relation_of_an_entity_with_itself_comes_once(self, store: Store) -> None:
        """It starts and ends there."""
        put(store, relation("r", "a", "a"), relation("s", "b", "a"))
        found = store.graph("n").relations_of(["a", "b"], NOW)
        assert {end: ids(facts) for end, facts in found.items()} == {"a": ["r", "s"], "b": ["s"]}

    def test_types_and_groups_choose(self, store: Store) -> None:
        """Values of one field are alternatives, fields add up; "" is the group of what has none."""
        put(
            store,
            relation("1", type_="USES", group="x"),
            relation("2", type_="a\x01b", group="\ue000"),
            relation("3", type_="a", group=""),
            relation("4", type_="USES", group=""),
        )

        def found(**wanted: tuple[str, ...]) -> list[str]:
            chosen = GraphFilter(**wanted)  # type: ignore[arg-type]
            listed = ids(store.graph("n").list_relations(chosen))
            assert listed == ids(store.graph("n").relations_of(["a"], chosen).get("a", []))
            return listed

        assert found(types=("USES", "a\x01b")) == ["1", "2", "4"]
        assert found(types=("a",)) == ["3"]
        assert found(groups=("\ue000", "x")) == ["1", "2"]
        assert found(groups=("",)) == ["3", "4"]
        assert found(types=("USES",), groups=("",)) == ["4"]

    def test_many_pairs_come_once_each(self, store: Store) -> None:
        """They are read in parts."""
        with store.change_memories("n") as change:
            for number in range(10_050):
                expired_at = 11.0 if number % 2 else None
                change.graph.put_relation(relation(str(number), "a", str(number), expired_at=expired_at))
        graph = store.graph("n")
        assert sorted(graph.pairs(NOW)) == sorted((str(n), "a", str(n)) for n in range(0, 10_050, 2))
        assert sum(1 for _ in graph.pairs(EVER)) == len({id_ for id_, _, _ in graph.pairs(EVER)}) == 10_050
