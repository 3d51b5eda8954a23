"""Make of a memory's content what is found and compared: passages, a signature, dates. It knows no rule and writes not.

Whoever stores a version of a memory asks here, so that the same words are found alike however they came in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from commonplace.ingest.passages import PassageMaker
from commonplace.ingest.reading import normalise
from commonplace.memories.files import files_named
from commonplace.memories.intake import TRUST
from commonplace.text.alike import signature
from commonplace.timeline import mentions
from commonplace.times import moment_of
from commonplace.types import MemoryRecord, MemoryWrite, Owner

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.ingest.passages import Destination
    from commonplace.memories.intake import NewMemory

BATCH: Final = 256
BATCH_CHARACTERS: Final = 131_072


def batches(news: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Yield memories in their order, so many at a time, and so much text, that others who write wait briefly."""
    some: list[NewMemory] = []
    characters = 0
    for new in news:
        characters += len(new.content)
        if some and (len(some) == BATCH or characters > BATCH_CHARACTERS):
            yield some
            some, characters = [], len(new.content)
        some.append(new)
    if some:
        yield some


def first_version(new: NewMemory, now: float, project: Path | None, *, is_forced: bool) -> tuple[Owner, MemoryRecord]:
    """Return what is given as the first version of a memory.

    Args:
        project: the directory whose files it may speak of.
    """
    origin = new.origin or "agent"
    owner = Owner(
        id=new.id or str(uuid4()),
        kind="memory",
        tags=new.tags,
        references=files_named((new.content, new.source), project),
        session=new.session,
        at=now if new.at is None else new.at,
    )
    record = MemoryRecord(
        content=new.content,
        tier=new.tier or ("medium" if new.session else "short"),
        category=new.category,
        entities=new.entities,
        source=new.source,
        origin=origin,
        trust=TRUST[origin] if new.trust is None else new.trust,
        metadata=new.metadata,
        born_at=now,
        last_used=now,
        derived_from=new.derived_from,
        is_forced=is_forced,
    )
    return owner, record


def writes_of(destination: Destination, versions: Sequence[tuple[Owner, MemoryRecord]]) -> list[MemoryWrite]:
    """Return versions of memories ready to be written, in their order; all are embedded at once, or all later."""
    if destination.later_above is not None and len(versions) > 1:
        destination = replace(destination, later_above=0)
    maker = PassageMaker(destination)
    made = maker.complete([maker.prepare(owner, normalise(record.content), "markdown") for owner, record in versions])
    writes = []
    for (owner, record), write in zip(versions, made, strict=True):
        # A turn of a conversation is not compared with others: it needs no bands, and no two turns are one.
        sign = None if owner.session else signature(record.content)
        writes.append(
            MemoryWrite(
                owner,
                write.passages,
                record,
                digest="" if sign is None else sign.digest,
                bands=() if sign is None else sign.bands,
                dates=_dates(record.content, record.born_at if owner.at is None else owner.at),
            )
        )
    return writes


def _dates(text: str, at: float) -> tuple[tuple[float, float], ...]:
    """Return the times that a text speaks of, as seen from the memory's own time."""
    return tuple(dict.fromkeys((mention.since, mention.until) for mention in mentions(text, now=moment_of(at))))
