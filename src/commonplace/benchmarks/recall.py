"""Measure what people find of their own memories, by the style of the question: each person is one new store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from commonplace.benchmarks import measures
from commonplace.benchmarks.data import Person, PersonalQuestion, read_people, read_talk
from commonplace.benchmarks.harness import describe, latency, open_engine, peak_memory_bytes, workspace
from commonplace.search.hits import is_likely
from commonplace.types import Hit, Progress

LIMIT: Final = 5
"""How many hits a question asks for, as an agent would."""
OTHERS: Final = 1_000
"""So many turns of other talk are stored beside a person's memories."""


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """What to measure.

    Attributes:
        memories, questions: JSON lines, as `datasets.read_people` reads them.
        among: other talk to store beside each person's memories, as `datasets.read_talk` reads it.
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
    def is_newest_first(self) -> bool:
        """Tell whether the newest relevant memory is found and no overtaken one stands above it."""
        first = measures.first_relevant(self.ranking, {self.newest, *self.question.stale})
        return first is not None and self.ranking[first - 1] == self.newest

    @property
    def is_overtaken_first(self) -> bool:
        """Tell whether an overtaken memory stands above the newest relevant one, or alone."""
        first = measures.first_relevant(self.ranking, {self.newest, *self.question.stale})
        return first is not None and self.ranking[first - 1] != self.newest


@dataclass(slots=True)
class _Tally:
    outcomes: list[Outcome] = field(default_factory=list)
    memories: int = 0
    seconds: float = 0.0
    embedder: str = ""


def run(options: RecallOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Ask every question with default settings and return the JSON form of what was measured.

    Raises:
        UsageError: a file is wrong.
    """
    people = read_people(options.memories, options.questions)
    others = [] if options.among is None else list(islice(read_talk(options.among), OTHERS))
    tally = _Tally()
    for number, person in enumerate(people):
        if progress is not None:
            progress(f"people, now {person.name}", number, len(people))
        _take(tally, person, others, options.embedder)
    return {
        "benchmark": "recall",
        "machine": describe(),
        "embedder": tally.embedder,
        "corpus": {
            "people": len(people),
            "memories": tally.memories,
            "others_each": len(others),
            "build_s": round(tally.seconds, 3),
        },
        "styles": _by_style(tally.outcomes),
        "time": latency([outcome.ms for outcome in tally.outcomes]),
        "peak_memory_bytes": peak_memory_bytes(),
    }


def _take(tally: _Tally, person: Person, others: Sequence[str], embedder: str | None) -> None:
    with (
        workspace(None) as directory,
        open_engine(directory, namespace=person.name, embedder=embedder) as engine,
    ):
        start = time.perf_counter()
        engine.remember_many([{"content": text} for text in others], force=True)
        kept = engine.remember_many(person.memories, force=True)
        tally.seconds += time.perf_counter() - start
        tally.memories += len(kept)
        tally.embedder = engine.index_status().embedder
        born = {memory.id: memory.at for memory in kept}
        for question in person.questions:
            start = time.perf_counter()
            hits = engine.recall(question.text, limit=LIMIT, touch=False).hits
            ms = (time.perf_counter() - start) * 1000
            newest = max(question.relevant, key=lambda id_: born[id_], default="")
            tally.outcomes.append(_outcome(question, hits, newest, ms))


def _outcome(question: PersonalQuestion, hits: Sequence[Hit], newest: str, ms: float) -> Outcome:
    ranking = tuple(dict.fromkeys(hit.owner_id for hit in hits))
    return Outcome(question, ranking, newest, any(map(is_likely, hits)), ms)


def _by_style(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the figures of each style in the order of the file, and of all questions that have an answer."""
    styles = Counter(outcome.question.style for outcome in outcomes)
    parts = {style: [each for each in outcomes if each.question.style == style] for style in styles}
    parts["all with an answer"] = [each for each in outcomes if each.question.relevant]
    return {name: figures(part) for name, part in parts.items()}


def figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return shares of these questions; a recall is the share of which a relevant memory is among the first.

    `newest_first` and `overtaken_first` are counts of the questions `with_overtaken`, of which neither need be found.
    """
    asked = [(each.ranking, each.question.relevant) for each in outcomes if each.question.relevant]
    stale = [each for each in outcomes if each.question.stale]
    found: Mapping[str, float] = {
        **{
            f"recall@{k}": measures.mean([float(not set(wanted).isdisjoint(got[:k])) for got, wanted in asked])
            for k in (1, LIMIT)
            if asked
        },
        "nothing": measures.mean([float(not each.ranking) for each in outcomes]),
        "nothing_or_weak": measures.mean([float(not each.has_likely) for each in outcomes]),
        "likely_or_sure": measures.mean([float(each.has_likely) for each in outcomes]),
    }
    return {
        "questions": len(outcomes),
        **{name: round(value, 4) for name, value in found.items()},
        "with_overtaken": len(stale),
        "newest_first": sum(each.is_newest_first for each in stale),
        "overtaken_first": sum(each.is_overtaken_first for each in stale),
    }
