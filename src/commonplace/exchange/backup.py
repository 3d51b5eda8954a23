"""Write, verify and read backups: zip archives with a manifest of sizes and checksums.

Archives are untrusted: names, sizes and checksums are verified before and while a member is unpacked, and members that
the manifest does not list are rejected.

Deletions report existing backups, which still hold what is deleted later; a note in the store names each backup.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import chain
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
from commonplace.exchange.codec import build
from commonplace.files import open_file, sync
from commonplace.formats.json_values import View
from commonplace.settings.paths import DATABASE, VAULT
from commonplace.store.drafts import MAKE_ROOM, clear_drafts, draft, file_errors, refuse_occupied
from commonplace.store.schema import WHOLE_STORE
from commonplace.store.store import Store
from commonplace.text.characters import storable
from commonplace.types import Note, Progress

FORMAT: Final = "commonplace-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
FOLDERS: Final = ("memory", VAULT)
"""Directories of a store whose Markdown belongs to a backup."""
LONG_TERM: Final = "MEMORY"
"""Name prefix of the Markdown files in the store's directory itself that belong to a backup."""
SUFFIX: Final = ".md"

_MAX_MANIFEST_BYTES = 64 * 2**20
_PIECE_BYTES = 2**20
_NOT_READABLE = (
    BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OverflowError,
    RuntimeError,
    ValueError,
    KeyError,
    TypeError,
    UsageError,
)
"""Errors raised for archives that are truncated, damaged, encrypted or malicious."""


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A verified backup.

    Attributes:
        path: absolute path.
        size: bytes of the file.
        store: the store's id.
        change: last number of the change sequence that it holds.
        files: number of Markdown files in it, besides the database.
        notices: one sentence each, for people.
    """

    path: Path
    size: int
    store: str
    change: int
    files: int
    created_at: datetime
    seconds: float
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a backup.

    Attributes:
        path: posix, relative to the store's directory.
        mtime_ns: time of the last change; restoring sets it, so that the journal recognises its own pages.
    """

    path: str
    size: int
    sha256: str
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a backup; `store` and `change` are those of `BackupReport`.

    Attributes:
        commonplace: the release that wrote it.
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


def back_up(
    store: Store, directory: Path, target: Path, *, now: float, progress: Progress | None = None
) -> BackupReport:
    """Write a backup of the store in a directory to a new file; see `Engine.backup`.

    The database is copied first: Markdown that changes meanwhile is then newer, and a restore imports it like any page
    that somebody edited. The reverse order would undo what was remembered last.
    """
    from importlib.metadata import version

    begun = time.perf_counter()
    target = target.expanduser().absolute()
    refuse_occupied(target)
    if target.parent.resolve().is_relative_to(directory.resolve()):
        raise StoreError(
            f"{target} is inside the store, which deletions scan",
            remedy="name a place outside of the store",
        )
    created_at = datetime.fromtimestamp(now, UTC)
    writing = f"cannot write {target}"
    drafts = [old for old in clear_drafts(directory) if old.state == "unreachable"]
    with draft(directory, target) as base:
        database, archive = (base.with_name(f"{base.name}{end}") for end in (".db", ".new"))
        with file_errors(writing), archive.open("xb") as file:
            with database_errors(writing, database, str(directory / DATABASE)):
                counter(progress, "Copying the database", 0)
                store.backup(database)
                damaged = "the store is damaged, so that no backup of it was kept"
                identity = check_database(database, damaged, "see `commonplace doctor`, and keep the earlier backups")
            sources, links = _markdown(directory)
            sources.insert(0, (DATABASE, database))
            sizes = (path.stat().st_size for _, path in sources if path.exists())
            header = Manifest(version("commonplace"), *identity, iso(created_at))
            manifest = _write_archive(file, sources, header, counter(progress, "Backing up", sum(sizes)))
            file.flush()
            os.fsync(file.fileno())
        count = counter(progress, "Reading the backup", manifest.total_bytes)
        with open_backup(archive) as (packed, manifest_read):
            for member in manifest_read.members:
                for piece in unpack(packed, member):
                    count(len(piece))
        if manifest_read != manifest:
            raise StoreDamagedError(f"{archive} does not hold what was written to it", remedy="check the disk")
        if not store.is_read_only:  # before the rename: a receipt should rather name one too many
            with store.change_memories(WHOLE_STORE) as change:
                change.put(backup_note(target, created_at))
        refuse_occupied(target)
        with file_errors(writing):
            archive.rename(target)
            sync(target.parent)
    notices = [f"{path} is a link, and was skipped" for path in links]
    notices += [f"an earlier one was killed, and what it left ({old.path}) {old.why}: {old.remedy}" for old in drafts]
    if store.is_read_only:
        notices.append(
            "the store is read-only and cannot note where this backup is: a later deletion will not report it"
        )
    return BackupReport(
        path=target,
        size=target.stat().st_size,
        store=manifest.store,
        change=manifest.change,
        files=len(manifest.members) - 1,
        created_at=created_at,
        seconds=time.perf_counter() - begun,
        notices=tuple(notices),
    )


def _markdown(directory: Path) -> tuple[list[tuple[str, Path]], list[Path]]:
    """Return (path in the archive, file) of a store's Markdown files, and the links, which are left out; sorted."""
    files, links = [], []
    iterators = [directory.glob(f"{LONG_TERM}*{SUFFIX}")]
    for folder in FOLDERS:
        walk = os.walk(directory / folder)
        iterators.append(Path(parent, name) for parent, folders, names in walk for name in (*folders, *names))
    for path in chain.from_iterable(iterators):
        if path.is_symlink():
            links.append(path)
        elif path.name.endswith(SUFFIX) and path.is_file():
            name = path.relative_to(directory).as_posix()
            if storable(name) != name:
                raise StoreError(f"{name!r} has a name that is not UTF-8, which no backup can hold", remedy="rename it")
            files.append((name, path))
    return sorted(files), sorted(links)


def _write_archive(
    file: IO[bytes], sources: Sequence[tuple[str, Path]], about: Manifest, count: Callable[[int], object]
) -> Manifest:
    """Pack (path in the archive, file) pairs, then the manifest; leave out a file that has disappeared."""
    members = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, source in sources:
            try:
                source_file = source.open("rb")
            except FileNotFoundError:
                continue
            digest, size = hashlib.sha256(), 0
            with source_file, archive.open(path, "w", force_zip64=True) as packed:
                mtime_ns = os.fstat(source_file.fileno()).st_mtime_ns
                while piece := source_file.read(_PIECE_BYTES):
                    digest.update(piece)
                    size += len(piece)
                    packed.write(piece)
                    count(len(piece))
            members.append(Member(path, size, digest.hexdigest(), mtime_ns))
        manifest = replace(about, members=tuple(members))
        archive.writestr(MANIFEST, json.dumps({"format": FORMAT, "version": VERSION, **asdict(manifest)}, indent=1))
    return manifest


@contextmanager
def open_backup(path: Path) -> Iterator[tuple[zipfile.ZipFile, Manifest]]:
    """Open an archive; check that its members are those that its manifest lists.

    Raises:
        NotFoundError: the file does not exist.
        StoreDamagedError: the file is damaged, no backup, or has a member that is no file of a store.
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


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    names = archive.namelist()
    with archive.open(MANIFEST) as file:
        data = file.read(_MAX_MANIFEST_BYTES + 1)
    if names.count(MANIFEST) != 1 or len(data) > _MAX_MANIFEST_BYTES:
        raise BadZipFile(f"it has more than one {MANIFEST}, or one of more than {_MAX_MANIFEST_BYTES:,} bytes")
    document = json.loads(data)
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        raise BadZipFile("it is not a backup of Commonplace")
    format_version = document.pop("version", None)
    if not isinstance(format_version, int) or isinstance(format_version, bool) or format_version < 1:
        raise BadZipFile(f"the version of its format is {format_version!r:.80}")
    if format_version > VERSION:
        raise StoreVersionError(
            f"the backup has version {format_version} of the format, this Commonplace knows versions up to {VERSION}",
            remedy="upgrade Commonplace",
        )
    members = tuple(build(Member, entry) for entry in document.pop("members"))
    manifest = replace(build(Manifest, {**document, "members": []}), members=members)
    if datetime.fromisoformat(manifest.created_at).tzinfo is None:
        raise BadZipFile(f"created_at is {manifest.created_at!r:.80} in its manifest, no time")
    if sorted(names) != sorted([*(member.path for member in members), MANIFEST]):
        raise BadZipFile("its members are not the ones that its manifest lists")
    if len(set(names)) != len(names) or DATABASE not in names:
        raise BadZipFile(f"it has a member twice, or no {DATABASE}")
    for member in members:
        # A name must not lead anywhere but to a file of the store.
        parts = PurePosixPath(member.path).parts
        is_plain = member.path == "/".join(parts) and ".." not in parts and "\0" not in member.path
        is_ours = member.path.startswith(LONG_TERM) if len(parts) == 1 else bool(parts) and parts[0] in FOLDERS
        if member.path != DATABASE and not (is_plain and is_ours and member.path.endswith(SUFFIX)):
            raise BadZipFile(f"{member.path!r:.200} is no name of a store's file")
        if archive.getinfo(member.path).file_size != member.size:
            raise BadZipFile(f"{member.path!r:.200} has not the size that the manifest gives")
    return manifest


def unpack(archive: zipfile.ZipFile, member: Member) -> Iterator[bytes]:
    """Yield the bytes of a member, piece by piece; they are verified only after the last one.

    Raises:
        StoreDamagedError: the size or checksum is not the one in the manifest.
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
            reason = f"cannot read {path}: {error.strerror}"
            raise StoreError(reason, remedy="name a backup that you may read") from error
        # Drop the remedy of a check shared with exports: "export again" does not help with a backup.
        reason = error.args[0] if isinstance(error, UsageError) else str(error)
        raise StoreDamagedError(
            f"the backup {path} cannot be restored: {reason or type(error).__name__}",
            remedy="name a whole file that `commonplace backup` wrote; nothing was changed",
        ) from error


def counter(progress: Progress | None, what: str, total: int) -> Callable[[int], None]:
    """Return a function to call with each amount done; it reports progress every half per cent and at the end."""
    done = reported = 0

    def count(more: int) -> None:
        nonlocal done, reported
        done += more
        if progress and (done >= total or done - reported >= total / 200):
            reported = done
            progress(what, done, total)

    if progress:
        progress(what, 0, total)
    return count


@contextmanager
def database_errors(what: str, database: Path, shown: str) -> Iterator[None]:
    """Convert errors of a temporary database, whose name users do not know, into errors of the operation."""
    try:
        yield
    except (StoreBusyError, StoreDamagedError, StoreVersionError) as error:
        raise type(error)(error.args[0].replace(str(database), shown), remedy=error.remedy) from error
    except StoreError as error:
        cause = error.__cause__
        if cause is None:
            raise
        raise StoreError(f"{what}: {getattr(cause, 'strerror', None) or cause}", remedy=MAKE_ROOM) from error


def check_database(database: Path, damage: str, remedy: str) -> tuple[str, int]:
    """Check a store that nobody else has open; return its id and change, or raise with the message `damage`."""
    with closing(Store.open(database, create=False)) as store:
        problems = store.check()
        if problems:
            raise StoreDamagedError(f"{damage}: {problems[0]}", remedy=remedy)
        return store.id, store.change()


BACKUP: Final = "backup"
"""Kind of the notes about copies of the store: {"path": …, "at": …}, with "replaced": true for a replaced store."""


def backup_note(path: Path, at: datetime, **more: bool) -> Note:
    """Return the note of a backup made at a time, or with `replaced=True` of a store that was replaced then."""
    at = at.astimezone(UTC)
    return Note(BACKUP, str(path), at.timestamp(), json.dumps({"path": str(path), "at": iso(at), **more}))


def put_notes(database: Path, notes: Iterable[Note]) -> None:
    with closing(Store.open(database, create=False)) as store, store.change_memories(WHOLE_STORE) as change:
        for note in notes:
            change.put(note)


@dataclass(frozen=True, slots=True)
class KnownBackup(View):
    """A backup that was made, or a store that was replaced.

    Attributes:
        size: bytes of the file now; None if it no longer exists.
    """

    path: str
    at: datetime
    is_replaced: bool
    size: int | None


def known_backups(store: Store) -> list[KnownBackup]:
    """Return the backups that a store has noted, latest first."""
    backups = []
    for note in reversed(store.notes(WHOLE_STORE, BACKUP)):
        file, is_replaced = Path(note.id), bool(json.loads(note.body).get("replaced"))
        size = file.stat().st_size if file.is_file() else None
        backups.append(KnownBackup(note.id, moment_of(note.at), is_replaced, size))
    return backups
