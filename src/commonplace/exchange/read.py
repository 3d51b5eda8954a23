"""Read an export line by line and reject one that is truncated or damaged."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import NotFoundError, StoreVersionError, UsageError
from commonplace.exchange.codec import FORMAT, HEADER, LINES, VERSION, built, decoded, refuse_other_entries, time_of
from commonplace.exchange.foreign import items_of
from commonplace.exchange.items import Item, MemoryItem, Problem, Redactor, Source, Version, item_of, version_of
from commonplace.formats.foreign.detect import READERS, detect
from commonplace.graph.kinds import Kinds
from commonplace.memory.validate import one_of
from commonplace.types import MemoryRecord, Owner

MAX_LINE_BYTES: Final = 256 * 2**20
_START_BYTES = 4096
_AGAIN: Final = "export it again"


def is_export(path: Path) -> bool:
    """Return whether a file begins as an export does."""
    with path.open("rb") as file:
        return f'"{FORMAT}"'.encode() in file.read(_START_BYTES)


def read_export(path: Path, *, max_bytes: int) -> Iterator[Item | Problem]:
    """Yield what an export holds, each memory with all its versions.

    Args:
        max_bytes: the most bytes of UTF-8 that the content of a memory or an episode may have.

    Raises:
        StoreVersionError: a newer Commonplace wrote it.
        UsageError: it is no export, cut off, or damaged.
    """
    versions, redactor = _Versions(max_bytes), Redactor(max_bytes)
    with path.open("rb") as file:
        for number, entries in _entries(file, path.name):
            if entries["type"] == "memory":
                yield from versions.add(number, entries)
                continue
            yield from versions.finish()
            try:
                yield _item(number, entries, redactor)
            except UsageError as error:
                yield Problem(_place(number), _name_of(entries), str(error))
        yield from versions.finish()


@dataclass(slots=True)
class _Versions:
    """Collects the lines of one memory, which follow each other."""

    max_bytes: int
    line: int = 0
    id: object = None
    found: list[Version] = field(default_factory=list)
    problem: Problem | None = None

    def add(self, number: int, entries: Mapping[str, Any]) -> Iterator[Item | Problem]:
        """Take a line; yield the memory before, where another one begins."""
        owner = entries.get("owner")
        id_ = owner.get("id") if isinstance(owner, dict) else None
        if id_ != self.id or not self.line:
            yield from self.finish()
            self.line, self.id = number, id_
        try:
            self.found.append(_version(entries, self.max_bytes))
            self._refuse_disorder()
        except UsageError as error:
            self.problem = self.problem or Problem(_place(number), _name_of(entries), str(error))

    def finish(self) -> Iterator[Item | Problem]:
        """Yield the memory that was collected, if any was."""
        if self.problem is not None:
            yield self.problem
        elif self.found:
            secrets = tuple(kind for version in self.found for kind in version.secrets)
            yield MemoryItem(_place(self.line), tuple(self.found), secrets=secrets)
        self.line, self.id, self.found, self.problem = 0, None, [], None

    def _refuse_disorder(self) -> None:
        if len(self.found) < 2:
            return
        before, last = self.found[-2:]
        if before.expired_at is None:
            raise UsageError("an older version has no expired_at", remedy="only the last version may be live")
        if last.record.version <= before.record.version:
            raise UsageError(
                f"version {last.record.version} follows version {before.record.version}", remedy="give the oldest first"
            )


def _version(entries: Mapping[str, Any], max_bytes: int) -> Version:
    _refuse_other("memory", entries)
    expired_at = entries["expired_at"]
    return version_of(
        built(Owner, entries["owner"]),
        built(MemoryRecord, entries["record"]),
        time_of("created_at", entries["created_at"]),
        None if expired_at is None else time_of("expired_at", expired_at),
        max_bytes=max_bytes,
    )


def _item(number: int, entries: Mapping[str, Any], redactor: Redactor) -> Item:
    kind = entries["type"]
    if kind not in LINES:
        raise UsageError(f"the type of the line is {kind!r:.80}", remedy=f"known are {', '.join(LINES)}")
    _refuse_other(kind, entries)
    return item_of(kind, _place(number), entries, redactor)


def _entries(file: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number, entries) of the lines between the first and the last, which are checked."""
    digest = hashlib.sha256()
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        entries = _decoded(name, number, line)
        if entries.get("type") == "end":
            _check_end(name, number, entries, digest.hexdigest())
            if file.read(1):
                raise UsageError(f"{name} goes on after its last line", remedy=_AGAIN)
            return
        digest.update(line)
        if number == 1:
            _check_header(name, entries)
        elif not isinstance(entries.get("type"), str):
            raise UsageError(f"line {number} of {name} has no type", remedy=_AGAIN)
        else:
            yield number, entries
    raise UsageError(f"{name} is cut off after {number} lines: its last line is missing", remedy=_AGAIN)


def _decoded(name: str, number: int, line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        what = f"has more than {MAX_LINE_BYTES:,} bytes" if len(line) > MAX_LINE_BYTES else "is cut off"
        raise UsageError(f"line {number} of {name} {what}", remedy=_AGAIN)
    try:
        return decoded(line)
    except UsageError as error:
        raise UsageError(f"line {number} of {name} is broken: {error.args[0]}", remedy=_AGAIN) from error


def _check_header(name: str, entries: Mapping[str, Any]) -> None:
    if entries.get("format") != FORMAT:
        raise UsageError(f"{name} is not an export of Commonplace", remedy="name its format")
    version = entries.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < VERSION:
        raise UsageError(f"the version of {name} is {version!r:.80}", remedy=_AGAIN)
    if version > VERSION:
        raise StoreVersionError(
            f"{name} has version {version} of the format, this Commonplace knows version {VERSION}",
            remedy="upgrade Commonplace",
        )
    refuse_other_entries(f"the first line of {name}", entries, HEADER, ("format", "version"))


def _check_end(name: str, number: int, entries: Mapping[str, Any], sha256: str) -> None:
    _refuse_other("end", entries)
    if number == 1:
        raise UsageError(f"{name} has no first line", remedy=_AGAIN)
    if entries["lines"] != number - 1:
        raise UsageError(
            f"{name} has {number - 1} lines before its last one, which counts {entries['lines']!r:.80}", remedy=_AGAIN
        )
    if entries["sha256"] != sha256:
        raise UsageError(f"{name} was changed or damaged: its lines have the sum {sha256}", remedy=_AGAIN)


def _refuse_other(kind: str, entries: Mapping[str, Any]) -> None:
    refuse_other_entries(f"a line of the type {kind}", entries, ("type", *LINES[kind]), LINES[kind])


def _place(number: int) -> str:
    return f"line {number:,}"


def _name_of(entries: Mapping[str, Any]) -> str:
    """Return what a line is about, in words."""
    link = entries.get("link")
    if isinstance(link, dict):
        return f"link from {link.get('source')!r:.80} to {link.get('target')!r:.80}"
    owner = entries.get("owner", entries.get(str(entries.get("type"))))
    id_ = owner.get("id") if isinstance(owner, dict) else None
    kind = owner.get("kind") if isinstance(owner, dict) else None
    return f"{kind if isinstance(kind, str) else entries.get('type')!s:.20} {id_!r:.80}"


AUTO: Final = "auto"
OWN: Final = "commonplace"
FORMATS: Final = (AUTO, OWN, *READERS)


def source_of(path: Path, format_: str, *, kinds: Kinds, now: float, max_bytes: int) -> Source:
    """Return what stands at a path as something to import.

    Args:
        format_: one of `FORMATS`.
        kinds: the types of entities and facts that there are.
        now: from when on memories that name no time are known, seconds since the epoch.
        max_bytes: the most bytes of UTF-8 that the content of a memory may have.

    Raises:
        NotFoundError: nothing stands there.
        UsageError: it cannot be read, the format is unknown, or it is none that is known.
    """
    one_of("format", format_, FORMATS)
    if not _is_there(path):
        raise NotFoundError(f"there is nothing at {path}", remedy="name a file or folder to import")
    with _told(path):
        is_own = path.is_file() and is_export(path)
        if is_own and format_ in (AUTO, OWN):
            return Source(OWN, partial(read_export, path, max_bytes=max_bytes))
        if format_ == OWN:
            raise UsageError(
                f"{path} is not an export of Commonplace", remedy="name a file that `commonplace export` wrote"
            )
        name = detect(path) if format_ == AUTO else format_
        foreign = READERS[name](path)
    return Source(name, partial(items_of, foreign, name, kinds=kinds, now=now, max_bytes=max_bytes))


def _is_there(path: Path) -> bool:
    with _told(path):
        return path.exists()


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="make it readable") from error
