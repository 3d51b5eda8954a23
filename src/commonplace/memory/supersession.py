"""Which memories a newer one overtakes: judged when their vectors are there, and kept as links.

A link of the type `SUPERSEDES` is followed by searches, one of the type `CONFLICTS` is also a question for a person.
Those that were judged have the origin `RULE`. What people link decides, and is not judged.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import CommonplaceError
from commonplace.extract.modality import is_sensitive
from commonplace.extract.model import SENSITIVE
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, restore, units, within
from commonplace.search.retrieve import Searcher
from commonplace.search.supersession import COMPETING, FEW, SETTLING, Wordings, confidence, judge
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.text.similarity import is_near_duplicate
from commonplace.text.tokens import without_unspaced
from commonplace.types import CONFLICTS, HOLDS_BESIDE, RULE, SUPERSEDES, Link, Note, Selection, StoredMemory, TokenEntry

NEAREST: Final = 50
"""A memory is judged among so many of those nearest to it."""
AROUND: Final = 20
"""So many of these are judged anew among each other: a new memory changes what their similarities mean."""
MIN_COSINE: Final = 0.4
"""Below it a person is asked, however high the value is."""
AT_ONCE: Final = 32
"""So many memories are judged between two transactions."""
NOTED_EVERY: Final = 64
"""So many changes may be judged without a note of it, and a killed process leaves them to be judged again."""
_JUDGED: Final = "judged"
_log = logging.getLogger(__name__)
Pair = frozenset[str]


class Overtaken(NamedTuple):
    """Two memories of which the newer one has, or may have, taken the older one's place; disputes that ask the same."""

    older: StoredMemory
    newer: StoredMemory
    is_sure: bool
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


def overtaken(store: Store, namespace: str) -> list[Overtaken]:
    """Return each live memory that a newer one may have overtaken, with the likeliest of those; the surest pair first.

    Turns of conversations are left out, as are near duplicates and what a person, or the graph, has settled.
    """
    with store.snapshot():
        links = [link for link in store.links(namespace) if link.origin == RULE or link.type == CONFLICTS]
        ids = tuple({id_ for link in links for id_ in (link.source, link.target)})
        chosen = Selection(ids=ids, statuses=("active", "promoted"), sessions=("",))
        live = {each.owner.id: each for each in store.memories(namespace, chosen)} if ids else {}
        known = store.statements(namespace, [each.number for each in live.values()])
        disputes = disputes_of(store, namespace)
    found: dict[str, Overtaken] = {}
    for link in sorted(links, key=lambda link: (-link.strength, link.target, link.source)):
        older, newer = live.get(link.target), live.get(link.source)
        if older is None or newer is None or link.target in found:
            continue
        if not known[older.number].overtaken_by and not is_near_duplicate(older.record.content, newer.record.content):
            between = frozenset(id_ for id_, said in disputes.items() if {link.source, link.target} <= said.keys())
            found[link.target] = Overtaken(older, newer, link.type == SUPERSEDES, between)
    return list(found.values())


def expire_judged(change: MemoryChange, now: float, id_: str, other: str = "") -> None:
    """Take back what a rule linked to a memory, or is asked of it; with `other` between these two alone."""
    for link in change.links([id_]):
        if (link.origin == RULE or link.type == CONFLICTS) and other in ("", link.source, link.target):
            change.link(replace(link, expired_at=now))


@dataclass(eq=False)
class SupersessionRule:
    """Judges the memories of a namespace, each when its vector is there. Safe for threads."""

    _store: Store
    _searcher: Callable[[], Searcher]
    _namespace: str
    _tokens: StaticEmbedder
    _now: Callable[[], float]
    _done: int | None = None
    _noted: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(self, limit: int | None = None, is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Judge what was written since the last call, by any process, in the order of its time.

        Args:
            limit: do nothing, and return False, if there are more passages, or another thread is judging.
            is_stopped: whether to leave the rest for another time.
        """
        store, namespace = self._store, self._namespace
        if not self._lock.acquire(blocking=limit is None):
            return False
        try:
            if self._done is None:
                notes = store.notes(namespace, _JUDGED)
                self._done = self._noted = json.loads(notes[-1].body)["change"] if notes else 0
            head = store.head(namespace).change
            if head == self._done:
                return True
            if limit is not None and store.pending(namespace, self._done)[0] > limit:
                return False
            entries = [each for each in store.tail(namespace, self._done) if each.kind == "memory"]
            passages = Counter(each.owner_number for each in entries)
            entries = [each for each in entries if each.vector and passages[each.owner_number] == 1]
            # The last to be judged has the most to be compared with: so the order of arrival does not matter.
            entries.sort(key=lambda each: (each.at is None, each.at or 0.0, each.number))
            try:
                for start in range(0, len(entries), AT_ONCE):
                    verdicts: dict[Pair, Link | None] = {}
                    for each in entries[start : start + AT_ONCE]:
                        verdicts |= self._verdicts(each)
                    self._keep(verdicts)
                    if is_stopped():
                        return False
            except CommonplaceError as error:  # what was written is written; the next call tries again
                _log.warning("memories wait to be compared with older ones: %s", error)
                return True
            self._done = head
            if head - self._noted >= NOTED_EVERY:
                self.close()
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Note how far memories were judged, unless the namespace was forgotten since: a note would make it again."""
        if self._done is not None and self._noted < self._done <= self._store.head(self._namespace).change:
            self._noted = self._done
            with suppress(CommonplaceError), self._store.change_memories(self._namespace) as change:
                change.put(Note(_JUDGED, "", self._now(), json.dumps({"change": self._noted})))

    def _verdicts(self, entry: TokenEntry) -> dict[Pair, Link | None]:
        """Return what is to stand between a memory and those nearest to it, and among the very nearest."""
        vector = restore([entry.vector])[0]
        rows = self._searcher().near(self._namespace, vector, NEAREST + 1)
        vectors = units(rows.vectors[:, : len(vector)].astype(np.float32))
        found = self._store.memory_records(self._namespace, rows.owners.tolist())
        texts, passages = {n: each.record.content for n, each in found.items()}, Counter(rows.owners.tolist())
        order = np.lexsort((rows.numbers, -(vectors @ vector), rows.numbers != entry.number))
        # Of what has several passages one tells too little, and the vectors know no script without spaces.
        fit = sorted(n for n, text in texts.items() if passages[n] == 1 and not without_unspaced(text)[1])
        order = order[within(rows.owners[order], np.array(fit, dtype=np.int64))]
        rows, vectors = rows.take(order), vectors[order]
        if rows.numbers[:1].tolist() != [entry.number]:
            return {}
        kept = [found[owner] for owner in rows.owners.tolist()]
        said = self._wordings.statements(
            rows.token_ids,
            rows.lengths,
            times=rows.times,
            stored=np.array([each.record.born_at for each in kept]),
            sessions=rows.sessions.tolist(),
            vectors=vectors,
        )
        with ONE_BLAS_THREAD:
            values = judge(said)
        values[AROUND + 1 :, 1:] = values[1:, AROUND + 1 :] = -np.inf
        ids = [each.owner.id for each in kept]
        pairs = [(ids[0], other) for other in ids[1:]] + [*combinations(ids[1 : AROUND + 1], 2)]
        verdicts: dict[Pair, Link | None] = dict.fromkeys(map(frozenset, pairs))
        for older, newer in np.argwhere(values >= COMPETING).tolist():
            cosine, value = float(vectors[older] @ vectors[newer]), float(values[older, newer])
            # The first reason is for it, the others speak against settling it by a rule.
            change = ", and the newer one has words of change" if said.changes[newer] else ""
            why = [f"they are alike ({cosine:.2f}){change}"]
            if any(is_sensitive(kept[place].record.content) for place in (older, newer)):
                why.append(SENSITIVE)
            if kept[newer].record.trust < kept[older].record.trust:
                why.append("the newer one is trusted less")
            is_sure = value >= SETTLING and cosine >= MIN_COSINE and len(why) == 1
            type_ = SUPERSEDES if is_sure and (len(kept) > FEW or said.changes[newer]) else CONFLICTS
            link = Link(ids[newer], ids[older], type_, round(confidence(value), 3), self._now(), RULE, "; ".join(why))
            verdicts[frozenset((ids[older], ids[newer]))] = link
        return verdicts

    def _keep(self, verdicts: Mapping[Pair, Link | None]) -> None:
        """Bring the links between memories to what was judged; what a person linked stays as it is."""
        due = {pair: link for pair, link in verdicts.items() if link is not None}
        ids = sorted({id_ for pair in verdicts for id_ in pair})
        if not due and not any(link.origin == RULE for link in self._store.links(self._namespace, ids)):
            return
        with self._store.change_memories(self._namespace) as change:
            for link in change.links(ids):
                pair = frozenset((link.source, link.target))
                new = due.get(pair)
                if link.origin != RULE:
                    if link.type in (SUPERSEDES, HOLDS_BESIDE):
                        due.pop(pair, None)
                elif new is not None and (new.source, new.type) == (link.source, link.type):
                    del due[pair]
                elif pair in verdicts:
                    change.link(replace(link, expired_at=self._now()))
            for link in due.values():
                if all(change.find(id_) is not None for id_ in (link.source, link.target)):
                    change.link(link)

    @cached_property
    def _wordings(self) -> Wordings:
        return Wordings(self._tokens.tokenize)
