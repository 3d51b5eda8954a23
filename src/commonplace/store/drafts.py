"""Register files that are being written outside the store, so that those of a killed process are cleaned up.

A backup or export is written beside its target under a draft name, which a note in the store's directory records first.
A restore is written into a directory beside the store, which contains its note. The writer holds a lock on the note: an
unlocked note belongs to a dead process.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import StoreError
from commonplace.files import sync

RESTORE_NOTE: Final = "restore.json"
"""Name of a restore's note: in its directory, and for a moment in the store that the directory becomes."""

MAKE_ROOM: Final = "make room, or name another place"
_NOTE: Final = "draft-{}.json"
_NOTE_NAME: Final = re.compile(r"draft-([0-9a-f]{32})\.json")
_MAX_NOTE_BYTES: Final = 65_536

State = Literal["removed", "abandoned", "live", "unreachable"]


@dataclass(frozen=True, slots=True)
class Draft:
    """An unfinished copy of a store that `clear_drafts` found.

    Attributes:
        path: its directory, or the common prefix of its files followed by `*`.
        target: the path that it was to get.
        state: `removed`; `abandoned`, but not removed because the caller asked only for a report; `live`, written by a
            running process; `unreachable`.
        why: the reason why it is unreachable, a clause that continues the path; else "".
        remedy: what to do if it is unreachable.
    """

    path: str
    target: str
    state: State
    why: str = ""
    remedy: str = ""


@contextmanager
def file_errors(prefix: str, *, remedy: str = "name another place") -> Iterator[None]:
    """Convert errors of a file into a `StoreError`.

    Args:
        prefix: the beginning of the message, such as "cannot write /b.zip".
        remedy: the remedy unless the disk is full.
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise StoreError(f"{prefix}: {error.strerror or error}", remedy=MAKE_ROOM if is_full else remedy) from error


def refuse_occupied(target: Path, *, may_exist: bool = False) -> None:
    """Refuse a path for a new file that exists, unless `may_exist`, or whose directory does not exist."""
    if not may_exist and os.path.lexists(target):
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")
    with file_errors(f"cannot write {target}"):
        is_directory = target.parent.is_dir()
    if not is_directory:
        raise StoreError(
            f"cannot write {target}: {target.parent} is no directory", remedy="make it, or name another one"
        )


@contextmanager
def draft(directory: Path | None, target: Path) -> Iterator[Path]:
    """Provide the base name for draft files of `target`: the name of each file is the base, a dot and a suffix.

    The files are removed when the block ends, or by the next `clear_drafts` if the process is killed in it.

    Args:
        directory: that of the store whose content is written; without write access to it, no note is written. None if
            the content comes from no store.
        target: an absolute path.

    Raises:
        StoreError: the note cannot be written.
    """
    id_ = uuid4().hex
    base = target.with_name(f"{target.name}.{id_}")
    note = None
    if directory is not None and os.access(directory, os.W_OK | os.X_OK):
        path = directory / _NOTE.format(id_)
        try:
            status = base.parent.stat()
            note = _Note.make(path, {"draft": str(base), "device": status.st_dev, "directory": status.st_ino})
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror or error}", remedy="make room, or correct the rights"
            ) from error
    try:
        yield base
    finally:
        is_removed = False
        with suppress(OSError):
            _remove_files(base)
            is_removed = True
        if note is not None:
            note.close(drop=is_removed)


@contextmanager
def restore_draft(directory: Path, aside: Path) -> Iterator[Path]:
    """Provide a new directory beside a store's, which the caller renames to it; remove it if that did not happen.

    Args:
        directory: that of the store, with links resolved; it need not exist.
        aside: the path beside it under which the replaced store is kept.

    Raises:
        OSError: the new directory cannot be created.
    """
    staging = directory.with_name(f"{directory.name}.{uuid4().hex}.new")
    note = None
    while note is None:
        staging.mkdir()
        with suppress(FileNotFoundError):  # another process took it for the empty one of a dead process
            note = _Note.make(staging / RESTORE_NOTE, {"draft": staging.name, "aside": aside.name})
    inode = staging.stat().st_ino
    try:
        sync(staging.parent)
        yield staging
    finally:
        # Between two renames the old store has this name: it must not be removed if interrupted then.
        with suppress(OSError):
            if not os.path.lexists(staging):
                (directory / RESTORE_NOTE).unlink(missing_ok=True)
            elif staging.stat().st_ino == inode:
                _remove_directory(staging)
        note.close(drop=False)


def clear_drafts(directory: Path, *, remove: bool = True) -> list[Draft]:
    """Remove the drafts of a store that killed processes left; return all drafts found.

    Args:
        remove: if False, only report them.
    """
    notes = [path for path in sorted(directory.glob(_NOTE.format("*"))) if _NOTE_NAME.fullmatch(path.name)]
    entries = [*(_clear_files(path, remove) for path in notes), *_clear_restores(directory.resolve(), remove)]
    return [entry for entry in entries if entry is not None]


def take_over_notes(old: Path, new: Path) -> None:
    """Link or copy the notes of a replaced store into the store that replaces it.

    Raises:
        OSError: a note can be neither linked nor copied.
    """
    for path in old.glob(_NOTE.format("*")):
        try:
            os.link(path, new / path.name, follow_symlinks=False)
        except OSError:  # some file systems have no links; `_Note` recognises a copy
            shutil.copyfile(path, new / path.name, follow_symlinks=False)


class _Note:
    """A file that records a draft and is locked while the draft is written.

    Attributes:
        is_live: another process holds the lock.
        is_copy: the note was copied from another store, whose processes may still use the draft.
    """

    def __init__(self, path: Path, descriptor: int, values: Mapping[str, Any], *, is_live: bool = False) -> None:
        self.path = path
        self.values = values
        self.is_live = is_live
        self.is_copy = values.get("note") != os.fstat(descriptor).st_ino
        self._descriptor: int | None = descriptor

    @classmethod
    def make(cls, path: Path, values: Mapping[str, Any]) -> _Note:
        """Write a new note durably."""
        while True:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                status = os.fstat(descriptor)
                if status.st_nlink:
                    values = {**values, "note": status.st_ino}
                    os.write(descriptor, json.dumps(values).encode())
                    os.fsync(descriptor)
                    sync(path.parent)
                    return cls(path, descriptor, values)
            except BaseException:
                path.unlink(missing_ok=True)
                os.close(descriptor)
                raise
            os.close(descriptor)  # another process took it for the empty one of a dead process

    @classmethod
    def find(cls, path: Path) -> _Note | None:
        """Take over the note of a dead process, or read that of a live one; return None if there is no note."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        is_live = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process holds it, or the file system has no locks
            is_live = True
        with suppress(OSError):
            if os.fstat(descriptor).st_nlink:
                data, values = os.read(descriptor, _MAX_NOTE_BYTES), None
                with suppress(ValueError, RecursionError):  # its writer was killed before it wrote the values
                    values = json.loads(data)
                return cls(path, descriptor, values if isinstance(values, dict) else {}, is_live=is_live)
        os.close(descriptor)
        return None

    def close(self, *, drop: bool) -> None:
        """Release the lock; with `drop`, remove the note first unless another process holds it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if drop and not self.is_live:
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
            os.close(descriptor)


def _clear_files(path: Path, remove: bool) -> Draft | None:
    """Remove the files of the draft that a note records, and the note."""
    note = _Note.find(path)
    if note is None:
        return None
    [id_] = _NOTE_NAME.findall(path.name)
    # A note may come with a cloned repository: it can only name files with the draft's random id.
    recorded, base = note.values.get("draft"), None
    if isinstance(recorded, str) and "\0" not in recorded and recorded.endswith(f".{id_}"):
        with suppress(UnicodeEncodeError):
            os.fsencode(recorded)
            base = Path(recorded)
    if base is None or not base.is_absolute():
        note.close(drop=remove)
        return None
    result = Draft(f"{base}.*", str(base.with_name(base.name.removesuffix(f".{id_}"))), "abandoned")
    if note.is_live:
        note.close(drop=False)
        return replace(result, state="live")
    exists, reason = False, ""
    try:
        nearest = next(parent for parent in base.parents if parent.is_dir())
        status = nearest.stat()
        exists = nearest == base.parent and any(_files(base))
        is_same = nearest == base.parent and status.st_ino == note.values.get("directory")
        if exists and note.is_copy:
            reason = "may be written by a process that uses the store that this one was copied from"
        elif not exists and not is_same and status.st_dev != note.values.get("device"):
            # Another disk, or none, is mounted there now: files missing here may exist on the right one.
            reason = "cannot be looked for: the disk that it was written to is not mounted"
    except OSError as error:
        reason = f"cannot be looked for ({error.strerror})"
    if exists and remove and not reason:
        try:
            _remove_files(base)
        except OSError as error:
            reason = f"cannot be removed ({error.strerror})"
    note.close(drop=remove and not reason)
    if reason:
        return replace(result, state="unreachable", why=reason, remedy=f"see that it can, or delete it and {path}")
    if not exists:
        return None
    return replace(result, state="removed") if remove else result


def _clear_restores(directory: Path, remove: bool) -> Iterator[Draft | None]:
    """Remove the directories that restores left beside a store; finish one killed while it put the old store aside."""
    name = re.compile(rf"{re.escape(directory.name)}\.[0-9a-f]{{32}}\.new")
    store_note = _Note.find(directory / RESTORE_NOTE)
    is_complete = True
    with suppress(OSError):
        for path in sorted(directory.parent.iterdir()):
            if name.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                result = _clear_restore(path, directory, store_note, remove)
                is_complete &= result is None or result.state == "removed"
                yield result
    if store_note is not None:
        store_note.close(drop=remove and is_complete)


def _clear_restore(path: Path, directory: Path, store_note: _Note | None, remove: bool) -> Draft | None:
    """Remove one directory; `store_note` is the note in the store, which identifies the restore that placed it."""
    result = Draft(str(path), str(directory), "abandoned")
    note = _Note.find(path / RESTORE_NOTE)
    if note is None or note.values.get("draft", path.name) != path.name:
        # Not a draft: the replaced store, or a directory to which its restore had written nothing yet.
        if note is not None:
            note.close(drop=False)
        with suppress(OSError):
            if remove and store_note is not None and store_note.values.get("draft") == path.name:
                # The replaced store gets the name in the note.
                aside = str(store_note.values.get("aside"))
                if not store_note.is_live and re.fullmatch(rf"{re.escape(directory.name)}\.[^/]+\.replaced", aside):
                    path.rename(directory.with_name(aside))
                    sync(directory.parent)
            elif remove:
                path.rmdir()
        return None
    state: State = "live" if note.is_live else "removed" if remove else "abandoned"
    try:
        if state == "removed":
            _remove_directory(path)
    except OSError as error:
        reason = f"cannot be removed ({error.strerror})"
        return replace(result, state="unreachable", why=reason, remedy="see that it can, or delete it")
    finally:
        note.close(drop=False)
    return replace(result, state=state)


def _files(base: Path) -> Iterator[Path]:
    with os.scandir(base.parent) as entries:
        yield from (Path(entry.path) for entry in entries if entry.name.startswith(f"{base.name}."))


def _remove_files(base: Path) -> None:
    paths = list(_files(base))
    for path in paths:
        path.unlink(missing_ok=True)
    if paths:
        sync(base.parent)


def _remove_directory(path: Path) -> None:
    """Remove the directory of a restore, its note last: a directory without a note belongs to no restore."""
    for child in list(path.iterdir()):
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child.name != RESTORE_NOTE:
            child.unlink()
    (path / RESTORE_NOTE).unlink(missing_ok=True)
    path.rmdir()
    sync(path.parent)
