"""What an import takes in, whatever file it stood in: checked, secrets replaced, not yet compared with a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from commonplace.errors import UsageError
from commonplace.exchange.graph_items import EntityItem, EpisodeItem, RelationItem
from commonplace.exchange.knowledge_items import ContextItem, KnowledgeItem
from commonplace.exchange.ledger_items import IssueItem
from commonplace.graph.giving import GivenFact
from commonplace.memories.intake import as_given, checked, without_secrets
from commonplace.memories.times import seconds
from commonplace.redaction import redact
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.types import Chunk, Link, MemoryRecord, Owner

VAULT: Final = "vault"


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a memory; `secrets` are the kinds of those that were replaced in it."""

    owner: Owner
    record: MemoryRecord
    created_at: float
    expired_at: float | None
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryItem:
    """A memory with its versions, oldest first; only the last one may be live."""

    place: str
    versions: tuple[Version, ...]

    @property
    def id(self) -> str:
        """Its id, which all versions have."""
        return self.versions[0].owner.id

    @property
    def latest(self) -> Version:
        """The last version."""
        return self.versions[-1]


@dataclass(frozen=True, slots=True)
class LinkItem:
    """A link between two memories."""

    place: str
    link: Link


@dataclass(frozen=True, slots=True)
class FactItem:
    """A fact between two things that are given by their names; `secrets` are the kinds of those replaced in it."""

    place: str
    fact: GivenFact
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerItem:
    """An artifact or a document with what it was cut into."""

    place: str
    owner: Owner
    chunks: tuple[Chunk, ...]
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be kept.

    Attributes:
        place: the line, and the file where there are several.
        name: what it is about, as far as that can be told.
        reason: the value, the limit and what to do.
    """

    place: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} ({self.name}): {self.reason}" if self.name else f"{self.place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that somebody may want to know of what is imported, and that nothing is lost by.

    Attributes:
        place: as that of a problem.
    """

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


Item = (
    MemoryItem
    | LinkItem
    | FactItem
    | OwnerItem
    | KnowledgeItem
    | ContextItem
    | IssueItem
    | EpisodeItem
    | EntityItem
    | RelationItem
)


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder to import.

    Attributes:
        format: its name.
        items: reads it from the start, each time it is called. What is wrong with one item is a `Problem` among them,
            what is to be told is a `Remark`; a file that is damaged as a whole raises.
    """

    format: str
    items: Callable[[], Iterator[Item | Problem | Remark]]


def version_of(
    owner: Owner, record: MemoryRecord, created_at: float, expired_at: float | None, *, max_bytes: int
) -> Version:
    """Return a version of a memory that may be stored: what `remember` would refuse is refused here.

    Raises:
        UsageError: a value is of the wrong kind, empty, too large or out of its range.
    """
    _refuse_odd_owner(owner)
    _refuse_odd_record(record)
    for name, time in (
        ("created_at", created_at),
        ("expired_at", expired_at),
        ("born_at", record.born_at),
        ("last_used", record.last_used),
        ("promoted_at", record.promoted_at),
        *(("uses", use) for use in record.uses),
    ):
        if time is not None:
            seconds(name, time)
    if expired_at is None and record.status == "archived":
        raise UsageError("status is 'archived', but expired_at is empty", remedy="give the time when it was archived")
    if expired_at is not None and expired_at < created_at:
        raise UsageError(f"expired_at is {expired_at}, before created_at, {created_at}", remedy="give a later time")
    given = checked(as_given(owner, record), max_bytes=max_bytes, force=record.is_forced)
    if given.tier == "ultra":
        raise UsageError("tier is 'ultra', which is never stored", remedy="give short, medium or long")
    new = without_secrets(given)
    kept = replace(
        record,
        content=new.content,
        category=new.category,
        entities=new.entities,
        source=new.source,
        metadata=new.metadata,
        derived_from=new.derived_from,
    )
    clean, secrets = _without_secrets(replace(owner, tags=new.tags))
    return Version(clean, kept, created_at, expired_at, (*new.notices, *secrets))


def owner_item(place: str, owner: Owner, chunks: tuple[Chunk, ...]) -> OwnerItem:
    """Return an owner that may be stored.

    Raises:
        UsageError: it has no id, or a passage's lines are none.
    """
    if not owner.id:
        raise UsageError("the id is ''", remedy="give each owner an id of its own")
    secrets: list[str] = []
    clean, kinds = _without_secrets(owner)
    secrets += kinds
    pieces = []
    for chunk in chunks:
        if not 1 <= chunk.start_line <= chunk.end_line:
            raise UsageError(f"a passage has the lines {chunk.start_line}-{chunk.end_line}", remedy="count from 1")
        text, heading = redact(chunk.text), redact(chunk.heading)
        secrets += (*text.kinds, *heading.kinds)
        pieces.append(replace(chunk, text=text.text, heading=heading.text))
    return OwnerItem(place, clean, tuple(pieces), tuple(secrets))


def _without_secrets(owner: Owner) -> tuple[Owner, tuple[str, ...]]:
    title, summary = redact(owner.title), redact(owner.summary)
    return replace(owner, title=title.text, summary=summary.text), (*title.kinds, *summary.kinds)


def _refuse_odd_owner(owner: Owner) -> None:
    if owner.kind != "memory":
        raise UsageError(f"the kind of a memory is {owner.kind!r}", remedy="give it as an owner")
    if owner.path or owner.stamp is not None:
        raise UsageError(f"a memory has the path {owner.path!r:.80}", remedy="a memory is of no file: leave it out")


def _refuse_odd_record(record: MemoryRecord) -> None:
    for name, number, low in (
        ("version", record.version, 1),
        ("use_count", record.use_count, 0),
        ("review_count", record.review_count, 0),
    ):
        if number < low:
            raise UsageError(f"{name} is {number}", remedy=f"give a whole number from {low}")
    if not 0.0 <= record.strength <= MAX_STRENGTH:
        raise UsageError(f"strength is {record.strength}", remedy=f"give a number from 0 to {MAX_STRENGTH:g}")
    if len(record.uses) > RECENT_USES:
        raise UsageError(f"uses holds {len(record.uses)} times, the limit is {RECENT_USES}", remedy="give the latest")
    parts = PurePosixPath(record.vault_path).parts
    if record.vault_path and (parts[:1] != (VAULT,) or ".." in parts or "\0" in record.vault_path):
        raise UsageError(f"vault_path is {record.vault_path!r:.80}", remedy=f"give a path below {VAULT}/, or none")
