"""Keep answers to requests with an idempotency key for a day, so that a repeated request is not executed again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, NamedTuple

from commonplace.retention import DAY_S
from commonplace.store.store import Store
from commonplace.types import Note

ANSWER: Final = "answer"
"""Kind of the notes. They may quote memories, so forgetting anything drops all of them in the namespace."""
TTL_S: Final = DAY_S
_DROP_INTERVAL_S: Final = 3_600.0


class StoredAnswer(NamedTuple):
    """The answer to a request: a checksum of the request, the HTTP status, and the body."""

    request: str
    status: int
    body: str


class Answers:
    """The answers of one namespace. Safe for threads."""

    def __init__(self, store: Store, namespace: str, now: Callable[[], float]) -> None:
        self._store, self._namespace, self._now = store, namespace, now
        self._dropped_at = float("-inf")

    def find(self, key: str) -> StoredAnswer | None:
        """Return the answer to a request that came with this key within a day."""
        now = self._now()
        notes = self._store.notes(self._namespace, ANSWER, key)
        return next((StoredAnswer(*json.loads(note.body)) for note in notes if abs(now - note.at) < TTL_S), None)

    def keep(self, key: str, answer: StoredAnswer) -> None:
        """Store an answer; once an hour, drop those older than a day.

        Raises:
            StoreError: the store cannot be written.
        """
        now = self._now()
        with self._store.change_memories(self._namespace) as change:
            if abs(now - self._dropped_at) >= _DROP_INTERVAL_S:
                for note in self._store.notes(self._namespace, ANSWER):
                    if abs(now - note.at) >= TTL_S:
                        change.drop(Note, kind=ANSWER, id=note.id)
                self._dropped_at = now
            change.put(Note(ANSWER, key, now, json.dumps(answer)))
