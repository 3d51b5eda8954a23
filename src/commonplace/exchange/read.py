"""Read the sources of an import: our exports, rejecting truncated and damaged ones, and files of other systems."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import NotFoundError, StoreVersionError, UsageError
from commonplace.exchange.codec import FORMAT, VERSION, build, decode_line, refuse_other_entries
from commonplace.exchange.items import ITEMS, FactItem, Item, LinkItem, MemoryItem
from commonplace.formats.foreign import detect as systems
from commonplace.formats.foreign.reader import ForeignData, ForeignMemory
from commonplace.graph.episodes import itself
from commonplace.graph.facts import Assertion
from commonplace.graph.kinds import Kinds
from commonplace.graph.model_extraction import entity_type, relation_type
from commonplace.graph.names import checked, normal
from commonplace.graph.redact import Cleaner
from commonplace.memory.validate import TRUST, json_object, one_of
from commonplace.redaction import redact
from commonplace.types import MemoryRecord, Owner, StoredMemory

MAX_LINE_BYTES: Final = 256 * 2**20
_AGAIN: Final = "export it again"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a source that cannot be stored.

    Attributes:
        place: the line, and the file if there are several.
        name: what it is about, if known.
        reason: the value, the limit and what to do.
    """

    place: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} ({self.name:.120}): {self.reason}" if self.name else f"{self.place}: {self.reason}"


SourceItem = Item | Problem | str
"""An item, a problem with one, or a notice about the source: one sentence for people."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file or folder to import.

    Attributes:
        format: its name.
        items: each call reads the source from the start; raises if the file as a whole is damaged.
    """

    format: str
    items: Callable[[], Iterator[SourceItem]]


def read_export(path: Path, *, max_bytes: int) -> Iterator[Item | Problem]:
    """Yield the items of an export, checked and without secrets; a memory has all its versions.

    Raises:
        StoreVersionError: a newer Commonplace wrote it.
        UsageError: the file is no export, truncated or damaged.
    """
    cleaner = Cleaner()
    with path.open("rb") as file:
        for place, lines in _groups(_entries(file, path.name)):
            try:
                item = _item(lines, place).checked(max_bytes)
            except UsageError as error:
                yield Problem(place, _name_of(lines[0]), str(error))
            else:
                yield cleaned(item, cleaner)


def cleaned(item: Item, cleaner: Cleaner) -> Item:
    """Return an item without secrets; its `secrets` name their kinds."""
    clean = item.cleaned(cleaner)
    return replace(clean, secrets=(*item.secrets, *cleaner.take_kinds()))


def _groups(entries: Iterator[tuple[int, dict[str, Any]]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (place, lines); the consecutive lines of one memory come together."""

    def memory(entry: tuple[int, dict[str, Any]]) -> object:
        number, line = entry
        owner = line.get("owner") if line["type"] == "memory" else None
        id_ = owner.get("id") if isinstance(owner, dict) else None
        return (number,) if id_ is None else id_

    for _, group in groupby(entries, memory):
        lines = list(group)
        yield f"line {lines[0][0]:,}", [line for _, line in lines]


def _item(lines: list[dict[str, Any]], place: str) -> Item:
    kind = lines[0]["type"]
    if kind not in ITEMS:
        raise UsageError(f"the type of the line is {kind!r:.80}", remedy=f"known are {', '.join(ITEMS)}")
    label = f"a line of the type {kind}"
    entries = [{name: value for name, value in line.items() if name != "type"} for line in lines]
    if kind == MemoryItem.kind:
        return MemoryItem(tuple(build(StoredMemory, entry, name=label, number=0) for entry in entries), place=place)
    body = entries[0].get(kind)
    id_ = str(entries[0].get("id") or (body.get("id") if isinstance(body, dict) else ""))
    # What aliases (entity), mentions and happenings (kind and subject) and events (issue) inherit from the line.
    inherited = {"kind": kind, **dict.fromkeys(("entity", "subject", "issue"), id_)}
    return build(ITEMS[kind], entries[0], inherited, name=label, place=place)


def _entries(file: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number, entries) of the lines between the first and the last; check these two."""
    digest, number = hashlib.sha256(), 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if not line.endswith(b"\n"):
            what = f"has more than {MAX_LINE_BYTES:,} bytes" if len(line) > MAX_LINE_BYTES else "is cut off"
            raise UsageError(f"line {number} of {name} {what}", remedy=_AGAIN)
        try:
            entries = decode_line(line)
        except UsageError as error:
            raise UsageError(f"line {number} of {name} is broken: {error.args[0]}", remedy=_AGAIN) from error
        if entries.get("type") == "end":
            _check_end(name, number, entries, digest.hexdigest())
            if file.read(1):
                raise UsageError(f"{name} continues after its last line", remedy=_AGAIN)
            return
        digest.update(line)
        if number == 1:
            _check_header(name, entries)
        elif not isinstance(entries.get("type"), str):
            raise UsageError(f"line {number} of {name} has no type", remedy=_AGAIN)
        else:
            yield number, entries
    raise UsageError(f"{name} is cut off after {number} lines: its last line is missing", remedy=_AGAIN)


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
    allowed = ("format", "version", "commonplace", "namespace", "kinds", "counts")
    refuse_other_entries(f"the first line of {name}", entries, allowed, frozenset())


def _check_end(name: str, number: int, entries: Mapping[str, Any], sha256: str) -> None:
    allowed = ("type", "lines", "sha256")
    refuse_other_entries("a line of the type end", entries, allowed, frozenset(allowed))
    if number == 1:
        raise UsageError(f"{name} has no first line", remedy=_AGAIN)
    if entries["lines"] != number - 1:
        raise UsageError(
            f"{name} has {number - 1} lines before its last one, which counts {entries['lines']!r:.80}", remedy=_AGAIN
        )
    if entries["sha256"] != sha256:
        raise UsageError(f"{name} was changed or damaged: its lines have the sum {sha256}", remedy=_AGAIN)


def _name_of(line: Mapping[str, Any]) -> str:
    link = line.get("link")
    if isinstance(link, dict):
        return f"link from {link.get('source')!r:.80} to {link.get('target')!r:.80}"
    body = line.get("owner", line.get(line["type"]))
    entry = body if isinstance(body, dict) else line
    kind = entry.get("kind")
    return f"{kind if isinstance(kind, str) else line['type']:.20} {entry.get('id')!r:.80}"


AUTO: Final = "auto"
OWN: Final = "commonplace"
FORMATS: Final = (AUTO, OWN, *systems.READERS)


def source_of(path: Path, format_: str, *, kinds: Kinds, now: float, max_bytes: int) -> Source:
    """Return the file or folder at a path as a source of items.

    Args:
        format_: one of `FORMATS`.
        kinds: the configured types of entities and facts.
        now: time from which memories without a time are known, seconds since the epoch.
        max_bytes: the most bytes of UTF-8 that the content of a memory may have.
    """
    one_of("format", format_, FORMATS)
    try:
        if not path.exists():
            raise NotFoundError(f"there is nothing at {path}", remedy="name a file or folder to import")
        if format_ in (AUTO, OWN) and path.is_file():
            with path.open("rb") as file:
                is_own = f'"{FORMAT}"'.encode() in file.read(4096)
            if is_own:
                return Source(OWN, partial(read_export, path, max_bytes=max_bytes))
        if format_ == OWN:
            raise UsageError(
                f"{path} is not an export of Commonplace", remedy="name a file that `commonplace export` wrote"
            )
        name = systems.detect(path) if format_ == AUTO else format_
        foreign = systems.READERS[name](path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="make it readable") from error
    return Source(name, partial(items_of, foreign, name, kinds=kinds, now=now, max_bytes=max_bytes))


def items_of(foreign: ForeignData, format_: str, *, kinds: Kinds, now: float, max_bytes: int) -> Iterator[SourceItem]:
    """Yield the data of another system as items, memories before links and facts.

    A memory without a time stays without one, so that every import yields the same memory; it is known from `now` on. A
    title that the content does not begin with becomes its first line.

    Args:
        format_: the `source` of memories that have none.
    """
    for problem in foreign.problems:
        yield Problem(problem.path, "", problem.reason)
    for notice in foreign.notices:
        yield f"{notice.path}: {notice.reason}"
    cleaner = Cleaner()
    for memory in foreign.memories:
        try:
            yield cleaned(_memory(memory, format_, now).checked(max_bytes), cleaner)
        except UsageError as error:
            yield Problem(format_, f"memory {memory.id!r:.80}", str(error))
    for link in foreign.links:
        type_ = " ".join(link.type.split()) or "related"
        yield LinkItem(replace(link, type=type_, created_at=now), place=format_)
    for fact in foreign.facts:
        try:
            ends = [redact(checked(name, end)) for name, end in (("source", fact.source), ("target", fact.target))]
            source, target = (end.text for end in ends)
            if normal(source) == normal(target):
                raise itself(source)
        except UsageError as error:
            yield Problem(fact.location, "", str(error))
            continue
        # The fact gets a type of ours; the sentence that says it keeps the other system's word for the relation.
        words = redact(" ".join(fact.type.replace("_", " ").split()) or "is related to")
        given = Assertion(
            "",
            source,
            target,
            "said",
            f"{source} {words.text} {target}",
            now,
            now,
            valid_from=fact.valid_from,
            trust=TRUST["document"],
            type=relation_type(fact.type, kinds),
        )
        of_source, of_target = (
            entity_type(type_, kinds) if type_ else "" for type_ in (fact.source_type, fact.target_type)
        )
        secrets = tuple(kind for text in (*ends, words) for kind in text.kinds)
        yield FactItem(given, (of_source, of_target), place=fact.location, secrets=secrets)


def _memory(memory: ForeignMemory, format_: str, now: float) -> MemoryItem:
    at = memory.updated_at if memory.created_at is None else memory.created_at
    known_at = now if at is None else at
    last_known = max(known_at, memory.last_used or known_at, memory.updated_at or known_at)
    has_use = memory.last_used is not None or memory.status == "archived"
    # In a source without uses, all memories may be years old: without this, the first decay would archive them all.
    last_used = last_known if has_use else max(last_known, now)
    owner = Owner(memory.id, "memory", tags=memory.tags, session=memory.session, position=memory.position, at=at)
    title, content = memory.title.strip(), memory.content
    first = content.lstrip("# \n").partition("\n")[0]
    has_title = not title or first.strip().casefold() == title.casefold()
    record = MemoryRecord(
        content=content if has_title else f"{title}\n\n{content}",
        tier=memory.tier or "medium",  # worth more than a day's note, but not kept for ever
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
    return MemoryItem((StoredMemory(0, owner, record, known_at, expired_at),), place=format_)
