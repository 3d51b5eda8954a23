"""Register files that are being written outside the store, so that those of a killed process are cleaned up.

A backup or export is written beside its target under a draft name that a note in the store's directory records first. A
restore is written into a directory beside the store, with a note of its own. The writer holds a lock on the note: an
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
"""The note of a restore: in its directory, and for a moment in the store that this becomes."""

MAKE_ROOM: Final = "make room, or name another place"
_NOTE: Final = "draft-{}.json"
_NOTE_NAME: Final = re.compile(r"draft-([0-9a-f]{32})\.json")
_MAX_NOTE_BYTES: Final = 65_536

State = Literal["removed", "abandoned", "live", "unreachable"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A copy of a store in the making that was found.

    Attributes:
        path: the directory that it is, or how the names of its files begin, and `*`.
        target: what it was to become.
        state: it was removed; it is still there, since nothing was to be removed; a live process writes it; it cannot
            be reached.
        why: it cannot be reached, a clause that continues the path; else "".
        remedy: what helps then.
    """

    path: str
    target: str
    state: State
    why: str = ""
    remedy: str = ""


@contextmanager
def file_errors(what: str, *, remedy: str = "name another place") -> Iterator[None]:
    """Turn an error of a file into the store's.

    Args:
        what: what cannot be done, as in "cannot write /b.zip".
        remedy: what helps unless the disk is full.
    """
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise StoreError(f"{what}: {error.strerror or error}", remedy=MAKE_ROOM if is_full else remedy) from error


def refuse_occupied(target: Path, *, may_exist: bool = False) -> None:
    """Refuse a path for a file that exists, unless it may, or whose directory does not."""
    if not may_exist and os.path.lexists(target):
        raise StoreError(f"{target} exists already", remedy="name a file that does not exist yet")
    with file_errors(f"cannot write {target}"):
        is_place = target.parent.is_dir()
    if not is_place:
        raise StoreError(
            f"cannot write {target}: {target.parent} is no directory", remedy="make it, or name another one"
        )


@contextmanager
def draft(directory: Path | None, target: Path) -> Iterator[Path]:
    """Give the name under which to write what is to become `target`: each file's is this one, a dot and an ending.

    They are removed when the block ends, or by the next `clear_drafts` where the process is killed in it.

    Args:
        directory: of the store whose content is written; nothing is noted where nobody may write to it. None: what is
            written is none of a store's.
        target: absolute.

    Raises:
        StoreError: the note cannot be written.
    """
    id_ = uuid4().hex
    base = target.with_name(f"{target.name}.{id_}")
    note = None
    if directory is not None and os.access(directory, os.W_OK | os.X_OK):
        path = directory / _NOTE.format(id_)
        try:
            place = base.parent.stat()
            note = _Note.make(path, {"draft": str(base), "device": place.st_dev, "directory": place.st_ino})
        except OSError as error:
            raise StoreError(
                f"cannot write {path}: {error.strerror or error}", remedy="make room, or correct the rights"
            ) from error
    try:
        yield base
    finally:
        is_gone = False
        with suppress(OSError):
            _remove_files(base)
            is_gone = True
        if note is not None:
            note.close(drop=is_gone)


@contextmanager
def restore_draft(directory: Path, aside: Path) -> Iterator[Path]:
    """Give a new directory beside a store's that is to be put in its place; it is removed unless it was.

    Args:
        directory: of the store, links followed; it need not be there.
        aside: where the store is to be kept that is replaced, beside it.

    Raises:
        OSError: it cannot be made.
    """
    new = directory.with_name(f"{directory.name}.{uuid4().hex}.new")
    note = None
    while note is None:
        new.mkdir()
        with suppress(FileNotFoundError):  # another process took it for the empty one of a process that is gone
            note = _Note.make(new / RESTORE_NOTE, {"draft": new.name, "aside": aside.name})
    made = new.stat().st_ino
    try:
        sync(new.parent)
        yield new
    finally:
        # Between two renames the old store has this name: an interruption then must not remove it.
        with suppress(OSError):
            if not os.path.lexists(new):
                (directory / RESTORE_NOTE).unlink(missing_ok=True)
            elif new.stat().st_ino == made:
                _remove_directory(new)
        note.close(drop=False)


def clear_drafts(directory: Path, *, remove: bool = True) -> list[Draft]:
    """Remove the drafts of a store that processes left which were killed; return what was found.

    Args:
        remove: False only reports what there is.
    """
    notes = [path for path in sorted(directory.glob(_NOTE.format("*"))) if _NOTE_NAME.fullmatch(path.name)]
    found = [*(_clear_files(path, remove) for path in notes), *_clear_restores(directory.resolve(), remove)]
    return [each for each in found if each is not None]


def take_over_notes(old: Path, new: Path) -> None:
    """Give the notes of a store that is replaced to the one that takes its place.

    Raises:
        OSError: they cannot be linked or copied.
    """
    for path in old.glob(_NOTE.format("*")):
        try:
            os.link(path, new / path.name, follow_symlinks=False)
        except OSError:  # some file systems have no links; a copy is known as one
            shutil.copyfile(path, new / path.name, follow_symlinks=False)


class _Note:
    """A file that says what is being written, and is locked as long as it is.

    Attributes:
        is_live: another process holds it.
        is_copy: it was copied from another store, whose processes may still use the draft.
    """

    def __init__(self, path: Path, descriptor: int, values: Mapping[str, Any], *, is_live: bool = False) -> None:
        self.path = path
        self.values = values
        self.is_live = is_live
        self.is_copy = values.get("note") != os.fstat(descriptor).st_ino
        self._descriptor: int | None = descriptor

    @classmethod
    def make(cls, path: Path, values: Mapping[str, Any]) -> _Note:
        """Write a new one and wait until the disk has it."""
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
            os.close(descriptor)  # another process took it for the empty one of a process that is gone

    @classmethod
    def find(cls, path: Path) -> _Note | None:
        """Take over the note of a process that is gone, or read that of a live one; None where there is none."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        is_live = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # somebody has it, or this file system has no locks
            is_live = True
        with suppress(OSError):
            if os.fstat(descriptor).st_nlink:
                data, values = os.read(descriptor, _MAX_NOTE_BYTES), None
                with suppress(ValueError, RecursionError):  # its writer was killed before it said anything
                    values = json.loads(data)
                return cls(path, descriptor, values if isinstance(values, dict) else {}, is_live=is_live)
        os.close(descriptor)
        return None

    def close(self, *, drop: bool) -> None:
        """Let go of it, and remove it first where it is done with."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if drop and not self.is_live:
                with suppress(OSError):
                    self.path.unlink(missing_ok=True)
            os.close(descriptor)


def _clear_files(path: Path, remove: bool) -> Draft | None:
    """Remove the files that a note names, and the note."""
    note = _Note.find(path)
    if note is None:
        return None
    [id_] = _NOTE_NAME.findall(path.name)
    # A note may come with a clone: it can name nothing but what only the writer of a draft calls so.
    named, base = note.values.get("draft"), None
    if isinstance(named, str) and "\0" not in named and named.endswith(f".{id_}"):
        with suppress(UnicodeEncodeError):
            os.fsencode(named)
            base = Path(named)
    if base is None or not base.is_absolute():
        note.close(drop=remove)
        return None
    found = Draft(f"{base}.*", str(base.with_name(base.name.removesuffix(f".{id_}"))), "abandoned")
    if note.is_live:
        note.close(drop=False)
        return replace(found, state="live")
    is_there, why = False, ""
    try:
        nearest = next(parent for parent in base.parents if parent.is_dir())
        place = nearest.stat()
        is_there = nearest == base.parent and any(_files(base))
        is_same = nearest == base.parent and place.st_ino == note.values.get("directory")
        if is_there and note.is_copy:
            why = "may be written by a process that uses the store that this one was copied from"
        elif not is_there and not is_same and place.st_dev != note.values.get("device"):
            # Where another disk is mounted than was, or none, that says nothing of what is on the right one.
            why = "cannot be looked for: the disk that it was written to is not mounted"
    except OSError as error:
        why = f"cannot be looked for ({error.strerror})"
    if is_there and remove and not why:
        try:
            _remove_files(base)
        except OSError as error:
            why = f"cannot be removed ({error.strerror})"
    note.close(drop=remove and not why)
    if why:
        return replace(found, state="unreachable", why=why, remedy=f"see that it can, or delete it and {path}")
    if not is_there:
        return None
    return replace(found, state="removed") if remove else found


def _clear_restores(directory: Path, remove: bool) -> Iterator[Draft | None]:
    """Remove what restores left beside a store, and finish one that was killed as it put the old store aside."""
    name = re.compile(rf"{re.escape(directory.name)}\.[0-9a-f]{{32}}\.new")
    placed = _Note.find(directory / RESTORE_NOTE)
    is_done = True
    with suppress(OSError):
        for path in sorted(directory.parent.iterdir()):
            if name.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                found = _clear_restore(path, directory, placed, remove)
                is_done &= found is None or found.state == "removed"
                yield found
    if placed is not None:
        placed.close(drop=remove and is_done)


def _clear_restore(path: Path, directory: Path, placed: _Note | None, remove: bool) -> Draft | None:
    """Remove one of them; `placed` is the note in the store, by which the restore is known that put it there."""
    found = Draft(str(path), str(directory), "abandoned")
    note = _Note.find(path / RESTORE_NOTE)
    if note is None or note.values.get("draft", path.name) != path.name:
        # No draft: the store that was replaced, or a directory that its restore had not yet written anything to.
        if note is not None:
            note.close(drop=False)
        with suppress(OSError):
            if remove and placed is not None and placed.values.get("draft") == path.name:
                # The store that was replaced gets the name under which it is noted.
                aside = str(placed.values.get("aside"))
                if not placed.is_live and re.fullmatch(rf"{re.escape(directory.name)}\.[^/]+\.replaced", aside):
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
        why = f"cannot be removed ({error.strerror})"
        return replace(found, state="unreachable", why=why, remedy="see that it can, or delete it")
    finally:
        note.close(drop=False)
    return replace(found, state=state)


def _files(base: Path) -> Iterator[Path]:
    with os.scandir(base.parent) as entries:
        yield from (Path(entry.path) for entry in entries if entry.name.startswith(f"{base.name}."))


def _remove_files(base: Path) -> None:
    found = list(_files(base))
    for path in found:
        path.unlink(missing_ok=True)
    if found:
        sync(base.parent)


def _remove_directory(path: Path) -> None:
    """Remove the directory of a restore, its note last: a directory without one is nobody's."""
    for child in list(path.iterdir()):
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child.name != RESTORE_NOTE:
            child.unlink()
    (path / RESTORE_NOTE).unlink(missing_ok=True)
    path.rmdir()
    sync(path.parent)
