"""The ledger of one namespace: file, query, claim, close, block, and maintain."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import asdict, replace
from commonplace.dates.time import iso
from commonplace.errors import NotFoundError, StoreError
from commonplace.formats.beads import read, split_notes, to_line
from commonplace.formats.foreign.reader import read_text
from commonplace.ledger import rules
from commonplace.ledger.rate_limit import RateLimiter
from commonplace.ledger.rules import Doer, ImportedIssues, import_issues, without_secrets
from commonplace.store.ledger import LedgerChange
from commonplace.store.memories import MemoryStore
from commonplace.types.ledger import AGENTS, ISSUE_STATUSES, UNFINISHED, URGENCIES, Issue, IssueEvent, IssueSelection

ESCALATED_AFTER_S: Final = 7 * 86400.0

EVERY: Final = IssueSelection()
AT_ONCE: Final = 1000
"""So many issues are changed in one transaction: whoever wants to write waits for it a fraction of a second."""

_PROCESS: Final = re.compile(r".*@(?P<host>[^@]+):(?P<pid>[0-9]{1,10})", re.DOTALL)


def maintain(pace: RateLimiter, actor: str) -> list[tuple[str, str]]:
    """Release claims that lapsed, open blocked issues again, raise the urgency of old ones; return each act and its id.

    Issues are looked for without a transaction and changed in parts, each one transaction and one operation of the rate
    limit: however many are due, others come to write in between, and what is interrupted goes on the next time.
    """
    now = pace.now()
    waiting = pace.store.ledger(pace.namespace).issues(IssueSelection(statuses=UNFINISHED))
    due = [issue.id for issue in waiting if _due(issue, now)]
    done: list[tuple[str, str]] = []
    for begin in range(0, len(due), AT_ONCE):
        some = tuple(due[begin : begin + AT_ONCE])
        with pace.change() as change:
            done.extend(_maintain(change.ledger, some, Doer(actor, pace.now())))
    return done


def _maintain(ledger: LedgerChange, ids: Sequence[str], doer: Doer) -> Iterator[tuple[str, str]]:
    """Do what is due with some issues, as they are by now, and yield each act."""
    for issue in ledger.issues(IssueSelection(ids=tuple(ids))):
        while due := _due(issue, doer.now):
            act, why, issue = due  # noqa: PLW2901 - one that is released may be old as well
            ledger.put_issue(issue)
            rules.record_act(ledger, issue.id, doer, act, rules.line_of(why))
            yield act, issue.id


def _due(issue: Issue, now: float) -> tuple[str, str, Issue] | None:
    """Return what is due with an issue, why, and how the issue is after it.

    What comes from elsewhere in progress, without a claim of ours, is somebody's work and left alone.
    """
    if issue.status == "in_progress" and issue.claimed_at is not None:
        if process_is_gone(issue.claimed_by):
            why = f"the process of {issue.claimed_by} is gone"
        elif now - issue.claimed_at > rules.LEASE_S:
            why = f"{issue.claimed_by} held it for more than {rules.LEASE_S / 60:.0f} minutes"
        else:
            return None
        return "released", why, replace(issue, status="open", updated_at=now, claimed_by="", claimed_at=None)
    if issue.status == "blocked" and issue.retry_at is not None and issue.retry_at <= now:
        retries = issue.retries + 1
        again = replace(issue, status="open", updated_at=now, retries=retries, retry_at=None)
        return "reopened", f"retry {retries} of {len(rules.RETRY_AFTER_S)}", again
    place = URGENCIES.index(rules.urgency_of(issue))
    since = issue.created_at if issue.escalated_at is None else issue.escalated_at
    if issue.status != "open" or not issue.agent or not place or now - since <= ESCALATED_AFTER_S:
        return None
    urgency = URGENCIES[place - 1]
    others = [label for label in issue.labels if not label.startswith(rules.URGENCY_LABEL)]
    labels = tuple(sorted({*others, f"{rules.URGENCY_LABEL}{urgency}"}))
    priority = rules.PRIORITIES[urgency]
    raised = replace(issue, labels=labels, priority=priority, updated_at=now, escalated_at=now)
    days = f"{ESCALATED_AFTER_S / 86400:.0f} days"
    return "escalated", f"from {URGENCIES[place]} to {urgency}: open for more than {days}", raised


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


class Ledger:
    """The issues of one namespace of a store.

    Every call raises a `NotFoundError` where an issue, a memory or a file is not there, and a `UsageError` for a value
    that is none, or what the status of an issue does not allow.

    Args:
        now: returns seconds since the epoch.
        actor: who does what is done here: an agent with its machine and process, or a person's name.
    """

    def __init__(self, store: MemoryStore, namespace: str, now: Callable[[], float], actor: str) -> None:
        self._store = store
        self._namespace = namespace
        self._now = now
        self._actor = actor

    def create(
        self,
        agent: str,
        memory_ids: Sequence[str],
        action: str,
        urgency: str = "medium",
        extra_data: Mapping[str, Any] | None = None,
    ) -> str:
        """File an issue and return its id, or that of the agent's unfinished issue about the same memories."""
        return self._file(rules.new_issue(agent, memory_ids, action, urgency, extra_data))

    def _file(self, issue: Issue) -> str:
        with self._store.change_memories(self._namespace) as change:
            for id_ in issue.memory_ids:
                if change.find(id_) is None:
                    raise NotFoundError(
                        f"there is no memory {id_!r:.80} in this namespace", remedy="name memories that are there"
                    )
            return rules.file(change.ledger, issue, self._doer)

    def query(
        self, agent: str | None = None, status: str | None = "open", urgency: str | None = None
    ) -> list[dict[str, Any]]:
        """Return issues, oldest first; None restricts nothing."""
        wanted = IssueSelection(
            agents=() if agent is None else (rules.one_of("agent", agent, AGENTS),),
            statuses=() if status is None else (rules.one_of("status", status, ISSUE_STATUSES),),
        )
        level = None if urgency is None else rules.one_of("urgency", urgency, URGENCIES)
        return [as_dict(issue) for issue in self.selected(wanted) if level in (None, rules.urgency_of(issue))]

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of memories named by issues of an agent with one of these statuses."""
        return self._store.ledger(self._namespace).named(agent, statuses)

    def claim(self, id_: str) -> bool:
        """Claim an open issue; False if others work on it, or it is blocked or closed.

        A claim whose process is gone, or that is older than 15 minutes, is no claim any more.
        """
        with self._store.change_memories(self._namespace) as change:
            if rules.known(change.ledger, id_).status == "in_progress":
                list(_maintain(change.ledger, [id_], self._doer))
            return rules.claim(change.ledger, id_, self._doer)

    def close(self, id_: str, reason: str) -> None:
        """Close an issue, with a reason."""
        with self._store.change_memories(self._namespace) as change:
            rules.close(change.ledger, id_, reason, self._doer)

    def block(self, id_: str, error: str) -> None:
        """Block an issue with an error, which is added to the notes; it is retried three times."""
        with self._store.change_memories(self._namespace) as change:
            rules.block(change.ledger, id_, error, self._doer)

    def reopen(self, id_: str, why: str = "") -> None:
        """Reopen a blocked or closed issue, unless its change is still in effect."""
        with self._store.change_memories(self._namespace) as change:
            rules.reopen(change.ledger, id_, self._doer, why)

    def get(self, id_: str) -> Issue:
        """Return an issue."""
        return rules.known(self._store.ledger(self._namespace), id_)

    def history(self, id_: str) -> list[IssueEvent]:
        """Return what was done on an issue, in order."""
        self.get(id_)
        return self._store.ledger(self._namespace).events(id_)

    def show(self, id_: str) -> dict[str, Any]:
        """Return an issue as a dictionary."""
        return as_dict(self.get(id_))

    def export(self, target: Path) -> int:
        """Write all issues to a new file in the format of beads; return how many.

        Raises:
            StoreError: the file exists already, or cannot be written.
        """
        issues = self.selected()
        lines = "".join(f"{to_line(issue)}\n" for issue in issues)
        try:
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(lines)
        except FileExistsError as error:
            raise StoreError(f"{target} exists already", remedy="name a new file") from error
        except OSError as error:
            raise StoreError(
                f"{target} cannot be written: {error.strerror}", remedy="name a file that can be written"
            ) from error
        return len(issues)

    def import_(self, source: Path) -> ImportedIssues:
        """Import issues from a file of beads, all or none; secrets are replaced.

        Of two issues with one id the one that was changed last stays. An unfinished one that says the same as one here
        is left out.

        Raises:
            UsageError: the file cannot be read, or a line is no issue; the message says why. Nothing was imported.
        """
        issues = read(read_text(source).split("\n"), without_secrets)  # other ends of lines may be in a text
        with self._store.change_memories(self._namespace) as change:
            return import_issues(change.ledger, issues, self._doer, f"from {source.name}")

    def counts(self) -> dict[str, dict[str, int]]:
        """Count issues by agent and status; those of no agent are under ""."""
        counted: dict[str, dict[str, int]] = {}
        for (agent, status), count in sorted(self._store.ledger(self._namespace).counts().items()):
            counted.setdefault(agent, {})[status] = count
        return counted

    def selected(self, wanted: IssueSelection = EVERY) -> list[Issue]:
        """Return the issues of a selection, by default all, oldest first; ties by id."""
        return self._store.ledger(self._namespace).issues(wanted)

    @property
    def _doer(self) -> rules.Doer:
        return rules.Doer(self._actor, self._now())


def as_dict(issue: Issue) -> dict[str, Any]:
    """Return an issue as plain values: notes as an object, the lines appended to them as `log`, times as text."""
    values = asdict(issue)
    for name in ("rest", "dependencies", "comments"):
        del values[name]
    times = ("created_at", "updated_at", "closed_at", "retry_at", "claimed_at", "escalated_at")
    values |= {name: iso(values[name]) for name in times}
    values |= {"memory_ids": list(issue.memory_ids), "labels": list(issue.labels), "urgency": rules.urgency_of(issue)}
    return {**values, "notes": split_notes(issue.notes)[0], "log": rules.log(issue.notes)}
