"""Values of the ledger: issues, events, reversals.

The ledger is the list of what consolidation did or proposes. Its issues are those of beads, an issue tracker for
agents, so that they can be carried there and back; every act on one is an event, and what an act changed is kept as
steps that undo it.
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
"""What a person says of a memory that a query finds; "none" takes it back."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue of the ledger. Times are seconds since the epoch.

    Attributes:
        id: `commonplace-` and eight hexadecimal digits, or whatever it had where it was imported from.
        agent: whose it is; "" where it came from elsewhere and is of no agent.
        memory_ids: what it is about, sorted; empty for an issue of no agent.
        notes: a JSON object as text, where it is ours, and after it whatever was appended since.
        status: any text may come from elsewhere; what is not one of `ISSUE_STATUSES` is kept and left alone.
        priority: 0–4, 0 is the most urgent; ours have 1, 2 and 3 for high, medium and low.
        labels: sorted, each once.
        dependencies, comments: JSON arrays as text, as beads has them.
        rest: a JSON object as text: what an imported issue had that has no place here.
        retries: how often it was opened again after it was blocked.
        retry_at: a blocked issue may be opened again from then on; None is never.
        claimed_by, claimed_at: who works on it, and since when, while it is in progress.
        escalated_at: when its urgency was raised last.
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
        issue: the issue by which the change was made; each has one at most.
        run: the run that it was a part of, a UUID.
        number: its place among all reversals, ascending; 0 until it is written.
        memory_ids: every memory that it changed, made or archived, sorted.
        steps: a JSON array as text, in the order in which they undo; it holds no words of a memory.
        undone_at: when it was undone, None while the change stands.
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
    """What a run changed, as far as the store keeps what undoes it.

    Attributes:
        at: when its first change was made.
        applied: how many changes can be undone, or were.
        undone: how many of them were.
    """

    run: str
    at: float
    applied: int
    undone: int


@dataclass(frozen=True, slots=True)
class IssueSelection:
    """Which issues a list holds. Empty means no restriction; values of one field are alternatives, fields add up.

    Attributes:
        memory_ids: issues that name any of these.
    """

    ids: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
