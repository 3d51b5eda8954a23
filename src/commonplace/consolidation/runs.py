"""Remember what each run came to, and list the runs, to find what to undo. It holds no words of memories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from commonplace.store.memory_contract import Note
from commonplace.times import iso, moment_of
from commonplace.types.ledger import AGENTS, IssueSelection, RunChanges

if TYPE_CHECKING:
    from commonplace.consolidation.ground import Ground
    from commonplace.consolidation.running import RunReport

NOTE: Final = "consolidation run"
KEPT: Final = 1_000
"""So many runs are remembered; of an older one it is known what can be undone."""


@dataclass(frozen=True, slots=True)
class ConsolidationRun:
    """A run, and what can be undone of it.

    Attributes:
        run: its UUID, which `undo_consolidation` takes.
        at: when it began; where only its changes are known, when it made the first.
        agents: those that ran; where only its changes are known, those whose issues it did.
        applied: how many changes it made.
        undone: how many of them were undone.
        standing: how many of them stand and can be undone; what was forgotten is in neither.
        proposed: how many issues it filed or found waiting; None where only the changes of the run are known: it
            still runs, was stopped, or is older than what is remembered.
        errors: how many items it could not process; None as for `proposed`.
    """

    run: str
    at: datetime
    agents: tuple[str, ...]
    applied: int
    undone: int
    standing: int
    proposed: int | None = None
    errors: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**asdict(self), "at": iso(self.at), "agents": list(self.agents)}


def remember(ground: Ground, report: RunReport, begun_at: float, agents: Sequence[str]) -> None:
    """Write down what a run came to, where it came to anything; a dry run writes nothing."""
    named = {each.beads_issue_id for found in report.results.values() for each in found} - {None}
    changed = ground.store.ledger(ground.namespace).reversals(run=report.run)
    proposed = len(named - {each.issue for each in changed})
    if report.dry_run or not (report.applied or proposed or report.errors):
        return
    told = {"agents": list(agents), "applied": report.applied, "proposed": proposed, "errors": len(report.errors)}
    known = ground.store.notes(ground.namespace, NOTE)
    with ground.store.change_memories(ground.namespace) as change:
        change.put_note(Note(NOTE, report.run, begun_at, json.dumps(told, sort_keys=True)))
        for old in known[: max(0, len(known) + 1 - KEPT)]:
            change.drop_note(NOTE, old.id)


def latest(ground: Ground, limit: int) -> list[ConsolidationRun]:
    """Return the last runs that changed, proposed or failed at anything, the latest first."""
    changed = {each.run: each for each in ground.store.ledger(ground.namespace).runs()}
    notes = {note.id: note for note in ground.store.notes(ground.namespace, NOTE)}
    began = {run: each.at for run, each in changed.items()} | {run: note.at for run, note in notes.items()}
    order = sorted(began, key=lambda run: (-began[run], run))[:limit]
    return [_run(ground, run, began[run], changed.get(run), notes.get(run)) for run in order]


def is_run(ground: Ground, id_: str) -> bool:
    """Tell whether an id is of a run that is remembered."""
    return any(note.id == id_ for note in ground.store.notes(ground.namespace, NOTE))


def _run(ground: Ground, run: str, at: float, changed: RunChanges | None, note: Note | None) -> ConsolidationRun:
    applied, undone = (changed.applied, changed.undone) if changed else (0, 0)
    told: dict[str, Any] = json.loads(note.body) if note else {"agents": _agents(ground, run), "applied": applied}
    return ConsolidationRun(
        run=run,
        at=moment_of(at),
        agents=tuple(told["agents"]),
        applied=told["applied"],
        undone=undone,
        standing=applied - undone,
        proposed=told.get("proposed"),
        errors=told.get("errors"),
    )


def _agents(ground: Ground, run: str) -> list[str]:
    """Return the agents whose issues a run did, in their order; none where another program keeps the issues."""
    ledger = ground.store.ledger(ground.namespace)
    issues = tuple(each.issue for each in ledger.reversals(run=run))
    found = {issue.agent for issue in ledger.issues(IssueSelection(ids=issues))} if issues else set()
    return [agent for agent in AGENTS if agent in found]
