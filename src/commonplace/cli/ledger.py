"""The command group `ledger`: see and settle what consolidation did or proposes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli.app import FAILURE, SUCCESS, Command, Group, pass_invocation
from commonplace.cli.main import Invocation
from commonplace.cli.output import console, counted, joined, print_beginning, print_head, print_json, print_under, told
from commonplace.errors import NotFoundError, UsageError
from commonplace.text.escaping import harmless_line
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, URGENCIES, IssueEvent

if TYPE_CHECKING:
    from rich.console import Console

    from commonplace.engine import Engine
    from commonplace.ledger.rules import ImportedIssues


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


_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=Group)
def ledger() -> None:
    """See and settle what consolidation did or proposes."""


@ledger.command("list", cls=Command)
@click.option("--agent", type=click.Choice(AGENTS), help="Of this agent alone.")
@click.option("--status", type=click.Choice(ISSUE_STATUSES), default="open", show_default=True, help="Of this status.")
@click.option("--urgency", type=click.Choice(URGENCIES), help="Of this urgency alone.")
@click.option("--all", "is_of_any_status", is_flag=True, help="Of any status.")
@pass_invocation
def list_(
    invocation: Invocation, /, agent: str | None, status: str, urgency: str | None, is_of_any_status: bool
) -> None:
    """List issues, the oldest first."""

    with invocation.open(invocation.settings()) as engine:
        found = engine.ledger.query(agent, None if is_of_any_status else status, urgency)
        words = {} if invocation.as_json else words_of(engine, found)
    if invocation.as_json:
        print_json({"issues": found})
    else:
        print_issues(found, words, console())


@ledger.command(cls=Command)
@click.argument("issue")
@pass_invocation
def show(invocation: Invocation, /, issue: str) -> None:
    """Show an issue with all that it says."""

    with invocation.open(invocation.settings()) as engine:
        found = engine.ledger.show(issue)
        words = {} if invocation.as_json else words_of(engine, [found])
        acts = []
        with suppress(UsageError):  # beads keeps the history of its issues itself
            acts = _acts(engine.ledger.history(issue))
    if invocation.as_json:
        print_json(found)
    else:
        print_issue(found, words, acts, console())


@ledger.command(cls=Command)
@click.argument("issue")
@pass_invocation
def history(invocation: Invocation, /, issue: str) -> None:
    """Tell who did what on an issue, when and why."""

    with invocation.open(invocation.settings()) as engine:
        acts = _acts(engine.ledger.history(issue))
    if invocation.as_json:
        print_json({"issue": issue, "history": acts})
    else:
        print_history(acts, console())


@ledger.command(cls=Command)
@click.argument("issue")
@pass_invocation
def claim(invocation: Invocation, /, issue: str) -> int:
    """Take an open issue to work on.

    The exit code is 1 where others work on it, or it is blocked or closed.
    """
    with invocation.open(invocation.settings()) as engine:
        is_ours = engine.ledger.claim(issue)
        status = engine.ledger.get(issue).status
    _tell(invocation, {"issue": issue, "claimed": is_ours, "status": status}, f"{'' if is_ours else 'not '}claimed")
    return SUCCESS if is_ours else FAILURE


@ledger.command(cls=Command)
@click.argument("issue")
@click.option("--reason", required=True, metavar="TEXT", help="What became of it.")
@pass_invocation
def close(invocation: Invocation, /, issue: str, reason: str) -> None:
    """Close an issue that is done or not wanted."""
    with invocation.open(invocation.settings()) as engine:
        engine.ledger.close(issue, reason)
    _tell(invocation, {"issue": issue, "status": "closed"}, "closed")


@ledger.command(cls=Command)
@click.argument("issue")
@click.option("--error", required=True, metavar="TEXT", help="What went wrong; it is added to the notes.")
@pass_invocation
def block(invocation: Invocation, /, issue: str, error: str) -> None:
    """Block an issue that failed.

    It is tried again after 1, 5 and 25 minutes, and then waits for a person.
    """
    with invocation.open(invocation.settings()) as engine:
        engine.ledger.block(issue, error)
    _tell(invocation, {"issue": issue, "status": "blocked"}, "blocked")


@ledger.command(cls=Command)
@click.argument("issue")
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
@pass_invocation
def reopen(invocation: Invocation, /, issue: str, why: str) -> None:
    """Open a blocked or closed issue again."""
    with invocation.open(invocation.settings()) as engine:
        engine.ledger.reopen(issue, why)
    _tell(invocation, {"issue": issue, "status": "open"}, "open again")


@ledger.command(cls=Command)
@click.argument("file", type=_FILE)
@pass_invocation
def export(invocation: Invocation, /, file: Path) -> None:
    """Write all issues to FILE as beads has them."""

    with invocation.open(invocation.settings()) as engine:
        count = engine.ledger.export(file)
    if invocation.as_json:
        print_json({"path": str(file), "issues": count})
    else:
        console().print(f"Wrote {counted(count, 'issue')} to {file}", style="bold")


@ledger.command("import", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@pass_invocation
def import_(invocation: Invocation, /, file: Path) -> None:
    """Take in the issues of a FILE of beads, all or none.

    Of two issues with one id the one that was changed last stays.
    """
    from dataclasses import asdict

    with invocation.open(invocation.settings()) as engine:
        taken = engine.ledger.import_(file)
    if invocation.as_json:
        print_json(asdict(taken))
    else:
        print_import(taken, console())


def _acts(events: Sequence[IssueEvent]) -> list[dict[str, str]]:
    from commonplace.dates.time import iso

    return [{"at": iso(each.at), "actor": each.actor, "act": each.act, "why": each.why} for each in events]


def _tell(invocation: Invocation, told: dict[str, Any], words: str) -> None:
    if invocation.as_json:
        print_json(told)
    else:
        status = f" (it is {harmless_line(told['status'])})" if told.get("claimed") is False else ""
        console().print(f"{harmless_line(told['issue'])} {words}{status}", style="bold")
