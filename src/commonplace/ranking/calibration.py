"""Calibrate raw signals to the probability that a hit is relevant, and to the score and confidence shown for it.

The probability is a logistic function of signals that are absolute, and of how far a passage's cosine stands out among
the candidates of the query. It is fitted for each embedder on several kinds of data, including questions that nothing
answers. Score and confidence are fixed functions of it, the same for all, so that two hits of equal probability have
equal scores whatever found them.

A text that is judged by itself, without a search, has a scale of its own: see `text_scores`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.types import Confidence

ANCHOR: Final = 0.70
ANCHOR_PROBABILITY: Final = 0.045
"""Probability at a score of `ANCHOR`: with it as the cut, nineteen in twenty of the queries of documents and code that
have a relevant hit among the first forty keep the first one. Fitted by `scripts/ranking/fit_calibration.py`."""
ABOVE, BELOW = 0.5, 1.0
"""Log-odds of the score for each unit of the probability's, above and below the anchor: a score of 0.30 stands for a
probability of 0.009, one of 0.86 for 0.25, and one of 0.93 for 0.60."""
SURE, LIKELY = 0.60, 0.25
"""Least probabilities at which a hit is called `sure` and `likely`; below both it is `weak`."""
RIVALS: Final = 5
"""Number of best other cosines with whose mean a cosine is compared."""
STRANGER: Final = np.float32(0.1)
"""Typical cosine of a question with a text about something else; about the mean of either embedder."""
FAINT: Final = np.float32(0.25)
"""Cosine below which two texts are hardly about the same thing."""
COMMON_WORDS: Final = np.float32(0.2)
"""Share of its words that any question has in common with some text, though nothing answers it."""
LEAD, FAINTNESS, COVERAGE = "lead", "faintness", "coverage"
WORDS, LEXICAL = "words_beyond_chance", "lexical_by_size"
"""Kinds of evidence: a cosine's lead over the mean of the best others; what it lacks of `FAINT`, as what stands out in
a crowd of strangers may be one itself; the share of the query that late interaction covers; the share of its words that
BM25 found, beyond `COMMON_WORDS`; and BM25 by ln(1 + passages), with which its best value grows by chance."""
_MIN_LOG_ODDS: Final = -30.0
"""Log-odds below which a probability is as good as 0; e^89 is beyond float32."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """The log-odds of relevance of a passage without any evidence, and the weight of each kind of evidence."""

    intercept: float
    weights: Mapping[str, float]

    def log_odds(self, found: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return the log-odds of relevance of the candidates of one query and one embedder, float32, shape (n,).

        Args:
            found: what `evidence` returns.
        """
        value = self.intercept + sum(np.float32(weight) * found[name] for name, weight in self.weights.items())
        return np.asarray(value, dtype=np.float32)


BY_EMBEDDER: Final[Mapping[str, Calibration]] = {
    "static": Calibration(-3.0, {LEAD: 7.24, FAINTNESS: 12.11, COVERAGE: 2.94, WORDS: 3.73, LEXICAL: 0.21}),
    "minilm": Calibration(-2.53, {LEAD: 11.87, FAINTNESS: 9.39, WORDS: 2.10}),
    "": Calibration(-4.18, {COVERAGE: 3.96, WORDS: 3.64, LEXICAL: 0.45}),
}
"""Calibration by embedder, "" for a query without a vector. Cosines of two embedders differ in meaning, so each has
weights of its own. Fitted by `scripts/ranking/fit_calibration.py`, which names the data sets."""


def calibration_of(embedder: str) -> Calibration:
    """Return the weights fitted for an embedder of that name; any other has those of a query without a vector, because
    the meaning of its cosines is unknown."""
    return BY_EMBEDDER.get(embedder, BY_EMBEDDER[""])


def leads(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how far each cosine exceeds the mean of the `RIVALS` best others, float32, shape (n,).

    If there are fewer others, `STRANGER` fills the rest: in a store of two copies each is as good as alone.
    """
    padded = np.concatenate([cosines, np.full(max(0, RIVALS + 1 - len(cosines)), STRANGER)])
    best = -np.sort(-padded)[: RIVALS + 1]
    # The rivals of one of the best are all others of these; the rivals of the rest are the first `RIVALS`.
    capped = np.maximum(cosines, best[-1])
    return np.asarray(cosines - (np.float32(best.sum()) - capped) / np.float32(RIVALS), dtype=np.float32)


def evidence(
    dense: NDArray[np.float32],
    coverage: NDArray[np.float32],
    words: NDArray[np.float32],
    lexical: NDArray[np.float32],
    passages: int,
) -> dict[str, NDArray[np.float32]]:
    """Return the evidence for and against each candidate of a query, by name, float32, shape (n,).

    Args:
        dense: cosine of query and passage, −1–1.
        coverage: late-interaction coverage of the query by the general weights of its tokens, 0–1.
        words: the share of the query that BM25 found, 0–1.
        lexical: BM25, not negative.
        passages: how many there are to choose from.
    """
    return {
        LEAD: leads(dense),
        FAINTNESS: np.minimum(dense - FAINT, np.float32(0)),
        COVERAGE: coverage,
        WORDS: np.maximum(words - COMMON_WORDS, np.float32(0)),
        LEXICAL: np.asarray(lexical / np.float32(math.log1p(max(1, passages))), dtype=np.float32),
    }


def probabilities(odds: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the probabilities of hits from their log-odds in rank order, never rising with the rank.

    Hits whose probabilities would rise share their mean (pool adjacent violators: Ayer et al. 1955), so probabilities
    are right on average, and a sure hit never ranks below a weak one.
    """
    blocks: list[tuple[float, int]] = []
    for value in _logistic(odds).tolist():
        total, count = value, 1
        while blocks and blocks[-1][0] * count < total * blocks[-1][1]:
            before = blocks.pop()
            total, count = total + before[0], count + before[1]
        blocks.append((total, count))
    means = np.array([total / count for total, count in blocks], dtype=np.float32)
    return np.repeat(means, [count for _, count in blocks]) if blocks else np.empty(0, np.float32)


def scores(probability: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the score of each probability, float32, shape (n,): increasing, `ANCHOR` at `ANCHOR_PROBABILITY`."""
    clipped = np.clip(probability.astype(np.float64), 1e-9, 1 - 1e-9)
    excess = np.log(clipped / (1 - clipped)) - math.log(ANCHOR_PROBABILITY / (1 - ANCHOR_PROBABILITY))
    return _logistic(math.log(ANCHOR / (1 - ANCHOR)) + excess * np.where(excess > 0, ABOVE, BELOW))


def confidence(probability: float) -> Confidence:
    """Return the word for a probability."""
    return "sure" if probability >= SURE else "likely" if probability >= LIKELY else "weak"


_TEXT_WEIGHTS: Final[Mapping[str, tuple[float, ...]]] = {
    "static": (-1.969, 3.295, 2.663, 6.582, -0.323, -0.36),
    "minilm": (-2.185, 3.262, 3.014, 7.381, -0.392, -0.26),
    # Without a vector, the share of covered words replaces the similarity.
    "": (-1.969, 3.295 + 6.582, 2.663, 0.0, -0.323, -0.36),
}
"""By embedder: the log-odds of a text that has nothing of the query; the weights of coverage, words, cosine and ln(1 +
passages); and the log-odds at a score of `ANCHOR`. An unknown embedder has those of the static table."""
_TEXT_ABOVE, _TEXT_BELOW = 0.4, 1.5


def text_scores(
    embedder: str, coverage: NDArray[np.float32], words: NDArray[np.float32], dense: NDArray[np.float32], passages: int
) -> NDArray[np.float32]:
    """Return scores of texts for one query that no other text can raise or lower, 0–1, float32, shape (n,).

    They serve the graph's entities and facts, and the re-ranker without a language model. From 0.70 on a text most
    likely answers. The arguments are those of `evidence`.
    """
    intercept, by_coverage, by_words, by_cosine, by_size, anchor = _TEXT_WEIGHTS.get(embedder, _TEXT_WEIGHTS["static"])
    odds = intercept + by_coverage * coverage + by_words * words + by_cosine * dense
    excess = odds + by_size * math.log1p(passages) - anchor
    steps = np.where(excess > 0, _TEXT_ABOVE, _TEXT_BELOW)
    return _logistic(math.log(ANCHOR / (1 - ANCHOR)) + excess * steps)


def literal_share(scores: NDArray[np.float32], rarity: float) -> NDArray[np.float32]:
    """Return min(1, s / 2·rarity), the part of a query that BM25 found, whatever the query's length.

    Args:
        scores: BM25, float32, shape (n,), not negative.
        rarity: the sum of the IDF of all terms of the query; a text with all in title and content reaches twice that.
    """
    if rarity <= 0.0:
        return np.zeros_like(scores)
    return np.asarray(np.minimum(scores / (2 * rarity), 1.0), dtype=np.float32)


def _logistic(value: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(value, _MIN_LOG_ODDS))), dtype=np.float32)
