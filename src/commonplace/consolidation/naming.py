"""What memories name: the entities that they were given, and the names in their words.

The names in the words are those that the graph has of a memory, read all at once; where the graph did not follow a
memory they are extracted here, once for each text. It knows no pairs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from commonplace.extract import extract
from commonplace.graph.naming import MAX_NAME_CHARACTERS, normal
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.store.contract import Store
    from commonplace.types import StoredMemory

SURE: Final = 0.6
"""What is less surely a name is passed over: a capital at the beginning of a sentence is not one."""

_NO_NAMES: Final = frozenset({"decision", "preference"})
"""Types whose names are phrases: two memories that share one have it from their words, which similarity sees."""
_SPEAKERS: Final = frozenset({normal(name) for name in ("the user", "user", "we", "the assistant", "assistant")})
_TURN: Final = re.compile(r"([^\W\d_]\S*(?: \S+){0,2}): ")
_SHORTEST_NICKNAME: Final = 3

Named = dict[str, str]
"""What a memory names: names as they are written, by the form in which they are compared."""


class Names:
    """The names in the memories of a namespace, as they were when it was made."""

    def __init__(self, store: Store, namespace: str) -> None:
        self._extracted: dict[str, tuple[str, ...]] = {}
        self._in_graph: dict[tuple[str, int], tuple[str, ...]] = {}
        self._followed = (float("inf"), float("-inf"))
        graph = store.graph(namespace)
        episodes = [each for each in graph.list_episodes(GraphFilter()) if each.source == "memory"]
        if not episodes:
            return
        mentioned = graph.mentioned([each.id for each in episodes])
        subjects = sorted({each.subject for found in mentioned.values() for each in found if each.kind == "entity"})
        entities = graph.entities(subjects)
        for episode in episodes:
            ids = dict.fromkeys(each.subject for each in mentioned.get(episode.id, ()) if each.kind == "entity")
            named = (entities[id_] for id_ in ids if id_ in entities)
            self._in_graph[episode.memory, episode.version] = tuple(
                entity.name for entity in named if entity.type not in _NO_NAMES
            )
        # A memory of this time without an episode names nothing: the graph saw it.
        self._followed = (min(each.created_at for each in episodes), max(each.created_at for each in episodes))

    def of(self, memory: StoredMemory) -> Named:
        """Return what a memory names."""
        record = memory.record
        found = self._in_graph.get((memory.owner.id, record.version))
        if found is None:
            begin, end = self._followed
            found = () if begin <= memory.created_at <= end else self._read(record.content)
        return named((*record.entities, *found))

    def _read(self, content: str) -> tuple[str, ...]:
        known = self._extracted.get(content)
        if known is None:
            known = self._extracted[content] = names_in(content)
        return known


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
    return frozenset(name[:end] for name in names for end in range(_SHORTEST_NICKNAME, len(name) + 1)).union(names)
