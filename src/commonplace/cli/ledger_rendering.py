"""Print issues of the ledger for a person. It decides how things look, never what is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.cli.escaping import harmless_line
from commonplace.cli.screen import counted
from commonplace.cli.sentences import joined, print_head, print_under

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.ledger.importing import ImportedIssues

_NAMED_ALREADY = ("memory_ids", "agent")
_DEEDS = (
    ("added", "added"),
    ("replaced", "replaced"),
    ("unchanged", "left as they were"),
    ("same", "left out, as open ones say the same"),
)


def print_issues(found: Sequence[Mapping[str, Any]], target: Console) -> None:
    """Print issues, one a line."""
    for issue in found:
        _print_one(issue, target)
    if not found:
        target.print("No issue like that is here.", style="bold")


def print_issue(issue: Mapping[str, Any], target: Console) -> None:
    """Print an issue with its memories, its notes and what was appended to them."""
    _print_one(issue, target)
    if issue["description"]:
        print_under(harmless_line(issue["description"]), target)
    for id_ in issue["memory_ids"]:
        print_under(f"memory {harmless_line(id_)}", target)
    for name, value in issue["notes"].items():
        if name not in _NAMED_ALREADY:
            told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            print_under(f"{harmless_line(name)}: {harmless_line(told)}", target)
    for line in issue["log"]:
        print_under(harmless_line(line), target, "dim")
    if issue["claimed_by"]:
        print_under(f"claimed by {harmless_line(issue['claimed_by'])} at {issue['claimed_at']}", target, "dim")
    if issue["close_reason"]:
        print_under(f"closed: {harmless_line(issue['close_reason'])}", target, "dim")


def print_history(told: Sequence[Mapping[str, str]], target: Console) -> None:
    """Print what was done, one act a line."""
    for event in told:
        why = f": {harmless_line(event['why'])}" if event["why"] else ""
        target.print(f"{event['at']}  {harmless_line(event['act'])} by {harmless_line(event['actor'])}{why}")


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
        issue["created_at"] or "",
    )
    print_head(harmless_line(issue["id"]), known, target)
