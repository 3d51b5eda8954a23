"""Write log records and searches as JSON lines, shared by several processes.

The log directory holds `commonplace.jsonl`, with the records of our own loggers from the standard `logging` module, and
`retrieval/retrieval.jsonl`, with one line for each search or use of a hit. Each line is one `os.write` to a file opened
for appending, so that lines of several processes never mix. The first line creates its file. Queries are logged as a
hash unless the settings ask for their text; settings, keys and addresses are never logged.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from commonplace.dates.time import iso

LEVELS: Mapping[str, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}

LOGGER = "commonplace"
HASH_CHARACTERS = 16


MAX_BYTES = 1024 * 1024
"""Size from which a log file is rotated."""
KEPT = 3
"""Number of rotated files that are kept."""


class LineFile:
    """A file of JSON lines; each write opens it by name, so that a rotation by another process is noticed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, record: Mapping[str, object]) -> None:
        """Append one line.

        Raises:
            OSError: the directory or file cannot be written, or is a link.
        """
        line = json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
        if self._path.parent.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self._path.parent))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, line)
            size = os.fstat(handle).st_size
        finally:
            os.close(handle)
        if size < MAX_BYTES:
            return
        # Rotate: rename the file to `.1`, and older ones upward. One of several processes does it, and the others then
        # find a small file. A line that another process writes meanwhile goes to the renamed file, so no line is lost
        # except those of the file that falls off the end.
        numbered = (self._path.with_name(f"{self._path.name}.{number + 1}") for number in range(KEPT))
        paths = [self._path, *numbered]
        with _guarded(self._path.parent), suppress(FileNotFoundError):
            if self._path.stat().st_size < MAX_BYTES:
                return
            for path, older in reversed(list(pairwise(paths))):
                with suppress(FileNotFoundError):
                    path.replace(older)


class JsonLinesHandler(logging.Handler):
    """Write the records of the standard `logging` module to a line file."""

    def __init__(self, file: LineFile, level: int) -> None:
        super().__init__(level)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; errors are ignored, since a full disk must not stop the work that is logged."""
        line: dict[str, object] = {
            "at": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line["fields"] = dict(fields)
        if record.exc_info:
            line["traceback"] = logging.Formatter().formatException(record.exc_info)
        with suppress(OSError):
            self._file.write(line)


def attach(directory: Path, *, level: str) -> logging.Handler:
    """Log our loggers' records at `level` or above to a file in `directory`; `detach` removes the returned handler."""
    return attached(JsonLinesHandler(LineFile(directory / "commonplace.jsonl"), LEVELS[level]))


def attached(handler: logging.Handler) -> logging.Handler:
    """Send our loggers' records to a handler instead of the program's own handlers; return it."""
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    logger.setLevel(min(handler.level, logger.level or handler.level))
    logger.propagate = False
    return handler


def detach(handler: logging.Handler) -> None:
    """Remove a handler; after the last one, records reach the program's handlers again. Removing twice is harmless."""
    logger = logging.getLogger(LOGGER)
    logger.removeHandler(handler)
    handler.close()
    if not logger.handlers:
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


class RetrievalLog:
    """A log with a line for each search and each use; `queries` logs queries by "hash" or "text", or is "off"."""

    def __init__(self, directory: Path, *, queries: str) -> None:
        self._path = directory / "retrieval" / "retrieval.jsonl"
        self._file = LineFile(self._path)
        self._queries = queries

    def write(self, query: str | None, fields: Mapping[str, object], *, now: float | None = None) -> None:
        """Write one line.

        Args:
            query: None for a use, whose object is `used` in `fields`.
            fields: what the search did (method, hits, milliseconds), never the text of a hit.
            now: seconds since the epoch; None reads the clock.
        """
        if self._queries == "off":
            return
        line: dict[str, object] = {"at": iso(time.time() if now is None else now)}
        if query is not None:
            line |= {"query": query} if self._queries == "text" else {"query_hash": query_hash(query)}
        with suppress(OSError):
            self._file.write({**line, **fields})

    def lines(self) -> Iterator[dict[str, object]]:
        """Yield the logged lines, oldest first, rotated files included; lines that are no records of ours are skipped.

        Raises:
            OSError: a file cannot be read.
        """
        if not self._path.parent.is_dir() or self._path.parent.is_symlink():
            return
        with _guarded(self._path.parent):
            rotated = [path for path in self._path.parent.glob(f"{self._path.name}.*") if path.suffix[1:].isdecimal()]
            paths = [*sorted(rotated, key=lambda path: -int(path.suffix[1:])), self._path]
            texts = [path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()]
        for line in b"".join(texts).splitlines():
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                if isinstance(record, dict) and "at" in record:
                    yield record


def blank_lines(directory: Path, places: Callable[[bytes], Iterable[int]], *, dry_run: bool = False) -> int:
    """Overwrite matching lines of every log below a directory with `{}`; return their number.

    Lines are overwritten in place: no line that another process appends meanwhile is lost, and the old bytes do not
    linger in a file without a name.

    Args:
        places: returns the offsets of matches in a file's bytes.
        dry_run: only count.

    Raises:
        OSError: a log cannot be read or written.
    """
    blanked = 0
    for folder in (Path(name) for name, _, _ in ([] if directory.is_symlink() else os.walk(directory))):
        # The guard keeps a file from being renamed to a name that was already passed.
        with _guarded(folder):
            for path in sorted(folder.glob("*.jsonl*")):
                if not path.is_file() or path.is_symlink():
                    continue
                data = path.read_bytes()
                lines = set()
                for offset in places(data):
                    end = data.find(b"\n", offset)
                    lines.add((data.rfind(b"\n", 0, offset) + 1, len(data) if end < 0 else end))
                blanked += len(lines)
                if dry_run or not lines:
                    continue
                with path.open("r+b", buffering=0) as file:
                    for begin, end in lines:
                        os.pwrite(file.fileno(), b"{}".ljust(end - begin)[: end - begin], begin)
                    os.fsync(file.fileno())
    return blanked


@contextmanager
def _guarded(directory: Path) -> Iterator[None]:
    """Keep other processes from rotating logs in a directory."""
    guard = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        yield
    finally:
        os.close(guard)


def query_hash(query: str) -> str:
    """Return the hash of a query as 16 hexadecimal digits; a short query can be guessed from it."""
    from commonplace.text.hashes import blake2b  # not hashlib's, which loads OpenSSL

    return blake2b(query.encode("utf-8", "replace"), digest_size=HASH_CHARACTERS // 2).hexdigest()
