"""Ways to rank the recorded candidates of one question: the product's, the one before it, and what was tried beside.

Each is a function from what was recorded to a value for each candidate, higher is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.fusion import lend, standardise
from commonplace.ranking.late import Matches, weighted_share
from commonplace.search.constants import FADING, NEIGHBOUR_SHARES, WEIGHTS

LATE = WEIGHTS["late"]
Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """n candidates of a question with q tokens, by number ascending.

    Attributes:
        matches: the candidates' tokens that are like one of the question.
        idf, weights: of the question's tokens, by their rarity here and by the length of their vectors.
        sequence: the question's tokens as they follow each other, by their places among the q.
        steps: pairs of candidates that are one and two turns of a conversation apart.
    """

    numbers: NDArray[np.int64]
    lexical: Values
    dense: Values
    matches: Matches
    lengths: NDArray[np.int64]
    idf: Values
    weights: Values
    sequence: tuple[int, ...]
    query: Values
    vectors: Values
    steps: tuple[NDArray[np.int64], ...]


Way = Callable[[Recorded], Values]


def coverage(recorded: Recorded, fading: float = inf, *, by: Values | None = None, power: float = 1.0) -> Values:
    """Return how much of the question each candidate covers, by the IDF of its tokens or other weights."""
    return weighted_share(recorded.matches.best(fading) ** power, recorded.idf if by is None else by)


def fused(recorded: Recorded, late: Values, weights: tuple[float, float, float], more: Values | None = None) -> Values:
    """Return the weighted sum of words, meaning and late interaction, with what neighbours lend."""
    signals = (recorded.lexical, recorded.dense, late)
    own = sum((w * standardise(each) for w, each in zip(weights, signals, strict=True)), np.zeros_like(late))
    own = own if more is None else own + more
    lent = (lend(own, recorded.numbers, pairs, s) for pairs, s in zip(recorded.steps, NEIGHBOUR_SHARES, strict=True))
    return np.asarray(own + sum(lent), np.float32)


def faded(fading: float = FADING, late: float = LATE, dense: float = 1.0) -> Way:
    """Return the product's way, with its constants or others."""
    return lambda recorded: fused(recorded, coverage(recorded, fading), (1.0, dense, late))


def before(recorded: Recorded) -> Values:
    """Rank as it was done before: all places count alike, long passages are held back."""
    late = coverage(recorded) / np.maximum(recorded.lengths, 1).astype(np.float32) ** 0.15
    return fused(recorded, late, (1.0, 1.0, 0.7))


def weighed(by: Callable[[Recorded], Values]) -> Way:
    """Return the product's way with other weights of the question's tokens."""
    return lambda recorded: fused(recorded, coverage(recorded, FADING, by=by(recorded)), (1.0, 1.0, LATE))


def squared(recorded: Recorded) -> Values:
    """Rank with squared similarities, which hold back tokens that are but a little alike."""
    return fused(recorded, coverage(recorded, FADING, power=2.0), (1.0, 1.0, LATE))


def with_phrases(share: float, window: int) -> Way:
    """Return the product's way with a fourth signal: tokens that follow each other in the question do so here.

    As the ordered windows of Metzler and Croft, "A Markov random field model for term dependencies" (2005), but a pair
    counts the product of its similarities.
    """

    def way(recorded: Recorded) -> Values:
        late = coverage(recorded, FADING)
        return fused(recorded, late, (1.0, 1.0, LATE), share * standardise(_phrases(recorded, window)))

    return way


def _phrases(recorded: Recorded, window: int) -> Values:
    matches, pairs = recorded.matches, [pair for pair in pairwise(recorded.sequence) if pair[0] != pair[1]]
    total = np.zeros(matches.count, np.float32)
    if not pairs or not len(matches.starts):
        return total
    first, second = (np.array(each) for each in zip(*pairs, strict=True))
    worth = np.minimum(recorded.idf[first], recorded.idf[second])
    passage = np.repeat(np.arange(len(matches.starts)), np.diff([*matches.starts, len(matches.places)]))
    best = np.zeros((len(matches.places), len(pairs)), np.float32)
    # Matches are by place ascending, so one at most `window` places away is at most `window` matches away.
    for ahead in range(1, min(window, len(matches.places) - 1) + 1):
        apart = matches.places[ahead:] - matches.places[:-ahead]
        near = (passage[ahead:] == passage[:-ahead]) & (apart <= window)
        both = matches.similarities[:-ahead][:, first] * matches.similarities[ahead:][:, second]
        best[:-ahead] = np.maximum(best[:-ahead], both * near[:, np.newaxis])
    best /= np.sqrt(1 + matches.places / FADING).astype(np.float32)[:, np.newaxis]
    total[matches.passages] = weighted_share(np.maximum.reduceat(best, matches.starts, axis=0), worth)
    return total


def with_feedback(first: int, share: float) -> Way:
    """Return the product's way with a question moved towards its first candidates (Rocchio 1971)."""

    def way(recorded: Recorded) -> Values:
        late = coverage(recorded, FADING)
        own = sum(map(standardise, (recorded.lexical, recorded.dense)), LATE * standardise(late))
        middle = recorded.vectors[np.argsort(-own, kind="stable")[:first]].mean(axis=0)
        moved = (1 - share) * recorded.query + share * middle / max(float(np.linalg.norm(middle)), 1e-9)
        difference = standardise(recorded.vectors @ moved) - standardise(recorded.dense)
        return fused(recorded, late, (1.0, 1.0, LATE), difference)

    return way


WORDS, BEFORE, NOW = "words alone", "before", f"fading {FADING:g}, late {LATE:g}"
WAYS: Mapping[str, Way] = {
    WORDS: lambda recorded: recorded.lexical,
    BEFORE: before,
    NOW: faded(),
    **{
        f"fading {fading:g}, late {late:g}": faded(fading, late)
        for fading in (4.0, 8.0, 16.0, 32.0)
        for late in (0.7, 1.0, 1.4)
        if (fading, late) != (FADING, LATE)
    },
    "meaning 0.7": faded(dense=0.7),
    "meaning 1.4": faded(dense=1.4),
    "tokens by IDF × length": weighed(lambda recorded: recorded.idf * recorded.weights),
    "tokens by IDF²": weighed(lambda recorded: recorded.idf**2),
    "similarities squared": squared,
    "phrases 0.2, window 1": with_phrases(0.2, 1),
    "phrases 0.2, window 3": with_phrases(0.2, 3),
    "phrases 0.4, window 3": with_phrases(0.4, 3),
    "feedback of 3, 0.5": with_feedback(3, 0.5),
    "feedback of 5, 0.5": with_feedback(5, 0.5),
}
