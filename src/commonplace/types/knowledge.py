"""Values of agents' knowledge.

An item is one map of an agent's knowledge. It is an owner of the kind "knowledge" with passages, and a record.
"""

from __future__ import annotations

from commonplace.dataclasses import dataclass
from commonplace.types import NewPassage, Owner


@dataclass(frozen=True, slots=True)
class KnowledgeRecord:
    """What is kept of an item besides its owner and passages.

    Attributes:
        agent: whose knowledge it is.
        content: the text of the map, by which it is found.
        metadata: the map itself, a JSON object as text, keys sorted.
        digest: of agent and map, hexadecimal; equal for equal maps of one agent.
        embedder: what made the vectors; "" where it has none and is found by words alone.
        vector: int8, one byte a dimension, of an embedder of the caller's own; b"" where the store's made them.
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
        number: its owner's.
        updated_at: when it was written last, with the same words: embedded by another embedder, for example.
        deleted_at: from when on it is in no list and not found, None while it is.
    """

    number: int
    owner: Owner
    record: KnowledgeRecord
    created_at: float
    updated_at: float
    deleted_at: float | None = None


@dataclass(frozen=True, slots=True)
class AgentCounts:
    """How many items of an agent there are, and how many were deleted and are still kept."""

    agent: str
    items: int
    deleted: int


@dataclass(frozen=True, slots=True)
class ContextRecord:
    """The context of an agent as the store has it.

    Attributes:
        last_cursor: 0 or more; what it counts is the agent's business.
        metadata: a JSON object as text, keys sorted.
    """

    name: str
    last_cursor: int = 0
    metadata: str = "{}"
    updated_at: float = 0.0
