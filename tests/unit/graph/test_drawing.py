"""What a picture shows of a part of a graph."""

from __future__ import annotations

from datetime import UTC, datetime

from commonplace.formats.drawing import Edge, Node
from commonplace.graph.text import picture
from commonplace.graph.views import EntityView, RelationView, Subgraph

MADE = datetime(2026, 1, 1, tzinfo=UTC)
MARCH = datetime(2026, 3, 14, tzinfo=UTC)

ADA = EntityView("a", "Ada Marsh", "person", "Ada lives in Porto.", MADE, distance=0)
PORTO = EntityView("p", "Porto", "place", "", MADE, distance=1)
LISBON = EntityView("l", "Lisbon", "place", "", MADE, distance=1)
NOW_PORTO = RelationView("1", "a", "p", "LIVES_IN", "Ada lives in Porto.", MADE, valid_from=MARCH, disputed=True)
WAS_LISBON = RelationView("2", "a", "l", "LIVES_IN", "Ada lives in Lisbon.", MADE, valid_from=MADE, valid_to=MARCH)


def test_entities_are_nodes_and_facts_are_edges_with_their_times() -> None:
    drawn = picture(Subgraph("a", (ADA, PORTO), (NOW_PORTO,), is_capped=True), seen_at=MARCH.timestamp())
    assert drawn.nodes == (
        Node("a", "Ada Marsh", "person", is_centre=True, distance=0, summary="Ada lives in Porto."),
        Node("p", "Porto", "place", distance=1),
    )
    assert drawn.edges == (Edge("a", "p", "LIVES_IN", "Ada lives in Porto.", MARCH.timestamp(), is_disputed=True),)
    assert (drawn.title, drawn.as_of, drawn.is_capped) == ("Ada Marsh", None, True)


def test_a_fact_is_past_from_the_moment_at_which_it_ended() -> None:
    """Intervals are half-open: at their end they hold no longer."""
    found = Subgraph("a", (ADA, LISBON), (WAS_LISBON,))
    for seen_at, is_past in ((MARCH.timestamp() - 1, False), (MARCH.timestamp(), True)):
        [edge] = picture(found, seen_at=seen_at, as_of=seen_at).edges
        assert (edge.is_past, edge.valid_to) == (is_past, MARCH.timestamp())


def test_what_was_never_true_is_not_drawn_nor_what_only_it_led_to() -> None:
    retracted = RelationView("3", "a", "l", "LIVES_IN", "Ada lives in Lisbon.", MADE, retracted=True)
    drawn = picture(Subgraph("a", (ADA, PORTO, LISBON), (NOW_PORTO, retracted)), seen_at=0.0)
    assert [node.id for node in drawn.nodes] == ["a", "p"]
    assert len(drawn.edges) == 1


def test_an_entity_without_facts_stands_alone() -> None:
    assert [node.name for node in picture(Subgraph("a", (ADA,), ()), seen_at=0.0).nodes] == ["Ada Marsh"]
