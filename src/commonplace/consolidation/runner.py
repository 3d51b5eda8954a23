"""Run the agents in order and report the outcome; check golden queries and roll back a run that breaks one."""

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
"""So many runs are remembered; of an older one it is known what can be undone."""


@dataclass(frozen=True, slots=True)
class ConsolidationRun(View):
    """A run, and what of it can be undone.

    Attributes:
        run: its UUID, which `undo_consolidation` takes.
        at: when it began; where only its changes are known, when it made the first.
        agents: those that ran; where only its changes are known, those whose issues it did.
        applied, undone, standing: how many changes it made, and how many of them were undone, or are applied and
            can be undone; what was forgotten is in neither.
        proposed: how many issues it filed or found waiting; None where only the changes of the run are known: it still
            runs, was stopped, or is older than what is remembered.
        errors: how many items it could not process; None as for `proposed`.
        before, after: how many memories of each tier, archived ones and links there were when it began and ended; empty
            as `proposed` is None.
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


def _counters(runtime: ConsolidationRuntime) -> dict[str, int]:
    """Return how many live memories of each tier, archived ones and links there are."""
    found: Counter[str] = Counter()
    for (tier, status), count in runtime.store.count_tiers(runtime.namespace).items():
        found["archived" if status == "archived" else tier] += count
    return {**found, "links": runtime.store.count_links(runtime.namespace)}


def latest(runtime: ConsolidationRuntime, limit: int) -> list[ConsolidationRun]:
    """Return the last runs that changed, proposed or failed at anything, the latest first."""
    ledger = runtime.store.ledger(runtime.namespace)
    changed = {each.run: each for each in ledger.runs()}
    notes = {note.id: note for note in runtime.store.notes(runtime.namespace, NOTE)}
    began = {run: each.at for run, each in changed.items()} | {run: note.at for run, note in notes.items()}
    found = []
    for run in sorted(began, key=lambda run: (-began[run], run))[:limit]:
        applied, undone = (changed[run].applied, changed[run].undone) if run in changed else (0, 0)
        if run in notes:
            known = json.loads(notes[run].body)
        else:
            # None where another program keeps the issues.
            issues = tuple(each.issue for each in ledger.reversals(run=run))
            at_work = {issue.agent for issue in ledger.issues(IssueSelection(ids=issues))} if issues else set()
            known = {"agents": [agent for agent in AGENTS if agent in at_work], "applied": applied}
        known |= {"undone": undone, "standing": applied - undone, "agents": tuple(known["agents"])}
        found.append(ConsolidationRun(run=run, at=moment_of(began[run]), **known))
    return found


@dataclass(frozen=True, slots=True)
class ConsolidationChange(View):
    """A change made by a run.

    Attributes:
        issue: by which it was made, which `undo_consolidation` takes.
        title, agent, why: of the issue; "" where another program keeps the issues.
        memory_ids: the memories that it changed, made or archived.
        undone_at: None while it is applied.
        acts: what was done, in order: `what` is "made", "archived", "changed", "linked" or "wrote", then the memory's
            `id`, and what belongs to it: `changed`, by field the value before and after, `target` and `type` of a link,
            the `path` of a note.
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
"""What was done, by what undoes it."""


def changes(runtime: ConsolidationRuntime, run: str) -> list[ConsolidationChange]:
    """Return the changes of a run, in the order in which they were made.

    Raises:
        NotFoundError: there is no such run.
    """
    ledger = runtime.store.ledger(runtime.namespace)
    made = ledger.reversals(run=run)
    if not made and not is_run(runtime, run):
        raise NotFoundError(f"there is no run {run!r:.80}", remedy="see `commonplace consolidate runs`")
    issues = {issue.id: issue for issue in ledger.issues(IssueSelection(ids=tuple(each.issue for each in made)))}
    found, shown = [], ("id", "target", "type", "path", "changed")
    for each in made:
        issue = issues.get(each.issue, Issue(each.issue, ""))
        acts = (
            {"what": _ACTS[step["do"]], **{name: step[name] for name in shown if name in step}}
            for step in reversed(json.loads(each.steps))
        )
        found.append(
            ConsolidationChange(
                issue=issue.id,
                title=issue.title,
                agent=issue.agent,
                why=_why(issue),
                at=moment_of(each.at),
                memory_ids=each.memory_ids,
                undone_at=None if each.undone_at is None else moment_of(each.undone_at),
                acts=tuple(acts),
            )
        )
    return found


def _why(issue: Issue) -> str:
    return str(split_notes(issue.notes)[0].get("why", ""))


def is_run(runtime: ConsolidationRuntime, id_: str) -> bool:
    """Return whether an id is of a run that is remembered."""
    return any(note.id == id_ for note in runtime.store.notes(runtime.namespace, NOTE))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of an item.

    Attributes:
        decision: it is applied, waits as an issue for somebody who says so, or is left as it is.
        why: the reason of what waits, without words of a memory.
    """

    decision: Literal["applied", "waiting", "left"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run of agents.

    Attributes:
        run: the UUID under which what it applied can be undone.
        results: by agent, in the order in which they ran.
        skipped: how many items came to nothing.
        applied: how many changes were made, each of which can be undone; in a dry run, how many would be.
        lost: the golden queries that the run lost, for which everything that it had applied was undone again.
        outcomes: by agent, what became of each of the results when all agents had run, or would.
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
        """Return the JSON form, whose results are those of the contract."""
        values: dict[str, Any] = {
            "dry_run": self.dry_run,
            "results": {agent: [each.model_dump() for each in found] for agent, found in self.results.items()},
            "errors": [{"agent": each.agent, "item": each.item, "error": each.error} for each in self.errors],
            "skipped": self.skipped,
            "outcomes": {agent: [asdict(each) for each in found] for agent, found in self.outcomes.items()},
            "applied": self.applied,
            "run": self.run,
        }
        return {**values, "lost": list(self.lost)} if self.lost else values


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run was asked for; see `Engine.consolidate`.

    Attributes:
        issue: the only one that is processed, by the agent whose it is; "" lets the agents look for work.
    """

    agents: tuple[Agent, ...] = AGENTS
    dry_run: bool = False
    rate_limit: int = 100
    confidence: ConfidenceConfig | None = None
    run: str = field(default_factory=lambda: str(uuid4()))
    issue: str = ""


def agents_of(given: Sequence[str] | None) -> tuple[Agent, ...]:
    """Return agents by their names, in the order in which they run; None is all of them.

    Raises:
        UsageError: there is no such agent.
    """
    if given is None:
        return AGENTS
    names = [given] if isinstance(given, str) else series("agents", given)
    chosen = {one_of("agents", name, AGENTS) for name in names}
    return tuple(name for name in AGENTS if name in chosen)


def agent_of(name: Agent, book: Book, options: RunOptions) -> PlannedAgent[Any]:
    """Return an agent, ready to run."""
    kinds: Mapping[Agent, type[PlannedAgent[Any]]] = {
        "decay": DecayAnalyzer,
        "cluster": ClusterDetector,
        "merge": SemanticMerge,
        "promote": LTMPromoter,
        "relations": RelationshipDiscovery,
    }
    agent = kinds[name](options.dry_run, options.rate_limit, options.confidence, book=book)
    agent.run_id = options.run
    return agent


def process(book: Book, issue: str, options: RunOptions) -> RunReport:
    """Do what an issue proposes, by the agent whose it is.

    Raises:
        NotFoundError: there is no such issue, it is not open, or a memory of it is not there any more.
        UsageError: it is of no agent, or asks for nothing that an agent does.
    """
    found = book.consolidation_runtime().issues.get(issue)
    if found.agent not in AGENTS:
        raise UsageError(
            f"issue {issue!r:.80} is of no agent of consolidation",
            remedy="name one that `commonplace ledger list --agent` shows",
        )
    return run(book, replace(options, agents=agents_of(found.agent), issue=issue))


def run(book: Book, options: RunOptions) -> RunReport:
    """Run agents in their order, and write down what the run came to, if anything.

    The failure of an item, or of a whole agent's scan, does not stop the others. A dry run acts on a private copy.
    """
    runtime = book.consolidation_runtime()
    is_own_ledger = runtime.external is None
    if options.dry_run:
        with runtime.dry_run() as copied:
            # On a copy the agents act for real, so that each sees what those before it did; there no rate limit holds.
            report = _act(copied, replace(options, rate_limit=0, dry_run=False), is_own_ledger=is_own_ledger)
            # No issue that was filed on the copy is named; a failure is about its memories.
            known = {issue.id for issue in runtime.issues.selected()} if report.errors else set()
            errors = []
            for failure in report.errors:
                filed = copied.store.ledger(copied.namespace).issue(failure.item)
                is_new = filed is not None and filed.id not in known
                errors.append(replace(failure, item=json.dumps(filed.memory_ids)) if filed and is_new else failure)
            found = {agent: tuple(with_issue(each, None) for each in some) for agent, some in report.results.items()}
            return replace(report, dry_run=True, results=found, errors=tuple(errors))
    begun_at, before = runtime.now(), _counters(runtime)
    report = _act(runtime, options, is_own_ledger=is_own_ledger)
    changed = runtime.store.ledger(runtime.namespace).reversals(run=report.run)
    named = {each.beads_issue_id for found in report.results.values() for each in found} - {None}
    counts = {
        "applied": report.applied,
        "proposed": len(named - {each.issue for each in changed}),
        "errors": len(report.errors),
    }
    if any(counts.values()):
        body = {"agents": list(options.agents), "before": before, "after": _counters(runtime), **counts}
        kept = runtime.store.notes(runtime.namespace, NOTE)
        with runtime.store.change_memories(runtime.namespace) as change:
            change.put(Note(NOTE, report.run, begun_at, json.dumps(body, sort_keys=True)))
            for old in kept[: max(0, len(kept) + 1 - KEPT)]:
                change.drop(Note, kind=NOTE, id=old.id)
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
    applied = {each.issue for each in runtime.store.ledger(runtime.namespace).reversals(run=run)}
    named = {each.beads_issue_id for found in results.values() for each in found} - applied - {None}
    waits = runtime.issues.selected(IssueSelection(statuses=("open",))) if named else ()
    of_issue: dict[str | None, Outcome] = {None: Outcome("left"), **dict.fromkeys(applied, Outcome("applied"))}
    of_issue |= {issue.id: Outcome("waiting", _why(issue)) for issue in waits if issue.id in named}
    outcomes = {
        agent: tuple(of_issue.get(each.beads_issue_id, Outcome("waiting")) for each in found)
        for agent, found in results.items()
    }
    return RunReport(run, False, results, errors, skipped, len(applied), outcomes=outcomes)


@dataclass(frozen=True, slots=True)
class ConsolidationStatus(View):
    """What is pending for the agents.

    Attributes:
        agents: by agent, how many issues are `pending`, `in_progress` and `blocked`.
        total_pending: how many issues of these agents are pending.
        rate_limit_remaining: how many operations may follow within a minute; None where there is no limit.
    """

    agents: Mapping[str, Mapping[str, int]]
    total_pending: int
    rate_limit_remaining: int | None


def status_of(runtime: ConsolidationRuntime, agent: str | None, rate_limit: int) -> ConsolidationStatus:
    """Return what waits for one agent, or for all."""
    counted, columns = runtime.issues.counts(), {"open": "pending", "in_progress": "in_progress", "blocked": "blocked"}
    agents: dict[str, Mapping[str, int]] = {
        name: {column: counted.get(name, {}).get(status, 0) for status, column in columns.items()}
        for name in AGENTS
        if agent in (None, name)
    }
    pending = sum(counts["pending"] for counts in agents.values())
    left = window.remaining(runtime.store.ledger(runtime.namespace), runtime.now(), rate_limit)
    return ConsolidationStatus(agents, pending, left)
