"""Make of a memory's content what is found and compared: passages, a signature, dates. It knows no rule and writes not.

Whoever stores a version of a memory asks here, so that the same words are found alike however they came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.ingest.passages import PassageMaker
from commonplace.ingest.reading import normalise
from commonplace.memories.times import moment_of
from commonplace.text.alike import signature
from commonplace.timeline import mentions
from commonplace.types import MemoryRecord, MemoryWrite, Owner

if TYPE_CHECKING:
    from commonplace.ingest.passages import Destination


def writes_of(destination: Destination, versions: Sequence[tuple[Owner, MemoryRecord]]) -> list[MemoryWrite]:
    """Return versions of memories ready to be written, in their order; all are embedded at once."""
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
