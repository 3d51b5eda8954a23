"""From a ranking to hits: calibrate, drop what the cut and the owners' shares leave out, fetch the rest.

It knows ranked candidates and the store, not how they were ranked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.arrays import distinct
from commonplace.ranking.calibration import Calibration, probabilities, scale
from commonplace.ranking.fusion import never_below_what_follows, standardise
from commonplace.search.candidates import COVERAGE, DENSE, LATE, LEXICAL, WORDS
from commonplace.search.hits import Found, make_hit, read, without_secrets
from commonplace.search.trace import Candidate, Reason, Trace, Unmade

if TYPE_CHECKING:
    from commonplace.search.ordering import Ranking
    from commonplace.search.request import Request
    from commonplace.store.contract import Store
    from commonplace.types import Hit

TRACE_LENGTH = 20
"""How many rejected candidates a result remembers."""


def select(ranking: Ranking, request: Request, store: Store) -> tuple[tuple[Hit, ...], Trace]:
    """Return the hits, best first, ties by id, and the trace that explains them."""
    order = np.lexsort((ranking.candidates.numbers, -ranking.values))
    scores = _scores(ranking.odds[order], ranking.calibration)
    likely = probabilities(ranking.calibration, ranking.odds[order])
    chosen, rejected = _choose(ranking, order, scores, request)
    places = [int(order[rank]) for rank in chosen]
    numbers, owners = ranking.candidates.numbers[places], distinct(ranking.candidates.owners[places])
    held = read(store, request.namespace, numbers.tolist(), owners.tolist())
    found: list[tuple[float, str, int, Hit]] = []
    for rank in chosen:
        place = int(order[rank])
        number, owner = int(ranking.candidates.numbers[place]), int(ranking.candidates.owners[place])
        found_by = Found(float(scores[rank]), float(likely[rank]), _raw(ranking, place))
        hit = make_hit(held, number, owner, found_by)
        if hit is not None:
            found.append((-float(ranking.values[place]), hit.id, rank, hit))
    found.sort(key=lambda item: item[:2])
    found = found[: request.limit]
    ranks = sorted([*((rank, None) for _, _, rank, _ in found), *rejected[:TRACE_LENGTH]])
    trace = Trace(
        candidates=Unmade(lambda: _traced(ranking, order, scores, ranks)),
        weights=ranking.weights,
        terms=ranking.words,
        min_score=request.min_score,
        numbers={hit.id: int(ranking.candidates.numbers[order[rank]]) for _, _, rank, hit in found},
        times=ranking.asked.times,
        evidence=ranking.evidence,
    )
    return without_secrets([hit for _, _, _, hit in found]), trace


def _scores(odds: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float32]:
    return never_below_what_follows(scale(calibration, odds)) if len(odds) else odds


def _choose(
    ranking: Ranking, order: NDArray[np.intp], scores: NDArray[np.float32], request: Request
) -> tuple[list[int], list[tuple[int, Reason]]]:
    """Return the ranks (from 0) that may become hits, ties with the last one included, and the rejected ones."""
    chosen: list[int] = []
    rejected: list[tuple[int, Reason]] = []
    taken: Counter[int] = Counter()
    last = 0.0
    floor = request.min_score if len(scores) and scores[0] >= request.abstain_below else math.inf
    for rank, place in enumerate(order.tolist()):
        owner = int(ranking.candidates.owners[place])
        value = float(ranking.values[place])
        if scores[rank] < floor:
            rejected.append((rank, "below the score cut"))
        elif taken[owner] >= request.per_owner:
            rejected.append((rank, "same owner as a better hit"))
        elif len(chosen) >= request.limit and value < last:
            rejected.append((rank, "beyond the limit"))
        else:
            taken[owner] += 1
            chosen.append(rank)
            last = value
        if len(chosen) >= request.limit and len(rejected) >= TRACE_LENGTH and value < last:
            break
    return chosen, rejected


def _raw(ranking: Ranking, place: int) -> dict[str, float]:
    candidates = ranking.candidates
    raw = {
        LEXICAL: float(candidates.lexical[place]),
        DENSE: float(candidates.dense[place]),
        LATE: float(candidates.late[place]),
        COVERAGE: float(candidates.coverage[place]),
        WORDS: float(candidates.words[place]),
    }
    raw.update({name: float(values[place]) for name, values in ranking.signals.items() if name not in raw})
    return {**raw, "fused": float(ranking.values[place])} if ranking.weights else raw


def _traced(
    ranking: Ranking,
    order: NDArray[np.intp],
    scores: NDArray[np.float32],
    ranks: Sequence[tuple[int, Reason | None]],
) -> tuple[Candidate, ...]:
    standardised = {name: standardise(values) for name, values in ranking.signals.items() if name in ranking.weights}
    return tuple(
        _candidate(ranking, standardised, rank, int(order[rank]), float(scores[rank]), reason) for rank, reason in ranks
    )


def _candidate(
    ranking: Ranking,
    standardised: Mapping[str, NDArray[np.float32]],
    rank: int,
    place: int,
    score: float,
    reason: Reason | None,
) -> Candidate:
    return Candidate(
        number=int(ranking.candidates.numbers[place]),
        owner_number=int(ranking.candidates.owners[place]),
        rank=rank + 1,
        score=score,
        signals=_raw(ranking, place),
        standardised={name: float(values[place]) for name, values in standardised.items()},
        rejected=reason,
    )
