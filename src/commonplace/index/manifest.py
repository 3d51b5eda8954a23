"""The one file that says what the index holds; it knows files by size, time and checksum, not what is in them.

`current.json` names a generation, an immutable directory, and is replaced as a whole. Everything about an index that
cannot be used is told by `IndexFaultError`, in one clause that continues "the index …".
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from commonplace.errors import IndexFaultError
from commonplace.types import Embedding

SCHEMA = 1
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
    """One chunk of the dense part: `rows` in the file, of which `dead` no longer count."""

    file: str
    rows: int
    dead: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one generation holds.

    Attributes:
        change: it holds every change of the store up to this one.
        last_number: the highest passage number it was ever given.
        documents: number of passages that can be found.
        counted: number of passages that `token_frequencies` and the term statistics speak of: those found and those
            deleted since the last rebuild.
        mean_lengths: mean number of terms by lexical field.
        namespaces: their names; the place in this list is the code under which the parts know a namespace.
        chunks: the dense part's chunks in the order of its dead rows.
        files: by path relative to the generation.
    """

    store_id: str
    embedding: Embedding
    change: int = 0
    generation: int = 0
    last_number: int = 0
    documents: int = 0
    counted: int = 0
    mean_lengths: Mapping[str, float] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
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
        data = (directory / CURRENT).read_bytes()
    except FileNotFoundError as error:
        raise IndexFaultError(MISSING) from error
    return decode(data, store_id=store_id, embedding=embedding)


def published_generation(directory: Path) -> int:
    """Return the number of the generation in use, whoever made it; 0 where nobody can tell."""
    try:
        return int(json.loads((directory / CURRENT).read_bytes())["body"]["generation"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return 0


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON with its schema version and a checksum."""
    body = asdict(manifest)
    document = {"schema": SCHEMA, "crc32": _checksum(body), "body": body}
    return json.dumps(document, indent=1, sort_keys=True).encode("ascii")


def decode(data: bytes, *, store_id: str, embedding: Embedding) -> Manifest:
    """Return the manifest.

    Raises:
        IndexFaultError: it is damaged, or of another version, store or embedder.
    """
    try:
        document = json.loads(data)
        schema, body = document["schema"], document["body"]
        is_whole = document["crc32"] == _checksum(body)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise IndexFaultError(f"was damaged: {CURRENT} cannot be read") from error
    if schema != SCHEMA:
        raise IndexFaultError("was made by another version")
    if not is_whole:
        raise IndexFaultError(f"was damaged: {CURRENT} was altered")
    manifest = _from_body(body)
    if manifest.store_id != store_id:
        raise IndexFaultError("belongs to another store")
    if manifest.embedding != embedding:
        raise IndexFaultError(f"was made with another embedder: {manifest.embedding}, not {embedding}")
    return manifest


def record(path: Path) -> FileRecord:
    """Return what identifies the file's present content."""
    stat = path.stat()
    return FileRecord(stat.st_size, stat.st_mtime_ns, _file_checksum(path))


def verify(directory: Path, files: Mapping[str, FileRecord], *, thorough: bool = False) -> None:
    """Check that the files are those that were published: by size and time, else by size and checksum.

    Args:
        thorough: compare the checksums whatever the times say.

    Raises:
        IndexFaultError: a file is missing or differs.
    """
    for name, known in files.items():
        path = directory / name
        try:
            stat = path.stat()
            if stat.st_size != known.size:
                difference = abs(stat.st_size - known.size)
                side = "short" if stat.st_size < known.size else "long"
                raise IndexFaultError(f"was damaged: {name} is {difference} bytes too {side}")
            if (thorough or stat.st_mtime_ns != known.mtime_ns) and _file_checksum(path) != known.crc32:
                raise IndexFaultError(f"was damaged: {name} was altered")
        except FileNotFoundError as error:
            raise IndexFaultError(f"was damaged: {name} is missing") from error
        except OSError as error:
            raise IndexFaultError(f"was damaged: {name} cannot be read ({error.strerror})") from error


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old or the new content, also after a power failure."""
    draft = path.with_name(path.name + ".draft")
    write_file(draft, data)
    draft.replace(path)
    sync(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Wait until the disk has a file's content, or a directory's names."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _file_checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 18):
            checksum = crc32(block, checksum)
    return checksum


def _checksum(body: Any) -> int:
    return crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode("ascii"))


def _from_body(body: dict[str, Any]) -> Manifest:
    return Manifest(
        **{
            **body,
            "embedding": Embedding(**body["embedding"]),
            "namespaces": tuple(body["namespaces"]),
            "chunks": tuple(ChunkRecord(**chunk) for chunk in body["chunks"]),
            "files": {name: FileRecord(**known) for name, known in body["files"].items()},
        }
    )
