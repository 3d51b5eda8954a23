"""Why a search returned what it returned: the ranked candidates, and the receipt made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from commonplace.search.times import AskedTime

Reason = Literal["below the score cut", "same owner as a better hit", "beyond the limit"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One ranked candidate. `rank` counts from 1; `rejected` is None for a hit."""

    number: int
    owner_number: int
    rank: int
    score: float
    signals: Mapping[str, float]
    standardised: Mapping[str, float]
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


@dataclass(frozen=True, slots=True)
class Trace:
    """How a result was made.

    Attributes:
        candidates: the best ranked ones, hits and rejected, in rank order; at most `TRACE_LENGTH` beyond the hits.
        weights: weight of each standardised signal in the fusion; empty for a single-signal method.
        terms: the words of the query as the lexical index reads them, the terms of each; the first is the English one.
        min_score: the cut that applied.
        numbers: passage number of each hit, by hit id.
        times: the times that the query names, as they were understood.
        evidence: what each signal of the score weighs in its log-odds.
    """

    candidates: Sequence[Candidate]
    weights: Mapping[str, float]
    terms: tuple[tuple[str, ...], ...]
    min_score: float
    numbers: Mapping[str, int]
    times: tuple[AskedTime, ...] = ()
    evidence: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SignalShare:
    """One signal of a hit: its raw value, its value standardised over the candidates, and what it weighs in the order.

    Attributes:
        evidence: what it adds to the log-odds of relevance, on which score and probability rest.
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
