"""Give the parts of a graph one by one, in an order in which what one names comes before it. It writes no file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.errors import StoreDamagedError
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.store.graph_contract import GraphReading
    from commonplace.types.graph import Entity, Mention, Subject

_AT_ONCE = 500
_MOST_PAGES = 20
"""Each page costs a look at all before it."""

Value = TypeVar("Value")


def graph_lines(graph: GraphReading) -> Iterator[dict[str, Any]]:
    """Yield the entries of a line for every episode, entity and fact.

    What leads nowhere is left out: mentions in episodes that are gone, and of what is gone.

    Raises:
        StoreDamagedError: what should be a JSON object is none.
    """
    total = graph.counts()
    for episodes in _pages(graph.list_episodes, GraphFilter(), total.episodes):
        for episode in episodes:
            yield {"type": "episode", "episode": episode}
    for entities in _entities(graph, total.entities):
        ids = [entity.id for entity in entities]
        aliases, mentions = graph.aliases(ids), _mentions(graph, "entity", ids)
        for entity in entities:
            yield _checked(
                {
                    "type": "entity",
                    "entity": entity,
                    "aliases": aliases.get(entity.id, []),
                    "mentions": mentions.get(entity.id, []),
                    "happenings": graph.happenings("entity", entity.id),
                },
                entity.attributes,
            )
    for relations in _pages(graph.list_relations, GraphFilter(with_past=True), total.relations):
        mentions = _mentions(graph, "relation", [relation.id for relation in relations])
        for relation in relations:
            yield _checked(
                {
                    "type": "relation",
                    "relation": relation,
                    "mentions": mentions.get(relation.id, []),
                    "happenings": graph.happenings("relation", relation.id),
                },
                relation.attributes,
            )


def _entities(graph: GraphReading, total: int) -> Iterator[Sequence[Entity]]:
    """Yield all entities, those that were merged into others after these."""
    merged: list[Entity] = []
    for page in _pages(graph.list_entities, GraphFilter(with_past=True), total):
        merged += (entity for entity in page if entity.merged_into)
        yield [entity for entity in page if not entity.merged_into]
    waiting = {entity.id for entity in merged}
    while merged:
        ready = [entity for entity in merged if entity.merged_into not in waiting] or merged
        for begin in range(0, len(ready), _AT_ONCE):
            yield ready[begin : begin + _AT_ONCE]
        waiting.difference_update(entity.id for entity in ready)
        merged = [entity for entity in merged if entity.id in waiting]


def _mentions(graph: GraphReading, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
    found = graph.mentions(kind, ids)
    episodes = graph.episodes(list({mention.episode for some in found.values() for mention in some}))
    return {id_: [mention for mention in some if mention.episode in episodes] for id_, some in found.items()}


def _pages(read: Callable[..., list[Value]], wanted: GraphFilter, total: int) -> Iterator[list[Value]]:
    size = max(_AT_ONCE, -(-total // _MOST_PAGES))
    offset = 0
    while page := read(wanted, limit=size, offset=offset):
        yield page
        offset += size


def _checked(entries: dict[str, Any], attributes: str) -> dict[str, Any]:
    try:
        for text in (attributes, *(happening.detail for happening in entries["happenings"])):
            json.loads(text).keys()
    except (ValueError, AttributeError) as error:
        what = entries["type"]
        raise StoreDamagedError(
            f"the attributes or the history of {what} {entries[what].id!r:.80} are no JSON object",
            remedy="forget it, or restore a backup",
        ) from error
    return entries
