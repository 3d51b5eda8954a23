"""Measure how well people's own memories are recalled, by style of question. Each person has a new store."""

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
"""Number of hits retrieved for a question, as an agent would."""
DISTRACTORS: Final = 1_000
"""Maximum number of turns of other talk that are stored beside a person's memories."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Options of the benchmark.

    Attributes:
        memories, questions: files of JSON lines for `data.read_people`.
        among: a file for `data.read_talk`: other talk to store beside each person's memories.
    """

    memories: Path
    questions: Path
    among: Path | None = None
    embedder: str | None = None


@dataclass(frozen=True, slots=True)
class RecallOutcome:
    """The result of one question.

    Attributes:
        ranking: distinct ids of the memories found, best first.
        newest: the id of the newest relevant memory, or "" if nothing is relevant.
        has_likely: whether the confidence of a hit is at least "likely".
    """

    question: PersonalQuestion
    ranking: tuple[str, ...]
    newest: str
    has_likely: bool
    ms: float

    @property
    def first(self) -> str:
        """The best ranked of the newest relevant memory and the overtaken ones, or "" if none is found."""
        rank = measures.first_relevant(self.ranking, {self.newest, *self.question.stale})
        return self.ranking[rank - 1] if rank else ""


def run(options: RecallOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every question with default settings, and return the figures as JSON."""
    people = read_people(options.memories, options.questions)
    distractors = [] if options.among is None else list(islice(read_talk(options.among), DISTRACTORS))
    outcomes: list[RecallOutcome] = []
    memories, seconds, embedder = 0, 0.0, ""
    for number, person in enumerate(people):
        if progress is not None:
            progress(f"people, now {person.name}", number, len(people))
        with (
            workspace(None) as directory,
            open_engine(directory, namespace=person.name, embedder=options.embedder) as engine,
        ):
            start = time.perf_counter()
            engine.remember_many([{"content": text} for text in distractors], force=True)
            stored = engine.remember_many(person.memories, force=True)
            seconds += time.perf_counter() - start
            memories += len(stored)
            embedder = engine.index_status().embedder
            times = {memory.id: memory.at for memory in stored}
            for question in person.questions:
                start = time.perf_counter()
                hits = engine.recall(question.text, limit=LIMIT, touch=False).hits
                ms = (time.perf_counter() - start) * 1000
                newest = max(question.relevant, key=lambda id_: times[id_], default="")
                ranking = tuple(dict.fromkeys(hit.owner_id for hit in hits))
                outcomes.append(RecallOutcome(question, ranking, newest, any(map(is_likely, hits)), ms))
    styles: dict[str, list[RecallOutcome]] = {}
    for outcome in outcomes:
        styles.setdefault(outcome.question.style, []).append(outcome)
    styles["all with an answer"] = [outcome for outcome in outcomes if outcome.question.relevant]
    build_s = round(seconds, 3)
    return {
        "benchmark": "recall",
        "machine": describe(),
        "embedder": embedder,
        "corpus": {"people": len(people), "memories": memories, "others_each": len(distractors), "build_s": build_s},
        "styles": {name: figures(group) for name, group in styles.items()},
        "time": latency([timed.ms for timed in outcomes]),
        "peak_memory_bytes": peak_memory_bytes(),
    }


def figures(outcomes: Sequence[RecallOutcome]) -> dict[str, Any]:
    """Return the figures of some questions. `recall@k` is the share with a relevant memory among the first `k` hits.

    Among the questions `with_overtaken`, `newest_first` counts those whose newest relevant memory is found with no
    overtaken one above it, and `overtaken_first` those with an overtaken one above it, or found without it.
    """
    solvable = [outcome for outcome in outcomes if outcome.question.relevant]
    stale = [outcome for outcome in outcomes if outcome.question.stale]

    def share(claims: Sequence[bool]) -> float:
        return round(measures.mean([float(claim) for claim in claims]), 4)

    recalls = {
        f"recall@{k}": share([not set(o.question.relevant).isdisjoint(o.ranking[:k]) for o in solvable])
        for k in (1, LIMIT)
        if solvable
    }
    return {
        "questions": len(outcomes),
        **recalls,
        "nothing": share([not outcome.ranking for outcome in outcomes]),
        "nothing_or_weak": share([not outcome.has_likely for outcome in outcomes]),
        "likely_or_sure": share([outcome.has_likely for outcome in outcomes]),
        "with_overtaken": len(stale),
        "newest_first": sum(outcome.first == outcome.newest != "" for outcome in stale),
        "overtaken_first": sum(outcome.first not in ("", outcome.newest) for outcome in stale),
    }
