"""The queue of items to send to Graphiti, kept in the store.

An entry holds only ids; content is read when it is sent, so data deleted meanwhile never leaves. An entry is marked
before it is sent: after a crash it is unknown whether it arrived, so delivery searches first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, Literal

from commonplace.dataclasses import asdict, dataclass, replace
from commonplace.graph.episodes import Added
from commonplace.graph.views import View
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.types import Note

WAITING: Final = "graphiti"
"""Kind of the notes of queued items."""
GROUPS: Final = "graphiti-group"
"""Kind of the notes of groups with items that were queued; their ids are the groups."""

What = Literal["episode", "relation", "delete"]


@dataclass(frozen=True, slots=True)
class Delivery(View):
    """What was delivered to the external backend, and what still waits.

    Attributes:
        delivered: number of episodes, facts and deletions that arrived.
        waiting: number of those that still wait.
        unsure: number of the waiting ones that were sent and may have arrived.
        refused: number of the waiting ones that the server refuses.
        notices: one sentence each, for people.
    """

    backend: str
    delivered: int = 0
    waiting: int = 0
    unsure: int = 0
    refused: int = 0
    notices: tuple[str, ...] = ()


def waiting_for(number: int) -> str:
    return f"{number} item{'' if number == 1 else 's'} queued for Graphiti"


@dataclass(frozen=True, slots=True)
class QueueItem:
    """An episode or a fact to write, or an episode to delete, since it was queued.

    Attributes:
        group: of an episode to delete.
        sent_at: when it was last sent, if it is unknown whether it arrived; else None.
        refusals, error: how often the server refused it, and its last refusal.
    """

    what: What
    id: str
    at: float
    group: str = ""
    sent_at: float | None = None
    refusals: int = 0
    error: str = ""

    @property
    def note(self) -> Note:
        body = asdict(self)
        return Note(WAITING, f"{self.what}:{self.id}", body.pop("at"), json.dumps(body))


class Outbox:
    """The queue of one namespace, oldest first. It sends nothing."""

    def __init__(self, store: Store, namespace: str, now: Callable[[], float]) -> None:
        self._store = store
        self._namespace = namespace
        self._now = now

    def added(self, change: MemoryChange, added: Added) -> None:
        """Queue an episode or a fact, in the transaction that writes it."""
        if added.outcome == "unchanged":
            return
        now = self._now()
        label = added.episode.group
        if label:
            change.put(Note(GROUPS, label, now, "{}"))
        if added.outcome == "replaced":
            self.deleted(change, added.episode.id, label)
        if added.episode.id:
            change.put(QueueItem("episode", added.episode.id, now).note)
        else:
            for id_ in added.changed.said:
                change.put(QueueItem("relation", id_, now).note)

    def deleted(self, change: MemoryChange, episode: str, group: str) -> None:
        """Queue the deletion of an episode in its transaction; one never sent is only removed from the queue."""
        waiting = next((item for item in self.items() if item.what != "delete" and item.id == episode), None)
        if waiting is not None:
            change.drop(Note, kind=WAITING, id=waiting.note.id)
        if waiting is None or waiting.sent_at is not None:
            change.put(QueueItem("delete", episode, self._now(), group).note)

    def items(self) -> list[QueueItem]:
        notes = self._store.notes(self._namespace, WAITING)
        return [QueueItem(at=note.at, **json.loads(note.body)) for note in notes]

    def labels(self) -> list[str]:
        """Return the groups that ever had queued items, without the one of items that have no label."""
        return [note.id for note in self._store.notes(self._namespace, GROUPS)]

    def sending(self, item: QueueItem) -> QueueItem:
        """Record, in a transaction of its own, that an item is about to be sent."""
        return self._put(replace(item, sent_at=self._now()))

    def refused(self, item: QueueItem, refusal: str, *, is_sure: bool = True) -> None:
        """Record the refusal of an item by the server, "" if it was not reached.

        If it is not sure that it did not arrive, it is searched for before it is sent again.
        """
        sent_at = None if is_sure else item.sent_at
        self._put(replace(item, sent_at=sent_at, refusals=item.refusals + bool(refusal), error=refusal))

    def remove(self, item: QueueItem) -> None:
        with self._store.change_memories(self._namespace) as change:
            note = item.note
            change.drop(Note, kind=note.kind, id=note.id)

    def _put(self, item: QueueItem) -> QueueItem:
        with self._store.change_memories(self._namespace) as change:
            change.put(item.note)
        return item
