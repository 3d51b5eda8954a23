"""Decide whether a new memory is added, merged with a duplicate or stored as a new version.

Reads and writes through a `MemoryChange`, inside its transaction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from commonplace.dataclasses import dataclass, replace
from commonplace.memory.supersession import judged
from commonplace.memory.view import Outcome, RetentionPolicy
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import restore
from commonplace.search.rank import COMPARABLE, COMPETING, MIN_RELATED
from commonplace.search.request import MAX_QUERY_CHARACTERS, Request
from commonplace.search.result import reference
from commonplace.search.retrieve import POOL_OWNERS, Searcher
from commonplace.search.supersession import MIN_GAP_S
from commonplace.store.memories import MemoryChange
from commonplace.store.rows import checked
from commonplace.store.store import Store
from commonplace.text.similarity import contained_share, is_near_duplicate
from commonplace.types import (
    TIERS,
    Filter,
    Hit,
    Kind,
    MemoryRecord,
    MemoryWrite,
    Method,
    Owner,
    Selection,
    StoredMemory,
)

_NUMBERS = re.compile(r"\d+")
_MAX_COMPARED = 32


@dataclass(frozen=True, slots=True)
class Admission:
    """What was done with a write.

    Attributes:
        missing_tags: tags of the write that the memory it was joined with lacks.
    """

    stored: StoredMemory
    outcome: Outcome
    notices: tuple[str, ...] = ()
    missing_tags: tuple[str, ...] = ()


def admit(
    change: MemoryChange, write: MemoryWrite, policy: RetentionPolicy, now: float, *, has_given_id: bool, force: bool
) -> Admission:
    """Write a memory where it is new; touch the one that says the same already, whoever wrote it.

    A turn of a conversation is never joined with another memory: what was said twice was said twice. With `force`
    nothing is compared but ids.
    """
    if has_given_id:
        known = change.find(write.owner.id)
        if known is not None:
            return _again(change, known, write, policy, now)
    if not force and not write.owner.session:
        twin = _twin(change, write)
        if twin is not None:
            return _join(change, twin, write, policy, now)
    return Admission(_added(change, write, now), "added")


def replaced(change: MemoryChange, known: StoredMemory, write: MemoryWrite, now: float) -> StoredMemory:
    """Write the next version of a memory, whose own version and place in its session go on from the known one.

    It begins when the known one ends, even where the clock was set back meanwhile: no two versions are of one time.
    """
    now = max(now, known.created_at if known.expired_at is None else known.expired_at)
    if known.expired_at is None:
        change.expire(known.number, known.record, now)
    record = replace(write.record, version=known.record.version + 1, born_at=known.record.born_at)
    stays = write.owner.session == known.owner.session
    owner = replace(write.owner, position=known.owner.position) if stays else write.owner
    return _added(change, replace(write, owner=owner, record=record, is_placed=stays), now)


def _again(
    change: MemoryChange, known: StoredMemory, write: MemoryWrite, policy: RetentionPolicy, now: float
) -> Admission:
    """An id that is known comes again: with the same words it is the same memory, with others its next version.

    Where no source is named it keeps its own.
    """
    old = known.record
    new = write.record if write.record.source else replace(write.record, source=old.source)
    is_same = known.expired_at is None and _meaning(old, known.owner) == _meaning(new, write.owner)
    if not is_same:
        carried = replace(
            new,
            use_count=old.use_count,
            strength=old.strength,
            uses=old.uses,
            last_used=max(old.last_used, now),
            review_count=old.review_count,
        )
        return Admission(replaced(change, known, replace(write, record=carried), now), "updated")
    if write.owner.session:
        return Admission(known, "unchanged")
    return _touched(change, known, policy, now, "it was remembered under this id before, with the same words")


def _meaning(record: MemoryRecord, owner: Owner) -> tuple[object, ...]:
    """Return what of a memory makes it another version when it differs."""
    said = (record.content, record.source, record.category, record.metadata, record.entities)
    return (*said, owner.tags, owner.session)


def _twin(change: MemoryChange, write: MemoryWrite) -> StoredMemory | None:
    """Return the memory that says the same, the one with exactly the same words first, then the newest."""
    content = write.record.content
    alike = [each for each in change.alike(write.digest, write.bands) if not each.owner.session]
    exact = [each for each in alike if each.record.content == content]
    if exact:
        return exact[0]
    # Lines of one form, such as those of a log, are all alike but for their numbers.
    numbers = _NUMBERS.findall(content)
    near = [each for each in reversed(alike) if _NUMBERS.findall(each.record.content) == numbers]
    return next((each for each in near[:_MAX_COMPARED] if is_near_duplicate(content, each.record.content)), None)


def _join(
    change: MemoryChange, twin: StoredMemory, write: MemoryWrite, policy: RetentionPolicy, now: float
) -> Admission:
    """Touch a memory that says the same, and let it gain what the new one brings: entities, a higher tier, trust."""
    old, new = twin.record, write.record
    how = "exactly" if old.content == new.content else "in nearly the same words"
    notice = f"this was remembered before, {how}, as {twin.owner.id}; that memory was touched"
    record = replace(policy.used(old, now), entities=tuple(dict.fromkeys((*old.entities, *new.entities))))
    if TIERS.index(new.tier) > TIERS.index(record.tier):
        record = replace(record, tier=new.tier)
    if new.trust > record.trust:
        record = replace(record, trust=new.trust, origin=new.origin)
    change.revise(twin.number, record)
    missing = tuple(tag for tag in write.owner.tags if tag not in twin.owner.tags)
    return Admission(replace(twin, record=record), "touched", (notice,), missing)


def _touched(change: MemoryChange, known: StoredMemory, policy: RetentionPolicy, now: float, notice: str) -> Admission:
    record = policy.used(known.record, now)
    change.revise(known.number, record)
    return Admission(replace(known, record=record), "touched", (notice,))


def _added(change: MemoryChange, write: MemoryWrite, now: float) -> StoredMemory:
    number = change.add(write, created_at=now)
    if not write.owner.session:
        return StoredMemory(number, checked(write.owner), checked(write.record), now)
    stored = change.find(write.owner.id)  # with its place in the session
    assert stored is not None
    return stored


MIN_WORDS = 8
"""A shorter text may well stand in a file by chance."""
MIN_SHARE = 0.9
_PASSAGES = 5
_QUERY_CHARACTERS = 2_000


_NEAREST = 50
_SEARCHED = 8
"""Of more memories no search is made for each: they are compared with the newest at once."""
_COMPARED = 500


def told(memory: StoredMemory) -> float:
    """Return when a memory was said."""
    return memory.record.born_at if memory.owner.at is None else memory.owner.at


class Recogniser:
    """Finds the artifact or knowledge that a text was taken from, and what contests a memory. It only reads."""

    def __init__(self, store: Store, searcher: Searcher, namespace: str, tokens: StaticEmbedder) -> None:
        self._store = store
        self._searcher = searcher
        self._namespace = namespace
        self._tokens = tokens

    def overtakers(self, memories: Mapping[str, tuple[StoredMemory, float]]) -> dict[str, list[StoredMemory]]:
        """Return by id what was said until a time and is known to have overtaken a memory, or judged so by a search."""
        store, namespace = self._store, self._namespace
        with store.snapshot():
            known = store.statements(namespace, [each.number for each, _ in memories.values()])
            pool = self._around([each for each, _ in memories.values()])
            settled = store.statements(namespace, [*pool])
            others = {each.owner.id: each for each in pool.values()}
            for id_ in {id_ for each in known.values() for id_ in each.overtaken_by} - others.keys():
                other = store.memory(namespace, id_)
                others |= {} if other is None else {id_: other}
            passages = store.tokens(namespace, store.passages_of(namespace, [*pool])).values()
        first = {each.owner_number: each for each in sorted(passages, reverse=True) if each.vector}
        kept = [pool[number] for number in first]
        values = np.zeros((0, 0))
        if kept:
            vectors = restore([each.vector for each in first.values()])
            # As a search for the memory's own words would: what is further from them must compete the more.
            less = np.minimum(vectors @ vectors.T - 1 + MIN_RELATED, 0)
            values = judged(kept, [*first.values()], self._tokens) + less
        row_of = {number: row for row, number in enumerate(first)}
        found: dict[str, list[StoredMemory]] = {}
        for id_, (each, until) in memories.items():
            certain = known[each.number].overtaken_by if each.number in known else frozenset()
            found[id_] = [others[by] for by in certain if by in others and told(others[by]) <= until]
            for column in np.flatnonzero(values[row_of[each.number]] >= COMPETING) if each.number in row_of else ():
                other = kept[column]
                beside = settled[each.number].beside | settled[other.number].beside
                # What was stored right after it came with it, unless all of that is a matter of a moment.
                is_apart = told(other) - told(each) >= MIN_GAP_S or until - told(other) < MIN_GAP_S
                if told(other) < until and is_apart and not {id_, other.owner.id} & beside:
                    found[id_].append(other)
        return found

    def _around(self, memories: Sequence[StoredMemory]) -> dict[int, StoredMemory]:
        """Return by number what is to be compared with some memories, and these; nothing where that would tell nothing.

        Another embedder than ours has no cosines that tell.
        """
        stamp = self._store.embedding()
        if stamp is None or stamp.of("memory").name not in COMPARABLE:
            return {}
        chosen = Selection(statuses=("active", "promoted"), limit=_COMPARED)
        if len(memories) <= _SEARCHED:
            near = (self._nearest(each.record.content, "semantic", ("memory",), _NEAREST) for each in memories)
            chosen = replace(chosen, ids=tuple({hit.owner_id for hits in near for hit in hits}))
        ids, least = {each.owner.id for each in memories}, min(map(told, memories))
        pool = [each for each in self._store.memories(self._namespace, chosen) if each.owner.id not in ids]
        both = [*pool, *memories]
        return {each.number: each for each in both} if any(told(each) > least for each in both) else {}

    def source_of(self, text: str) -> str:
        """Return the reference of the stored passage that holds at least nine tenths of a text, "" where none does."""
        if len(text.split(maxsplit=MIN_WORDS)) < MIN_WORDS or len(text) > MAX_QUERY_CHARACTERS:
            return ""
        counts = self._store.counts(self._namespace)
        if not counts["artifacts"] and not counts["knowledge"]:
            return ""
        hits = self._nearest(text, "bm25", ("artifact", "knowledge"), _PASSAGES)
        for hit in hits:
            if contained_share(text, hit.text) >= MIN_SHARE:
                return reference(hit)
        # A recalled text may be several passages, one after the other.
        together = "\n".join(hit.text for hit in hits)
        return reference(hits[0]) if hits and contained_share(text, together) >= MIN_SHARE else ""

    def _nearest(self, text: str, method: Method, kinds: tuple[Kind, ...], limit: int) -> tuple[Hit, ...]:
        request = Request(
            query=text[:_QUERY_CHARACTERS],
            namespace=self._namespace,
            limit=limit,
            method=method,
            wanted=Filter(kinds=kinds),
            min_score=0.0,
            stage1_limit=max(limit, POOL_OWNERS),  # of fewer, a second round would be asked for
            per_owner=limit,
        )
        return self._searcher.search(request).hits
