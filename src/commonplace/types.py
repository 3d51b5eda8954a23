"""The values that cross module borders: frozen, plain, free of behaviour and of heavy imports.

Vectors and token ids travel as `bytes` here, so that this module needs no NumPy: a vector is int8, one byte a
dimension; token ids are uint16, little-endian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["artifact", "memory", "knowledge"]
KINDS: tuple[Kind, ...] = ("artifact", "memory", "knowledge")

ArtifactType = Literal["requirement", "architecture", "test", "code", "documentation", "research"]
ARTIFACT_TYPES: tuple[ArtifactType, ...] = (
    "requirement",
    "architecture",
    "test",
    "code",
    "documentation",
    "research",
)

Phase = Literal["inception", "elaboration", "construction", "transition"]
PHASES: tuple[Phase, ...] = ("inception", "elaboration", "construction", "transition")

Method = Literal["bm25", "semantic", "two-stage"]
METHODS: tuple[Method, ...] = ("bm25", "semantic", "two-stage")


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What is known of a file without reading its text, to tell whether its passages are still right.

    Attributes:
        recipe: how its text was cut and embedded; another recipe would make other passages of the same bytes.
    """

    sha256: str
    size: int
    mtime_ns: int
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whatever is split into passages: an artifact, a memory, a knowledge item.

    Attributes:
        id: given by the caller and kept verbatim, or a UUID that we made; unique within namespace and kind.
        path: for an artifact, posix path relative to the project, or absolute outside it; else "".
        root: the directory whose indexing brought the artifact, in the same form as `path`; else "".
        session, position: place in a conversation; neighbours are the positions before and after; session "" is none.
        at: when it happened or was last modified, seconds since the epoch, or None.
    """

    id: str
    kind: Kind
    title: str = ""
    summary: str = ""
    tags: tuple[str, ...] = ()
    type: str = ""
    phase: str = ""
    references: tuple[str, ...] = ()
    path: str = ""
    root: str = ""
    session: str = ""
    position: int = 0
    at: float | None = None
    stamp: FileStamp | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a text, before it has a place in the store. Lines count from 1, both ends included."""

    text: str
    start_line: int
    end_line: int
    heading: str = ""


@dataclass(frozen=True, slots=True)
class NewPassage:
    """A chunk with what the index needs, ready to be written."""

    id: str
    chunk: Chunk
    token_ids: bytes
    vector: bytes


@dataclass(frozen=True, slots=True)
class OwnerWrite:
    """One owner with all its passages; writing it replaces what the same kind and id (or path) had before."""

    owner: Owner
    passages: tuple[NewPassage, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage.

    Attributes:
        number: the store's own ascending integer, never used twice; what the index speaks of.
        owner_number: likewise for the owner.
    """

    number: int
    id: str
    owner_number: int
    ordinal: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """All that the index needs of one passage."""

    number: int
    owner_number: int
    namespace: str
    kind: Kind
    type: str
    phase: str
    tags: tuple[str, ...]
    title: str
    path: str
    heading: str
    summary: str
    text: str
    token_ids: bytes
    vector: bytes


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """What late interaction and dense scoring need of one passage."""

    number: int
    owner_number: int
    token_ids: bytes
    vector: bytes


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search may return. Empty means no restriction; values of one field are alternatives, fields add up.

    Attributes:
        phases: an owner without a phase passes every phase filter.
        tags: an owner passes with any one of them.
        paths: globs over the artifact's path, as in .gitignore: `**` crosses directories, `*` does not.
    """

    kinds: tuple[Kind, ...] = ()
    types: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.kinds or self.types or self.phases or self.tags or self.paths)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Which embedder made a store's vectors: vectors of different stamps are never compared."""

    name: str
    version: str
    dimensions: int

    def __str__(self) -> str:
        return f"{self.name}@{self.version}/{self.dimensions}"


@dataclass(frozen=True, slots=True)
class Document:
    """A text that is not a file: given to be indexed under an id of the caller's.

    Attributes:
        session: documents of one session keep their order and lend each other score.
        at: seconds since the epoch, or None.
    """

    id: str
    text: str
    title: str = ""
    kind: Kind = "artifact"
    tags: tuple[str, ...] = ()
    session: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A found passage with its owner.

    Attributes:
        score: 0–1, higher is better, comparable between queries.
        signals: what made the score, by name: `lexical`, `dense`, `late`, `neighbours`, `fused`, ….
        lines: first and last line of the passage in `path`, from 1, or None where there is no file.
    """

    id: str
    owner_id: str
    kind: Kind
    text: str
    score: float
    signals: Mapping[str, float]
    title: str = ""
    heading: str = ""
    path: str = ""
    lines: tuple[int, int] | None = None
    type: str = ""
    phase: str = ""
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    summary: str = ""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a search: how many candidates it left and how long it took."""

    name: str
    candidates: int
    ms: float


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What was wrong with a file, and whether it was passed over or taken all the same."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing run did. Counts are of owners (files or documents), but for `passages`.

    Attributes:
        notices: one sentence each, for people.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[FileProblem, ...] = ()
    seconds: float = 0.0
    change: int = 0
    notices: tuple[str, ...] = ()


Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much (0 where nobody knows yet)."""
