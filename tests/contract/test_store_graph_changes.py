"""What every store promises of a graph that is written: whole changes with memories, numbers, texts, what is erased."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.contract.graphs import EVER, FULL_EPISODE, NOW, change, entity, episode, ids, put, relation, texts, whole
from tests.contract.memories import add, latest, written
from tests.contract.stores import NOTHING, SECOND, passage

from commonplace.errors import StoreError, UsageError
from commonplace.store.graph import GraphChange
from commonplace.store.schema import numbers_after, texts_of
from commonplace.store.store import Store
from commonplace.types import Embedding, Filter, NewPassage
from commonplace.types.graph import Alias, GraphCounts, Happening, Mention

ASKED = ["a", "b", "e", "r", "ann"]


class TestOneChange:
    def test_it_is_one_with_what_is_written_of_memories(self, store: Store) -> None:
        """A memory is acknowledged with what it was found to say, or not at all."""
        with store.change_memories("n") as under_way:
            number = under_way.add(written("m", "Ann uses Vim"), created_at=10.0)
            graph = under_way.graph
            graph.put(episode("e", memory="m", version=1))
            graph.put_entity(entity("a"), [passage("Ann")])
            graph.put_relation(relation("r"), [passage("Ann uses Vim")])
            assert store.graph("n").counts() == GraphCounts()
        assert (number, store.change()) == (1, 1)
        assert latest(store, "m").number == 1
        assert store.graph("n").counts() == GraphCounts(1, 1, 1)
        for name in ("n", texts_of("n", "entity"), texts_of("n", "relation")):
            assert [entry.namespace for entry in store.entries_since(name, 0, 1)] == [name]

    def test_it_reads_its_own_writes(self, store: Store) -> None:
        """Whether a name is known is decided while nothing can come between."""
        with store.change_memories("n") as under_way:
            graph = under_way.graph
            assert (graph.entities_by_name(["ann"]), graph.list_relations(NOW), list(graph.pairs(NOW))) == ({}, [], [])
            graph.put_entity(entity("a"))
            graph.put(Alias("a", "Ann", "ann", 1.0))
            graph.put_relation(relation("r"))
            assert ids(under_way.graph.entities_by_name(["ann"])["ann"]) == ["a"]
            assert list(graph.pairs(NOW)) == [("r", "a", "b")]
            assert graph.counts() == GraphCounts(entities=1, relations=1)
            graph.erase_relations(["r"])
            assert graph.relations_of(["a"], EVER) == {}

    def test_one_that_fails_leaves_nothing(self, store: Store) -> None:
        """Half of what an episode says would be worse than none."""
        put(store, episode("e"), entity("a"), relation("r"), Alias("a", "Ann", "ann", 1.0))
        before = whole(store.graph("n"), ASKED), store.change(), store.counts(), store.namespaces(with_texts=True)
        with pytest.raises(KeyError), store.change_memories("n") as under_way:
            graph = under_way.graph
            graph.put_entity(entity("a", "New"), [passage("New")])
            graph.put_relation(relation("r", expired_at=20.0), [passage("x")])
            graph.erase_episodes(["e"])
            graph.drop(Alias, entity="a", normal="ann")
            graph.put(Happening("entity", "a", 1.0, "renamed"))
            graph.put(Mention("e", "entity", "a", 0, 1))
            raise KeyError
        after = whole(store.graph("n"), ASKED), store.change(), store.counts(), store.namespaces(with_texts=True)
        assert after == before

    def test_one_that_is_over_refuses_everything(self, store: Store) -> None:
        """It would belong to no transaction."""
        with store.change_memories("n") as under_way:
            graph = under_way.graph
        acts: list[Callable[[], object]] = [
            lambda: graph.put_entity(entity("a")),
            lambda: graph.entities(["a"]),
            lambda: graph.erase_entities(["a"]),
            lambda: list(graph.pairs(NOW)),
            under_way.graph.counts,
        ]
        for act in acts:
            with pytest.raises(StoreError, match="this change of memories is over"):
                act()

    @pytest.mark.parametrize(
        "value",
        [
            episode("x"),
            entity("x"),
            relation("x"),
            Alias("x", "x", "x", 1.0),
            Mention("x", "entity", "x", 0, 1),
            Happening("entity", "x", 1.0, "created"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_whatever_is_written_takes_a_number_and_makes_the_namespace(self, store: Store, value: object) -> None:
        """Whoever keeps what it read of a graph can tell that it is old."""
        put(store, value)  # type: ignore[arg-type]
        assert (store.change(), store.namespaces()) == (1, ["n"])
        put(store, value)  # type: ignore[arg-type]
        assert store.change() == 2

    def test_what_deletes_nothing_takes_no_number(self, store: Store) -> None:
        """It changed nothing, and makes no namespace."""
        deeds: list[Callable[[GraphChange], object]] = [
            lambda graph: graph.erase_episodes(ASKED),
            lambda graph: graph.erase_entities(ASKED),
            lambda graph: graph.erase_relations(ASKED),
            lambda graph: graph.drop(Happening, kind="entity", subject="a"),
            lambda graph: graph.drop(Alias, entity="a", normal="ann"),
            lambda graph: graph.drop_mentions([Mention("e", "entity", "x", 0, 1)]),
            lambda graph: graph.put(),
        ]
        change(store, *deeds)
        assert (store.change(), store.namespaces()) == (0, [])
        put(store, episode("other"))
        change(store, *deeds)
        assert store.change() == 1


class TestTexts:
    def test_they_are_replaced_kept_or_taken_away(self, store: Store) -> None:
        """A fact is closed without being embedded again; one without words is not to be found."""

        def act(*passages: list[NewPassage] | None) -> dict[str, list[str]]:
            change(store, lambda graph: graph.put_relation(relation("r"), *passages))
            return texts(store)

        assert act([passage("one"), passage("two")])["relation"] == ["one", "two"]
        assert act()["relation"] == act(None)["relation"] == ["one", "two"]
        assert act([passage("three")])["relation"] == ["three"]
        assert store.deleted_since(texts_of("n", "relation"), 0, 99) == [SECOND + 1, SECOND + 2]
        assert act([]) == {"entity": [], "relation": []}
        assert store.counts() == NOTHING
        assert act([]) == {"entity": [], "relation": []}

    def test_they_belong_to_an_owner_with_the_id_of_what_they_tell_of(self, store: Store) -> None:
        """A hit leads to the fact, and filters of type, group and time choose among facts."""
        change(
            store,
            lambda graph: graph.put_relation(relation("r", group="team", valid_from=5.0), [passage("x")]),
            lambda graph: graph.put_entity(entity("r", "Ann", "person"), [passage("Ann")]),
        )
        [fact] = store.owners(texts_of("n", "relation"), [SECOND + 1]).values()
        [person] = store.owners(texts_of("n", "entity"), [numbers_after(3) + 1]).values()
        assert (fact.id, fact.kind, fact.title, fact.type, fact.tags, fact.at) == (
            "r",
            "relation",
            "",
            "USES",
            ("team",),
            5.0,
        )
        assert (person.id, person.kind, person.title, person.type, person.tags) == ("r", "entity", "Ann", "person", ())
        space = texts_of("n", "relation")
        assert store.matching_owners(space, Filter(as_of=9.0)) == []
        assert store.matching_owners(space, Filter(as_of=10.0, types=("USES",), tags=("team",))) == [SECOND + 1]

    def test_vectors_of_another_embedder_are_refused(self, store: Store) -> None:
        """As in every other write, before anything of it is done."""
        store.set_embedding(Embedding("e", "1", 8))
        with store.change_memories("n") as under_way:
            for put_it in (
                lambda graph: graph.put_entity(entity("a"), [passage("x")]),
                lambda graph: graph.put_relation(relation("r"), [passage("x")]),
            ):
                with pytest.raises(StoreError, match="has 4 dimensions, the store's embedder e has 8"):
                    put_it(under_way.graph)
        assert (store.change(), store.graph("n").counts()) == (0, GraphCounts())


class TestErasing:
    def test_an_episode_goes_with_its_mentions(self, store: Store) -> None:
        """What only it said is for others to erase."""
        put(store, episode("e"), episode("f"), entity("a"), Alias("a", "Ann", "ann", 1.0, "e"))
        put(store, Mention("e", "entity", "a", 0, 1), Mention("f", "entity", "a", 0, 1))
        with store.change_memories("n") as under_way:
            assert under_way.graph.erase_episodes(["e", "x", "e"]) == 1
        graph = store.graph("n")
        assert graph.mentions("entity", ["a"]) == {"a": [Mention("f", "entity", "a", 0, 1)]}
        assert (list(graph.episodes(["e", "f"])), list(graph.aliases(["a"]))) == (["f"], ["a"])

    def test_an_entity_goes_with_all_that_is_known_of_it(self, store: Store) -> None:
        """But for its relations, which are facts of others too."""
        hangs_on = [
            Alias("a", "Ann", "ann", 1.0),
            Mention("e", "entity", "a", 0, 1),
            Happening("entity", "a", 1.0, "created"),
        ]
        stays = [Mention("e", "relation", "a", 0, 1), Happening("relation", "a", 1.0, "ended"), relation("r")]
        put(store, episode("e"), entity("b"), *hangs_on, *stays)
        change(store, lambda graph: graph.put_entity(entity("a"), [passage("Ann")]))
        with store.change_memories("n") as under_way:
            assert under_way.graph.erase_entities(["a", "a", "x"]) == 1
        graph = store.graph("n")
        assert (list(graph.entities(["a", "b"])), graph.aliases(["a"])) == (["b"], {})
        assert (graph.mentions("entity", ["a"]), graph.happenings("entity", "a")) == ({}, [])
        assert len(graph.mentions("relation", ["a"])) == len(graph.happenings("relation", "a")) == 1
        assert ids(graph.relations_of(["a"], NOW)["a"]) == ["r"]
        assert texts(store)["entity"] == []
        assert store.deleted_since(texts_of("n", "entity"), 0, 99) == [SECOND + 1]

    def test_a_relation_goes_with_all_that_is_known_of_it(self, store: Store) -> None:
        """Nothing of a fact may be left when it is forgotten."""
        put(
            store,
            episode("e"),
            Mention("e", "relation", "r", 0, 1),
            Mention("e", "entity", "r", 0, 1),
            Happening("relation", "r", 1.0, "created"),
            relation("s"),
        )
        change(store, lambda graph: graph.put_relation(relation("r"), [passage("x")]))
        with store.change_memories("n") as under_way:
            assert under_way.graph.erase_relations(["r", "x"]) == 1
        graph = store.graph("n")
        assert (graph.mentions("relation", ["r"]), graph.happenings("relation", "r")) == ({}, [])
        assert ids(graph.list_relations(EVER)) == ["s"]
        assert (texts(store)["relation"], list(graph.mentions("entity", ["r"]))) == ([], ["r"])

    def test_what_hangs_on_an_id_goes_also_where_nothing_has_it(self, store: Store) -> None:
        """As with memories: to erase is to leave nothing."""
        put(store, Alias("a", "A", "a", 1.0), Mention("e", "relation", "r", 0, 1), Happening("entity", "a", 1.0, "x"))
        with store.change_memories("n") as under_way:
            graph = under_way.graph
            assert (graph.erase_entities(["a"]), graph.erase_relations(["r"])) == (0, 0)
        assert store.check() == []
        assert store.change() == 2

    def test_a_namespace_goes_with_its_graph_and_its_texts(self, store: Store) -> None:
        """Nothing of it may be found; others keep theirs."""
        add(store, written("m", "one"), name="n")
        for name in ("n", "other"):
            put(store, FULL_EPISODE, episode("e"), Alias("a", "Ann", "ann", 1.0), name=name)
            put(store, Mention("e", "entity", "a", 0, 1), Happening("entity", "a", 1.0, "created"), name=name)
            change(
                store,
                lambda graph: graph.put_relation(relation("r", "a", "a"), [passage("x")]),
                lambda graph: graph.put_entity(entity("a"), [passage("Ann"), passage("she")]),
                name=name,
            )
        kept = whole(store.graph("other"), ASKED)
        heads = {name: head for name, head in store.heads().items() if name.endswith("other")}
        assert store.erase_namespace("n") == 1
        assert store.heads() == heads
        assert store.namespaces(with_texts=True) == [
            texts_of("other", "entity"),
            texts_of("other", "relation"),
            "other",
        ]
        assert whole(store.graph("n"), ASKED) == whole(store.graph("never"), ASKED)
        assert whole(store.graph("other"), ASKED) == kept
        assert store.check() == []
        put(store, entity("b"))
        assert store.graph("n").counts() == GraphCounts(entities=1)
        assert store.graph("n").happenings("entity", "a") == []

    def test_a_namespace_that_has_nothing_but_a_graph_goes_too(self, store: Store) -> None:
        """No owner goes, and yet it is a change."""
        put(store, entity("a"))
        assert (store.erase_namespace("n"), store.change(), store.namespaces()) == (0, 0, [])


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda graph: graph.put(episode("e", math.nan)), "a time of episode 'e' is not a number"),
        (lambda graph: graph.put(episode("e", trust=math.nan)), "the trust of episode 'e' is not a number"),
        (lambda graph: graph.put(episode("e", version=2**63)), "in episode 'e' needs more than 64 bits"),
        (lambda graph: graph.put_entity(entity("a", valid_to=math.nan)), "a time of entity 'a' is not a number"),
        (lambda graph: graph.put_entity(entity("a", trust=math.nan)), "the trust of entity 'a' is not a number"),
        (lambda graph: graph.put_relation(relation("r", stated_to=math.nan)), "a time of relation 'r' is not a number"),
        (
            lambda graph: graph.put_relation(relation("r", confidence=math.nan)),
            "the confidence of relation 'r' is not a number",
        ),
        (
            lambda graph: graph.put_relation(
                relation("r"), [replace(passage("x"), chunk=replace(passage("x").chunk, end_line=2**63))]
            ),
            "in relation 'r' needs more than 64 bits",
        ),
        (lambda graph: graph.put(Alias("a", "A", "a", math.nan)), "a time of alias.* is not a number"),
        (
            lambda graph: graph.put(Mention("e", "entity", "a", 0, 1), Mention("e", "entity", "a", 0, 2**63)),
            "in mention.* needs more than 64 bits",
        ),
        (
            lambda graph: graph.put(Happening("entity", "a", math.nan, "x")),
            "a time of happening.* is not a number",
        ),
    ],
)
def test_what_no_store_can_keep_is_refused(store: Store, act: Callable[[GraphChange], object], told: str) -> None:
    """Before anything of it is written; the change may go on."""
    with store.change_memories("n") as under_way:
        with pytest.raises(UsageError, match=told):
            act(under_way.graph)
        under_way.graph.put_entity(entity("other"))
    assert store.graph("n").counts() == GraphCounts(entities=1)
    assert (store.graph("n").mentioned(["e"]), store.change()) == ({}, 1)


def test_times_without_end_are_times(store: Store) -> None:
    """As everywhere in a store."""
    fact = relation("r", created_at=-math.inf, valid_from=-math.inf, valid_to=math.inf, expired_at=math.inf)
    put(store, fact, episode("e", math.inf))
    assert store.graph("n").relations(["r"]) == {"r": fact}
    assert store.graph("n").list_relations(NOW) == []
    assert store.graph("n").list_relations(replace(NOW, known_at=1e300)) == [fact]


class TestLooseEnds:
    def test_what_hangs_on_nothing_is_reported(self, store: Store) -> None:
        """Whoever wrote a graph by other means may have left it so."""
        put(store, episode("e"), entity("a"), relation("r", "a", "a"))
        put(store, Alias("a", "A", "a", 1.0), Mention("e", "entity", "a", 0, 1), Happening("relation", "r", 1.0, "x"))
        put(
            store,
            Alias("gone", "A", "a", 1.0),
            Mention("gone", "entity", "a", 0, 1),
            Mention("e", "relation", "gone", 0, 1),
        )
        put(store, Happening("entity", "gone", 1.0, "x"), Happening("relation", "a", 1.0, "x"))
        assert len(store.check()) == 4
