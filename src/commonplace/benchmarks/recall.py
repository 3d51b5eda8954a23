"""Measure what people find of their own memories, by the style of the question: each person is one new store."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from commonplace.benchmarks import measures
from commonplace.benchmarks.data import PersonalQuestion, read_people, read_talk
from commonplace.benchmarks.harness import describe, latency, open_engine, peak_memory_bytes, workspace
from commonplace.dataclasses import dataclass
from commonplace.search.result import is_likely
from commonplace.types import Progress

LIMIT: Final = 5
"""How many hits a question asks for, as an agent would."""
OTHERS: Final = 1_000
"""So many turns of other talk are stored beside a person's memories."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What to measure.

    Attributes:
        memories, questions: JSON lines, as `data.read_people` reads them.
        among: other talk to store beside each person's memories, as `data.read_talk` reads it.
    """

    memories: Path
    questions: Path
    among: Path | None = None
    embedder: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question found.

    Attributes:
        ranking: ids of memories, best first, each once.
        newest: the id of the newest relevant memory, "" where nothing is relevant.
        has_likely: whether a hit is at least likely.
    """

    question: PersonalQuestion
    ranking: tuple[str, ...]
    newest: str
    has_likely: bool
    ms: float

    @property
    def first(self) -> str:
        """The first found of the newest relevant memory and the overtaken ones, "" where none is found."""
        rank = measures.first_relevant(self.ranking, {self.newest, *self.question.stale})
        return self.ranking[rank - 1] if rank else ""


def run(options: RecallOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every question with default settings and return the JSON form of what was measured."""
    people = read_people(options.memories, options.questions)
    others = [] if options.among is None else list(islice(read_talk(options.among), OTHERS))
    outcomes: list[Outcome] = []
    memories, seconds, embedder = 0, 0.0, ""
    for number, person in enumerate(people):
        if progress is not None:
            progress(f"people, now {person.name}", number, len(people))
        with (
            workspace(None) as directory,
            open_engine(directory, namespace=person.name, embedder=options.embedder) as engine,
        ):
            start = time.perf_counter()
            engine.remember_many([{"content": text} for text in others], force=True)
            kept = engine.remember_many(person.memories, force=True)
            seconds += time.perf_counter() - start
            memories += len(kept)
            embedder = engine.index_status().embedder
            born = {memory.id: memory.at for memory in kept}
            for question in person.questions:
                start = time.perf_counter()
                hits = engine.recall(question.text, limit=LIMIT, touch=False).hits
                ms = (time.perf_counter() - start) * 1000
                newest = max(question.relevant, key=lambda id_: born[id_], default="")
                ranking = tuple(dict.fromkeys(hit.owner_id for hit in hits))
                outcomes.append(Outcome(question, ranking, newest, any(map(is_likely, hits)), ms))
    styles: dict[str, list[Outcome]] = {}
    for each in outcomes:
        styles.setdefault(each.question.style, []).append(each)
    styles["all with an answer"] = [each for each in outcomes if each.question.relevant]
    build_s = round(seconds, 3)
    return {
        "benchmark": "recall",
        "machine": describe(),
        "embedder": embedder,
        "corpus": {"people": len(people), "memories": memories, "others_each": len(others), "build_s": build_s},
        "styles": {name: figures(part) for name, part in styles.items()},
        "time": latency([outcome.ms for outcome in outcomes]),
        "peak_memory_bytes": peak_memory_bytes(),
    }


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return shares of these questions; a recall is the share of which a relevant memory is among the first.

    `newest_first` counts the questions `with_overtaken` of which the newest relevant memory is found and no overtaken
    one stands above it, `overtaken_first` those of which an overtaken one stands above it, or alone.
    """
    asked = [each for each in outcomes if each.question.relevant]
    stale = [each for each in outcomes if each.question.stale]

    def share(claims: Sequence[bool]) -> float:
        return round(measures.mean([float(claim) for claim in claims]), 4)

    recalls = {
        f"recall@{k}": share([not set(each.question.relevant).isdisjoint(each.ranking[:k]) for each in asked])
        for k in (1, LIMIT)
        if asked
    }
    return {
        "questions": len(outcomes),
        **recalls,
        "nothing": share([not each.ranking for each in outcomes]),
        "nothing_or_weak": share([not each.has_likely for each in outcomes]),
        "likely_or_sure": share([each.has_likely for each in outcomes]),
        "with_overtaken": len(stale),
        "newest_first": sum(each.first == each.newest != "" for each in stale),
        "overtaken_first": sum(each.first not in ("", each.newest) for each in stale),
    }
