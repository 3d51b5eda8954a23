"""Let the graph follow memories: each that is live, and says something of something, is an episode of its own.

The episode holds no words, its memory does. It goes when the memory is archived, and comes anew with each version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from commonplace.graph.adding import add_episode, prepare
from commonplace.graph.deleting import take_out
from commonplace.graph.ground import Texts
from commonplace.graph.understanding import understand
from commonplace.types.graph import Episode

if TYPE_CHECKING:
    from commonplace.extract.result import Extraction
    from commonplace.graph.ground import Ground
    from commonplace.store.memory_contract import MemoryChange
    from commonplace.types import MemoryRecord, MemoryWrite, Owner, StoredMemory


@dataclass(frozen=True, slots=True)
class Readings:
    """What memories say, by content and time, read before the transaction that writes them."""

    ground: Ground
    texts: Texts
    extractions: dict[tuple[str, float], Extraction] = field(default_factory=dict)


class Feed:
    """Brings what memories say into the graph, in the transactions that change them. Safe for threads."""

    def __init__(self, ground: Callable[[], Ground]) -> None:
        self._ground = ground

    def read(self, memories: Iterable[MemoryWrite] = ()) -> Readings:
        """Read what memories say that are about to be written."""
        ground = self._ground()
        readings = Readings(ground, Texts(ground.destination))
        for each in memories:
            self._extracted(readings, each.owner, each.record)
        return readings

    def follow(self, change: MemoryChange, ids: Iterable[str], readings: Readings | None = None) -> None:
        """Bring the graph to what some memories say now, in the transaction that changed them."""
        readings = readings or self.read()
        for id_ in dict.fromkeys(ids):
            known = change.find(id_)
            episodes = change.graph.episodes_of_memory(id_)
            live = known if known is not None and known.expired_at is None else None
            if live is not None and [each.version for each in episodes] == [live.record.version]:
                continue
            if episodes:
                take_out(change.graph, readings.ground, readings.texts, [each.id for each in episodes])
            if live is not None:
                self._add(change, live, readings)

    def _add(self, change: MemoryChange, memory: StoredMemory, readings: Readings) -> None:
        owner, record = memory.owner, memory.record
        extraction = self._extracted(readings, owner, record)
        if not extraction.entities:
            return
        episode = Episode(
            id=readings.ground.new_id(),
            content="",
            reference_time=_told(owner, record),
            created_at=memory.created_at,
            source="memory",
            source_description=record.source,
            origin=record.origin,
            trust=record.trust,
            memory=owner.id,
            version=record.version,
        )
        add_episode(change.graph, readings.ground, readings.texts, episode, extraction, record.content)

    def _extracted(self, readings: Readings, owner: Owner, record: MemoryRecord) -> Extraction:
        at = _told(owner, record)
        known = readings.extractions.get((record.content, at))
        if known is not None:
            return known
        # A turn of a conversation may begin with who speaks.
        found = understand(record.content, "message" if owner.session else "text", at, readings.ground.kinds)
        prepare(readings.texts, found)
        readings.extractions[record.content, at] = found
        return found


def _told(owner: Owner, record: MemoryRecord) -> float:
    """Return the time that dates in a memory are read from."""
    return record.born_at if owner.at is None else owner.at
