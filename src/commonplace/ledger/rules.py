"""Rules of issues inside a transaction: file, claim, close, block, reopen, import.

Each function takes the ledger of its caller's transaction, so that a change to memories and its record in the ledger
are atomic. One that is given an id raises a `NotFoundError` where there is no such issue, and every one a `UsageError`
for a value that is none, or what the status of an issue does not allow.
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
"""The type of the issues of the ledger that hold what a person said of hits."""
_MAX_LINE_LENGTH: Final = 2000


def new_notes(agent: str, memory_ids: tuple[str, ...], action: str, extra: Mapping[str, Any] | None) -> str:
    """Return the notes of a new issue; secrets in what is added are replaced by placeholders."""
    added, ours = dict(extra or {}), {"memory_ids": list(memory_ids), "agent": agent, "action": action}
    taken = [name for name in ours if name in added]
    if taken:
        raise UsageError(
            f"extra_data has {taken[0]!r}, which the ledger writes itself",
            remedy="give it another name",
            parameters=("extra_data",),
        )
    try:
        plain = json.loads(json.dumps(added, allow_nan=False))
        return json.dumps({**ours, **without_secrets(plain)}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"extra_data cannot be written as JSON: {error}",
            remedy="give texts, numbers, lists and objects",
            parameters=("extra_data",),
        ) from error


def log(notes: str) -> list[str]:
    """Return the lines that were appended."""
    return [line for line in split_notes(notes)[1].splitlines() if line.strip()]


def appended(notes: str, text: str, at: float) -> str:
    """Return notes with one more line; the JSON in front of them stays as it is."""
    return f"{notes.rstrip()}\n{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ} {line_of(text)}"


def line_of(text: str) -> str:
    """Return a text as one line without secrets, cut where it is very long."""
    line = redact(" ".join(text.split())).text
    return line if len(line) <= _MAX_LINE_LENGTH else f"{line[: _MAX_LINE_LENGTH - 1]}…"


def without_secrets(value: Any) -> Any:
    """Return what JSON holds, with placeholders for secrets."""
    return cleaned_json(value, lambda text: redact(text).text)


PRIORITIES: Final[Mapping[str, int]] = {"high": 1, "medium": 2, "low": 3}
LEASE_S: Final = 15 * 60.0
"""How long a claim holds where nobody knows whether its process still runs."""

RETRY_AFTER_S: Final = (60.0, 300.0, 1500.0)
"""How long after it was blocked an issue is opened again: the first time, the second, the third."""

_VERBS: Final[Mapping[str, str]] = {"gc": "Archive", "relate": "Relate", "link": "Link"}
URGENCY_LABEL: Final = "urgency:"


@dataclass(frozen=True, slots=True)
class Doer:
    """Who does something in the ledger, and when.

    Attributes:
        actor: an agent with its machine and process, `agent@host:pid`, or a person's name.
        now: seconds since the epoch.
    """

    actor: str
    now: float


def file(ledger: LedgerChange, issue: Issue, doer: Doer, why: str = "") -> str:
    """File a new issue and return its id, or that of an unfinished one of the same agent about the same memories."""
    if (same := ledger.unfinished(issue.agent, issue.memory_ids)) is not None:
        return same.id
    id_ = new_id(ledger)
    ledger.put_issue(replace(issue, id=id_, created_at=doer.now, updated_at=doer.now))
    record_act(ledger, id_, doer, "created", why)
    return id_


def new_issue(
    agent: str,
    memory_ids: Sequence[str],
    action: str,
    urgency: str = "medium",
    extra: Mapping[str, Any] | None = None,
) -> Issue:
    """Return an issue that is not filed yet: it has neither an id nor a time.

    Args:
        action: one word.
        extra: what the notes say besides; JSON.
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
    """Return an id that no issue here has."""
    while ledger.issue(id_ := f"commonplace-{os.urandom(4).hex()}") is not None:
        pass
    return id_


def title_of(action: str, count: int) -> str:
    """Return a title that a person understands; it holds no words of a memory."""
    verb = _VERBS.get(action) or (action.capitalize() if action.isalpha() and len(action) <= 20 else "Look at")
    return f"{verb} {count} {'memory' if count == 1 else 'memories'}"


def claim(ledger: LedgerChange, id_: str, doer: Doer) -> bool:
    """Let one work on an open issue; return False where others do already, or it is blocked or closed."""
    issue = known(ledger, id_)
    if issue.status != "open":
        return False
    _put(ledger, issue, doer, "claimed", status="in_progress", claimed_by=doer.actor, claimed_at=doer.now)
    return True


def close(ledger: LedgerChange, id_: str, reason: str, doer: Doer) -> None:
    issue, why = known(ledger, id_), said("reason", reason)
    if issue.status == "closed":
        raise UsageError(
            f"issue {id_!r:.80} is closed already: {issue.close_reason}", remedy="open it again, or leave it"
        )
    _put(ledger, issue, doer, "closed", why, status="closed", closed_at=doer.now, close_reason=why, retry_at=None)


def block(ledger: LedgerChange, id_: str, error: str, doer: Doer) -> None:
    """Block an issue and append the error to its notes; three times it is opened again later, each time later still."""
    issue, why = known(ledger, id_), said("error", error)
    if issue.status == "closed":
        raise UsageError(f"issue {id_!r:.80} is closed", remedy="open it again first")
    again = doer.now + RETRY_AFTER_S[issue.retries] if issue.retries < len(RETRY_AFTER_S) else None
    notes = appended(issue.notes, f"blocked: {why}", doer.now)
    _put(ledger, issue, doer, "blocked", why, status="blocked", notes=notes, retry_at=again)


def reopen(ledger: LedgerChange, id_: str, doer: Doer, why: str = "") -> None:
    """Open a blocked or closed issue again, with all its retries."""
    issue = known(ledger, id_)
    if issue.status in ("open", "in_progress"):
        raise UsageError(f"issue {id_!r:.80} is {issue.status}", remedy="only blocked and closed ones open again")
    undone_by = ledger.reversal(id_)
    if undone_by is not None and undone_by.undone_at is None:
        raise UsageError(
            f"the change of issue {id_!r:.80} is still applied", remedy=f"undo it first: consolidate undo {id_}"
        )
    same = ledger.unfinished(issue.agent, issue.memory_ids) if issue.agent else None
    if same is not None and same.id != id_:
        raise UsageError(f"issue {same.id} is about the same memories", remedy="work on that one")
    opened = {"closed_at": None, "close_reason": "", "retries": 0, "retry_at": None}
    _put(ledger, issue, doer, "reopened", line_of(why), status="open", **opened)


def known(ledger: LedgerReading, id_: str) -> Issue:
    issue = ledger.issue(id_)
    if issue is None:
        raise NotFoundError(
            f"there is no issue {id_!r:.80} in this namespace", remedy="see `commonplace ledger list --all`"
        )
    return issue


def not_open(issue: Issue) -> NotFoundError:
    """Return the error of whoever wants to work on an issue that is not open: it says why, and what to do."""
    why = {
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
    return NotFoundError(f"issue {issue.id} is not open: {why}", remedy=remedy)


def record_act(ledger: LedgerChange, id_: str, doer: Doer, act: str, why: str = "") -> None:
    ledger.add_event(IssueEvent(id_, doer.now, doer.actor, act, why))


def urgency_of(issue: Issue) -> Urgency:
    """Return how urgent an issue is: by its label, else by its priority."""
    for urgency in URGENCIES:
        if f"{URGENCY_LABEL}{urgency}" in issue.labels:
            return urgency
    return "high" if issue.priority <= 1 else "medium" if issue.priority == 2 else "low"


def one_of(what: str, name: str, choices: Sequence[str]) -> Any:
    """Return what somebody chose, or refuse it where it is none of the choices."""
    if name not in choices:
        raise UsageError(f"the {what} is {name!r:.80}", remedy=f"give one of {', '.join(choices)}", parameters=(what,))
    return name


def said(what: str, text: str) -> str:
    """Return what somebody said as one line, or refuse it where it is nothing."""
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"the {what} is {text!r:.80}", remedy="say it in a few words", parameters=(what,))
    return line_of(text)


def _put(ledger: LedgerChange, issue: Issue, doer: Doer, act: str, why: str = "", **changed: Any) -> None:
    values = {"claimed_by": "", "claimed_at": None, **changed}
    ledger.put_issue(replace(issue, updated_at=doer.now, **values))
    record_act(ledger, issue.id, doer, act, why)


@dataclass(frozen=True, slots=True)
class ImportedIssues:
    """What became of the issues of an import, by their ids.

    Attributes:
        replaced: those that were here, and were changed later elsewhere.
        unchanged: those that were here as they are, or were changed later here.
        same: those that say the same as an unfinished issue here, and were left out.
    """

    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    same: tuple[str, ...] = ()


def import_issues(ledger: LedgerChange, issues: Iterable[Issue], doer: Doer, why: str = "") -> ImportedIssues:
    """Write issues that come from elsewhere; of two with one id the one that was changed last stays.

    A change that is still applied here keeps its issue as it is: otherwise it could be applied twice.
    """
    done: dict[str, list[str]] = {"added": [], "replaced": [], "unchanged": [], "same": []}
    for issue in issues:
        here, undoes, same = ledger.issue(issue.id), ledger.reversal(issue.id), None
        if issue.agent and issue.memory_ids and issue.status in UNFINISHED:
            same = ledger.unfinished(issue.agent, issue.memory_ids)
        if here is not None and (issue.updated_at <= here.updated_at or (undoes and undoes.undone_at is None)):
            done["unchanged"].append(issue.id)
        elif same is not None and same.id != issue.id:
            done["same"].append(issue.id)
        else:
            done["added" if here is None else "replaced"].append(issue.id)
            ledger.put_issue(issue)
            record_act(ledger, issue.id, doer, "imported", why)
    return ImportedIssues(**{name: tuple(ids) for name, ids in done.items()})


ERASE: Final = "erase"
"""The step of a reversal that takes away the memory that its change had made."""


def taken_away(ledger: LedgerReading, ids: Collection[str]) -> set[str]:
    """Return those of some ids whose memory a change had made that was undone."""
    return {
        step["id"]
        for reversal in ledger.reversals(memory_ids=sorted(ids))
        if reversal.undone_at is not None
        for step in json.loads(reversal.steps)
        if step["do"] == ERASE and step["id"] in ids
    }
