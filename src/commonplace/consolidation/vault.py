"""Write notes into the vault of a namespace, one per memory; a note that a person made or edited is never overwritten.

Notes of `default` are in `vault/`, those of another namespace in `vault/<name>/`, named like its journal. Deeper
directories belong to the user. Links are not followed, so no title, link or directory leads out of the vault.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from commonplace.dataclasses import replace
from commonplace.erasure.copies import DRAFT, memory_of_note
from commonplace.errors import StoreError
from commonplace.files import read_file, sync
from commonplace.formats.vault import EXTENSION, VaultNote, file_names, name_key, write_note
from commonplace.formats.yaml import parse_front_matter
from commonplace.journal.folder import DEFAULT, directory_name, replace_file
from commonplace.settings.paths import VAULT
from commonplace.text.hashes import sha256

MAX_NOTE_BYTES: Final = 8 * 1024 * 1024


class Vault:
    """The notes of one namespace.

    Args:
        is_dry: write nothing and only return where notes would be.

    Raises:
        StoreError: the vault is a link, or the vault or one of its notes cannot be read or written.
    """

    def __init__(self, directory: Path, namespace: str, *, is_dry: bool = False) -> None:
        self._directory = directory
        self._parts = (VAULT,) if namespace == DEFAULT else (VAULT, directory_name(namespace))
        self._is_dry = is_dry
        self._stamp = (0, 0)
        """The state of the directory when it was listed; `_notes` and `_taken_names` are as of that state."""
        self._notes: dict[str, str] = {}
        self._taken_names: set[str] = set()

    @property
    def folder(self) -> Path:
        return self._directory.joinpath(*self._parts)

    def path_of(self, note: VaultNote) -> str:
        """Return the path where a note is, or would be written, relative to the store's directory."""
        with self._errors():
            return self._shown(self._name_of(note.memory_id) or self._free_name(note))

    def write(self, note: VaultNote) -> tuple[str, str]:
        """Write a memory's note; an existing note stays, unless an earlier run wrote it and nobody has edited it.

        Return its POSIX path relative to the store's directory, and the SHA-256 of its bytes, or "" if its content
        differs, so that an undo leaves it alone.
        """
        if self._is_dry:
            path = self.path_of(note)
            self._note_name(note.memory_id, path.rpartition("/")[2])
            return path, ""
        data = write_note(note).encode("utf-8", "replace")
        with self._errors():
            for depth in range(len(self._parts)):
                self._directory.joinpath(*self._parts[: depth + 1]).mkdir(exist_ok=True)
            name = self._name_of(note.memory_id)
            old = None if name is None else read_file(self.folder / name, MAX_NOTE_BYTES, follow=False)
            name = name or self._free_name(note)
            target = self.folder / name
            if old is None or (old != data and _is_written(old, note)):
                is_unchanged = None if old is None else lambda: read_file(target, MAX_NOTE_BYTES, follow=False) == old
                if replace_file(target, self.folder / DRAFT, data, is_unchanged) is None:
                    raise StoreError(f"{target} was edited just now", remedy="run it again")
                sync(self.folder)
                self._stamp = _stamp_of(self.folder)
                self._note_name(note.memory_id, name)
                old = data
            return self._shown(name), sha256(data).hexdigest() if old == data else ""

    def _note_name(self, memory_id: str, name: str) -> None:
        self._notes[memory_id] = name
        self._taken_names.add(name_key(name))

    def _name_of(self, memory_id: str) -> str | None:
        self._refresh()
        return self._notes.get(memory_id)

    def _free_name(self, note: VaultNote) -> str:
        *names, last = file_names(note.title, note.memory_id)
        return next((name for name in names if name_key(name) not in self._taken_names), last)

    def _refresh(self) -> None:
        """List the notes by memory, unless the directory is unchanged."""
        with suppress(FileNotFoundError):
            stamp = _stamp_of(self.folder)
            if stamp == self._stamp:
                return
            names = sorted((path.name for path in self.folder.iterdir()), reverse=True)
            self._stamp, self._notes, self._taken_names = stamp, {}, set(map(name_key, names))
            for name in names:
                owner = memory_of_note(self.folder / name) if name.endswith(EXTENSION) else None
                if owner is not None:
                    self._notes[owner] = name

    def _shown(self, name: str) -> str:
        return "/".join((*self._parts, name))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        path = self._directory
        for part in self._parts:
            path /= part
            with suppress(FileNotFoundError):
                if not stat.S_ISDIR(path.lstat().st_mode):
                    raise StoreError(
                        f"{path} is a link or no directory, and links are not followed out of the store",
                        remedy="put a directory in its place, or copy the notes to where you want them",
                    )
        try:
            yield
        except OSError as error:
            remedy = "make room on the disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
            failed_path = error.filename or self.folder
            raise StoreError(f"{failed_path} cannot be read or written: {error.strerror}", remedy=remedy) from error


def _is_written(data: bytes, note: VaultNote) -> bool:
    """Return whether a file is an unedited note of the same memory, written for any reason and score."""
    front = parse_front_matter(data.decode("utf-8", "replace")).values
    old_note = replace(note, reason=front.get("promotion_reason", ""), score=front.get("decay_score", 0.0))  # type: ignore[arg-type]
    return data == write_note(old_note).encode("utf-8", "replace")


def _stamp_of(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_mtime_ns, status.st_ino
