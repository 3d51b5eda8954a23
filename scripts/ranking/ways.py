"""Ways to order the recorded candidates of one question: by single signals, the product's, and it with other constants.

Each is a function from what was recorded to a value for each candidate, higher is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from commonplace.search import rank
from commonplace.search.rank import COVERED, DENSE_WEIGHTS, NEIGHBOUR_SHARES, RARE, WEIGHTS, standardise, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commonplace.search.rank import RankingContext
    from commonplace.search.request import PreparedQuery, Request
    from commonplace.search.signals import Candidates

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """What `search.rank.order` was given."""

    request: Request
    query: PreparedQuery
    candidates: Candidates
    context: RankingContext


Way = Callable[[Recorded], Values]


@contextmanager
def _constants(values: Mapping[str, Any]) -> Iterator[None]:
    """Give `ordering` other constants inside the block."""
    before = {name: getattr(rank, name) for name in values}
    try:
        for name, value in values.items():
            setattr(rank, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(rank, name, value)


def with_constants(**constants: Any) -> Way:
    """Return the product's way with other constants of `ordering`."""

    def way(recorded: Recorded) -> Values:
        with _constants(constants):
            ranking = rank.order(recorded.request, recorded.query, recorded.candidates, recorded.context)
        if ranking.candidates is recorded.candidates:
            return ranking.values
        values = np.full(len(recorded.candidates), ranking.values.min(initial=0.0) - 1, np.float32)
        values[np.searchsorted(recorded.candidates.numbers, ranking.candidates.numbers)] = ranking.values
        return values

    return way


def before(recorded: Recorded) -> Values:
    """Order as it was done before: all signals always count, the time as one of them, and neighbours lend sums."""
    candidates = recorded.candidates
    meaning = 2.0 if recorded.query.embedder == "minilm" else 1.0
    signals = [(1.0, candidates.lexical), (meaning, candidates.dense), (0.7, candidates.late)]
    if recorded.context.dated is not None:
        signals.append((1.0, recorded.context.dated.fits_of(candidates.owners)))
    own_values = np.sum([np.float32(weight) * standardise(values) for weight, values in signals], axis=0)
    values = own_values.copy()
    places = {number: index for index, number in enumerate(candidates.numbers.tolist())}
    for pairs, share in zip(steps(recorded.context.beside), (0.5, 0.25), strict=True):
        for receiver, lender in pairs.tolist():
            if receiver in places and lender in places:
                values[places[receiver]] += share * max(float(own_values[places[lender]]), 0.0)
    return np.asarray(values, np.float32)


SINGLE: Mapping[str, Way] = {
    "words alone": lambda recorded: recorded.candidates.lexical,
    "meaning alone": lambda recorded: recorded.candidates.dense,
    "late interaction alone": lambda recorded: recorded.candidates.late,
}
ALWAYS = (-2.0, -1.0)
"""A ramp that is always 1."""
NEVER = (1e8, 1e9)
"""A ramp that is always 0."""
NOW = "as it ships"
WAYS: Mapping[str, Way] = {
    **SINGLE,
    "before": before,
    NOW: with_constants(),
    "words always count": with_constants(COVERED=ALWAYS),
    "words never count": with_constants(COVERED=NEVER, RARE=NEVER),
    "words count by coverage alone": with_constants(RARE=NEVER),
    "words count by rarity alone": with_constants(COVERED=NEVER),
    "neighbours lend nothing": with_constants(NEIGHBOUR_SHARES=(0.0, 0.0), ANSWER_SHARE=0.0),
    "neighbours lend half": with_constants(NEIGHBOUR_SHARES=tuple(share / 2 for share in NEIGHBOUR_SHARES)),
    "questions lend nothing": with_constants(ANSWER_SHARE=0.0),
    "long turns receive as much": with_constants(SHORT_TURN=1_000_000),
    "a date counts nothing": with_constants(WEIGHTS={**WEIGHTS, "time": 0.0}),
    "crowding takes nothing": with_constants(CROWDING={}),
    "a speaker counts nothing": with_constants(WEIGHTS={**WEIGHTS, "speaker": 0.0}),
}

CHOICES: Mapping[str, Mapping[str, Any]] = {
    f"words {words:g}, late {late:g}, meaning {meaning:g}, covered from {covered:g}, rare from {rare:g}": {
        "WEIGHTS": {**WEIGHTS, "lexical": words, "late": late},
        "DENSE_WEIGHTS": {**DENSE_WEIGHTS, "minilm": meaning},
        "COVERED": (covered, covered + COVERED[1] - COVERED[0]),
        "RARE": (rare, rare + RARE[1] - RARE[0]),
    }
    for words, late in ((0.5, 0.7), (0.5, 0.85), (0.6, 0.7), (0.6, 0.85), (0.7, 0.85), (0.7, 1.0), (1.0, 1.0))
    for meaning in (1.0, 1.25, 1.5)
    for covered in (0.36, 0.42, 0.48)
    for rare in (1.1, 1.4)
}
