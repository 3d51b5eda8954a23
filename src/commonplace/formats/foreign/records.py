"""The neutral form of what other systems remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from commonplace.types import FileProblem, Origin, Status, Tier


@dataclass(frozen=True, slots=True)
class ForeignMemory:
    """One memory of another system. Times are seconds since the epoch, None where the file gives none.

    Attributes:
        id: the one given, or a UUIDv5 of where it stood and what it says: the same at every reading.
        session, position: the conversation it was said in, and where; session "" is none.
        origin: who said it, where that is known.
        tier: "" where the other system has nothing like it.
        category: a single word for the kind of statement, or "".
        source: who or what it came from, in the file's words, or "".
        metadata: JSON values only; what the file says and no other attribute holds.
    """

    id: str
    content: str
    title: str = ""
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    created_at: float | None = None
    updated_at: float | None = None
    last_used: float | None = None
    use_count: int = 0
    strength: float = 1.0
    tier: Tier | Literal[""] = ""
    status: Status = "active"
    category: str = ""
    source: str = ""
    session: str = ""
    position: int = 0
    origin: Origin = "document"
    metadata: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForeignLink:
    """A directed link between two of the memories, by their ids; strength 0–1."""

    source: str
    target: str
    type: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class ForeignFact:
    """A relation between two things, by their names; types are the file's words, "" where it has none.

    Attributes:
        place: file and entry.
    """

    place: str
    source: str
    type: str
    target: str
    source_type: str = ""
    target_type: str = ""
    valid_from: float | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """All that was read, in the order of the files.

    Attributes:
        links: both ends are among `memories`.
        problems: what could not be read or kept, with its place: a file, or file and line (`notes/a.md:12`).
        notices: what somebody may want to know, likewise; nothing is lost by it.
    """

    memories: tuple[ForeignMemory, ...] = ()
    links: tuple[ForeignLink, ...] = ()
    facts: tuple[ForeignFact, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    notices: tuple[FileProblem, ...] = ()
