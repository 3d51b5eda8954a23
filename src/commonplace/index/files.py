"""Open, verify and lock the files of an index generation.

A file is trusted if its size and time match, or else its checksum. Descriptors stay open so that a truncated file is
noticed before it is read. Two shared locks protect readers: one on the directory of an open generation, so that it is
not removed, and one on `IN_USE` during a read, so that it is not emptied.

`current.json` names a generation, an immutable directory, and is replaced atomically. An unusable index raises
`IndexFaultError` with a clause that continues "the index …".
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from commonplace.dataclasses import asdict, dataclass, field
from commonplace.errors import IndexFaultError, StoreError
from commonplace.files import sync
from commonplace.text.tokens import ANALYSIS
from commonplace.types import Embedding, Head

SCHEMA = 7 + ANALYSIS
"""Version of the stored bytes; it rises with every change of format or of text analysis."""
CURRENT = "current.json"
MISSING = "is missing"
"""The fault of an index that was never built or was removed."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of a generation as it was published: time in nanoseconds, crc32 of its bytes."""

    size: int
    mtime_ns: int
    crc32: int


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk of the dense part: `rows` in the file, of which `dead` no longer count, all of one embedder."""

    file: str
    rows: int
    dead: int
    space: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one generation holds.

    Attributes:
        heads: by namespace, the change up to which it is held; another token of that change means that the store was
            restored and then changed differently.
        documents: number of passages that can be found.
        counted: number of passages that can be found, plus those deleted since the last rebuild.
        namespaces: their names; the parts know a namespace by its index in this list, its code.
        last_numbers: for each, the highest passage number it was ever given; a passage with a higher one is not held.
        statistics: for each, how many passages can be found, then how many terms each lexical field of them has.
        chunks: the dense part's chunks, in the order of its dead rows.
        files: by path relative to the generation.
    """

    store_id: str
    embedding: Embedding
    heads: Mapping[str, Head] = field(default_factory=dict)
    generation: int = 0
    documents: int = 0
    counted: int = 0
    namespaces: tuple[str, ...] = ()
    last_numbers: tuple[int, ...] = ()
    statistics: tuple[tuple[int, ...], ...] = ()
    chunks: tuple[ChunkRecord, ...] = ()
    files: Mapping[str, FileRecord] = field(default_factory=dict)


def generation_path(directory: Path, number: int) -> Path:
    """Return the directory of a generation of the index in `directory`."""
    return directory / f"g{number:08d}"


def read_manifest(directory: Path, *, store_id: str, embedding: Embedding) -> Manifest:
    """Return the manifest of the current generation.

    Raises:
        IndexFaultError: there is none, or it is damaged, or of another version, store or embedder.
    """
    try:
        document = json.loads((directory / CURRENT).read_bytes())
        schema, body = document["schema"], document["body"]
        is_whole = document["crc32"] == _checksum(body)
    except FileNotFoundError as error:
        raise IndexFaultError(MISSING) from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise IndexFaultError(f"was damaged: {CURRENT} cannot be read") from error
    if schema != SCHEMA:
        raise IndexFaultError("was made by another version")
    if not is_whole:
        raise IndexFaultError(f"was damaged: {CURRENT} was altered")
    stamp = body["embedding"]
    others = tuple((kind, Embedding(**{**other, "others": ()})) for kind, other in stamp["others"])
    manifest = Manifest(
        **{
            **body,
            "embedding": Embedding(**{**stamp, "others": others}),
            "heads": {name: Head(*head) for name, head in body["heads"].items()},
            "namespaces": tuple(body["namespaces"]),
            "last_numbers": tuple(body["last_numbers"]),
            "statistics": tuple(map(tuple, body["statistics"])),
            "chunks": tuple(ChunkRecord(**chunk) for chunk in body["chunks"]),
            "files": {name: FileRecord(**entry) for name, entry in body["files"].items()},
        }
    )
    if manifest.store_id != store_id:
        raise IndexFaultError("belongs to another store")
    if manifest.embedding != embedding:
        raise IndexFaultError(f"was made with another embedder: {manifest.embedding}, not {embedding}")
    return manifest


def published_generation(directory: Path) -> int:
    """Return the number of the generation in use, even of another store; 0 if it cannot be read."""
    try:
        return int(json.loads((directory / CURRENT).read_bytes())["body"]["generation"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON with its schema version and a checksum."""
    body = asdict(manifest)
    document = {"schema": SCHEMA, "crc32": _checksum(body), "body": body}
    return json.dumps(document, indent=1, sort_keys=True).encode("ascii")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new content, also after a power failure."""
    draft = path.with_name(path.name + ".draft")
    write_file(draft, data)
    draft.replace(path)
    sync(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it; a link in its place is not followed.

    Raises:
        OSError: it cannot be written, or is a link.
    """
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o666)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _checksum(body: Any) -> int:
    return crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii"))


IN_USE = "dense/dead"
"""File that is locked while a generation is read; each generation has its own, never a link to that of another."""
_BLOCK = 1 << 18
_WRONG_KIND = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)


class OpenFiles:
    """Open files of one generation, closed when this object is no longer referenced. Safe for threads.

    Attributes:
        records: the files as published, but with their present times.
    """

    def __init__(self, directory: Path, files: Mapping[str, FileRecord], *, thorough: bool = False) -> None:
        """Open the files and check that they are those that were published.

        Args:
            files: by path relative to `directory`.
            thorough: compare the checksums whatever the times say.

        Raises:
            IndexFaultError: a file is missing or differs.
            StoreError: a file cannot be read, though it may be whole.
        """
        self._descriptors: dict[str, int] = {}
        weakref.finalize(self, _close_all, self._descriptors)
        if files:
            # This lock shows others that the generation is open. If it fails, opening the files fails too, or there are
            # no locks; if the generation is being removed right now, its files are missing a moment later.
            with suppress(OSError):
                self._descriptors["."] = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                fcntl.flock(self._descriptors["."], fcntl.LOCK_SH | fcntl.LOCK_NB)
        self._sizes = {name: published.size for name, published in files.items()}
        self.records: dict[str, FileRecord] = {}
        for name, published in files.items():
            try:
                descriptor = self._descriptors[name] = os.open(directory / name, os.O_RDONLY | os.O_CLOEXEC)
                stat = os.fstat(descriptor)
                checksum = published.crc32
                if stat.st_size == published.size and (thorough or stat.st_mtime_ns != published.mtime_ns):
                    checksum = _file_checksum(descriptor)
            except FileNotFoundError as error:
                raise IndexFaultError(f"was damaged: {name} is missing") from error
            except OSError as error:
                raise unreadable(error.errno, f"{name} cannot be read ({error.strerror})") from error
            _compare_sizes(name, stat.st_size, published.size)
            if checksum != published.crc32:
                raise IndexFaultError(f"was damaged: {name} was altered")
            self.records[name] = FileRecord(published.size, stat.st_mtime_ns, published.crc32)
        self._users_lock = threading.Lock()
        self._users = 0

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Check the files, and hold a shared lock against emptying them for the length of a `with` block.

        Raises:
            IndexFaultError: one was damaged, or is being removed.
        """
        with self._users_lock:
            if not self._users:
                self._lock(fcntl.LOCK_SH | fcntl.LOCK_NB)
            self._users += 1
        try:
            self.check()
            yield
        finally:
            with self._users_lock:
                self._users -= 1
                if not self._users:
                    self._lock(fcntl.LOCK_UN)

    def _lock(self, operation: int) -> None:
        if IN_USE in self._descriptors:
            try:
                fcntl.flock(self._descriptors[IN_USE], operation)
            except BlockingIOError as error:
                raise IndexFaultError("is being removed") from error
            except OSError:
                pass  # no locks on this file system: nothing is emptied without one

    def check(self) -> None:
        """Check that no file has changed its size since it was opened; a fraction of a microsecond for each."""
        # Seeking finds the size three times as fast as fstat; nothing reads from the position it leaves.
        for name, size in self._sizes.items():
            _compare_sizes(name, os.lseek(self._descriptors[name], 0, os.SEEK_END), size)


def unreadable(code: int | None, what: str) -> StoreError:
    """Return the error for a read that the system refused: a fault only if the file is missing or of the wrong kind.

    Too many open files, missing rights or a failing disk say nothing about the files: rebuilding would not help.
    """
    if code in _WRONG_KIND:
        return IndexFaultError(f"was damaged: {what}")
    return StoreError(f"the index cannot be used: {what}", remedy="remove the cause and try again; nothing is lost")


def record(path: Path) -> FileRecord:
    """Return what identifies the file's present content."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        return FileRecord(stat.st_size, stat.st_mtime_ns, _file_checksum(file.fileno()))


def _compare_sizes(name: str, size: int, published: int) -> None:
    if size != published:
        side = "short" if size < published else "long"
        raise IndexFaultError(f"was damaged: {name} is {abs(size - published)} bytes too {side}")


def _file_checksum(descriptor: int) -> int:
    checksum = offset = 0
    while block := os.pread(descriptor, _BLOCK, offset):
        checksum = crc32(block, checksum)
        offset += len(block)
    return checksum


def _close_all(descriptors: dict[str, int]) -> None:
    while descriptors:
        os.close(descriptors.popitem()[1])
