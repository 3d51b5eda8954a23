"""Write notes into the vault of a namespace, one for each memory, atomically and never over another file.

Notes of `default` are in `vault/`, those of another namespace in `vault/<name>/`, named like its journal. Deeper
directories belong to the user. All files are opened relative to the store's directory without following links, so that
no title, link or directory leads out of the vault.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.erasure.resume import DRAFT, FRONT_MATTER_BYTES, VAULT
from commonplace.errors import StoreError
from commonplace.files import open_file
from commonplace.formats.vault import (
    EXTENSION,
    Note,
    file_names,
    memory_id_of,
    read_note,
    rewrite_note,
    same_place,
    write_note,
)
from commonplace.journal.folder import DEFAULT, directory_name
from commonplace.text.hashes import sha256

MAX_NOTE_BYTES: Final = 8 * 1024 * 1024

_NO_LINKS: Final = os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o666
_NOT_THERE: Final = -1
"""In the place of a handle, where there is no vault yet."""


@dataclass(frozen=True, slots=True)
class Page:
    """A note that was written.

    Attributes:
        path: relative to the store's directory, posix.
        sha256: of its bytes, where nothing in it is a person's; else "", so that undoing leaves it.
        by_hand: what of it is a person's and was kept; see `formats.vault.Rewritten`.
    """

    path: str
    sha256: str
    by_hand: tuple[str, ...] = ()


@dataclass(slots=True)
class _Listing:
    """What lies in the vault, as it was when the directory was changed last."""

    stamp: tuple[int, int] = (0, 0)
    notes: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)


class Vault:
    """The notes of one namespace. Where a note was written before, that path is given as `known`.

    Raises:
        StoreError: the vault, or a note of it, is a link, or cannot be read or written.
    """

    def __init__(self, directory: Path, namespace: str) -> None:
        self._directory = directory
        self._parts = (VAULT,) if namespace == DEFAULT else (VAULT, directory_name(namespace))
        self._listing = _Listing()

    @property
    def folder(self) -> Path:
        return self._directory.joinpath(*self._parts)

    def path_of(self, note: Note, known: str = "") -> str:
        """Return where a note lies, or would be written, relative to the store's directory."""
        with self._opened(create=False) as place:
            if place is None:
                return self._shown(next(file_names(note.title, note.memory_id)))
            return self._shown(self._name_of(place, note.memory_id, known) or self._free_names(place, note)[0])

    def read(self, memory_id: str, known: str = "") -> Note | None:
        """Return what a memory's note says; None where it has none here, or one whose front matter cannot be read."""
        with self._opened(create=False) as place:
            name = None if place is None else self._name_of(place, memory_id, known)
            if place is None or name is None:
                return None
            return read_note(self._read(place, name).decode("utf-8", "replace"))

    def write(self, note: Note, before: Sequence[Note] = (), known: str = "") -> Page:
        """Write a memory's note: anew, or over its own, with what a person did to that one.

        Args:
            before: notes of the versions that the memory had, by which a person's words are told from ours.
        """
        with self._opened(create=True) as place:
            assert place is not None
            name = self._name_of(place, note.memory_id, known)
            if name is None:
                return self._add(place, note)
            old = self._read(place, name)
            try:
                again = rewrite_note(old.decode("utf-8"), note, before)
            except UnicodeDecodeError as error:
                raise self._fault(name, f"is not UTF-8 (at byte {error.start})", "save it as UTF-8") from error
            data = again.text.encode("utf-8", "replace")
            if data != old:
                self._put(place, name, data, old)
            return Page(self._shown(name), "" if again.by_hand else sha256(data).hexdigest(), again.by_hand)

    def _add(self, place: int, note: Note) -> Page:
        data = write_note(note).encode("utf-8", "replace")
        for name in self._free_names(place, note):
            with suppress(FileExistsError):  # a person was faster
                self._put(place, name, data, None)
                return Page(self._shown(name), sha256(data).hexdigest())
        raise self._fault(name, "is another's", "rename it")

    def _free_names(self, place: int, note: Note) -> list[str]:
        names = list(file_names(note.title, note.memory_id))
        taken = self._listed(place).taken
        return [name for name in names if same_place(name) not in taken] or names[-1:]

    def _name_of(self, place: int, memory_id: str, known: str) -> str | None:
        """Return the name of a memory's note: where it was written, if that is still its own, else where it is now."""
        listing = self._listed(place)
        *parts, name = known.split("/")
        if tuple(parts) == self._parts and _owner(place, name) == memory_id:
            return name
        return listing.notes.get(memory_id)

    def _listed(self, place: int) -> _Listing:
        status = os.fstat(place)
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._listing.stamp:
            listing = _Listing(stamp)
            for name in sorted(os.listdir(place), reverse=True):
                listing.taken.add(same_place(name))
                owner = _owner(place, name) if name.endswith(EXTENSION) else None
                if owner is not None:
                    listing.notes[owner] = name
            self._listing = listing
        return self._listing

    def _read(self, place: int, name: str) -> bytes:
        with open_file(name, follow=False, place=place) as file:
            data = file.read(MAX_NOTE_BYTES + 1)
        if len(data) > MAX_NOTE_BYTES:
            raise self._fault(name, f"is larger than {MAX_NOTE_BYTES:,} bytes", "shorten it, or move it away")
        return data

    def _put(self, place: int, name: str, data: bytes, old: bytes | None) -> None:
        """Write a note under a name that is free, or in the place of what was read there."""
        with suppress(FileNotFoundError):
            os.unlink(DRAFT, dir_fd=place)
        handle = os.open(DRAFT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS, _MODE, dir_fd=place)
        try:
            with os.fdopen(handle, "wb") as file:
                if old is not None:
                    with open_file(name, follow=False, place=place) as model:
                        os.fchmod(handle, stat.S_IMODE(os.fstat(model.fileno()).st_mode))
                file.write(data)
                file.flush()
                os.fsync(handle)
            if old is None:
                _name_anew(place, name)
            elif self._read(place, name) != old:
                raise self._fault(name, "was edited just now", "run it again")
            else:
                os.replace(DRAFT, name, src_dir_fd=place, dst_dir_fd=place)
        finally:
            with suppress(OSError):
                os.unlink(DRAFT, dir_fd=place)
        os.fsync(place)
        listing = self._listing
        listing.taken.add(same_place(name))
        owner = memory_id_of(data[:FRONT_MATTER_BYTES].decode("utf-8", "replace"))
        if owner is not None:
            listing.notes[owner] = name
        status = os.fstat(place)
        listing.stamp = (status.st_mtime_ns, status.st_ino)

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[int | None]:
        """Open the directory of the notes, from the store's downward; None where it is not there."""
        handles: list[int] = []
        path = self._directory
        try:
            handles.append(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for part in self._parts:
                path = path / part
                handle = _opened_directory(handles[-1], part, create=create)
                if handle is None:
                    yield None
                    return
                handles.append(handle)
            yield handles[-1]
        except OSError as error:
            raise _said(path, error) from error
        finally:
            for handle in reversed(handles):
                os.close(handle)

    def _shown(self, name: str) -> str:
        return "/".join((*self._parts, name))

    def _fault(self, name: str, what: str, remedy: str) -> StoreError:
        return StoreError(f"{self._directory / self._shown(name)} {what}", remedy=remedy)


class DryVault(Vault):
    """A vault whose notes are read, and on which nothing is written: what would be is kept in this object alone."""

    def __init__(self, directory: Path, namespace: str) -> None:
        super().__init__(directory, namespace)
        self._pages: dict[str, bytes] = {}
        self._names: dict[str, str] = {}

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[int | None]:  # noqa: ARG002 - nothing is made
        with super()._opened(create=False) as place:
            yield _NOT_THERE if place is None else place

    def _listed(self, place: int) -> _Listing:
        known = _Listing() if place == _NOT_THERE else super()._listed(place)
        return _Listing(known.stamp, known.notes | self._names, known.taken | set(map(same_place, self._pages)))

    def _read(self, place: int, name: str) -> bytes:
        return self._pages[name] if name in self._pages else super()._read(place, name)

    def _put(self, place: int, name: str, data: bytes, old: bytes | None) -> None:  # noqa: ARG002 - no file changes
        self._pages[name] = data
        owner = memory_id_of(data[:FRONT_MATTER_BYTES].decode("utf-8", "replace"))
        if owner is not None:
            self._names[owner] = name


class NoVault(Vault):
    """The vault of a store that has no directory: what is promoted has no note, and nothing is written."""

    def path_of(self, note: Note, known: str = "") -> str:  # noqa: ARG002
        return ""

    def read(self, memory_id: str, known: str = "") -> Note | None:  # noqa: ARG002
        return None

    def write(self, note: Note, before: Sequence[Note] = (), known: str = "") -> Page:  # noqa: ARG002
        return Page("", "")


def _opened_directory(place: int, name: str, *, create: bool) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS
    while True:
        try:
            return os.open(name, flags, dir_fd=place)
        except FileNotFoundError:
            if not create:
                return None
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=place)
            os.fsync(place)


def _owner(place: int, name: str) -> str | None:
    """Return the memory that a file says it is the note of; None where it says none, or is no file."""
    try:
        with open_file(name, follow=False, place=place) as file:
            return memory_id_of(file.read(FRONT_MATTER_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _name_anew(place: int, name: str) -> None:
    """Give the draft a name that nothing has; a FileExistsError says that something has it."""
    try:
        os.link(DRAFT, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links: between the two steps a person's file of that name would be lost.
        with suppress(FileNotFoundError):
            os.stat(name, dir_fd=place, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        os.rename(DRAFT, name, src_dir_fd=place, dst_dir_fd=place)


def _said(path: Path, error: OSError) -> StoreError:
    is_inside = error.filename and error.filename not in (path.name, DRAFT)
    named = path / os.fsdecode(error.filename) if is_inside else path
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return StoreError(
            f"{named} is a link or no directory, and links are not followed out of the store",
            remedy="put a directory in its place, or copy the notes to where you want them",
        )
    if error.errno in (errno.EINVAL, errno.EISDIR):
        return StoreError(f"{named} is no file", remedy="move it away")
    remedy = "make room on the disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
    return StoreError(f"{named} cannot be read or written: {error.strerror}", remedy=remedy)
