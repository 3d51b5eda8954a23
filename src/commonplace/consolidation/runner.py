"""Run the agents in order, report what became of each result, and list past runs and their changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal
from uuid import uuid4

from commonplace.consolidation.base import (
    LINK,
    PAGE,
    REVISE,
    REVIVE,
    UNLINK,
    Failure,
    PlannedAgent,
    failure_of,
    with_issue,
)
from commonplace.consolidation.cluster import ClusterDetector
from commonplace.consolidation.decay import DecayAnalyzer
from commonplace.consolidation.merge import SemanticMerge
from commonplace.consolidation.promote import LTMPromoter
from commonplace.consolidation.relations import RelationshipDiscovery
from commonplace.consolidation.results import Result
from commonplace.consolidation.runtime import Book, ConfidenceConfig, ConsolidationRuntime
from commonplace.dataclasses import asdict, dataclass, field, replace
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.beads import split_notes
from commonplace.formats.json_values import View
from commonplace.ledger import rate_limit as window
from commonplace.ledger.ledger import maintain
from commonplace.ledger.rules import ERASE
from commonplace.memory.validate import one_of, series
from commonplace.types import Note
from commonplace.types.ledger import AGENTS, Agent, Issue, IssueSelection

NOTE: Final = "consolidation run"
KEPT: Final = 1_000
"""Number of runs whose reports are kept; of older runs only the changes are known."""


@dataclass(frozen=True, slots=True)
class ConsolidationRun(View):
    """A consolidation run, and how much of it can be undone.

    Attributes:
        run: the run's UUID, which `undo_consolidation` takes.
        at: when it began, or, if only its changes are known, when it made the first.
        agents: the agents that ran, or, if only its changes are known, those whose issues it applied.
        applied, undone, standing: numbers of changes made, of changes undone, and of changes that are still applied and
            can be undone; forgotten changes are in none of them.
        proposed: number of issues it filed or found waiting; None if only its changes are known: the run is still
            going, was stopped, or is older than the runs kept.
        errors: number of items it could not process; None as for `proposed`.
        before, after: numbers of memories by tier, of archived ones and of links, at the beginning and the end; empty
            where `proposed` is None.
    """

    run: str
    at: datetime
    agents: tuple[str, ...]
    applied: int
    undone: int
    standing: int
    proposed: int | None = None
    errors: int | None = None
    before: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, int] = field(default_factory=dict)


def _count_state(runtime: ConsolidationRuntime) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for (tier, status), count in runtime.store.count_tiers(runtime.namespace).items():
        counts["archived" if status == "archived" else tier] += count
    return {**counts, "links": runtime.store.count_links(runtime.namespace)}


def latest(runtime: ConsolidationRuntime, limit: int) -> list[ConsolidationRun]:
    """Return the last runs that changed, proposed or failed at anything, latest first."""
    ledger = runtime.store.ledger(runtime.namespace)
    changed = {summary.run: summary for summary in ledger.runs()}
    notes = {note.id: note for note in runtime.store.notes(runtime.namespace, NOTE)}
    started = {run: summary.at for run, summary in changed.items()} | {run: note.at for run, note in notes.items()}
    runs = []
    for run in sorted(started, key=lambda run: (-started[run], run))[:limit]:
        applied, undone = (changed[run].applied, changed[run].undone) if run in changed else (0, 0)
        if run in notes:
            values = json.loads(notes[run].body)
        else:
            # Empty if another program keeps the issues.
            issues = tuple(reversal.issue for reversal in ledger.reversals(run=run))
            active = {issue.agent for issue in ledger.issues(IssueSelection(ids=issues))} if issues else set()
            values = {"agents": [agent for agent in AGENTS if agent in active], "applied": applied}
        values |= {"undone": undone, "standing": applied - undone, "agents": tuple(values["agents"])}
        runs.append(ConsolidationRun(run=run, at=moment_of(started[run]), **values))
    return runs


@dataclass(frozen=True, slots=True)
class ConsolidationChange(View):
    """A change made by a run.

    Attributes:
        issue: id of the change's issue, which `undo_consolidation` takes.
        title, agent, why: those of the issue; "" if another program keeps the issues.
        memory_ids: ids of the memories that it changed, created or archived.
        undone_at: None while the change is applied.
        acts: the acts in order. Each has `what` ("made", "archived", "changed", "linked" or "wrote"), the memory's
            `id`, and its details: `changed` (the values before and after by field), `target` and `type` of a link,
            or the `path` of a note.
    """

    issue: str
    title: str
    agent: str
    why: str
    at: datetime
    memory_ids: tuple[str, ...]
    undone_at: datetime | None
    acts: tuple[Mapping[str, Any], ...] = ()


_ACTS: Final = {
    ERASE: "made",
    REVIVE: "archived",
    REVISE: "changed",
    UNLINK: "linked",
    LINK: "linked",
    PAGE: "wrote",
}
"""Names of acts by the step that undoes them."""


def changes(runtime: ConsolidationRuntime, run: str) -> list[ConsolidationChange]:
    """Return the changes of a run, oldest first.

    Raises:
        NotFoundError: there is no such run.
    """
    ledger = runtime.store.ledger(runtime.namespace)
    reversals = ledger.reversals(run=run)
    if not reversals and not is_run(runtime, run):
        raise NotFoundError(f"there is no run {run!r:.80}", remedy="see `commonplace consolidate runs`")
    issues = {issue.id: issue for issue in ledger.issues(IssueSelection(ids=tuple(row.issue for row in reversals)))}
    entries, shown = [], ("id", "target", "type", "path", "changed")
    for reversal in reversals:
        issue = issues.get(reversal.issue, Issue(reversal.issue, ""))
        acts = (
            {"what": _ACTS[step["do"]], **{name: step[name] for name in shown if name in step}}
            for step in reversed(json.loads(reversal.steps))
        )
        entries.append(
            ConsolidationChange(
                issue=issue.id,
                title=issue.title,
                agent=issue.agent,
                why=_reason(issue),
                at=moment_of(reversal.at),
                memory_ids=reversal.memory_ids,
                undone_at=None if reversal.undone_at is None else moment_of(reversal.undone_at),
                acts=tuple(acts),
            )
        )
    return entries


def _reason(issue: Issue) -> str:
    return str(split_notes(issue.notes)[0].get("why", ""))


def is_run(runtime: ConsolidationRuntime, id_: str) -> bool:
    """Return whether an id is that of a run whose report is kept."""
    return any(note.id == id_ for note in runtime.store.notes(runtime.namespace, NOTE))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a result.

    Attributes:
        decision: applied, waiting as an issue for approval, or left as it is.
        why: the reason for waiting, without any of a memory's content.
    """

    decision: Literal["applied", "waiting", "left"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run of agents.

    Attributes:
        run: the UUID under which the run's changes can be undone.
        results: results by agent, in the order in which the agents ran.
        skipped: number of items without a result.
        applied: number of changes made, each of which can be undone; in a dry run, of changes that would be made.
        lost: golden queries that the run broke; if any, all its changes have been undone.
        outcomes: by agent, the outcome of each result after all agents have run; in a dry run, the predicted one.
    """

    run: str
    dry_run: bool
    results: Mapping[Agent, tuple[Result, ...]]
    errors: tuple[Failure, ...] = ()
    skipped: int = 0
    applied: int = 0
    lost: tuple[str, ...] = ()
    outcomes: Mapping[Agent, tuple[Outcome, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; the results have the contract's form."""
        values: dict[str, Any] = {
            "dry_run": self.dry_run,
            "results": {agent: [result.model_dump() for result in results] for agent, results in self.results.items()},
            "errors": [{"agent": error.agent, "item": error.item, "error": error.error} for error in self.errors],
            "skipped": self.skipped,
            "outcomes": {agent: [asdict(outcome) for outcome in outcomes] for agent, outcomes in self.outcomes.items()},
            "applied": self.applied,
            "run": self.run,
        }
        return {**values, "lost": list(self.lost)} if self.lost else values


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run; see `Engine.consolidate`.

    Attributes:
        issue: id of the only issue to process, by the one agent in `agents`; "" lets the agents look for work.
    """

    agents: tuple[Agent, ...] = AGENTS
    dry_run: bool = False
    rate_limit: int = 100
    confidence: ConfidenceConfig | None = None
    run: str = field(default_factory=lambda: str(uuid4()))
    issue: str = ""


def agents_of(requested: Sequence[str] | None) -> tuple[Agent, ...]:
    """Return agents by name, in the order in which they run; None means all.

    Raises:
        UsageError: there is no such agent.
    """
    if requested is None:
        return AGENTS
    names = [requested] if isinstance(requested, str) else series("agents", requested)
    chosen = {one_of("agents", name, AGENTS) for name in names}
    return tuple(name for name in AGENTS if name in chosen)


_CLASSES: Final = (DecayAnalyzer, ClusterDetector, SemanticMerge, LTMPromoter, RelationshipDiscovery)


def agent_of(name: Agent, book: Book, options: RunOptions) -> PlannedAgent[Any]:
    """Return an agent, ready to run."""
    cls: type[PlannedAgent[Any]] = next(cls for cls in _CLASSES if cls.name == name)
    agent = cls(options.dry_run, options.rate_limit, options.confidence, book=book)
    agent.run_id = options.run
    return agent


def process(book: Book, issue: str, options: RunOptions) -> RunReport:
    """Apply an issue by its agent.

    Raises:
        NotFoundError: there is no such issue, it is not open, or one of its memories no longer exists.
        UsageError: the issue belongs to no agent, or asks for something that no agent can do.
    """
    stored = book.consolidation_runtime().issues.get(issue)
    if stored.agent not in AGENTS:
        raise UsageError(
            f"issue {issue!r:.80} is of no agent of consolidation",
            remedy="name one that `commonplace ledger list --agent` shows",
        )
    return run(book, replace(options, agents=agents_of(stored.agent), issue=issue))


def run(book: Book, options: RunOptions) -> RunReport:
    """Run agents in their order, and store a note of the run if it did anything.

    A failed item, or the failure of an agent's scan, does not stop the others. A dry run acts on a private copy.
    """
    runtime = book.consolidation_runtime()
    is_own_ledger = runtime.external is None
    if options.dry_run:
        with runtime.dry_run() as copied:
            # On the copy the agents really act, so that each sees the changes of those before it, without a rate limit.
            report = _act(copied, replace(options, rate_limit=0, dry_run=False), is_own_ledger=is_own_ledger)
            # An issue filed on the copy is not reported: a failure of it names its memories instead.
            existing = {issue.id for issue in runtime.issues.selected()} if report.errors else set()
            errors = []
            for failure in report.errors:
                filed = copied.store.ledger(copied.namespace).issue(failure.item)
                is_new = filed is not None and filed.id not in existing
                errors.append(replace(failure, item=json.dumps(filed.memory_ids)) if filed and is_new else failure)
            bare = {agent: tuple(with_issue(item, None) for item in items) for agent, items in report.results.items()}
            return replace(report, dry_run=True, results=bare, errors=tuple(errors))
    begun_at, before = runtime.now(), _count_state(runtime)
    report = _act(runtime, options, is_own_ledger=is_own_ledger)
    reversals = runtime.store.ledger(runtime.namespace).reversals(run=report.run)
    issue_ids = {result.beads_issue_id for results in report.results.values() for result in results} - {None}
    counts = {
        "applied": report.applied,
        "proposed": len(issue_ids - {reversal.issue for reversal in reversals}),
        "errors": len(report.errors),
    }
    if any(counts.values()):
        body = {"agents": list(options.agents), "before": before, "after": _count_state(runtime), **counts}
        notes = runtime.store.notes(runtime.namespace, NOTE)
        with runtime.store.change_memories(runtime.namespace) as change:
            change.put(Note(NOTE, report.run, begun_at, json.dumps(body, sort_keys=True)))
            for note in notes[: max(0, len(notes) + 1 - KEPT)]:
                change.drop(Note, kind=NOTE, id=note.id)
    return report


def _act(runtime: ConsolidationRuntime, options: RunOptions, *, is_own_ledger: bool) -> RunReport:
    if options.issue:
        [name] = options.agents
        result = agent_of(name, runtime, options).process_issue(options.issue)
        return _report(runtime, options.run, {name: (result,)})
    if is_own_ledger:
        maintain(runtime.pace(options.rate_limit), runtime.actor)
    results: dict[Agent, tuple[Result, ...]] = {}
    errors: list[Failure] = []
    skipped = 0
    for name in options.agents:
        agent = agent_of(name, runtime, options)
        try:
            results[name] = tuple(agent.run())
        except Exception as error:
            results[name] = ()
            errors.append(failure_of(name, "", error))
        errors += agent.failures
        skipped += agent.skipped
    return _report(runtime, options.run, results, tuple(errors), skipped)


def _report(
    runtime: ConsolidationRuntime,
    run: str,
    results: Mapping[Agent, tuple[Result, ...]],
    errors: tuple[Failure, ...] = (),
    skipped: int = 0,
) -> RunReport:
    applied = {reversal.issue for reversal in runtime.store.ledger(runtime.namespace).reversals(run=run)}
    filed = {result.beads_issue_id for agent_results in results.values() for result in agent_results} - applied - {None}
    waiting = runtime.issues.selected(IssueSelection(statuses=("open",))) if filed else ()
    by_issue: dict[str | None, Outcome] = {None: Outcome("left"), **dict.fromkeys(applied, Outcome("applied"))}
    by_issue |= {issue.id: Outcome("waiting", _reason(issue)) for issue in waiting if issue.id in filed}
    outcomes = {
        agent: tuple(by_issue.get(result.beads_issue_id, Outcome("waiting")) for result in agent_results)
        for agent, agent_results in results.items()
    }
    return RunReport(run, False, results, errors, skipped, len(applied), outcomes=outcomes)


@dataclass(frozen=True, slots=True)
class ConsolidationStatus(View):
    """What is pending for the agents.

    Attributes:
        agents: by agent, the numbers of issues that are `pending`, `in_progress` and `blocked`.
        total_pending: number of pending issues of these agents.
        rate_limit_remaining: number of operations still allowed in the current minute; None if there is no limit.
    """

    agents: Mapping[str, Mapping[str, int]]
    total_pending: int
    rate_limit_remaining: int | None


def status_of(runtime: ConsolidationRuntime, agent: str | None, rate_limit: int) -> ConsolidationStatus:
    """Return what is pending for one agent, or for all."""
    by_agent, columns = runtime.issues.counts(), {"open": "pending", "in_progress": "in_progress", "blocked": "blocked"}
    agents: dict[str, Mapping[str, int]] = {
        name: {column: by_agent.get(name, {}).get(status, 0) for status, column in columns.items()}
        for name in AGENTS
        if agent in (None, name)
    }
    pending = sum(counts["pending"] for counts in agents.values())
    remaining = window.remaining(runtime.store.ledger(runtime.namespace), runtime.now(), rate_limit)
    return ConsolidationStatus(agents, pending, remaining)
