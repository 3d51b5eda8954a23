"""Which memories a newer one may have overtaken, over all of a namespace: what a person is asked about.

A search judges the same of what it finds. The answers are links, of the types `SUPERSEDES` and `HOLDS_BESIDE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, restore
from commonplace.search.rank import COMPARABLE, COMPETING
from commonplace.search.supersession import Wordings, judge
from commonplace.store.store import Store
from commonplace.text.similarity import is_near_duplicate
from commonplace.types import HOLDS_BESIDE, SUPERSEDES, Selection, StoredMemory, TokenEntry

COMPARED: Final = 1_000
"""So many of the newest memories are compared with each other."""


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
    a link, or since the graph knows what ended. Another embedder than ours has no cosines that tell.
    """
    with store.snapshot():
        stamp = store.embedding()
        if stamp is None or stamp.of("memory").name not in COMPARABLE:
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
    newer = values.argmax(axis=1).tolist()
    best = values.max(axis=1)
    older = (place for place in np.argsort(-best, kind="stable").tolist() if best[place] >= COMPETING)
    pairs = ((kept[place], kept[newer[place]]) for place in older if not settled[kept[place].number].overtaken_by)
    found = (
        Overtaken(
            *pair, frozenset(id_ for id_, said in disputes.items() if said.keys() >= {each.owner.id for each in pair})
        )
        for pair in pairs
    )
    return [
        each
        for each in found
        if frozenset((each.older.owner.id, each.newer.owner.id)) not in apart
        and not is_near_duplicate(each.older.record.content, each.newer.record.content)
    ]
