"""The merge agent: merge the memories that an issue names into one and archive the sources."""

from __future__ import annotations

from itertools import count
from typing import ClassVar, Final

from commonplace.consolidation import text_merge
from commonplace.consolidation.base import AgentPlan, ChangeRecorder, PlannedAgent
from commonplace.consolidation.cluster import doubt_text, stated_share
from commonplace.consolidation.groups import SETTLED, group_of, linked_pairs
from commonplace.consolidation.results import MergeResult
from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.formats.beads import AGENT_LABEL
from commonplace.memory.validate import reject_invalid
from commonplace.retention import MIN_TRUST_TO_PROMOTE
from commonplace.types import Link, MemoryWrite, StoredMemory
from commonplace.types.ledger import Agent, Issue, IssueSelection

CONSOLIDATED_FROM: Final = "consolidated_from"
"""Type of the links from a merged memory to its sources."""


class SemanticMerge(PlannedAgent[MergeResult]):
    """Merges the memories that a ledger issue names. An item is the id of an issue; without one nothing is merged."""

    name: ClassVar[Agent] = "merge"
    takes_issues: ClassVar[bool] = True

    def scan(self) -> list[str]:
        """Return the ids of the open issues labelled `consolidation:merge`, most cohesive group first, ties by age."""
        label = f"{AGENT_LABEL}{self.name}"
        issues = self._runtime.issues.selected(IssueSelection(agents=(self.name,), statuses=("open",)))
        # Issue ids are random, so issues filed at the same moment are ordered by the memories that they name.
        issues.sort(key=lambda filed: (-(stated_share(filed, "cohesion") or 0.0), filed.created_at, filed.memory_ids))
        return [issue.id for issue in issues if label in issue.labels]

    def plan(self, item: str) -> AgentPlan[MergeResult]:
        """Return the plan for merging the memories that an issue names."""
        issue, memories = self._named_by(item)
        # The figures in an issue are void if one of its memories has changed since it was filed.
        is_stale = any(memory.created_at > issue.created_at for memory in memories)
        cohesion = None if is_stale else stated_share(issue, "cohesion")
        stated = None if is_stale else stated_share(issue, "confidence")
        if cohesion is None:
            cohesion = group_of(self._runtime, memories).cohesion
        merged = text_merge.merge(text_merge.sources_of(memories), self._runtime.likeness)
        confidence = text_merge.confidence_of(cohesion, len(memories), merged.conflicts)
        if stated is not None:
            # The issue's confidence applies, whoever filed it, unless the texts contradict each other.
            confidence = min(stated, confidence) if merged.conflicts else stated
        ids = (text_merge.merged_id(issue.memory_ids, collisions) for collisions in count())
        id_ = next(id_ for id_ in ids if self._runtime.store.memory(self._runtime.namespace, id_) is None)
        owner, record = text_merge.merged_memory(memories, id_, merged.text, cohesion)
        reject_invalid(merged.text, max_bytes=self._runtime.max_bytes, force=True)
        result = MergeResult(
            new_memory_id=id_,
            source_ids=[memory.owner.id for memory in memories],
            relation_ids=[text_merge.link_id(id_, memory.owner.id) for memory in memories],
            content_diff=text_merge.diff(text_merge.sources_of(memories), record.content, id_),
            entities_preserved=len(record.entities),
            success=True,
        )
        trusts = [memory.record.trust for memory in memories]
        settled_pairs = linked_pairs(self._runtime, issue.memory_ids, SETTLED, judged=True)
        is_settled = any(pair <= set(issue.memory_ids) for pair in settled_pairs)
        needs_review = bool(merged.conflicts) or is_settled or min(trusts) < MIN_TRUST_TO_PROMOTE <= max(trusts)
        is_done = not needs_review and self.confidence_config.decide(confidence) != "wait"

        def write() -> MemoryWrite:
            # A relative date in the text is resolved as of its source's own time.
            return replace(self._runtime.write_of(owner, record), dates=text_merge.dates_of(memories))

        # Made before the transaction, so that nobody waits for it while a model answers.
        ready = write() if is_done else None

        def apply(recorder: ChangeRecorder) -> MergeResult:
            recorder.add(ready or write())
            for memory in memories:
                recorder.link(Link(id_, memory.owner.id, CONSOLIDATED_FROM, 1.0, recorder.now))
                recorder.archive(memory)
            return result

        return AgentPlan(
            result=result,
            basis=tuple(memories),
            agent=self.name,
            action="merge",
            confidence=confidence,
            reason=f"{len(memories)} memories become {id_}{doubt_text(merged.conflicts)}",
            extra={"cohesion": cohesion, "new_memory_id": id_},
            apply=apply,
            needs_review=needs_review,
        )

    def _named_by(self, item: str) -> tuple[Issue, list[StoredMemory]]:
        issue = self._runtime.issues.get(item)
        if f"{AGENT_LABEL}{self.name}" not in issue.labels:
            raise UsageError(
                f"issue {item!r:.80} is not labelled {AGENT_LABEL}{self.name}", remedy="name an issue of this agent"
            )
        if len(issue.memory_ids) < 2:
            raise UsageError(f"issue {item!r:.80} names fewer than two memories", remedy="close it")
        return issue, [self._active(id_) for id_ in sorted(issue.memory_ids)]

    def item_of(self, issue: Issue) -> str:
        return issue.id
