"""Values of the ledger: issues, events, reversals.

The ledger lists what consolidation did or proposes. Its issues have the form of beads, an issue tracker for agents, so
that they can be moved there and back. Every act on an issue is an event, and an applied change is kept as the steps
that undo it.
"""

from __future__ import annotations

from typing import Literal, get_args

from commonplace.dataclasses import dataclass

Agent = Literal["decay", "cluster", "merge", "promote", "relations"]
AGENTS: tuple[Agent, ...] = get_args(Agent)
"""The agents of consolidation, in the order in which they run."""

IssueStatus = Literal["open", "in_progress", "blocked", "closed"]
ISSUE_STATUSES: tuple[IssueStatus, ...] = get_args(IssueStatus)
UNFINISHED: tuple[IssueStatus, ...] = ("open", "in_progress", "blocked")

Urgency = Literal["high", "medium", "low"]
URGENCIES: tuple[Urgency, ...] = get_args(Urgency)

Verdict = Literal["right", "wrong", "none"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What a person says of a memory as a result of a query; "none" removes the mark."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue of the ledger. Times are seconds since the epoch.

    Attributes:
        id: `commonplace-` and eight hexadecimal digits, or the id that an imported issue had.
        agent: the consolidation agent that it belongs to; "" for none, as for a golden query or one from elsewhere.
        memory_ids: the memories that it is about, sorted; an issue from elsewhere may have none.
        notes: a JSON object as text if the issue is ours, followed by whatever was appended since.
        status: one of `ISSUE_STATUSES`; an imported issue may have any other text, which is kept and left alone.
        priority: 0–4, 0 is the most urgent; ours have 1, 2 and 3 for high, medium and low.
        labels: sorted, each once.
        dependencies, comments: JSON arrays as text, in the form of beads.
        rest: a JSON object as text: the fields of an imported issue that have no place here.
        retries: how often it was reopened after it was blocked.
        retry_at: from when a blocked issue may be reopened; None is never.
        claimed_by, claimed_at: who works on it, and since when, while it is in progress.
        escalated_at: when its urgency was last raised.
    """

    id: str
    title: str
    agent: str = ""
    memory_ids: tuple[str, ...] = ()
    description: str = ""
    notes: str = "{}"
    status: str = "open"
    priority: int = 2
    issue_type: str = "task"
    labels: tuple[str, ...] = ()
    dependencies: str = "[]"
    comments: str = "[]"
    rest: str = "{}"
    created_at: float = 0.0
    updated_at: float = 0.0
    closed_at: float | None = None
    close_reason: str = ""
    retries: int = 0
    retry_at: float | None = None
    claimed_by: str = ""
    claimed_at: float | None = None
    escalated_at: float | None = None


@dataclass(frozen=True, slots=True)
class IssueEvent:
    """One act on an issue.

    Attributes:
        actor: who did it: an agent with its machine and process, or a person.
        act: `created`, `claimed`, `closed`, `blocked`, `reopened`, `escalated`, `released`, `applied`, `undone`,
            `changed`, `imported`, `forgotten`.
        why: one line.
    """

    issue: str
    at: float
    actor: str
    act: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Reversal:
    """What undoes an applied change.

    Attributes:
        issue: the issue by which the change was made; each has at most one reversal.
        run: the UUID of the run that made it.
        number: its place among all reversals, ascending; 0 until it is written.
        memory_ids: the ids of the memories that it changed, made or archived, sorted.
        steps: a JSON array as text of the steps that undo the change, in order; it holds no words of a memory.
        undone_at: when it was undone; None while the change stands.
    """

    issue: str
    run: str
    at: float
    memory_ids: tuple[str, ...]
    steps: str
    number: int = 0
    undone_at: float | None = None


@dataclass(frozen=True, slots=True)
class RunChanges:
    """What a run changed, as far as the store keeps its reversals.

    Attributes:
        at: when its first change was made.
        applied: number of changes that can be undone, or were.
        undone: number of those that were.
    """

    run: str
    at: float
    applied: int
    undone: int


@dataclass(frozen=True, slots=True)
class IssueSelection:
    """Which issues a list holds. Empty means no restriction; values of one field are alternatives, all must match.

    Attributes:
        memory_ids: issues that name any of these.
    """

    ids: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
