"""The notes in the vault that were written of memories: found by their path and by the id in their front matter."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from commonplace.errors import StoreError

VAULT = "vault"
_FRONT_MATTER_BYTES = 65_536


def notes_of(directory: Path, ids: Collection[str], paths: Collection[str]) -> list[Path]:
    """Return the notes of memories below the vault of a store, sorted; what lies outside of it is never among them.

    Args:
        ids: of memories; a note is of one when a line `memory_id:` of its front matter says so.
        paths: where notes were written, relative to the store's directory.
    """
    vault = directory / VAULT
    wanted = set(ids)
    found = {path for path in vault.rglob("*.md") if _memory_id(path) in wanted} if vault.is_dir() else set()
    for name in paths:
        path = directory / name
        if path.is_file() and path.resolve().is_relative_to(vault.resolve()):
            found.add(path)
    return sorted(found)


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
        with path.open("rb") as file:
            lines = file.read(_FRONT_MATTER_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    if not lines or lines[0].lstrip("\ufeff").strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            return None
        name, _, value = line.partition(":")
        if name.strip() == "memory_id":
            return value.strip().strip("\"'")
    return None
