"""Read labelled retrieval sets from disk: the BEIR layout, and queries with the paths they should find.

Knows files and their faults, not what is done with them. Every fault is a `UsageError` that names the file and line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.benchmarks.dialogues import read_dialogues
from commonplace.errors import UsageError
from commonplace.types import Document


@dataclass(frozen=True, slots=True)
class Query:
    """A question with its judgements; `grades` maps ids (or paths) to relevance, positive is relevant."""

    id: str
    text: str
    grades: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PersonalQuestion:
    """A question of a person about what is remembered of them.

    Attributes:
        style: what kind of question it is, in the words of the data set.
        relevant: ids of the memories that answer it; none where nothing does.
        stale: ids of those that once did, and were overtaken.
    """

    id: str
    text: str
    style: str
    relevant: tuple[str, ...]
    stale: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Person:
    """A person, their memories as `remember_many` takes them, and their questions, both in the order of the files."""

    name: str
    memories: tuple[Mapping[str, Any], ...]
    questions: tuple[PersonalQuestion, ...]


def read_corpus(path: Path) -> Iterator[Document]:
    """Yield the documents of a BEIR `corpus.jsonl` ({_id, title?, text}) one by one, in the order of the file."""
    for place, row in _rows(path):
        yield Document(id=_id(row, place), text=_text(row, "text", place), title=_text(row, "title", place, default=""))


def read_queries(path: Path) -> dict[str, str]:
    """Return the texts of a BEIR `queries.jsonl` ({_id, text}) by id, in the order of the file."""
    return {_id(row, place): _text(row, "text", place) for place, row in _rows(path)}


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Return the grades of a BEIR `qrels.tsv` by query id and document id; its header line is optional."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        columns = line.split("\t")
        if len(columns) != 3:
            raise _fault(f"{path}:{number}", f"has {len(columns)} columns", "query id, document id, score, with tabs")
        grade = _number(columns[2])
        if grade is None:
            if number == 1:
                continue
            raise _fault(f"{path}:{number}", f"has the score {columns[2]!r}", "a number in the third column")
        grades.setdefault(columns[0], {})[columns[1]] = grade
    return grades


def read_judged_queries(queries: Path, qrels: Path) -> tuple[list[Query], int]:
    """Return the queries that have at least one relevant document, and how many were passed over for having none."""
    texts, grades = read_queries(queries), read_qrels(qrels)
    judged = [
        Query(id_, text, grades[id_])
        for id_, text in texts.items()
        if any(grade > 0 for grade in grades.get(id_, {}).values())
    ]
    if not judged:
        raise UsageError(f"no query of {queries} has a relevant document in {qrels}", remedy="give files of one set")
    return judged, len(texts) - len(judged)


def read_labelled_queries(path: Path) -> list[Query]:
    """Return the queries of a JSON-lines file {query, relevant: [path, …]}; every named path has grade 1."""
    queries = []
    for place, row in _rows(path):
        wanted = row.get("relevant")
        if not isinstance(wanted, list) or not wanted or not all(isinstance(item, str) for item in wanted):
            raise _fault(place, f"has `relevant` {wanted!r}", "a list of at least one path")
        grades = {item.removeprefix("./"): 1.0 for item in wanted}
        text = _text(row, "query", place)
        if not text.strip():
            raise _fault(place, f"has `query` {text!r}", "a question")
        queries.append(Query(place.rpartition(":")[2], text, grades))
    if not queries:
        raise UsageError(f"{path} holds no query", remedy="give one JSON object {query, relevant} a line")
    return queries


def read_people(memories: Path, questions: Path) -> list[Person]:
    """Return those who have memories ({user, id, at, content, origin}) and questions ({user, id, question, style, …}).

    A question's `relevant` and `stale` are lists of ids of its user's memories; its time is not used.
    """
    kept: dict[str, list[Mapping[str, Any]]] = {}
    for place, row in _rows(memories):
        kept.setdefault(_text(row, "user", place), []).append(
            {name: _text(row, name, place) for name in ("id", "at", "content", "origin")}
        )
    asked: dict[str, list[PersonalQuestion]] = {}
    for place, row in _rows(questions):
        user, text = _text(row, "user", place), _text(row, "question", place)
        known = {each["id"] for each in kept.get(user, ())}
        relevant, stale = (_ids(row, name, known, place) for name in ("relevant", "stale"))
        found = PersonalQuestion(_text(row, "id", place), text, _text(row, "style", place), relevant, stale)
        asked.setdefault(user, []).append(found)
    if not asked:
        raise UsageError(f"{questions} holds no question", remedy="give one JSON object {user, id, question} a line")
    return [Person(name, tuple(kept.get(name, ())), tuple(each)) for name, each in asked.items()]


def read_talk(path: Path) -> Iterator[str]:
    """Yield the texts of JSON lines with `content`, or the turns of a LoCoMo file, which is one JSON list."""
    first = next((line.lstrip()[:1] for _, line in _lines(path)), "")
    if first == "[":
        yield from (turn.text for dialogue in read_dialogues(path, "locomo") for turn in dialogue.turns)
    else:
        yield from (_text(row, "content", place) for place, row in _rows(path))


def _ids(row: Mapping[str, Any], key: str, known: AbstractSet[str], place: str) -> tuple[str, ...]:
    value = row.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _fault(place, f"has `{key}` {value!r}", "a list of ids")
    unknown = [each for each in value if each not in known]
    if unknown:
        raise _fault(place, f"has in `{key}` {unknown[0]!r}", "the id of a memory of the same user")
    return tuple(value)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="name a readable file") from error
    except UnicodeDecodeError as error:
        raise _fault(f"{path}:{number + 1}", "is not UTF-8", "text in UTF-8") from error


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in _lines(path):
        place = f"{path}:{number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise _fault(place, f"is not JSON ({error})", "one JSON object a line") from error
        if not isinstance(row, dict):
            raise _fault(place, f"is a JSON {type(row).__name__}", "one JSON object a line")
        yield place, row


def _id(row: Mapping[str, Any], place: str) -> str:
    value = row.get("_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise _fault(place, f"has `_id` {value!r}", "a non-empty string")
    return str(value)


def _text(row: Mapping[str, Any], key: str, place: str, *, default: str | None = None) -> str:
    value = row.get(key, default)
    if not isinstance(value, str):
        raise _fault(place, f"has `{key}` {value!r}", "a string")
    return value


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _fault(place: str, what: str, expected: str) -> UsageError:
    return UsageError(f"{place} {what}", remedy=f"expected {expected}")
