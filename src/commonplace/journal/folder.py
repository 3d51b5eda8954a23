"""Locate, read and replace the page files of a namespace.

The pages of `default` are `memory/2026-11-21.md` and `MEMORY.md` beside that folder; those of another namespace are
all in `memory/<name>/`, with a name that any file system keeps apart from others. No link is followed out of the
store.
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
"""No editor writes it, and we write it as `&#0;`: where it is, a disk or a program has lost what was there."""

_COPY: Final = lazy_pattern(r"(.+)\.(?:conflict|damaged)-[0-9a-f]{8}\.md")
DAMAGED: Final = ".damaged-"
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_MAX_NAME_LENGTH: Final = 200
"""Bytes; file systems take 255."""
_KEPT_OF_LONG: Final = 100

_UNFIT: Final = {errno.ELOOP: "is a link", errno.EISDIR: "is no file", errno.EINVAL: "is no file"}

Stamp = tuple[int, int]
"""Size and time of the last change, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page as it was read.

    Attributes:
        data: None where there is no such file, or none that can be read.
        problem: why it cannot be read, a clause that continues its name; "" where it can, or is not there.
    """

    name: str
    data: bytes | None = None
    stamp: Stamp = (0, 0)
    problem: str = ""

    @property
    def text(self) -> str:
        """The text; its line ends are as they are."""
        return "" if self.data is None else self.data.decode("utf-8")

    @property
    def sum(self) -> str:
        """The SHA-256 of the bytes; "" where there are none."""
        return "" if self.data is None else sha256(self.data).hexdigest()


def directory_name(namespace: str) -> str:
    """Return the name of a namespace's directory, different for each, whatever a file system does to capitals.

    What is no small letter, digit, `_` or `-` is written as its UTF-8 bytes, `%2e`. A name that gets too long for a
    file system is cut, and its SHA-256 distinguishes it.
    """
    written = "".join(
        character if character in _PLAIN else "".join(f"%{byte:02x}" for byte in character.encode())
        for character in namespace
    )
    if len(written) <= _MAX_NAME_LENGTH:
        return written
    return f"{written[:_KEPT_OF_LONG]}~{sha256(namespace.encode()).hexdigest()}"


class Folder:
    """The pages of one namespace of a store."""

    def __init__(self, directory: Path, namespace: str) -> None:
        self._directory = directory
        self._is_default = namespace == DEFAULT
        self._pages = directory / MEMORY
        if not self._is_default:
            self._pages /= directory_name(namespace)

    def path(self, name: str) -> Path:
        """Return where a page, or a file beside it, is."""
        is_outside = self._is_default and name.startswith(LONG_TERM_PAGE.removesuffix(".md"))
        return (self._directory if is_outside else self._pages) / name

    def shown(self, name: str) -> str:
        """Return a page's path relative to the store, as people and memories name it."""
        return self.path(name).relative_to(self._directory).as_posix()

    def fault(self) -> str:
        """Return why the pages cannot be used at all, one sentence, or ""."""
        for place in (self._pages, self._directory / MEMORY):
            with suppress(FileNotFoundError, NotADirectoryError):
                if not stat.S_ISDIR(place.lstat().st_mode):
                    return f"{place} is no directory, links are not followed; memories are kept in the store alone"
        return ""

    def stamps(self) -> dict[str, Stamp]:
        """Return size and time of everything that has a page's name, without reading it."""
        found: dict[str, Stamp] = {}
        with suppress(FileNotFoundError), os.scandir(self._pages) as entries:
            for entry in entries:
                if is_page_name(entry.name) and self.path(entry.name).parent == self._pages:
                    with suppress(FileNotFoundError):
                        found[entry.name] = _stamp(entry.stat(follow_symlinks=False))
        if self._is_default:
            with suppress(FileNotFoundError):
                found[LONG_TERM_PAGE] = _stamp(self.path(LONG_TERM_PAGE).lstat())
        return found

    def read(self, name: str) -> PageFile:
        """Return a page as it is now."""
        try:
            with open_file(self.path(name), follow=False) as file:
                status, data = os.fstat(file.fileno()), file.read(MAX_PAGE_BYTES + 1)
            if len(data) > MAX_PAGE_BYTES:
                return PageFile(name, problem=f"has {status.st_size:,} bytes, the limit is {MAX_PAGE_BYTES:,}")
            data.decode("utf-8")
        except FileNotFoundError:
            return PageFile(name)
        except OSError as error:
            return PageFile(name, problem=_UNFIT.get(error.errno or 0, f"cannot be read ({error.strerror})"))
        except UnicodeDecodeError as error:
            return PageFile(name, problem=f"is not UTF-8 (at byte {error.start})")
        return PageFile(name, data, _stamp(status))

    def replace(self, old: PageFile, text: str) -> PageFile | None:
        """Replace a page, whole or not at all; None where it is no longer what was read, and nothing was written.

        Raises:
            OSError: it cannot be written; the page is as it was. A store's directory that is gone is not made again.
        """
        target = self.path(old.name)
        if target.parent != self._directory:
            (self._directory / MEMORY).mkdir(exist_ok=True)
            self._pages.mkdir(exist_ok=True)
        data = text.encode("utf-8")
        draft = target.with_name(target.name + PAGE_DRAFT)
        is_as_before = None if old.data is None else lambda: self.read(old.name).data == old.data
        status = replace_file(target, draft, data, is_as_before)
        return None if status is None else PageFile(old.name, data, _stamp(status))

    def keep(self, name: str, text: str) -> None:
        """Write a file beside the pages, unless it is there already; an OSError says that it cannot be."""
        self.replace(PageFile(name), text)

    def remove(self, old: PageFile) -> bool:
        """Remove a page that is still what was read; return whether it went."""
        return self.read(old.name).data == old.data and self.drop(old.name)

    def settle(self) -> None:
        """Wait until the disk has the names of what was written."""
        for place in {self._directory, self._directory / MEMORY, self._pages}:
            with suppress(FileNotFoundError):
                sync(place)

    def copies(self) -> dict[str, str]:
        """Return the copies kept beside the pages, of conflicts and of damaged pages, by name, each with its page."""
        found = ((name, _COPY.fullmatch(name)) for name in sorted(self._beside()))
        pages = {name: f"{copy[1]}.md" for name, copy in found if copy}
        return {name: page for name, page in pages.items() if is_page_name(page)}

    def drop_drafts(self) -> None:
        """Remove what a process left that was killed while it wrote."""
        for name in self._beside():
            if name.endswith(PAGE_DRAFT):
                self.drop(name)

    def drop(self, name: str) -> bool:
        """Remove a file beside the pages, or a page whatever it holds; return whether it went."""
        with suppress(OSError):
            self.path(name).unlink()
            return True
        return False

    def drop_directory(self) -> None:
        """Remove the directory of the pages if nothing is left in it."""
        if not self._is_default:
            with suppress(OSError):
                self._pages.rmdir()

    def _beside(self) -> list[str]:
        places = {self._pages, self._directory} if self._is_default else {self._pages}
        found = []
        for place in places:
            with suppress(OSError):
                found += [entry.name for entry in place.iterdir() if self.path(entry.name).parent == place]
        return found


def replace_file(
    target: Path, draft: Path, data: bytes, is_as_before: Callable[[], bool] | None
) -> os.stat_result | None:
    """Write a file whole or not at all; return its status, None if the target has changed and nothing was written.

    Args:
        draft: where it is written first, beside the target; what is there is removed.
        is_as_before: returns at the last moment whether the target may be replaced; None writes a new file only.
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
            # FAT and some network shares have no hard links: a look just before the rename has to do.
            if os.path.lexists(target):
                return None
            draft.replace(target)
        return status
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def write_draft(draft: Path, data: bytes, model: Path) -> os.stat_result:
    """Write a new file, with the rights of the one that it is to replace, and wait until it is on disk."""
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
