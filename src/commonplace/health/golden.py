"""Golden queries: from a file, or made by a person who marked hits as right or wrong.

The latter are issues of the ledger that name the memories: what erases, exports, imports and cleans issues covers them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.formats.beads import split_notes
from commonplace.formats.json_values import View
from commonplace.ledger import rules
from commonplace.ledger.rules import GOLDEN, Doer
from commonplace.store.ledger import LedgerReading
from commonplace.store.memories import MemoryChange
from commonplace.types.ledger import Issue, IssueSelection, Verdict

MAX_HITS: Final = 10
"""Number of first hits that count."""
MAX_QUERIES: Final = 10_000
_MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class GoldenQuery(View):
    """A query and what it must find.

    Attributes:
        relevant: ids of memories or paths of artifacts.
        irrelevant: ids of memories that must not be shown.
        issue: id of the ledger issue that stores it, or "" for one of a file. A stored one searches memories alone.
    """

    query: str
    relevant: tuple[str, ...]
    irrelevant: tuple[str, ...] = ()
    issue: str = ""


Ask = Callable[[GoldenQuery], tuple[Collection[str], Collection[str]]]
"""Returns the names of a query's first hits, and of those above the minimum score if it has irrelevant memories. Names
are paths, ids of memories, and ids of what these were made from."""


@dataclass(frozen=True, slots=True)
class GoldenAnswer(GoldenQuery):
    """A golden query with the relevant results that it found, and the irrelevant memories that it showed."""

    found: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return len(self.found) == len(self.relevant) and not self.shown


def read_golden(path: Path) -> list[GoldenQuery]:
    """Return the golden queries of a file: JSON lines with `query`, and `relevant`, a list of ids or paths.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it cannot be read, is too large, has an invalid line, or has no query or too many.
    """
    try:
        lines = read_file(path, _MAX_BYTES).decode("utf-8-sig").split("\n")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {path}", remedy="name a file of golden queries") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {reason}", remedy="give a text in UTF-8") from error
    remedy = 'write lines like {"query": "which database", "relevant": ["an id or a path"]}'
    queries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"line {number} of {path} is not JSON: {error}", remedy=remedy) from error
        query, relevant = (record.get("query"), record.get("relevant")) if isinstance(record, dict) else (None, None)
        if not isinstance(query, str) or not query.strip():
            raise UsageError(f"line {number} of {path} has no query", remedy=remedy)
        names = relevant if isinstance(relevant, list) else []
        if not names or not all(isinstance(item, str) and item for item in names):
            raise UsageError(f"line {number} of {path} does not name what is relevant", remedy=remedy)
        queries.append(GoldenQuery(query, tuple(dict.fromkeys(names))))
    if not 0 < len(queries) <= MAX_QUERIES:
        raise UsageError(f"{path} has {len(queries):,} queries", remedy=f"give 1 to {MAX_QUERIES:,}")
    return queries


def ask_all(queries: Sequence[GoldenQuery], ask: Ask) -> list[GoldenAnswer]:
    """Return what each query finds now."""
    answers = []
    for query in queries:
        names, shown = ask(query)
        right = tuple(name for name in query.relevant if name in names)
        wrong = tuple(name for name in query.irrelevant if name in shown)
        answers.append(GoldenAnswer(query.query, query.relevant, query.irrelevant, query.issue, right, wrong))
    return answers


def find_lost(before: Sequence[GoldenAnswer], after: Sequence[GoldenAnswer]) -> tuple[str, ...]:
    """Return the queries that no longer find something that they found before, in order."""
    return tuple(old.query for old, now in zip(before, after, strict=True) if not set(old.found) <= set(now.found))


def stored_queries(ledger: LedgerReading) -> list[GoldenQuery]:
    """Return the golden queries that the ledger stores, oldest first."""
    queries = []
    for issue in ledger.issues(IssueSelection(statuses=("open",))):
        if issue.issue_type != GOLDEN:
            continue
        notes = split_notes(issue.notes)[0]
        query, relevant, irrelevant = (notes.get(name) for name in ("query", "relevant", "irrelevant"))
        # Forgetting a memory of a golden query leaves its issue without the query.
        if isinstance(query, str) and isinstance(relevant, list) and isinstance(irrelevant, list):
            queries.append(GoldenQuery(query, tuple(map(str, relevant)), tuple(map(str, irrelevant)), issue.id))
    return queries


def mark(change: MemoryChange, query: str, id_: str, verdict: Verdict, doer: Doer) -> GoldenQuery:
    """Mark a memory as right or wrong for a query, or remove its mark; return the golden query as it is then.

    Raises:
        NotFoundError: there is no such memory.
    """
    if change.find(id_) is None:
        raise NotFoundError(f"there is no memory {id_!r:.80}", remedy="name one that a search has found")
    ledger, text = change.ledger, rules.required_line("query", query)
    before = next((golden for golden in stored_queries(ledger) if golden.query == text), GoldenQuery(text, ()))
    sides = {
        name: [*(memory_id for memory_id in ids if memory_id != id_), *([id_] if verdict == word else [])]
        for name, ids, word in (("relevant", before.relevant, "right"), ("irrelevant", before.irrelevant, "wrong"))
    }
    is_named = any(sides.values())
    issue = ledger.issue(before.issue) if before.issue else None
    if issue is None and not is_named:
        return before
    if issue is None:
        issue = Issue(rules.new_id(ledger), "", issue_type=GOLDEN, priority=3, created_at=doer.now)
        rules.record_act(ledger, issue.id, doer, "created")
    if is_named:
        # Memories whose mark was removed stay named: the query may quote one, and forgetting that erases it too.
        named = tuple(sorted({*issue.memory_ids, id_}))
        notes = rules.new_notes("", named, GOLDEN, {"query": text, **sides})
        title = f"Golden query: {text}"
        ledger.put_issue(replace(issue, title=title, memory_ids=named, notes=notes, updated_at=doer.now))
        rules.record_act(ledger, issue.id, doer, "changed", f"a hit is {verdict}")
    else:
        rules.close(ledger, issue.id, "no hit is marked any more", doer)
    return GoldenQuery(text, tuple(sides["relevant"]), tuple(sides["irrelevant"]), issue.id if is_named else "")
