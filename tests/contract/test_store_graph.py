"""What every store promises of a graph: values come back as they were, names, mentions, and what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.contract.graphs import (
    EVER,
    FULL_ENTITY,
    FULL_EPISODE,
    FULL_HAPPENING,
    FULL_RELATION,
    NOW,
    change,
    entity,
    episode,
    ids,
    put,
    relation,
    texts,
    whole,
)
from tests.contract.memories import add, written
from tests.contract.stores import UUID, passage

from commonplace.store.memories import Statement
from commonplace.store.schema import is_reserved, namespace_of, texts_of
from commonplace.store.store import Store
from commonplace.types import CONFLICTS, DOUBT, GRAPH_KINDS, HOLDS_BESIDE, RULE, SUPERSEDES, Link, Owner, OwnerWrite
from commonplace.types.graph import Alias, Entity, GraphCounts, GraphFilter, Happening, Mention

ASKED = [UUID, "a", "b", "e", "é\x01", "m", "norm\ue000", "other"]


def fill(store: Store, name: str = "n") -> None:
    """Write a graph that has something of everything."""
    put(store, FULL_EPISODE, FULL_ENTITY, FULL_RELATION, FULL_HAPPENING, name=name)
    put(
        store,
        episode("e", 5.0, group="team", memory="m", version=1),
        entity("a", "Ann"),
        entity("é\x01", "Acme", "organization", group="team"),
        relation("b", "a", "é\x01", dispute="d", disputed_at=1.0),
        Alias("a", "Ann\ue000", "norm\ue000", 7.0, "e"),
        Mention("e", "entity", "a", 0, 3, "Ann"),
        Mention("e", "relation", "b", 0, 9),
        name=name,
    )
    change(store, lambda graph: graph.put_entity(entity("other"), [passage("An other"), passage("one")]), name=name)


class TestValues:
    def test_they_come_back_as_they_were(self, store: Store) -> None:
        """Whatever characters texts have, and whatever times there are."""
        fill(store)
        graph = store.graph("n")
        assert graph.episodes([UUID, "x"]) == {UUID: FULL_EPISODE}
        assert graph.entities(["x", UUID]) == {UUID: FULL_ENTITY}
        assert graph.relations([UUID]) == {UUID: FULL_RELATION}
        assert graph.happenings("relation", UUID) == [FULL_HAPPENING]
        assert graph.aliases(["a"]) == {"a": [Alias("a", "Ann\ue000", "norm\ue000", 7.0, "e")]}
        assert graph.mentions("entity", ["a"]) == {"a": [Mention("e", "entity", "a", 0, 3, "Ann")]}

    def test_one_with_the_same_id_takes_the_place(self, store: Store) -> None:
        """Ids are kept, whatever is learnt of what has them."""
        put(store, episode("a"), entity("a"), relation("a"))
        put(store, episode("a", 12.0), entity("a", "New"), relation("a", "x", "y"))
        graph = store.graph("n")
        assert graph.counts() == GraphCounts(1, 1, 1)
        assert graph.episodes(["a"])["a"].reference_time == 12.0
        assert ids(graph.list_entities(NOW)) == ["a"]
        assert graph.entities(["a"])["a"].name == "New"
        assert list(graph.relations_of(["a", "b", "x", "y"], NOW)) == ["x", "y"]

    def test_a_namespace_that_is_not_there_has_an_empty_graph(self, store: Store) -> None:
        """Reading makes nothing."""
        assert whole(store.graph("n"), ASKED) == whole(store.graph(""), ASKED)
        assert store.graph("n").counts() == GraphCounts()
        assert store.namespaces(with_texts=True) == []

    def test_namespaces_do_not_see_each_other(self, store: Store) -> None:
        """Each has its own entities, though their ids are the same."""
        fill(store)
        put(store, entity("a", "Another"), name="m")
        assert store.graph("m").entities(["a"])["a"].name == "Another"
        assert store.graph("m").counts() == GraphCounts(entities=1)
        assert store.graph("n").counts() == GraphCounts(episodes=2, entities=3, relations=2, disputed=2)

    def test_a_backup_has_the_whole_graph(self, store: Store, tmp_path: Path) -> None:
        """With the texts by which it is found."""
        fill(store)
        store.backup(tmp_path / "copy.db")
        copy = Store.open(tmp_path / "copy.db", create=False)
        assert whole(copy.graph("n"), ASKED) == whole(store.graph("n"), ASKED)
        assert texts(copy) == texts(store) == {"entity": ["An other", "one"], "relation": []}
        assert (copy.change(), copy.counts()) == (store.change(), store.counts())
        assert copy.check() == store.check()
        copy.close()


class TestEpisodes:
    def test_the_newest_come_first(self, store: Store) -> None:
        """By what they tell of, not by when they were told; whoever was told last is not newest."""
        put(store, episode("a", 1.0), episode("c", 2.0, group="x"), episode("b", 2.0), episode("d", 3.0, group="y"))
        graph = store.graph("n")
        assert ids(graph.list_episodes(NOW)) == ["d", "b", "c", "a"]
        assert ids(graph.list_episodes(NOW, limit=2, offset=1)) == ["b", "c"]
        assert ids(graph.list_episodes(GraphFilter(groups=("x", "y")))) == ["d", "c"]

    def test_those_that_a_memory_is_come_by_version(self, store: Store) -> None:
        """Each version of a memory is an episode of its own."""
        put(store, *(episode(f"e{n}", memory="m", version=n) for n in (10, 9, 2)), episode("x", memory=""))
        assert ids(store.graph("n").episodes_of_memory("m")) == ["e2", "e9", "e10"]
        assert store.graph("n").episodes_of_memory("") == []


class TestNames:
    def test_an_entity_is_found_by_its_normal_names(self, store: Store) -> None:
        """Two may have the same; one that was merged into another has none."""
        put(store, entity("b"), entity("a"), entity("c", expired_at=11.0, merged_into="a"))
        put(store, *(Alias(each, each.upper(), "same", 1.0) for each in "abcd"), Alias("a", "Own", "own", 2.0))
        found = store.graph("n").entities_by_name(["own", "same", "none", "same"])
        assert {name: ids(entities) for name, entities in found.items()} == {"own": ["a"], "same": ["a", "b"]}

    def test_of_a_name_that_many_have_the_first_by_id_are_given(self, store: Store) -> None:
        """Ten thousand people have the same first name, of whom few are looked at; the merged do not count."""
        put(store, *(entity(id_) for id_ in (UUID, "b", "c")), entity("a", expired_at=11.0, merged_into="b"))
        put(store, *(Alias(id_, id_, "same", 1.0) for id_ in (UUID, "a", "b", "c")))
        graph = store.graph("n")
        assert ids(graph.entities_by_name(["same"], limit=2)["same"]) == [UUID, "b"]
        assert ids(graph.entities_by_name(["same"], limit=9)["same"]) == [UUID, "b", "c"]
        assert graph.entities_by_name(["same"], limit=0) == {}

    def test_names_come_oldest_first(self, store: Store) -> None:
        """The first one is what it was called when it became known."""
        aliases = [Alias("a", n, n, at) for n, at in (("z", 1.0), ("b", 2.0), ("é", 2.0), ("\uf8ff", 2.0))]
        put(store, *reversed(aliases), Alias("b", "x", "x", 0.0))
        assert store.graph("n").aliases(["a", "c"]) == {"a": aliases}

    def test_one_of_the_same_normal_form_takes_the_place_and_can_be_taken_away(self, store: Store) -> None:
        """What a person writes in capitals is the same name."""
        put(store, entity("a"), Alias("a", "Ann", "ann", 1.0), Alias("a", "ANN", "ann", 2.0))
        assert store.graph("n").aliases(["a"]) == {"a": [Alias("a", "ANN", "ann", 2.0)]}
        change(store, *(lambda graph, id_=id_: graph.drop(Alias, entity=id_, normal="ann") for id_ in "ba"))
        assert store.graph("n").entities_by_name(["ann"]) == store.graph("n").aliases(["a"]) == {}

    def test_entities_come_by_name(self, store: Store) -> None:
        """Names that are no proper Unicode come last; of the same name, by id."""
        put(store, *(entity(str(n), name) for n, name in enumerate(["é", "B", "\ue000", "a", "B"])))
        graph = store.graph("n")
        assert ids(graph.list_entities(NOW)) == ["1", "4", "3", "0", "2"]
        assert ids(graph.list_entities(NOW, limit=2, offset=3)) == ["0", "2"]

    def test_an_entity_is_of_every_group_that_speaks_of_it(self, store: Store) -> None:
        """Two projects may know the same person."""
        put(store, entity("a", group="x"), entity("b", "b", "person"), episode("e", group="y"), episode("f", group="z"))
        put(
            store,
            Mention("e", "entity", "b", 0, 1),
            Mention("e", "relation", "a", 0, 1),
            Mention("g", "entity", "a", 0, 1),
        )
        graph = store.graph("n")

        def found(**wanted: tuple[str, ...]) -> list[str]:
            return ids(graph.list_entities(GraphFilter(**wanted)))  # type: ignore[arg-type]

        assert found(groups=("x",)) == ["a"]
        assert found(groups=("y",)) == found(groups=("",)) == found(types=("person",)) == ["b"]
        assert found(groups=("z",)) == found(types=("person",), groups=("x",)) == []
        assert found(types=("person", "concept"), groups=("x", "y")) == ["a", "b"]


class TestMentions:
    MENTIONS = (
        Mention("e", "entity", "a", 0, 3, "Ann"),
        Mention("e", "entity", "b", 0, 3, "Ann"),
        Mention("e", "relation", "a", 0, 3),
        Mention("e", "entity", "a", 5, 8, "Ann"),
        Mention(UUID, "entity", "a", -1, 0, ""),
    )

    def test_they_come_by_place(self, store: Store) -> None:
        """A person reads an episode from its beginning."""
        put(store, *reversed(self.MENTIONS))
        graph = store.graph("n")
        first, other, fact, later, elsewhere = self.MENTIONS
        assert graph.mentions("entity", ["a", "b", "c"]) == {"a": [elsewhere, first, later], "b": [other]}
        assert graph.mentions("relation", ["a"]) == {"a": [fact]}
        assert graph.mentioned(["e", UUID, "x"]) == {"e": [first, other, fact, later], UUID: [elsewhere]}

    def test_one_that_is_there_already_stays_once(self, store: Store) -> None:
        """The same episode may be read again."""
        put(store, *self.MENTIONS, *self.MENTIONS)
        assert len(store.graph("n").mentions("entity", ["a"])["a"]) == 3

    def test_they_can_be_taken_away(self, store: Store) -> None:
        """A split gives them to another entity."""
        put(store, *self.MENTIONS)
        change(store, lambda graph: graph.drop_mentions([*self.MENTIONS[:3], Mention("x", "entity", "a", 0, 3)]))
        assert store.graph("n").mentioned(["e"]) == {"e": [self.MENTIONS[3]]}


class TestOvertaken:
    SAID = (
        episode("e", 5.0, memory="older", version=1),
        episode("f", 6.0, memory="newer", version=1),
        Mention("e", "relation", "home", 0, 9),
        Happening("relation", "home", 6.0, "ended", "", "f"),
    )
    HOME = relation("home", "a", "b", valid_to=6.0)
    BACK = Mention("g", "relation", "back", 0, 9)

    def test_a_memory_is_when_another_one_ended_all_of_its_facts(self, store: Store) -> None:
        first, second = add(store, written("older", "Ann is home", born_at=1.0), written("newer", "Ann left"))
        put(store, *self.SAID, self.HOME)
        found = store.statements("n", [first, second, 99])
        assert found[first] == Statement("older", 1.0, set(), {"newer"}, {})
        assert (found[second].overtaken_by, len(found)) == (set(), 2)
        assert store.statements("m", [first]) == store.statements("n", []) == {}

    @pytest.mark.parametrize(
        "more",
        [
            (relation("home", "a", "b"),),
            (relation("home", "a", "b", valid_to=6.0, is_retracted=True),),
            (HOME, relation("job", "a", "c"), Mention("e", "relation", "job", 0, 9)),
            (HOME, episode("g", 7.0, memory="older", version=2), relation("back", "a", "b"), BACK),
            (HOME, episode("f", 6.0, memory="older", version=2)),
            (HOME, episode("f", 6.0)),
        ],
        ids=["reopened", "retracted", "another fact holds", "said again", "by itself", "by no memory"],
    )
    def test_it_is_not_otherwise(self, store: Store, more: tuple[Any, ...]) -> None:
        numbers = add(store, written("older", "Ann is home"), written("newer", "Ann left"))
        put(store, *self.SAID, *more)
        assert not any(each.overtaken_by for each in store.statements("n", numbers).values())

    @pytest.mark.parametrize(
        ("valid_from", "begins"), [((None, 9.0), None), ((0.5, 9.0), None), ((9.0, 4.0), 4.0), ((9.0,), 9.0)]
    )
    def test_what_a_memory_announces_begins_with_its_first_fact(
        self, store: Store, valid_from: tuple[float | None, ...], begins: float | None
    ) -> None:
        """The memory was told at 1; what holds by then is no announcement, and what is retracted does not count."""
        first, second = add(store, written("older", "Ann is home", born_at=1.0), written("newer", "Ann left"))
        facts = [relation(f"r{number}", "a", "b", valid_from=time) for number, time in enumerate(valid_from)]
        facts.append(relation("wrong", "a", "c", valid_from=0.2, is_retracted=True))
        put(store, *self.SAID, *facts, *(Mention("e", "relation", fact.id, 0, 9) for fact in facts))
        assert store.announced("n", [first, second, 99]) == ({} if begins is None else {first: begins})
        assert store.announced("m", [first]) == {}

    def test_a_memory_is_as_well_when_a_link_says_so(self, store: Store) -> None:
        numbers = add(store, *(written(id_, f"Ann is at {id_}") for id_ in ("older", "newer", "newest", "other")))
        put(store, *self.SAID, self.HOME)
        with store.change_memories("n") as change:
            for link in (
                Link("newest", "older", SUPERSEDES),
                Link("newest", "other", CONFLICTS, 0.5, 8.0, RULE),
                Link("older", "other", CONFLICTS, DOUBT, 8.0, RULE),
                Link("other", "newest", CONFLICTS, DOUBT),
                Link("newer", "other", SUPERSEDES, 0.9, 9.0, RULE),
                Link("older", "newest", SUPERSEDES, 0.9, 9.0, RULE),
                Link("older", "newest", HOLDS_BESIDE),
                Link("other", "newer", "because"),
            ):
                change.link(link)

        def told(as_of: float | None = None) -> dict[str, tuple[set[str], set[str]]]:
            found = store.statements("n", numbers, as_of).values()
            return {each.id: (set(each.overtaken_by), set(each.judged)) for each in found}

        assert told() == {
            "older": ({"newer", "newest"}, set()),
            "newest": (set(), {"other"}),
            "newer": (set(), set()),
            "other": (set(), {"newest", "newer"}),
        }, "what a rule only doubts is not followed, what a person links is"
        assert told(8.5)["other"] == (set(), {"newest"}), "what was not yet judged is not known"
        assert told(8.5)["older"] == ({"newest"}, set()), "nor when the graph learned what it tells"


class TestHappenings:
    def test_they_come_as_they_were_recorded(self, store: Store) -> None:
        """Clocks go back; what undoes what is told by the order."""
        told = [Happening("entity", "a", at, what) for at, what in ((2.0, "created"), (1.0, "merged"), (2.0, "split"))]
        put(store, *told, Happening("relation", "a", 1.0, "ended"))
        put(store, told[0])
        assert store.graph("n").happenings("entity", "a") == [*told, told[0]]
        assert [each.what for each in store.graph("n").happenings("relation", "a")] == ["ended"]

    def test_they_can_be_erased(self, store: Store) -> None:
        """A reason may say what is to be forgotten."""
        put(store, Happening("entity", "a", 1.0, "created"), Happening("relation", "a", 1.0, "ended"))
        change(store, lambda graph: graph.drop(Happening, kind="entity", subject="a"))
        assert store.graph("n").happenings("entity", "a") == []
        assert len(store.graph("n").happenings("relation", "a")) == 1


def test_disputed_facts_come_by_dispute_oldest_first(store: Store) -> None:
    """Those that cannot all be true are shown beside each other."""
    put(
        store,
        relation("a", dispute="y", created_at=2.0),
        relation("b", dispute="x", created_at=3.0),
        relation("c", dispute="y", created_at=1.0, expired_at=5.0),
        relation("d"),
    )
    assert ids(store.graph("n").disputed()) == ["b", "c", "a"]
    assert store.graph("n").counts() == GraphCounts(relations=4, disputed=3)


class TestReservedNamespaces:
    def test_they_are_named_after_the_one_they_belong_to(self) -> None:
        """Whatever its name is."""
        for name in ("n", "", "\x1f", texts_of("n", "entity"), "Ü\ue000"):
            for kind in GRAPH_KINDS:
                assert is_reserved(texts_of(name, kind))
                assert namespace_of(texts_of(name, kind)) == name
        assert namespace_of("n") == "n"

    def test_users_do_not_see_them(self, store: Store) -> None:
        """A list of namespaces is of those that somebody made."""
        fill(store)
        assert store.namespaces() == ["n"]
        assert store.namespaces(with_texts=True) == [texts_of("n", "entity"), "n"]

    def test_their_texts_count_in_the_store_but_not_in_their_namespace(self, store: Store) -> None:
        """They are no memories and no files; the index holds them all the same."""
        add(store, written("a", "one"))
        fill(store)
        assert store.counts("n") == {
            "owners": 1,
            "passages": 1,
            "text_bytes": 3,
            "artifacts": 0,
            "memories": 1,
            "knowledge": 0,
        }
        assert store.counts() == {**store.counts("n"), "owners": 2, "passages": 3, "text_bytes": 14}

    def test_the_index_follows_them(self, store: Store) -> None:
        """They have numbers and changes like all others."""
        fill(store)
        [first, _] = store.entries_since(texts_of("n", "entity"), 0, 99)
        assert (first.namespace, first.kind, first.title, first.type, first.text) == (
            texts_of("n", "entity"),
            "entity",
            "other",
            "concept",
            "An other",
        )
        assert len(store.tail(texts_of("n", "entity"), 0)) == 2
        assert store.tail("n", 0) == []


@pytest.mark.parametrize(
    ("values", "claim"),
    [
        (
            [entity("a"), relation("r", "a", "b"), relation("s", "a", "b")],
            "relations whose target is gone: 2",
        ),
        ([Alias("a", "A", "a", 1.0)], "aliases whose entity is gone: 1"),
        ([entity("a", merged_into="b")], "entities whose merged_into is gone: 1"),
        ([entity("a"), Mention("e", "entity", "a", 0, 1)], "mentions whose episode is gone: 1"),
        (
            [episode("e"), entity("a"), Mention("e", "relation", "a", 0, 1)],
            "mentions whose subject is gone: 1",
        ),
        ([Happening("relation", "r", 1.0, "ended")], "happenings whose subject is gone: 1"),
    ],
)
def test_ids_that_lead_nowhere_are_told(store: Store, values: list[Entity], claim: str) -> None:
    """Whoever changes a graph must not leave such; `doctor` shows it."""
    put(store, *values, name="Ü\ue000")
    assert store.check() == [f"There are {claim}."]


def test_texts_of_what_is_gone_are_told(store: Store) -> None:
    """They would be found, and lead nowhere."""
    fill(store)
    put(store, entity("a"), episode("e"), entity("b"), name="whole")
    before = store.check()
    change(store, lambda graph: graph.put_relation(relation("other", "a", "é\x01"), [passage("x")]))
    assert store.check() == before
    store.put_owners(texts_of("n", "relation"), [OwnerWrite(Owner("stray", "relation"), ())])
    store.put_owners(texts_of("gone", "entity"), [OwnerWrite(Owner("other", "entity"), (passage("x"),))])
    assert store.check() == [*before, "There are texts of entities or relations that are gone: 2."]
    assert len(store.graph("n").list_relations(EVER)) == 3
