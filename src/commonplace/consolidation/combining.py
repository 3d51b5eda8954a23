"""Make one memory of several: what it says and what is kept of it. It writes nothing and reads no store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid5

from commonplace.consolidation import clustering
from commonplace.consolidation.merging import Doubt, Merged, Source, contradictions, merge
from commonplace.memories.intake import TRUST
from commonplace.retention import MAX_STRENGTH, RECENT_USES
from commonplace.timeline import mentions
from commonplace.times import moment_of
from commonplace.types import TIERS, MemoryRecord, Owner

if TYPE_CHECKING:
    from commonplace.consolidation.merging import Likeness
    from commonplace.types import StoredMemory

DOUBTFUL: Final = 0.5
"""The most confidence in a merge of memories that contradict each other: a person is to look at it."""
MOST_GAINED: Final = 0.5
GAINED_EACH: Final = 0.1
"""Of strength: by a merge at most, and by a source at a cohesion of 1."""

_MERGED_IDS: Final = UUID("0d0b6a0e-5a0c-5a4f-9c55-1b1d6e6c7f02")
_LINK_IDS: Final = UUID("9b8f4c4e-3f0d-5c1e-8a37-5d2f0c9e4b11")
"""Namespaces of the UUIDv5 of merged memories and of links; they never change."""


def confidence_of(cohesion: float, size: int, conflicts: Counter[Doubt]) -> float:
    """Return how sure it is that memories are rightly merged."""
    confidence = cohesion * clustering.size_factor(size)
    return min(confidence, DOUBTFUL) if conflicts else confidence


def merged_text(memories: Sequence[StoredMemory], likeness: Likeness | None = None) -> Merged:
    """Return one text for memories, and where they contradict each other; see `merging.merge`."""
    return merge(sources_of(memories), likeness)


def contradictions_of(
    memories: Sequence[StoredMemory], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return in what pairs of memories contradict each other; see `merging.contradictions`."""
    return contradictions(sources_of(memories), pairs)


def sources_of(memories: Sequence[StoredMemory]) -> list[Source]:
    """Return memories as what is merged."""
    return [Source(memory.owner.id, memory.record.content, moment_of(_at(memory))) for memory in memories]


def merged_id(source_ids: Sequence[str], taken: int = 0) -> str:
    """Return the id of the memory that is made of others: the same for the same ones, in whatever order.

    Args:
        taken: how many such ids stand for a memory already, which that is not.
    """
    return _uuid(_MERGED_IDS, [*sorted(source_ids), *([str(taken)] if taken else [])])


def link_id(source: str, target: str) -> str:
    """Return the id of the link from a merged memory to one that it was made of."""
    return _uuid(_LINK_IDS, [source, target])


def combined(memories: Sequence[StoredMemory], id_: str, text: str, cohesion: float) -> tuple[Owner, MemoryRecord]:
    """Return the memory that is made of others, the same in whatever order they are given.

    It has all tags, entities and files (as they were then), the highest tier, the earliest times, the uses of all, and
    the least trust, with the origin of a source that has it. Category and source stand where all that have one agree,
    metadata are joined, of two values the one of the longer text.
    """
    ordered = sorted(memories, key=lambda memory: (-len(memory.record.content), _at(memory), memory.owner.id))
    records = [memory.record for memory in ordered]
    least = min(records, key=lambda record: (record.trust, TRUST[record.origin], record.origin))
    strength = max(record.strength for record in records)
    owner = Owner(
        id=id_,
        kind="memory",
        tags=tuple(sorted({tag for memory in ordered for tag in memory.owner.tags})),
        references=tuple(sorted({reference for memory in ordered for reference in memory.owner.references})),
        at=min(map(_at, ordered)),
    )
    record = MemoryRecord(
        content=text,
        tier=max((record.tier for record in records), key=TIERS.index),
        category=_agreed(record.category for record in records),
        entities=tuple(sorted({entity for record in records for entity in record.entities})),
        source=_agreed(record.source for record in records),
        origin=least.origin,
        trust=least.trust,
        metadata=_joined([json.loads(record.metadata) for record in records]),
        born_at=min(record.born_at for record in records),
        last_used=max(record.last_used for record in records),
        use_count=sum(record.use_count for record in records),
        strength=min(MAX_STRENGTH, strength + min(MOST_GAINED, cohesion * len(records) * GAINED_EACH)),
        uses=tuple(sorted(use for record in records for use in record.uses)[-RECENT_USES:]),
        review_count=sum(record.review_count for record in records),
        derived_from=tuple(sorted(memory.owner.id for memory in ordered)),
        is_forced=any(record.is_forced for record in records),
    )
    return owner, record


def dates_of(memories: Sequence[StoredMemory]) -> tuple[tuple[float, float], ...]:
    """Return the times that memories speak of, each as seen from its own time."""
    found = {
        (mention.since, mention.until)
        for memory in memories
        for mention in mentions(memory.record.content, now=moment_of(_at(memory)))
    }
    return tuple(sorted(found))


def _at(memory: StoredMemory) -> float:
    return memory.record.born_at if memory.owner.at is None else memory.owner.at


def _agreed(values: Any) -> str:
    """Return what all say that say something, "" where they do not agree."""
    said = {value for value in values if value}
    return str(said.pop()) if len(said) == 1 else ""


def _joined(objects: Sequence[dict[str, Any]]) -> str:
    joined: dict[str, Any] = {}
    for each in objects:
        joined = {**each, **joined}
    return json.dumps(joined, sort_keys=True)


def _uuid(space: UUID, names: Sequence[str]) -> str:
    return str(uuid5(space, json.dumps(names)))
