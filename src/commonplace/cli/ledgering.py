"""The command group `ledger`: what consolidation did or proposes, for whoever wants to see it, do it or let it be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commonplace.cli.failures import FAILURE, SUCCESS
from commonplace.cli.invocation import Command, Group, Invocation, pass_invocation
from commonplace.errors import UsageError
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, URGENCIES

if TYPE_CHECKING:
    from commonplace.types.ledger import IssueEvent

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
    from commonplace.cli.ledger_rendering import print_issues, words_of
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.ledger_rendering import print_issue, words_of
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.ledger_rendering import print_history
    from commonplace.cli.screen import console, print_json

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
    from commonplace.cli.screen import console, counted, print_json

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

    from commonplace.cli.ledger_rendering import print_import
    from commonplace.cli.screen import console, print_json

    with invocation.open(invocation.settings()) as engine:
        taken = engine.ledger.import_(file)
    if invocation.as_json:
        print_json(asdict(taken))
    else:
        print_import(taken, console())


def _acts(events: Sequence[IssueEvent]) -> list[dict[str, str]]:
    from commonplace.formats.beads import time_text

    return [{"at": time_text(each.at), "actor": each.actor, "act": each.act, "why": each.why} for each in events]


def _tell(invocation: Invocation, told: dict[str, Any], words: str) -> None:
    from commonplace.cli.screen import console, print_json
    from commonplace.text.escaping import harmless_line

    if invocation.as_json:
        print_json(told)
    else:
        status = f" (it is {harmless_line(told['status'])})" if told.get("claimed") is False else ""
        console().print(f"{harmless_line(told['issue'])} {words}{status}", style="bold")
