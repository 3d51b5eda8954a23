"""Rank candidates and estimate the log-odds that each is relevant; place newer versions of a fact first.

Placing a newer memory above the one it updates hides nothing and changes no score. The constants are fitted on everyday
memories.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.arrays import distinct, within
from commonplace.ranking.calibration import LEAD, calibration_of, evidence, leads
from commonplace.ranking.fusion import Groups, bounded, fuse, lend, ramp, standardise
from commonplace.search.request import PreparedQuery, Request
from commonplace.search.signals import (
    ANSWER_SHARE,
    BEHIND,
    COMPARABLE,
    COVERED,
    DENSE,
    DENSE_WEIGHTS,
    LATE,
    LEXICAL,
    MEANT,
    NEIGHBOUR_SHARES,
    NEIGHBOURS,
    PHRASINGS,
    RARE,
    RETENTION,
    SHORT_TURN,
    SPEAKER,
    TIME,
    TIME_LOG_ODDS,
    WEIGHTS,
    Candidates,
    answers,
    speaker_asked_for,
    steps,
)
from commonplace.search.signals import LITERAL as IS_LITERAL
from commonplace.search.time import NO_TIMES, AskedTimes, DatedOwners

_IS_HELD = np.float32(0.5)
"""What holds an asked date literally stands between the memories that mostly fit it and those that hardly do."""

_TIME_ALONE, _NO_TIME = 8.0, -5.0
"""Where the time is the whole question: the log-odds of relevance that a perfect fit adds, and that none has. Round."""

_BESIDE = np.float32(1e-3)
"""Newness decides between fits that differ by less than this, which only those of years to days do."""


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
        passages: how many there are to choose from.
        asked: the times that the query names.
        fault: why meaning had no part in it; "" where it had.
        newer: of candidates that are memories, by index, those that may have overtaken them, newest first.
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

    @property
    def size_bytes(self) -> int:
        """Bytes of the arrays, at most: some signals are the candidates' own."""
        own = (self.values, self.odds, *self.signals.values(), *self.parts.values(), *self.weights.values())
        own = (*own, *self.evidence.values())
        return self.candidates.size_bytes + sum(array.nbytes for array in own)

    def lacks_owners(self, count: int) -> bool:
        """Return whether the candidates are of fewer owners."""
        return len(self.candidates) < count or len(distinct(self.candidates.owners)) < count

    def followed_by(self, wider: Ranking) -> Ranking:
        """Return these candidates and, behind them, those of a wider ranking for the same query that are not here."""
        new = ~within(wider.candidates.numbers, self.candidates.numbers)
        if not new.any() or not len(self.values):
            return self if len(self.values) else wider
        behind = np.zeros(len(wider.values), np.float32) + (self.values.min() - wider.values[new].max() - 1)
        parts, weights = dict(wider.parts), dict(wider.weights)
        if parts:
            parts[BEHIND], weights[BEHIND] = behind, np.ones_like(behind)

        rows = np.concatenate((np.arange(len(self.values)), len(self.values) + np.flatnonzero(new)))
        both = (self, wider)
        return replace(
            self,
            candidates=self.candidates.followed_by(wider.candidates.select(new)),
            values=np.concatenate((self.values, (wider.values + behind)[new])),
            odds=np.concatenate((self.odds, wider.odds[new])),
            signals=_joined((self.signals, wider.signals), both, rows),
            parts=_joined((self.parts, parts), both, rows),
            weights=_joined((self.weights, weights), both, rows),
            evidence=_joined((self.evidence, wider.evidence), both, rows),
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What orders candidates besides their own signals.

    Attributes:
        beside: which passages are next to each other in a session.
        dated: the memories of the times that the query names; None where it names none.
        retention: of each candidate, 0–1, float32, shape (n,); None where it has no weight.
        passages: how many there are to choose from.
    """

    beside: dict[int, set[int]] = field(default_factory=dict)
    asked: AskedTimes = NO_TIMES
    dated: DatedOwners | None = None
    retention: NDArray[np.float32] | None = None
    passages: int = 1


def order(request: Request, query: PreparedQuery, candidates: Candidates, context: Context) -> Ranking:
    """Return the candidates with what orders them."""
    if request.method == "bm25":
        candidates = candidates.select(candidates.lexical > 0)
        return _by_one(LEXICAL, candidates.lexical, query, candidates, context)
    if request.method == "semantic":
        return _by_one(DENSE, candidates.dense, query, candidates, context)
    if context.dated is not None and context.asked.is_all:
        return _by_time(query, candidates, context, context.dated)
    return _fused(request, query, candidates, context)


def together(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking of what several phrasings of a query rank, by the mean of their values, each standardised.

    A candidate has the signals and the log-odds of the phrasing that makes it likeliest. One that a phrasing leaves out
    has its lowest value there. A part is the mean of its parts by what they weigh.
    """
    if len(rankings) == 1:
        return rankings[0]
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
    columns = [[getattr(ranking.candidates, each.name) for ranking in rankings] for each in fields(Candidates)]
    return replace(
        rankings[0],
        words=tuple(dict.fromkeys(word for ranking in rankings for word in ranking.words)),
        candidates=Candidates(*(np.concatenate(arrays)[chosen] for arrays in columns)),
        values=values,
        signals=_joined([ranking.signals for ranking in rankings], rankings, chosen),
        parts=parts,
        weights=weights,
        odds=odds[chosen],
        evidence=_joined([ranking.evidence for ranking in rankings], rankings, chosen),
    )


def _joined(
    each: Sequence[Mapping[str, NDArray[np.float32]]], rankings: Sequence[Ranking], rows: NDArray[np.intp]
) -> dict[str, NDArray[np.float32]]:
    """Return those rows of what several rankings have by name, one after the other, 0 where one has it not."""
    nothing = [np.zeros(len(ranking.values), np.float32) for ranking in rankings]
    return {
        name: np.concatenate([held.get(name, none) for held, none in zip(each, nothing, strict=True)])[rows]
        for name in dict.fromkeys(chain.from_iterable(each))
    }


def _by_one(
    name: str, values: NDArray[np.float32], query: PreparedQuery, candidates: Candidates, context: Context
) -> Ranking:
    found = _judged(query, candidates, context)
    signals = {**found.evidence, name: values}
    return Ranking(query.words, candidates, values, signals, {}, {}, found.odds, found.weights, context.passages)


def _fused(request: Request, query: PreparedQuery, candidates: Candidates, context: Context) -> Ranking:
    signals, parts = _own_signals(candidates), _standardised(query, candidates)
    weights = _weights(query, candidates, context.passages)
    found = _judged(query, candidates, context)
    odds, adds = found.odds, dict(found.weights)
    if context.dated is not None:
        signals[TIME] = parts[TIME] = context.dated.fits_of(candidates.owners)
        weights[TIME] = np.full(len(candidates), WEIGHTS[TIME], dtype=np.float32)
        odds = odds + np.float32(TIME_LOG_ODDS) * signals[TIME]
        adds[TIME] = np.full(len(candidates), TIME_LOG_ODDS, dtype=np.float32)
    speaker = speaker_asked_for(request.query)
    if speaker and candidates.speakers.any():
        signals[SPEAKER] = parts[SPEAKER] = (candidates.speakers == speaker).astype(np.float32)
        weights[SPEAKER] = np.full(len(candidates), WEIGHTS[SPEAKER], dtype=np.float32)
    one = np.ones(len(candidates), dtype=np.float32)
    if context.beside:
        signals[NEIGHBOURS] = parts[NEIGHBOURS] = _lent(fuse(parts, weights), candidates, context.beside)
        weights[NEIGHBOURS] = one
    if context.retention is not None:
        signals[RETENTION], parts[RETENTION] = context.retention, standardise(context.retention)
        weights[RETENTION] = one * np.float32(request.retention_weight)
    values = fuse(parts, weights)
    signals = {**found.evidence, **signals}
    return Ranking(
        query.words, candidates, values, signals, parts, weights, odds, adds, context.passages, context.asked
    )


def _weights(query: PreparedQuery, candidates: Candidates, passages: int) -> dict[str, NDArray[np.float32]]:
    """Return what the standardised signals of each candidate weigh: words and tokens as far as they may decide."""
    words, dense = np.zeros(len(candidates), np.float32), np.zeros(len(candidates), np.float32)
    groups, embedders = candidates.spaces, query.embedders
    certain = _certain(query, candidates, passages)
    for group, embedder in enumerate(embedders):
        here = groups == group
        words[here] = certain if embedder else 1.0
        if embedder:
            dense[here] = DENSE_WEIGHTS.get(embedder, WEIGHTS[DENSE]) * _meant(candidates.dense[here], certain)
    return {LEXICAL: np.float32(WEIGHTS[LEXICAL]) * words, DENSE: dense, LATE: np.float32(WEIGHTS[LATE]) * words}


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


def _lent(values: NDArray[np.float32], candidates: Candidates, beside: dict[int, set[int]]) -> NDArray[np.float32]:
    """Return what each candidate receives from the turns around it."""
    numbers = candidates.numbers
    received = np.zeros_like(values)
    for pairs, share in zip(steps(beside), NEIGHBOUR_SHARES, strict=True):
        received += lend(values, numbers, pairs, share)
    asked = bounded(values, candidates.lengths, SHORT_TURN)
    received += lend(asked, numbers, answers(beside, numbers[candidates.asks]), ANSWER_SHARE)
    return bounded(received, candidates.lengths, SHORT_TURN)


def _by_time(query: PreparedQuery, candidates: Candidates, context: Context, dated: DatedOwners) -> Ranking:
    """Order what is of the time that is asked for, best fit first, then newest: nothing else is asked for.

    Where the time is written in digits, what holds the query literally is of it too, though no date of it is known.
    """
    fits, asked = dated.fits_of(candidates.owners), context.asked
    is_held = (candidates.literal >= IS_LITERAL) & asked.is_written
    keep = (fits > 0) | is_held
    candidates, fits = candidates.select(keep), fits[keep]
    values = _IS_HELD + _BESIDE * candidates.dense
    values[fits > 0] = fits[fits > 0] + _BESIDE * dated.newness_of(candidates.owners[fits > 0])
    found = _judged(query, candidates, context)
    odds = np.maximum(
        np.float32(_TIME_ALONE) * fits + np.float32(_NO_TIME), np.where(is_held[keep], found.odds, -np.inf)
    )
    return Ranking(
        query.words,
        candidates,
        values,
        {**found.evidence, TIME: fits},
        {},
        {},
        odds.astype(np.float32),
        {TIME: np.full(len(candidates), _TIME_ALONE, dtype=np.float32)},
        context.passages,
        asked,
    )


def _own_signals(candidates: Candidates) -> dict[str, NDArray[np.float32]]:
    return {LEXICAL: candidates.lexical, DENSE: candidates.dense, LATE: candidates.late}


def _standardised(query: PreparedQuery, candidates: Candidates) -> dict[str, NDArray[np.float32]]:
    return {
        LEXICAL: standardise(candidates.lexical),
        DENSE: standardise(candidates.dense, _comparable(query, candidates)),
        LATE: standardise(candidates.late),
    }


def _comparable(query: PreparedQuery, candidates: Candidates) -> Groups:
    """Return groups of candidates whose cosines compare: those of our embedders are one, see `COMPARABLE`."""
    codes = [0 if name in COMPARABLE else code + 1 for code, name in enumerate(query.embedders)]
    return np.array(codes, dtype=np.uint8)[candidates.spaces]


@dataclass(frozen=True, slots=True)
class _Judged:
    """Log-odds of relevance, float32, shape (n,), the evidence behind them, and what each kind of it weighs."""

    odds: NDArray[np.float32]
    evidence: Mapping[str, NDArray[np.float32]]
    weights: Mapping[str, NDArray[np.float32]]


def _judged(query: PreparedQuery, candidates: Candidates, context: Context) -> _Judged:
    found = evidence(candidates.dense, candidates.coverage, candidates.words, candidates.lexical, context.passages)
    # A cosine stands out among such as compare with it.
    groups = _comparable(query, candidates)
    for group in np.flatnonzero(np.bincount(groups)) if len(groups) else ():
        found[LEAD][groups == group] = leads(candidates.dense[groups == group])
    odds = np.zeros(len(candidates), dtype=np.float32)
    weights = {name: np.zeros(len(candidates), dtype=np.float32) for name in found}
    certain = _certain(query, candidates, context.passages)
    for code, embedder in enumerate(query.embedders):
        here = candidates.spaces == code
        # What is asked in a script that the models do not know, or by an identifier, is judged by its words.
        by_words = np.float32(max(query.unspaced, 1.0 - _meant(candidates.dense[here], certain)))
        evidence_here = {name: values[here] for name, values in found.items()}
        for calibration, share in ((calibration_of(embedder), 1 - by_words), (calibration_of(""), by_words)):
            odds[here] += share * calibration.log_odds(evidence_here)
            for name, weight in calibration.weights.items():
                weights[name][here] += share * np.float32(weight)
    return _Judged(odds, found, weights)


POOL: Final = 100
"""So many of the best candidates are compared with each other."""
NEAREST: Final = 5
"""A text's surroundings are the mean of so many of its nearest among them."""
COMPETING: Final = 0.25
"""From this sum on, of what follows, two memories compete: the locally scaled cosine (2 · cosine − the surroundings of
either: "csls", Conneau et al. 2018), …"""
CHANGE: Final = 0.08
"""… so much for each word of change in the newer one, up to `MAX_CHANGES`, …"""
MAX_CHANGES: Final = 2
MAX_CHANGE_LENGTH: Final = 64
"""Any longer text, in tokens, has such words by chance, and they do not count."""
MIN_SIMILARITY: Final = 0.35
"""Texts with a smaller cosine are about different things, however few others there are to scale it by."""
MIN_SIMILARITY_OF_FEW: Final = 0.5
"""The same where there are not `NEAREST` others, and strangers, with `STRANGER`, stand for the rest."""
STRANGER: Final = np.float32(0.1)
MIN_RELATED: Final = 0.3
"""… less what the newer one's cosine with the query is lower by than this."""

WORDS_OF_CHANGE: Final = (
    "again anymore back became becomes broke cancelled change changed changes closed cut died ended ends extended "
    "finally finished former formerly from gone got increased instead left longer lost lowered merged moved moving new "
    "newly no now old over postponed previously promoted raised reduced renamed replaced replaces resigned retired "
    "since sold split started starting starts stepped stopped switched switching today tomorrow tonight took traded "
    "until upgraded went yet"
)
"""They tell that something is no longer as it was, or is from now on. In English, as the texts to choose on are."""


class Placed(NamedTuple):
    """A candidate in its place.

    Attributes:
        place: its index among the candidates.
        before: the index of the older candidate that it was moved before; None of one that was not moved.
    """

    place: int
    before: int | None


@dataclass(frozen=True, slots=True)
class Dated:
    """n memories with a date of their own, of one search.

    Attributes:
        places: their indices among the candidates, int64, shape (n,).
        times: seconds since the epoch, float64, shape (n,).
        sessions: "" where there is none; two of one session do not compete, for one follows from the other.
        vectors: float32, shape (n, d), rows of unit length or zero.
        dense: cosines with the query, float32, shape (n,).
        holds: whether it holds all numbers that the query names, bool, shape (n,); False where it names none.
        changes: how many different words of change each has, int64, shape (n,), 0 in long texts.
    """

    places: NDArray[np.int64]
    times: NDArray[np.float64]
    sessions: Sequence[str]
    vectors: NDArray[np.float32]
    dense: NDArray[np.float32]
    holds: NDArray[np.bool_]
    changes: NDArray[np.int64]


def change_tokens(tokenize: Callable[[str], NDArray[np.uint16]]) -> frozenset[int]:
    """Return the tokens that are words of change; words of several tokens are left out."""
    found = (tokenize(word).tolist() for word in WORDS_OF_CHANGE.split())
    return frozenset(ids[0] for ids in found if len(ids) == 1)


def count_changes(token_ids: NDArray[np.uint16], words: frozenset[int]) -> int:
    """Return how many different words of change a text has, 0 in a long one."""
    return 0 if len(token_ids) > MAX_CHANGE_LENGTH else len(words.intersection(token_ids.tolist()))


def scaled_cosines(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2 · cosine − the mean cosine of either with its `NEAREST` nearest others, float32, shape (n, n)."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    padded = np.hstack([cosines, np.full((len(cosines), NEAREST), STRANGER if len(cosines) <= NEAREST else -1.0)])
    around = -np.sort(-padded, axis=1)[:, :NEAREST].mean(axis=1).astype(np.float32)
    return np.asarray(2 * cosines - around[:, np.newaxis] - around, dtype=np.float32)


def competitors(dated: Dated) -> dict[int, tuple[int, ...]]:
    """Return for each candidate that newer ones compete with these, newest first, ties by place."""
    if len(dated.places) < 2:
        return {}
    changes = np.minimum(dated.changes, MAX_CHANGES)
    # Rows are the older, columns the newer ones.
    unrelated = np.minimum(dated.dense - dated.dense[:, np.newaxis] + np.float32(MIN_RELATED), 0)
    values = scaled_cosines(dated.vectors) + CHANGE * changes + unrelated
    least = MIN_SIMILARITY if len(dated.places) > NEAREST else MIN_SIMILARITY_OF_FEW
    alike = dated.vectors @ dated.vectors.T >= least
    # What holds the number that is asked for is not overtaken by what holds another one.
    alike &= dated.holds | ~dated.holds[:, np.newaxis]
    sessions = np.array([hash(name) if name else index for index, name in enumerate(dated.sessions)])
    is_newer = (dated.times > dated.times[:, np.newaxis]) & (sessions != sessions[:, np.newaxis])
    found: dict[int, list[int]] = {}
    for older, newer in np.argwhere(is_newer & alike & (values >= COMPETING)).tolist():
        found.setdefault(older, []).append(newer)
    return {
        int(dated.places[older]): tuple(
            int(dated.places[each]) for each in sorted(newer, key=lambda each: (-dated.times[each], dated.places[each]))
        )
        for older, newer in found.items()
    }


def placed(order: Sequence[int], newer: Mapping[int, Sequence[int]]) -> list[Placed]:
    """Return the candidates of an order, each after what is newer than it and was not placed before.

    Args:
        order: indices of candidates, best first.
        newer: of some of them, the indices of their newer competitors, newest first.
    """
    known, done = set(order), set()
    result: list[Placed] = []
    for place in order:
        if place in done:
            continue
        for other in newer.get(place, ()):
            if other in known and other not in done:
                done.add(other)
                result.append(Placed(other, place))
        done.add(place)
        result.append(Placed(place, None))
    return result
