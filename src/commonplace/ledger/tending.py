"""What happens to issues by the passing of time: claims lapse, blocked ones are tried again, old ones grow urgent."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from commonplace.ledger import filing, notes
from commonplace.ledger.filing import Doer
from commonplace.types.ledger import UNFINISHED, URGENCIES, Issue, IssueSelection

if TYPE_CHECKING:
    from commonplace.ledger.window import Pace
    from commonplace.store.ledger_contract import LedgerChange
    from commonplace.store.memory_contract import MemoryChange

ESCALATED_AFTER_S: Final = 7 * 86400.0

AT_ONCE: Final = 1000
"""So many issues are changed in one transaction: whoever wants to write waits for it a fraction of a second."""

_PROCESS: Final = re.compile(r".*@(?P<host>[^@]+):(?P<pid>[0-9]{1,10})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tended:
    """The ids of the issues whose claims were released, that were opened again, and that grew more urgent."""

    released: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    escalated: tuple[str, ...] = ()


def tend(pace: Pace, actor: str, *, is_gone: Callable[[str], bool]) -> Tended:
    """Do what is due: release claims, open blocked issues again, raise the urgency of old ones.

    Issues are looked for without a transaction and changed in parts, each one transaction and one operation of the rate
    limit: however many are due, others come to write in between, and what is interrupted goes on the next time.

    Args:
        is_gone: tells whether the process of a claim's actor is known not to run any more.
    """
    now = pace.now()
    waiting = pace.store.ledger(pace.namespace).issues(IssueSelection(statuses=UNFINISHED))
    due = [issue.id for issue in waiting if _is_due(issue, now, is_gone)]
    parts: list[Tended] = []

    def some(ids: tuple[str, ...], change: MemoryChange) -> Callable[[], None]:
        return lambda: parts.append(_tend(change.ledger, ids, Doer(actor, pace.now()), is_gone))

    for begin in range(0, len(due), AT_ONCE):
        pace.write(partial(some, tuple(due[begin : begin + AT_ONCE])))
    return Tended(
        released=tuple(id_ for part in parts for id_ in part.released),
        reopened=tuple(id_ for part in parts for id_ in part.reopened),
        escalated=tuple(id_ for part in parts for id_ in part.escalated),
    )


def _tend(ledger: LedgerChange, ids: tuple[str, ...], doer: Doer, is_gone: Callable[[str], bool]) -> Tended:
    """Do what is due with some issues, as they are by now."""
    released, reopened, escalated = [], [], []
    for issue in ledger.issues(IssueSelection(ids=ids)):
        if release(ledger, issue, doer, is_gone=is_gone):
            released.append(issue.id)
        if _retry(ledger, issue, doer):
            reopened.append(issue.id)
        if _escalate(ledger, filing.known(ledger, issue.id), doer):
            escalated.append(issue.id)
    return Tended(tuple(released), tuple(reopened), tuple(escalated))


def _is_due(issue: Issue, now: float, is_gone: Callable[[str], bool]) -> bool:
    return bool(_why_lapsed(issue, now, is_gone)) or _is_to_be_retried(issue, now) or _is_old(issue, now)


def release(ledger: LedgerChange, issue: Issue, doer: Doer, *, is_gone: Callable[[str], bool]) -> bool:
    """Open an issue again whose claim has lapsed; return whether it has.

    What comes from elsewhere in progress, without a claim of ours, is somebody's work and left alone.
    """
    why = _why_lapsed(issue, doer.now, is_gone)
    if not why:
        return False
    ledger.put_issue(replace(issue, status="open", updated_at=doer.now, claimed_by="", claimed_at=None))
    filing.tell(ledger, issue.id, doer, "released", notes.line_of(why))
    return True


def _why_lapsed(issue: Issue, now: float, is_gone: Callable[[str], bool]) -> str:
    """Return why a claim holds no longer, "" where there is none or it holds."""
    if issue.status != "in_progress" or issue.claimed_at is None:
        return ""
    if is_gone(issue.claimed_by):
        return f"the process of {issue.claimed_by} is gone"
    is_over = now - issue.claimed_at > filing.LEASE_S
    return f"{issue.claimed_by} held it for more than {filing.LEASE_S / 60:.0f} minutes" if is_over else ""


def process_is_gone(actor: str) -> bool:
    """Return whether an actor is a process of this machine that does not run any more."""
    found = _PROCESS.fullmatch(actor)
    if found is None or found["host"] != socket.gethostname() or os.name == "nt":
        return False  # on Windows, to ask whether a process runs is to end it
    try:
        os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it runs, and is another user's
    return False


def actor_of(agent: str) -> str:
    """Return an agent as an actor: with this machine and process."""
    return f"{agent}@{socket.gethostname()}:{os.getpid()}"


def _is_to_be_retried(issue: Issue, now: float) -> bool:
    return issue.status == "blocked" and issue.retry_at is not None and issue.retry_at <= now


def _retry(ledger: LedgerChange, issue: Issue, doer: Doer) -> bool:
    if not _is_to_be_retried(issue, doer.now):
        return False
    retries = issue.retries + 1
    ledger.put_issue(replace(issue, status="open", updated_at=doer.now, retries=retries, retry_at=None))
    filing.tell(ledger, issue.id, doer, "reopened", f"retry {retries} of {len(filing.RETRY_AFTER_S)}")
    return True


def _is_old(issue: Issue, now: float) -> bool:
    """Tell whether the urgency of an issue of ours is to be raised."""
    if issue.status != "open" or not issue.agent or filing.urgency_of(issue) == URGENCIES[0]:
        return False
    since = issue.created_at if issue.escalated_at is None else issue.escalated_at
    return now - since > ESCALATED_AFTER_S


def _escalate(ledger: LedgerChange, issue: Issue, doer: Doer) -> bool:
    if not _is_old(issue, doer.now):
        return False
    place = URGENCIES.index(filing.urgency_of(issue))
    raised = filing.with_urgency(issue, URGENCIES[place - 1])
    ledger.put_issue(replace(raised, updated_at=doer.now, escalated_at=doer.now))
    why = f"from {URGENCIES[place]} to {URGENCIES[place - 1]}: open for more than {ESCALATED_AFTER_S / 86400:.0f} days"
    filing.tell(ledger, issue.id, doer, "escalated", why)
    return True
