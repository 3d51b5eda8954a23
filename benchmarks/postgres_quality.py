"""Compare what a store in PostgreSQL finds with what one in a file finds, on the same sets in the same run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from benchmarks.output import json_option, show
from benchmarks.vectors import vectors_cache
from commonplace.benchmarks import measures
from commonplace.benchmarks.data import read_corpus, read_judged_queries, read_people
from commonplace.benchmarks.harness import QueryRun, ask, describe, latency, open_engine, owner_of, workspace
from commonplace.benchmarks.recall import LIMIT, RecallOutcome, figures
from commonplace.engine import Engine
from commonplace.search.result import is_likely

EVERYDAY: Final = "everyday"
FIRST: Final = 5
SETS: Final = ("medquad", "cosqa-dev", "cranfield", EVERYDAY)


@dataclass(frozen=True, slots=True)
class QualityOptions:
    """What to compare.

    Attributes:
        postgres: the address of an empty database.
        data: a directory with one for each set: corpus.jsonl, queries.jsonl and qrels.tsv; in `everyday`,
            memories.jsonl and questions.jsonl.
        cache: where the vectors of the transformer are kept.
    """

    postgres: str
    data: Path
    sets: tuple[str, ...] = SETS
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What one store finds of a set: the ids for each question, best first, and the figures."""

    rankings: Sequence[Sequence[str]]
    figures: dict[str, Any]


def run(options: QualityOptions) -> dict[str, Any]:
    """Ask both stores all questions of all sets, each set in a namespace of its own, and return the JSON form.

    Raises:
        UsageError: a file is wrong.
        CommonplaceError: the database cannot be used, or has something in it already.
    """
    now = time.time()
    with workspace(None) as directory, vectors_cache(options.cache):
        answers: dict[str, dict[str, Found]] = {}
        for store, location in (("file", directory), ("postgres", options.postgres)):
            with open_engine(location, now=now) as engine:
                for name in options.sets:
                    measure = _everyday if name == EVERYDAY else _documents
                    answers.setdefault(name, {})[store] = measure(engine, options.data / name)
    return {
        "benchmark": "postgres quality",
        "machine": describe(),
        **{name: _compared(stores["file"], stores["postgres"]) for name, stores in answers.items()},
    }


def _compared(file: Found, postgres: Found) -> dict[str, Any]:
    rows = list(zip(file.rankings, postgres.rankings, strict=True))
    return {
        "questions": len(rows),
        f"first_{FIRST}_equal": round(measures.mean([float(left[:FIRST] == right[:FIRST]) for left, right in rows]), 4),
        "file": file.figures,
        "postgres": postgres.figures,
    }


def _documents(engine: Engine, directory: Path) -> Found:
    book = engine.in_namespace(directory.name)
    queries, _ = read_judged_queries(directory / "queries.jsonl", directory / "qrels.tsv")
    book.index_documents(read_corpus(directory / "corpus.jsonl"))
    answers: list[QueryRun] = list(ask(book, [query.text for query in queries], "two-stage", owner_of))
    gains = [measures.ndcg(answer.ranking, query.grades, 10) for answer, query in zip(answers, queries, strict=True)]
    book.close()
    return Found(
        [answer.ranking for answer in answers],
        {"ndcg@10": round(measures.mean(gains), 4), **latency([answer.ms for answer in answers])},
    )


def _everyday(engine: Engine, directory: Path) -> Found:
    outcomes, times = [], []
    for person in read_people(directory / "memories.jsonl", directory / "questions.jsonl"):
        book = engine.in_namespace(person.name)
        born = {memory.id: memory.at for memory in book.remember_many(person.memories, force=True)}
        for question in person.questions:
            begun = time.perf_counter()
            hits = book.recall(question.text, limit=LIMIT, touch=False).hits
            times.append((time.perf_counter() - begun) * 1000)
            newest = max(question.relevant, key=lambda id_: born[id_], default="")
            ranking = tuple(dict.fromkeys(hit.owner_id for hit in hits))
            outcomes.append(RecallOutcome(question, ranking, newest, any(map(is_likely, hits)), times[-1]))
        book.close()
    return Found([outcome.ranking for outcome in outcomes], {**figures(outcomes), **latency(times)})


@click.command()
@click.argument("postgres", metavar="URL")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="COMMONPLACE_DATA",
    required=True,
    help="Directory of the sets; COMMONPLACE_DATA.",
)
@click.option("--sets", default=",".join(SETS), show_default=True, help="Some of them, with commas.")
@click.option("--vectors-cache", type=click.Path(file_okay=False, path_type=Path), help="Keep MiniLM's vectors here.")
@json_option
def main(*, postgres: str, data: Path, sets: str, vectors_cache: Path | None, as_json: bool) -> None:
    """Compare what a store in the empty database at URL finds with what one in a file does."""
    show(lambda: run(QualityOptions(postgres, data, tuple(sets.split(",")), vectors_cache)), as_json=as_json)


if __name__ == "__main__":
    main()
