"""Rank candidates and estimate the log-odds that each is relevant; place newer versions of a fact first.

Placing a newer memory above the one it updates hides nothing and changes no score. The constants are fitted on everyday
memories.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

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
"""Weights of the signals in the two-stage method. Signals are standardised, except the fits of time, 0–1, and speaker,
0 or 1, which are plain bonuses. Words and tokens count as far as words may decide; see `COVERED`."""
DENSE_WEIGHTS: Mapping[str, float] = {"minilm": 1.25}
"""Weight of `DENSE` by embedder, for those whose vectors tell more than words; others have that of `WEIGHTS`."""
COVERED = (0.42, 0.72)
"""Range of the best passage's coverage of the question (`Candidates.coverage`) over which words and late interaction
rise from no weight to full weight beside meaning.

A question in other words than its answer's has only chance matches, and standardising would amplify them like real
ones. Judged by `scripts/ranking/cross_validate.py`, as are all constants of the fusion."""
RARE = (1.10, 1.85)
"""Range of the best passage's BM25 divided by ln(1 + passages), its share of the highest rarity, that acts as `COVERED`
does. A long question is never covered, but two rare words of it are no chance. The larger weight counts."""
MEANT = (0.10, 0.25)
"""Range of the best cosine over which meaning rises from no weight to full weight where words decide.

Cosines of unrelated texts reach its upper end by chance alone. A query for an identifier gets what holds it, not what
its letters resemble; where words are no help, the best cosine decides however faint."""
COMPARABLE = frozenset({"minilm", "static"})
"""Embedders whose cosines of unrelated texts have nearly the same mean and deviation: .03–.18 and .09–.11 for questions
and passages of everyday, medquad, cosqa-dev, longmemeval-dev. Cosines of any other are standardised by themselves."""
TIME_LOG_ODDS = 1.0
"""Log-odds of relevance that a perfect fit with the asked time adds; a round guess."""
NEIGHBOUR_SHARES = (0.5, 0.25)
"""Shares that a turn of a conversation gets of the mean value of turns one and two steps away: half at each step."""
ANSWER_SHARE = 0.25
"""Share of the value of the turn before it that a turn receives besides, if that one asks something: an answer seldom
repeats the question. One longer than `SHORT_TURN` gives less, because it asks in passing. A round guess: it gains on
short turns, which nothing was fitted on, and loses a little on long ones."""
SHORT_TURN = 60
"""Length in tokens up to which a turn receives the full share of its neighbours; a longer one receives less."""
FLOOR = 0.3
"""Default minimum score, a probability of 0.009: candidates below it are held back. By it, one in two hundred of the
answerable questions loses an answer that would be among five hits."""
FIRST_FLOOR = 0.5
"""Default minimum score of the best hit, a probability of 0.02: below it the question is about something else, and all
hits are held back. It costs one in a hundred of the answerable questions all hits, more in stores of a few texts."""
_LITERAL_FIT = np.float32(0.5)
"""Value of a passage that holds an asked date literally: between those that mostly fit it and those that hardly do."""
_TIME_ALONE, _TIME_BESIDE, _NO_TIME = 8.0, 2.0, -5.0
"""Log-odds of relevance for a question with no subject but a time, in round numbers: what a perfect fit adds if all of
that time is asked for (a hit is then sure), what it adds if not (then weak), and the log-odds of no fit."""
_NEWNESS = np.float32(1e-3)
"""Weight of newness beside the fit to a time: it decides between closer fits, as only those of years to days are."""
Columns = dict[str, NDArray[np.float32]]


class Successor(NamedTuple):
    """A memory that supersedes a candidate.

    Attributes:
        row: its place, None if it is not ranked before the candidate: it is no candidate, or about something else.
        begins: when it begins to hold, seconds since the epoch.
        is_decided: whether a person or the graph says so.
    """

    id: str
    row: int | None
    begins: float
    is_decided: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with the value that orders them.

    Attributes:
        words: the words of the query, each as its terms.
        values: higher is better; float32, shape (n,).
        signals: the raw signals, by name; float32, shape (n,).
        parts: the signals as added up, mostly standardised; empty if a single signal orders the candidates.
        weights: the weight of each part, by name; float32, shape (n,).
        odds: log-odds of relevance; float32, shape (n,).
        evidence: the weight of each signal in the log-odds, by name; float32, shape (n,).
        fault: why the query could not be embedded; "" if it could.
        superseding: what supersedes a candidate, newest first, by its place.
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
    superseding: Mapping[int, tuple[Successor, ...]] = field(default_factory=dict)

    def best_first(self) -> Ranking:
        """Return the ranking sorted by value, ties by number: a candidate's index is then its place."""
        rows = np.lexsort((self.candidates.numbers, -self.values))
        candidates, values, odds = self.candidates.select(rows), self.values[rows], self.odds[rows]
        return replace(self, candidates=candidates, values=values, odds=odds, **_concatenated((self,), rows))

    def standing(self, now: float | None) -> tuple[Ranking, Mapping[int, tuple[int, ...]]]:
        """Return this without supersession by memories yet to begin, which rank behind, and what ranks before each."""
        standing, before = dict[int, tuple[Successor, ...]](), dict[int, tuple[int, ...]]()
        for row, successors in self.superseding.items():
            standing[row] = tuple(one for one in successors if now is None or one.begins <= now)
            before[row] = tuple(one.row for one in standing[row] if one.row is not None)
        for row, successors in self.superseding.items():
            for one in successors:
                if one.row is not None and one not in standing[row]:
                    before[one.row] = (*before.get(one.row, ()), row)
        return replace(self, superseding=standing), before

    def followed_by(self, wider: Ranking) -> Ranking:
        """Return these candidates, followed by those that only a wider ranking of the same query has.

        Both are sorted best first, and so is the result.
        """
        is_new = ~within(wider.candidates.numbers, np.sort(self.candidates.numbers))
        if not is_new.any() or not len(self.values):
            return self if len(self.values) else wider
        behind = np.zeros(len(wider.values), np.float32) + (self.values.min() - wider.values[is_new].max() - 1)
        parts, weights = dict(wider.parts), dict(wider.weights)
        if parts:
            parts[BEHIND], weights[BEHIND] = behind, np.ones_like(behind)
        rows = np.concatenate((np.arange(len(self.values)), len(self.values) + np.flatnonzero(is_new)))
        return replace(
            self,
            candidates=Candidates.of_all((self.candidates, wider.candidates.select(is_new))),
            values=np.concatenate((self.values, (wider.values + behind)[is_new])),
            odds=np.concatenate((self.odds, wider.odds[is_new])),
            **_concatenated((self, replace(wider, parts=parts, weights=weights)), rows),
        )


@dataclass(frozen=True, slots=True)
class RankingContext:
    """What orders candidates besides their own signals.

    Attributes:
        dated: the memories of the times that the query names; None if it names none.
        retention: of each candidate, 0–1, float32, shape (n,); None if it has no weight.
        passages: how many there are to choose from.
    """

    beside: dict[int, set[int]] = field(default_factory=dict)
    asked: AskedTimes = NO_TIMES
    dated: DatedOwners | None = None
    retention: NDArray[np.float32] | None = None
    passages: int = 1


def order(request: Request, query: PreparedQuery, candidates: Candidates, context: RankingContext) -> Ranking:
    """Return the ranking of the candidates: by one signal, by the asked time alone, or by all signals fused."""
    passages, dated, asked = context.passages, context.dated, context.asked
    if request.method != "two-stage":
        name = LEXICAL if request.method == "bm25" else DENSE
        candidates = candidates if name == DENSE else candidates.select(candidates.lexical > 0)
        values: NDArray[np.float32] = getattr(candidates, name)
        odds, grounds, weights = _relevance(query, candidates, passages)
        return Ranking(query.words, candidates, values, {**grounds, name: values}, {}, {}, odds, weights, passages)
    if dated is None or not asked.is_all:
        return _fused(request, query, candidates, context)
    # Only a time is asked for: the best fits come first, of these the newest. If the time is written in digits, what
    # holds the query literally counts too, though no date of it is known.
    fits = dated.fits_of(candidates.owners)
    is_literal = (candidates.literal >= IS_LITERAL) & asked.is_written
    keep = (fits > 0) | is_literal
    candidates, fits = candidates.select(keep), fits[keep]
    values = _LITERAL_FIT + _NEWNESS * candidates.dense
    values[fits > 0] = fits[fits > 0] + _NEWNESS * dated.newness_of(candidates.owners[fits > 0])
    odds, grounds, _ = _relevance(query, candidates, passages)
    odds = np.maximum(np.float32(_TIME_ALONE) * fits + np.float32(_NO_TIME), np.where(is_literal[keep], odds, -np.inf))
    signals, adds = {**grounds, TIME: fits}, {TIME: np.full(len(candidates), _TIME_ALONE, dtype=np.float32)}
    return Ranking(query.words, candidates, values, signals, {}, {}, odds.astype(np.float32), adds, passages, asked)


def combined(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking from those of several phrasings of a query, by the mean of their standardised values.

    A candidate has the signals and the log-odds of the phrasing that makes it likeliest. One that a phrasing leaves out
    has that phrasing's lowest value. A part is the weighted mean of the phrasings' parts.
    """
    numbers = np.concatenate([ranking.candidates.numbers for ranking in rankings])
    odds = np.concatenate([ranking.odds for ranking in rankings])
    # By number, then the likeliest first: the first row of each number is the one that speaks for it.
    rows = np.lexsort((-odds, numbers))
    chosen = rows[np.flatnonzero(np.diff(numbers[rows], prepend=-1))]
    zeros = np.zeros(len(chosen), dtype=np.float32)
    values, sums, weights = zeros.copy(), dict[str, NDArray[np.float32]](), dict[str, NDArray[np.float32]]()
    for ranking in rankings:
        positions = np.searchsorted(numbers[chosen], ranking.candidates.numbers)
        scaled = standardise(ranking.values)
        full = np.full(len(chosen), scaled.min(initial=0), dtype=np.float32)
        full[positions] = scaled
        values += full / np.float32(len(rankings))
        scale = np.float32(1.0 / (len(rankings) * max(float(ranking.values.std()), 1e-9))) if scaled.any() else 0.0
        for name, weight in ranking.weights.items():
            weights.setdefault(name, zeros.copy())[positions] += scale * weight
            sums.setdefault(name, zeros.copy())[positions] += scale * weight * ranking.parts[name]
    parts = {
        name: np.divide(part, weights[name], out=zeros.copy(), where=weights[name] != 0) for name, part in sums.items()
    }
    if parts:
        parts[PHRASINGS], weights[PHRASINGS] = values - fuse(parts, weights), zeros + 1
    return replace(
        rankings[0],
        words=tuple(dict.fromkeys(word for ranking in rankings for word in ranking.words)),
        candidates=Candidates.of_all([ranking.candidates for ranking in rankings]).select(chosen),
        values=values,
        odds=odds[chosen],
        **{**_concatenated(rankings, chosen), "parts": parts, "weights": weights},
    )


def _concatenated(rankings: Sequence[Ranking], rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return rows of the rankings' named arrays, concatenated; a ranking that lacks a name has zeros there."""
    joined: dict[str, dict[str, NDArray[np.float32]]] = {}
    for kind in ("signals", "parts", "weights", "evidence"):
        columns = [(getattr(ranking, kind), np.zeros_like(ranking.values)) for ranking in rankings]
        joined[kind] = {
            name: np.concatenate([arrays.get(name, zeros) for arrays, zeros in columns])[rows]
            for name in dict.fromkeys(chain.from_iterable(arrays for arrays, _ in columns))
        }
    return joined


def _fused(request: Request, query: PreparedQuery, candidates: Candidates, context: RankingContext) -> Ranking:
    """Order by all signals, standardised over the candidates and added as far as each may decide."""
    signals = {LEXICAL: candidates.lexical, DENSE: candidates.dense, LATE: candidates.late}
    crowded = np.array([CROWDING.get(name, 0.0) for name in query.embedders], np.float32)[candidates.spaces]
    scaled = {**signals, DENSE: candidates.dense - crowded * candidates.crowding}
    groups = {DENSE: _comparable(query, candidates)}
    parts = {name: standardise(values, groups.get(name)) for name, values in scaled.items()}
    certainty = _certainty(query, candidates, context.passages)
    # Beside a vector, words and tokens count as far as they may decide; without one, they alone count.
    words, dense = np.ones(len(candidates), np.float32), np.zeros(len(candidates), np.float32)
    for space, embedder in enumerate(query.embedders):
        if embedder:
            mask = candidates.spaces == space
            words[mask] = certainty
            dense[mask] = DENSE_WEIGHTS.get(embedder, WEIGHTS[DENSE]) * _meaning(candidates.dense[mask], certainty)
    weights = {LEXICAL: np.float32(WEIGHTS[LEXICAL]) * words, DENSE: dense, LATE: np.float32(WEIGHTS[LATE]) * words}
    odds, grounds, adds = _relevance(query, candidates, context.passages)

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
        fused, numbers = fuse(parts, weights), candidates.numbers
        received = np.zeros_like(fused)
        for pairs, share in zip(steps(context.beside), NEIGHBOUR_SHARES, strict=True):
            received += lend(fused, numbers, pairs, share)
        asking = numbers[candidates.asks].tolist()
        answers = [(other, number) for number in asking for other in context.beside.get(number, ()) if other > number]
        received += lend(bounded(fused, candidates.lengths, SHORT_TURN), numbers, _pairs(answers), ANSWER_SHARE)
        add(NEIGHBOURS, bounded(received, candidates.lengths, SHORT_TURN), 1.0)
    if context.retention is not None:
        add(RETENTION, context.retention, request.retention_weight)
        parts[RETENTION] = standardise(context.retention)
    values, signals = fuse(parts, weights), {**grounds, **signals}
    return Ranking(
        query.words, candidates, values, signals, parts, weights, odds, adds, context.passages, context.asked
    )


def _certainty(query: PreparedQuery, candidates: Candidates, passages: int) -> float:
    """Return how far words and tokens decide, 0–1."""
    return max(
        query.unspaced,  # in scripts without spaces only terms carry meaning
        ramp(float(candidates.coverage.max(initial=0.0)), *COVERED),
        ramp(float(candidates.lexical.max(initial=0.0)) / math.log1p(max(1, passages)), *RARE),
    )


def _meaning(cosines: NDArray[np.float32], certainty: float) -> float:
    """Return how far meaning decides beside words of the given certainty, 0–1."""
    return max(ramp(float(cosines.max(initial=0.0)), *MEANT), 1.0 - certainty)


def _relevance(
    query: PreparedQuery, candidates: Candidates, passages: int
) -> tuple[NDArray[np.float32], Columns, Columns]:
    """Return the log-odds of relevance, float32, shape (n,), the evidence behind them, and the weight of each kind."""
    certainty = _certainty(query, candidates, passages)
    grounds = evidence(candidates.dense, candidates.coverage, candidates.words, candidates.lexical, passages)
    # The lead of a cosine is taken among comparable ones.
    groups = _comparable(query, candidates)
    for group in np.flatnonzero(np.bincount(groups)) if len(groups) else ():
        grounds[LEAD][groups == group] = leads(candidates.dense[groups == group])
    odds = np.zeros(len(candidates), dtype=np.float32)
    weights = {name: np.zeros(len(candidates), dtype=np.float32) for name in grounds}
    for code, embedder in enumerate(query.embedders):
        in_space = candidates.spaces == code
        # A query in a script that the models do not know, or for an identifier, is judged by its words.
        by_words = np.float32(max(query.unspaced, 1.0 - _meaning(candidates.dense[in_space], certainty)))
        space_evidence = {name: values[in_space] for name, values in grounds.items()}
        for calibration, share in ((calibration_of(embedder), 1 - by_words), (calibration_of(""), by_words)):
            odds[in_space] += share * calibration.log_odds(space_evidence)
            for name, weight in calibration.weights.items():
                weights[name][in_space] += share * np.float32(weight)
    return odds, grounds, weights


def _comparable(query: PreparedQuery, candidates: Candidates) -> NDArray[np.uint8]:
    """Return the group of each candidate, within which cosines compare: `COMPARABLE` embedders share one."""
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
    """Return whose words a question is about: `ASSISTANT`, `USER`, or 0 for neither.

    A question with both "I" and "you" gives 0 unless it says that the assistant said something.
    """
    if _OF_ASSISTANT.search(question):
        return ASSISTANT
    return USER if _OF_USER.search(question) and not _TO_ASSISTANT.search(question) else 0


def steps(beside: dict[int, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that are one step apart and those that are two, int64, shape (n, 2), each in both directions."""
    adjacent = [(number, neighbour) for number, neighbours in beside.items() for neighbour in neighbours]
    second = {
        (number, far)
        for number, neighbours in beside.items()
        for neighbour in neighbours
        for far in beside[neighbour]
        if far != number and far not in neighbours
    }
    return _pairs(adjacent), _pairs(second)


def _pairs(values: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(sorted(values), dtype=np.int64).reshape(-1, 2)


POOL: Final = 100
"""Number of best candidates among which supersession is looked up."""
MAX_CHAIN: Final = 5
"""Maximum number of newer candidates moved before one as what it became; longer chains are notes of one form."""


def placed(order: Sequence[int], newer: Mapping[int, Sequence[int]]) -> list[tuple[int, int | None]]:
    """Return the candidates of an order, each after those newer than it, with the one that it was moved before.

    In a chain of up to `MAX_CHAIN` all are moved before the oldest, so that the newest comes first; in a longer one,
    each is moved before the next older.
    """
    remaining, result = set(order), list[tuple[int, int | None]]()
    for row in order:
        if row not in remaining:
            continue
        if row not in newer:
            remaining.discard(row)
            result.append((row, None))
        else:
            moved = _chain(row, None, newer, remaining)
            if 1 < len(moved) <= MAX_CHAIN + 1:
                moved[:-1] = [(newer_row, row) for newer_row, _ in moved[:-1]]
            result += moved
    return result


def _chain(
    row: int, before: int | None, newer: Mapping[int, Sequence[int]], remaining: set[int]
) -> list[tuple[int, int | None]]:
    """Take a candidate and those newer than it from `left`; return them in order, the candidate last."""
    remaining.discard(row)
    others = (_chain(newer_row, row, newer, remaining) for newer_row in newer.get(row, ()) if newer_row in remaining)
    return [*chain.from_iterable(others), (row, before)]


ROUNDING: Final = 1e-6
"""Error of float32 after some dozens of additions, relative to the largest value."""


def standardise(values: NDArray[np.float32], groups: NDArray[np.uint8] | None = None) -> NDArray[np.float32]:
    """Return (values − mean) / standard deviation over the candidates; zeros if all are equal but for rounding.

    Args:
        groups: the group of each value, standardised by itself because cosines of two embedders do not compare; uint8,
            shape (n,).
    """
    if groups is not None and len(groups) and groups.min() != groups.max():
        result = np.zeros_like(values)
        for group in np.flatnonzero(np.bincount(groups)):
            result[groups == group] = standardise(values[groups == group])
        return result
    if not len(values):
        return values
    deviation = float(values.std())
    # Sums of float32 in another order differ in their last bits: standardising would amplify that noise.
    if deviation < ROUNDING * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    return np.asarray((values - values.mean()) / deviation, dtype=np.float32)


def ramp(value: float, low: float, high: float) -> float:
    """Return 0 up to `low`, 1 from `high` on, and a linear value between."""
    return min(1.0, max(0.0, (value - low) / (high - low)))


def fuse(signals: Mapping[str, NDArray[np.float32]], weights: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return the weighted sum of the signals; one without a weight does not count.

    Over signals standardised over the union of the candidates this is CombSUM with z-scores (Wu, Crestani & Bi 2006);
    weights that depend on the query are reliability indicators (Bennett, Dumais & Horvitz 2005).

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
    positions = np.minimum(np.searchsorted(numbers, pairs), len(numbers) - 1)
    receivers, lenders = positions[(numbers[positions] == pairs).all(axis=1)].T
    np.add.at(received, receivers, np.float32(share) * np.maximum(values[lenders], 0))
    counts = np.bincount(receivers, minlength=len(values))
    return np.asarray(received / np.maximum(counts, 1), dtype=np.float32)


def bounded(received: NDArray[np.float32], lengths: NDArray[np.int64], fully: int) -> NDArray[np.float32]:
    """Return the values scaled by the length of their texts: 1 up to `fully` tokens, then `fully` / length.

    A short turn is understood only from those around it; a long one says itself what it is about.
    """
    return np.asarray(received * np.minimum(1.0, fully / np.maximum(lengths, 1)), dtype=np.float32)
