"""The notes by which a store knows of its copies elsewhere: backups, and what a restore replaced. It copies nothing.

Whoever forgets is told of them: what is forgotten later is still in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commonplace.errors import StoreError
from commonplace.store.memory_contract import Note
from commonplace.store.sqlite import SqliteStore
from commonplace.times import iso

NOTE: Final = "backup"
"""Kind of these notes: {"path": …, "at": …}, and "replaced": true where it is no backup; their id is the path."""
SPACE: Final = ""
"""The namespace of notes that no namespace wrote; nobody can open it."""


def backup_note(path: Path, at: datetime) -> Note:
    """Return the note of a backup.

    Args:
        at: when it was made.
    """
    return _note(path, at)


def replaced_note(path: Path, at: datetime) -> Note:
    """Return the note of a store that was replaced, and kept at a path.

    Args:
        at: when it was replaced.
    """
    return _note(path, at, replaced=True)


def noted_in(database: Path) -> list[Note]:
    """Return the notes of a store that is about to be replaced, none where it cannot be read."""
    with suppress(StoreError):
        store = SqliteStore.open(database, create=False)
        try:
            return store.notes(None, NOTE)
        finally:
            store.close()
    return []


def put_notes(database: Path, notes: Iterable[Note]) -> None:
    """Write notes into a store that nobody else has open."""
    store = SqliteStore.open(database, create=False)
    try:
        with store.change_memories(SPACE) as change:
            for note in notes:
                change.put_note(note)
    finally:
        store.close()


def _note(path: Path, at: datetime, **more: bool) -> Note:
    at = at.astimezone(UTC)
    return Note(NOTE, str(path), at.timestamp(), json.dumps({"path": str(path), "at": iso(at), **more}))
