"""Load the memories of a namespace and group similar ones.

Memories and turns of conversations are grouped separately. Turns that say little in words that very many share ("that's
great!") are in no group.

Names come from the graph in one query; memories that the graph does not cover are extracted here, once for each text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import combinations, compress
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.consolidation import pairs as clustering
from commonplace.consolidation.pairs import hubs
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.dataclasses import dataclass
from commonplace.errors import NoRelation
from commonplace.extract import extract
from commonplace.graph.names import MAX_NAME_CHARACTERS, normal
from commonplace.ranking.arrays import restore, units
from commonplace.store.store import Store
from commonplace.text.sentences import say_the_same
from commonplace.text.tokens import analyse
from commonplace.types import HOLDS_BESIDE, RULE, SUPERSEDES, StoredMemory
from commonplace.types.graph import GraphFilter

SETTLED: Final = (SUPERSEDES, HOLDS_BESIDE)
"""The types of links that say which of two memories holds."""

MIN_WORDS: Final = 5
"""A turn with fewer words of its own is small talk: neither stop words nor what very many turns say count."""


@dataclass(frozen=True, slots=True)
class Group:
    """Memories that are alike, by id.

    Attributes:
        cohesion: the mean similarity of all pairs.
        pairs: each pair of ids with its similarity.
    """

    memories: tuple[StoredMemory, ...]
    cohesion: float
    pairs: tuple[tuple[str, str, float], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the members, sorted."""
        return tuple(memory.owner.id for memory in self.memories)

    @property
    def alike(self) -> tuple[tuple[str, str, float], ...]:
        """The pairs that are alike enough to be linked."""
        return tuple(pair for pair in self.pairs if pair[2] >= clustering.LINKED)

    @property
    def has_turns(self) -> bool:
        """Return whether a turn of a conversation is among them."""
        return any(memory.owner.session for memory in self.memories)


def groups_of(runtime: ConsolidationRuntime, memories: Iterable[StoredMemory]) -> list[Group]:
    """Return the groups among memories that are given by id."""
    every = list(memories)
    kept = [memory for memory in every if not memory.owner.session]
    turns = [memory for memory in every if memory.owner.session]
    apart = linked_pairs(runtime, None, SETTLED)
    groups = []
    for some in (kept, list(compress(turns, worth_comparing([turn.record.content for turn in turns])))):
        vectors = vectors_of(runtime, some)
        for rows in clustering.groups(vectors, runtime.calibrated):
            similarities = clustering.similarities(vectors[list(rows)], runtime.calibrated)
            groups.append(_group([some[row] for row in rows], similarities, apart))
    return [group for group in groups if group.alike]


def worth_comparing(turns: Sequence[str]) -> list[bool]:
    """Return of each turn whether it says enough of its own to be compared with others."""
    said = [frozenset(analyse(turn)) for turn in turns]
    common = hubs(said)
    return [len(words - common) >= MIN_WORDS for words in said]


def group_of(runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> Group:
    """Return two or more memories as one group, alike or not."""
    ordered = sorted(memories, key=lambda memory: memory.owner.id)
    apart = linked_pairs(runtime, [memory.owner.id for memory in ordered], SETTLED)
    return _group(ordered, clustering.similarities(vectors_of(runtime, ordered), runtime.calibrated), apart)


def best_group(runtime: ConsolidationRuntime, memory: StoredMemory) -> Group:
    """Return the group of a memory, else the memory and the one that is most like it.

    Raises:
        NoRelation: nothing is like it.
    """
    with runtime.store.snapshot():
        memories = runtime.memories()
        for group in groups_of(runtime, memories):
            if memory.owner.id in group.ids:
                return group
        others = [other for other in memories if other.owner.id != memory.owner.id]
        vectors = vectors_of(runtime, [memory, *others])
    similarities = runtime.calibrated(vectors[1:] @ vectors[0])
    nearest = int(similarities.argmax()) if others else -1
    if nearest < 0 or similarities[nearest] < clustering.LINKED:
        raise NoRelation(f"no active memory is like {memory.owner.id!r:.80}", remedy="leave it as it is")
    return group_of(runtime, [memory, others[nearest]])


def linked_pairs(
    runtime: ConsolidationRuntime, ids: Iterable[str] | None, types: Collection[str] = (), *, judged: bool = False
) -> set[frozenset[str]]:
    """Return the pairs of memories, of these ids or all, with a link of these types; `judged`: of a rule's, too."""
    found = runtime.store.links(runtime.namespace, None if ids is None else sorted(set(ids)))
    kept = (link for link in found if link.type in (types or (link.type,)) and (judged or link.origin != RULE))
    return {frozenset((link.source, link.target)) for link in kept}


def vectors_of(runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> NDArray[np.float32]:
    """Return a vector for each memory, the mean of those of its passages: float32, shape (n, d), of unit length.

    A memory without words has zeros.
    """
    numbers = [memory.number for memory in memories]
    with runtime.store.snapshot():
        stamp = runtime.store.embedding()
        passages = runtime.store.passages_of(runtime.namespace, numbers)
        entries = [each for each in runtime.store.tokens(runtime.namespace, passages).values() if each.vector]
    vectors = np.zeros((len(memories), 0 if stamp is None else stamp.of("memory").dimensions), np.float32)
    if entries:
        places = {number: place for place, number in enumerate(numbers)}
        rows = [places[entry.owner_number] for entry in entries]
        np.add.at(vectors, rows, restore([entry.vector for entry in entries]))
    return units(vectors)


def _group(
    memories: Sequence[StoredMemory], similarities: Sequence[Sequence[float]], apart: Collection[frozenset[str]]
) -> Group:
    """Return memories as a group; those of which is known which holds are not alike, however much they say the same."""
    ids = [memory.owner.id for memory in memories]
    found = [list(row) for row in similarities]
    pairs = []
    for one, other in combinations(range(len(ids)), 2):
        if frozenset((ids[one], ids[other])) in apart:
            found[one][other] = 0.0
        elif say_the_same(memories[one].record.content, memories[other].record.content):
            # A vector shows what a text is about, an aside included.
            found[one][other] = 1.0
        pairs.append((ids[one], ids[other], found[one][other]))
    return Group(tuple(memories), clustering.cohesion(found), tuple(pairs))


SURE: Final = 0.6
"""What is less surely a name is passed over: a capital at the beginning of a sentence is not one."""

_NO_NAMES: Final = frozenset({"decision", "preference"})
"""Types whose names are phrases: two memories that share one have it from their words, which similarity sees."""
_SPEAKERS: Final = frozenset({normal(name) for name in ("the user", "user", "we", "the assistant", "assistant")})
_TURN: Final = re.compile(r"([^\W\d_]\S*(?: \S+){0,2}): ")
_MIN_NICKNAME_LENGTH: Final = 3

Named = dict[str, str]
"""What a memory names: names as they are written, by the form in which they are compared."""


class Names:
    """The names in the memories of a namespace, as they were when it was made."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._read = cache(names_in)
        self._in_graph: dict[tuple[str, int], Sequence[str]] = {}
        graph = store.graph(namespace)
        episodes = [each for each in graph.list_episodes(GraphFilter()) if each.source == "memory"]
        mentioned = graph.mentioned([each.id for each in episodes]) if episodes else {}
        subjects = {each.subject for found in mentioned.values() for each in found if each.kind == "entity"}
        entities = graph.entities(sorted(subjects)) if subjects else {}
        for episode in episodes:
            ids = dict.fromkeys(each.subject for each in mentioned.get(episode.id, ()) if each.kind == "entity")
            named = [entities[id_] for id_ in ids if id_ in entities]
            self._in_graph[episode.memory, episode.version] = [
                each.name for each in named if each.type not in _NO_NAMES
            ]
        # A memory of this time without an episode names nothing: the graph saw it.
        at = [each.created_at for each in episodes]
        self._followed = (min(at, default=inf), max(at, default=-inf))

    def of(self, memory: StoredMemory) -> Named:
        """Return what a memory names."""
        record = memory.record
        found = self._in_graph.get((memory.owner.id, record.version))
        if found is None:
            begin, end = self._followed
            found = () if begin <= memory.created_at <= end else self._read(record.content)
        return named([*record.entities, *found])


def names_in(content: str) -> tuple[str, ...]:
    """Return the names in a text that are surely names, in their order."""
    found = extract(content, at=0.0).entities
    return tuple(each.name for each in found if each.confidence >= SURE and each.type not in _NO_NAMES)


def named(names: Iterable[str]) -> Named:
    """Return names by the form in which they are compared, each once, without those of whoever speaks."""
    kept: Named = {}
    for name in names:
        form = normal(name[:MAX_NAME_CHARACTERS])
        if form and form not in _SPEAKERS:
            kept.setdefault(form, name)
    return kept


def speakers(turns: Iterable[str]) -> frozenset[str]:
    """Return what those are called who speak in turns, `Name: …`, twice or more, as names are compared.

    That is their name, and whatever it begins with that has three letters or more: Mel is short for Melanie.
    """
    counts = Counter(match[1] for turn in turns if (match := _TURN.match(turn)))
    names = [normal(name) for name, count in counts.items() if count > 1]
    return frozenset(name[:end] for name in names for end in range(_MIN_NICKNAME_LENGTH, len(name) + 1)).union(names)
