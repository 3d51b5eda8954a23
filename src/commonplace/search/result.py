"""What a search returns; its JSON form, the contract's `retrieval_result` plus `hits` and `degraded`; its text form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from commonplace.times import iso
from commonplace.types import Filter, Hit, Method, Stage

if TYPE_CHECKING:
    from commonplace.search.trace import Trace

COPIES_NAMED: Final = 5
"""Of the copies of a hit's text, as many as a person can look through."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first, ties by id, and how they came about.

    Attributes:
        hits: at most as many as asked for; empty when nothing is relevant.
        stages: recall and ranking, in the order in which they ran.
        degraded: True when a part of the search could not be used; `notices` says which.
        notices: one sentence each, for people.
        trace: the candidates behind the hits, for `why`.
        in_process: the answer from the memories of this process alone, whose hits are among `hits`; None without any.
        reranked_by: the mode and model that put the hits into their order and scored them, "" where none did.
        agent: whose strategy chose, "" where nobody's did.
        calibrated: False where an embedder made the vectors that nothing was fitted for: probabilities then rest on
            words and late interaction alone.
        also: the further phrasings that were searched for.
        corrected: the query that was searched for instead, since of its own words none was known; "" where none was.
    """

    query: str
    namespace: str
    method: Method
    wanted: Filter
    hits: tuple[Hit, ...]
    stages: tuple[Stage, ...]
    latency_ms: int
    degraded: bool
    notices: tuple[str, ...]
    trace: Trace
    in_process: SearchResult | None = None
    reranked_by: str = ""
    agent: str = ""
    calibrated: bool = True
    also: tuple[str, ...] = ()
    corrected: str = ""

    @property
    def held_back(self) -> int:
        """How many memories, artifacts and knowledge items were ranked but lie below the floor."""
        others = () if self.in_process is None else (self.in_process,)
        return sum(each.trace.held_back.owners for each in (self, *others))

    @property
    def best_held_back(self) -> float | None:
        """The best score among what is held back, None where nothing is."""
        others = () if self.in_process is None else (self.in_process,)
        best = [each.trace.held_back.best for each in (self, *others)]
        return max((score for score in best if score is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `agent_type` and `phase` are null where unused."""
        scores = [round(hit.score, 4) for hit in self.hits]
        return {
            "query": self.query,
            "also": list(self.also),
            "corrected_query": self.corrected or None,
            "agent_type": self.agent or None,
            "phase": ",".join(self.wanted.phases) or None,
            "artifacts": [_artifact(hit) for hit in self.hits],
            "references": [f"@{reference(hit)}" for hit in self.hits],
            "confidence": {
                "overall": round(sum(scores) / len(scores), 4) if scores else 0.0,
                "per_artifact": scores,
            },
            "latency_ms": self.latency_ms,
            "hits": [hit_json(hit) for hit in self.hits],
            "held_back": self.held_back,
            "best_held_back": None if self.best_held_back is None else round(self.best_held_back, 4),
            "calibrated": self.calibrated,
            "degraded": self.degraded,
            "method": self.method,
            "reranked_by": self.reranked_by or None,
            "namespace": self.namespace,
            "stages": [{"name": s.name, "candidates": s.candidates, "ms": round(s.ms, 2)} for s in self.stages],
            "notices": list(self.notices),
        }

    def to_text(self) -> str:
        """Return the hits as text for a model to read: fenced and labelled as data, "" where there is none."""
        from commonplace.formats.fence import Recalled, fence

        return fence(Recalled(reference(hit), hit.text, label(hit)) for hit in self.hits)


def merged(found: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the hits of several answers as one, best first, ties by id; what was moved forward stays where it was."""
    keyed = []
    for hits in found:
        best: tuple[float, str] | None = None
        for number in range(len(hits) - 1, -1, -1):
            own = (-hits[number].score, hits[number].id)
            best = own if best is None or own < best else best
            keyed.append((best, number, hits[number]))
    return tuple(hit for *_, hit in sorted(keyed, key=lambda each: each[:2]))


def reference(hit: Hit) -> str:
    """Return how a person names the hit: `path#anchor`, `path:10-40`, or the owner's id where there is no file."""
    if not hit.path:
        return hit.owner_id
    if hit.anchor:
        return f"{hit.path}#{hit.anchor}"
    if hit.lines is not None:
        return f"{hit.path}:{hit.lines[0]}-{hit.lines[1]}"
    return hit.path


def _artifact(hit: Hit) -> dict[str, Any]:
    return {
        "path": hit.path or hit.owner_id,
        "type": hit.type or hit.kind,
        "score": round(hit.score, 4),
        "content": hit.text,
        "metadata": {
            "title": hit.title,
            "heading": hit.heading,
            "lines": list(hit.lines) if hit.lines else None,
            "tags": list(hit.tags),
            "phase": hit.phase or None,
            "references": list(hit.references),
            "summary": hit.summary,
            "last_modified": iso(hit.at),
        },
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return the JSON form of a hit."""
    return {
        **asdict(hit),
        "score": round(hit.score, 4),
        "probability": None if hit.probability is None else round(hit.probability, 4),
        "signals": {name: round(value, 4) for name, value in hit.signals.items()},
        "reference": reference(hit),
        "at": iso(hit.at),
    }


def copies_named(hit: Hit) -> tuple[str, ...]:
    """Return the first copies of a hit's text, and how many more there are: hundreds would leave room for nothing."""
    more = len(hit.copies) - COPIES_NAMED
    return hit.copies if more <= 0 else (*hit.copies[:COPIES_NAMED], f"{more:,} more")


def label(hit: Hit) -> str:
    """Return what a reader should know of a text before believing it."""
    date = iso(hit.at)
    parts = (
        f"knowledge of {hit.agent}" if hit.agent else hit.type or hit.kind,
        date[:10] if date else "",
        hit.tier and f"tier {hit.tier}",
        hit.origin and f"origin {hit.origin}",
        "" if hit.trust is None else f"trust {hit.trust:.2f}",
        f"retention {hit.score:.2f}" if hit.signals.keys() == {"retention"} else f"score {hit.score:.2f}",
        hit.confidence,
        hit.superseded_by and f"older: {hit.superseded_by} is newer",
        hit.copies and f"the same in {', '.join(copies_named(hit))}",
    )
    return ", ".join(part for part in parts if part)
