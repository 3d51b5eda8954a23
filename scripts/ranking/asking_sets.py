"""Ask labelled sets everything that the fit of the probabilities needs, and note the raw signals of what is found.

Of each set there is the whole, and small stores of a few of its texts: how relevant the best of many looks by chance
depends on how many there are. Questions that nothing answers are of the same kind: those whose answers are taken out
and those of other people's stores; and questions of other sets, which are about something else altogether.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import commonplace
from commonplace.benchmarks.data import read_corpus, read_dialogues, read_judged_queries
from commonplace.dates.time import seconds
from commonplace.types import Document

DEPTH = 60
SIGNALS = ("dense", "coverage", "words", "lexical")
MAX_QUERIES = 500
SMALL_STORES = 40
SMALL_SIZES = (3, 5, 8, 12, 20)
STRANGERS = 200

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Query:
    """A question with the ids that answer it, and those that nearly do; its kind in the words of the set."""

    text: str
    relevant: frozenset[str]
    near: frozenset[str] = frozenset()
    style: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """The first hits of one query in rank order: signals, shape (n, 4), and which are relevant or nearly so."""

    query: Query
    signals: Floats
    relevant: NDArray[np.bool_]
    near: NDArray[np.bool_]
    passages: int

    def without_answers(self) -> Judged:
        """Return the same question as one that nothing answers."""
        keep = ~(self.relevant | self.near)
        return replace(self, signals=self.signals[keep], relevant=self.relevant[keep], near=self.near[keep])


@dataclass(frozen=True, slots=True)
class Labelled:
    """Texts that make one store, and questions about them."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]


@dataclass
class Asked:
    """What a set's questions found: those that something answers, and by kind those that nothing does."""

    name: str
    answerable: list[Judged] = field(default_factory=list)
    unanswerable: dict[str, list[Judged]] = field(default_factory=dict)

    def take(self, judged: Iterable[Judged], kind: str = "") -> None:
        """Take in answers to questions of a kind that nothing answers; "" is what something may answer."""
        for item in judged:
            if item.query.relevant and not kind:
                self.answerable.append(item)
            else:
                self.unanswerable.setdefault(kind or item.query.style, []).append(item)


def read_set(folder: Path, most: int, chance: random.Random) -> Labelled:
    """Read a set of the BEIR layout; of more texts than `most`, those that answer and as many others as have room."""
    judged, _ = read_judged_queries(folder / "queries.jsonl", folder / "qrels.tsv")
    queries = [Query(item.text, frozenset(id_ for id_, grade in item.grades.items() if grade > 0)) for item in judged]
    queries = chance.sample(queries, min(len(queries), MAX_QUERIES))
    relevant = frozenset(id_ for item in queries for id_ in item.relevant)
    documents = list(read_corpus(folder / "corpus.jsonl"))
    irrelevant = [item.id for item in documents if item.id not in relevant]
    chosen = relevant | frozenset(chance.sample(irrelevant, min(len(irrelevant), max(0, most - len(relevant)))))
    return Labelled(folder.name, [item for item in documents if item.id in chosen], queries)


def read_conversations(file: Path, form: str, most: int) -> list[Labelled]:
    """Read conversations with the questions that have evidence; the rest of its sessions nearly answers them."""
    return [
        Labelled(
            form,
            talk.turns,
            [
                Query(
                    item.text,
                    frozenset(item.turns),
                    frozenset(turn.id for turn in talk.turns if turn.session in item.sessions) - frozenset(item.turns),
                    item.type,
                )
                for item in talk.questions
                if item.is_counted and item.turns
            ],
        )
        for talk, _ in zip(read_dialogues(file, form), range(most), strict=False)
    ]


def read_everyday(folder: Path) -> list[Labelled]:
    """Read each person's memories and questions."""
    memories = [json.loads(line) for line in (folder / "memories.jsonl").open(encoding="utf-8")]
    questions = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
    return [
        Labelled(
            "everyday",
            [
                Document(id=row["id"], text=row["content"], at=seconds("at", row["at"]))
                for row in memories
                if row["user"] == user
            ],
            [
                Query(row["question"], frozenset(row["relevant"]), frozenset(row["stale"]), row["style"])
                for row in questions
                if row["user"] == user
            ],
        )
        for user in sorted({row["user"] for row in memories})
    ]


@contextmanager
def stored(documents: Iterable[Document], embedder: str) -> Iterator[commonplace.engine.Engine]:
    """Open a passing store of the documents."""
    with TemporaryDirectory() as passing, commonplace.open(Path(passing) / "store", embedder=embedder) as book:
        book.index_documents(documents)
        yield book


def ask(book: commonplace.engine.Engine, queries: Iterable[Query]) -> list[Judged]:
    """Return the first hits of each query, as they are ranked before what is newer is moved."""
    passages = book.index_status().counts["passages"]
    results = []
    for query in queries:
        hits = sorted(
            book.search(query.text, limit=DEPTH, min_score=0.0).hits, key=lambda hit: (-hit.signals["fused"], hit.id)
        )
        signals = np.array([[hit.signals[name] for name in SIGNALS] for hit in hits], np.float32)
        results.append(
            Judged(
                query,
                signals.reshape(-1, len(SIGNALS)),
                np.array([hit.owner_id in query.relevant for hit in hits], dtype=bool),
                np.array([hit.owner_id in query.near for hit in hits], dtype=bool),
                passages,
            )
        )
    return results


def strangers(sets: Mapping[str, Sequence[Query]], own_name: str, chance: random.Random) -> list[Query]:
    """Return questions of the other sets, equally many of each, as such that nothing answers."""
    other_sets = [queries for name, queries in sets.items() if name != own_name]
    count = STRANGERS // max(1, len(other_sets))
    return [Query(item.text, frozenset()) for part in other_sets for item in chance.sample(part, min(len(part), count))]


def ask_whole(
    stores: Sequence[Labelled], sets: Mapping[str, Sequence[Query]], embedder: str, chance: random.Random
) -> Asked:
    """Ask each store its own questions, and some of the other stores and sets."""
    asked = Asked(stores[0].name)
    strange = strangers(sets, asked.name, chance)
    for number, part in enumerate(stores):
        with stored(part.documents, embedder) as book:
            asked.take(ask(book, part.queries))
            asked.take(ask(book, strange[number :: len(stores)]), "of other sets")
    return asked


def ask_small(
    stores: Sequence[Labelled], sets: Mapping[str, Sequence[Query]], embedder: str, chance: random.Random
) -> Asked:
    """Ask stores of a few texts of the set, some of which answer one of its questions, the set's other questions."""
    asked = Asked(f"small {stores[0].name}")
    strange = strangers(sets, stores[0].name, chance)
    for number in range(SMALL_STORES):
        part, size = stores[number % len(stores)], SMALL_SIZES[number % len(SMALL_SIZES)]
        by_id = {item.id: item for item in part.documents}
        answerable = [item for item in part.queries if item.relevant & by_id.keys()]
        queries = chance.sample(answerable, max(1, size // 3))
        chosen = {sorted(item.relevant & by_id.keys())[0] for item in queries}
        while len(chosen) < size:
            chosen.add(chance.choice(part.documents).id)
        taken_out = [item for item in part.queries if not (item.relevant | item.near) & chosen]
        with stored([by_id[id_] for id_ in sorted(chosen)], embedder) as book:
            asked.take(ask(book, [item for item in answerable if item.relevant & chosen][:6]))
            unanswerable = [replace(item, relevant=frozenset()) for item in taken_out]
            asked.take(ask(book, chance.sample(unanswerable, min(6, len(unanswerable)))), "taken out")
            asked.take(ask(book, chance.sample(strange, min(4, len(strange)))), "of other sets")
    return asked
