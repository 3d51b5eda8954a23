"""Build hits from stored passages: redact, remove near-duplicates, diversify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.ranking.arrays import distinct
from commonplace.ranking.calibration import confidence, probabilities
from commonplace.ranking.calibration import scores as scores_of
from commonplace.redaction import find_secrets, redact
from commonplace.search.rank import Ranking, placed
from commonplace.search.request import Request
from commonplace.search.result import Candidate, Reason, SignalShare, Trace, without_copies
from commonplace.search.signals import COVERAGE, DENSE, LATE, LEXICAL, WORDS
from commonplace.store.store import Store
from commonplace.text.languages import PROSE, language_of
from commonplace.text.markdown import heading_slug
from commonplace.types import Hit, Owner, StoredMemory

_APART = "\n\n"


def _of_owner(owner: Owner, memory: StoredMemory | None) -> dict[str, Any]:
    """Return what a hit tells of its owner."""
    fields: dict[str, Any] = {
        name: getattr(owner, name)
        for name in ("kind", "title", "tags", "references", "summary", "at", "path", "type", "phase")
    }
    record = None if memory is None else memory.record
    if record is not None:
        fields |= {name: getattr(record, name) for name in ("tier", "source", "origin", "trust")}
    elif owner.kind == "artifact":
        fields["origin"] = "document"
    return {**fields, "owner_id": owner.id}


def memory_hit(stored: StoredMemory, score: float) -> Hit:
    """Return a whole memory as a hit that no question found; its score is its retention."""
    told = {**_of_owner(stored.owner, stored), "at": stored.at, "references": ()}
    return Hit(id=stored.owner.id, text=stored.record.content, score=score, signals={"retention": score}, **told)


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


def is_likely(hit: Hit) -> bool:
    """Return whether a hit is likely or sure; one that no word is said of is: it passed the cut on its score."""
    word = getattr(hit, "confidence", None)
    return word in (None, "", "likely", "sure")


TRACE_LENGTH = 20
"""How many rejected candidates a result remembers."""


def select(ranking: Ranking, request: Request, store: Store) -> tuple[tuple[Hit, ...], Trace]:
    """Return the hits, best first, ties by id, what is newer before what it overtakes; and the trace behind them."""
    candidates = ranking.candidates
    order = np.lexsort((candidates.numbers, -ranking.values))
    ahead = ranking.newer
    if ranking.begins:
        ranking, ahead = ranking.standing(request.now if request.wanted.as_of is None else request.wanted.as_of)
    likely = probabilities(ranking.odds[order])
    scores = scores_of(likely)
    moved = placed(order.tolist(), ahead)
    looks = list(zip(candidates.lengths[order].tolist(), candidates.dense[order].tolist(), strict=True))
    made: dict[int, Hit] = {}
    copies: set[int] = set()
    while True:
        chosen, rejected, held_back = _choose(ranking, moved, order, scores, request, copies)
        # What is as long and as near as a chosen one may hold the same text, though it is beyond the limit.
        alike = {looks[rank] for rank in chosen}
        twins = {rank for rank, reason in rejected if reason == "beyond the limit" and looks[rank] in alike}
        found = {**chosen, **{rank: rank for rank in copies | twins}}
        places = {rank: int(order[rank]) for rank in found if rank not in made}
        made |= _made(ranking, request, store, places, scores, likely)
        ids = {rank: hit.id for rank, hit in made.items()}
        # Equal values stand by id, and what was moved with that before which it was.
        kept = sorted(
            (rank for rank in found if rank in made),
            key=lambda rank: (-float(ranking.values[order[found[rank]]]), ids.get(found[rank], "")),
        )
        hits = without_copies([made[rank] for rank in kept])
        first = {hit.id for hit in hits}
        before, copies = copies, {rank for rank in kept if ids[rank] not in first}
        if copies == before:
            break  # else others may stand where copies stood
    kept = [rank for rank in kept if rank not in copies][: request.limit]
    ranks = sorted([*((rank, None) for rank in kept), *rejected[:TRACE_LENGTH]])
    trace = Trace(
        make=lambda: [_candidate(ranking, rank, int(order[rank]), float(scores[rank]), why) for rank, why in ranks],
        terms=ranking.words,
        min_score=request.min_score,
        numbers={ids[rank]: int(candidates.numbers[order[rank]]) for rank in kept},
        times=ranking.asked.times,
        passages=ranking.passages,
        moved={ids[rank]: ids[found[rank]] for rank in kept if found[rank] != rank and found[rank] in ids},
        held_back=tuple(held_back),
    )
    return without_secrets(hits[: request.limit]), trace


def _choose(
    ranking: Ranking,
    moved: Sequence[tuple[int, int | None]],
    order: NDArray[np.intp],
    scores: NDArray[np.float32],
    request: Request,
    copies: Collection[int],
) -> tuple[dict[int, int], list[tuple[int, Reason]], list[float]]:
    """Choose what may become hits, ties with the last one included.

    Args:
        copies: ranks of texts that a better hit has.

    Returns:
        The chosen ranks, from 0, each with the one before which it was moved, else its own; the rejected ones, with the
        reason; and of each owner that is held back the best score.
    """
    places = order.tolist()
    ranks = {place: rank for rank, place in enumerate(places)}
    owners, values, likely = ranking.candidates.owners.tolist(), ranking.values.tolist(), scores.tolist()
    chosen: dict[int, int] = {}
    rejected: list[tuple[int, Reason]] = []
    taken: Counter[int] = Counter()
    below: dict[int, float] = {}
    last = 0.0
    # The scores are float32, and so is what they are compared with.
    floor = float(np.float32(request.min_score)) if len(scores) and scores[0] >= request.first_floor else math.inf
    for place, before in moved:
        rank, anchor = ranks[place], ranks[place if before is None else before]
        owner, value = owners[place], values[places[anchor]]
        if likely[anchor] < floor and likely[rank] < floor:
            rejected.append((rank, "below the floor"))
            below.setdefault(owner, likely[rank])
        elif rank in copies:
            rejected.append((rank, "same text as a better hit"))
        elif taken[owner] >= request.per_owner:
            rejected.append((rank, "same owner as a better hit"))
        elif len(chosen) >= request.limit and value < last:
            rejected.append((rank, "beyond the limit"))
        else:
            taken[owner] += 1
            chosen[rank] = anchor
            last = value
    return chosen, sorted(rejected), [score for owner, score in below.items() if not taken[owner]]


def _made(
    ranking: Ranking,
    request: Request,
    store: Store,
    places: Mapping[int, int],
    scores: NDArray[np.float32],
    likely: NDArray[np.float32],
) -> dict[int, Hit]:
    """Return the hits of ranks, by these, given the places of their candidates; without those that are gone."""
    namespace, numbers = request.namespace, ranking.candidates.numbers
    newest = {place: newer[0] for place in places.values() if (newer := ranking.newer.get(place))}
    wanted = distinct(numbers[[*places.values(), *newest.values()]]).tolist()
    held = store.passages_with_owners(namespace, wanted)
    owners = {passage.owner_number: owner for passage, owner, _ in held.values()}
    items = [number for number, owner in owners.items() if owner.kind == "knowledge"]
    knowledge = store.knowledge(namespace).of_numbers(items) if items else {}
    prose = {number for number, owner in owners.items() if language_of(owner.path.rpartition("/")[2]) in PROSE}
    # Passages whose heading does not name one section.
    unnamed = store.repeated_headings(namespace, wanted) if prose else ()
    made: dict[int, Hit] = {}
    for rank, place in places.items():
        number = int(numbers[place])
        if number not in held:
            continue
        passage, owner, memory = held[number]
        chunk, later = passage.chunk, held.get(int(numbers[newest[place]])) if place in newest else None
        item = knowledge.get(passage.owner_number)
        made[rank] = Hit(
            id=passage.id,
            text=chunk.text,
            score=float(scores[rank]),
            signals=_raw(ranking, place),
            heading=chunk.heading,
            lines=(chunk.start_line, chunk.end_line) if owner.path else None,
            agent="" if item is None else item.record.agent,
            probability=float(likely[rank]),
            confidence=confidence(float(likely[rank])),
            anchor=heading_slug(chunk.heading) if number not in unnamed and passage.owner_number in prose else "",
            superseded_by=None if later is None else later[1].id,
            **_of_owner(owner, memory),
        )
    return made


def _raw(ranking: Ranking, place: int) -> dict[str, float]:
    raw = {name: float(getattr(ranking.candidates, name)[place]) for name in (LEXICAL, DENSE, LATE, COVERAGE, WORDS)}
    raw.update({name: float(values[place]) for name, values in ranking.signals.items() if name not in raw})
    return {**raw, "fused": float(ranking.values[place])} if ranking.weights else raw


def _candidate(ranking: Ranking, rank: int, place: int, score: float, reason: Reason | None) -> Candidate:
    raw = _raw(ranking, place)
    # What orders beside the signals, as the rank behind a pool, has no value of its own.
    values = {**raw, **{name: float(part[place]) for name, part in ranking.parts.items() if name not in raw}}
    signals = {}
    for name, value in values.items():
        part, weight, evidence = (
            float(named[name][place]) if name in named else 0.0
            for named in (ranking.parts, ranking.weights, ranking.evidence)
        )
        signals[name] = SignalShare(name, value, part, weight, value * evidence)
    numbers, owners = ranking.candidates.numbers, ranking.candidates.owners
    return Candidate(int(numbers[place]), int(owners[place]), rank + 1, score, signals, reason)
