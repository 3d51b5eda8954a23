"""The decay agent: archive stale memories that were never used and propose the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from commonplace.consolidation.base import ChangeRecorder, Plan, PlannedAgent
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
"""Retention below which memories are looked at, are of medium and of high urgency, surely fade, and may be merged."""

USES_WORTH_KEEPING: Final = {SURE_MAX: 5, HIGH_MAX: 3}
"""So many uses save a memory with less retention than that from being archived."""
STRENGTH_TO_PROMOTE: Final = 1.5
LIKE: Final = 0.40
"""Calibrated similarity from which another memory says much the same."""
SURE: Final = 0.95
LESS_SURE: Final = 0.8
"""How sure the agent is of a memory with less retention than `SURE_MAX`, and of the others."""

TIERS_THAT_FADE: Final = tuple(ARCHIVE_AFTER_S)


class DecayAnalyzer(PlannedAgent[DecayResult]):
    """Looks at memories whose retention is below 0.35: the least retained first, ties by the oldest use, then by id."""

    name: ClassVar[Agent] = "decay"
    tiers: ClassVar[tuple[Tier, ...]] = TIERS_THAT_FADE
    _active_vectors: tuple[Mapping[str, int], NDArray[np.float32], float] | None = None
    """Of the active memories, as they were since the last scan: their rows, and the least cosine of those alike."""
    _asked: Action | None = None

    def scan(self) -> list[str]:
        """Return the ids of the memories that fade and that no unfinished issue of this agent names."""
        self._active_vectors = None
        named = self._runtime.issues.named(self.name, UNFINISHED)
        now = self._runtime.now()
        with self._runtime.store.snapshot():
            found = [
                (self._score(memory.record, now), memory.record.last_used, memory.owner.id)
                for memory in self._runtime.memories(tiers=TIERS_THAT_FADE)
                if memory.owner.id not in named
            ]
        return [id_ for score, _, id_ in sorted(found) if score < DANGER_ZONE_MAX]

    def process_issue(self, issue_id: str) -> DecayResult:
        """Claim an issue of this agent and do what it asks for, even where something else would be proposed by now."""
        asked = split_notes(self._runtime.issues.get(issue_id).notes)[0].get("action")
        self._asked = "gc" if asked == "gc" else "reinforce" if asked == "reinforce" else None
        try:
            return super().process_issue(issue_id)
        finally:
            self._asked = None

    def plan(self, item: str) -> Plan[DecayResult]:
        """Return what is to be done with a memory of a tier that fades."""
        memory, now = self._active(item), self._runtime.now()
        record = memory.record
        if record.tier not in ARCHIVE_AFTER_S:
            raise NotFoundError(
                f"memory {item!r:.80} is of the tier {record.tier}, which does not fade",
                remedy="name a memory of a tier that fades",
            )
        score = self._score(record, now)
        action = self._asked or self._action(memory, score)
        confidence = SURE if score < SURE_MAX else LESS_SURE
        urgency: Urgency = "high" if score < HIGH_MAX else "medium" if score < MEDIUM_MAX else "low"
        result = DecayResult(memory_id=item, score=score, urgency=urgency, action=action)

        def archive(acts: ChangeRecorder) -> DecayResult:
            acts.archive(memory)
            return result

        def reinforce(acts: ChangeRecorder) -> DecayResult:
            acts.revise(memory, self._runtime.retention.used(record, acts.now, reinforce=True))
            return result

        kept = ""
        if memory.owner.session:
            # A transcript stays what was said: one that nobody asked about yet would otherwise lose nearly all of it.
            kept = "; it is a turn of a conversation"
        elif not may_archive(record.tier, age(record.last_used, now)):
            kept = f"; the tier {record.tier} keeps it longer"
        return Plan(
            result=result,
            basis=(memory,),
            agent=_ISSUES_OF[action],
            action=action,
            confidence=confidence,
            urgency=urgency,
            why=f"retention {score:.2f} after {record.use_count} uses" + (kept if action == "gc" else ""),
            extra={"score": round(score, 6), "use_count": record.use_count, "strength": record.strength},
            apply={"gc": archive, "reinforce": reinforce}.get(action),
            needs_a_person=action != "gc" or bool(kept),
        )

    def _action(self, memory: StoredMemory, score: float) -> Action:
        """Return what the contract's rule says, the first that holds."""
        record = memory.record
        for below, uses in USES_WORTH_KEEPING.items():
            if score < below:
                return "reinforce" if record.use_count >= uses else "gc"
        if score >= CONSOLIDATE_MAX:
            return "promote" if record.strength >= STRENGTH_TO_PROMOTE else "reinforce"
        if self._active_vectors is None or memory.owner.id not in self._active_vectors[0]:
            active = self._runtime.memories()
            places = {each.owner.id: row for row, each in enumerate(active)}
            self._active_vectors = places, vectors_of(self._runtime, active), min_cosine(self._runtime.calibrated, LIKE)
        rows, vectors, least = self._active_vectors
        row = rows[memory.owner.id]
        cosines = vectors @ vectors[row]
        cosines[row] = -1.0
        return "consolidate" if (cosines >= least).any() else "reinforce"

    def due(self) -> list[str]:
        """Return the issues that wait to archive what its tier keeps no longer, the oldest first."""
        named = self._runtime.issues.named(self.name, ("open",))
        memories = self._runtime.memories(tiers=TIERS_THAT_FADE) if named else ()
        now, due = self._runtime.now(), []
        for each in memories:
            record = each.record
            is_due = not each.owner.session and may_archive(record.tier, age(record.last_used, now))
            if each.owner.id in named and is_due and self._action(each, self._score(record, now)) == "gc":
                due.append(each.owner.id)
        return [issue.id for issue in self._open_issues(due) if len(issue.memory_ids) == 1]

    def _score(self, record: MemoryRecord, now: float) -> float:
        return self._runtime.retention.retention(record, now)


_ISSUES_OF: Final[dict[str, Agent]] = {
    "gc": "decay",
    "reinforce": "decay",
    "consolidate": "cluster",
    "promote": "promote",
}
