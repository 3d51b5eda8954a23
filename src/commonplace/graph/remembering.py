"""Let the graph follow memories: each that is live, and says something of something, is an episode of its own.

The episode holds no words, its memory does. It goes when the memory is archived, and comes anew with other words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from commonplace.graph.adding import add_episode, prepare
from commonplace.graph.bounding import Bounded, bounded
from commonplace.graph.deleting import take_out
from commonplace.graph.ground import Texts
from commonplace.graph.understanding import understand
from commonplace.types.graph import Episode

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground
    from commonplace.ingest.passages import Destination
    from commonplace.store.memory_contract import MemoryChange
    from commonplace.types import MemoryRecord, MemoryWrite, Owner, StoredMemory
    from commonplace.types.graph import EpisodeSource

MOST_KEPT: Final = 500
"""So many texts that were embedded stay at hand: what was named lately will be named again."""

_Key = tuple[str, float, bool]


@dataclass(frozen=True, slots=True)
class Readings:
    """What memories say, by content and time, read before the transaction that writes them."""

    ground: Ground
    texts: Texts
    found: dict[_Key, Bounded] = field(default_factory=dict)

    def notices(self, owner: Owner, record: MemoryRecord) -> tuple[str, ...]:
        """Return what is to be said of a memory that says more than the graph takes."""
        known = self.found.get(_key(owner, record))
        return () if known is None else known.notices


class Feed:
    """Brings what memories say into the graph, in the transactions that change them. Safe for threads.

    Args:
        ground: returns what the graph stands on, with the destination of whoever writes the memories if there is one.
    """

    def __init__(self, ground: Callable[[Destination | None], Ground]) -> None:
        self._ground = ground
        self._kept: Texts | None = None

    def read(self, memories: Iterable[MemoryWrite] = (), destination: Destination | None = None) -> Readings:
        """Read what memories say that are about to be written, and embed what that will write."""
        ground, kept = self._ground(destination), self._kept
        is_same = kept is not None and kept.destination.embedder is ground.destination.embedder
        texts = kept if kept is not None and is_same else Texts(ground.destination)
        readings = Readings(ground, texts)
        for each in memories:
            self._read(readings, each.owner, each.record)
        self._kept = texts if len(texts) <= MOST_KEPT else None
        return readings

    def add(self, change: MemoryChange, memory: StoredMemory, readings: Readings) -> None:
        """Bring in what a memory says that was never there before, in the transaction that added it."""
        owner, record = memory.owner, memory.record
        extraction = self._read(readings, owner, record).extraction
        if not extraction.entities and not extraction.cancellations:
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
        add_episode(change.graph, readings.ground, readings.texts, episode, extraction, record.content, is_new=True)

    def let_go(self, change: MemoryChange, id_: str) -> None:
        """Take out what a memory said, in the transaction that changes it; what it says now comes by itself."""
        episodes = [each.id for each in change.graph.episodes_of_memory(id_)]
        if episodes:
            readings = self.read()
            take_out(change.graph, readings.ground, readings.texts, episodes)

    def follow(
        self,
        change: MemoryChange,
        ids: Iterable[str],
        readings: Readings | None = None,
        before: Iterable[StoredMemory] = (),
    ) -> None:
        """Bring the graph to what some memories say now, in the transaction that changed them.

        Args:
            before: versions that they had until now; where the newest says the same, the episode stays.
        """
        said = {each.owner.id: _said(each) for each in before}
        for id_ in dict.fromkeys(ids):
            known = change.find(id_)
            episodes = change.graph.episodes_of_memory(id_)
            live = known if known is not None and known.expired_at is None else None
            version = 0 if live is None else live.record.version
            if live is not None and [each.version for each in episodes] == [version]:
                continue
            if live is not None and said.get(id_) == _said(live):
                for each in episodes:
                    change.graph.put_episode(replace(each, version=version))
                continue
            if live is None and not episodes:
                continue
            readings = readings or self.read()
            if episodes:
                take_out(change.graph, readings.ground, readings.texts, [each.id for each in episodes])
            if live is not None:
                self.add(change, live, readings)

    def _read(self, readings: Readings, owner: Owner, record: MemoryRecord) -> Bounded:
        key = _key(owner, record)
        known = readings.found.get(key)
        if known is not None:
            return known
        # A turn of a conversation may begin with who speaks.
        source: EpisodeSource = "message" if owner.session else "text"
        found = bounded(understand(record.content, source, _told(owner, record), readings.ground.kinds))
        prepare(readings.texts, found.extraction)
        readings.found[key] = found
        return found


def _key(owner: Owner, record: MemoryRecord) -> _Key:
    return record.content, _told(owner, record), bool(owner.session)


def _said(memory: StoredMemory) -> tuple[object, ...]:
    """Return what of a memory counts to the graph."""
    owner, record = memory.owner, memory.record
    return *_key(owner, record), record.source, record.origin, record.trust


def _told(owner: Owner, record: MemoryRecord) -> float:
    """Return the time that dates in a memory are read from."""
    return record.born_at if owner.at is None else owner.at
