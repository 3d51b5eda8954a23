"""What is known already of a text, and which memories a newer one may have overtaken.

A search judges the same of what it finds. A person's answers are links, of the types `SUPERSEDES` and `HOLDS_BESIDE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import replace
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, restore
from commonplace.search.rank import COMPARABLE, COMPETING, MIN_RELATED
from commonplace.search.request import MAX_QUERY_CHARACTERS, Request
from commonplace.search.result import reference
from commonplace.search.retrieve import POOL_OWNERS, Searcher
from commonplace.search.supersession import MIN_GAP_S, Wordings, judge
from commonplace.store.store import Store
from commonplace.text.similarity import contained_share, is_near_duplicate
from commonplace.types import HOLDS_BESIDE, SUPERSEDES, Filter, Hit, Kind, Method, Selection, StoredMemory, TokenEntry

COMPARED: Final = 1_000
"""So many of the newest memories are compared with each other."""
MIN_WORDS: Final = 8
"""A shorter text may well stand in a file by chance."""
MIN_SHARE: Final = 0.9
_PASSAGES: Final = 5
_QUERY_CHARACTERS: Final = 2_000
_NEAREST: Final = 50
_SEARCHED: Final = 8
"""Of more memories no search is made for each: they are compared with the newest at once."""
_COMPARED_AT_ONCE: Final = 500


class Overtaken(NamedTuple):
    """Two memories of which the newer one may have taken the older one's place.

    Attributes:
        disputes: of the graph, those between facts of either: they ask the same.
    """

    older: StoredMemory
    newer: StoredMemory
    disputes: frozenset[str] = frozenset()


def disputes_of(store: Store, namespace: str) -> dict[str, dict[str, set[str]]]:
    """Return the ids of disputed facts by dispute and by the memories that speak of them."""
    graph = store.graph(namespace)
    facts = {each.id: each.dispute for each in graph.disputed()}
    said = [mention for some in graph.mentions("relation", [*facts]).values() for mention in some]
    episodes = graph.episodes([*{each.episode for each in said}])
    found: dict[str, dict[str, set[str]]] = {}
    for each in said:
        memory = episodes[each.episode].memory if each.episode in episodes else ""
        if memory:
            found.setdefault(facts[each.subject], {}).setdefault(memory, set()).add(each.subject)
    return found


def is_comparable(store: Store) -> bool:
    """Return whether the cosines of memories are those of an embedder of ours: another's do not tell."""
    stamp = store.embedding()
    return stamp is not None and stamp.of("memory").name in COMPARABLE


def judged(kept: Sequence[StoredMemory], entries: Sequence[TokenEntry], tokens: StaticEmbedder) -> NDArray[np.float32]:
    """Return what a search would judge of memories with one passage of each; see `judge`."""
    texts = [np.frombuffer(each.token_ids, dtype=np.uint16) for each in entries]
    said = Wordings(tokens.tokenize).statements(
        np.concatenate(texts),
        np.array([*map(len, texts)]),
        times=np.array([np.nan if each.owner.at is None else each.owner.at for each in kept]),
        stored=np.array([each.record.born_at for each in kept]),
        sessions=[each.owner.session for each in kept],
        vectors=restore([each.vector for each in entries]),
    )
    with ONE_BLAS_THREAD:
        return judge(said)


def overtaken(store: Store, namespace: str, tokens: StaticEmbedder) -> list[Overtaken]:
    """Return each memory that a newer one may have overtaken, with the likeliest of those; the surest pair first.

    Turns of conversations and memories of several passages are left out, as are near duplicates and what is settled: by
    a link, or since the graph knows what ended.
    """
    with store.snapshot():
        if not is_comparable(store):
            return []
        chosen = Selection(statuses=("active", "promoted"), sessions=("",), order="newest", limit=COMPARED)
        known = {each.number: each for each in store.memories(namespace, chosen)}
        passages = store.tokens(namespace, store.passages_of(namespace, [*known])).values()
        settled = store.statements(namespace, [*known])
        links = store.links(namespace)
        disputes = disputes_of(store, namespace)
    counts = np.unique([each.owner_number for each in passages], return_counts=True)
    single = {int(number) for number, count in zip(*counts, strict=True) if count == 1}
    entries = [each for each in passages if each.owner_number in single and each.vector]
    if len(entries) < 2:
        return []
    kept = [known[each.owner_number] for each in entries]
    values = judged(kept, entries, tokens)
    apart = {frozenset((link.source, link.target)) for link in links if link.type in (SUPERSEDES, HOLDS_BESIDE)}
    newer, best = values.argmax(axis=1).tolist(), values.max(axis=1)
    found = []
    for place in np.argsort(-best, kind="stable").tolist():
        old, new = kept[place], kept[newer[place]]
        ids = frozenset((old.owner.id, new.owner.id))
        if best[place] < COMPETING or settled[old.number].overtaken_by or ids in apart:
            continue
        if not is_near_duplicate(old.record.content, new.record.content):
            between = frozenset(id_ for id_, said in disputes.items() if said.keys() >= ids)
            found.append(Overtaken(old, new, between))
    return found


class Recogniser:
    """Finds the artifact or knowledge that a text was taken from, and what contests a memory. It only reads."""

    def __init__(self, store: Store, searcher: Callable[[], Searcher], namespace: str, tokens: StaticEmbedder) -> None:
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
            found[id_] = [others[by] for by in certain if by in others and others[by].at <= until]
            for column in np.flatnonzero(values[row_of[each.number]] >= COMPETING) if each.number in row_of else ():
                other = kept[column]
                beside = settled[each.number].beside | settled[other.number].beside
                # What was stored right after it came with it, unless all of that is a matter of a moment.
                is_apart = other.at - each.at >= MIN_GAP_S or until - other.at < MIN_GAP_S
                if other.at < until and is_apart and not {id_, other.owner.id} & beside:
                    found[id_].append(other)
        return found

    def _around(self, memories: Sequence[StoredMemory]) -> dict[int, StoredMemory]:
        """Return by number what is to be compared with some memories, and these; nothing where that tells nothing."""
        if not is_comparable(self._store):
            return {}
        chosen = Selection(statuses=("active", "promoted"), limit=_COMPARED_AT_ONCE)
        if len(memories) <= _SEARCHED:
            near = (self._nearest(each.record.content, "semantic", ("memory",), _NEAREST) for each in memories)
            chosen = replace(chosen, ids=tuple({hit.owner_id for hits in near for hit in hits}))
        ids, least = {each.owner.id for each in memories}, min(each.at for each in memories)
        pool = [each for each in self._store.memories(self._namespace, chosen) if each.owner.id not in ids]
        both = [*pool, *memories]
        return {each.number: each for each in both} if any(each.at > least for each in both) else {}

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
        return self._searcher().search(request).hits
