"""Read and write backup archives: zip files with a manifest of sizes and checksums.

Archives are untrusted: names, sizes and checksums are verified before and while a member is unpacked, and members that
the manifest does not list are rejected.

Deletions report existing backups, since these still hold what is deleted later.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Final
from zipfile import BadZipFile

from commonplace.dataclasses import asdict, dataclass, replace
from commonplace.dates.time import iso, moment_of
from commonplace.errors import (
    NotFoundError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
    UsageError,
)
from commonplace.exchange.codec import built
from commonplace.files import open_file
from commonplace.formats.json_values import View
from commonplace.settings.paths import DATABASE, VAULT
from commonplace.store.store import Store
from commonplace.types import Note, Progress

FORMAT: Final = "commonplace-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
FOLDERS: Final = ("memory", VAULT)
"""Directories of a store whose Markdown belongs to a backup."""
LONG_TERM: Final = "MEMORY"
"""Prefix of the Markdown files beside them."""
SUFFIX: Final = ".md"

_MAX_MANIFEST_BYTES = 64 * 2**20
_PIECE_BYTES = 2**20
_NOT_READABLE = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    UsageError,
)
"""What is raised over archives that are cut off, damaged, encrypted, or made to annoy."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a backup.

    Attributes:
        path: posix, relative to the store's directory.
        mtime_ns: when it was changed last; restoring sets it, so that the journal knows its own pages again.
    """

    path: str
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says of itself.

    Attributes:
        commonplace: the release that wrote it.
        store: the store's id.
        change: last number of the change sequence that the database holds.
        created_at: ISO 8601, UTC.
    """

    commonplace: str
    store: str
    change: int
    created_at: str
    members: tuple[Member, ...] = ()

    @property
    def total_bytes(self) -> int:
        return sum(member.size for member in self.members)


def write_archive(
    file: IO[bytes],
    sources: Sequence[tuple[str, Path]],
    about: Manifest,
    count: Callable[[int], object] = lambda _: None,
) -> Manifest:
    """Pack files, then the manifest over what was packed; a file that is gone meanwhile is left out.

    Args:
        sources: (path in the archive, file).
        about: the manifest but for the members.
        count: called with how many bytes more were packed.
    """
    members = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, source in sources:
            try:
                opened = source.open("rb")
            except FileNotFoundError:
                continue
            with opened:
                members.append(_pack(archive, path, opened, count))
        made = replace(about, members=tuple(members))
        document = {"format": FORMAT, "version": VERSION, **asdict(made)}
        archive.writestr(MANIFEST, json.dumps(document, indent=1))
    return made


def _pack(archive: zipfile.ZipFile, path: str, file: IO[bytes], count: Callable[[int], object]) -> Member:
    digest, size = hashlib.sha256(), 0
    mtime_ns = os.fstat(file.fileno()).st_mtime_ns
    with archive.open(path, "w", force_zip64=True) as packed:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
            packed.write(piece)
            count(len(piece))
    return Member(path, size, digest.hexdigest(), mtime_ns)


@contextmanager
def opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open an archive whose members are those that its manifest lists.

    Raises:
        NotFoundError: there is no such file.
        StoreDamagedError: it is no backup, damaged, or names a file that a store does not have.
        StoreError: the file cannot be read.
        StoreVersionError: a newer Commonplace wrote the archive.
    """
    with _reading(path):
        file = open_file(path)
    with file:
        with _reading(path):
            archive = zipfile.ZipFile(file)
            archive.filename = str(path)
            manifest = _manifest(archive)
        with archive:
            yield archive, manifest


def unpack(archive: zipfile.ZipFile, member: Member) -> Iterator[bytes]:
    """Yield the bytes of a member, piece by piece; they are right only when all came.

    Raises:
        StoreDamagedError: they are not those that the manifest speaks of.
    """
    digest, left = hashlib.sha256(), member.size
    with _reading(archive.filename):
        info = archive.getinfo(member.path)
        is_plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
        if not is_plain or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadZipFile(f"{member.path!r:.200} is not a plain file, or packed in a way that backups are not")
        with archive.open(info) as file:
            while left >= 0 and (piece := file.read(_PIECE_BYTES)):
                left -= len(piece)
                digest.update(piece)
                yield piece
        if left or digest.hexdigest() != member.sha256:
            raise BadZipFile(f"{member.path!r:.200} has not the size or the checksum that the manifest gives")


@contextmanager
def _reading(path: object) -> Iterator[None]:
    """Convert the errors of `zipfile`, and our own checks, into store errors."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no backup {path}", remedy="check the path") from error
    except (*_NOT_READABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            why = f"cannot read {path}: {error.strerror}"
            raise StoreError(why, remedy="name a backup that you may read") from error
        # The remedy of a check that exports share, "export again", is none for a backup.
        why = error.args[0] if isinstance(error, UsageError) else str(error)
        raise StoreDamagedError(
            f"the backup {path} cannot be restored: {why or type(error).__name__}",
            remedy="name a whole file that `commonplace backup` wrote; nothing was changed",
        ) from error


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    names = archive.namelist()
    with archive.open(MANIFEST) as file:
        data = file.read(_MAX_MANIFEST_BYTES + 1)
    if names.count(MANIFEST) != 1 or len(data) > _MAX_MANIFEST_BYTES:
        raise BadZipFile(f"it has more than one {MANIFEST}, or one of more than {_MAX_MANIFEST_BYTES:,} bytes")
    document = json.loads(data)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise BadZipFile("it is not a backup of Commonplace")
    version = document.pop("version", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise BadZipFile(f"the version of its format is {version!r:.80}")
    if version > VERSION:
        raise StoreVersionError(
            f"the backup has version {version} of the format, this Commonplace knows versions up to {VERSION}",
            remedy="upgrade Commonplace",
        )
    members = tuple(built(Member, each) for each in document.pop("members"))
    manifest = replace(built(Manifest, {**document, "members": []}), members=members)
    if datetime.fromisoformat(manifest.created_at).tzinfo is None:
        raise BadZipFile(f"created_at is {manifest.created_at!r:.80} in its manifest, no time")
    if sorted(names) != sorted([*(member.path for member in members), MANIFEST]):
        raise BadZipFile("its members are not the ones that its manifest lists")
    if len(set(names)) != len(names) or DATABASE not in names:
        raise BadZipFile(f"it has a member twice, or no {DATABASE}")
    for member in members:
        _refuse_foreign_path(member.path)
        if archive.getinfo(member.path).file_size != member.size:
            raise BadZipFile(f"{member.path!r:.200} has not the size that the manifest gives")
    return manifest


def _refuse_foreign_path(path: str) -> None:
    """Refuse a name that could lead anywhere but to a file of a store's own."""
    if path == DATABASE:
        return
    parts = PurePosixPath(path).parts
    is_plain = path == "/".join(parts) and ".." not in parts and "\0" not in path
    is_ours = path.startswith(LONG_TERM) if len(parts) == 1 else bool(parts) and parts[0] in FOLDERS
    if not (is_plain and is_ours and path.endswith(SUFFIX)):
        raise BadZipFile(f"{path!r:.200} is no name of a store's file")


_TIMES = 200


def counter(progress: Progress | None, what: str, total: int) -> Callable[[int], None]:
    """Return a function to call with the amount done since; it reports every half per cent, and the end."""
    done = told = 0

    def count(more: int) -> None:
        nonlocal done, told
        done += more
        if progress and (done >= total or done - told >= total / _TIMES):
            told = done
            progress(what, done, total)

    if progress:
        progress(what, 0, total)
    return count


_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MAKE_ROOM: Final = "make room, or name another place"
_OF_WHAT_IT_HOLDS: Final = (StoreBusyError, StoreDamagedError, StoreVersionError)


@contextmanager
def file_errors(what: str, *, remedy: str = "name another place") -> Iterator[None]:
    """Turn an error of a file into the store's.

    Args:
        what: what cannot be done, as in "cannot write /b.zip".
        remedy: what helps where it is not for want of room.
    """
    try:
        yield
    except OSError as error:
        helps = _MAKE_ROOM if error.errno in _NO_ROOM else remedy
        raise StoreError(f"{what}: {error.strerror or error}", remedy=helps) from error


def refuse_occupied(target: Path) -> None:
    """Refuse a path for a new file that exists, or whose directory does not.

    Raises:
        StoreError: naming it.
    """
    if os.path.lexists(target):
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")
    with file_errors(f"cannot write {target}"):
        is_place = target.parent.is_dir()
    if not is_place:
        raise StoreError(
            f"cannot write {target}: {target.parent} is no directory", remedy="make it, or name another one"
        )


@contextmanager
def database_errors(what: str, database: Path, shown: str) -> Iterator[None]:
    """Convert errors of a temporary database, whose name means nothing to users, into errors of the operation.

    Args:
        shown: what to call it where the error is about what it holds.
    """
    try:
        yield
    except _OF_WHAT_IT_HOLDS as error:
        raise type(error)(error.args[0].replace(str(database), shown), remedy=error.remedy) from error
    except StoreError as error:
        cause = error.__cause__
        if cause is None:
            raise
        raise StoreError(f"{what}: {getattr(cause, 'strerror', None) or cause}", remedy=_MAKE_ROOM) from error


STORE_SPACE: Final = ""
"""The namespace of notes about the store as a whole; nobody can open it, and it holds nothing else."""
BACKUP: Final = "backup"
"""The kind of the notes about copies elsewhere: {"path": …, "at": …}, and "replaced": true where it is no backup."""


def backup_note(path: Path, at: datetime, **more: bool) -> Note:
    """Return the note of a backup that was made at a time; of a store that was replaced then with `replaced=True`."""
    at = at.astimezone(UTC)
    return Note(BACKUP, str(path), at.timestamp(), json.dumps({"path": str(path), "at": iso(at), **more}))


@dataclass(frozen=True, slots=True)
class KnownBackup(View):
    """A backup that was made, or a store that was replaced.

    Attributes:
        size: bytes of the file now; None where it is not there any more.
    """

    path: str
    at: datetime
    is_replaced: bool
    size: int | None


def known_backups(store: Store) -> list[KnownBackup]:
    """Return the backups that a store has noted, the latest first."""
    found = []
    for note in reversed(store.notes(None, BACKUP)):
        file, is_replaced = Path(note.id), bool(json.loads(note.body).get("replaced"))
        size = file.stat().st_size if file.is_file() else None
        found.append(KnownBackup(note.id, moment_of(note.at), is_replaced, size))
    return found


def noted_in(database: Path) -> list[Note]:
    """Return the notes of a store that is about to be replaced, none where it cannot be read."""
    with suppress(StoreError), closing(Store.open(database, create=False)) as store:
        return store.notes(None, BACKUP)
    return []


def put_notes(database: Path, notes: Iterable[Note]) -> None:
    with closing(Store.open(database, create=False)) as store, store.change_memories(STORE_SPACE) as change:
        for note in notes:
            change.put(note)


def examined(database: Path, damage: str, remedy: str) -> tuple[str, int]:
    """Check a store that nobody else has open; return its id and change.

    Raises:
        StoreDamagedError: it is damaged, in the words that are given.
    """
    with closing(Store.open(database, create=False)) as store:
        problems = store.check()
        if problems:
            raise StoreDamagedError(f"{damage}: {problems[0]}", remedy=remedy)
        return store.id, store.change()
