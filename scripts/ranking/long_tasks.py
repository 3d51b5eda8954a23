"""Measure what short questions find, and the same questions put into long sentences of tasks.

    PYTHONPATH=scripts python -m ranking.long_tasks DATA [--part dev|test] [--project DIRECTORY]

DATA holds BEIR sets (`corpus.jsonl`, `queries.jsonl`, `qrels.tsv`) in directories of their own. The sentences, and
tasks about this project's own files, are in `long_tasks.json`: the part `dev`, with every other query, was there to
choose by; `test` is what is reported.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import commonplace
from commonplace.benchmarks.data import Query, read_corpus, read_judged_queries
from commonplace.engine import Engine
from commonplace.types import Hit

SETS = {"cosqa-dev": 60, "medquad": 40, "cranfield": 60}
"""So many queries of each."""
TASKS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def queries_of(directory: Path, count: int, part: str) -> list[Query]:
    """Return some queries of one half of a set."""
    judged, _ = read_judged_queries(directory / "queries.jsonl", directory / "qrels.tsv")
    half = judged[("dev", "test").index(part) :: 2]
    random.Random(1).shuffle(half)  # noqa: S311 - a sample, the same each time
    return half[:count]


def hit_rates(book: Engine, questions: Sequence[str], is_answer: Sequence[Callable[[Hit], bool]]) -> dict[str, float]:
    """Return of how many questions the answer is among ten hits, is called likely, and what is called likely at all."""
    counts = {"found": 0, "likely": 0, "any likely": 0}
    for question, fits in zip(questions, is_answer, strict=True):
        hits = book.search(question, 10, min_score=0.0, kinds=["artifact"]).hits
        answers = [hit for hit in hits if fits(hit)]
        counts["found"] += bool(answers)
        counts["likely"] += bool(answers) and answers[0].confidence != "weak"
        counts["any likely"] += bool(hits) and hits[0].confidence != "weak"
    return {name: round(count / len(questions), 3) for name, count in counts.items()}


def of_set(directory: Path, queries: Sequence[Query], other_queries: Sequence[Query], sentences: Sequence[str]) -> Any:
    """Return what short and long forms of a set's queries find, and what tasks about another set do."""

    def long(texts: Sequence[Query]) -> list[str]:
        return [sentences[at % len(sentences)].format(query.text.strip(" ?.")) for at, query in enumerate(texts)]

    def answers(grades: Mapping[str, float]) -> Callable[[Hit], bool]:
        return lambda hit: grades.get(hit.owner_id, 0) > 0

    fits = [answers(query.grades) for query in queries]
    with tempfile.TemporaryDirectory() as directory_name, commonplace.open(directory_name) as book:
        book.index_documents(read_corpus(directory / "corpus.jsonl"))
        return {
            "short": hit_rates(book, [query.text for query in queries], fits),
            "long": hit_rates(book, long(queries), fits),
            "long, of another set": hit_rates(book, long(other_queries), [lambda _: False] * len(other_queries)),
        }


def of_project(project: Path, tasks: Sequence[Mapping[str, Any]]) -> Any:
    """Return what short and long forms of tasks about a project's files find."""

    def answers(paths: Sequence[str]) -> Callable[[Hit], bool]:
        prefixes = tuple(str(project / path) for path in paths)
        return lambda hit: str(project / hit.path).startswith(prefixes)

    fits = [answers(task["paths"]) for task in tasks]
    with tempfile.TemporaryDirectory() as directory_name, commonplace.open(directory_name) as book:
        book.index(project)
        return {form: hit_rates(book, [task[form] for task in tasks], fits) for form in ("short", "long")}


def main() -> None:
    """Measure all sets that there are, and print what was found as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--project", type=Path, default=Path(__file__).parents[2])
    options = parser.parse_args()
    names = [name for name in SETS if (options.data / name).is_dir()]
    queries = {name: queries_of(options.data / name, SETS[name], options.part) for name in names}
    sentences = TASKS["templates"][options.part]
    result = {}
    for at, name in enumerate(names):
        other_queries = queries[names[(at + 1) % len(names)]]
        result[name] = of_set(options.data / name, queries[name], other_queries, sentences)
        print(json.dumps({name: result[name]}), flush=True)
    print(json.dumps({"project": of_project(options.project.resolve(), TASKS["own"][options.part])}))


if __name__ == "__main__":
    main()
