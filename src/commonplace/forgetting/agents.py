"""What of agents' knowledge a forgetting takes, and what of it is still there. It only reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from commonplace.text.within import strings

if TYPE_CHECKING:
    from commonplace.forgetting.choosing import Wanted
    from commonplace.store.contract import Store
    from commonplace.types import Owner
    from commonplace.types.knowledge import StoredKnowledge


def items_asked_for(store: Store, namespace: str, wanted: Wanted) -> dict[int, Owner]:
    """Return the items, by number, that an agent's name, an id or the time of their deletion asks for."""
    return {
        item.number: item.owner
        for item in all_items(store, namespace, wanted.agent)
        if (wanted.agent is not None)
        or item.owner.id in wanted.ids
        or (wanted.archived_by is not None and item.deleted_at is not None and item.deleted_at <= wanted.archived_by)
    }


def context_asked_for(store: Store, namespace: str, wanted: Wanted) -> tuple[str, ...]:
    """Return the agent's name where it has a context that goes with its knowledge."""
    if wanted.agent is None or store.knowledge(namespace).context(wanted.agent) is None:
        return ()
    return (wanted.agent,)


def all_items(store: Store, namespace: str, agent: str | None = None) -> list[StoredKnowledge]:
    """Return the items of an agent, or of all, by number, deleted ones too."""
    knowledge = store.knowledge(namespace)
    found = [*knowledge.items(agent), *knowledge.items(agent, deleted=True)]
    return sorted(found, key=lambda item: item.number)


def held_texts(store: Store, namespace: str) -> Iterator[str]:
    """Yield every text that the knowledge of a namespace holds, and those of contexts."""
    for item in all_items(store, namespace):
        yield from (item.owner.id, item.record.agent, item.record.content, item.record.metadata, item.record.embedder)
        yield from (item.record.digest, *strings(json.loads(item.record.metadata)))
    for context in store.knowledge(namespace).contexts():
        yield from (context.name, context.metadata, *strings(json.loads(context.metadata)))


def held_arrays(store: Store, namespace: str) -> Iterator[bytes]:
    """Yield the vectors and token ids that no list of the index has: own vectors, and those of deleted items."""
    for item in all_items(store, namespace):
        yield item.record.vector
        if item.deleted_at is not None:
            numbers = store.passages_of(namespace, [item.number])
            for tokens in store.tokens(namespace, numbers).values():
                yield from (tokens.token_ids, tokens.vector)
