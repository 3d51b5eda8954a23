"""Ask labelled sets everything that the fit of the score scale needs, and note the raw signals of what is found.

Of each set there is the whole, and small stores of a few of its texts: how relevant the best of many looks by chance
depends on how many there are. Questions that nothing answers are those of other sets, random words of the set itself,
and random words of other sets' questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import commonplace
from commonplace.benchmarks.abstaining import word_salad, words_of
from commonplace.benchmarks.datasets import read_corpus, read_judged_queries
from commonplace.benchmarks.dialogues import read_dialogues
from commonplace.types import Document

DEPTH = 40
SIGNALS = ("coverage", "words", "dense")
MOST_QUERIES = 600
SMALL_STORES = 40
SMALL_SIZES = (3, 5, 8, 12, 20, 40)
CODE = frozenset({"cosqa-dev", "pydoc", "sections"})
"""Sets about the same things: their questions are not asked of each other, since some would be answered."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The first hits of one query in rank order: signals, shape (n, 4), the last one the logarithm of the passages + 1,
    and which hits are relevant."""

    signals: NDArray[np.float64]
    relevant: NDArray[np.bool_]


@dataclass
class Asked:
    """A labelled set: its own queries, and by kind those that nothing in it answers."""

    name: str
    answerable: list[Judged] = field(default_factory=list)
    unanswerable: dict[str, list[Judged]] = field(default_factory=dict)

    @property
    def strangers(self) -> list[Judged]:
        """All that nothing answers, but the questions of other parts of the same set: those are near misses."""
        return [row for kind, rows in self.unanswerable.items() if kind != "same kind" for row in rows]

    def add(self, other: Asked) -> None:
        """Take in what another store of the same set was asked."""
        self.answerable += other.answerable
        for kind, rows in other.unanswerable.items():
            self.unanswerable.setdefault(kind, []).extend(rows)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A set as it is read: texts, and queries with the ids that answer them."""

    name: str
    documents: Sequence[Document]
    queries: Sequence[tuple[str, frozenset[str]]]


def read_set(folder: Path, most: int, chance: random.Random) -> Labelled:
    """Read a set of the BEIR layout; of more texts than `most`, those that answer and as many others as have room."""
    judged, _ = read_judged_queries(folder / "queries.jsonl", folder / "qrels.tsv")
    queries = [(each.text, frozenset(id_ for id_, grade in each.grades.items() if grade > 0)) for each in judged]
    if len(queries) > MOST_QUERIES:
        queries = chance.sample(queries, MOST_QUERIES)
    wanted = frozenset(id_ for _, ids in queries for id_ in ids)
    documents = list(read_corpus(folder / "corpus.jsonl"))
    others = [each.id for each in documents if each.id not in wanted]
    kept = wanted | frozenset(chance.sample(others, min(len(others), max(0, most - len(wanted)))))
    return Labelled(folder.name, [each for each in documents if each.id in kept], queries)


def read_conversations(file: Path) -> list[Labelled]:
    """Read the conversations of LoCoMo, with the questions of categories 1–4 that have evidence."""
    return [
        Labelled(
            "locomo",
            each.turns,
            [(one.text, frozenset(one.turns)) for one in each.questions if one.is_counted and one.turns],
        )
        for each in read_dialogues(file, "locomo")
    ]


@contextmanager
def stored(directory: Path | None, documents: Iterable[Document], embedder: str) -> Iterator[commonplace.engine.Engine]:
    """Open a store of the documents: in a directory, where it is left and found again, or in one that is removed."""
    with TemporaryDirectory() as passing:
        place = directory or Path(passing) / "store"
        is_new = not place.exists()
        with commonplace.open(place, embedder=embedder) as book:
            if is_new:
                book.index_documents(documents)
            yield book


def ask(book: commonplace.engine.Engine, queries: Iterable[tuple[str, frozenset[str]]]) -> list[Judged]:
    """Return the first hits of each query."""
    passages = book.index_status().counts["passages"]
    found = []
    for query, wanted in queries:
        hits = book.search(query, limit=DEPTH, min_score=0.0).hits
        rows = [[*(hit.signals[name] for name in SIGNALS), np.log1p(passages)] for hit in hits]
        signals = np.array(rows, dtype=np.float64).reshape(-1, len(SIGNALS) + 1)
        found.append(Judged(signals, np.array([hit.owner_id in wanted for hit in hits], dtype=bool)))
    return found


def unanswered(texts: Iterable[str]) -> list[tuple[str, frozenset[str]]]:
    """Return questions as those that nothing answers."""
    return [(text, frozenset()) for text in texts]


def strange_to(name: str, sets: Mapping[str, Sequence[str]], count: int, chance: random.Random) -> list[str]:
    """Return so many questions of the sets that are about other things than the named one, equally many of each."""
    others = [questions for other, questions in sets.items() if other != name and not (name in CODE and other in CODE)]
    return [text for part in others for text in chance.sample(part, min(len(part), count // len(others)))]


def ask_whole(
    labelled: Labelled, questions: Mapping[str, Sequence[str]], embedder: str, chance: random.Random, place: Path | None
) -> Asked:
    """Ask a store of the whole set."""
    share = 4 if labelled.name == "locomo" else 1  # ten conversations, each a store of its own
    strangers = strange_to(labelled.name, questions, 240 // share, chance)
    seed = chance.randrange(1 << 30)
    asked = {
        "others": strangers,
        "own words": word_salad(words_of(each.text for each in labelled.documents), 100 // share, seed),
        "other words": word_salad(words_of(strangers), 100 // share, seed),
    }
    with stored(place, labelled.documents, embedder) as book:
        return Asked(
            labelled.name,
            ask(book, labelled.queries),
            {kind: ask(book, unanswered(texts)) for kind, texts in asked.items()},
        )


def ask_small(
    labelled: Labelled, questions: Mapping[str, Sequence[str]], embedder: str, chance: random.Random
) -> Asked:
    """Ask stores of a few texts of the set, some of which answer one of its questions."""
    by_id = {each.id: each for each in labelled.documents}
    strangers = strange_to(labelled.name, questions, 240, chance)
    seed = chance.randrange(1 << 30)
    own = word_salad(words_of(each.text for each in labelled.documents), SMALL_STORES, seed)
    other = word_salad(words_of(strangers), SMALL_STORES, seed)
    found = Asked(f"small {labelled.name}")
    for number in range(SMALL_STORES):
        size = chance.choice(SMALL_SIZES)
        queries = chance.sample(list(labelled.queries), max(1, min(4, size // 2)))
        chosen = {id_: by_id[id_] for _, wanted in queries for id_ in sorted(wanted & by_id.keys())[:1]}
        while len(chosen) < size:
            one = chance.choice(labelled.documents)
            chosen[one.id] = one
        same = [text for text, wanted in chance.sample(list(labelled.queries), 8) if not wanted & chosen.keys()][:4]
        asked = {"others": chance.sample(strangers, 4), "words": [own[number], other[number]], "same kind": same}
        with stored(None, chosen.values(), embedder) as book:
            found.add(
                Asked(
                    found.name,
                    ask(book, queries),
                    {kind: ask(book, unanswered(texts)) for kind, texts in asked.items()},
                )
            )
    return found
