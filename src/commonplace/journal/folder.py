"""Locate, read and replace the page files of a namespace.

The pages of `default` are `memory/2026-11-21.md` and so on, and `MEMORY.md` beside that folder. All pages of another
namespace are in `memory/<name>/`, whose name is distinct on any file system. Links are not followed out of the store.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.files import open_file, sync
from commonplace.lazy_regex import lazy_pattern
from commonplace.settings.paths import LONG_TERM_PAGE, PAGE_DRAFT, is_page_name
from commonplace.text.hashes import sha256

MEMORY: Final = "memory"
DEFAULT: Final = "default"
MAX_PAGE_BYTES: Final = 8 * 1024 * 1024
NUL: Final = "\0"
"""Sign of a damaged page: no editor writes it, and we write it as `&#0;`, so a disk or program has lost data there."""

_COPY: Final = lazy_pattern(r"(.+)\.(?:conflict|damaged)-[0-9a-f]{8}\.md")
DAMAGED: Final = ".damaged-"
_SAFE_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_MAX_NAME_LENGTH: Final = 200
"""Maximum length of a directory name in bytes; file systems allow 255."""
_TRUNCATED_LENGTH: Final = 100

_PROBLEMS: Final = {errno.ELOOP: "is a link", errno.EISDIR: "is no file", errno.EINVAL: "is no file"}

Stamp = tuple[int, int]
"""Size in bytes and time of the last change in nanoseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page as it was read.

    Attributes:
        data: the bytes; None if the file does not exist or cannot be read.
        problem: why it cannot be read, a clause that continues its name; "" if it can be, or does not exist.
    """

    name: str
    data: bytes | None = None
    stamp: Stamp = (0, 0)
    problem: str = ""

    @property
    def text(self) -> str:
        """The text, with its line ends unchanged."""
        return "" if self.data is None else self.data.decode("utf-8")

    @property
    def sum(self) -> str:
        """The SHA-256 of the bytes; "" if there are none."""
        return "" if self.data is None else sha256(self.data).hexdigest()


def directory_name(namespace: str) -> str:
    """Return the name of a namespace's directory, unique even on file systems that ignore case.

    Characters other than lower-case ASCII letters, digits, `_` and `-` are written as their UTF-8 bytes, `%2e`. A name
    that gets too long for a file system is truncated and completed with its SHA-256.
    """
    encoded = "".join(
        character if character in _SAFE_CHARACTERS else "".join(f"%{byte:02x}" for byte in character.encode())
        for character in namespace
    )
    if len(encoded) <= _MAX_NAME_LENGTH:
        return encoded
    return f"{encoded[:_TRUNCATED_LENGTH]}~{sha256(namespace.encode()).hexdigest()}"


class Folder:
    """The pages of one namespace of a store."""

    def __init__(self, directory: Path, namespace: str) -> None:
        self._directory = directory
        self._is_default = namespace == DEFAULT
        self._pages = directory / MEMORY
        if not self._is_default:
            self._pages /= directory_name(namespace)

    def path(self, name: str) -> Path:
        """Return the path of a page, or of a file beside it."""
        is_outside = self._is_default and name.startswith(LONG_TERM_PAGE.removesuffix(".md"))
        return (self._directory if is_outside else self._pages) / name

    def page_path(self, name: str) -> str:
        """Return a page's path relative to the store, as shown to people and stored in memories."""
        return self.path(name).relative_to(self._directory).as_posix()

    def fault(self) -> str:
        """Return a sentence that says why the pages cannot be used at all, or ""."""
        for directory in (self._pages, self._directory / MEMORY):
            with suppress(FileNotFoundError, NotADirectoryError):
                if not stat.S_ISDIR(directory.lstat().st_mode):
                    return f"{directory} is no directory, links are not followed; memories are kept in the store alone"
        return ""

    def stamps(self) -> dict[str, Stamp]:
        """Return the stamps of all files with a page's name, without reading them."""
        by_name: dict[str, Stamp] = {}
        with suppress(FileNotFoundError), os.scandir(self._pages) as entries:
            for entry in entries:
                if is_page_name(entry.name) and self.path(entry.name).parent == self._pages:
                    with suppress(FileNotFoundError):
                        by_name[entry.name] = _stamp(entry.stat(follow_symlinks=False))
        if self._is_default:
            with suppress(FileNotFoundError):
                by_name[LONG_TERM_PAGE] = _stamp(self.path(LONG_TERM_PAGE).lstat())
        return by_name

    def read(self, name: str) -> PageFile:
        """Read a page."""
        try:
            with open_file(self.path(name), follow=False) as file:
                status, data = os.fstat(file.fileno()), file.read(MAX_PAGE_BYTES + 1)
            if len(data) > MAX_PAGE_BYTES:
                return PageFile(name, problem=f"has {status.st_size:,} bytes, the limit is {MAX_PAGE_BYTES:,}")
            data.decode("utf-8")
        except FileNotFoundError:
            return PageFile(name)
        except OSError as error:
            return PageFile(name, problem=_PROBLEMS.get(error.errno or 0, f"cannot be read ({error.strerror})"))
        except UnicodeDecodeError as error:
            return PageFile(name, problem=f"is not UTF-8 (at byte {error.start})")
        return PageFile(name, data, _stamp(status))

    def replace(self, old: PageFile, text: str) -> PageFile | None:
        """Replace a page atomically; return None, and write nothing, if it has changed since it was read.

        Raises:
            OSError: the page cannot be written, and is unchanged. A store's missing directory is not created again.
        """
        target = self.path(old.name)
        if target.parent != self._directory:
            (self._directory / MEMORY).mkdir(exist_ok=True)
            self._pages.mkdir(exist_ok=True)
        data = text.encode("utf-8")
        draft = target.with_name(target.name + PAGE_DRAFT)
        is_unchanged = None if old.data is None else lambda: self.read(old.name).data == old.data
        status = replace_file(target, draft, data, is_unchanged)
        return None if status is None else PageFile(old.name, data, _stamp(status))

    def keep(self, name: str, text: str) -> None:
        """Write a file beside the pages, unless it already exists; raise an OSError if that fails."""
        self.replace(PageFile(name), text)

    def remove(self, old: PageFile) -> bool:
        """Remove a page unless it has changed since it was read; return whether it was removed."""
        return self.read(old.name).data == old.data and self.drop(old.name)

    def sync_directories(self) -> None:
        """Wait until the directory entries of written files are on disk."""
        for directory in {self._directory, self._directory / MEMORY, self._pages}:
            with suppress(FileNotFoundError):
                sync(directory)

    def copies(self) -> dict[str, str]:
        """Return the page of each copy kept beside the pages, of a conflict or a damaged page, by the copy's name."""
        matches = ((name, _COPY.fullmatch(name)) for name in sorted(self._file_names()))
        pages = {name: f"{copy[1]}.md" for name, copy in matches if copy}
        return {name: page for name, page in pages.items() if is_page_name(page)}

    def drop_drafts(self) -> None:
        """Remove the drafts that a killed process has left."""
        for name in self._file_names():
            if name.endswith(PAGE_DRAFT):
                self.drop(name)

    def drop(self, name: str) -> bool:
        """Remove a page, or a file beside the pages, whatever it contains; return whether it was removed."""
        with suppress(OSError):
            self.path(name).unlink()
            return True
        return False

    def drop_directory(self) -> None:
        """Remove the directory of the pages if it is empty."""
        if not self._is_default:
            with suppress(OSError):
                self._pages.rmdir()

    def _file_names(self) -> list[str]:
        directories = {self._pages, self._directory} if self._is_default else {self._pages}
        names = []
        for directory in directories:
            with suppress(OSError):
                names += [entry.name for entry in directory.iterdir() if self.path(entry.name).parent == directory]
        return names


def replace_file(
    target: Path, draft: Path, data: bytes, is_as_before: Callable[[], bool] | None
) -> os.stat_result | None:
    """Write a file atomically; return its status, or None, and write nothing, if the target has changed.

    Args:
        draft: path beside the target for writing the file first; an existing file there is removed.
        is_as_before: called just before the replacement, returns whether it may happen; None only creates a new file.
    """
    try:
        status = write_draft(draft, data, target)
        if is_as_before is not None:
            if not is_as_before():
                return None
            draft.replace(target)
            return status
        try:
            os.link(draft, target)  # a rename would replace a file that was saved there a moment ago
        except FileExistsError:
            return None
        except OSError:
            # FAT and some network shares have no hard links: a check just before the rename must suffice.
            if os.path.lexists(target):
                return None
            draft.replace(target)
        return status
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_draft(draft: Path, data: bytes, model: Path) -> os.stat_result:
    """Write a new file with the permissions of `model`, if that exists, and wait until it is on disk."""
    with suppress(FileNotFoundError):
        draft.unlink()
    with draft.open("xb") as file:
        with suppress(OSError):
            os.fchmod(file.fileno(), stat.S_IMODE(model.stat().st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        return os.fstat(file.fileno())


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_size, status.st_mtime_ns
