"""The cluster agent: propose to merge duplicates and link memories on the same subject."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar, Final

from commonplace.consolidation import pairs as clustering
from commonplace.consolidation.base import ChangeRecorder, Plan, PlannedAgent
from commonplace.consolidation.groups import Group, best_group, group_of, groups_of, linked_pairs
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
"""The type of the links between memories that are alike."""


class ClusterDetector(PlannedAgent[ClusterResult]):
    """Groups active memories of any tier by the similarity of their vectors: single linkage at 0.40, two to ten.

    An item is a JSON array of the ids of a group, sorted, as `scan` returns it, or the id of one memory, which means
    its best group. Merges are proposed as issues of the agent `merge`, and never of turns of a conversation.
    """

    name: ClassVar[Agent] = "cluster"

    def scan(self) -> list[str]:
        """Return the groups that no unfinished issue holds a part of, the most cohesive first, ties by id.

        Of a group that is linked, each pair that contradicts each other comes behind it, as an item of its own.
        """
        with self._runtime.store.snapshot():
            named = {id_ for issue in self._grouped() for id_ in issue.memory_ids}
            memories = (each for each in self._runtime.memories() if each.owner.id not in named)
            found = groups_of(self._runtime, memories)
            linked = linked_pairs(self._runtime, (id_ for group in found for id_ in group.ids))
        found.sort(key=lambda group: (-group.cohesion, group.ids))
        items = list[tuple[str, ...]]()
        for group in found:
            if clustering.action_of(group.cohesion) == "merge" and not group.has_turns:
                items.append(group.ids)
                continue
            # The group, where something is to be done with it as a whole, and the pairs to ask a person about.
            contradicting = {} if _are_linked(group.alike, linked) else _contradicting(group)
            if not _are_linked((pair for pair in group.alike if pair[:2] not in contradicting), linked):
                items.append(group.ids)
            items += [pair for pair in contradicting if frozenset(pair) not in linked]
        return [json.dumps(ids) for ids in items]

    def plan(self, item: str) -> Plan[ClusterResult]:
        """Return what is to be done with a group, given by its members or by one of them."""
        ids = listed_ids(item)
        if not all(isinstance(id_, str) for id_ in ids) or not 0 < len(ids) == len({*ids}):
            ids = [item]
        if len(ids) > clustering.MAX_GROUP:
            raise UsageError(
                f"the group has {len(ids)} memories, the limit is {clustering.MAX_GROUP}", remedy="name fewer memories"
            )
        found = [self._active(id_) for id_ in sorted(ids)]
        group = best_group(self._runtime, found[0]) if len(found) == 1 else group_of(self._runtime, found)
        plan = self._plan_of(group)
        if item in ids or len(ids) > 1:
            return plan

        # Only an issue names a single memory by an array: it asks for the group, and is closed with what it finds.
        def answer(acts: ChangeRecorder) -> ClusterResult:
            if plan.apply is not None:
                return plan.apply(acts)
            if plan.action == "merge":
                rules.file(acts.change.ledger, plan.issue, rules.Doer(actor_of("cluster"), acts.now), plan.why)
            return plan.result

        return replace(plan, apply=answer, needs_a_person=True)

    def item_of(self, issue: Issue) -> str:
        """Return the members of the group that an issue is about; one that names a single memory asks for its group."""
        return json.dumps(issue.memory_ids)

    def _is_to_merge(self, group: Group) -> bool:
        """Return whether a group is to be merged; what may not be merged is linked."""
        if clustering.action_of(group.cohesion) != "merge" or group.has_turns:
            return False
        size = sum(len(memory.record.content.encode("utf-8", "surrogatepass")) for memory in group.memories)
        if size > self._runtime.max_bytes:
            return False
        # A member merges in one group only, the most cohesive.
        merging = IssueSelection(agents=("merge",), statuses=UNFINISHED, memory_ids=group.ids)
        return not any(
            set(group.ids) != set(issue.memory_ids) and (stated_share(issue, "cohesion") or 1.0) >= group.cohesion
            for issue in self._runtime.issues.selected(merging)
            if len(issue.memory_ids) > 1
        )

    def _plan_of(self, group: Group) -> Plan[ClusterResult]:
        """Return the plan that proposes to merge a group, or links what is alike in it.

        Pairs that contradict each other are not linked but asked about, each as an item of its own.
        """
        is_to_merge, pairs, conflicts = self._is_to_merge(group), group.alike, Counter[Doubt]()
        action: clustering.Action = "merge"
        if is_to_merge:
            conflicts = merge(sources_of(group.memories)).conflicts
        else:
            action = "ignore" if group.cohesion < clustering.LINKED else "link"
            contradicting = _contradicting(group)
            pairs = tuple(pair for pair in group.alike if pair[:2] not in contradicting)
            if not pairs:
                pairs, conflicts = group.alike, sum(contradicting.values(), Counter[Doubt]())
        confidence = confidence_of(group.cohesion, len(group.ids), conflicts)
        # Of a merge the result says how alike the memories are; how sure it is, is said by its issue.
        stated = confidence_of(group.cohesion, len(group.ids), Counter()) if is_to_merge else confidence
        result = ClusterResult(
            cluster_id=clustering.cluster_id(group.ids),
            memory_ids=list(group.ids),
            cohesion=group.cohesion,
            action=action,
            confidence=stated,
        )
        is_done = not is_to_merge and _are_linked(pairs, linked_pairs(self._runtime, group.ids))

        def link(acts: ChangeRecorder) -> ClusterResult:
            links = acts.change.links(group.ids)
            known = {frozenset((each.source, each.target)) for each in links if each.origin != RULE}
            if not is_done and _are_linked(pairs, known):
                raise NoRelation("others linked these memories meanwhile", remedy="leave them as they are")
            for one, other, similarity in pairs:
                if frozenset((one, other)) not in known:
                    acts.link(Link(one, other, RELATED, similarity, acts.now))
            return result

        notes: dict[str, object] = {"cluster_id": result.cluster_id, "cohesion": group.cohesion}
        why = f"{len(group.ids)} memories with a mean similarity of {group.cohesion:.2f}"
        return Plan(
            result=result,
            basis=group.memories,
            agent="merge" if is_to_merge else self.name,
            action=action,
            confidence=confidence,
            why=why + why_doubtful(conflicts),
            extra=notes | ({"conflicts": dict(sorted(conflicts.items()))} if conflicts else {}),
            needs_a_person=bool(conflicts) and not is_to_merge,
            apply=link if action == "link" else None,
            is_filed=is_to_merge or (action == "link" and not is_done),
        )

    def _grouped(self) -> list[Issue]:
        return [issue for issue in self._unfinished("merge", "cluster") if len(issue.memory_ids) > 1]

    def finish(self) -> None:
        """Close the issues that ask for the group of one memory: it was looked for."""
        super().finish()
        groups = {id_: issue.id for issue in self._grouped() for id_ in issue.memory_ids}
        for asked in self._runtime.issues.selected(IssueSelection(agents=(self.name,), statuses=("open",))):
            if len(asked.memory_ids) == 1:
                found = groups.get(asked.memory_ids[0])
                reason = f"issue {found} is about its group" if found else "nothing else is to be done with it"
                self._attempt(asked.id, partial(self._close, asked.id, reason))


def stated_share(issue: Issue, name: str) -> float | None:
    """Return a number from 0 to 1 in the notes of an issue, None if there is none."""
    with suppress(UsageError):
        return fraction(name, split_notes(issue.notes)[0].get(name))
    return None


def why_doubtful(conflicts: Counter[Doubt]) -> str:
    """Return the end of a sentence that says in what memories contradict each other, "" where they do not."""
    if not conflicts:
        return ""
    kinds = ", ".join(f"{count} by {kind}" for kind, count in sorted(conflicts.items()))
    return f"; sentences contradict each other: {kinds}"


def _are_linked(pairs: Iterable[tuple[str, str, float]], linked: set[frozenset[str]]) -> bool:
    return all(frozenset(pair[:2]) in linked for pair in pairs)


def _contradicting(group: Group) -> dict[tuple[str, str], Counter[Doubt]]:
    """Return the pairs of a group that are alike and say nearly the same, but for where they contradict each other."""
    return contradictions(sources_of(group.memories), [pair[:2] for pair in group.alike])


def listed_ids(item: str) -> list[Any]:
    """Return the elements of an item that is a JSON array, nothing for any other item."""
    try:
        ids = json.loads(item) if item.startswith("[") else None
    except (ValueError, RecursionError):
        ids = None
    return ids if isinstance(ids, list) else []
