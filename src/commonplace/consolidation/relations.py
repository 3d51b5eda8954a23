"""The relation agent: link memories that share names, tags and words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import ClassVar, Final
from uuid import UUID, uuid5

from commonplace.consolidation import pairs
from commonplace.consolidation.base import ChangeRecorder, Plan, PlannedAgent
from commonplace.consolidation.cluster import RELATED, listed_ids, why_doubtful
from commonplace.consolidation.groups import Named, Names, speakers, vectors_of
from commonplace.consolidation.results import RelationResult
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.consolidation.text_merge import DOUBTFUL, contradictions, sources_of
from commonplace.errors import NoRelation, UsageError
from commonplace.types import RULE, SUPERSEDES, Link, StoredMemory
from commonplace.types.ledger import Agent, Issue

RELATION_IDS: Final = UUID("5c6d1c52-6f0b-5f0e-9a35-0d6f6f2f8f11")
"""Namespace of the UUIDv5 of pairs; it never changes, so that a pair has the same id in every run."""

_MAX_LISTED: Final = 5


class _Seen:
    """What the memories name, and which names and tags say nothing: hubs, and in turns whoever speaks."""

    def __init__(self, runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> None:
        self._names = Names(runtime.store, runtime.namespace)
        self._hubs = pairs.hubs([self._names.of(memory).keys() for memory in memories])
        self._tag_hubs = pairs.hubs([_tags(memory) for memory in memories])
        self._speakers = speakers(memory.record.content for memory in memories if memory.owner.session)

    def named(self, memory: StoredMemory) -> Named:
        ignored = self._hubs | self._speakers if memory.owner.session else self._hubs
        return {form: name for form, name in self._names.of(memory).items() if form not in ignored}

    def tags(self, memory: StoredMemory) -> set[str]:
        return _tags(memory) - self._tag_hubs


class RelationshipDiscovery(PlannedAgent[RelationResult]):
    """Links pairs of active memories that share names, or that are alike by 0.40, and that no link joins yet.

    An item is `idA:idB`, sorted; a JSON array of the two ids where one of them holds a colon. Names and tags that more
    than a hundredth of the memories share, and more than 20, count as if they were not there.
    """

    name: ClassVar[Agent] = "relations"

    _seen: _Seen | None = None

    def scan(self) -> list[str]:
        """Return the pairs that may be related, the surest first, ties by id.

        At most 5 with one memory and 1,000 in all: what is left comes in a later run. Proposals that wait count among
        the 5 of what would wait, too. Pairs that are less sure than 0.3 come last; nothing will be written for them.
        """
        store, namespace = self._runtime.store, self._runtime.namespace
        with store.snapshot():
            memories = self._runtime.memories()
            seen = self._seen = _Seen(self._runtime, memories)
            vectors = vectors_of(self._runtime, memories)
            # The pairs that are linked, derived from each other, or named together by an unfinished issue.
            apart = {(link.source, link.target) for link in store.links(namespace) if _joins(link)}
            apart |= {(source, memory.owner.id) for memory in memories for source in memory.record.derived_from}
            for issue in self._unfinished("relations", "merge", "cluster"):
                apart |= set(combinations(issue.memory_ids, 2))
            waiting = Counter(id_ for issue in self._unfinished("relations") for id_ in issue.memory_ids)
        rows = {memory.owner.id: row for row, memory in enumerate(memories)}
        places = [sorted((rows[one], rows[other])) for one, other in apart if one in rows and other in rows]
        known = {(first, second) for first, second in places}
        waits = {rows[id_]: number for id_, number in waiting.items() if id_ in rows}
        named = [seen.named(memory) for memory in memories]
        found = pairs.pairs(
            [each.keys() for each in named],
            [seen.tags(memory) for memory in memories],
            vectors,
            self._runtime.calibrated,
            known,
            [row for row, memory in enumerate(memories) if memory.owner.session],
            [_doubles(each) for each in named],
            pairs.Waiting(waits, self.confidence_config.log_threshold),
        )
        return [item_of_pair(memories[one].owner.id, memories[other].owner.id) for one, other in found]

    def plan(self, item: str) -> Plan[RelationResult]:
        """Return how two memories are linked."""
        first, second = (self._active(id_) for id_ in pair_of(item))
        ids = [first.owner.id, second.owner.id]
        links = self._runtime.store.links(self._runtime.namespace, ids[:1])
        if any({link.source, link.target} == {*ids} and _joins(link) for link in links):
            raise NoRelation(f"{ids[0]!r:.80} and {ids[1]!r:.80} are linked already", remedy="leave the link as it is")
        seen = self._seen = self._seen or _Seen(self._runtime, self._runtime.memories())
        named = seen.named(first), seen.named(second)
        tags = seen.tags(first), seen.tags(second)
        vectors = vectors_of(self._runtime, [first, second])
        similarity = float(self._runtime.calibrated(vectors[:1] @ vectors[1])[0])
        names = _whole(named[0][form] for form in named[0].keys() & named[1].keys())
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
        strength = pairs.strength((named[0].keys(), named[1].keys()), tags)
        result = RelationResult(
            from_memory_id=ids[0],
            to_memory_id=ids[1],
            relation_id=relation_id(*ids),
            strength=strength,
            reasoning=_reasoning(names, in_tags, similarity),
            shared_entities=names,
            confidence=confidence,
        )

        def link(acts: ChangeRecorder) -> RelationResult:
            if any({each.source, each.target} == {*ids} and _joins(each) for each in acts.change.links(ids[:1])):
                raise NoRelation("others linked these memories meanwhile", remedy="leave the link as it is")
            # The formula gives 0 to two that share neither names nor tags: these are linked because they are alike.
            acts.link(Link(ids[0], ids[1], RELATED, strength or similarity, acts.now))
            return result

        return Plan(
            result=result,
            basis=(first, second),
            agent=self.name,
            action="link",
            confidence=confidence,
            urgency="low",
            why=f"shared names: {len(names)}, shared tags: {len(in_tags)}, similarity: {similarity:.2f}"
            + why_doubtful(conflicts or Counter()),
            extra={
                "relation_id": result.relation_id,
                "strength": round(strength, 6),
                "names": len(names),
                "tags": len(in_tags),
                "similarity": round(similarity, 6),
            },
            needs_a_person=bool(conflicts),
            apply=link,
        )

    def item_of(self, issue: Issue) -> str:
        return item_of_pair(*self._named(issue, 2))


def _joins(link: Link) -> bool:
    """Return whether two memories need no other link; a question that a rule asks says nothing of how they relate."""
    return link.origin != RULE or link.type == SUPERSEDES


def item_of_pair(one: str, other: str) -> str:
    """Return the item that two memories are, in whatever order they are given."""
    ids = sorted((one, other))
    is_plain = ":" not in "".join(ids) and not ids[0].startswith("[")
    return ":".join(ids) if is_plain else json.dumps(ids)


def pair_of(item: str) -> tuple[str, str]:
    """Return the ids that an item names, sorted; refuse what does not name two."""
    ids = listed_ids(item) or item.split(":")
    if len(ids) != 2 or not all(isinstance(id_, str) and id_ for id_ in ids) or ids[0] == ids[1]:
        raise UsageError(
            f"the pair is {item!r:.80}", remedy='give idA:idB, or ["idA", "idB"] where an id holds a colon'
        )
    one, other = sorted(ids)
    return one, other


def relation_id(one: str, other: str) -> str:
    """Return the id of the relation of two memories, the same in whatever order they are given."""
    name = "\n".join(f"{len(id_)}:{id_}" for id_ in sorted((one, other)))
    return str(uuid5(RELATION_IDS, name.encode("utf-8", "surrogatepass").hex()))


def _whole(names: Iterable[str]) -> list[str]:
    """Return names, sorted, without those that are a part of another: `Terraform` in `Terraform state` is no second."""
    known = sorted(names)
    return [name for name in known if not any(_is_part(name, other) for other in known)]


def _doubles(named: Named) -> set[str]:
    """Return a key for each name that is a part of another one here: of several the first, which is near enough."""
    found = set()
    for form, name in named.items():
        wholes = [other for other, whole in named.items() if _is_part(name, whole)]
        found |= {f"{form}\n{min(wholes)}"} if wholes else set()
    return found


def _is_part(name: str, whole: str) -> bool:
    return len(name) < len(whole) and f" {name.casefold()} " in f" {whole.casefold()} "


def _tags(memory: StoredMemory) -> set[str]:
    return {tag.casefold() for tag in memory.owner.tags}


def _reasoning(names: list[str], tags: list[str], similarity: float) -> str:
    said = []
    for what, words in (("both name", names), ("both are tagged", tags)):
        more = len(words) - _MAX_LISTED
        if words:
            said.append(f"{what} {', '.join(words[:_MAX_LISTED])}" + (f" and {more} more" if more > 0 else ""))
    shared = f"{'; '.join([*said, 'their texts are similar'])} by {similarity:.2f}."
    return shared[0].upper() + shared[1:]
