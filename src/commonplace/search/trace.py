"""Why a search returned what it returned: the ranked candidates, and the receipt made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, overload

if TYPE_CHECKING:
    from commonplace.search.times import AskedTime
    from commonplace.types import Confidence

Reason = Literal["below the floor", "same owner as a better hit", "same text as a better hit", "beyond the limit"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One ranked candidate. `rank` counts from 1; `rejected` is None for a hit.

    Attributes:
        standardised, weights: of each signal, what was added up and what it weighed; empty for a single-signal method.
        evidence: what each signal weighs in the log-odds of the probability.
    """

    number: int
    owner_number: int
    rank: int
    score: float
    signals: Mapping[str, float]
    standardised: Mapping[str, float]
    weights: Mapping[str, float]
    evidence: Mapping[str, float]
    rejected: Reason | None


class Unmade(Sequence[Candidate]):
    """Candidates that are made when somebody looks at them: most searches are never explained."""

    def __init__(self, make: Callable[[], Sequence[Candidate]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Sequence[Candidate]:
        return self._make()

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        return self._made[place]


class HeldBack(NamedTuple):
    """How many owners were ranked but lie below the floor, and the best one's score, None where there is none."""

    owners: int = 0
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """How a result was made.

    Attributes:
        candidates: the best ranked ones, hits and rejected, in rank order; at most `TRACE_LENGTH` beyond the hits.
        terms: the words of the query as the lexical index reads them, the terms of each; the first is the English one.
        min_score: the cut that applied.
        numbers: passage number of each hit, by hit id.
        times: the times that the query names, as they were understood.
        passages: how many there were to choose from.
        moved: of hits that stand before an older one which they may have overtaken, the id of that one, by their ids.
    """

    candidates: Sequence[Candidate]
    terms: tuple[tuple[str, ...], ...]
    min_score: float
    numbers: Mapping[str, int]
    times: tuple[AskedTime, ...] = ()
    passages: int = 0
    moved: Mapping[str, str] = field(default_factory=dict)
    held_back: HeldBack = field(default_factory=HeldBack)


@dataclass(frozen=True, slots=True)
class SignalShare:
    """One signal of a hit: its raw value, what of it was added up, and what that weighs in the order.

    Attributes:
        standardised: over the candidates; a date's fit, 0–1, and what neighbours lend are added as they are. The sum of
            all, each times its weight, is the value that orders the hits, "fused".
        evidence: what it adds to the log-odds of relevance.
    """

    name: str
    value: float
    standardised: float
    weight: float
    evidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that did not become a hit."""

    reference: str
    rank: int
    score: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Receipt:
    """Why a hit was found.

    Attributes:
        rank: from 1, among the candidates; where the hits were re-ranked, among these.
        first_rank: from 1, among the candidates.
        reranked_by: who re-ranked the hits, "" where nobody did; `score` is then theirs.
        matched_terms: the words of the query that the passage holds, as they stand in the query; of an identifier its
            parts too.
        missing_terms: those that it does not.
        rejected: what else was considered, best first.
        probability: how likely the hit is relevant, 0–1.
        confidence: the word for it.
        stands_before: the id of the older hit before which this newer one was moved, "" where it was not.
        superseded_by: the id of the newer memory that may have overtaken it; None without any.
    """

    hit_id: str
    reference: str
    query: str
    rank: int
    score: float
    min_score: float
    signals: tuple[SignalShare, ...]
    matched_terms: tuple[str, ...]
    missing_terms: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    first_rank: int = 0
    reranked_by: str = ""
    probability: float | None = None
    confidence: Confidence | None = None
    stands_before: str = ""
    superseded_by: str | None = None
