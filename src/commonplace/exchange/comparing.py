"""Say what an item is to a store: new, there already, or there with other content. It reads, and writes nothing."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.exchange import graph_comparing
from commonplace.exchange.graph_comparing import Outcome
from commonplace.exchange.items import FactItem, Item, LinkItem, MemoryItem, OwnerItem
from commonplace.exchange.knowledge_items import (
    ContextItem,
    KnowledgeItem,
    items_by_id,
    outcome_of_context,
    outcome_of_item,
)
from commonplace.exchange.ledger_items import IssueItem, outcome_of_issue
from commonplace.graph.naming import normal
from commonplace.types import KINDS, Chunk, Filter, Kind

if TYPE_CHECKING:
    from commonplace.exchange.graph_items import GraphItem
    from commonplace.store.contract import Store
    from commonplace.store.graph_contract import GraphReading
    from commonplace.types import Link, MemoryRecord, Owner, StoredMemory
    from commonplace.types.graph import Entity
    from commonplace.types.knowledge import StoredKnowledge

_AT_ONCE = 500


def outcome_of(item: MemoryItem, known: StoredMemory | None) -> Outcome:
    """Compare what two memories of one id say: the words and what was said about them, not how they were used since."""
    if known is None:
        return "added"
    same = _said(item.latest.owner, item.latest.record) == _said(known.owner, known.record)
    return "unchanged" if same else "conflict"


class Known:
    """What a namespace holds, as far as items are compared with it."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._store = store
        self._namespace = namespace

    def has_memory(self, id_: str) -> bool:
        """Return whether there is a memory of that id, live or archived."""
        return self._store.memory(self._namespace, id_) is not None

    def has_entity(self, id_: str) -> bool:
        """Return whether there is an entity of that id, be it merged into another."""
        return id_ in self._graph.entities([id_])

    def has_episode(self, id_: str) -> bool:
        """Return whether there is an episode of that id."""
        return id_ in self._graph.episodes([id_])

    def has_namesake(self, entity: Entity) -> bool:
        """Return whether another live entity has the name of a live one."""
        form = normal(entity.name)
        return entity.expired_at is None and any(
            each.id != entity.id for each in self._graph.named([form]).get(form, ())
        )

    def outcome(self, item: Item) -> Outcome:
        """Return what an item is to the store.

        Raises:
            UsageError: it cannot be kept beside what is there.
        """
        if isinstance(item, MemoryItem):
            return self._outcome_of_memory(item)
        if isinstance(item, LinkItem):
            link = item.link
            known = self._links.get((link.source, link.target, link.type))
            return "added" if known is None else "unchanged" if known.strength == link.strength else "conflict"
        if isinstance(item, FactItem):
            return "unchanged" if graph_comparing.is_said(self._graph, item.fact) else "added"
        if isinstance(item, KnowledgeItem):
            return self._outcome_of_knowledge(item)
        if isinstance(item, ContextItem | IssueItem):
            return self._outcome_of_agents(item)
        return self._outcome_of_owner(item) if isinstance(item, OwnerItem) else self._outcome_of_part(item)

    def _outcome_of_part(self, item: GraphItem) -> Outcome:
        return graph_comparing.outcome_of(self._graph, item)

    def _outcome_of_memory(self, item: MemoryItem) -> Outcome:
        known = self._store.memory(self._namespace, item.id)
        if known is None and self._store.places(self._namespace, "memory", [item.id]):
            raise UsageError(f"a document of the kind memory has the id {item.id!r:.80}", remedy="give it another one")
        return outcome_of(item, known)

    def _outcome_of_agents(self, item: ContextItem | IssueItem) -> Outcome:
        if isinstance(item, IssueItem):
            return outcome_of_issue(item, self._store.ledger(self._namespace))
        return outcome_of_context(item, self._store.knowledge(self._namespace).context(item.context.name))

    def _outcome_of_knowledge(self, item: KnowledgeItem) -> Outcome:
        known = self._knowledge.get(item.id)
        if known is None and self._store.places(self._namespace, "knowledge", [item.id]):
            raise UsageError(f"a document of the kind knowledge has the id {item.id!r:.80}", remedy="forget that one")
        return outcome_of_item(item, known)

    def _outcome_of_owner(self, item: OwnerItem) -> Outcome:
        owner = item.owner
        if owner.kind == "memory" and self.has_memory(owner.id):
            raise UsageError(f"a memory has the id {owner.id!r:.80}", remedy="give the document another one")
        by_id = self._numbers.get((owner.kind, "id", owner.id))
        by_path = self._numbers.get((owner.kind, "path", owner.path)) if owner.path else None
        if by_id is None and by_path is None:
            return "added"
        if by_id is None or by_path not in (None, by_id):
            return "conflict"
        same = self._store.owners(self._namespace, [by_id]).get(by_id) == owner and self._chunks(by_id) == item.chunks
        return "unchanged" if same else "conflict"

    def _chunks(self, number: int) -> tuple[Chunk, ...]:
        found = self._store.passages(self._namespace, self._store.passages_of(self._namespace, [number]))
        return tuple(passage.chunk for passage in sorted(found.values(), key=lambda passage: passage.ordinal))

    @cached_property
    def _knowledge(self) -> dict[str, StoredKnowledge]:
        return items_by_id(self._store.knowledge(self._namespace))

    @cached_property
    def _graph(self) -> GraphReading:
        return self._store.graph(self._namespace)

    @cached_property
    def _links(self) -> dict[tuple[str, str, str], Link]:
        return {(link.source, link.target, link.type): link for link in self._store.links(self._namespace)}

    @cached_property
    def _numbers(self) -> dict[tuple[Kind, str, str], int]:
        """Owner numbers by kind and id, and by kind and path."""
        found: dict[tuple[Kind, str, str], int] = {}
        numbers = self._store.matching_owners(self._namespace, Filter(kinds=KINDS))
        for begin in range(0, len(numbers), _AT_ONCE):
            for number, owner in self._store.owners(self._namespace, numbers[begin : begin + _AT_ONCE]).items():
                found[owner.kind, "id", owner.id] = number
                if owner.path:
                    found[owner.kind, "path", owner.path] = number
        return found


def _said(owner: Owner, record: MemoryRecord) -> tuple[object, ...]:
    about = (record.category, record.entities, record.source, record.origin, record.derived_from)
    metadata = json.dumps(json.loads(record.metadata), sort_keys=True)
    return (record.content, metadata, *about, owner.tags, owner.session, owner.at, owner.title, owner.summary)
