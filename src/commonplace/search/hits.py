"""Build hits from stored passages: redact, remove near-duplicates, diversify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.ranking.arrays import distinct
from commonplace.ranking.calibration import confidence, probabilities
from commonplace.ranking.calibration import scores as scores_of
from commonplace.redaction import find_secrets, redact
from commonplace.search.rank import Ranking, placed
from commonplace.search.request import Request
from commonplace.search.result import Candidate, HeldBack, Reason, Trace, reference
from commonplace.search.signals import COVERAGE, DENSE, LATE, LEXICAL, WORDS, Candidates
from commonplace.store.store import Store
from commonplace.text.languages import PROSE, language_of
from commonplace.text.markdown import heading_slug
from commonplace.types import Hit, Owner, StoredMemory

_APART = "\n\n"


class _Held:
    """What the store holds of some passages, by number."""

    def __init__(self, store: Store, namespace: str, numbers: Sequence[int]) -> None:
        self.passages = store.passages_with_owners(namespace, numbers)
        owners = {passage.owner_number: owner for passage, owner, _ in self.passages.values()}
        items = [number for number, owner in owners.items() if owner.kind == "knowledge"]
        self.knowledge = store.knowledge(namespace).of_numbers(items) if items else {}
        has_prose = any(map(_is_prose, owners.values()))
        # Passages whose heading does not name one section.
        self.unnamed = store.repeated_headings(namespace, numbers) if has_prose else ()


def _is_prose(owner: Owner) -> bool:
    return language_of(owner.path.rpartition("/")[2]) in PROSE


def _hit(held: _Held, number: int, score: float, probability: float, signals: Mapping[str, float]) -> Hit | None:
    """Return the hit of a passage, None where the store does not have it any more."""
    if number not in held.passages:
        return None
    passage, owner, memory = held.passages[number]
    record = None if memory is None else memory.record
    item = held.knowledge.get(passage.owner_number)
    origin = "document" if owner.kind == "artifact" else ""
    is_linked = number not in held.unnamed and _is_prose(owner)
    return Hit(
        id=passage.id,
        owner_id=owner.id,
        kind=owner.kind,
        text=passage.chunk.text,
        score=score,
        signals=signals,
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
        probability=probability,
        confidence=confidence(probability),
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
    each = [{name: getattr(hit, name) for name in ("text", "title", "heading", "summary", "source")} for hit in hits]
    if not find_secrets(_APART.join(text for texts in each for text in texts.values() if text)):
        return tuple(hits)
    cleaned: list[dict[str, Any]] = [{name: redact(text).text for name, text in texts.items()} for texts in each]
    return tuple(
        replace(hit, **texts, anchor=heading_slug(texts["heading"]) if hit.anchor else "")
        for hit, texts in zip(hits, cleaned, strict=True)
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


TRACE_LENGTH = 20
"""How many rejected candidates a result remembers."""


def select(ranking: Ranking, request: Request, store: Store) -> tuple[tuple[Hit, ...], Trace]:
    """Return the hits, best first, ties by id, what is newer before what it overtakes; and the trace behind them."""
    order = np.lexsort((ranking.candidates.numbers, -ranking.values))
    ranking, ahead = ranking.standing(request.now if request.wanted.as_of is None else request.wanted.as_of)
    likely = probabilities(ranking.odds[order])
    scores = scores_of(likely)
    numbers = ranking.candidates.numbers
    moved = placed(order.tolist(), ahead)
    made: dict[int, Hit] = {}
    copies: set[int] = set()
    while True:
        choice = _choose(ranking, moved, order, scores, request, copies)
        looked_at = copies | _twins(ranking.candidates, order, choice)
        found = [*choice.chosen, *(_Chosen(rank, rank) for rank in looked_at)]
        places = {each.rank: int(order[each.rank]) for each in found if each.rank not in made}
        made |= _made(ranking, request, store, places, scores, likely)
        ids = {rank: hit.id for rank, hit in made.items()}
        # Equal values stand by id, and what was moved with that before which it was.
        kept = sorted(
            (each for each in found if each.rank in made),
            key=lambda each: (-float(ranking.values[order[each.anchor]]), ids.get(each.anchor, "")),
        )
        hits = without_copies([made[each.rank] for each in kept])
        first = {hit.id for hit in hits}
        before, copies = copies, {each.rank for each in kept if ids[each.rank] not in first}
        if copies == before:
            break  # else others may stand where copies stood
    kept = [each for each in kept if each.rank not in copies][: request.limit]
    ranks = sorted([*((each.rank, None) for each in kept), *choice.rejected[:TRACE_LENGTH]])
    trace = Trace(
        make=lambda: [_candidate(ranking, rank, int(order[rank]), float(scores[rank]), why) for rank, why in ranks],
        terms=ranking.words,
        min_score=request.min_score,
        numbers={ids[each.rank]: int(numbers[order[each.rank]]) for each in kept},
        times=ranking.asked.times,
        passages=ranking.passages,
        moved={ids[each.rank]: ids[each.anchor] for each in kept if each.rank != each.anchor and each.anchor in ids},
        held_back=choice.held_back,
    )
    return without_secrets(hits[: request.limit]), trace


def _twins(candidates: Candidates, order: NDArray[np.intp], choice: _Choice) -> set[int]:
    """Return the ranks beyond the limit that may hold the same text as what is chosen: as long, and as near."""

    looks = list(zip(candidates.lengths[order].tolist(), candidates.dense[order].tolist(), strict=True))
    chosen = {looks[each.rank] for each in choice.chosen}
    return {rank for rank, reason in choice.rejected if reason == "beyond the limit" and looks[rank] in chosen}


def _made(
    ranking: Ranking,
    request: Request,
    store: Store,
    places: Mapping[int, int],
    scores: NDArray[np.float32],
    likely: NDArray[np.float32],
) -> dict[int, Hit]:
    """Return the hits of ranks, by these, given the places of their candidates; without those that are gone."""
    numbers = ranking.candidates.numbers
    newest = {place: newer[0] for place in places.values() if (newer := ranking.newer.get(place))}
    held = _Held(store, request.namespace, distinct(numbers[[*places.values(), *newest.values()]]).tolist())
    made: dict[int, Hit] = {}
    for rank, place in places.items():
        signals = _raw(ranking, place)
        hit = _hit(held, int(numbers[place]), float(scores[rank]), float(likely[rank]), signals)
        later = held.passages.get(int(numbers[newest[place]])) if place in newest else None
        if hit is not None:
            made[rank] = hit if later is None else replace(hit, superseded_by=later[1].id)
    return made


class _Chosen(NamedTuple):
    """A rank, from 0, that may become a hit, and the one before which it was moved, which else is its own."""

    rank: int
    anchor: int


@dataclass(slots=True)
class _Choice:
    chosen: list[_Chosen] = field(default_factory=list)
    rejected: list[tuple[int, Reason]] = field(default_factory=list)
    held_back: HeldBack = field(default_factory=HeldBack)


def _choose(
    ranking: Ranking,
    moved: Sequence[tuple[int, int | None]],
    order: NDArray[np.intp],
    scores: NDArray[np.float32],
    request: Request,
    copies: Collection[int],
) -> _Choice:
    """Return what may become hits, ties with the last one included, and what is rejected: the ranks of copies, too."""
    places = order.tolist()
    ranks = {place: rank for rank, place in enumerate(places)}
    owners, values, likely = ranking.candidates.owners.tolist(), ranking.values.tolist(), scores.tolist()
    choice = _Choice()
    taken: Counter[int] = Counter()
    below: dict[int, float] = {}
    last = 0.0
    # The scores are float32, and so is what they are compared with.
    floor = float(np.float32(request.min_score)) if len(scores) and scores[0] >= request.first_floor else math.inf
    for place, before in moved:
        rank, anchor = ranks[place], ranks[place if before is None else before]
        owner, value = owners[place], values[places[anchor]]
        if likely[anchor] < floor and likely[rank] < floor:
            choice.rejected.append((rank, "below the floor"))
            below.setdefault(owner, likely[rank])
        elif rank in copies:
            choice.rejected.append((rank, "same text as a better hit"))
        elif taken[owner] >= request.per_owner:
            choice.rejected.append((rank, "same owner as a better hit"))
        elif len(choice.chosen) >= request.limit and value < last:
            choice.rejected.append((rank, "beyond the limit"))
        else:
            taken[owner] += 1
            choice.chosen.append(_Chosen(rank, anchor))
            last = value
    held = [score for owner, score in below.items() if not taken[owner]]
    choice.held_back = HeldBack(len(held), max(held, default=None))
    choice.rejected.sort()
    return choice


def _raw(ranking: Ranking, place: int) -> dict[str, float]:
    raw = {name: float(getattr(ranking.candidates, name)[place]) for name in (LEXICAL, DENSE, LATE, COVERAGE, WORDS)}
    raw.update({name: float(values[place]) for name, values in ranking.signals.items() if name not in raw})
    return {**raw, "fused": float(ranking.values[place])} if ranking.weights else raw


def _candidate(ranking: Ranking, rank: int, place: int, score: float, reason: Reason | None) -> Candidate:
    def column(named: Mapping[str, NDArray[np.float32]]) -> dict[str, float]:
        return {name: float(values[place]) for name, values in named.items()}

    return Candidate(
        number=int(ranking.candidates.numbers[place]),
        owner_number=int(ranking.candidates.owners[place]),
        rank=rank + 1,
        score=score,
        signals=_raw(ranking, place),
        standardised=column(ranking.parts),
        weights=column(ranking.weights),
        evidence=column(ranking.evidence),
        rejected=reason,
    )
