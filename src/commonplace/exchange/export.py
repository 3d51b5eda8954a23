"""Export a namespace as JSON lines from one snapshot of the store."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from commonplace.errors import StoreDamagedError, StoreError
from commonplace.exchange.archive import counter, file_errors
from commonplace.exchange.codec import FORMAT, VERSION, encoded
from commonplace.exchange.records import knowledge_lines, ledger_lines
from commonplace.files import sync
from commonplace.store.contract import Store
from commonplace.store.drafts import clear_drafts, draft
from commonplace.store.graph_contract import GraphReading
from commonplace.types import KINDS, Chunk, Filter, Owner, Progress, Selection
from commonplace.types.graph import Entity, GraphCounts, GraphFilter, Mention, Subject

_AT_ONCE = 500
_MAX_PAGES = 20
"""Each page costs a look at all before it."""

Value = TypeVar("Value")


def graph_lines(graph: GraphReading) -> Iterator[dict[str, Any]]:
    """Yield the entries of a line for every episode, entity and fact.

    What leads nowhere is left out: mentions in episodes that are gone, and of what is gone.

    Raises:
        StoreDamagedError: what should be a JSON object is none.
    """
    total = graph.counts()
    for episodes in _pages(graph.list_episodes, GraphFilter(), total.episodes):
        for episode in episodes:
            yield {"type": "episode", "episode": episode}
    for entities in _entities(graph, total.entities):
        ids = [entity.id for entity in entities]
        aliases, mentions = graph.aliases(ids), _mentions(graph, "entity", ids)
        for entity in entities:
            yield _checked(
                {
                    "type": "entity",
                    "entity": entity,
                    "aliases": aliases.get(entity.id, []),
                    "mentions": mentions.get(entity.id, []),
                    "happenings": graph.happenings("entity", entity.id),
                },
                entity.attributes,
            )
    for relations in _pages(graph.list_relations, GraphFilter(with_past=True), total.relations):
        mentions = _mentions(graph, "relation", [relation.id for relation in relations])
        for relation in relations:
            yield _checked(
                {
                    "type": "relation",
                    "relation": relation,
                    "mentions": mentions.get(relation.id, []),
                    "happenings": graph.happenings("relation", relation.id),
                },
                relation.attributes,
            )


def _entities(graph: GraphReading, total: int) -> Iterator[Sequence[Entity]]:
    """Yield all entities, those that were merged into others after these."""
    merged: list[Entity] = []
    for page in _pages(graph.list_entities, GraphFilter(with_past=True), total):
        merged += (entity for entity in page if entity.merged_into)
        yield [entity for entity in page if not entity.merged_into]
    waiting = {entity.id for entity in merged}
    while merged:
        ready = [entity for entity in merged if entity.merged_into not in waiting] or merged
        for begin in range(0, len(ready), _AT_ONCE):
            yield ready[begin : begin + _AT_ONCE]
        waiting.difference_update(entity.id for entity in ready)
        merged = [entity for entity in merged if entity.id in waiting]


def _mentions(graph: GraphReading, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
    found = graph.mentions(kind, ids)
    episodes = graph.episodes(list({mention.episode for some in found.values() for mention in some}))
    return {id_: [mention for mention in some if mention.episode in episodes] for id_, some in found.items()}


def _pages(read: Callable[..., list[Value]], wanted: GraphFilter, total: int) -> Iterator[list[Value]]:
    size = max(_AT_ONCE, -(-total // _MAX_PAGES))
    offset = 0
    while page := read(wanted, limit=size, offset=offset):
        yield page
        offset += size


def _checked(entries: dict[str, Any], attributes: str) -> dict[str, Any]:
    try:
        for text in (attributes, *(happening.detail for happening in entries["happenings"])):
            json.loads(text).keys()
    except (ValueError, AttributeError) as error:
        what = entries["type"]
        raise StoreDamagedError(
            f"the attributes or the history of {what} {entries[what].id!r:.80} are no JSON object",
            remedy="forget it, or restore a backup",
        ) from error
    return entries


GRAPH: Final = "graph"
LEDGER: Final = "ledger"
EXPORTED: Final = (*KINDS, GRAPH, LEDGER)
"""What an export may be of."""

_COUNTED: Final = {
    "knowledge": "knowledge",
    "context": "contexts",
    "episode": "episodes",
    "entity": "entities",
    "relation": "relations",
    "issue": "issues",
}
"""Each page of memories costs a look at all ids: with a million memories a page holds more of them."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export holds.

    Attributes:
        path: absolute; None where it went to a stream.
        versions: of the memories, which have one line each.
        owners: artifacts and documents.
        knowledge, contexts: of agents; deleted knowledge counts, too.
        episodes, entities, relations: of the graph; entities that were merged into others count, too.
        issues: of the ledger, with what was done on them.
        lines: all but the last one.
        sha256: of all but the last line, which holds it too.
    """

    path: Path | None
    memories: int
    versions: int
    links: int
    owners: int
    knowledge: int
    contexts: int
    episodes: int
    entities: int
    relations: int
    issues: int
    lines: int
    size: int
    sha256: str
    seconds: float


def export(
    store: Store,
    namespace: str,
    target: Path | TextIO,
    *,
    directory: Path | None = None,
    kinds: Sequence[str] = (),
    progress: Progress | None = None,
) -> ExportReport:
    """Write a namespace to a new file, or to a stream of text; see `Engine.export`.

    Args:
        directory: of the store, which a new file is noted in; None where it has none.
        kinds: some of `EXPORTED`; none is all.
        progress: told of memories, other owners and parts of the graph.
    """
    begun = time.perf_counter()
    if not isinstance(target, Path):
        written = _Lines(lambda line: target.write(line.decode("ascii")))
        _write(store, namespace, kinds, written, progress)
        target.flush()
        return written.report(None, time.perf_counter() - begun)
    path = target.expanduser().absolute()
    with new_file(path, directory) as write:
        written = _Lines(write)
        _write(store, namespace, kinds, written, progress)
    return written.report(path, time.perf_counter() - begun)


class _Lines:
    """Counts and sums the lines on their way."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self.counts = dict.fromkeys(("memories", "versions", "links", "owners", *_COUNTED.values()), 0)
        self.lines = self.size = 0

    def add(self, entries: dict[str, Any], *counted: str) -> None:
        """Write a line."""
        line = encoded(entries)
        self._digest.update(line)
        self.lines += 1
        self._put(line)
        for name in counted:
            self.counts[name] += 1

    def end(self) -> None:
        """Write the last line."""
        self._put(encoded({"type": "end", "lines": self.lines, "sha256": self._digest.hexdigest()}))

    def report(self, path: Path | None, seconds: float) -> ExportReport:
        """Return what was written."""
        return ExportReport(
            path, **self.counts, lines=self.lines, size=self.size, sha256=self._digest.hexdigest(), seconds=seconds
        )

    def _put(self, line: bytes) -> None:
        self._write(line)
        self.size += len(line)


def _write(store: Store, namespace: str, kinds: Sequence[str], lines: _Lines, progress: Progress | None) -> None:
    from importlib.metadata import version

    has_memories = not kinds or "memory" in kinds
    with store.snapshot():
        graph = store.graph(namespace)
        parts = graph.counts() if not kinds or GRAPH in kinds else GraphCounts()
        memories = store.count_memories(namespace, Selection()) if has_memories else 0
        links = store.links(namespace) if has_memories else []
        owners = _owners(store, namespace, kinds)
        known = [] if kinds and "knowledge" not in kinds else list(knowledge_lines(store.knowledge(namespace)))
        issues = list(ledger_lines(store.ledger(namespace))) if not kinds or LEDGER in kinds else []
        lines.add(
            {
                "format": FORMAT,
                "version": VERSION,
                "commonplace": version("commonplace"),
                "namespace": namespace,
                "kinds": sorted(kinds, key=EXPORTED.index) if kinds else EXPORTED,
                "counts": {
                    "memories": memories,
                    "links": len(links),
                    "owners": len(owners),
                    "knowledge": sum(entries["type"] == "knowledge" for entries in known),
                    "contexts": sum(entries["type"] == "context" for entries in known),
                    "episodes": parts.episodes,
                    "entities": parts.entities,
                    "relations": parts.relations,
                    "issues": len(issues),
                },
            }
        )
        total = memories + len(owners) + len(known) + len(issues) + parts.episodes + parts.entities + parts.relations
        count = counter(progress, "Exporting", total)
        _write_memories(store, namespace, memories, lines, count)
        for link in links:
            lines.add({"type": "link", "link": link}, "links")
        for owner, chunks in _with_passages(store, namespace, owners):
            lines.add({"type": "owner", "owner": owner, "passages": chunks}, "owners")
            count(1)
        for entries in chain(known, graph_lines(graph) if not kinds or GRAPH in kinds else (), issues):
            lines.add(entries, _COUNTED[entries["type"]])
            count(1)
    lines.end()


def _write_memories(store: Store, namespace: str, memories: int, lines: _Lines, count: Callable[[int], None]) -> None:
    """Write the versions of each memory, oldest first, memories by id."""
    page = max(_AT_ONCE, -(-memories // _MAX_PAGES))
    for offset in range(0, memories, page):
        for latest in store.memories(namespace, Selection(order="id", limit=page, offset=offset)):
            lines.counts["memories"] += 1
            count(1)
            for version in store.versions(namespace, latest.owner.id):
                entries = {
                    "type": "memory",
                    "created_at": version.created_at,
                    "expired_at": version.expired_at,
                    "owner": version.owner,
                    "record": version.record,
                }
                try:
                    lines.add(entries, "versions")
                except ValueError as error:
                    raise StoreDamagedError(
                        f"the metadata of memory {latest.owner.id!r:.80} is not a JSON object", remedy="update it"
                    ) from error


def _owners(store: Store, namespace: str, kinds: Sequence[str]) -> list[int]:
    """Return the numbers of the owners that have no record, by kind and id."""
    found = []
    wanted = tuple(kind for kind in KINDS if not kinds or kind in kinds)
    for numbers in _portions(store.matching_owners(namespace, Filter(kinds=wanted)) if wanted else []):
        records = {*store.memory_records(namespace, numbers), *store.knowledge(namespace).of_numbers(numbers)}
        owners = store.owners(namespace, [number for number in numbers if number not in records])
        found += [(KINDS.index(owner.kind), owner.id, number) for number, owner in owners.items()]
    return [number for _, _, number in sorted(found)]


def _with_passages(store: Store, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[Owner, list[Chunk]]]:
    """Yield owners with what they were cut into, in the order given."""
    for portion in _portions(numbers):
        owners = store.owners(namespace, portion)
        passages = store.passages(namespace, store.passages_of(namespace, portion))
        chunks: dict[int, list[Chunk]] = {number: [] for number in portion}
        for passage in sorted(passages.values(), key=lambda passage: passage.ordinal):
            chunks[passage.owner_number].append(passage.chunk)
        for number in portion:
            yield owners[number], chunks[number]


def _portions(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    return (numbers[begin : begin + _AT_ONCE] for begin in range(0, len(numbers), _AT_ONCE))


@contextmanager
def new_file(path: Path, directory: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Give the writing of a file that gets its name when it is whole and on disk; missing directories are made for it.

    Args:
        directory: of the store whose content it is.

    Raises:
        StoreError: it exists already, or cannot be written.
    """
    if os.path.lexists(path):
        raise StoreError(f"{path} exists already", remedy="name a file that does not exist yet")
    with file_errors(f"cannot write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    if directory is not None:
        clear_drafts(directory)
    with draft(directory, path) as base, file_errors(f"cannot write {path}"):
        new = base.with_name(f"{base.name}.new")
        with new.open("xb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
        sync(path.parent)
