"""What memories say of how entities hang together, beside the graph. It reads memories, and finds none itself.

Two entities of one memory are named together. A link between two memories relates what each is about: its one entity,
or else the memory itself, by its id.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final

from commonplace.formats.csp_response import Relation

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory

MOST_LINKS: Final = 5
"""In one response."""


def relations(memory: Memory) -> Iterator[Relation]:
    """Yield which entities a memory names together, at most as many as a response has room for."""
    yield from islice((Relation(*pair) for pair in combinations(memory.entities, 2)), MOST_LINKS)


def about(memory: Memory) -> str:
    """Return what stands for a memory at the end of a link."""
    return memory.entities[0] if len(memory.entities) == 1 else memory.id


def ends(relation: Relation) -> frozenset[str]:
    """Return the two ends, whichever comes first."""
    return frozenset((relation.source, relation.target))
