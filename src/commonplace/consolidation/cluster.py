"""The cluster agent: propose merges of duplicates and link memories on the same subject."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

from commonplace.consolidation import pairs as clustering
from commonplace.consolidation.base import AgentPlan, ChangeRecorder, PlannedAgent
from commonplace.consolidation.groups import MemoryGroup, best_group, group_of, groups_of, linked_pairs
from commonplace.consolidation.results import ClusterResult
from commonplace.consolidation.text_merge import Doubt, confidence_of, contradictions, merge, sources_of
from commonplace.dataclasses import replace
from commonplace.errors import NoRelation, UsageError
from commonplace.formats.beads import split_notes
from commonplace.ledger import rules
from commonplace.ledger.ledger import actor_of
from commonplace.memory.validate import fraction
from commonplace.types import RULE, Link
from commonplace.types.ledger import UNFINISHED, Agent, Issue, IssueSelection

RELATED: Final = "related"
"""Type of the links between similar memories."""


class ClusterDetector(PlannedAgent[ClusterResult]):
    """Groups active memories of any tier by vector similarity: single linkage at 0.40, two to ten per group.

    An item is a JSON array of the sorted ids of a group, as `scan` returns it, or the id of one memory, which means
    its best group. Merges are proposed as issues of the agent `merge`, never for turns of a conversation.
    """

    name: ClassVar[Agent] = "cluster"

    def scan(self) -> list[str]:
        """Return the groups without members in an unfinished issue, most cohesive first, ties by id.

        In a group to be linked, each contradicting pair follows the group as an item of its own.
        """
        with self._runtime.store.snapshot():
            grouped_ids = {id_ for issue in self._grouped() for id_ in issue.memory_ids}
            memories = (memory for memory in self._runtime.memories() if memory.owner.id not in grouped_ids)
            groups = groups_of(self._runtime, memories)
            linked = linked_pairs(self._runtime, (id_ for group in groups for id_ in group.ids))
        groups.sort(key=lambda group: (-group.cohesion, group.ids))
        items = list[tuple[str, ...]]()
        for group in groups:
            if clustering.action_of(group.cohesion) == "merge" and not group.has_turns:
                items.append(group.ids)
                continue
            # Add the group if any of its pairs is still to be linked, then the pairs to ask a person about.
            contradicting = {} if _are_linked(group.similar_pairs, linked) else _contradicting(group)
            if not _are_linked((pair for pair in group.similar_pairs if pair[:2] not in contradicting), linked):
                items.append(group.ids)
            items += [pair for pair in contradicting if frozenset(pair) not in linked]
        return [json.dumps(ids) for ids in items]

    def plan(self, item: str) -> AgentPlan[ClusterResult]:
        """Return the plan for a group, identified by its members or by one of them."""
        ids = listed_ids(item)
        if not all(isinstance(id_, str) for id_ in ids) or not 0 < len(ids) == len({*ids}):
            ids = [item]
        if len(ids) > clustering.MAX_GROUP:
            raise UsageError(
                f"the group has {len(ids)} memories, the limit is {clustering.MAX_GROUP}", remedy="name fewer memories"
            )
        memories = [self._active(id_) for id_ in sorted(ids)]
        group = best_group(self._runtime, memories[0]) if len(memories) == 1 else group_of(self._runtime, memories)
        plan = self._plan_of(group)
        if item in ids or len(ids) > 1:
            return plan

        # An array with a single id comes only from an issue: it asks for the memory's group, and closes with it.
        def answer(writer: ChangeRecorder) -> ClusterResult:
            if plan.apply is not None:
                return plan.apply(writer)
            if plan.action == "merge":
                rules.file(writer.change.ledger, plan.issue, rules.Doer(actor_of("cluster"), writer.now), plan.reason)
            return plan.result

        return replace(plan, apply=answer, needs_review=True)

    def item_of(self, issue: Issue) -> str:
        """Return the members of an issue's group; an issue that names a single memory asks for its best group."""
        return json.dumps(issue.memory_ids)

    def _is_to_merge(self, group: MemoryGroup) -> bool:
        if clustering.action_of(group.cohesion) != "merge" or group.has_turns:
            return False
        size = sum(len(memory.record.content.encode("utf-8", "surrogatepass")) for memory in group.memories)
        if size > self._runtime.max_bytes:
            return False
        # A memory is merged only in the most cohesive of its groups.
        merging = IssueSelection(agents=("merge",), statuses=UNFINISHED, memory_ids=group.ids)
        return not any(
            set(group.ids) != set(issue.memory_ids) and (stated_share(issue, "cohesion") or 1.0) >= group.cohesion
            for issue in self._runtime.issues.selected(merging)
            if len(issue.memory_ids) > 1
        )

    def _plan_of(self, group: MemoryGroup) -> AgentPlan[ClusterResult]:
        """Return the plan that proposes to merge a group, or links its similar pairs.

        Contradicting pairs are not linked; a person is asked about each, as an item of its own.
        """
        is_to_merge, pairs, conflicts = self._is_to_merge(group), group.similar_pairs, Counter[Doubt]()
        action: clustering.Action = "merge"
        if is_to_merge:
            conflicts = merge(sources_of(group.memories)).conflicts
        else:
            action = "ignore" if group.cohesion < clustering.LINKED else "link"
            contradicting = _contradicting(group)
            pairs = tuple(pair for pair in group.similar_pairs if pair[:2] not in contradicting)
            if not pairs:
                pairs, conflicts = group.similar_pairs, sum(contradicting.values(), Counter[Doubt]())
        confidence = confidence_of(group.cohesion, len(group.ids), conflicts)
        # For a merge the result states the confidence without conflicts; the issue states it with them.
        result_confidence = confidence_of(group.cohesion, len(group.ids), Counter()) if is_to_merge else confidence
        result = ClusterResult(
            cluster_id=clustering.cluster_id(group.ids),
            memory_ids=list(group.ids),
            cohesion=group.cohesion,
            action=action,
            confidence=result_confidence,
        )
        is_done = not is_to_merge and _are_linked(pairs, linked_pairs(self._runtime, group.ids))

        def link(recorder: ChangeRecorder) -> ClusterResult:
            links = recorder.change.links(group.ids)
            linked = {frozenset((edge.source, edge.target)) for edge in links if edge.origin != RULE}
            if not is_done and _are_linked(pairs, linked):
                raise NoRelation("others linked these memories meanwhile", remedy="leave them as they are")
            for one, other, similarity in pairs:
                if frozenset((one, other)) not in linked:
                    recorder.link(Link(one, other, RELATED, similarity, recorder.now))
            return result

        notes: dict[str, object] = {"cluster_id": result.cluster_id, "cohesion": group.cohesion}
        reason = f"{len(group.ids)} memories with a mean similarity of {group.cohesion:.2f}"
        return AgentPlan(
            result=result,
            basis=group.memories,
            agent="merge" if is_to_merge else self.name,
            action=action,
            confidence=confidence,
            reason=reason + doubt_text(conflicts),
            extra=notes | ({"conflicts": dict(sorted(conflicts.items()))} if conflicts else {}),
            needs_review=bool(conflicts) and not is_to_merge,
            apply=link if action == "link" else None,
            is_filed=is_to_merge or (action == "link" and not is_done),
        )

    def _grouped(self) -> list[Issue]:
        return [issue for issue in self._unfinished("merge", "cluster") if len(issue.memory_ids) > 1]

    def finish(self) -> None:
        """Close the moot issues, and those that ask for the group of one memory, which has been looked for."""
        super().finish()
        groups = {id_: issue.id for issue in self._grouped() for id_ in issue.memory_ids}
        for request in self._runtime.issues.selected(IssueSelection(agents=(self.name,), statuses=("open",))):
            if len(request.memory_ids) == 1:
                issue_id = groups.get(request.memory_ids[0])
                reason = f"issue {issue_id} is about its group" if issue_id else "nothing else is to be done with it"
                self._attempt(request.id, partial(self._close, request.id, reason))


def stated_share(issue: Issue, name: str) -> float | None:
    """Return the value of `name` in the notes of an issue, None unless it is a number from 0 to 1."""
    with suppress(UsageError):
        return fraction(name, split_notes(issue.notes)[0].get(name))
    return None


def doubt_text(conflicts: Counter[Doubt]) -> str:
    """Return the end of a sentence that says what speaks against a merge, "" if nothing does."""
    kinds = ", ".join(f"{count} by {kind}" for kind, count in sorted(conflicts.items()) if kind != "length")
    may_contradict = f"; sentences may contradict each other: {kinds}" if kinds else ""
    return may_contradict + ("; too long to compare all sentences" if conflicts["length"] else "")


def _are_linked(pairs: Iterable[tuple[str, str, float]], linked: set[frozenset[str]]) -> bool:
    return all(frozenset(pair[:2]) in linked for pair in pairs)


def _contradicting(group: MemoryGroup) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return the similar pairs of a group that contradict each other, with the kinds of their contradictions."""
    return contradictions(sources_of(group.memories), [pair[:2] for pair in group.similar_pairs])


def listed_ids(item: str) -> list[Any]:
    """Return the elements of an item that is a JSON array, an empty list for any other item."""
    try:
        ids = json.loads(item) if item.startswith("[") else None
    except (ValueError, RecursionError):
        ids = None
    return ids if isinstance(ids, list) else []
