"""Small items of agents' knowledge for the contract of stores."""

from __future__ import annotations

from typing import Any

from tests.contract.stores import UUID, passage

from commonplace.store.store import Store
from commonplace.types import Owner
from commonplace.types.knowledge import KnowledgeRecord, KnowledgeWrite

FULL = KnowledgeRecord(
    agent="Travel Agent",
    content="cityName: Seoul",
    metadata='{"cityName":"Seoul"}',
    digest="ab" * 32,
    embedder="own@1/4",
    vector=b"\x7f\x00\x81\x40",
)


def item(id_: str = UUID, agent: str = "a", content: str = "text", **fields: Any) -> KnowledgeWrite:
    """Return an item with one passage, its content."""
    return KnowledgeWrite(Owner(id_, "knowledge"), (passage(content),), KnowledgeRecord(agent, content, **fields))


def put(
    store: Store, *writes: KnowledgeWrite, name: str = "n", at: float = 10.0, until: float | None = None
) -> list[int]:
    """Put items in one change and return their numbers."""
    with store.change_memories(name) as change:
        return [change.knowledge.put(write, created_at=at, updated_at=at, deleted_at=until) for write in writes]


def contents(store: Store, agent: str | None = None, *, deleted: bool = False, name: str = "n") -> list[str]:
    """Return the texts of items, by number."""
    return [each.record.content for each in store.knowledge(name).items(agent, deleted=deleted)]
