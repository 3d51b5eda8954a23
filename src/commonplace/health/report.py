"""The health report: findings, golden queries and their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from commonplace.dataclasses import asdict, dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file

LOOKED_AT: Final = 10
"""So many of the first hits count."""
MAX_QUERIES: Final = 10_000
_MAX_BYTES: Final = 16 * 1024 * 1024

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
        lines = read_file(path, _MAX_BYTES).decode().splitlines()
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", remedy="name a file of golden queries") from error
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {why}", remedy="give a text in UTF-8") from error
    queries = [_parsed(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not 0 < len(queries) <= MAX_QUERIES:
        raise UsageError(f"{path} has {len(queries):,} queries", remedy=f"give 1 to {MAX_QUERIES:,}")
    return queries


def _parsed(path: Path, number: int, line: str) -> GoldenQuery:
    remedy = 'write lines like {"query": "which database", "relevant": ["an id or a path"]}'
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"line {number} of {path} is not JSON: {error}", remedy=remedy) from error
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


Kind = Literal["duplicate", "contradiction", "overtaken", "stale", "orphan", "junk"]
KINDS: tuple[Kind, ...] = ("duplicate", "contradiction", "overtaken", "stale", "orphan", "junk")

_COMMANDS: Final[Mapping[Kind, str]] = {
    "duplicate": "commonplace memory archive {}",
    "contradiction": "commonplace review",
    "overtaken": "commonplace review",
    "junk": "commonplace memory archive {}",
}

BANDS: tuple[float, ...] = (0.05, 0.10, 0.25, 0.35, 0.65, 1.0)
"""Upper ends of the bands in which retention is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person may want to look at.

    Attributes:
        ids: of memories; of a contradiction, of facts of the graph.
        why: one sentence.
        command: a command line that settles it, "" where that takes more than a choice.
    """

    kind: Kind
    ids: tuple[str, ...]
    why: str

    @property
    def command(self) -> str:
        """What settles it."""
        return _COMMANDS.get(self.kind, "").format(self.ids[-1])


@dataclass(frozen=True, slots=True)
class Health:
    """How healthy the memories of a namespace are.

    Attributes:
        tiers, statuses: how many memories there are of each; archived ones count in `statuses` alone.
        retention: how many active memories have a retention up to each upper end, and above the one before.
        findings: by kind, then by id.
        golden: what golden queries find, where any were asked.
    """

    namespace: str
    memories: int
    tiers: Mapping[str, int]
    statuses: Mapping[str, int]
    retention: Mapping[str, int]
    pending: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    golden: tuple[GoldenAnswer, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each kind."""
        return {kind: sum(each.kind == kind for each in self.findings) for kind in KINDS}

    @property
    def failed(self) -> tuple[GoldenAnswer, ...]:
        """The golden queries that do not find all that they must."""
        return tuple(answer for answer in self.golden if not answer.is_whole)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "namespace": self.namespace,
            "memories": self.memories,
            "tiers": dict(self.tiers),
            "statuses": dict(self.statuses),
            "retention": dict(self.retention),
            "pending": dict(self.pending),
            "counts": self.counts,
            "findings": [{**asdict(each), "ids": list(each.ids), "command": each.command} for each in self.findings],
            "golden": [
                {
                    "query": answer.golden.query,
                    "relevant": list(answer.golden.relevant),
                    "found": list(answer.found),
                }
                for answer in self.golden
            ],
        }
