"""Which memories a newer one may have overtaken, over all of a namespace: what a person is asked about.

A search judges the same of what it finds. The answers are links, of the types `SUPERSEDES` and `HOLDS_BESIDE`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, restore
from commonplace.search.rank import COMPARABLE, COMPETING
from commonplace.search.supersession import Statements, change_tokens, count_changes, function_tokens, judge
from commonplace.store.store import Store
from commonplace.text.similarity import is_near_duplicate
from commonplace.types import HOLDS_BESIDE, SUPERSEDES, Selection, StoredMemory

COMPARED: Final = 1_000
"""So many of the newest memories are compared with each other."""


class Overtaken(NamedTuple):
    """Two memories of which the newer one may have taken the older one's place."""

    older: StoredMemory
    newer: StoredMemory


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
    counts = np.unique([each.owner_number for each in passages], return_counts=True)
    single = {int(number) for number, count in zip(*counts, strict=True) if count == 1}
    entries = [each for each in passages if each.owner_number in single and each.vector]
    if len(entries) < 2:
        return []
    kept = [known[each.owner_number] for each in entries]
    texts = [np.frombuffer(each.token_ids, dtype=np.uint16) for each in entries]
    words, function = change_tokens(tokens.tokenize), function_tokens(tokens.tokenize)
    said = Statements(
        times=np.array([np.nan if each.owner.at is None else each.owner.at for each in kept]),
        stored=np.array([each.record.born_at for each in kept]),
        sessions=[""] * len(kept),
        vectors=restore([each.vector for each in entries]),
        terms=[frozenset(text.tolist()) - function for text in texts],
        changes=np.array([count_changes(text, words) for text in texts], dtype=np.int64),
    )
    with ONE_BLAS_THREAD:
        values = judge(said)
    apart = {frozenset((link.source, link.target)) for link in links if link.type in (SUPERSEDES, HOLDS_BESIDE)}
    newer = values.argmax(axis=1).tolist()
    best = values.max(axis=1)
    older = (place for place in np.argsort(-best, kind="stable").tolist() if best[place] >= COMPETING)
    found = (
        Overtaken(kept[place], kept[newer[place]]) for place in older if not settled[kept[place].number].overtaken_by
    )
    return [
        each
        for each in found
        if frozenset((each.older.owner.id, each.newer.owner.id)) not in apart
        and not is_near_duplicate(each.older.record.content, each.newer.record.content)
    ]
