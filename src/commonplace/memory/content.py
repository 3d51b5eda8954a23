"""Derive what is searched from a memory's content: passages, signature, dates, referenced files.

Every writer of a version calls this, so that equal content is found alike however it was added.

A reference is `path@sha256:<hexadecimal>`, with the path below the project. Files are read, never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final
from uuid import uuid4

from commonplace.dataclasses import replace
from commonplace.dates import mentions
from commonplace.dates.time import moment_of
from commonplace.ingest.passages import Destination, PassageMaker
from commonplace.ingest.read import normalise
from commonplace.memory.validate import TRUST, NewMemory
from commonplace.text.hashes import sha256
from commonplace.text.similarity import signature
from commonplace.types import MemoryRecord, MemoryWrite, Owner

MAX_FILES: Final = 10
"""So many files are known of a memory; what names more is a list, and speaks of none of them."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""A larger file is not read."""

_MARK: Final = "@sha256:"
_PATH: Final = re.compile(r"(?<![\w/.:-])@?(?:\./)?(?=[\w.]*[/.])[\w.-]+(?:/[\w.-]+)*\.\w{1,8}(?![\w/])")
"""What may be a path: it has a suffix, and may have directories; a line or a heading after it is left out."""
_MAX_SCANNED: Final = 20_000


def files_named(texts: Iterable[str], project: Path | None) -> tuple[str, ...]:
    """Return references to the project files that texts name, in order of appearance; none without a project."""
    if project is None:
        return ()
    named = dict.fromkeys(
        found[0].removeprefix("@").removeprefix("./") for text in texts for found in _PATH.finditer(text[:_MAX_SCANNED])
    )
    if not 0 < len(named) <= MAX_FILES:
        return ()
    files = {path: _inside(project, path) for path in named}
    digests = {path: _digest(file) for path, file in files.items() if file is not None}
    return tuple(f"{path}{_MARK}{digest}" for path, digest in digests.items() if digest)


def what_became(reference: str, project: Path) -> str:
    """Return what became of a file since it was referred to, as "a.py has changed", or "" where it is the same.

    Of a reference that names no file "" is returned as well.
    """
    path, mark, digest = reference.rpartition(_MARK)
    if not (mark and path and re.fullmatch(r"[0-9a-f]{64}", digest)):
        return ""
    file = _inside(project, path)
    if file is None:
        return f"{path} is gone"
    return "" if _digest(file) == digest else f"{path} has changed"


def _inside(project: Path, path: str) -> Path | None:
    """Return a file below the project, or None."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        return None
    place = project / path
    try:
        return place if place.is_file() and place.resolve().is_relative_to(project.resolve()) else None
    except OSError:
        return None


def _digest(file: Path) -> str:
    """Return the SHA-256 of a file, or "" if it is too large or cannot be read."""
    try:
        return "" if file.stat().st_size > MAX_BYTES else sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


BATCH: Final = 256
"""A batch holds the store's write lock while it is written: so many versions take some hundredths of a second."""
BATCH_CHARACTERS: Final = 131_072


def batches(news: Sequence[NewMemory]) -> Iterator[list[NewMemory]]:
    """Yield memories in order, in batches small enough that other writers wait only briefly."""
    some: list[NewMemory] = []
    characters = 0
    for new in news:
        characters += len(new.content)
        if some and (len(some) == BATCH or characters > BATCH_CHARACTERS):
            yield some
            some, characters = [], len(new.content)
        some.append(new)
    if some:
        yield some


def first_version(new: NewMemory, now: float, project: Path | None, *, is_forced: bool) -> tuple[Owner, MemoryRecord]:
    """Return what is given as the first version of a memory.

    Args:
        project: the directory whose files it may speak of.
    """
    origin = new.origin or "agent"
    owner = Owner(
        id=new.id or str(uuid4()),
        kind="memory",
        tags=new.tags,
        references=files_named((new.content, new.source), project),
        session=new.session,
        at=now if new.at is None else new.at,
    )
    record = MemoryRecord(
        content=new.content,
        tier=new.tier or ("medium" if new.session else "short"),
        category=new.category,
        entities=new.entities,
        source=new.source,
        origin=origin,
        trust=TRUST[origin] if new.trust is None else new.trust,
        metadata=new.metadata,
        born_at=now,
        last_used=now,
        derived_from=new.derived_from,
        is_forced=is_forced,
    )
    return owner, record


def writes_of(destination: Destination, versions: Sequence[tuple[Owner, MemoryRecord]]) -> list[MemoryWrite]:
    """Cut, tokenize and embed versions of memories, in order; either all are embedded now, or all later."""
    if destination.later_above is not None and len(versions) > 1:
        destination = replace(destination, later_above=0)
    maker = PassageMaker(destination)
    made = maker.complete([maker.prepare(owner, normalise(record.content), "markdown") for owner, record in versions])
    writes = []
    for (owner, record), write in zip(versions, made, strict=True):
        # A turn of a conversation is not compared with others: it needs no bands, and no two turns are one.
        sign = None if owner.session else signature(record.content)
        at = record.born_at if owner.at is None else owner.at
        spoken_of = ((each.since, each.until) for each in mentions(record.content, now=moment_of(at)))
        writes.append(
            MemoryWrite(
                owner,
                write.passages,
                record,
                digest="" if sign is None else sign.digest,
                bands=() if sign is None else sign.bands,
                dates=tuple(dict.fromkeys(spoken_of)),
            )
        )
    return writes
