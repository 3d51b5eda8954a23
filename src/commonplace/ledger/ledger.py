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

ALL_ISSUES: Final = IssueSelection()
BATCH_SIZE: Final = 1000
"""Number of issues changed in one transaction, so that other writers wait only a fraction of a second."""

_PROCESS: Final = re.compile(r".*@(?P<host>[^@]+):(?P<pid>[0-9]{1,10})", re.DOTALL)


def maintain(pace: RateLimiter, actor: str) -> list[tuple[str, str]]:
    """Release lapsed claims, reopen blocked issues and escalate old ones; return each act with the issue's id.

    Issues are searched without a transaction and changed in batches, each one transaction and one operation of the rate
    limit, so that others can write in between; an interrupted call is completed by the next one.
    """
    now = pace.now()
    waiting = pace.store.ledger(pace.namespace).issues(IssueSelection(statuses=UNFINISHED))
    due = [issue.id for issue in waiting if _due(issue, now)]
    acts: list[tuple[str, str]] = []
    for begin in range(0, len(due), BATCH_SIZE):
        batch = tuple(due[begin : begin + BATCH_SIZE])
        with pace.change() as change:
            acts.extend(_maintain(change.ledger, batch, Doer(actor, pace.now())))
    return acts


def _maintain(ledger: LedgerChange, ids: Sequence[str], doer: Doer) -> Iterator[tuple[str, str]]:
    """Perform what is due for these issues, read anew, and yield each act with the issue's id."""
    for issue in ledger.issues(IssueSelection(ids=tuple(ids))):
        while due := _due(issue, doer.now):
            act, reason, issue = due  # noqa: PLW2901 - a released issue may be old as well
            ledger.put_issue(issue)
            rules.record_act(ledger, issue.id, doer, act, rules.line_of(reason))
            yield act, issue.id


def _due(issue: Issue, now: float) -> tuple[str, str, Issue] | None:
    """Return the act that is due for an issue, the reason, and the resulting issue; None if nothing is due.

    An imported issue in progress without a claim of ours is somebody's work and left alone.
    """
    if issue.status == "in_progress" and issue.claimed_at is not None:
        if process_is_gone(issue.claimed_by):
            reason = f"the process of {issue.claimed_by} is gone"
        elif now - issue.claimed_at > rules.LEASE_S:
            reason = f"{issue.claimed_by} held it for more than {rules.LEASE_S / 60:.0f} minutes"
        else:
            return None
        return "released", reason, replace(issue, status="open", updated_at=now, claimed_by="", claimed_at=None)
    if issue.status == "blocked" and issue.retry_at is not None and issue.retry_at <= now:
        retries = issue.retries + 1
        reopened = replace(issue, status="open", updated_at=now, retries=retries, retry_at=None)
        return "reopened", f"retry {retries} of {len(rules.RETRY_AFTER_S)}", reopened
    level = URGENCIES.index(rules.urgency_of(issue))
    since = issue.created_at if issue.escalated_at is None else issue.escalated_at
    if issue.status != "open" or not issue.agent or not level or now - since <= ESCALATED_AFTER_S:
        return None
    urgency = URGENCIES[level - 1]
    other_labels = [label for label in issue.labels if not label.startswith(rules.URGENCY_LABEL)]
    labels = tuple(sorted({*other_labels, f"{rules.URGENCY_LABEL}{urgency}"}))
    priority = rules.PRIORITIES[urgency]
    raised = replace(issue, labels=labels, priority=priority, updated_at=now, escalated_at=now)
    days = f"{ESCALATED_AFTER_S / 86400:.0f} days"
    return "escalated", f"from {URGENCIES[level]} to {urgency}: open for more than {days}", raised


def process_is_gone(actor: str) -> bool:
    """Return whether an actor is a process of this machine that no longer runs."""
    match = _PROCESS.fullmatch(actor)
    if match is None or match["host"] != socket.gethostname() or os.name == "nt":
        return False  # on Windows, os.kill with signal 0 would end the process
    try:
        os.kill(int(match["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False  # it runs, and belongs to another user
    return False


def actor_of(agent: str) -> str:
    """Return an agent's name as an actor of this process: `agent@host:pid`."""
    return f"{agent}@{socket.gethostname()}:{os.getpid()}"


class Ledger:
    """The issues of one namespace of a store.

    Every call raises a `NotFoundError` if an issue, memory or file does not exist, and a `UsageError` for an invalid
    value, or an act that the issue's status does not allow.

    Args:
        now: returns seconds since the epoch.
        actor: who acts: an agent with its machine and process, or a person's name.
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
        """Return issues, oldest first; a filter of None matches all."""
        selection = IssueSelection(
            agents=() if agent is None else (rules.one_of("agent", agent, AGENTS),),
            statuses=() if status is None else (rules.one_of("status", status, ISSUE_STATUSES),),
        )
        level = None if urgency is None else rules.one_of("urgency", urgency, URGENCIES)
        return [as_dict(issue) for issue in self.selected(selection) if level in (None, rules.urgency_of(issue))]

    def named(self, agent: str, statuses: Sequence[str]) -> set[str]:
        """Return the ids of the memories that an agent's issues with one of these statuses name."""
        return self._store.ledger(self._namespace).memories_named(agent, statuses)

    def claim(self, id_: str) -> bool:
        """Claim an open issue; return False if others work on it, or it is blocked or closed.

        A claim lapses when its process is gone, or after 15 minutes.
        """
        with self._store.change_memories(self._namespace) as change:
            if rules.get_issue(change.ledger, id_).status == "in_progress":
                list(_maintain(change.ledger, [id_], self._doer))
            return rules.claim(change.ledger, id_, self._doer)

    def close(self, id_: str, reason: str) -> None:
        """Close an issue, with a reason."""
        with self._store.change_memories(self._namespace) as change:
            rules.close(change.ledger, id_, reason, self._doer)

    def block(self, id_: str, error: str) -> None:
        """Block an issue and append the error to its notes; it is reopened automatically up to three times."""
        with self._store.change_memories(self._namespace) as change:
            rules.block(change.ledger, id_, error, self._doer)

    def reopen(self, id_: str, why: str = "") -> None:
        """Reopen a blocked or closed issue, unless its change is still in effect."""
        with self._store.change_memories(self._namespace) as change:
            rules.reopen(change.ledger, id_, self._doer, why)

    def get(self, id_: str) -> Issue:
        """Return an issue."""
        return rules.get_issue(self._store.ledger(self._namespace), id_)

    def history(self, id_: str) -> list[IssueEvent]:
        """Return the events of an issue, in order."""
        self.get(id_)
        return self._store.ledger(self._namespace).events(id_)

    def show(self, id_: str) -> dict[str, Any]:
        """Return an issue as a dictionary."""
        return as_dict(self.get(id_))

    def export(self, target: Path) -> int:
        """Write all issues to a new file in the format of beads; return their number.

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

        Of two issues with the same id, the one changed last stays. An unfinished issue is left out if an unfinished one
        of the same agent about the same memories already exists.

        Raises:
            UsageError: the file cannot be read, or a line is not an issue; the message says why. Nothing was imported.
        """
        issues = read(read_text(source).split("\n"), without_secrets)  # a text may contain other line ends
        with self._store.change_memories(self._namespace) as change:
            return import_issues(change.ledger, issues, self._doer, f"from {source.name}")

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of issues by agent and status; those of no agent are under ""."""
        by_agent: dict[str, dict[str, int]] = {}
        for (agent, status), count in sorted(self._store.ledger(self._namespace).counts().items()):
            by_agent.setdefault(agent, {})[status] = count
        return by_agent

    def selected(self, wanted: IssueSelection = ALL_ISSUES) -> list[Issue]:
        """Return the issues of a selection, by default all, oldest first; ties by id."""
        return self._store.ledger(self._namespace).issues(wanted)

    @property
    def _doer(self) -> rules.Doer:
        return rules.Doer(self._actor, self._now())


def as_dict(issue: Issue) -> dict[str, Any]:
    """Return an issue as plain values: notes as an object, lines appended to them as `log`, times as text."""
    values = asdict(issue)
    for name in ("rest", "dependencies", "comments"):
        del values[name]
    times = ("created_at", "updated_at", "closed_at", "retry_at", "claimed_at", "escalated_at")
    values |= {name: iso(values[name]) for name in times}
    values |= {"memory_ids": list(issue.memory_ids), "labels": list(issue.labels), "urgency": rules.urgency_of(issue)}
    return {**values, "notes": split_notes(issue.notes)[0], "log": rules.log(issue.notes)}
