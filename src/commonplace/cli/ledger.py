"""The command group `ledger`: see and settle what consolidation did or proposes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask
from commonplace.cli.rows import Body, Line, Row, Rows, View, counted, counts_text, local_time, memory_texts
from commonplace.dates.time import iso
from commonplace.errors import UsageError
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, URGENCIES, IssueEvent

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.ledger.rules import ImportedIssues
_MAX_MEMORIES: Final = 3
"""Maximum number of memories whose texts are shown below an issue in a list."""
_issue = click.argument("issue")


def _events(events: Sequence[IssueEvent]) -> list[dict[str, str]]:
    return [{"at": iso(each.at), "actor": each.actor, "act": each.act, "why": each.why} for each in events]


def _head(issue: Mapping[str, Any]) -> Row:
    known = (issue["title"], issue["agent"], issue["urgency"], issue["status"], local_time(issue["created_at"]))
    return Row(issue["id"], known)


def _changed(done: Mapping[str, Any]) -> Rows:
    words = status = done["status"]
    if "claimed" in done:
        words = "claimed" if done["claimed"] else f"not claimed (it is {status})"
    yield Line(f"{done['issue']} {'open again' if words == 'open' else words}", "bold")


@click.group(cls=Group)
def ledger() -> None:
    """Review what consolidation did or proposes."""


@ask(ledger, None, name="list")
@options.choice("--agent", of=AGENTS, help="Only issues of this agent.")
@options.choice("--status", of=ISSUE_STATUSES, default="open", help="Only this status.")
@options.choice("--urgency", of=URGENCIES, help="Only this urgency.")
@click.option("--all", "is_any", is_flag=True, help="Any status.")
def list_(engine: Engine, /, agent: str | None, status: str, urgency: str | None, is_any: bool) -> tuple[Any, View]:
    """List issues, oldest first.

    Example: commonplace ledger list --agent merge --all
    """
    found = engine.ledger.query(agent, None if is_any else status, urgency)
    texts = memory_texts(engine, {id_ for issue in found for id_ in issue["memory_ids"]})

    def rows(_: object) -> Rows:
        for issue in found:
            yield _head(issue)
            ids = issue["memory_ids"]
            yield from (Body(texts.get(id_, id_)) for id_ in ids[:_MAX_MEMORIES])
            if len(ids) > _MAX_MEMORIES:
                yield Line(f"… {len(ids) - _MAX_MEMORIES:,} more", "dim", 1)
        if not found:
            yield Line("No issues match.", "bold")

    return {"issues": found}, rows


@ask(ledger, None, _issue)
def show(engine: Engine, /, issue: str) -> tuple[Any, View]:
    """Show an issue with all its notes.

    Example: commonplace ledger show commonplace-1a2b3c4d
    """
    found = engine.ledger.show(issue)
    events: list[dict[str, str]] = []
    with suppress(UsageError):  # beads keeps the history of its issues itself
        events = _events(engine.ledger.history(issue))
    texts = memory_texts(engine, found["memory_ids"])

    def rows(issue: Mapping[str, Any]) -> Rows:
        yield _head(issue)
        yield Line(issue["description"], "", 1)
        for id_ in issue["memory_ids"]:
            yield from (Line(f"memory {id_}", "", 1), Body(texts.get(id_, "")))
        for name, value in issue["notes"].items():
            if name not in ("memory_ids", "agent"):
                shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                yield Line(f"{name}: {shown}", "", 1)
        yield from (Line(each, "dim", 1) for each in issue["log"])
        if issue["claimed_by"]:
            yield Line(f"claimed by {issue['claimed_by']} at {local_time(issue['claimed_at'])}", "dim", 1)
        if issue["close_reason"]:
            yield Line(f"closed: {issue['close_reason']}", "dim", 1)
        acts = [event for event in events if event["act"] in ("applied", "undone")]
        if acts and acts[-1]["act"] == "undone":
            yield Line(f"undone at {local_time(acts[-1]['at'])} by {acts[-1]['actor']}", "yellow", 1)

    return found, rows


def _history(found: Mapping[str, Any]) -> Rows:
    for event in found["history"]:
        why = f": {event['why']}" if event["why"] else ""
        yield f"{local_time(event['at'])}  {event['act']} by {event['actor']}{why}"


@ask(ledger, _history, _issue)
def history(engine: Engine, /, issue: str) -> dict[str, Any]:
    """Show who did what on an issue, when and why.

    Example: commonplace ledger history commonplace-1a2b3c4d
    """
    return {"issue": issue, "history": _events(engine.ledger.history(issue))}


@ask(ledger, _changed, _issue, fails=lambda done: not done["claimed"])
def claim(engine: Engine, /, issue: str) -> dict[str, Any]:
    """Claim an open issue to work on.

    The exit code is 1 if others work on it, or it is blocked or closed.

    Example: commonplace ledger claim commonplace-1a2b3c4d
    """
    return {"issue": issue, "claimed": engine.ledger.claim(issue), "status": engine.ledger.get(issue).status}


@ask(ledger, _changed, _issue)
@click.option("--reason", required=True, metavar="TEXT", help="Why it is closed.")
def close(engine: Engine, /, issue: str, reason: str) -> dict[str, Any]:
    """Close an issue that is done or not wanted.

    Example: commonplace ledger close commonplace-1a2b3c4d --reason "not a duplicate"
    """
    engine.ledger.close(issue, reason)
    return {"issue": issue, "status": "closed"}


@ask(ledger, _changed, _issue)
@click.option("--error", required=True, metavar="TEXT", help="What went wrong; added to the notes.")
def block(engine: Engine, /, issue: str, error: str) -> dict[str, Any]:
    """Block an issue that failed.

    It is retried after 1, 5 and 25 minutes, and then waits for a person.

    Example: commonplace ledger block commonplace-1a2b3c4d --error "the vault is read-only"
    """
    engine.ledger.block(issue, error)
    return {"issue": issue, "status": "blocked"}


@ask(ledger, _changed, _issue)
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
def reopen(engine: Engine, /, issue: str, why: str) -> dict[str, Any]:
    """Reopen a blocked or closed issue.

    Example: commonplace ledger reopen commonplace-1a2b3c4d
    """
    engine.ledger.reopen(issue, why)
    return {"issue": issue, "status": "open"}


def _exported(done: Mapping[str, Any]) -> Line:
    return Line(f"Wrote {counted(done['issues'], 'issue')} to {done['path']}" if done["issues"] else "", "bold")


@ask(ledger, _exported, click.argument("file", type=options.NEW_FILE))
def export(engine: Engine, /, file: Path) -> dict[str, Any]:
    """Write all issues to FILE in the format of beads.

    Example: commonplace ledger export issues.jsonl
    """
    return {"path": str(file), "issues": engine.ledger.export(file)}


def _imported(done: ImportedIssues) -> Rows:
    sorts = {"added": "added", "replaced": "replaced", "unchanged": "unchanged", "same": "same as an open one"}
    counts = {words: len(getattr(done, name)) for name, words in sorts.items()}
    if any(counts.values()):
        yield Line(f"Read {counted(sum(counts.values()), 'issue')}", "bold")
        yield Line(counts_text(counts), "dim", 1)


@ask(ledger, _imported, click.argument("file", type=options.FILE), name="import")
def import_(engine: Engine, /, file: Path) -> ImportedIssues:
    """Import the issues of a beads FILE, all or none.

    Of two issues with the same id, the one changed last is kept.

    Example: commonplace ledger import issues.jsonl
    """
    return engine.ledger.import_(file)
