"""What a search returns, and its JSON form: the contract's `retrieval_result` plus `hits` and `degraded`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from commonplace.types import Filter, Hit, Method, Stage

if TYPE_CHECKING:
    from commonplace.search.trace import Trace


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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `agent_type` and `phase` are null where unused."""
        scores = [round(hit.score, 4) for hit in self.hits]
        return {
            "query": self.query,
            "agent_type": None,
            "phase": ",".join(self.wanted.phases) or None,
            "artifacts": [_artifact(hit) for hit in self.hits],
            "references": [f"@{reference(hit)}" for hit in self.hits],
            "confidence": {
                "overall": round(sum(scores) / len(scores), 4) if scores else 0.0,
                "per_artifact": scores,
            },
            "latency_ms": self.latency_ms,
            "hits": [_hit(hit) for hit in self.hits],
            "degraded": self.degraded,
            "method": self.method,
            "namespace": self.namespace,
            "stages": [{"name": s.name, "candidates": s.candidates, "ms": round(s.ms, 2)} for s in self.stages],
            "notices": list(self.notices),
        }


def reference(hit: Hit) -> str:
    """Return how a person names the hit: `path#heading`, `path:10-40`, or the owner's id where there is no file."""
    if not hit.path:
        return hit.owner_id
    if hit.heading and hit.type not in ("code", "test"):
        return f"{hit.path}#{hit.heading}"
    if hit.lines is not None:
        return f"{hit.path}:{hit.lines[0]}-{hit.lines[1]}"
    return hit.path


def _artifact(hit: Hit) -> dict[str, Any]:
    modified = None if hit.at is None else datetime.fromtimestamp(hit.at, UTC).isoformat()
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
            "last_modified": modified,
        },
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        **asdict(hit),
        "score": round(hit.score, 4),
        "signals": {name: round(value, 4) for name, value in hit.signals.items()},
        "reference": reference(hit),
    }
