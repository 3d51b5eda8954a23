"""The notes in the vault that were written of memories: found by their path and by the id in their front matter."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from commonplace.errors import StoreError
from commonplace.formats.vault import memory_id_of

VAULT: Final = "vault"
DRAFT: Final = ".note.commonplace-draft"
"""The name of a file that is to be a note when it is complete."""
FRONT_MATTER_BYTES: Final = 65_536
"""In so many bytes a note has said of which memory it is."""


def notes_of(directory: Path, ids: Collection[str], paths: Collection[str]) -> list[Path]:
    """Return the notes of memories below the vault of a store, sorted; what lies outside of it is never among them.

    What was left of a note when its writer was killed is among them: it may not tell yet of which memory it is.

    Args:
        ids: of memories; a note is of one when a line `memory_id:` of its front matter says so.
        paths: where notes were written, relative to the store's directory.
    """
    vault = directory / VAULT
    if vault.is_symlink() or not vault.is_dir():
        return []
    wanted = set(ids)
    found = {path for path in vault.rglob("*.md") if _memory_id(path) in wanted}
    found |= set(vault.rglob(DRAFT)) if wanted else set()
    for name in paths:
        path = directory / name
        if path.is_file() and path.resolve().is_relative_to(vault.resolve()):
            found.add(path)
    return sorted(found)


def memories_of_notes(directory: Path, folder: Path) -> dict[str, str]:
    """Return whose notes lie in one folder of the vault: the memory's id by the path below the store's directory."""
    found = {path: _memory_id(path) for path in sorted(folder.glob("*.md"))} if folder.is_dir() else {}
    return {path.relative_to(directory).as_posix(): id_ for path, id_ in found.items() if id_ is not None}


def remove(notes: Collection[Path]) -> int:
    """Remove notes; return how many were there.

    Raises:
        StoreError: one cannot be removed.
    """
    gone = 0
    for note in notes:
        try:
            note.unlink()
            gone += 1
            if note.parent.parent.name == VAULT:
                with suppress(OSError):  # not empty; the name of a directory is that of a namespace
                    note.parent.rmdir()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(
                f"{note} cannot be removed: {error.strerror}", remedy="make its directory writable"
            ) from error
    return gone


def _memory_id(path: Path) -> str | None:
    """Return the memory's id in the front matter of a note, None where there is none."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
            return memory_id_of(file.read(FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
