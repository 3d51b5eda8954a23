"""Read what is imported: our exports, rejecting one that is truncated or damaged, and the files of other systems."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final

from commonplace.dataclasses import replace
from commonplace.errors import NotFoundError, StoreVersionError, UsageError
from commonplace.exchange.codec import FORMAT, HEADER, LINES, VERSION, built, decoded, refuse_other_entries, time_of
from commonplace.exchange.items import (
    READERS,
    FactItem,
    GraphItem,
    Item,
    LinkItem,
    MemoryItem,
    Problem,
    Redactor,
    Remark,
    Source,
    Version,
    version_of,
)
from commonplace.formats.foreign import detect as systems
from commonplace.formats.foreign.reader import Foreign, ForeignFact, ForeignLink, ForeignMemory
from commonplace.graph.episodes import FactInput, itself
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_extraction import entity_type, relation_type
from commonplace.graph.names import checked, normal
from commonplace.memory.validate import TRUST, json_object, one_of
from commonplace.redaction import redact
from commonplace.types import Link, MemoryRecord, Owner, Tier

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
    redactor = Redactor(max_bytes)
    with path.open("rb") as file:
        # The lines of one memory follow each other; any other line is by itself.
        for _, lines in groupby(_entries(file, path.name), key=_memory_of):
            first, versions = 0, list[Version]()
            for number, entries in lines:
                first = first or number
                try:
                    if entries["type"] == "memory":
                        versions.append(_version(entries, versions, max_bytes))
                    else:
                        yield _item(number, entries, redactor)
                except UsageError as error:
                    yield Problem(_place(number), _name_of(entries), str(error))
                    versions.clear()
                    break
            if versions:
                secrets = tuple(kind for version in versions for kind in version.secrets)
                yield MemoryItem(_place(first), tuple(versions), secrets=secrets)


def _memory_of(line: tuple[int, Mapping[str, Any]]) -> tuple[object, object]:
    number, entries = line
    owner = entries.get("owner")
    return (
        ("memory", owner.get("id") if isinstance(owner, dict) else None)
        if entries["type"] == "memory"
        else ("", number)
    )


def _version(entries: Mapping[str, Any], before: Sequence[Version], max_bytes: int) -> Version:
    """Return a version of a memory, which follows those before it."""
    _refuse_other("memory", entries)
    expired_at = entries["expired_at"]
    version = version_of(
        built(Owner, entries["owner"]),
        built(MemoryRecord, entries["record"]),
        time_of("created_at", entries["created_at"]),
        None if expired_at is None else time_of("expired_at", expired_at),
        max_bytes=max_bytes,
    )
    if before and before[-1].expired_at is None:
        raise UsageError("an older version has no expired_at", remedy="only the last version may be live")
    if before and version.record.version <= before[-1].record.version:
        raise UsageError(
            f"version {version.record.version} follows version {before[-1].record.version}",
            remedy="give the oldest first",
        )
    return version


def _item(number: int, entries: Mapping[str, Any], redactor: Redactor) -> Item:
    kind = entries["type"]
    if kind not in LINES:
        raise UsageError(f"the type of the line is {kind!r:.80}", remedy=f"known are {', '.join(LINES)}")
    _refuse_other(kind, entries)
    item = READERS[kind](_place(number), entries, redactor)
    return replace(item.cleaned(redactor), secrets=redactor.taken()) if isinstance(item, GraphItem) else item


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
    link = entries.get("link")
    if isinstance(link, dict):
        return f"link from {link.get('source')!r:.80} to {link.get('target')!r:.80}"
    owner = entries.get("owner", entries.get(str(entries.get("type"))))
    id_ = owner.get("id") if isinstance(owner, dict) else None
    kind = owner.get("kind") if isinstance(owner, dict) else None
    return f"{kind if isinstance(kind, str) else entries.get('type')!s:.20} {id_!r:.80}"


AUTO: Final = "auto"
OWN: Final = "commonplace"
FORMATS: Final = (AUTO, OWN, *systems.READERS)


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
    with _read_errors(path):
        if not path.exists():
            raise NotFoundError(f"there is nothing at {path}", remedy="name a file or folder to import")
        is_own = path.is_file() and is_export(path)
        if is_own and format_ in (AUTO, OWN):
            return Source(OWN, partial(read_export, path, max_bytes=max_bytes))
        if format_ == OWN:
            raise UsageError(
                f"{path} is not an export of Commonplace", remedy="name a file that `commonplace export` wrote"
            )
        name = systems.detect(path) if format_ == AUTO else format_
        foreign = systems.READERS[name](path)
    return Source(name, partial(items_of, foreign, name, kinds=kinds, now=now, max_bytes=max_bytes))


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="make it readable") from error


TIER: Final[Tier] = "medium"
"""What another system kept is worth more than a day's note, and not for ever."""


def items_of(
    foreign: Foreign, format_: str, *, kinds: Kinds, now: float, max_bytes: int
) -> Iterator[Item | Problem | Remark]:
    """Yield what was read as items, memories before links and facts.

    A memory without a time has none here either, so that it is the same whenever it is imported; it is known from `now`
    on. A title that the content does not begin with becomes its first line.

    Args:
        format_: the source of memories that name none.
        kinds: the types of entities and facts that there are.
        max_bytes: the most bytes of UTF-8 that the content of a memory may have.
    """
    for problem in foreign.problems:
        yield Problem(problem.path, "", problem.reason)
    for notice in foreign.notices:
        yield Remark(notice.path, notice.reason)
    for memory in foreign.memories:
        try:
            yield _memory(memory, format_, now, max_bytes)
        except UsageError as error:
            yield Problem(format_, f"memory {memory.id!r:.80}", str(error))
    for link in foreign.links:
        yield LinkItem(format_, _link(link, now))
    for fact in foreign.facts:
        try:
            yield _fact(fact, kinds)
        except UsageError as error:
            yield Problem(fact.place, "", str(error))


def _memory(memory: ForeignMemory, format_: str, now: float, max_bytes: int) -> MemoryItem:
    at = memory.updated_at if memory.created_at is None else memory.created_at
    known_at = now if at is None else at
    last_known = max(known_at, memory.last_used or known_at, memory.updated_at or known_at)
    is_told = memory.last_used is not None or memory.status == "archived"
    # A file that tells of no use is one of years ago as a whole: without this, the first decay would archive all of it.
    last_used = last_known if is_told else max(last_known, now)
    owner = Owner(memory.id, "memory", tags=memory.tags, session=memory.session, position=memory.position, at=at)
    record = MemoryRecord(
        content=_content(memory),
        tier=memory.tier or TIER,
        status=memory.status,
        category=memory.category,
        entities=memory.entities,
        source=memory.source or format_,
        origin=memory.origin,
        trust=TRUST[memory.origin],
        metadata=json_object("metadata", memory.metadata),
        born_at=known_at,
        last_used=last_used,
        use_count=memory.use_count,
        strength=memory.strength,
    )
    expired_at = last_known if memory.status == "archived" else None
    version = version_of(owner, record, known_at, expired_at, max_bytes=max_bytes)
    return MemoryItem(format_, (version,), secrets=version.secrets)


def _content(memory: ForeignMemory) -> str:
    title, content = memory.title.strip(), memory.content
    first = content.lstrip("# \n").partition("\n")[0]
    return content if not title or first.strip().casefold() == title.casefold() else f"{title}\n\n{content}"


def _link(link: ForeignLink, now: float) -> Link:
    return Link(link.source, link.target, " ".join(link.type.split()) or "related", link.strength, now)


def _fact(fact: ForeignFact, kinds: Kinds) -> FactItem:
    """Return a fact of a type of ours; the sentence that says it keeps the other system's word for the relation."""
    ends = [redact(checked(name, each)) for name, each in (("source", fact.source), ("target", fact.target))]
    source, target = (each.text for each in ends)
    if normal(source) == normal(target):
        raise itself(source)
    words = redact(" ".join(fact.type.replace("_", " ").split()) or "is related to")
    given = FactInput(
        source,
        relation_type(fact.type, kinds),
        target,
        source_type=entity_type(fact.source_type, kinds) if fact.source_type else "",
        target_type=entity_type(fact.target_type, kinds) if fact.target_type else "",
        fact=f"{source} {words.text} {target}",
        valid_from=fact.valid_from,
        trust=TRUST["document"],
    )
    return FactItem(fact.place, given, secrets=tuple(kind for each in (*ends, words) for kind in each.kinds))
