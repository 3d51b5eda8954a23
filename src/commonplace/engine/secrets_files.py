"""Find secrets in the Markdown pages and the logs of a store, and put placeholders there. It knows files, no rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.secrets_cleaning import Cleaner, Known
from commonplace.engine.secrets_stored import Found, Holder
from commonplace.errors import StoreBusyError, StoreError
from commonplace.files import sync
from commonplace.forgetting.place import LOGS
from commonplace.forgetting.scanning import files_below
from commonplace.index.manifest import write_file
from commonplace.logs import blank_lines
from commonplace.mirror.folder import DRAFT

if TYPE_CHECKING:
    from commonplace.forgetting.needles import Needles

PAGE = ".md"
"""How the name of a page ends."""

_ATTEMPTS = 5


class Files:
    """The Markdown and the logs below a store's directory; links are not followed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def look(self, found: Found, known: Known) -> None:
        """Add what holds secrets, but for ids, which are a memory's name there too; nothing is written."""
        kept = frozenset(found.named)
        for name in self._pages():
            cleaner = Cleaner(known, kept)
            cleaner.text(_text(_read(self._directory / name)))
            found.add(cleaner, Holder(f"the page {Cleaner(known).text(name)}", {}))
        for name in self._logs():
            cleaner = Cleaner(known, kept)
            for line in _read(self._directory / name).splitlines():
                cleaner.text(_text(line))
            found.add(cleaner, Holder(f"the log {Cleaner(known).text(name)}", {}))

    def clean_pages(self, known: Known, kept: frozenset[str]) -> list[StoreError]:
        """Put placeholders into every page that holds a secret; return what went wrong with single pages.

        What a process left that was killed while it wrote a page goes too; the caller holds the lock of the pages.

        Args:
            kept: secrets that are a part of an id.
        """
        for name in files_below(self._directory):
            if name.endswith(PAGE + DRAFT):
                with suppress(OSError):
                    (self._directory / name).unlink()
        problems = []
        for name in self._pages():
            try:
                _clean(self._directory / name, known, kept)
            except StoreError as error:
                problems.append(error)
        return problems

    def clear_logs(self, needles: Needles) -> None:
        """Blank the lines of logs that hold a secret, one of these or any other.

        Raises:
            StoreError: a log cannot be read or written.
        """

        def places(data: bytes) -> Iterator[int]:
            yield from (offset for offset, _ in needles.places(data))
            offset = 0
            for line in data.splitlines(keepends=True):
                cleaner = Cleaner()
                cleaner.text(_text(line))
                if cleaner.kinds:
                    yield offset
                offset += len(line)

        try:
            blank_lines(self._directory / LOGS, places)
        except OSError as error:
            raise _unwritten(self._directory / LOGS, error) from error

    def _pages(self) -> list[str]:
        return [name for name in files_below(self._directory) if name.endswith(PAGE)]

    def _logs(self) -> list[str]:
        return [name for name in files_below(self._directory) if name.startswith(f"{LOGS}/") and ".jsonl" in name]


def _clean(path: Path, known: Known, kept: frozenset[str]) -> None:
    """Write a page anew, whole or not at all, and only if it is still what was read."""
    draft = path.with_name(path.name + DRAFT)
    for _ in range(_ATTEMPTS):
        data = _read(path)
        text = _text(data)
        clean = Cleaner(known, kept).text(text)
        if clean == text:
            return
        try:
            write_file(draft, clean.encode("utf-8", "surrogateescape"))
            shutil.copymode(path, draft)
            if path.read_bytes() == data:
                draft.replace(path)
                sync(path.parent)
                return
        except OSError as error:
            raise _unwritten(path, error) from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
    raise StoreBusyError(f"{path} is being changed all the time", remedy="close it, and try again")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", remedy="make it readable, or remove it") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _unwritten(path: Path, error: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {error.strerror}", remedy="make it writable, or edit it")
