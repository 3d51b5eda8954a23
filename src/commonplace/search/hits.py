"""From what the store holds of a passage and its owner to a hit; whatever secret is left in it is replaced here.

It knows the store's values and no ranking.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.ranking.calibration import confidence
from commonplace.redaction import find_secrets, redact
from commonplace.search.result import reference
from commonplace.text.languages import PROSE, language_of
from commonplace.text.sections import heading_slug
from commonplace.types import Hit

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.types import Owner, Passage, StoredMemory
    from commonplace.types.knowledge import StoredKnowledge

_APART = "\n\n"


@dataclass(frozen=True, slots=True)
class Held:
    """What the store holds of some passages, by number: `memories` and `knowledge` have the numbers of their owners.

    `unnamed` are the passages whose heading does not name one section.
    """

    passages: Mapping[int, Passage]
    owners: Mapping[int, Owner]
    memories: Mapping[int, StoredMemory]
    knowledge: Mapping[int, StoredKnowledge]
    unnamed: Collection[int] = ()


def read(store: Store, namespace: str, passages: Sequence[int], owners: Sequence[int]) -> Held:
    """Return what hits are made of."""
    found = store.owners(namespace, owners)
    memories = [number for number, owner in found.items() if owner.kind == "memory"]
    items = [number for number, owner in found.items() if owner.kind == "knowledge"]
    return Held(
        store.passages(namespace, passages),
        found,
        store.memory_records(namespace, memories) if memories else {},
        store.knowledge(namespace).of_numbers(items) if items else {},
        store.repeated_headings(namespace, passages) if any(map(_is_prose, found.values())) else (),
    )


def _is_prose(owner: Owner) -> bool:
    return language_of(owner.path.rpartition("/")[2]) in PROSE


@dataclass(frozen=True, slots=True)
class Found:
    """What a search says of a passage: its score, how likely it is relevant, and the signals behind both."""

    score: float
    probability: float
    signals: Mapping[str, float]
    superseded_by: str | None = None


def make_hit(held: Held, number: int, owner_number: int, found: Found) -> Hit | None:
    """Return the hit of a passage, None where the store does not have it any more."""
    passage, owner, memory = held.passages.get(number), held.owners.get(owner_number), held.memories.get(owner_number)
    if passage is None or owner is None:
        return None
    record = None if memory is None else memory.record
    item = held.knowledge.get(owner_number)
    origin = "document" if owner.kind == "artifact" else ""
    is_linked = number not in held.unnamed and _is_prose(owner)
    return Hit(
        id=passage.id,
        owner_id=owner.id,
        kind=owner.kind,
        text=passage.chunk.text,
        score=found.score,
        signals=found.signals,
        title=owner.title,
        heading=passage.chunk.heading,
        path=owner.path,
        lines=(passage.chunk.start_line, passage.chunk.end_line) if owner.path else None,
        type=owner.type,
        phase=owner.phase,
        tags=owner.tags,
        references=owner.references,
        summary=owner.summary,
        at=owner.at,
        tier="" if record is None else record.tier,
        source="" if record is None else record.source,
        origin=origin if record is None else record.origin,
        trust=None if record is None else record.trust,
        agent="" if item is None else item.record.agent,
        probability=found.probability,
        confidence=confidence(found.probability),
        superseded_by=found.superseded_by,
        anchor=heading_slug(passage.chunk.heading) if is_linked else "",
    )


def memory_hit(stored: StoredMemory, score: float) -> Hit:
    """Return a whole memory as a hit that no question found; its score is its retention."""
    owner, record = stored.owner, stored.record
    return Hit(
        id=owner.id,
        owner_id=owner.id,
        kind="memory",
        text=record.content,
        score=score,
        signals={"retention": score},
        title=owner.title,
        tags=owner.tags,
        summary=owner.summary,
        at=record.born_at if owner.at is None else owner.at,
        tier=record.tier,
        source=record.source,
        origin=record.origin,
        trust=record.trust,
    )


def without_secrets(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with placeholders for secrets that were stored before they were looked for.

    All texts are searched as one, which is faster by far; only where that finds anything each is searched by itself.
    """
    texts = [text for hit in hits for text in (hit.text, hit.title, hit.heading, hit.summary, hit.source) if text]
    if not find_secrets(_APART.join(texts)):
        return tuple(hits)
    return tuple(
        replace(
            hit,
            text=redact(hit.text).text,
            title=redact(hit.title).text,
            heading=(heading := redact(hit.heading).text),
            anchor=heading_slug(heading) if hit.anchor else "",
            summary=redact(hit.summary).text,
            source=redact(hit.source).text,
        )
        for hit in hits
    )


def without_copies(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those of files whose text a better one of a file has, which names them.

    Projects keep one text in several places: a fork beside its original, a page for each release.
    """
    kept: dict[object, list[Hit]] = {}
    for hit in hits:
        key = " ".join(hit.text.split()) if hit.path else (hit.kind, hit.id)
        kept.setdefault(key, []).append(hit)
    return tuple(
        replace(first, copies=tuple(dict.fromkeys((*first.copies, *map(reference, others))))) if others else first
        for first, *others in kept.values()
    )


def is_likely(hit: Hit) -> bool:
    """Tell whether a hit is likely or sure; one that no word is said of is: it passed the cut on its score."""
    word = getattr(hit, "confidence", None)
    return word in (None, "", "likely", "sure")
