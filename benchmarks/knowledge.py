"""Measure what it costs to index an agent's knowledge, to create the agent again, and to retrieve from it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.output import embedder_option, json_option, keep_option, seed_option, show
from commonplace.benchmarks.data import make_documents, make_queries, sample
from commonplace.benchmarks.harness import (
    WARM_UP,
    check_counts,
    describe,
    latency,
    open_engine,
    peak_memory_bytes,
    size_bytes,
    workspace,
)
from commonplace.types import Document, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commonplace.knowledge.service import KnowledgeService

AGENT = "measured"
WORDS = 40
"""Words of a map: a long sentence or two, over its keys."""
KEYS = ("about", "detail", "place", "note")
LIMIT = 10


@dataclass(frozen=True, slots=True)
class KnowledgeOptions:
    """What to measure.

    Attributes:
        maps: how many the agent has.
        queries: how often is retrieved, by each way.
    """

    maps: int = 10_000
    queries: int = 300
    embedder: str | None = None
    keep: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(maps=self.maps, queries=self.queries)


def run(options: KnowledgeOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Index an agent's maps, index them again, change one, retrieve, and return the JSON form of what that took.

    No model re-ranks: what it takes is its own. `own_vectors` is the same with vectors that the caller's embedder made,
    here the hashing one, over all of which cosines are computed.

    Raises:
        UsageError: a number or the directory to keep is wrong.
    """
    documents = list(islice(_texts(options), options.maps))
    maps = [_map(document.text) for document in documents]
    questions = make_queries(sample(documents, 500, options.seed), options.queries, options.seed + 1)
    with workspace(options.keep) as directory, open_engine(directory, embedder=options.embedder) as engine:
        indexing = {name: _timed(engine.knowledge, batch) for name, batch in _rounds(maps).items()}
        embedder = engine.index_status().embedder
        retrieval = {"store_vectors": _retrieve(engine.knowledge, questions, progress)}
        service = engine.knowledge_service(embedder="hashing" if not embedder.startswith("hashing") else "static")
        indexing["another_embedder"] = _timed(service, maps)
        retrieval["own_vectors"] = _retrieve(service, questions, progress)
        return {
            "benchmark": "knowledge",
            "machine": describe(),
            "embedder": embedder,
            "knowledge": {
                "maps": len(maps),
                "text_bytes": sum(len(document.text.encode()) for document in documents),
                "disk_bytes": size_bytes(directory),
            },
            "indexing": indexing,
            "retrieval": retrieval,
            "peak_memory_bytes": peak_memory_bytes(),
        }


def _texts(options: KnowledgeOptions) -> Iterator[Document]:
    """Yield texts of a sentence or two, those of a made corpus cut short."""

    for document in make_documents(options.maps, options.seed):
        yield Document(document.id, " ".join(document.text.split()[:WORDS]))


def _map(text: str) -> dict[str, str]:
    words = text.split()
    share = -(-len(words) // len(KEYS))
    return {key: " ".join(words[index * share : (index + 1) * share]) for index, key in enumerate(KEYS)}


def _rounds(maps: Sequence[Mapping[str, str]]) -> dict[str, Sequence[Mapping[str, str]]]:
    """Return what is indexed, one after the other, by what happens then."""
    return {"first": maps, "unchanged": maps, "one_changed": [*maps[1:], {"about": "something else altogether"}]}


def _timed(service: KnowledgeService, maps: Sequence[Mapping[str, str]]) -> dict[str, float]:
    begun = time.perf_counter()
    report = service.index_knowledge(AGENT, maps)
    return {"seconds": round(time.perf_counter() - begun, 3), "embedded": report.added + report.embedded}


def _retrieve(service: KnowledgeService, questions: Sequence[str], progress: Progress | None) -> dict[str, float]:
    service.retrieve(AGENT, WARM_UP, LIMIT, rerank=False)
    times = []
    for number, question in enumerate(questions):
        if progress is not None:
            progress("retrieving", number, len(questions))
        begun = time.perf_counter()
        service.retrieve(AGENT, question, LIMIT, rerank=False)
        times.append((time.perf_counter() - begun) * 1000)
    return latency(times)


@click.command()
@click.option("--maps", type=int, default=10_000, show_default=True, metavar="N", help="How many the agent has.")
@click.option("--queries", type=int, default=300, show_default=True, metavar="N", help="How many questions are asked.")
@embedder_option
@keep_option
@seed_option
@json_option
def main(*, as_json: bool, **options: Any) -> None:
    """Measure how fast what an agent knows is indexed and found.

    Also what it costs to create the agent again, and to change one map. No model re-ranks.
    """
    show(lambda: run(KnowledgeOptions(**options)), as_json=as_json)


if __name__ == "__main__":
    main()
