"""From candidates to an order of them, and the log-odds that each is relevant: fuse, lend to neighbours, add up.

It knows signals and weights, not where they were read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.calibration import Calibration, calibration_of, log_odds
from commonplace.ranking.fusion import fuse, lend, standardise
from commonplace.search.candidates import (
    COVERAGE,
    DENSE,
    LATE,
    LEXICAL,
    NEIGHBOURS,
    RETENTION,
    TIME,
    WORDS,
    Candidates,
)
from commonplace.search.constants import NEIGHBOUR_SHARES, TIME_LOG_ODDS, weights_of
from commonplace.search.conversation import steps
from commonplace.search.request import PreparedQuery, Request
from commonplace.search.signals import LITERAL as IS_LITERAL
from commonplace.search.times import NO_TIMES, AskedTimes, DatedOwners

_IS_HELD = np.float32(0.5)
"""What holds an asked date literally stands between the memories that mostly fit it and those that hardly do."""

_BESIDE = np.float32(1e-3)
"""Newness decides between fits that differ by less than this, which only those of years to days do."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates with the value that orders them.

    Attributes:
        values: higher is better; float32, shape (n,).
        signals: what was fused, by name, before standardising.
        weights: weight of each standardised signal; empty for a single-signal method.
        odds: log-odds of relevance; float32, shape (n,).
        calibration: the scale that they are on.
        evidence: what each signal weighs in them, by name.
        asked: the times that the query names.
        fault: why meaning had no part in it; "" where it had.
        words: the query's, the terms of each.
    """

    terms: tuple[str, ...]
    candidates: Candidates
    values: NDArray[np.float32]
    signals: Mapping[str, NDArray[np.float32]]
    weights: Mapping[str, float]
    odds: NDArray[np.float32]
    calibration: Calibration
    evidence: Mapping[str, float]
    asked: AskedTimes = NO_TIMES
    fault: str = ""
    words: tuple[tuple[str, ...], ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of the arrays, at most: some signals are the candidates' own."""
        own = (self.values, self.odds, *self.signals.values())
        return self.candidates.size_bytes + sum(array.nbytes for array in own)


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
        signals = {LEXICAL: candidates.lexical}
        return Ranking(query.terms, candidates, candidates.lexical, signals, {}, *_odds(query, candidates, context))
    if request.method == "semantic":
        return Ranking(
            query.terms, candidates, candidates.dense, {DENSE: candidates.dense}, {}, *_odds(query, candidates, context)
        )
    if context.dated is not None and context.asked.is_all:
        return _by_time(query, candidates, context, context.dated)
    return _fused(request, query, candidates, context)


def together(rankings: Sequence[Ranking]) -> Ranking:
    """Return one ranking of what several phrasings of a query rank, by the mean of their values, each standardised.

    A candidate has the signals and the log-odds of the phrasing that makes it likeliest. One that a phrasing leaves out
    has its lowest value there.
    """
    if len(rankings) == 1:
        return rankings[0]
    numbers = np.concatenate([ranking.candidates.numbers for ranking in rankings])
    odds = np.concatenate([ranking.odds for ranking in rankings])
    # By number, then the likeliest first: the first row of each number is the one that speaks for it.
    rows = np.lexsort((-odds, numbers))
    chosen = rows[np.flatnonzero(np.diff(numbers[rows], prepend=-1))]
    values = np.zeros(len(chosen), dtype=np.float32)
    for ranking in rankings:
        own = standardise(ranking.values)
        of_all = np.full(len(chosen), own.min(initial=0), dtype=np.float32)
        of_all[np.searchsorted(numbers[chosen], ranking.candidates.numbers)] = own
        values += of_all / np.float32(len(rankings))
    names = [name for name in rankings[0].signals if all(name in ranking.signals for ranking in rankings)]
    parts = {each.name: [getattr(ranking.candidates, each.name) for ranking in rankings] for each in fields(Candidates)}
    return replace(
        rankings[0],
        candidates=Candidates(**{name: np.concatenate(arrays)[chosen] for name, arrays in parts.items()}),
        values=values,
        signals={name: np.concatenate([ranking.signals[name] for ranking in rankings])[chosen] for name in names},
        odds=odds[chosen],
        fault=next((ranking.fault for ranking in rankings if ranking.fault), ""),
        words=tuple(dict.fromkeys(word for ranking in rankings for word in ranking.words)),
    )


def _fused(request: Request, query: PreparedQuery, candidates: Candidates, context: Context) -> Ranking:
    signals, weights = _own_signals(candidates), weights_of(query.embedder)
    odds, calibration, evidence = _odds(query, candidates, context)
    if context.dated is None:
        del weights[TIME]
    else:
        signals[TIME] = context.dated.fits_of(candidates.owners)
        odds = odds + np.float32(TIME_LOG_ODDS) * signals[TIME]
        evidence[TIME] = TIME_LOG_ODDS
    own = fuse(signals, weights)
    values = own
    if context.beside:
        received = np.zeros_like(own)
        for pairs, share in zip(steps(context.beside), NEIGHBOUR_SHARES, strict=True):
            received += lend(own, candidates.numbers, pairs, share)
        signals[NEIGHBOURS] = received
        values = own + received
    if context.retention is not None:
        signals[RETENTION], weights[RETENTION] = context.retention, request.retention_weight
        values = values + fuse({RETENTION: context.retention}, weights)
    return Ranking(query.terms, candidates, values, signals, weights, odds, calibration, evidence, context.asked)


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
    # The time is the whole question, so its fit stands for how well each signal covers the question.
    own, calibration, evidence = _odds(query, candidates, context)
    odds = np.maximum(log_odds(calibration, fits, fits, fits, context.passages), np.where(is_held[keep], own, -np.inf))
    evidence = {TIME: sum(evidence.values())}
    return Ranking(
        query.terms, candidates, values, {TIME: fits}, {}, odds.astype(np.float32), calibration, evidence, asked
    )


def _own_signals(candidates: Candidates) -> dict[str, NDArray[np.float32]]:
    return {LEXICAL: candidates.lexical, DENSE: candidates.dense, LATE: candidates.late}


def _odds(
    query: PreparedQuery, candidates: Candidates, context: Context
) -> tuple[NDArray[np.float32], Calibration, dict[str, float]]:
    """Return the log-odds of relevance, float32, shape (n,), the scale that they are on, and what signals weigh."""
    calibration = calibration_of(query.embedder)
    if not query.embedder:
        # Without a vector, how well its words are covered stands for how alike they are: the scale wants both.
        calibration = replace(calibration, coverage=calibration.coverage + calibration.dense, dense=0.0)
    odds = log_odds(calibration, candidates.coverage, candidates.words, candidates.dense, context.passages)
    return odds, calibration, {COVERAGE: calibration.coverage, WORDS: calibration.words, DENSE: calibration.dense}
