"""Rules of issues inside a transaction: file, claim, close, block, reopen, import.

Each function takes the ledger of its caller's transaction, so that a change to memories and its record in the ledger
are atomic. Functions that take an id raise a `NotFoundError` if there is no such issue; all raise a `UsageError` for an
invalid value, or for an act that the issue's status does not allow.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.beads import AGENT_LABEL, split_notes
from commonplace.redaction import cleaned_json, redact
from commonplace.store.ledger import LedgerChange, LedgerReading
from commonplace.types.ledger import AGENTS, UNFINISHED, URGENCIES, Issue, IssueEvent, Urgency

GOLDEN: Final = "golden"
"""Type of the ledger issues that store a person's judgements of search hits."""
_MAX_LINE_LENGTH: Final = 2000


def new_notes(agent: str, memory_ids: tuple[str, ...], action: str, extra: Mapping[str, Any] | None) -> str:
    """Return the notes of a new issue; secrets in `extra` are replaced by placeholders."""
    extra_values, own_values = dict(extra or {}), {"memory_ids": list(memory_ids), "agent": agent, "action": action}
    reserved = [name for name in own_values if name in extra_values]
    if reserved:
        raise UsageError(
            f"extra_data has {reserved[0]!r}, which the ledger writes itself",
            remedy="give it another name",
            parameters=("extra_data",),
        )
    try:
        plain = json.loads(json.dumps(extra_values, allow_nan=False))
        return json.dumps({**own_values, **without_secrets(plain)}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"extra_data cannot be written as JSON: {error}",
            remedy="give texts, numbers, lists and objects",
            parameters=("extra_data",),
        ) from error


def log(notes: str) -> list[str]:
    """Return the lines that were appended to notes."""
    return [line for line in split_notes(notes)[1].splitlines() if line.strip()]


def appended(notes: str, text: str, at: float) -> str:
    """Return notes with one more line; the JSON in front of the lines is unchanged."""
    return f"{notes.rstrip()}\n{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ} {line_of(text)}"


def line_of(text: str) -> str:
    """Return a text as one line without secrets, truncated if very long."""
    line = redact(" ".join(text.split())).text
    return line if len(line) <= _MAX_LINE_LENGTH else f"{line[: _MAX_LINE_LENGTH - 1]}…"


def without_secrets(value: Any) -> Any:
    """Return a JSON value with placeholders for secrets."""
    return cleaned_json(value, lambda text: redact(text).text)


PRIORITIES: Final[Mapping[str, int]] = {"high": 1, "medium": 2, "low": 3}
LEASE_S: Final = 15 * 60.0
"""Time after which a claim lapses if its process is not known to be gone."""

RETRY_AFTER_S: Final = (60.0, 300.0, 1500.0)
"""Time after which a blocked issue is reopened: the first, second and third time."""

_VERBS: Final[Mapping[str, str]] = {"gc": "Archive", "relate": "Relate", "link": "Link"}
URGENCY_LABEL: Final = "urgency:"


@dataclass(frozen=True, slots=True)
class Doer:
    """Who acts in the ledger, and when.

    Attributes:
        actor: an agent with its machine and process, `agent@host:pid`, or a person's name.
        now: seconds since the epoch.
    """

    actor: str
    now: float


def file(ledger: LedgerChange, issue: Issue, doer: Doer, reason: str = "") -> str:
    """File a new issue and return its id, or that of the agent's unfinished issue about the same memories."""
    if (existing := ledger.unfinished(issue.agent, issue.memory_ids)) is not None:
        return existing.id
    id_ = new_id(ledger)
    ledger.put_issue(replace(issue, id=id_, created_at=doer.now, updated_at=doer.now))
    record_act(ledger, id_, doer, "created", reason)
    return id_


def new_issue(
    agent: str,
    memory_ids: Sequence[str],
    action: str,
    urgency: str = "medium",
    extra: Mapping[str, Any] | None = None,
) -> Issue:
    """Return a new issue that is not filed yet, without an id and times.

    Args:
        action: one word.
        extra: further JSON values for the notes.
    """
    agent, urgency = one_of("agent", agent, AGENTS), one_of("urgency", urgency, URGENCIES)
    if isinstance(memory_ids, str) or not all(isinstance(id_, str) and id_ for id_ in memory_ids):
        raise UsageError(f"memory_ids is {memory_ids!r:.80}", remedy="give a list of ids", parameters=("memory_ids",))
    ids = tuple(sorted(set(memory_ids)))
    if not ids:
        raise UsageError("an issue without memory_ids", remedy="name at least one", parameters=("memory_ids",))
    if not isinstance(action, str) or not action.strip():
        raise UsageError(f"the action is {action!r:.80}", remedy="give one word", parameters=("action",))
    word = line_of(action)
    return Issue(
        id="",
        title=title_of(word, len(ids)),
        agent=agent,
        memory_ids=ids,
        notes=new_notes(agent, ids, word, extra),
        priority=PRIORITIES[urgency],
        labels=tuple(sorted((f"{AGENT_LABEL}{agent}", f"{URGENCY_LABEL}{urgency}"))),
    )


def new_id(ledger: LedgerReading) -> str:
    """Return an unused issue id."""
    while ledger.issue(id_ := f"commonplace-{os.urandom(4).hex()}") is not None:
        pass
    return id_


def title_of(action: str, count: int) -> str:
    """Return a title for people, without any of a memory's content."""
    verb = _VERBS.get(action) or (action.capitalize() if action.isalpha() and len(action) <= 20 else "Look at")
    return f"{verb} {count} {'memory' if count == 1 else 'memories'}"


def claim(ledger: LedgerChange, id_: str, doer: Doer) -> bool:
    """Claim an open issue; return False if others have claimed it, or it is blocked or closed."""
    issue = get_issue(ledger, id_)
    if issue.status != "open":
        return False
    _put(ledger, issue, doer, "claimed", status="in_progress", claimed_by=doer.actor, claimed_at=doer.now)
    return True


def close(ledger: LedgerChange, id_: str, reason: str, doer: Doer) -> None:
    issue, line = get_issue(ledger, id_), required_line("reason", reason)
    if issue.status == "closed":
        raise UsageError(
            f"issue {id_!r:.80} is closed already: {issue.close_reason}", remedy="open it again, or leave it"
        )
    _put(ledger, issue, doer, "closed", line, status="closed", closed_at=doer.now, close_reason=line, retry_at=None)


def block(ledger: LedgerChange, id_: str, error: str, doer: Doer) -> None:
    """Block an issue and append the error to its notes; it is due to be reopened up to three times, ever later."""
    issue, line = get_issue(ledger, id_), required_line("error", error)
    if issue.status == "closed":
        raise UsageError(f"issue {id_!r:.80} is closed", remedy="open it again first")
    due_at = doer.now + RETRY_AFTER_S[issue.retries] if issue.retries < len(RETRY_AFTER_S) else None
    notes = appended(issue.notes, f"blocked: {line}", doer.now)
    _put(ledger, issue, doer, "blocked", line, status="blocked", notes=notes, retry_at=due_at)


def reopen(ledger: LedgerChange, id_: str, doer: Doer, reason: str = "") -> None:
    """Reopen a blocked or closed issue, with its retries reset."""
    issue = get_issue(ledger, id_)
    if issue.status in ("open", "in_progress"):
        raise UsageError(f"issue {id_!r:.80} is {issue.status}", remedy="only blocked and closed ones open again")
    reversal = ledger.reversal(id_)
    if reversal is not None and reversal.undone_at is None:
        raise UsageError(
            f"the change of issue {id_!r:.80} is still applied", remedy=f"undo it first: consolidate undo {id_}"
        )
    other = ledger.unfinished(issue.agent, issue.memory_ids) if issue.agent else None
    if other is not None and other.id != id_:
        raise UsageError(f"issue {other.id} is about the same memories", remedy="work on that one")
    changes = {"closed_at": None, "close_reason": "", "retries": 0, "retry_at": None}
    _put(ledger, issue, doer, "reopened", line_of(reason), status="open", **changes)


def get_issue(ledger: LedgerReading, id_: str) -> Issue:
    issue = ledger.issue(id_)
    if issue is None:
        raise NotFoundError(
            f"there is no issue {id_!r:.80} in this namespace", remedy="see `commonplace ledger list --all`"
        )
    return issue


def not_open(issue: Issue) -> NotFoundError:
    """Return the error for an attempt to claim an issue that is not open; it says why, and what to do."""
    reason = {
        "in_progress": f"{issue.claimed_by or 'somebody'} works on it",
        "blocked": f"it is blocked: {(log(issue.notes) or ['no reason given'])[-1]:.200}",
        "closed": f"it is closed: {issue.close_reason or 'no reason given':.200}",
    }.get(issue.status, f"it is {issue.status} by now")
    remedy = f"`commonplace ledger reopen {issue.id}` opens what is blocked, or closed and undone"
    if issue.status == "in_progress":
        does_lapse = f"lapses with its process or after {LEASE_S / 60:.0f} minutes"
        remedy = (
            f"leave it to them; a claim {does_lapse if issue.claimed_at is not None else 'of beads does not lapse'}"
        )
    return NotFoundError(f"issue {issue.id} is not open: {reason}", remedy=remedy)


def record_act(ledger: LedgerChange, id_: str, doer: Doer, act: str, reason: str = "") -> None:
    ledger.add_event(IssueEvent(id_, doer.now, doer.actor, act, reason))


def urgency_of(issue: Issue) -> Urgency:
    """Return the urgency of an issue: that of its label, else that of its priority."""
    for urgency in URGENCIES:
        if f"{URGENCY_LABEL}{urgency}" in issue.labels:
            return urgency
    return "high" if issue.priority <= 1 else "medium" if issue.priority == 2 else "low"


def one_of(name: str, value: str, choices: Sequence[str]) -> Any:
    """Return `value`; raise a `UsageError` unless it is one of the choices."""
    if value not in choices:
        raise UsageError(f"the {name} is {value!r:.80}", remedy=f"give one of {', '.join(choices)}", parameters=(name,))
    return value


def required_line(name: str, text: str) -> str:
    """Return a text as one line; raise a `UsageError` if it is empty or not a text."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"the {name} is {text!r:.80}", remedy="say it in a few words", parameters=(name,))
    return line_of(text)


def _put(ledger: LedgerChange, issue: Issue, doer: Doer, act: str, reason: str = "", **changes: Any) -> None:
    values = {"claimed_by": "", "claimed_at": None, **changes}
    ledger.put_issue(replace(issue, updated_at=doer.now, **values))
    record_act(ledger, issue.id, doer, act, reason)


@dataclass(frozen=True, slots=True)
class ImportedIssues:
    """The ids of imported issues by outcome.

    Attributes:
        replaced: stored issues whose imported version was changed later.
        unchanged: stored issues that are not older than the imported version, or whose change is still applied.
        same: issues left out because the same agent has an unfinished issue about the same memories.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def import_issues(ledger: LedgerChange, issues: Iterable[Issue], doer: Doer, reason: str = "") -> ImportedIssues:
    """Import issues; of two with the same id, the one changed last stays.

    An issue whose change is still applied here stays unchanged: otherwise the change could be applied twice.
    """
    outcomes: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "same": []}
    for issue in issues:
        stored, reversal, same = ledger.issue(issue.id), ledger.reversal(issue.id), None
        if issue.agent and issue.memory_ids and issue.status in UNFINISHED:
            same = ledger.unfinished(issue.agent, issue.memory_ids)
        if stored is not None and (issue.updated_at <= stored.updated_at or (reversal and reversal.undone_at is None)):
            outcomes["unchanged"].append(issue.id)
        elif same is not None and same.id != issue.id:
            outcomes["same"].append(issue.id)
        else:
            outcomes["added" if stored is None else "replaced"].append(issue.id)
            ledger.put_issue(issue)
            record_act(ledger, issue.id, doer, "imported", reason)
    return ImportedIssues(**{name: tuple(ids) for name, ids in outcomes.items()})


ERASE: Final = "erase"
"""Step of a reversal that erases the memory that the change created."""


def undone_creations(ledger: LedgerReading, ids: Collection[str]) -> set[str]:
    """Return the ids, among these, of memories that were created by a change that has been undone."""
    return {
        step["id"]
        for reversal in ledger.reversals(memory_ids=sorted(ids))
        if reversal.undone_at is not None
        for step in json.loads(reversal.steps)
        if step["do"] == ERASE and step["id"] in ids
    }
