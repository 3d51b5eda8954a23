"""The relation agent: link memories that share names, tags and words."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from typing import ClassVar, Final
from uuid import UUID, uuid5

from commonplace.consolidation import pairs
from commonplace.consolidation.base import AgentPlan, ChangeRecorder, PlannedAgent
from commonplace.consolidation.cluster import RELATED, doubt_text, listed_ids
from commonplace.consolidation.groups import Labels, NamesByForm, vectors_of
from commonplace.consolidation.results import RelationResult
from commonplace.consolidation.text_merge import DOUBTFUL, contradictions, sources_of
from commonplace.errors import NoRelation, UsageError
from commonplace.types import RULE, SUPERSEDES, Link
from commonplace.types.ledger import Agent, Issue

RELATION_IDS: Final = UUID("5c6d1c52-6f0b-5f0e-9a35-0d6f6f2f8f11")
"""Namespace of the UUIDv5 of pairs; it never changes, so that a pair has the same id in every run."""

_MAX_LISTED: Final = 5


class RelationshipDiscovery(PlannedAgent[RelationResult]):
    """Links pairs of active memories that share names or have a similarity of 0.40 or more, and are not linked yet.

    An item is `idA:idB`, sorted, or a JSON array of the two ids if one of them contains a colon. Names and tags shared
    by more than 1 % of the memories, and by more than 20, are ignored, as are those that more than 200 share.
    """

    name: ClassVar[Agent] = "relations"

    _labels: Labels | None = None

    def scan(self) -> list[str]:
        """Return the pairs that may be related, highest confidence first, ties by id.

        At most 5 pairs per memory and 1,000 in all; the others come in a later run. Waiting proposals count towards the
        5 of pairs that would wait too. Pairs with confidence below 0.3 come last; nothing is written for them.
        """
        store, namespace = self._runtime.store, self._runtime.namespace
        with store.snapshot():
            memories = self._runtime.memories()
            labels = self._labels = Labels(self._runtime, memories)
            vectors = vectors_of(self._runtime, memories)
            # Exclude pairs that are linked, derived from each other, or named together by an unfinished issue.
            related = {(link.source, link.target) for link in store.links(namespace) if _joins(link)}
            related |= {(source, memory.owner.id) for memory in memories for source in memory.record.derived_from}
            for issue in self._unfinished("relations", "merge", "cluster"):
                related |= set(combinations(issue.memory_ids, 2))
            waiting = Counter(id_ for issue in self._unfinished("relations") for id_ in issue.memory_ids)
        rows = {memory.owner.id: row for row, memory in enumerate(memories)}
        row_pairs = [sorted((rows[one], rows[other])) for one, other in related if one in rows and other in rows]
        excluded = {(first, second) for first, second in row_pairs}
        waiting_rows = {rows[id_]: number for id_, number in waiting.items() if id_ in rows}
        name_maps = [labels.names(memory) for memory in memories]
        candidates = pairs.pairs(
            [names.keys() for names in name_maps],
            [labels.tags(memory) for memory in memories],
            vectors,
            self._runtime.calibrated,
            excluded,
            [row for row, memory in enumerate(memories) if memory.owner.session],
            [_partial_names(names) for names in name_maps],
            pairs.PendingPairs(waiting_rows, self.confidence_config.log_threshold),
        )
        return [item_of_pair(memories[one].owner.id, memories[other].owner.id) for one, other in candidates]

    def plan(self, item: str) -> AgentPlan[RelationResult]:
        """Return the plan for linking two memories."""
        first, second = (self._active(id_) for id_ in pair_of(item))
        ids = [first.owner.id, second.owner.id]
        links = self._runtime.store.links(self._runtime.namespace, ids[:1])
        if any({link.source, link.target} == {*ids} and _joins(link) for link in links):
            raise NoRelation(f"{ids[0]!r:.80} and {ids[1]!r:.80} are linked already", remedy="leave the link as it is")
        labels = self._labels = self._labels or Labels(self._runtime, self._runtime.memories())
        name_maps = labels.names(first), labels.names(second)
        tags = labels.tags(first), labels.tags(second)
        vectors = vectors_of(self._runtime, [first, second])
        similarity = float(self._runtime.calibrated(vectors[:1] @ vectors[1])[0])
        shared = sorted(name_maps[0][form] for form in name_maps[0].keys() & name_maps[1].keys())
        # `Terraform` is part of `Terraform state`.
        names = [name for name in shared if not any(_is_part(name, other) for other in shared)]
        are_turns = bool(first.owner.session and second.owner.session)
        counts = pairs.counts_likeness(are_turns, len(names), len(tags[0] & tags[1]))
        in_tags = sorted(tags[0] & tags[1])
        confidence = float(pairs.confidence(len(names), len(in_tags), similarity if counts else 0.0))
        if confidence < pairs.MIN_CONFIDENCE:
            raise NoRelation(
                f"{ids[0]!r:.80} and {ids[1]!r:.80} are related with a confidence of {confidence:.2f},"
                f" the minimum is {pairs.MIN_CONFIDENCE}",
                remedy="leave them apart, or link them yourself",
            )
        conflicts = contradictions(sources_of([first, second]), [(ids[0], ids[1])]).get((ids[0], ids[1]))
        confidence = min(confidence, DOUBTFUL) if conflicts else confidence
        strength = pairs.strength((name_maps[0].keys(), name_maps[1].keys()), tags)
        result = RelationResult(
            from_memory_id=ids[0],
            to_memory_id=ids[1],
            relation_id=relation_id(*ids),
            strength=strength,
            reasoning=_reasoning(names, in_tags, similarity),
            shared_entities=names,
            confidence=confidence,
        )

        def link(recorder: ChangeRecorder) -> RelationResult:
            if any({edge.source, edge.target} == {*ids} and _joins(edge) for edge in recorder.change.links(ids[:1])):
                raise NoRelation("others linked these memories meanwhile", remedy="leave the link as it is")
            # The formula gives 0 if two memories share neither names nor tags; these are linked for their similarity.
            recorder.link(Link(ids[0], ids[1], RELATED, strength or similarity, recorder.now))
            return result

        return AgentPlan(
            result=result,
            basis=(first, second),
            agent=self.name,
            action="link",
            confidence=confidence,
            urgency="low",
            reason=f"shared names: {len(names)}, shared tags: {len(in_tags)}, similarity: {similarity:.2f}"
            + doubt_text(conflicts or Counter()),
            extra={
                "relation_id": result.relation_id,
                "strength": round(strength, 6),
                "names": len(names),
                "tags": len(in_tags),
                "similarity": round(similarity, 6),
            },
            needs_review=bool(conflicts),
            apply=link,
        )

    def item_of(self, issue: Issue) -> str:
        return item_of_pair(*self._named(issue, 2))


def _joins(link: Link) -> bool:
    """Return whether a link makes another one needless; a rule's link does so only if it is a supersession."""
    return link.origin != RULE or link.type == SUPERSEDES


def item_of_pair(left: str, right: str) -> str:
    """Return the item for two memories, the same in either order."""
    ids = sorted((left, right))
    is_plain = ":" not in "".join(ids) and not ids[0].startswith("[")
    return ":".join(ids) if is_plain else json.dumps(ids)


def pair_of(item: str) -> tuple[str, str]:
    """Return the two ids that an item names, sorted; raise a `UsageError` unless there are two different ones."""
    ids = listed_ids(item) or item.split(":")
    if len(ids) != 2 or not all(isinstance(id_, str) and id_ for id_ in ids) or ids[0] == ids[1]:
        raise UsageError(
            f"the pair is {item!r:.80}", remedy='give idA:idB, or ["idA", "idB"] where an id holds a colon'
        )
    left, right = sorted(ids)
    return left, right


def relation_id(left: str, right: str) -> str:
    """Return the id of the relation between two memories, the same in either order."""
    name = "\n".join(f"{len(id_)}:{id_}" for id_ in sorted((left, right)))
    return str(uuid5(RELATION_IDS, name.encode("utf-8", "surrogatepass").hex()))


def _partial_names(names: NamesByForm) -> set[str]:
    """Return a key for each name that is part of another: the name and the first of these others, sorted by form."""
    doubles = set()
    for form, name in names.items():
        wholes = [other for other, whole in names.items() if _is_part(name, whole)]
        doubles |= {f"{form}\n{min(wholes)}"} if wholes else set()
    return doubles


def _is_part(name: str, whole: str) -> bool:
    return len(name) < len(whole) and f" {name.casefold()} " in f" {whole.casefold()} "


def _reasoning(names: list[str], tags: list[str], similarity: float) -> str:
    reasons = []
    for label, words in (("both name", names), ("both are tagged", tags)):
        hidden = len(words) - _MAX_LISTED
        if words:
            reasons.append(f"{label} {', '.join(words[:_MAX_LISTED])}" + (f" and {hidden} more" if hidden > 0 else ""))
    shared = f"{'; '.join([*reasons, 'their texts are similar'])} by {similarity:.2f}."
    return shared[0].upper() + shared[1:]
