"""The calls of an engine that follow links between memories. How far they lead is in `memories.neighbourhood`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.engine.workings import Workings
from commonplace.errors import NotFoundError
from commonplace.memories.intake import refuse_unfit_id, whole
from commonplace.memories.memory import seen
from commonplace.memories.neighbourhood import MOST_DEPTH, MOST_NEIGHBOURS, outward
from commonplace.types import Selection

if TYPE_CHECKING:
    from commonplace.memories.memory import Memory
    from commonplace.types import Link, StoredMemory


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Memories that hang together: the one that was asked about, then the others, nearest first; links by strength."""

    memories: tuple[Memory, ...]
    links: tuple[Link, ...]


class Relating(Workings):
    """The part of `Engine` that follows links."""

    def neighbourhood(self, id: str, *, depth: int = 2, limit: int = 50) -> Neighbourhood:  # noqa: A002
        """Return the live memories that a memory is linked to, in either direction, and those that these are.

        Args:
            depth: how many links away, 1–4.
            limit: how many memories at most, 1–500, this one among them.

        Raises:
            NotFoundError: there is no live memory of that id.
            UsageError: a number is out of its range.
        """
        whole("depth", depth, 1, MOST_DEPTH)
        whole("limit", limit, 1, MOST_NEIGHBOURS)
        refuse_unfit_id(id)
        self._before()
        found: dict[str, StoredMemory] = {}

        def live(some: Sequence[str]) -> dict[str, StoredMemory]:
            chosen = Selection(ids=tuple(some), statuses=("active", "promoted"), order="id")
            stored = self._store.memories(self.namespace, chosen)
            found.update({each.owner.id: each for each in stored if each.expired_at is None})
            return found

        if id not in live([id]):
            raise NotFoundError(f"there is no memory {id!r:.80} in this namespace", remedy="see `commonplace list`")
        ids, links = outward(id, lambda some: self._store.links(self.namespace, some), live, depth=depth, limit=limit)
        now = self._now()
        return Neighbourhood(tuple(seen(found[each], self.namespace, now, self._fading) for each in ids), links)
