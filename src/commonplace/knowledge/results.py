"""Results of the knowledge service: reports, hits, status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.dataclasses import asdict, dataclass, field
from commonplace.formats.fence import FenceItem, fence
from commonplace.formats.json_values import View
from commonplace.types import Confidence


@dataclass(frozen=True, slots=True)
class KnowledgeReport:
    """Result of indexing an agent's knowledge. Counts are of maps.

    Attributes:
        unchanged: already stored, with vectors of the current embedder.
        embedded: already stored, and embedded again.
        deleted: stored before and no longer listed.
        skipped: without text, so they cannot be found.
        embedder: name of the embedder of the vectors, "" if there are none.
        is_replaced: False if embedding failed and the agent keeps its previous knowledge.
        degraded: a requested component could not be used; `notices` say which.
    """

    agent: str
    added: int = 0
    unchanged: int = 0
    embedded: int = 0
    deleted: int = 0
    skipped: int = 0
    embedder: str = ""
    is_replaced: bool = True
    degraded: bool = False
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
    change: int = 0

    @property
    def items(self) -> int:
        """Number of maps that the agent has now."""
        return self.added + self.unchanged + self.embedded

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "items": self.items, "notices": list(self.notices), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, slots=True)
class KnowledgeHit:
    """A map found by a search.

    Attributes:
        content: the map's text; beyond 4,000 characters only the passage that answers. `metadata` has the whole.
        score: 0–1, by the re-ranker if one was used, else by the first stage.
        similarity: the cosine of its vector and the query's, -1 to 1; None if it was found by words alone.
        confidence: "sure", "likely" or "weak", by the first stage; None if vectors of the service's embedder found it.
        metadata: the map itself.
    """

    id: str
    agent: str
    content: str
    score: float
    similarity: float | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    confidence: Confidence | None = None

    def to_dict(self) -> dict[str, Any]:
        similarity = None if self.similarity is None else round(self.similarity, 4)
        rounded = {"score": round(self.score, 4), "similarity": similarity}
        return {**asdict(self), **rounded, "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Hits of a query, best first.

    Attributes:
        candidates: number of candidates that the first stage found.
        reranked_by: name of the re-ranker that ordered the hits, "" if none did.
        degraded: a part of the search could not be used; `notices` say which.
    """

    agent: str
    query: str
    hits: tuple[KnowledgeHit, ...] = ()
    candidates: int = 0
    reranked_by: str = ""
    degraded: bool = False
    notices: tuple[str, ...] = ()
    latency_ms: int = 0

    @property
    def lines(self) -> RelevantKnowledge:
        """The texts, as the contract has them."""
        return RelevantKnowledge(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "query": self.query,
            "knowledge": list(self.lines),
            "hits": [hit.to_dict() for hit in self.hits],
            "candidates": self.candidates,
            "reranked_by": self.reranked_by or None,
            "degraded": self.degraded,
            "notices": list(self.notices),
            "latency_ms": self.latency_ms,
        }

    def to_text(self) -> str:
        """Return the texts for a model to read: fenced and labelled as data, "" if there are none."""
        return fence(
            FenceItem(
                hit.id,
                hit.content,
                ", ".join(filter(None, (f"knowledge of {hit.agent}", f"score {hit.score:.2f}", hit.confidence))),
            )
            for hit in self.hits
        )


class RelevantKnowledge(list[str]):
    """The texts of a retrieval, best first: a list with ids, scores and notices as attributes.

    Attributes:
        retrieval: the whole retrieval.
        ids: ids of the items, in the order of the texts; equal texts have different ids.
        scores: 0–1, in the order of the texts.
        degraded: True if a part of the search could not be used.
        notices: one sentence each, for people.
    """

    def __init__(self, retrieval: Retrieval) -> None:
        super().__init__(hit.content for hit in retrieval.hits)
        self.retrieval = retrieval
        self.ids = [hit.id for hit in retrieval.hits]
        self.scores = [hit.score for hit in retrieval.hits]
        self.degraded, self.notices = retrieval.degraded, retrieval.notices


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """Numbers of an agent's maps; `stale` ones are embedded again when the agent is next created."""

    agent: str
    items: int
    deleted: int
    stale: int


@dataclass(frozen=True, slots=True)
class KnowledgeStatus(View):
    """The agents of a service, its store and its models.

    Attributes:
        store: path of the store, "" for one in memory.
        embedder, reranker: names, "" for none.
        notices: why a component cannot be used, one sentence each.
    """

    namespace: str
    store: str
    agents: tuple[AgentStatus, ...] = ()
    embedder: str = ""
    reranker: str = ""
    notices: tuple[str, ...] = ()
