"""Load the memories of a namespace and group similar ones.

Memories and turns of conversations are grouped separately. Turns that say little beyond words common to many turns
("that's great!") are in no group.

Names come from the graph in one query; for memories that it does not cover they are extracted here, once per text.
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
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.dataclasses import dataclass
from commonplace.errors import NoRelation
from commonplace.extract import extract
from commonplace.graph.names import MAX_NAME_CHARACTERS, normal
from commonplace.ranking.arrays import restore, units
from commonplace.text.sentences import say_the_same
from commonplace.text.tokens import analyse
from commonplace.types import HOLDS_BESIDE, RULE, SUPERSEDES, StoredMemory
from commonplace.types.graph import GraphFilter

SETTLED: Final = (SUPERSEDES, HOLDS_BESIDE)
"""Types of links that settle which of two memories holds."""

MIN_WORDS: Final = 5
"""Fewest distinctive words of a turn that is not small talk; stop words and words of very many turns do not count."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """A group of similar memories, ordered by id.

    Attributes:
        cohesion: the mean similarity of all pairs, 0–1.
        pairs: all pairs of ids with their similarity, 0–1.
    """

    memories: tuple[StoredMemory, ...]
    cohesion: float
    pairs: tuple[tuple[str, str, float], ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the members, sorted."""
        return tuple(memory.owner.id for memory in self.memories)

    @property
    def similar_pairs(self) -> tuple[tuple[str, str, float], ...]:
        """The pairs that are similar enough to be linked."""
        return tuple(pair for pair in self.pairs if pair[2] >= clustering.LINKED)

    @property
    def has_turns(self) -> bool:
        """Whether a turn of a conversation is among the memories."""
        return any(memory.owner.session for memory in self.memories)


def groups_of(runtime: ConsolidationRuntime, memories: Iterable[StoredMemory]) -> list[MemoryGroup]:
    """Return the groups among memories that are ordered by id."""
    all_memories = list(memories)
    non_turns = [memory for memory in all_memories if not memory.owner.session]
    turns = [memory for memory in all_memories if memory.owner.session]
    settled = linked_pairs(runtime, None, SETTLED)
    groups = []
    for members in (non_turns, list(compress(turns, worth_comparing([turn.record.content for turn in turns])))):
        vectors = vectors_of(runtime, members)
        for rows in clustering.groups(vectors, runtime.calibrated):
            similarities = clustering.similarities(vectors[list(rows)], runtime.calibrated)
            groups.append(_group([members[row] for row in rows], similarities, settled))
    return [group for group in groups if group.similar_pairs]


def worth_comparing(turns: Sequence[str]) -> list[bool]:
    """Return for each turn whether it has enough distinctive words to be compared with others."""
    turn_words = [frozenset(analyse(turn)) for turn in turns]
    common = clustering.hubs(turn_words)
    return [len(words - common) >= MIN_WORDS for words in turn_words]


def group_of(runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> MemoryGroup:
    """Return two or more memories as one group, similar or not."""
    ordered = sorted(memories, key=lambda memory: memory.owner.id)
    settled = linked_pairs(runtime, [memory.owner.id for memory in ordered], SETTLED)
    return _group(ordered, clustering.similarities(vectors_of(runtime, ordered), runtime.calibrated), settled)


def best_group(runtime: ConsolidationRuntime, memory: StoredMemory) -> MemoryGroup:
    """Return the group of a memory, or, if it is in none, the memory and its nearest neighbour.

    Raises:
        NoRelation: no active memory is similar enough to be linked with it.
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
    """Return the linked pairs of memories, of these ids (None: all), types (empty: all); `judged` adds rules' links."""
    links = runtime.store.links(runtime.namespace, None if ids is None else sorted(set(ids)))
    matching = (link for link in links if link.type in (types or (link.type,)) and (judged or link.origin != RULE))
    return {frozenset((link.source, link.target)) for link in matching}


def vectors_of(runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> NDArray[np.float32]:
    """Return a vector for each memory, the mean of its passages' vectors: float32, shape (n, d), of unit length.

    A memory without vectors has zeros.
    """
    numbers = [memory.number for memory in memories]
    with runtime.store.snapshot():
        stamp = runtime.store.embedding()
        passages = runtime.store.passages_of(runtime.namespace, numbers)
        entries = [token for token in runtime.store.tokens(runtime.namespace, passages).values() if token.vector]
    vectors = np.zeros((len(memories), 0 if stamp is None else stamp.of("memory").dimensions), np.float32)
    if entries:
        row_of = {number: row for row, number in enumerate(numbers)}
        rows = [row_of[entry.owner_number] for entry in entries]
        np.add.at(vectors, rows, restore([entry.vector for entry in entries]))
    return units(vectors)


def _group(
    memories: Sequence[StoredMemory], similarities: Sequence[Sequence[float]], settled: Collection[frozenset[str]]
) -> MemoryGroup:
    """Return memories as a group; pairs in `settled` have similarity 0, and other pairs that say the same 1."""
    ids = [memory.owner.id for memory in memories]
    matrix = [list(row) for row in similarities]
    pairs = []
    for left, right in combinations(range(len(ids)), 2):
        if frozenset((ids[left], ids[right])) in settled:
            matrix[left][right] = 0.0
        elif say_the_same(memories[left].record.content, memories[right].record.content):
            # An aside changes the vector of a text, though the texts say the same.
            matrix[left][right] = 1.0
        pairs.append((ids[left], ids[right], matrix[left][right]))
    return MemoryGroup(tuple(memories), clustering.cohesion(matrix), tuple(pairs))


SURE: Final = 0.6
"""Confidence below which an extracted name is ignored: a capital at the beginning of a sentence is no evidence."""

_NO_NAMES: Final = frozenset({"decision", "preference"})
"""Entity types whose names are phrases, which are ignored: similarity already covers their words."""
_SPEAKERS: Final = frozenset({normal(name) for name in ("the user", "user", "we", "the assistant", "assistant")})
_TURN: Final = re.compile(r"([^\W\d_]\S*(?: \S+){0,2}): ")
_MIN_NICKNAME_LENGTH: Final = 3

NamesByForm = dict[str, str]
"""The names in a memory: each name as written, by its normal form, in which names are compared."""


class Labels:
    """The names and tags of memories, without those that carry no information: hubs, and in turns the speakers.

    Args:
        memories: the active memories of the namespace, among which hubs are counted.
    """

    def __init__(self, runtime: ConsolidationRuntime, memories: Sequence[StoredMemory]) -> None:
        self._read = cache(names_in)
        self._in_graph: dict[tuple[str, int], Sequence[str]] = {}
        graph = runtime.store.graph(runtime.namespace)
        episodes = [entry for entry in graph.list_episodes(GraphFilter()) if entry.source == "memory"]
        mentioned = graph.mentioned([entry.id for entry in episodes]) if episodes else {}
        subjects = {ref.subject for refs in mentioned.values() for ref in refs if ref.kind == "entity"}
        entities = graph.entities(sorted(subjects)) if subjects else {}
        for episode in episodes:
            ids = dict.fromkeys(ref.subject for ref in mentioned.get(episode.id, ()) if ref.kind == "entity")
            resolved = [entities[id_] for id_ in ids if id_ in entities]
            self._in_graph[episode.memory, episode.version] = [
                entity.name for entity in resolved if entity.type not in _NO_NAMES
            ]
        # A memory created in this period without an episode has no names: the graph has processed it.
        times = [entry.created_at for entry in episodes]
        self._followed = (min(times, default=inf), max(times, default=-inf))
        self._hubs = clustering.hubs([self._names_in(memory).keys() for memory in memories])
        self._tag_hubs = clustering.hubs([_tags(memory) for memory in memories])
        self._speakers = speakers(memory.record.content for memory in memories if memory.owner.session)

    def names(self, memory: StoredMemory) -> NamesByForm:
        ignored = self._hubs | self._speakers if memory.owner.session else self._hubs
        return {form: name for form, name in self._names_in(memory).items() if form not in ignored}

    def tags(self, memory: StoredMemory) -> set[str]:
        return _tags(memory) - self._tag_hubs

    def _names_in(self, memory: StoredMemory) -> NamesByForm:
        record = memory.record
        names = self._in_graph.get((memory.owner.id, record.version))
        if names is None:
            begin, end = self._followed
            names = () if begin <= memory.created_at <= end else self._read(record.content)
        return names_by_form([*record.entities, *names])


def _tags(memory: StoredMemory) -> set[str]:
    return {tag.casefold() for tag in memory.owner.tags}


def names_in(content: str) -> tuple[str, ...]:
    """Return the names in a text that are extracted with enough confidence, in text order."""
    entities = extract(content, at=0.0).entities
    return tuple(entity.name for entity in entities if entity.confidence >= SURE and entity.type not in _NO_NAMES)


def names_by_form(names: Iterable[str]) -> NamesByForm:
    """Return names by normal form, each once, without generic names of speakers ("user")."""
    by_form: NamesByForm = {}
    for name in names:
        form = normal(name[:MAX_NAME_CHARACTERS])
        if form and form not in _SPEAKERS:
            by_form.setdefault(form, name)
    return by_form


def speakers(turns: Iterable[str]) -> frozenset[str]:
    """Return the normal forms of the names of those who speak two or more turns, written `Name: …`.

    Every prefix of three or more characters is included: Mel is short for Melanie.
    """
    counts = Counter(match[1] for turn in turns if (match := _TURN.match(turn)))
    names = [normal(name) for name, count in counts.items() if count > 1]
    return frozenset(name[:end] for name in names for end in range(_MIN_NICKNAME_LENGTH, len(name) + 1)).union(names)
