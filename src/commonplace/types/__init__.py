"""Core values shared by all packages: owners, passages, memories, filters, hits. Frozen dataclasses, light to import.

Vectors and token ids are `bytes` here, so that this module needs no NumPy: a vector is int8, one byte a dimension;
token ids are uint16, little-endian.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple, get_args

from commonplace.dataclasses import dataclass, field

Kind = Literal["artifact", "memory", "knowledge", "entity", "relation"]
KINDS: tuple[Kind, ...] = ("artifact", "memory", "knowledge")
GRAPH_KINDS: tuple[Literal["entity", "relation"], ...] = ("entity", "relation")
EmbeddedKind = Literal["memories", "knowledge", "graph", "artifacts"]
EMBEDDED_KIND_OF: dict[str, EmbeddedKind] = {
    "memory": "memories",
    "knowledge": "knowledge",
    "entity": "graph",
    "relation": "graph",
    "artifact": "artifacts",
}
"""Name under which each kind of owner has an embedder."""

ArtifactType = Literal["requirement", "architecture", "test", "code", "documentation", "research"]
ARTIFACT_TYPES: tuple[ArtifactType, ...] = get_args(ArtifactType)

Phase = Literal["inception", "elaboration", "construction", "transition"]
PHASES: tuple[Phase, ...] = get_args(Phase)

Tier = Literal["ultra", "short", "medium", "long"]
TIERS: tuple[Tier, ...] = get_args(Tier)
Status = Literal["active", "promoted", "archived"]
STATUSES: tuple[Status, ...] = get_args(Status)
Scope = Literal["read", "write", "forget", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""What an access token may allow; none of them includes another."""
Origin = Literal["user", "agent", "tool", "document", "web"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Method = Literal["bm25", "semantic", "two-stage"]
SEARCH_FIELDS: Final = ("title", "content", "tags", "summary")
"""The fields of a passage that lexical recall reads; their weights are in `ranking.bm25`."""
ORIGIN_OF_ROLE: Mapping[str, Origin] = {
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "model": "agent",
    "tool": "tool",
    "function": "tool",
}
"""Origin of a chat message by its role; system and developer messages are instructions, and no memories."""
TEXT_PARTS: tuple[str, ...] = ("text", "input_text", "output_text")
"""The types of the parts of a chat message that are text."""
METHODS: tuple[Method, ...] = get_args(Method)
RerankMode = Literal["none", "single", "batch"]
RERANK_MODES: tuple[RerankMode, ...] = get_args(RerankMode)
Confidence = Literal["sure", "likely", "weak"]


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The state of a file when it was indexed, by which a later run sees whether its passages are still right.

    Attributes:
        recipe: how its text was cut and embedded; another recipe would make other passages of the same bytes.
    """

    sha256: str
    size: int
    mtime_ns: int
    recipe: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """Something that is split into passages: an artifact, a memory, a knowledge item.

    Attributes:
        id: given by the caller and kept verbatim, or a UUID that we made; unique within namespace and kind.
        path: for an artifact, posix path relative to the project, or absolute outside it; else "".
        root: the directory whose indexing added the artifact, in the same form as `path`; else "".
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
class MemoryRecord:
    """The data of one version of a memory besides its owner and passages. Times are seconds since the epoch.

    Attributes:
        content: the text as it is stored, secrets replaced.
        category: a word that chooses the half-life: "decision", "preference", "fact", …; "" is none.
        source: who or what it came from, in the caller's words.
        trust: 0–1; for a derived memory, the least trust of its sources.
        metadata: a JSON object as text, keys sorted.
        born_at: when its first version was stored.
        last_used, use_count, strength, uses: the inputs of retention; `uses` are the latest accesses, newest last.
        derived_from: ids of the memories it was made from.
        is_forced: stored although admission would have refused it.
    """

    content: str
    tier: Tier = "short"
    status: Status = "active"
    category: str = ""
    entities: tuple[str, ...] = ()
    source: str = ""
    origin: Origin = "agent"
    trust: float = 1.0
    metadata: str = "{}"
    version: int = 1
    born_at: float = 0.0
    last_used: float = 0.0
    use_count: int = 0
    strength: float = 1.0
    uses: tuple[float, ...] = ()
    review_count: int = 0
    derived_from: tuple[str, ...] = ()
    is_forced: bool = False
    promoted_at: float | None = None
    vault_path: str = ""


@dataclass(frozen=True, slots=True)
class MemoryWrite:
    """One version of a memory, ready to be written.

    Attributes:
        owner: its `position` counts only if `is_placed`; otherwise the store assigns the next one of the session.
        digest: hexadecimal digest of the content's normal form; equal for texts that differ in nothing relevant.
        bands: 63-bit values of which near duplicates share some; memories that share one are worth comparing.
        dates: time spans that the text mentions: seconds since the epoch, half-open, an end may be infinite.
    """

    owner: Owner
    passages: tuple[NewPassage, ...]
    record: MemoryRecord
    digest: str = ""
    bands: tuple[int, ...] = ()
    dates: tuple[tuple[float, float], ...] = ()
    is_placed: bool = False


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """One version of a memory as the store has it.

    Attributes:
        number: the owner number of this version; every version has its own.
        created_at, expired_at: when this version was the current one, half-open; None: it still is.
    """

    number: int
    owner: Owner
    record: MemoryRecord
    created_at: float
    expired_at: float | None = None

    @property
    def at(self) -> float:
        """When it happened, or else when it was stored."""
        return self.record.born_at if self.owner.at is None else self.owner.at


SUPERSEDES, CONFLICTS, HOLDS_BESIDE = "supersedes", "conflicts", "holds beside"
"""Types of links from a memory to an older one: it replaces the older, it may (a person decides), or both hold."""
RULE: Final = "rule"
"""Origin of a link that a rule judged; see `commonplace.memory.supersession`."""
DOUBT: Final = 0.25
"""Strength of a rule's link of the type `CONFLICTS` if the newer memory is itself unsure: it raises a question, and
searches do not follow it."""


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link between two memories; at most one of each type. A link that a rule withdrew has `expired_at`."""

    source: str
    target: str
    type: str = "related"
    strength: float = 1.0
    created_at: float = 0.0
    origin: str = ""
    reason: str = ""
    expired_at: float | None = None


@dataclass(frozen=True, slots=True)
class JournalBlock:
    """The Markdown block of one memory: its page, and the digest of what store and page last agreed on."""

    id: str
    page: str
    digest: str


@dataclass(frozen=True, slots=True)
class JournalPage:
    """A Markdown page as it was last written or read; it counts as unchanged while size and time are the same."""

    page: str
    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Note:
    """A small record that the store keeps about itself: a receipt, a backup that was made. Its body is JSON."""

    kind: str
    id: str
    at: float
    body: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which memories a list holds. Empty means no restriction; values of one field are alternatives, all must match.

    Attributes:
        ids: these ids.
        since, until: half-open, over the memory's own time, else its birth; "newest" sorts by this time, ties by id.
        order: "used": most used first; "idle": longest unused first; "stored": first stored first; "changed": latest
            version first; "archived": only archived ones, latest archived first.
    """

    ids: tuple[str, ...] = ()
    tiers: tuple[Tier, ...] = ()
    statuses: tuple[Status, ...] = ()
    tags: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    min_trust: float = 0.0
    order: Literal["newest", "id", "used", "idle", "stored", "changed", "archived"] = "newest"
    limit: int | None = None
    offset: int = 0

    def key(self, stored: StoredMemory) -> tuple[float, str]:
        """Return the sort key of a memory."""
        owner, record = stored.owner, stored.record
        keys = {
            "newest": -stored.at,
            "id": 0.0,
            "used": -record.use_count,
            "idle": record.last_used,
            "stored": record.born_at,
            "changed": -stored.number,
            "archived": -(stored.expired_at or 0.0),
        }
        return keys[self.order], owner.id


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage.

    Attributes:
        number: the store's own ascending integer, never reused, by which the index refers to it.
        owner_number: likewise for the owner.
    """

    number: int
    id: str
    owner_number: int
    ordinal: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """Everything that the index needs of one passage."""

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


class Head(NamedTuple):
    """The last change of a namespace: its number, 0 before the first, and its random token."""

    change: int = 0
    token: str = ""


class TokenEntry(NamedTuple):
    """What late interaction and dense scoring need of one passage.

    A tuple, since each search makes two hundred: making a frozen dataclass takes three times as long.
    """

    number: int
    owner_number: int
    token_ids: bytes
    vector: bytes
    kind: str = "artifact"
    at: float | None = None
    session: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Restrictions of a search. Empty means none; values of one field are alternatives, all fields must match.

    Attributes:
        phases: an owner without a phase passes every phase filter.
        tags: an owner passes with any one of them; an owner of one of the `untagged_types` passes without.
        paths: globs over the artifact's path, as in .gitignore: `**` crosses directories, `*` does not.
        tiers, sessions, sources: fields of memories; agents: of knowledge. Owners of other kinds do not pass.
        min_trust: 0–1; memories that are trusted less are left out, other owners pass.
        as_of: a time: versions of memories that were live then, and other owners stored by then; None: now.
        valid_at: a time in the world: only memories, each in the latest version known (at `as_of`) of what had happened
            by then; None: any time.
    """

    kinds: tuple[Kind, ...] = ()
    types: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    tiers: tuple[Tier, ...] = ()
    sessions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    min_trust: float = 0.0
    as_of: float | None = None
    agents: tuple[str, ...] = ()
    valid_at: float | None = None
    untagged_types: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Filter()

    @property
    def is_of_kinds(self) -> bool:
        """True if it restricts kinds and nothing else."""
        return bool(self.kinds) and self == Filter(self.kinds)


@dataclass(frozen=True, slots=True)
class Embedding:
    """The stamp of the embedder of a store's vectors: vectors of different stamps are never compared.

    Attributes:
        others: (kind, stamp) of each kind that has another embedder, sorted.
    """

    name: str
    version: str
    dimensions: int
    others: tuple[tuple[EmbeddedKind, Embedding], ...] = ()

    def __str__(self) -> str:
        if not self.others:
            return f"{self.name}@{self.version}/{self.dimensions}"
        # No stamp may be a substring of another: in recipes of files, one is replaced by the next.
        parts = (("", self), *((f"{kind}=", stamp) for kind, stamp in self.others))
        return f"[{' '.join(f'{kind}{part.name}:{part.version}/{part.dimensions}' for kind, part in parts)}]"

    def described(self) -> str:
        """Return the stamp of the main embedder, with those of other kinds in brackets."""
        others = ", ".join(f"{kind}: {stamp}" for kind, stamp in self.others)
        return f"{self.of('memory')} ({others})" if others else str(self)

    def of(self, kind: str) -> Embedding:
        """Return the stamp of one kind of owner, which has no others."""
        embedded_kind = EMBEDDED_KIND_OF[kind]
        for name, embedding in self.others:
            if name == embedded_kind:
                return embedding
        return Embedding(self.name, self.version, self.dimensions) if self.others else self

    @classmethod
    def by_kind(cls, stamps: Mapping[EmbeddedKind, Embedding]) -> Embedding:
        """Return the stamp of a store whose kinds have these embedders."""
        main = stamps["memories"]
        others = tuple(sorted((kind, stamp) for kind, stamp in stamps.items() if stamp != main))
        return cls(main.name, main.version, main.dimensions, others)

    @property
    def spaces(self) -> tuple[Embedding, ...]:
        """The different stamps in use; vectors are comparable only within one."""
        return tuple(dict.fromkeys(self.of(kind) for kind in EMBEDDED_KIND_OF))


@dataclass(frozen=True, slots=True)
class Reembedding:
    """A change of embedder under way: `done` of `total` passages, past versions included, have their new vector."""

    embedding: Embedding
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Document:
    """A text that is not a file, indexed under an id of yours.

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
    """A found passage. Tier, source, origin and trust are a memory's, agent a knowledge item's.

    Attributes:
        score: 0–1, higher is better, comparable between queries: a fixed, increasing function of the probability, or
            what a re-ranker gave it.
        probability: 0–1, how likely a judge would call it relevant; None if no question was asked.
        confidence: the word for the probability: "sure", "likely" or "weak"; None without one.
        superseded_by: the id of the newer memory about the same subject that may supersede it; None without any.
        is_superseded: whether a person or the graph says so, and not only the rule of searches.
        signals: what made the score, by name: `lexical`, `dense`, `late`, `neighbours`, `fused`, ….
        lines: first and last line of the passage in `path`, from 1, or None without a file.
        copies: references of other files whose passage is the same text; they are no hits of their own.
        anchor: the anchor of its section in a text of prose, or "" if its heading names no section or several.
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
    tier: str = ""
    source: str = ""
    origin: str = ""
    trust: float | None = None
    agent: str = ""
    probability: float | None = None
    confidence: Confidence | None = None
    superseded_by: str | None = None
    is_superseded: bool = False
    anchor: str = ""
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a search: how many candidates it left and how long it took."""

    name: str
    candidates: int
    ms: float


@dataclass(frozen=True, slots=True)
class FileProblem:
    """What was wrong with a file, and whether it was skipped or indexed all the same."""

    path: str
    reason: str


LEFT_OUT: Final = "left_out"
"""Kind of the notes that record what the last indexing run left out, one for each root."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What the last indexing run of a root left out.

    Attributes:
        skipped: number of files by reason.
        problems: some of the files with which something was wrong.
    """

    root: str
    skipped: Mapping[str, int]
    problems: tuple[FileProblem, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an indexing run. Counts are of files or documents, except `passages`.

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
"""Called with what is being done, how much is done, and the total (0 while unknown)."""
