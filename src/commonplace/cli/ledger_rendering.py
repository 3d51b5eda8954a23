"""Print issues of the ledger for a person. It decides how things look, never what is in them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from commonplace.cli.memory_rendering import told
from commonplace.cli.screen import counted
from commonplace.cli.sentences import joined, print_beginning, print_head, print_under
from commonplace.errors import NotFoundError
from commonplace.text.escaping import harmless_line

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine import Engine
    from commonplace.ledger.importing import ImportedIssues

_NAMED_ALREADY = ("memory_ids", "agent")
_MEMORIES_LISTED: Final = 3
"""The words of so many memories stand below an issue of a list."""
_DEEDS = (
    ("added", "added"),
    ("replaced", "replaced"),
    ("unchanged", "left as they were"),
    ("same", "left out, as open ones say the same"),
)


def words_of(engine: Engine, found: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return what the memories say that issues are about, by id, as far as they are still there."""
    words: dict[str, str] = {}
    for id_ in {id_ for issue in found for id_ in issue["memory_ids"]}:
        with suppress(NotFoundError):
            words[id_] = engine.get(id_, touch=False).content
    return words


def print_issues(found: Sequence[Mapping[str, Any]], words: Mapping[str, str], target: Console) -> None:
    """Print issues, each with the beginning of the memories that it is about."""
    for issue in found:
        _print_one(issue, target)
        ids = issue["memory_ids"]
        for id_ in ids[:_MEMORIES_LISTED]:
            print_beginning(words.get(id_, id_), target)
        if len(ids) > _MEMORIES_LISTED:
            print_under(f"… {len(ids) - _MEMORIES_LISTED:,} more", target, "dim")
    if not found:
        target.print("No issue like that is here.", style="bold")


def print_issue(
    issue: Mapping[str, Any], words: Mapping[str, str], history: Sequence[Mapping[str, str]], target: Console
) -> None:
    """Print an issue with its memories, its notes, what was appended to them, and what became of it."""
    _print_one(issue, target)
    if issue["description"]:
        print_under(harmless_line(issue["description"]), target)
    for id_ in issue["memory_ids"]:
        print_under(f"memory {harmless_line(id_)}", target)
        if id_ in words:
            print_beginning(words[id_], target)
    for name, value in issue["notes"].items():
        if name not in _NAMED_ALREADY:
            told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            print_under(f"{harmless_line(name)}: {harmless_line(told)}", target)
    for line in issue["log"]:
        print_under(harmless_line(line), target, "dim")
    if issue["claimed_by"]:
        print_under(f"claimed by {harmless_line(issue['claimed_by'])} at {_local(issue['claimed_at'])}", target, "dim")
    if issue["close_reason"]:
        print_under(f"closed: {harmless_line(issue['close_reason'])}", target, "dim")
    acts = [event for event in history if event["act"] in ("applied", "undone")]
    if acts and acts[-1]["act"] == "undone":
        print_under(f"undone at {_local(acts[-1]['at'])} by {harmless_line(acts[-1]['actor'])}", target, "yellow")


def print_history(history: Sequence[Mapping[str, str]], target: Console) -> None:
    """Print what was done, one act a line."""
    for event in history:
        why = f": {harmless_line(event['why'])}" if event["why"] else ""
        target.print(f"{_local(event['at'])}  {harmless_line(event['act'])} by {harmless_line(event['actor'])}{why}")


def print_import(taken: ImportedIssues, target: Console) -> None:
    """Print what became of the issues of an import."""
    parts = [(len(getattr(taken, name)), words) for name, words in _DEEDS]
    target.print(f"Read {counted(sum(count for count, _ in parts), 'issue')}", style="bold")
    print_under(joined([f"{count:,} {words}" for count, words in parts if count]) or "nothing came", target, "dim")


def _print_one(issue: Mapping[str, Any], target: Console) -> None:
    known = (
        harmless_line(issue["title"]),
        harmless_line(issue["agent"]),
        issue["urgency"],
        harmless_line(issue["status"]),
        _local(issue["created_at"]),
    )
    print_head(harmless_line(issue["id"]), known, target)


def _local(time: str | None) -> str:
    """Return a time of the ledger as people of this machine write it."""
    return told(datetime.fromisoformat(time)) if time else ""
