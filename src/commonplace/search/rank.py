"""Rank candidates and estimate the log-odds that each is relevant; place newer versions of a fact first.

Placing a newer memory above the one it updates hides nothing and changes no score. The constants are fitted on everyday
memories.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.lazy_regex import lazy_pattern
from commonplace.ranking.arrays import within
from commonplace.ranking.calibration import LEAD, calibration_of, evidence, leads
from commonplace.search.request import PreparedQuery, Request
from commonplace.search.signals import ASSISTANT, CROWDING, DENSE, LATE, LEXICAL, TIME, USER, Candidates
from commonplace.search.signals import LITERAL as IS_LITERAL
from commonplace.search.time import NO_TIMES, AskedTimes, DatedOwners

NEIGHBOURS, SPEAKER, RETENTION = "neighbours", "speaker", "retention"
BEHIND, PHRASINGS = "behind", "phrasings"
WEIGHTS = {LEXICAL: 0.6, DENSE: 1.0, LATE: 0.85, TIME: 2.0, SPEAKER: 0.5}
"""Weights of the signals in the two-stage method, standardised but for the time's fit, 0–1, and the fitting speaker, 0
or 1, which are plain bonuses. Those of words and tokens count as far as the words may decide; see `COVERED`."""
DENSE_WEIGHTS: Mapping[str, float] = {"minilm": 1.25}
"""Of embedders whose vectors tell more than words do; any other one has the weight above."""
COVERED = (0.42, 0.72)
"""How far words and late interaction decide beside meaning, by how much of the question the best passage covers
(`Candidates.coverage`): not at all up to the first, wholly from the second on.

Who asks in other words than the answer's shares only chance matches with anything, and standardising would make as much
of these as of real ones. Judged by `scripts/ranking/cross_validate.py`, as are all constants of the fusion."""
RARE = (1.10, 1.85)
"""The same by the best passage's BM25 divided by ln(1 + passages): the rarity that it holds, of the highest that there
is. A long question is never covered, but two rare words of it are no chance. The larger of both counts."""
MEANT = (0.10, 0.25)
"""How far meaning decides where words do, by the best cosine: not at all up to the first, wholly from the second on.

Cosines of unrelated texts reach the second by chance alone. Who asks for an identifier gets what holds it, not what its
letters resemble; where words are no help, the best cosine decides however faint."""
COMPARABLE = frozenset({"minilm", "static"})
"""Embedders whose cosines of unrelated texts have nearly the same mean and deviation: .03–.18 and .09–.11 for questions
and passages of everyday, medquad, cosqa-dev, longmemeval-dev. Those of another one are standardised by themselves."""
TIME_LOG_ODDS = 1.0
"""What a memory that is of the asked time gains in log-odds of relevance; a round guess."""
NEIGHBOUR_SHARES = (0.5, 0.25)
"""What a turn of a conversation receives of the mean value of those one step and two steps away: half at each step."""
ANSWER_SHARE = 0.25
"""What a turn receives besides of the value of the turn before it, where that asks something: an answer seldom repeats
what it was asked. Less of one that is longer than `SHORT_TURN`, which asks by the way. A round guess: it gains on short
turns, which nothing was fitted on, and loses a little on long ones."""
SHORT_TURN = 60
"""A turn of so many tokens receives all of that, a longer one the less, the longer it is."""
FLOOR = 0.3
"""The default least score, a probability of 0.009: what is below it is held back. Of the questions that something
answers, one in two hundred loses for it what would be among five hits."""
FIRST_FLOOR = 0.5
"""Likewise of the best hit, a probability of 0.02: where it is below, the question is about something else, and
everything is held back. That takes all from one in a hundred of the questions that something answers, from some more in
stores of a few texts."""
_IS_HELD = np.float32(0.5)
"""What holds an asked date literally ranks between the memories that mostly fit it and those that hardly do."""
_TIME_ALONE, _TIME_BESIDE, _NO_TIME = 8.0, 2.0, -5.0
"""Where a question has no subject but a time: the log-odds of relevance that a perfect fit adds if all of that time is
asked for, so that it is sure; if not, so that it is weak; and those of no fit. Round."""
_BESIDE = np.float32(1e-3)
"""Newness decides between fits that differ by less than this, which only those of years to days do."""
Columns = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with the value that orders them.

    Attributes:
        words: the query's, the terms of each.
        values: higher is better; float32, shape (n,).
        signals: what was fused, by name, as it was found; float32, shape (n,).
        parts: the same as it was added up, most of it standardised; empty where one signal alone orders.
        weights: what each part weighs, by name; float32, shape (n,).
        odds: log-odds of relevance; float32, shape (n,).
        evidence: what each signal weighs in them, by name; float32, shape (n,).
        fault: why meaning had no part in it; "" where it had.
        newer: of candidates that are memories, by place, those that overtook them, newest first.
        begins: when those of these begin that say so, seconds since the epoch.
    """

    words: tuple[tuple[str, ...], ...]
    candidates: Candidates
    values: NDArray[np.float32]
    signals: Mapping[str, NDArray[np.float32]]
    parts: Mapping[str, NDArray[np.float32]]
    weights: Mapping[str, NDArray[np.float32]]
    odds: NDArray[np.float32]
    evidence: Mapping[str, NDArray[np.float32]]
    passages: int
    asked: AskedTimes = NO_TIMES
    fault: str = ""
    newer: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    begins: Mapping[int, float] = field(default_factory=dict)

    def best_first(self) -> Ranking:
        """Return this with its candidates by value, ties by number: a candidate's index is then its place."""
        rows = np.lexsort((self.candidates.numbers, -self.values))
        candidates, values, odds = self.candidates.select(rows), self.values[rows], self.odds[rows]
        return replace(self, candidates=candidates, values=values, odds=odds, **_joined((self,), rows))

    def standing(self, now: float | None) -> tuple[Ranking, Mapping[int, tuple[int, ...]]]:
        """Return this without what has yet to begin, and what stands before each: what holds before that."""
        later = {place for place, begins in self.begins.items() if now is not None and begins > now}
        if not later:
            return self, self.newer
        newer = {place: tuple(each for each in others if each not in later) for place, others in self.newer.items()}
        before = dict(newer)
        for place, others in self.newer.items():
            before |= {each: (*before.get(each, ()), place) for each in others if each in later}
        return replace(self, newer=newer), before

    def followed_by(self, wider: Ranking) -> Ranking:
        """Return these candidates and, behind them, those of a wider ranking for the same query that are not here.

        Both are the best first, and so is what is returned.
        """
        new = ~within(wider.candidates.numbers, np.sort(self.candidates.numbers))
        if not new.any() or not len(self.values):
            return self if len(self.values) else wider
        behind = np.zeros(len(wider.values), np.float32) + (self.values.min() - wider.values[new].max() - 1)
        parts, weights = dict(wider.parts), dict(wider.weights)
        if parts:
            parts[BEHIND], weights[BEHIND] = behind, np.ones_like(behind)
        rows = np.concatenate((np.arange(len(self.values)), len(self.values) + np.flatnonzero(new)))
        return replace(
            self,
            candidates=Candidates.of_all((self.candidates, wider.candidates.select(new))),
            values=np.concatenate((self.values, (wider.values + behind)[new])),
            odds=np.concatenate((self.odds, wider.odds[new])),
            **_joined((self, replace(wider, parts=parts, weights=weights)), rows),
        )


@dataclass(frozen=True, slots=True)
class RankingContext:
    """What orders candidates besides their own signals.

    Attributes:
        dated: the memories of the times that the query names; None where it names none.
        retention: of each candidate, 0–1, float32, shape (n,); None where it has no weight.
        passages: how many there are to choose from.
    """

    beside: dict[int, set[int]] = field(default_factory=dict)
    asked: AskedTimes = NO_TIMES
    dated: DatedOwners | None = None
    retention: NDArray[np.float32] | None = None
    passages: int = 1


def order(request: Request, query: PreparedQuery, candidates: Candidates, context: RankingContext) -> Ranking:
    """Return the candidates with what orders them: one signal alone, the asked time alone, or all signals fused."""
    passages, dated, asked = context.passages, context.dated, context.asked
    if request.method != "two-stage":
        name = LEXICAL if request.method == "bm25" else DENSE
        candidates = candidates if name == DENSE else candidates.select(candidates.lexical > 0)
        values: NDArray[np.float32] = getattr(candidates, name)
        odds, found, weights = _judged(query, candidates, passages)
        return Ranking(query.words, candidates, values, {**found, name: values}, {}, {}, odds, weights, passages)
    if dated is None or not asked.is_all:
        return _fused(request, query, candidates, context)
    # Nothing but a time is asked for: what is of it comes best fit first, then newest. Where the time is written in
    # digits, what holds the query literally is of it too, though no date of it is known.
    fits = dated.fits_of(candidates.owners)
    is_held = (candidates.literal >= IS_LITERAL) & asked.is_written
    keep = (fits > 0) | is_held
    candidates, fits = candidates.select(keep), fits[keep]
    values = _IS_HELD + _BESIDE * candidates.dense
    values[fits > 0] = fits[fits > 0] + _BESIDE * dated.newness_of(candidates.owners[fits > 0])
    odds, found, _ = _judged(query, candidates, passages)
    odds = np.maximum(np.float32(_TIME_ALONE) * fits + np.float32(_NO_TIME), np.where(is_held[keep], odds, -np.inf))
    signals, adds = {**found, TIME: fits}, {TIME: np.full(len(candidates), _TIME_ALONE, dtype=np.float32)}
    return Ranking(query.words, candidates, values, signals, {}, {}, odds.astype(np.float32), adds, passages, asked)


def combined(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking of what several phrasings of a query rank, by the mean of their values, each standardised.

    A candidate has the signals and the log-odds of the phrasing that makes it likeliest. One that a phrasing leaves out
    has its lowest value there. A part is the mean of its parts by what they weigh.
    """
    numbers = np.concatenate([ranking.candidates.numbers for ranking in rankings])
    odds = np.concatenate([ranking.odds for ranking in rankings])
    # By number, then the likeliest first: the first row of each number is the one that speaks for it.
    rows = np.lexsort((-odds, numbers))
    chosen = rows[np.flatnonzero(np.diff(numbers[rows], prepend=-1))]
    nothing = np.zeros(len(chosen), dtype=np.float32)
    values, added, weights = nothing.copy(), dict[str, NDArray[np.float32]](), dict[str, NDArray[np.float32]]()
    for ranking in rankings:
        places = np.searchsorted(numbers[chosen], ranking.candidates.numbers)
        own = standardise(ranking.values)
        of_all = np.full(len(chosen), own.min(initial=0), dtype=np.float32)
        of_all[places] = own
        values += of_all / np.float32(len(rankings))
        scale = np.float32(1.0 / (len(rankings) * max(float(ranking.values.std()), 1e-9))) if own.any() else 0.0
        for name, weight in ranking.weights.items():
            weights.setdefault(name, nothing.copy())[places] += scale * weight
            added.setdefault(name, nothing.copy())[places] += scale * weight * ranking.parts[name]
    parts = {
        name: np.divide(part, weights[name], out=nothing.copy(), where=weights[name] != 0)
        for name, part in added.items()
    }
    if parts:
        parts[PHRASINGS], weights[PHRASINGS] = values - fuse(parts, weights), nothing + 1
    return replace(
        rankings[0],
        words=tuple(dict.fromkeys(word for ranking in rankings for word in ranking.words)),
        candidates=Candidates.of_all([ranking.candidates for ranking in rankings]).select(chosen),
        values=values,
        odds=odds[chosen],
        **{**_joined(rankings, chosen), "parts": parts, "weights": weights},
    )


def _joined(rankings: Sequence[Ranking], rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return those rows of what several rankings have by name, one after the other, 0 where one lacks the name."""
    joined: dict[str, dict[str, NDArray[np.float32]]] = {}
    for kind in ("signals", "parts", "weights", "evidence"):
        columns = [(getattr(ranking, kind), np.zeros_like(ranking.values)) for ranking in rankings]
        joined[kind] = {
            name: np.concatenate([named.get(name, nothing) for named, nothing in columns])[rows]
            for name in dict.fromkeys(chain.from_iterable(named for named, _ in columns))
        }
    return joined


def _fused(request: Request, query: PreparedQuery, candidates: Candidates, context: RankingContext) -> Ranking:
    """Order by all signals, standardised over the candidates and added as far as each may decide."""
    signals = {LEXICAL: candidates.lexical, DENSE: candidates.dense, LATE: candidates.late}
    crowded = np.array([CROWDING.get(name, 0.0) for name in query.embedders], np.float32)[candidates.spaces]
    scaled = {**signals, DENSE: candidates.dense - crowded * candidates.crowding}
    groups = {DENSE: _comparable(query, candidates)}
    parts = {name: standardise(values, groups.get(name)) for name, values in scaled.items()}
    certain = _certain(query, candidates, context.passages)
    # Words and tokens count as far as they may decide, beside a vector; without one they alone do.
    words, dense = np.ones(len(candidates), np.float32), np.zeros(len(candidates), np.float32)
    for space, embedder in enumerate(query.embedders):
        if embedder:
            here = candidates.spaces == space
            words[here] = certain
            dense[here] = DENSE_WEIGHTS.get(embedder, WEIGHTS[DENSE]) * _meant(candidates.dense[here], certain)
    weights = {LEXICAL: np.float32(WEIGHTS[LEXICAL]) * words, DENSE: dense, LATE: np.float32(WEIGHTS[LATE]) * words}
    odds, found, adds = _judged(query, candidates, context.passages)

    def add(name: str, values: NDArray[np.float32], weight: float) -> None:
        signals[name] = parts[name] = values
        weights[name] = np.full(len(candidates), weight, dtype=np.float32)

    if context.dated is not None:
        add(TIME, context.dated.fits_of(candidates.owners), WEIGHTS[TIME])
        odds = odds + np.float32(TIME_LOG_ODDS) * signals[TIME]
        adds[TIME] = np.full(len(candidates), TIME_LOG_ODDS, dtype=np.float32)
        if context.asked.is_alone:
            odds = np.maximum(odds, np.float32(_TIME_BESIDE) * signals[TIME] + np.float32(_NO_TIME))
    speaker = speaker_asked_for(request.query)
    if speaker and candidates.speakers.any():
        add(SPEAKER, (candidates.speakers == speaker).astype(np.float32), WEIGHTS[SPEAKER])
    if context.beside:
        # A turn receives from those around it, and more from a question just before it.
        own, numbers = fuse(parts, weights), candidates.numbers
        received = np.zeros_like(own)
        for pairs, share in zip(steps(context.beside), NEIGHBOUR_SHARES, strict=True):
            received += lend(own, numbers, pairs, share)
        asking = numbers[candidates.asks].tolist()
        answers = [(other, number) for number in asking for other in context.beside.get(number, ()) if other > number]
        received += lend(bounded(own, candidates.lengths, SHORT_TURN), numbers, _pairs(answers), ANSWER_SHARE)
        add(NEIGHBOURS, bounded(received, candidates.lengths, SHORT_TURN), 1.0)
    if context.retention is not None:
        add(RETENTION, context.retention, request.retention_weight)
        parts[RETENTION] = standardise(context.retention)
    values, signals = fuse(parts, weights), {**found, **signals}
    return Ranking(
        query.words, candidates, values, signals, parts, weights, odds, adds, context.passages, context.asked
    )


def _certain(query: PreparedQuery, candidates: Candidates, passages: int) -> float:
    """Return how far words and tokens decide, 0–1."""
    return max(
        query.unspaced,  # of scripts without spaces only terms tell what they mean
        ramp(float(candidates.coverage.max(initial=0.0)), *COVERED),
        ramp(float(candidates.lexical.max(initial=0.0)) / math.log1p(max(1, passages)), *RARE),
    )


def _meant(cosines: NDArray[np.float32], certain: float) -> float:
    """Return how far meaning decides beside words that are so certain, 0–1."""
    return max(ramp(float(cosines.max(initial=0.0)), *MEANT), 1.0 - certain)


def _judged(
    query: PreparedQuery, candidates: Candidates, passages: int
) -> tuple[NDArray[np.float32], Columns, Columns]:
    """Return the log-odds of relevance, float32, shape (n,), the evidence behind them, and what each kind weighs."""
    certain = _certain(query, candidates, passages)
    found = evidence(candidates.dense, candidates.coverage, candidates.words, candidates.lexical, passages)
    # A cosine stands out among such as compare with it.
    groups = _comparable(query, candidates)
    for group in np.flatnonzero(np.bincount(groups)) if len(groups) else ():
        found[LEAD][groups == group] = leads(candidates.dense[groups == group])
    odds = np.zeros(len(candidates), dtype=np.float32)
    weights = {name: np.zeros(len(candidates), dtype=np.float32) for name in found}
    for code, embedder in enumerate(query.embedders):
        here = candidates.spaces == code
        # What is asked in a script that the models do not know, or by an identifier, is judged by its words.
        by_words = np.float32(max(query.unspaced, 1.0 - _meant(candidates.dense[here], certain)))
        evidence_here = {name: values[here] for name, values in found.items()}
        for calibration, share in ((calibration_of(embedder), 1 - by_words), (calibration_of(""), by_words)):
            odds[here] += share * calibration.log_odds(evidence_here)
            for name, weight in calibration.weights.items():
                weights[name][here] += share * np.float32(weight)
    return odds, found, weights


def _comparable(query: PreparedQuery, candidates: Candidates) -> NDArray[np.uint8]:
    """Return groups of candidates whose cosines compare: those of our embedders are one, see `COMPARABLE`."""
    codes = [0 if name in COMPARABLE else code + 1 for code, name in enumerate(query.embedders)]
    return np.array(codes, dtype=np.uint8)[candidates.spaces]


_OF_USER = lazy_pattern(r"\b(?:i|i'm|i've|i'd|me|my|mine|myself|we|our|us)\b", re.IGNORECASE)
_OF_ASSISTANT = lazy_pattern(
    r"\byou(?:'d|'ve| had| have)? (?:also |just |once |previously |earlier )?(?:said|told|mentioned|suggested|gave"
    r"|given|recommended|wrote|written|explained|listed|described|provided|proposed|advised|shared|showed|shown)\b"
    r"|\bdid you (?:say|tell|mention|suggest|give|recommend|write|explain|list|describe|provide|propose|advise)\b",
    re.IGNORECASE,
)
_TO_ASSISTANT = lazy_pattern(r"\byour?\b", re.IGNORECASE)


def speaker_asked_for(question: str) -> int:
    """Return whose words a question is about: what the assistant said, what the user told of themselves, 0 for neither.

    Of a question with both "I" and "you" nobody knows, unless it says that the assistant said something.
    """
    if _OF_ASSISTANT.search(question):
        return ASSISTANT
    return USER if _OF_USER.search(question) and not _TO_ASSISTANT.search(question) else 0


def steps(beside: dict[int, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that are one step apart and those that are two, int64, shape (n, 2), each in both directions."""
    one = [(number, other) for number, others in beside.items() for other in others]
    two = {
        (number, far)
        for number, others in beside.items()
        for other in others
        for far in beside[other]
        if far != number and far not in others
    }
    return _pairs(one), _pairs(two)


def _pairs(values: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(sorted(values), dtype=np.int64).reshape(-1, 2)


POOL: Final = 100
"""Of so many of the best candidates it is asked which overtakes another one."""
MAX_CHAIN: Final = 5
"""So many newer ones are moved before one as what it became; more are notes of one form, and would crowd it out."""


def placed(order: Sequence[int], newer: Mapping[int, Sequence[int]]) -> list[tuple[int, int | None]]:
    """Return the candidates of an order, each after what is newer than it, with the one that it was moved before.

    That is the same one, the oldest, for all of a chain of up to `MAX_CHAIN`, so that the newest stands first; of a
    longer one it is the next older.
    """
    left, result = set(order), list[tuple[int, int | None]]()
    for place in order:
        if place not in left:
            continue
        if place not in newer:
            left.discard(place)
            result.append((place, None))
        else:
            taken = _chain(place, None, newer, left)
            if 1 < len(taken) <= MAX_CHAIN + 1:
                taken[:-1] = [(other, place) for other, _ in taken[:-1]]
            result += taken
    return result


def _chain(
    place: int, before: int | None, newer: Mapping[int, Sequence[int]], left: set[int]
) -> list[tuple[int, int | None]]:
    """Take a candidate from those that are left, and what is newer than it; return these in their order, it last."""
    left.discard(place)
    others = (_chain(other, place, newer, left) for other in newer.get(place, ()) if other in left)
    return [*chain.from_iterable(others), (place, before)]


ROUNDING: Final = 1e-6
"""Relative to the largest value, float32's error after some dozens of additions."""


def standardise(values: NDArray[np.float32], groups: NDArray[np.uint8] | None = None) -> NDArray[np.float32]:
    """Return (values − mean) / standard deviation over the candidates, zeros where all are equal but for rounding.

    Args:
        groups: each one's values are standardised by themselves, for cosines of two embedders do not compare; an index
            into embedders, uint8, shape (n,).
    """
    if groups is not None and len(groups) and groups.min() != groups.max():
        result = np.zeros_like(values)
        for group in np.flatnonzero(np.bincount(groups)):
            result[groups == group] = standardise(values[groups == group])
        return result
    if not len(values):
        return values
    deviation = float(values.std())
    # Sums of float32 in another order differ in their last bits: as a difference of rank that would be noise made loud.
    if deviation < ROUNDING * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / deviation, dtype=np.float32)


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, and what lies between on a straight line."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def fuse(signals: Mapping[str, NDArray[np.float32]], weights: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the weighted sum of the signals; one without a weight does not count.

    Over signals that were standardised over the union of the candidates this is CombSUM with z-scores (Wu, Crestani &
    Bi 2006); weights that follow the query make use of reliability indicators (Bennett, Dumais & Horvitz 2005).

    Args:
        signals, weights: float32, shape (n,).
    """
    length = len(next(iter(signals.values())))
    total = np.zeros(length, dtype=np.float32)
    for name, values in signals.items():
        if name in weights:
            total += weights[name] * values
    return total


def lend(
    values: NDArray[np.float32], numbers: NDArray[np.int64], pairs: NDArray[np.int64], share: float
) -> NDArray[np.float32]:
    """Return what each candidate receives from its neighbours in a conversation: `share` of the mean of their values.

    The mean and not the sum, or the middle of a session would bury its ends. Only what is above the candidates' mean
    (0, since values are sums of z-scores) is lent: a poor neighbour says nothing about a turn.

    Args:
        values: float32, shape (n,).
        numbers: int64, shape (n,), ascending.
        pairs: receiver and lender, int64, shape (p, 2); pairs with a number that is no candidate are passed over.
    """
    received = np.zeros_like(values)
    if not len(pairs) or not len(numbers):
        return received
    places = np.minimum(np.searchsorted(numbers, pairs), len(numbers) - 1)
    receivers, lenders = places[(numbers[places] == pairs).all(axis=1)].T
    np.add.at(received, receivers, np.float32(share) * np.maximum(values[lenders], 0))
    counts = np.bincount(receivers, minlength=len(values))
    return np.asarray(received / np.maximum(counts, 1), dtype=np.float32)


def bounded(received: NDArray[np.float32], lengths: NDArray[np.int64], fully: int) -> NDArray[np.float32]:
    """Return what remains of it for a text of so many tokens: all of it up to `fully` tokens, then `fully` / length.

    A short turn needs those around it to be understood; a long one says itself what it is about.
    """
    return np.asarray(received * np.minimum(1.0, fully / np.maximum(lengths, 1)), dtype=np.float32)
