"""What memories say of how entities hang together, until there is a graph. It reads memories, and finds none itself.

A memory that `link` made states a relation: its metadata name the two ends. Two entities of any other memory are named
together. A link between two memories relates what each is about: its one entity, or else the memory itself, by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, Final

from commonplace.formats.csp_response import Relation

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory

MOST_LINKS: Final = 5
"""In one response."""

_RELATION: Final = "relation"


def metadata_of(source: str, target: str) -> dict[str, Any]:
    """Return the metadata of a memory that states a relation."""
    return {_RELATION: {"source": source, "target": target}}


def stated(memory: Memory) -> Relation | None:
    """Return the relation that a memory states, if its entities have both ends."""
    told = memory.metadata.get(_RELATION)
    if not isinstance(told, dict):
        return None
    source, target = told.get("source"), told.get("target")
    if source not in memory.entities or target not in memory.entities or source == target:
        return None
    return Relation(str(source), str(target), is_directed=True)


def relations(memory: Memory) -> Iterator[Relation]:
    """Yield what a memory says of its entities, at most as much as a response has room for."""
    told = stated(memory)
    if told is not None:
        yield told
    pairs = (Relation(*pair) for pair in combinations(memory.entities, 2))
    yield from islice((pair for pair in pairs if told is None or ends(pair) != ends(told)), MOST_LINKS)


def about(memory: Memory) -> str:
    """Return what stands for a memory at the end of a link."""
    return memory.entities[0] if len(memory.entities) == 1 else memory.id


def ends(relation: Relation) -> frozenset[str]:
    """Return the two ends, whichever comes first."""
    return frozenset((relation.source, relation.target))
