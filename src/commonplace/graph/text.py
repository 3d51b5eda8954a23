"""Render the entities and facts of a graph as text within a token budget."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.formats.fence import CLOSING, OPENING, FenceItem, fence
from commonplace.graph.names import checked, normal

if TYPE_CHECKING:
    from datetime import datetime

    from commonplace.graph.views import EntityView, RelationView

CountTokens = Callable[[str], int]
RELATED: Final = "RELATED_TO"
_MAX_REPLACED, _MAX_NAMES = 120, 5


def describe(
    entities: Sequence[EntityView], facts: Sequence[RelationView], *, max_tokens: int, count: CountTokens
) -> tuple[str, tuple[EntityView, ...], tuple[RelationView, ...]]:
    """Return the text of as many entities and facts as fit, and these entities and facts; "" if none fits.

    Entities come first, then facts, both in their order; half of the budget is reserved for facts. The `count` of the
    tokens of a text must be subadditive over concatenation.
    """
    room = max_tokens - count(f"{OPENING}\n{CLOSING}")
    items: list[FenceItem] = []
    numbers = [0, 0]
    for part, listed in enumerate(([*map(entity_item, entities)], [*map(fact_item, facts)])):
        for item in listed:
            tokens = count(fence([item]).removeprefix(OPENING).removesuffix(CLOSING))
            if tokens > room // (2 if part == 0 and facts and numbers[0] else 1):
                break
            items.append(item)
            numbers[part] += 1
            room -= tokens
    return fence(items), tuple(entities[: numbers[0]]), tuple(facts[: numbers[1]])


def entity_item(view: EntityView) -> FenceItem:
    names = f" (also {', '.join(view.aliases[:_MAX_NAMES])})" if view.aliases else ""
    return FenceItem(f"entity:{view.uuid}", f"{view.name}{names}", f"{view.entity_type}, trust {view.trust:.2f}")


def fact_item(fact: RelationView) -> FenceItem:
    """Return the line of a fact: its sentence, its ends, when it holds, and whether it is disputed or retracted."""
    ends = f"{fact.source_name} {fact.relation_type} {fact.target_name}"
    parts = [ends, when(fact), f"trust {fact.trust:.2f}"]
    parts[2:2] = filter(None, (overtaken(fact), replaced(fact)))
    if fact.disputed:
        parts.insert(0, "disputed")
    if fact.retracted:
        parts.insert(0, "retracted")
    return FenceItem(f"fact:{fact.uuid}", fact.fact, ", ".join(parts))


def when(view: RelationView | EntityView) -> str:
    """Say when a fact holds or an entity is known to exist; "from DAY on" if it began after it was stated."""
    start, end = day(view.valid_from), day(view.valid_to)
    if start and end:
        return f"from {start} to {end}"
    if end:
        return f"until {end}"
    is_announced = view.valid_from is not None and view.valid_from > view.created_at
    return f"from {start} on" if is_announced else f"since {start}" if start else "at an unknown time"


def day(at: datetime | None) -> str:
    return "" if at is None else at.date().isoformat()


def overtaken(fact: RelationView) -> str:
    """Say what held before a fact, and when: `before: Boston, 2026-01-10 to 2026-06-01`; "" if nothing is known."""
    old = fact.attributes.get("overtook")
    if not isinstance(old, dict):
        return ""
    since, until = (str(old.get(name) or "")[:10] for name in ("valid_from", "valid_to"))
    return f"before: {old.get('target_name')}, {f'{since} to' if since else 'until'} {until}"


def replaced(fact: RelationView) -> str:
    """Quote the newer memory that may have replaced the one that states a fact; "" if there is none."""
    newer = fact.attributes.get("superseded_by")
    if not isinstance(newer, dict):
        return ""
    return f"perhaps out of date: “{textwrap.shorten(str(newer.get('content')), _MAX_REPLACED, placeholder=' …')}”"


def statement(
    source: object,
    target: object,
    fact: object,
    *,
    relation_type: str = RELATED,
    labels: tuple[str, str, str] = ("source", "target", "fact"),
) -> dict[str, str]:
    """Return a fact as an object for `add_episode` with the source "json".

    Args:
        fact: a sentence or a phrase; a relation that it states takes precedence over RELATED_TO.
        labels: the names of the first three parameters in error messages.

    Raises:
        UsageError: a name is invalid, both names mean one entity, or the fact is empty.
    """
    source_name, target_name = checked(labels[0], source), checked(labels[1], target)
    if normal(source_name) == normal(target_name):
        raise UsageError(f"{labels[0]} and {labels[1]} both mean {source_name!r:.60}", remedy="name two entities")
    if not isinstance(fact, str) or not fact.strip():
        raise UsageError(f"{labels[2]} is empty", remedy="state the relation in a few words")
    return {"source": source_name, "relation_type": relation_type, "target": target_name, "fact": fact.strip()}
