"""Values of agents' knowledge.

An item is one map of an agent's knowledge: an owner of the kind "knowledge" with passages, and a record.
"""

from __future__ import annotations

from commonplace.dataclasses import dataclass
from commonplace.types import NewPassage, Owner


@dataclass(frozen=True, slots=True)
class KnowledgeRecord:
    """The data of an item besides its owner and passages.

    Attributes:
        agent: the agent whose knowledge it is.
        content: the text of the map, by which it is found.
        metadata: the map itself, a JSON object as text, keys sorted.
        digest: hexadecimal digest of agent and map; equal for equal maps of one agent.
        embedder: the embedder that made the vectors; "" if it has none and is found by words alone.
        vector: int8, one byte a dimension, made by the caller's own embedder; b"" if the store's made the vectors.
    """

    agent: str
    content: str
    metadata: str = "{}"
    digest: str = ""
    embedder: str = ""
    vector: bytes = b""


@dataclass(frozen=True, slots=True)
class KnowledgeWrite:
    """An item, ready to be written."""

    owner: Owner
    passages: tuple[NewPassage, ...]
    record: KnowledgeRecord


@dataclass(frozen=True, slots=True)
class StoredKnowledge:
    """An item as the store has it. Times are seconds since the epoch.

    Attributes:
        number: its owner's number.
        updated_at: when it was last rewritten with the same words: by another embedder, for example.
        deleted_at: since when it is neither listed nor found; None while it is.
    """

    number: int
    owner: Owner
    record: KnowledgeRecord
    created_at: float
    updated_at: float
    deleted_at: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """Number of an agent's items, and of those that are deleted but still kept."""

    agent: str
    items: int
    deleted: int


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """The context of an agent as the store has it.

    Attributes:
        last_cursor: 0 or more; the agent decides what it counts.
        metadata: a JSON object as text, keys sorted.
    """

    name: str
    last_cursor: int = 0
    metadata: str = "{}"
    updated_at: float = 0.0
