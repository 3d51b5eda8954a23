"""The decay agent: archive stale memories with few uses and propose actions for the other fading ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from commonplace.consolidation.base import AgentPlan, ChangeRecorder, PlannedAgent
from commonplace.consolidation.groups import vectors_of
from commonplace.consolidation.pairs import min_cosine
from commonplace.consolidation.results import DecayResult
from commonplace.errors import NotFoundError
from commonplace.formats.beads import split_notes
from commonplace.retention import ARCHIVE_AFTER_S, age, may_archive
from commonplace.types import MemoryRecord, StoredMemory, Tier
from commonplace.types.ledger import UNFINISHED, Agent, Urgency

if TYPE_CHECKING:
    Action = Literal["reinforce", "consolidate", "promote", "gc"]

DANGER_ZONE_MAX: Final = 0.35
MEDIUM_MAX: Final = 0.25
HIGH_MAX: Final = 0.10
SURE_MAX: Final = 0.05
CONSOLIDATE_MAX: Final = 0.20
"""Upper bounds of retention: to be scanned, for medium and high urgency, to be surely faded, and to be consolidated."""

USES_WORTH_KEEPING: Final = {SURE_MAX: 5, HIGH_MAX: 3}
"""Number of uses that saves a memory from being archived, by the retention that it is below."""
STRENGTH_TO_PROMOTE: Final = 1.5
NEAR: Final = 0.40
"""Calibrated similarity from which another memory counts as alike, so that a fading one is to be consolidated."""
SURE: Final = 0.95
LESS_SURE: Final = 0.8
"""Confidence for memories with retention below `SURE_MAX` (`SURE`), and for the others (`LESS_SURE`)."""

TIERS_THAT_FADE: Final = tuple(ARCHIVE_AFTER_S)


class DecayAnalyzer(PlannedAgent[DecayResult]):
    """Processes memories with retention below 0.35: least retention first, ties by the oldest use, then by id."""

    name: ClassVar[Agent] = "decay"
    tiers: ClassVar[tuple[Tier, ...]] = TIERS_THAT_FADE
    _active_vectors: tuple[Mapping[str, int], NDArray[np.float32], float] | None = None
    """Rows by id and vectors of the active memories, cached until the next scan, and the least cosine that is alike."""
    _requested: Action | None = None

    def scan(self) -> list[str]:
        """Return the ids of the fading memories that no unfinished issue of this agent names."""
        self._active_vectors = None
        named_ids = self._runtime.issues.named(self.name, UNFINISHED)
        now = self._runtime.now()
        with self._runtime.store.snapshot():
            fading = [
                (self._score(memory.record, now), memory.record.last_used, memory.owner.id)
                for memory in self._runtime.memories(tiers=TIERS_THAT_FADE)
                if memory.owner.id not in named_ids
            ]
        return [id_ for score, _, id_ in sorted(fading) if score < DANGER_ZONE_MAX]

    def process_issue(self, issue_id: str) -> DecayResult:
        """Claim an issue of this agent and take its action, even if the agent would now propose another."""
        action = split_notes(self._runtime.issues.get(issue_id).notes)[0].get("action")
        self._requested = "gc" if action == "gc" else "reinforce" if action == "reinforce" else None
        try:
            return super().process_issue(issue_id)
        finally:
            self._requested = None

    def plan(self, item: str) -> AgentPlan[DecayResult]:
        """Return the plan for a memory of a tier that fades."""
        memory, now = self._active(item), self._runtime.now()
        record = memory.record
        if record.tier not in ARCHIVE_AFTER_S:
            raise NotFoundError(
                f"memory {item!r:.80} is of the tier {record.tier}, which does not fade",
                remedy="name a memory of a tier that fades",
            )
        score = self._score(record, now)
        action = self._requested or self._action(memory, score)
        confidence = SURE if score < SURE_MAX else LESS_SURE
        urgency: Urgency = "high" if score < HIGH_MAX else "medium" if score < MEDIUM_MAX else "low"
        result = DecayResult(memory_id=item, score=score, urgency=urgency, action=action)

        def archive(recorder: ChangeRecorder) -> DecayResult:
            recorder.archive(memory)
            return result

        def reinforce(recorder: ChangeRecorder) -> DecayResult:
            recorder.revise(memory, self._runtime.retention.used(record, recorder.now, reinforce=True))
            return result

        hindrance = ""
        if memory.owner.session:
            # Turns are never archived unasked: a transcript that nobody has searched yet would lose nearly all of them.
            hindrance = "; it is a turn of a conversation"
        elif not may_archive(record.tier, age(record.last_used, now)):
            hindrance = f"; the tier {record.tier} keeps it longer"
        return AgentPlan(
            result=result,
            basis=(memory,),
            agent=_ISSUE_AGENTS[action],
            action=action,
            confidence=confidence,
            urgency=urgency,
            reason=f"retention {score:.2f} after {record.use_count} uses" + (hindrance if action == "gc" else ""),
            extra={"score": round(score, 6), "use_count": record.use_count, "strength": record.strength},
            apply={"gc": archive, "reinforce": reinforce}.get(action),
            needs_review=action != "gc" or bool(hindrance),
        )

    def _action(self, memory: StoredMemory, score: float) -> Action:
        """Return the action of the first of the contract's rules that applies."""
        record = memory.record
        for below, uses in USES_WORTH_KEEPING.items():
            if score < below:
                return "reinforce" if record.use_count >= uses else "gc"
        if score >= CONSOLIDATE_MAX:
            return "promote" if record.strength >= STRENGTH_TO_PROMOTE else "reinforce"
        if self._active_vectors is None or memory.owner.id not in self._active_vectors[0]:
            active = self._runtime.memories()
            row_of = {other.owner.id: row for row, other in enumerate(active)}
            self._active_vectors = row_of, vectors_of(self._runtime, active), min_cosine(self._runtime.calibrated, NEAR)
        rows, vectors, threshold = self._active_vectors
        row = rows[memory.owner.id]
        cosines = vectors @ vectors[row]
        cosines[row] = -1.0
        return "consolidate" if (cosines >= threshold).any() else "reinforce"

    def due(self) -> list[str]:
        """Return the ids of the issues whose memory its tier no longer keeps from being archived, oldest first."""
        named_ids = self._runtime.issues.named(self.name, ("open",))
        memories = self._runtime.memories(tiers=TIERS_THAT_FADE) if named_ids else ()
        now, due = self._runtime.now(), []
        for memory in memories:
            record = memory.record
            is_due = not memory.owner.session and may_archive(record.tier, age(record.last_used, now))
            if memory.owner.id in named_ids and is_due and self._action(memory, self._score(record, now)) == "gc":
                due.append(memory.owner.id)
        return [issue.id for issue in self._open_issues(due) if len(issue.memory_ids) == 1]

    def _score(self, record: MemoryRecord, now: float) -> float:
        return self._runtime.retention.retention(record, now)


_ISSUE_AGENTS: Final[dict[str, Agent]] = {
    "gc": "decay",
    "reinforce": "decay",
    "consolidate": "cluster",
    "promote": "promote",
}
