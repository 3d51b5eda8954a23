"""What happens to issues by the passing of time: claims lapse, blocked ones are tried again, old ones grow urgent."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commonplace.ledger import filing, notes
from commonplace.types.ledger import URGENCIES, Issue, IssueSelection

if TYPE_CHECKING:
    from commonplace.ledger.filing import Doer
    from commonplace.store.ledger_contract import LedgerChange

LEASE_S: Final = 15 * 60.0
"""How long a claim holds where nobody can tell whether its process still runs."""

ESCALATED_AFTER_S: Final = 7 * 86400.0

_PROCESS: Final = re.compile(r".*@(?P<host>[^@]+):(?P<pid>[0-9]{1,10})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tended:
    """The ids of the issues whose claims were released, that were opened again, and that grew more urgent."""

    released: tuple[str, ...] = ()
    reopened: tuple[str, ...] = ()
    escalated: tuple[str, ...] = ()


def tend(ledger: LedgerChange, doer: Doer, *, is_gone: Callable[[str], bool]) -> Tended:
    """Do what is due: release claims, open blocked issues again, raise the urgency of old ones.

    Args:
        is_gone: tells whether the process of a claim's actor is known not to run any more.
    """
    held = ledger.issues(IssueSelection(statuses=("in_progress",)))
    released = [issue.id for issue in held if release(ledger, issue, doer, is_gone=is_gone)]
    blocked = ledger.issues(IssueSelection(statuses=("blocked",)))
    reopened = [issue.id for issue in blocked if _retry(ledger, issue, doer)]
    waiting = ledger.issues(IssueSelection(statuses=("open",)))
    escalated = [issue.id for issue in waiting if _escalate(ledger, issue, doer)]
    return Tended(tuple(released), tuple(reopened), tuple(escalated))


def release(ledger: LedgerChange, issue: Issue, doer: Doer, *, is_gone: Callable[[str], bool]) -> bool:
    """Open an issue again whose claim has lapsed; return whether it has.

    What comes from elsewhere in progress, without a claim of ours, is somebody's work and left alone.
    """
    if issue.status != "in_progress" or issue.claimed_at is None:
        return False
    if is_gone(issue.claimed_by):
        why = f"the process of {issue.claimed_by} is gone"
    elif doer.now - issue.claimed_at > LEASE_S:
        why = f"{issue.claimed_by} held it for more than {LEASE_S / 60:.0f} minutes"
    else:
        return False
    ledger.put_issue(replace(issue, status="open", updated_at=doer.now, claimed_by="", claimed_at=None))
    filing.tell(ledger, issue.id, doer, "released", notes.line_of(why))
    return True


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


def _retry(ledger: LedgerChange, issue: Issue, doer: Doer) -> bool:
    if issue.retry_at is None or issue.retry_at > doer.now:
        return False
    retries = issue.retries + 1
    ledger.put_issue(replace(issue, status="open", updated_at=doer.now, retries=retries, retry_at=None))
    filing.tell(ledger, issue.id, doer, "reopened", f"retry {retries} of {len(filing.RETRY_AFTER_S)}")
    return True


def _escalate(ledger: LedgerChange, issue: Issue, doer: Doer) -> bool:
    since = issue.created_at if issue.escalated_at is None else issue.escalated_at
    place = URGENCIES.index(filing.urgency_of(issue))
    if not issue.agent or place == 0 or doer.now - since <= ESCALATED_AFTER_S:
        return False
    raised = filing.with_urgency(issue, URGENCIES[place - 1])
    ledger.put_issue(replace(raised, updated_at=doer.now, escalated_at=doer.now))
    why = f"from {URGENCIES[place]} to {URGENCIES[place - 1]}: open for more than {ESCALATED_AFTER_S / 86400:.0f} days"
    filing.tell(ledger, issue.id, doer, "escalated", why)
    return True
