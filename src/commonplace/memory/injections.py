"""Remember which memories were injected into a conversation, for a day, so that none is injected twice.

A conversation is one note in the store: a digest of its name, and the injected ids with their times.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.dates.time import moment_of
from commonplace.formats.json_values import View
from commonplace.retention import DAY_S
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.text.hashes import blake2b
from commonplace.types import Note

INJECTED: Final = "injected"
"""Kind of the notes that record injections."""
TTL_S: Final = DAY_S


@dataclass(frozen=True, slots=True)
class Injection(View):
    """What was injected into a conversation.

    Attributes:
        conversation: a digest of its name.
        ids: of memories, artifacts and knowledge.
    """

    at: datetime
    conversation: str
    ids: tuple[str, ...]


def read_injected(store: Store, namespace: str, conversation: str, now: float) -> set[str]:
    """Return the ids of what was injected into a conversation within a day."""
    return set(_recorded(store, namespace, now).get(_digest(conversation), ()))


def injections(store: Store, namespace: str, now: float) -> list[Injection]:
    """Return what was injected within a day, the latest first."""
    groups: dict[tuple[float, str], list[str]] = {}
    for name, ids in _recorded(store, namespace, now).items():
        for id_, time in ids.items():
            groups.setdefault((time, name), []).append(id_)
    return [Injection(moment_of(time), name, tuple(ids)) for (time, name), ids in sorted(groups.items(), reverse=True)]


def add_injected(store: Store, namespace: str, conversation: str, ids: Collection[str], now: float) -> None:
    """Record ids injected into a conversation, and drop injections older than a day from all conversations."""
    with store.change_memories(namespace) as change:
        recorded, name = _recorded(store, namespace, now), _digest(conversation)
        _write(store, namespace, change, recorded | {name: recorded.get(name, {}) | dict.fromkeys(ids, now)})


def clear_injected(store: Store, namespace: str, conversation: str, now: float) -> None:
    """Forget what was injected into a conversation."""
    if read_injected(store, namespace, conversation, now):
        with store.change_memories(namespace) as change:
            _write(store, namespace, change, _recorded(store, namespace, now) | {_digest(conversation): {}})


def erase_injected(store: Store, namespace: str, change: MemoryChange, ids: Collection[str]) -> None:
    """Remove ids from all conversations, in the change that erases them."""
    recorded = _recorded(store, namespace).items()
    remaining = {name: {id_: time for id_, time in times.items() if id_ not in ids} for name, times in recorded}
    _write(store, namespace, change, remaining)


def _recorded(store: Store, namespace: str, now: float | None = None) -> dict[str, dict[str, float]]:
    """Return ids and times by conversation: all, or those within a day of `now`."""
    notes = {note.id: json.loads(note.body) for note in store.notes(namespace, INJECTED)}
    if now is None:
        return notes
    # The clock may have been set back: times far in the future are dropped too.
    return {name: {id_: time for id_, time in ids.items() if abs(now - time) < TTL_S} for name, ids in notes.items()}


def _write(store: Store, namespace: str, change: MemoryChange, target: Mapping[str, Mapping[str, float]]) -> None:
    """Bring the notes to the wanted state; write only those that differ."""
    recorded = _recorded(store, namespace)
    for name, ids in target.items():
        if not ids and name in recorded:
            change.drop(Note, kind=INJECTED, id=name)
        elif ids and ids != recorded.get(name):
            change.put(Note(INJECTED, name, max(ids.values()), json.dumps(ids, sort_keys=True)))


def _digest(conversation: str) -> str:
    return blake2b(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:32]
