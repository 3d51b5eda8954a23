"""Golden queries: questions that must go on finding what they find. It knows no engine, only how it is asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file

LOOKED_AT: Final = 10
"""So many of the first hits count."""
MOST_QUERIES: Final = 10_000
_MOST_BYTES: Final = 16 * 1024 * 1024

Ask = Callable[[str], Collection[str]]
"""Returns what the first hits of a query are: ids of memories and of what they were made from, and paths."""


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question, and the ids of memories or the paths of artifacts that it must find."""

    query: str
    relevant: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldenAnswer:
    """What a golden query finds of what it must find."""

    golden: GoldenQuery
    found: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it finds all of it."""
        return len(self.found) == len(self.golden.relevant)


def read_golden(path: Path) -> list[GoldenQuery]:
    """Return the golden queries of a file: JSON lines with `query`, and `relevant`, a list of ids or paths.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is too large, or a line of it is not as it should be.
    """
    try:
        lines = read_file(path, _MOST_BYTES).decode().splitlines()
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", remedy="name a file of golden queries") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {why}", remedy="give a text in UTF-8") from error
    queries = [_parsed(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not 0 < len(queries) <= MOST_QUERIES:
        raise UsageError(f"{path} has {len(queries):,} queries", remedy=f"give 1 to {MOST_QUERIES:,}")
    return queries


def _parsed(path: Path, number: int, line: str) -> GoldenQuery:
    remedy = 'write lines like {"query": "which database", "relevant": ["an id or a path"]}'
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"line {number} of {path} is no JSON: {error}", remedy=remedy) from error
    query = given.get("query") if isinstance(given, dict) else None
    relevant = given.get("relevant") if isinstance(given, dict) else None
    if not isinstance(query, str) or not query.strip():
        raise UsageError(f"line {number} of {path} has no query", remedy=remedy)
    if not isinstance(relevant, list) or not relevant or not all(isinstance(each, str) and each for each in relevant):
        raise UsageError(f"line {number} of {path} does not name what is relevant", remedy=remedy)
    return GoldenQuery(query, tuple(dict.fromkeys(relevant)))


def asked(queries: Sequence[GoldenQuery], ask: Ask) -> list[GoldenAnswer]:
    """Return what each query finds now."""
    answers = []
    for each in queries:
        found = set(ask(each.query))
        answers.append(GoldenAnswer(each, tuple(name for name in each.relevant if name in found)))
    return answers


def lost(before: Sequence[GoldenAnswer], after: Sequence[GoldenAnswer]) -> tuple[str, ...]:
    """Return the queries that do not find any more what they had found, in their order."""
    return tuple(
        old.golden.query for old, new in zip(before, after, strict=True) if not set(old.found) <= set(new.found)
    )
