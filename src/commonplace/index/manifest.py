"""The one file that says what the index holds; it knows names and records of files, and opens none of them.

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
from commonplace.files import sync
from commonplace.types import Embedding

SCHEMA = 3
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
        change: it holds every change of the store up to this one.
        token: the store's token of that change; another one tells that the store was put back and went another way.
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
    token: str = ""
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


def _embedding(body: dict[str, Any]) -> Embedding:
    others = tuple((kind, _embedding(stamp)) for kind, stamp in body["others"])
    return Embedding(**{**body, "others": others})


def _from_body(body: dict[str, Any]) -> Manifest:
    return Manifest(
        **{
            **body,
            "embedding": _embedding(body["embedding"]),
            "namespaces": tuple(body["namespaces"]),
            "chunks": tuple(ChunkRecord(**chunk) for chunk in body["chunks"]),
            "files": {name: FileRecord(**known) for name, known in body["files"].items()},
        }
    )
