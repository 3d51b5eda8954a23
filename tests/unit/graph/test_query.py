"""The graph as `engine.graph` answers: finding, looking around, going through time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import START, Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.fence import unfence
from commonplace.graph.query import GraphReader, TextHits
from commonplace.graph.views import QueryFilters
from commonplace.types.graph import GraphCounts


@pytest.fixture
def book(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    """A graph in which Mira moves, and files are related."""
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=clock) as engine:
        graph = engine.graph
        graph.add_episode("Mira Okafor lives in Berlin.", reference_time="2026-01-01", group_id="people")
        graph.add_episode("Mira works for Acme.", reference_time="2026-01-01", group_id="people")
        graph.add_episode("auth.ts depends on token.ts. token.ts uses Redis.", reference_time="2026-01-01")
        clock.move(days=10)
        graph.add_episode("Mira moved to Munich in February.", reference_time="2026-03-10")
        yield engine


def test_facts_are_found_by_their_words_best_first(book: Engine) -> None:
    found = book.graph.search_edges("what does auth.ts depend on")
    assert found[0].fact == "auth.ts depends on token.ts."
    scores = [each.score for each in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_what_has_ended_is_found_only_where_it_is_asked_for(book: Engine) -> None:
    graph = book.graph
    assert [each.target_name for each in graph.search_edges("where Mira lives", relation_types=["LIVES_IN"])] == [
        "Munich"
    ]
    past = graph.search_edges("where Mira lives", relation_types=["LIVES_IN"], include_past=True)
    assert {each.target_name for each in past} == {"Berlin", "Munich"}


def test_what_was_true_then_is_not_what_was_known_then(book: Engine) -> None:
    """On 15 February she lived in Munich, as we know now; until 12 March we thought it was Berlin."""
    graph = book.graph

    def living(**values: object) -> list[tuple[str, str | None]]:
        found = graph.search_edges("where Mira lives", relation_types=["LIVES_IN"], **values)  # type: ignore[arg-type]
        return [(each.target_name, each.to_dict()["valid_to"]) for each in found]

    before = START.replace(day=5)
    assert living(valid_at="2026-02-15") == [("Munich", None)]
    assert living(valid_at="2026-01-15") == [("Berlin", "2026-02-01T00:00:00Z")]
    assert living(as_of=before) == [("Berlin", None)]
    assert living(valid_at="2026-02-15", as_of=before) == [("Berlin", None)]
    assert living(as_of="2026-03-01") == []


def test_the_time_may_be_said_in_words(book: Engine) -> None:
    found = book.graph.search_edges("where Mira lives", relation_types=["LIVES_IN"], valid_at="last January")
    assert [each.target_name for each in found] == ["Berlin"]
    with pytest.raises(UsageError):
        book.graph.search_edges("Mira", as_of="one day or another")


def test_entities_are_found_by_name_and_by_their_facts(book: Engine) -> None:
    graph = book.graph
    assert graph.search_entities("Mira")[0].name == "Mira Okafor"
    assert graph.search_entities("auth dependencies")[0].name == "auth.ts"
    assert {each.name for each in graph.search_entities("Mira", entity_types=["place"])} <= {"Munich", "Berlin"}
    found = graph.search_entities("Mira")[0]
    assert found.summary == "Mira moved to Munich in February. Mira works for Acme."


def test_entities_are_found_by_the_facts_that_held_then(book: Engine) -> None:
    def places(**values: object) -> list[tuple[str, str]]:
        found = book.graph.search_entities("where does Mira live", entity_types=["place"], **values)  # type: ignore[arg-type]
        return [(each.name, each.summary) for each in found]

    assert places() == [("Munich", "Mira moved to Munich in February.")]
    assert places(valid_at="2026-01-15") == [("Berlin", "Mira Okafor lives in Berlin.")]
    assert [each.name for each in book.graph.search_entities("Munich", valid_at="2026-01-15")][:1] == ["Munich"]


def test_groups_are_labels_that_narrow_a_search(book: Engine) -> None:
    graph = book.graph
    assert {each.group_id for each in graph.search_edges("auth.ts depends", group_ids=["people"])} <= {"people"}
    assert [each.target_name for each in graph.search_edges("Mira works", group_ids=["people"])] == ["Acme"]
    assert graph.search_entities("auth.ts", group_ids=["nobody"]).entities == ()
    assert [each.group_id for each in graph.episodes(group_ids=["people"])] == ["people", "people"]


def test_filters_apply_before_the_limit(book: Engine) -> None:
    for number in range(60):
        book.graph.add_episode(f"part_{number}.py uses Redis.")
    book.graph.add_triplet("Redis", "IMPLEMENTS", "RESP", fact="Redis implements its own protocol")
    found = book.graph.search_edges("Redis uses", 1, relation_types=["IMPLEMENTS"])
    assert [each.relation_type for each in found] == ["IMPLEMENTS"]


def test_what_is_near_to_the_centre_comes_first(book: Engine) -> None:
    graph = book.graph
    graph.add_triplet("billing.py", "USES", "Redis", fact="billing.py uses Redis")
    graph.add_triplet("mail.py", "USES", "Kafka", fact="mail.py uses Kafka")
    plain = {each.fact: each.score for each in graph.search_edges("uses")}
    near = {each.fact: each.score for each in graph.search_edges("uses", center_node_uuid="mail.py")}
    assert near["mail.py uses Kafka"] > plain["mail.py uses Kafka"]
    assert near["billing.py uses Redis"] == plain["billing.py uses Redis"]
    plain = {each.name: each.score for each in graph.search_entities("uses")}
    near = {each.name: each.score for each in graph.search_entities("uses", center_node_uuid="mail.py")}
    assert near["mail.py"] > plain["mail.py"]
    assert near["billing.py"] == plain["billing.py"]


def test_a_query_about_nothing_finds_nothing(book: Engine) -> None:
    assert book.graph.search_edges("zebra crossing paint").relations == ()
    with pytest.raises(UsageError):
        book.graph.search_edges("  ")
    with pytest.raises(UsageError):
        book.graph.search_entities("Mira", 0)


def test_the_neighbourhood_has_distances_and_what_lies_between(book: Engine) -> None:
    near = book.graph.neighbourhood("auth.ts")
    assert [(each.name, each.distance) for each in near.entities] == [("auth.ts", 0), ("token.ts", 1), ("Redis", 2)]
    assert [each.relation_type for each in near.relations] == ["DEPENDS_ON", "USES"]
    assert not near.is_capped
    one = book.graph.neighbourhood("auth.ts", 1, 2)
    assert [each.name for each in one.entities] == ["auth.ts", "token.ts"]
    assert {each.name for each in book.graph.neighbourhood("Mira").entities} == {"Mira Okafor", "Acme", "Munich"}
    then = book.graph.neighbourhood("Mira", valid_at="2026-01-15")
    assert {each.name for each in then.entities} == {"Mira Okafor", "Acme", "Berlin"}


def test_a_ring_and_a_hub_end(book: Engine) -> None:
    graph = book.graph
    for one, other in (("a.py", "b.py"), ("b.py", "c.py"), ("c.py", "a.py")):
        graph.add_triplet(one, "DEPENDS_ON", other)
    for number in range(120):
        graph.add_triplet("a.py", "USES", f"tool number {number}")
    near = graph.neighbourhood("b.py", 4, 500)
    assert near.is_capped
    assert len(near.entities) <= 500
    assert [each.name for each in graph.path("c.py", "b.py").entities] == ["c.py", "b.py"]


def test_the_shortest_way_between_two(book: Engine) -> None:
    graph = book.graph
    way = graph.path("Redis", "auth.ts")
    assert [each.name for each in way.entities] == ["Redis", "token.ts", "auth.ts"]
    assert [each.fact for each in way.relations] == ["token.ts uses Redis.", "auth.ts depends on token.ts."]
    assert graph.path("Mira", "auth.ts").entities == ()
    assert [each.name for each in graph.path("Mira", "Mira").entities] == ["Mira Okafor"]
    assert graph.path("Redis", "auth.ts", max_depth=1).entities == ()


def test_a_timeline_tells_what_began_and_ended(book: Engine) -> None:
    entries = book.graph.timeline("Mira").entries
    told = [(each.what, each.relation.target_name, str(each.at)[:10]) for each in entries]
    assert sorted(told, key=lambda each: (each[2], each)) == [
        ("began", "Acme", "2026-01-01"),
        ("began", "Berlin", "2026-01-01"),
        ("began", "Munich", "2026-02-01"),
        ("ended", "Berlin", "2026-02-01"),
    ]


def test_what_began_at_one_time_stands_by_its_words_in_a_timeline(book: Engine) -> None:
    """Ids are drawn by chance: ordered by them, the same episodes would read differently each time they are told."""
    for tool in ("Redis", "Kafka", "Stripe", "Django", "Postgres", "Celery"):
        book.graph.add_episode(f"billing uses {tool}.", reference_time="2026-01-01")
    told = [each.relation.target_name for each in book.graph.timeline("billing").entries]
    assert told == ["Celery", "Django", "Kafka", "Postgres", "Redis", "Stripe"]


def test_the_context_is_fenced_dated_and_within_its_budget(book: Engine) -> None:
    graph = book.graph
    for place in ("Acme", "Globex"):
        graph.add_episode(f"Tom works for {place}.", reference_time="2026-02-01")
    context = graph.build_context(["Mira", "Tom", "nobody"], query="where Mira lives")
    assert context.missing == ("nobody",)
    assert context.facts[0].fact == "Mira moved to Munich in February."
    assert (
        'label="Mira Okafor LIVES_IN Munich, since 2026-02-01, before: Berlin, 2026-01-01 to 2026-02-01, trust 0.80"'
        in context.text
    )
    assert 'label="disputed, Tom WORKS_FOR Acme, since 2026-02-01, trust 0.80"' in context.text
    assert "Mira moved to Munich in February." in unfence(context.text).recalled
    small = graph.build_context(["Mira", "Tom"], max_tokens=150)
    assert 0 < small.tokens <= 150
    assert len(small.facts) < len(context.facts)
    assert graph.build_context(["nobody"]).text == ""
    assert len(graph.build_context(["Mira"], 1).facts) == 1
    with pytest.raises(UsageError, match="nothing is asked for"):
        graph.build_context([])


def test_a_context_of_another_time(book: Engine) -> None:
    facts = book.graph.build_context(["Mira"], valid_at="2026-01-15").facts
    assert {each.target_name for each in facts} == {"Acme", "Berlin"}


def test_an_entity_is_named_by_its_id_or_any_name(book: Engine) -> None:
    graph = book.graph
    mira = graph.entity("Mira Okafor")
    assert mira == graph.entity(mira.uuid) == graph.entity("mira okafor")
    assert (mira.entity_type, mira.aliases) == ("person", ("Mira",))
    graph.add_triplet("Mercury", "USES", "Redis", source_type="project")
    graph.add_triplet("Mercury", "LOCATED_IN", "Space", source_type="place")
    with pytest.raises(NotFoundError, match="may mean 2 entities"):
        graph.entity("Mercury")


def test_communities_are_what_hangs_together(book: Engine) -> None:
    found = book.graph.communities()
    assert [(each.size, each.facts) for each in found] == [(3, 2), (3, 2)]
    assert {frozenset(member.name for member in each.entities) for each in found} == {
        frozenset({"auth.ts", "token.ts", "Redis"}),
        frozenset({"Mira Okafor", "Acme", "Munich"}),
    }
    assert found == book.graph.communities()


def test_what_a_graph_holds_is_counted(book: Engine) -> None:
    assert book.graph.counts() == GraphCounts(episodes=4, entities=7, relations=5, disputed=0)


def test_what_is_to_end_later_holds_until_then(book: Engine, clock: Clock) -> None:
    graph = book.graph
    graph.add_triplet("Mira", "LIVES_IN", "Vienna", valid_from="2026-06-01")
    living = [each.target_name for each in graph.search_edges("Mira lives", relation_types=["LIVES_IN"])]
    assert sorted(living) == ["Munich", "Vienna"]
    assert "Munich" in {each.name for each in graph.neighbourhood("Mira").entities}
    clock.move(days=120)
    assert [each.target_name for each in graph.search_edges("Mira", relation_types=["LIVES_IN"])] == ["Vienna"]


def test_the_graph_of_a_store_that_is_empty_answers(tmp_path: Path) -> None:
    with commonplace.open(tmp_path, embedder="hashing") as empty:
        assert empty.graph.search_edges("anything").relations == ()
        assert empty.graph.search_entities("anything").entities == ()
        assert (empty.graph.communities(), empty.graph.disputes(), empty.graph.episodes()) == ([], [], [])
        assert empty.graph.build_context(["anything"]).text == ""
        assert empty.graph.counts() == GraphCounts()


# Finding in a graph: what becomes of the order in which a search brings texts.

SAID = "auth.ts depends on token.ts. token.ts depends on clock.ts. clock.ts depends on zone.ts."


@pytest.mark.parametrize("is_reversed", [False, True])
def test_facts_of_one_score_keep_the_order_of_the_search(tmp_path: Path, is_reversed: bool) -> None:
    """A search gives what a worse rank must not overtake the score of that one: ids would shuffle them again."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        facts = sorted((each.uuid for each in book.graph.add_episode(SAID).relations), reverse=is_reversed)
        assert len(facts) == 3
        search = dict.fromkeys(facts, 0.7)
        runtime, wanted = book._runtime.graph_runtime(False), QueryFilters(book._runtime.now())
        reader = GraphReader(runtime, lambda *_: TextHits(search), lambda *_: "", wanted, lambda _: {})
        found = reader.search_relations("what depends on what", 10)
        assert [each.uuid for each in found] == facts
