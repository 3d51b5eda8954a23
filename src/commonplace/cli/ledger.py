"""The command group `ledger`: list and settle the changes that consolidation made or proposes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.cli import options
from commonplace.cli.app import Group, ask
from commonplace.cli.rows import Answer, Body, Line, Row, Rows, counted, counts_text, listed, local_time, memory_texts
from commonplace.dates.time import iso
from commonplace.errors import UsageError
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, URGENCIES, IssueEvent

if TYPE_CHECKING:
    from commonplace.engine import Engine
    from commonplace.engine.review import RuleLink
_MAX_MEMORIES: Final = 3
"""Maximum number of memories whose texts are shown below an issue in a list."""
_issue = click.argument("issue")


def _events(events: Sequence[IssueEvent]) -> list[dict[str, str]]:
    return [{"at": iso(event.at), "actor": event.actor, "act": event.act, "why": event.why} for event in events]


def _head(issue: Mapping[str, Any]) -> Row:
    details = (issue["title"], issue["agent"], issue["urgency"], issue["status"], local_time(issue["created_at"]))
    return Row(issue["id"], details)


def _changed(issue: str, status: str, text: str = "", **more: Any) -> Answer:
    return {"issue": issue, **more, "status": status}, Line(f"{issue} {text or status}", "bold")


@click.group(cls=Group)
def ledger() -> None:
    """List, claim and close the issues of consolidation."""


@ask(ledger, name="list")
@options.choice("--agent", of=AGENTS, help="Only issues of this agent.")
@options.choice("--status", of=ISSUE_STATUSES, default="open", help="Only this status.")
@options.choice("--urgency", of=URGENCIES, help="Only this urgency.")
@click.option("--all", "is_any", is_flag=True, help="Any status.")
def list_(engine: Engine, /, agent: str | None, status: str, urgency: str | None, is_any: bool) -> Answer:
    """List issues, oldest first.

    Example: commonplace ledger list --agent merge --all
    """
    issues = engine.ledger.query(agent, None if is_any else status, urgency)
    texts = memory_texts(engine, {id_ for issue in issues for id_ in issue["memory_ids"]})

    def rows(issue: Mapping[str, Any]) -> Rows:
        yield _head(issue)
        ids = issue["memory_ids"]
        yield from (Body(texts.get(id_, id_)) for id_ in ids[:_MAX_MEMORIES])
        if len(ids) > _MAX_MEMORIES:
            yield Line(f"… {len(ids) - _MAX_MEMORIES:,} more", "dim", 1)

    return {"issues": issues}, listed(issues, rows, "", "bold", none="No issues match.")


@ask(ledger, _issue)
def show(engine: Engine, /, issue: str) -> Answer:
    """Show an issue with all its notes.

    Example: commonplace ledger show commonplace-1a2b3c4d
    """
    record = engine.ledger.show(issue)
    events: list[dict[str, str]] = []
    with suppress(UsageError):  # with beads as the ledger there is no history here
        events = _events(engine.ledger.history(issue))
    texts = memory_texts(engine, record["memory_ids"])

    def rows() -> Rows:
        yield _head(record)
        yield Line(record["description"], "", 1)
        for id_ in record["memory_ids"]:
            yield from (Line(f"memory {id_}", "", 1), Body(texts.get(id_, "")))
        for name, value in record["notes"].items():
            if name not in ("memory_ids", "agent"):
                shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                yield Line(f"{name}: {shown}", "", 1)
        yield from (Line(entry, "dim", 1) for entry in record["log"])
        if record["claimed_by"]:
            yield Line(f"claimed by {record['claimed_by']} at {local_time(record['claimed_at'])}", "dim", 1)
        if record["close_reason"]:
            yield Line(f"closed: {record['close_reason']}", "dim", 1)
        acts = [event for event in events if event["act"] in ("applied", "undone")]
        if acts and acts[-1]["act"] == "undone":
            yield Line(f"undone at {local_time(acts[-1]['at'])} by {acts[-1]['actor']}", "yellow", 1)

    return record, rows()


@ask(ledger, _issue)
def history(engine: Engine, /, issue: str) -> Answer:
    """Show who did what on an issue, when and why.

    Example: commonplace ledger history commonplace-1a2b3c4d
    """
    events = _events(engine.ledger.history(issue))

    def row(event: Mapping[str, str]) -> str:
        reason = f": {event['why']}" if event["why"] else ""
        return f"{local_time(event['at'])}  {event['act']} by {event['actor']}{reason}"

    return {"issue": issue, "history": events}, listed(events, row)


@ask(ledger, options.limit())
def links(engine: Engine, /, limit: int) -> Answer:
    """List links that the rule of search made, latest first.

    Each says that one memory is newer than another; `commonplace memory link NEWER OLDER --type "holds beside"` undoes
    one.

    Example: commonplace ledger links -n 5
    """
    found = engine.rule_links(limit)
    texts = memory_texts(engine, {id_ for link in found for id_ in (link.source, link.target)})
    ends = {"": "in effect", "answer": "ended by an answer", "rule": "ended by a change"}

    def rows(link: RuleLink) -> Rows:
        state = ends[link.ended_by] + (f" {local_time(link.ended_at)}" if link.ended_at else "")
        yield Row(f"{link.source} {link.type} {link.target}", (f"{link.strength:.2f}", local_time(link.at), state))
        yield from (Body(texts.get(id_, id_)) for id_ in (link.source, link.target))
        yield Line(link.why, "dim", 1)

    return {"links": found}, listed(found, rows, none="The rule has made no links.")


@ask(ledger, _issue, fails=lambda answer: not answer["claimed"])
def claim(engine: Engine, /, issue: str) -> Answer:
    """Claim an open issue to work on.

    The exit code is 1 if others work on it, or it is blocked or closed.

    Example: commonplace ledger claim commonplace-1a2b3c4d
    """
    is_claimed, status = engine.ledger.claim(issue), engine.ledger.get(issue).status
    words = "claimed" if is_claimed else f"not claimed (it is {status})"
    return _changed(issue, status, words, claimed=is_claimed)


@ask(ledger, _issue)
@click.option("--reason", required=True, metavar="TEXT", help="Why it is closed.")
def close(engine: Engine, /, issue: str, reason: str) -> Answer:
    """Close an issue that is done or not wanted.

    Example: commonplace ledger close commonplace-1a2b3c4d --reason "not a duplicate"
    """
    engine.ledger.close(issue, reason)
    return _changed(issue, "closed")


@ask(ledger, _issue)
@click.option("--error", required=True, metavar="TEXT", help="What went wrong; added to the notes.")
def block(engine: Engine, /, issue: str, error: str) -> Answer:
    """Block an issue that failed.

    It is retried after 1, 5 and 25 minutes, and then waits for a person.

    Example: commonplace ledger block commonplace-1a2b3c4d --error "the vault is read-only"
    """
    engine.ledger.block(issue, error)
    return _changed(issue, "blocked")


@ask(ledger, _issue)
@click.option("--why", default="", metavar="TEXT", help="The reason, for its history.")
def reopen(engine: Engine, /, issue: str, why: str) -> Answer:
    """Reopen a blocked or closed issue.

    Example: commonplace ledger reopen commonplace-1a2b3c4d
    """
    engine.ledger.reopen(issue, why)
    return _changed(issue, "open", "open again")


@ask(ledger, click.argument("file", type=options.FILE))
def export(engine: Engine, /, file: Path) -> Answer:
    """Write all issues to FILE in the format of beads.

    Example: commonplace ledger export issues.jsonl
    """
    number = engine.ledger.export(file)
    message = f"Wrote {counted(number, 'issue')} to {file}"
    if not number:
        message = f"Wrote no issues to {file}: the ledger has none."
    return {"path": str(file), "issues": number}, Line(message, "bold")


@ask(ledger, click.argument("file", type=options.FILE), name="import")
def import_(engine: Engine, /, file: Path) -> Answer:
    """Import the issues of a beads FILE, all or none.

    Of two issues with the same id, the one changed last is kept.

    Example: commonplace ledger import issues.jsonl
    """
    report = engine.ledger.import_(file)
    labels = {"added": "added", "replaced": "replaced", "unchanged": "unchanged", "same": "same as an open one"}
    counts = {label: len(getattr(report, name)) for name, label in labels.items()}
    if not any(counts.values()):
        return report, Line(f"There are no issues in {file}.", "bold")
    read = Line(f"Read {counted(sum(counts.values()), 'issue')}", "bold")
    return report, [read, Line(counts_text(counts), "dim", 1)]
