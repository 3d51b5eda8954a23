"""Judge ways of ordering by kinds of data that they were not chosen on, from candidates that the engine found once.

Usage: COMMONPLACE_DATA=… python scripts/ranking/cross_validate.py record DIRECTORY [SET …]
       COMMONPLACE_DATA=… python scripts/ranking/cross_validate.py judge DIRECTORY

`record` asks the engine every question of every set and notes what went into the order; documents are embedded by
`static`, memories and talk by `minilm`. `judge` then orders the same candidates in each way of
`ways.py`, in seconds.

The first table has what each way reaches on each set: nDCG@10 of documents and code, for talk the mean of recall@5 and
recall@10 of turns, for everyday memories the mean of the shares found first and among five. The second leaves out one
kind, chooses the constants that have the best mean over the other kinds, and tells what they reach on the one left out,
against those that ship and against the best single signal. Cranfield and LoCoMo are only reported: their licences allow
no more.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ways import CHOICES, NOW, SINGLE, WAYS, Recorded, Way, with_constants

import commonplace
from commonplace.benchmarks.data import read_corpus, read_dialogues, read_judged_queries
from commonplace.benchmarks.harness import as_memory
from commonplace.benchmarks.measures import ndcg, recall
from commonplace.engine import Engine
from commonplace.search import retrieve

DOCUMENTS = ("medquad", "cosqa-dev", "cranfield")
TALK = {
    "longmemeval-dev": ("longmemeval-dev/longmemeval_dev.json", "longmemeval"),
    "locomo": ("locomo/locomo10.json", "locomo"),
}
EVERYDAY = {"everyday": 0, "everyday among 1,000": 1_000}
"""How many turns of other talk stand beside a person's memories."""
KINDS = {
    "everyday": ("everyday", "everyday among 1,000"),
    "talk": ("longmemeval-dev",),
    "documents": ("medquad",),
    "code": ("cosqa-dev",),
}
"""What constants may be chosen on."""
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with what the engine found for it. `owners`: the ids of the candidates' owners."""

    recorded: Recorded
    owners: Sequence[str]
    grades: Mapping[str, float]


def ask(book: Engine, questions: Iterable[tuple[str, Mapping[str, float]]]) -> Iterator[Asked]:
    """Ask an engine and note what went into the order."""
    noted: list[Recorded] = []
    ordering = vars(retrieve)["order"]

    def note(*args: Any) -> Any:
        noted.append(Recorded(*args))
        return ordering(*args)

    vars(retrieve)["order"] = note
    try:
        for text, grades in questions:
            noted.clear()
            book.search(text, limit=10, min_score=0.0)
            if noted:  # an empty index is not asked
                numbers = noted[0].candidates.owners.tolist()
                owners = book._runtime.store.owners(book.namespace, sorted(set(numbers)))
                yield Asked(noted[0], [owners[number].id for number in numbers], dict(grades))
    finally:
        vars(retrieve)["order"] = ordering


@contextmanager
def opened(embedder: str, now: float | None = None) -> Iterator[Engine]:
    """Open a new store, which is removed afterwards, whose clock stands still where a time is given."""
    with (
        TemporaryDirectory() as folder,
        commonplace.open(Path(folder) / "store", embedder=embedder, clock=None if now is None else lambda: now) as book,
    ):
        yield book


def documents(directory: Path) -> Iterator[Asked]:
    """Ask a set of the BEIR layout."""
    judged, _ = read_judged_queries(directory / "queries.jsonl", directory / "qrels.tsv")
    with opened("static") as book:
        book.index_documents(read_corpus(directory / "corpus.jsonl"))
        yield from ask(book, [(query.text, query.grades) for query in judged])


def talk(file: Path, form: str) -> Iterator[Asked]:
    """Ask conversations, each a store of its own, the questions that count."""
    for dialogue in read_dialogues(file, form):
        questions = [(item.text, dict.fromkeys(item.turns, 1.0)) for item in dialogue.questions if item.is_counted]
        if not any(grades for _, grades in questions):
            continue
        with opened("minilm", dialogue.asked_at) as book:
            book.remember_many(map(as_memory, dialogue.turns))
            yield from ask(book, [item for item in questions if item[1]])


def everyday(data: Path, distractors: int) -> Iterator[Asked]:
    """Ask each person's memories the questions that they answer, with so many turns of other talk beside them."""
    memories, questions = (
        [json.loads(line) for line in (data / "everyday" / name).open(encoding="utf-8")]
        for name in ("memories.jsonl", "questions.jsonl")
    )
    dialogues = read_dialogues(data / "locomo" / "locomo10.json", "locomo")
    turns = ({"id": f"{talk.id} {turn.id}", "content": turn.text} for talk in dialogues for turn in talk.turns)
    beside = list(islice(turns, distractors))
    for user in sorted({row["user"] for row in memories}):
        memories_of_user = [
            {key: row[key] for key in ("id", "content", "at", "origin")} for row in memories if row["user"] == user
        ]
        questions_of_user = [row for row in questions if row["user"] == user and row["relevant"]]
        with opened("minilm") as book:
            book.remember_many([*memories_of_user, *beside], force=True)
            yield from ask(book, [(row["question"], dict.fromkeys(row["relevant"], 1.0)) for row in questions_of_user])


def record(data: Path, directory: Path, names: Sequence[str]) -> None:
    """Record sets, all that are known where none is named."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names or (*DOCUMENTS, *TALK, *EVERYDAY):
        if name in TALK:
            results = talk(data / TALK[name][0], TALK[name][1])
        else:
            results = everyday(data, EVERYDAY[name]) if name in EVERYDAY else documents(data / name)
        with (directory / f"{name}.pickle").open("wb") as file:
            count = 0
            for result in results:
                pickle.dump(result, file)
                count += 1
        print(f"{name}: {count} questions", flush=True)


def read(directory: Path) -> dict[str, list[Asked]]:
    """Return what was recorded, by set."""
    sets: dict[str, list[Asked]] = {}
    for path in sorted(directory.glob("*.pickle")):
        with path.open("rb") as file:
            sets[path.stem] = []
            while file.peek(1):
                sets[path.stem].append(pickle.load(file))  # noqa: S301 - written by `record`
    return sets


def reached(name: str, asked: Asked, values: NDArray[np.float32]) -> float:
    """Return what an order reaches on a question, by the measure of its set."""
    order = np.lexsort((asked.recorded.candidates.numbers, -values))[:DEPTH]
    ranking = list(dict.fromkeys(asked.owners[index] for index in order.tolist()))
    if name in EVERYDAY:
        return float(np.mean([any(id_ in asked.grades for id_ in ranking[:k]) for k in (1, 5)]))
    if name in TALK:
        return float(np.mean([recall(ranking, frozenset(asked.grades), k) for k in (5, 10)]))
    return ndcg(ranking, asked.grades, 10)


def mean(name: str, asked: Sequence[Asked], way: Way) -> float:
    """Return what a way reaches on a set."""
    return float(np.mean([reached(name, query, way(query.recorded)) for query in asked]))


def judge(sets: Mapping[str, Sequence[Asked]]) -> None:
    """Print both tables."""
    print("| way | " + " | ".join(sets) + " |\n|---|" + "---|" * len(sets))
    figures = {way: {name: mean(name, asked, WAYS[way]) for name, asked in sets.items()} for way in WAYS}
    for way, by_set in figures.items():
        print(f"| {way} | " + " | ".join(f"{value:.4f}" for value in by_set.values()) + " |", flush=True)
    kinds = {kind: names for kind, names in KINDS.items() if all(name in sets for name in names)}
    chosen_on = [name for names in kinds.values() for name in names]
    tried = {
        choice: {name: mean(name, sets[name], with_constants(**constants)) for name in chosen_on}
        for choice, constants in CHOICES.items()
    }
    print("\n| left out | chosen on the others | reaches | what ships | best single signal |\n|---|---|---|---|---|")
    for left, names in kinds.items():
        rest = [others for kind, others in kinds.items() if kind != left]
        best = max(
            tried, key=lambda choice: np.mean([np.mean([tried[choice][name] for name in each]) for each in rest])
        )
        line = [
            float(np.mean([tried[best][name] for name in names])),
            float(np.mean([figures[NOW][name] for name in names])),
            max(float(np.mean([figures[single][name] for name in names])) for single in SINGLE),
        ]
        print(f"| {left} | {best} | " + " | ".join(f"{value:.4f}" for value in line) + " |", flush=True)


def main() -> None:
    """Record or judge."""
    action, directory, *names = sys.argv[1:]
    if action == "record":
        record(Path(os.environ["COMMONPLACE_DATA"]), Path(directory), names)
    else:
        judge(read(Path(directory)))


if __name__ == "__main__":
    main()
