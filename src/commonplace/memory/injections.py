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
"""The kind of these notes."""
KEPT_S: Final = DAY_S


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


def injected(store: Store, namespace: str, conversation: str, now: float) -> set[str]:
    """Return the ids of what was injected into a conversation within a day."""
    return set(_held(store, namespace, now).get(_digest(conversation), ()))


def injections(store: Store, namespace: str, now: float) -> list[Injection]:
    """Return what was injected within a day, the latest first."""
    found: dict[tuple[float, str], list[str]] = {}
    for name, ids in _held(store, namespace, now).items():
        for id_, at in ids.items():
            found.setdefault((at, name), []).append(id_)
    return [Injection(moment_of(at), name, tuple(ids)) for (at, name), ids in sorted(found.items(), reverse=True)]


def add_injected(store: Store, namespace: str, conversation: str, ids: Collection[str], now: float) -> None:
    """Record what is injected into a conversation, and drop what is older than a day of all of them."""
    with store.change_memories(namespace) as change:
        held, name = _held(store, namespace, now), _digest(conversation)
        _write(store, namespace, change, held | {name: held.get(name, {}) | dict.fromkeys(ids, now)})


def clear_injected(store: Store, namespace: str, conversation: str, now: float) -> None:
    """Forget what was injected into a conversation."""
    if injected(store, namespace, conversation, now):
        with store.change_memories(namespace) as change:
            _write(store, namespace, change, _held(store, namespace, now) | {_digest(conversation): {}})


def erase_injected(store: Store, namespace: str, change: MemoryChange, ids: Collection[str]) -> None:
    """Remove ids from all conversations, in the change that erases them."""
    held = _held(store, namespace).items()
    left = {name: {id_: at for id_, at in each.items() if id_ not in ids} for name, each in held}
    _write(store, namespace, change, left)


def _held(store: Store, namespace: str, now: float | None = None) -> dict[str, dict[str, float]]:
    """Return ids and times by conversation: all, or those within a day of `now`."""
    held = {note.id: json.loads(note.body) for note in store.notes(namespace, INJECTED)}
    if now is None:
        return held
    # A clock may have been set back: what is far in the future is dropped too.
    return {name: {id_: at for id_, at in ids.items() if abs(now - at) < KEPT_S} for name, ids in held.items()}


def _write(store: Store, namespace: str, change: MemoryChange, wanted: Mapping[str, Mapping[str, float]]) -> None:
    """Make the notes hold what is wanted; write only those that differ."""
    held = _held(store, namespace)
    for name, ids in wanted.items():
        if not ids and name in held:
            change.drop(Note, kind=INJECTED, id=name)
        elif ids and ids != held.get(name):
            change.put(Note(INJECTED, name, max(ids.values()), json.dumps(ids, sort_keys=True)))


def _digest(conversation: str) -> str:
    return blake2b(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:32]
