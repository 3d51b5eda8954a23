"""The text of entities and facts that an agent is given."""

from __future__ import annotations

from datetime import UTC, datetime

from commonplace.graph.text import describe
from commonplace.graph.views import EntityView, RelationView

AT = datetime(2026, 1, 1, tzinfo=UTC)
ENTITIES = [EntityView(f"e{number}", f"Mira {number}", "person", "", AT) for number in range(3)]


def test_the_tokens_of_each_text_are_counted_once() -> None:
    """Counting them is what describing takes its time for."""
    fact = RelationView(
        uuid="f",
        source_node_uuid="e0",
        target_node_uuid="e1",
        source_name="Mira 0",
        target_name="Mira 1",
        relation_type="KNOWS",
        fact="Mira 0 knows Mira 1",
        created_at=AT,
    )
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    text, entities, facts = describe(ENTITIES, [fact], max_tokens=1_000, count=count)
    assert (list(entities), list(facts)) == (ENTITIES, [fact])
    assert len(counted) == len(set(counted)) == 1 + len(ENTITIES) + 1
    assert all(each.name in text for each in ENTITIES)
