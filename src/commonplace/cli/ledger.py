"""The command group `ledger`: see and settle what consolidation did or proposes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask, command, opened
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import Beginning, Line, Row, Rows, counted, emit, joined, local_time, memory_texts
from commonplace.dates.time import iso
from commonplace.errors import UsageError
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, URGENCIES, IssueEvent

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.ledger.rules import ImportedIssues
_MAX_MEMORIES: Final = 3
"""The texts of so many memories stand below an issue of a list."""
_IMPORTED: Final = (
    ("added", "added"),
    ("replaced", "replaced"),
    ("unchanged", "left as they were"),
    ("same", "left out, as open ones say the same"),
)
_issue = click.argument("issue")


def _events(events: Sequence[IssueEvent]) -> list[dict[str, str]]:
    return [{"at": iso(each.at), "actor": each.actor, "act": each.act, "why": each.why} for each in events]


def _head(issue: Mapping[str, Any]) -> Row:
    known = (issue["title"], issue["agent"], issue["urgency"], issue["status"], local_time(issue["created_at"]))
    return Row(issue["id"], known)


def _issues(found: Sequence[Mapping[str, Any]], engine: Engine) -> Rows:
    texts = memory_texts(engine, {id_ for issue in found for id_ in issue["memory_ids"]})
    for issue in found:
        yield _head(issue)
        ids = issue["memory_ids"]
        for id_ in ids[:_MAX_MEMORIES]:
            yield Beginning(texts.get(id_, id_))
        if len(ids) > _MAX_MEMORIES:
            yield Line(f"… {len(ids) - _MAX_MEMORIES:,} more", "dim", 1)
    if not found:
        yield Line("No issues match.", "bold")


def _whole(issue: Mapping[str, Any], texts: Mapping[str, str], events: Sequence[Mapping[str, str]]) -> Rows:
    yield _head(issue)
    if issue["description"]:
        yield Line(issue["description"], "", 1)
    for id_ in issue["memory_ids"]:
        yield Line(f"memory {id_}", "", 1)
        if id_ in texts:
            yield Beginning(texts[id_])
    for name, value in issue["notes"].items():
        if name not in ("memory_ids", "agent"):
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield Line(f"{name}: {shown}", "", 1)
    for line in issue["log"]:
        yield Line(line, "dim", 1)
    if issue["claimed_by"]:
        yield Line(f"claimed by {issue['claimed_by']} at {local_time(issue['claimed_at'])}", "dim", 1)
    if issue["close_reason"]:
        yield Line(f"closed: {issue['close_reason']}", "dim", 1)
    acts = [event for event in events if event["act"] in ("applied", "undone")]
    if acts and acts[-1]["act"] == "undone":
        yield Line(f"undone at {local_time(acts[-1]['at'])} by {acts[-1]['actor']}", "yellow", 1)


def _changed(done: Mapping[str, Any]) -> Rows:
    """Yield what became of an issue that was claimed, closed, blocked or reopened."""
    status = done["status"]
    if "claimed" in done:
        words = "claimed" if done["claimed"] else f"not claimed (it is {status})"
    else:
        words = "open again" if status == "open" else status
    yield Line(f"{done['issue']} {words}", "bold")


def _history(found: Mapping[str, Any]) -> Rows:
    for event in found["history"]:
        why = f": {event['why']}" if event["why"] else ""
        yield f"{local_time(event['at'])}  {event['act']} by {event['actor']}{why}"


def _imported(done: ImportedIssues) -> Rows:
    parts = [(len(getattr(done, name)), words) for name, words in _IMPORTED]
    yield Line(f"Read {counted(sum(count for count, _ in parts), 'issue')}", "bold")
    yield Line(joined([f"{count:,} {words}" for count, words in parts if count]) or "nothing imported", "dim", 1)


@click.group(cls=Group)
def ledger() -> None:
    """Review what consolidation did or proposes."""


@command(ledger, "list")
@options.choice("--agent", of=AGENTS, help="Only issues of this agent.")
@options.choice("--status", of=ISSUE_STATUSES, default="open", help="Only this status.")
@options.choice("--urgency", of=URGENCIES, help="Only this urgency.")
@click.option("--all", "is_any", is_flag=True, help="Any status.")
def list_(invocation: Invocation, /, agent: str | None, status: str, urgency: str | None, is_any: bool) -> None:
    """List issues, oldest first.

    Example: commonplace ledger list --agent merge --all
    """
    with opened(invocation) as engine:
        found = engine.ledger.query(agent, None if is_any else status, urgency)
        emit(invocation, found, lambda issues: _issues(issues, engine), value={"issues": found})


@command(ledger)
@_issue
def show(invocation: Invocation, /, issue: str) -> None:
    """Show an issue with all its notes.

    Example: commonplace ledger show commonplace-1a2b3c4d
    """
    with opened(invocation) as engine:
        found = engine.ledger.show(issue)
        events: list[dict[str, str]] = []
        with suppress(UsageError):  # beads keeps the history of its issues itself
            events = _events(engine.ledger.history(issue))
        emit(invocation, found, lambda one: _whole(one, memory_texts(engine, one["memory_ids"]), events))


@ask(ledger, _history)
@_issue
def history(engine: Engine, /, issue: str) -> dict[str, Any]:
    """Show who did what on an issue, when and why.

    Example: commonplace ledger history commonplace-1a2b3c4d
    """
    return {"issue": issue, "history": _events(engine.ledger.history(issue))}


@ask(ledger, _changed, fails=lambda done: not done["claimed"])
@_issue
def claim(engine: Engine, /, issue: str) -> dict[str, Any]:
    """Claim an open issue to work on.

    The exit code is 1 if others work on it, or it is blocked or closed.

    Example: commonplace ledger claim commonplace-1a2b3c4d
    """
    return {"issue": issue, "claimed": engine.ledger.claim(issue), "status": engine.ledger.get(issue).status}


@ask(ledger, _changed)
@_issue
@click.option("--reason", required=True, metavar="TEXT", help="What became of it.")
def close(engine: Engine, /, issue: str, reason: str) -> dict[str, Any]:
    """Close an issue that is done or not wanted.

    Example: commonplace ledger close commonplace-1a2b3c4d --reason "not a duplicate"
    """
    engine.ledger.close(issue, reason)
    return {"issue": issue, "status": "closed"}


@ask(ledger, _changed)
@_issue
@click.option("--error", required=True, metavar="TEXT", help="What went wrong; added to the notes.")
def block(engine: Engine, /, issue: str, error: str) -> dict[str, Any]:
    """Block an issue that failed.

    It is retried after 1, 5 and 25 minutes, and then waits for a person.

    Example: commonplace ledger block commonplace-1a2b3c4d --error "the vault is read-only"
    """
    engine.ledger.block(issue, error)
    return {"issue": issue, "status": "blocked"}


@ask(ledger, _changed)
@_issue
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
def reopen(engine: Engine, /, issue: str, why: str) -> dict[str, Any]:
    """Reopen a blocked or closed issue.

    Example: commonplace ledger reopen commonplace-1a2b3c4d
    """
    engine.ledger.reopen(issue, why)
    return {"issue": issue, "status": "open"}


@ask(ledger, lambda done: [Line(f"Wrote {counted(done['issues'], 'issue')} to {done['path']}", "bold")])
@click.argument("file", type=options.NEW_FILE)
def export(engine: Engine, /, file: Path) -> dict[str, Any]:
    """Write all issues to FILE in the format of beads.

    Example: commonplace ledger export issues.jsonl
    """
    return {"path": str(file), "issues": engine.ledger.export(file)}


@ask(ledger, _imported, "import")
@click.argument("file", type=options.FILE)
def import_(engine: Engine, /, file: Path) -> ImportedIssues:
    """Import the issues of a beads FILE, all or none.

    Of two issues with the same id, the one changed last is kept.

    Example: commonplace ledger import issues.jsonl
    """
    return engine.ledger.import_(file)
