"""Export a namespace as JSON lines from one snapshot of the store."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.errors import StoreDamagedError
from commonplace.exchange.archive import counter, file_errors, refuse_occupied
from commonplace.exchange.codec import FORMAT, VERSION, NotAnObjectError, encoded
from commonplace.files import sync
from commonplace.store.drafts import clear_drafts, draft
from commonplace.store.graph import GraphReading
from commonplace.store.knowledge import KnowledgeReading
from commonplace.store.ledger import LedgerReading
from commonplace.store.owners import cut_owners, plain_owners
from commonplace.store.store import Store
from commonplace.types import KINDS, Filter, Progress, Selection
from commonplace.types.graph import Alias, Entity, GraphCounts, GraphFilter, Relation, Subject
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection

_AT_ONCE = 500
_MAX_PAGES = 20
"""Each page costs a look at all before it."""

Value = TypeVar("Value")


Lines = Iterator[dict[str, Any]]
"""The entries of lines."""


def graph_lines(graph: GraphReading) -> Lines:
    """Yield a line for every episode, entity and fact.

    What leads nowhere is left out: mentions in episodes that are gone, and of what is gone.
    """
    total = graph.counts()
    for episodes in _pages(graph.list_episodes, GraphFilter(), total.episodes):
        for episode in episodes:
            yield {"type": "episode", "episode": episode}
    for entities in _entities(graph, total.entities):
        yield from _with_history(graph, "entity", entities, graph.aliases([entity.id for entity in entities]))
    for relations in _pages(graph.list_relations, GraphFilter(with_past=True), total.relations):
        yield from _with_history(graph, "relation", relations)


def _with_history(
    graph: GraphReading,
    kind: Subject,
    records: Sequence[Entity] | Sequence[Relation],
    aliases: Mapping[str, list[Alias]] | None = None,
) -> Lines:
    """Yield records with the names of entities, where they are mentioned, and what happened to them."""
    found = graph.mentions(kind, [record.id for record in records])
    episodes = graph.episodes(list({mention.episode for some in found.values() for mention in some}))
    for record in records:
        names = {} if aliases is None else {"aliases": aliases.get(record.id, [])}
        mentions = [mention for mention in found.get(record.id, []) if mention.episode in episodes]
        happenings = graph.happenings(kind, record.id)
        yield {"type": kind, kind: record, **names, "mentions": mentions, "happenings": happenings}


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


def _pages(read: Callable[..., list[Value]], wanted: GraphFilter, total: int) -> Iterator[list[Value]]:
    size = max(_AT_ONCE, -(-total // _MAX_PAGES))
    offset = 0
    while page := read(wanted, limit=size, offset=offset):
        yield page
        offset += size


def _knowledge_lines(knowledge: KnowledgeReading) -> Lines:
    """Yield the lines of all items, deleted ones too, by agent in the order in which they came; then of contexts."""
    items = [*knowledge.items(), *knowledge.items(deleted=True)]
    for item in sorted(items, key=lambda item: (item.record.agent, item.number)):
        times = {name: getattr(item, name) for name in ("created_at", "updated_at", "deleted_at")}
        yield {"type": "knowledge", "id": item.owner.id, **times, "record": item.record}
    for context in knowledge.contexts():
        yield {"type": "context", "context": context}


def _ledger_lines(ledger: LedgerReading) -> Lines:
    """Yield the lines of all issues, by creation, ties by id; then of those that another program keeps, by id."""
    events: dict[str, list[IssueEvent]] = {}
    for event in ledger.events():
        events.setdefault(event.issue, []).append(event)
    reversals = {reversal.issue: reversal for reversal in ledger.reversals()}
    issues: dict[str, Issue | None] = {issue.id: issue for issue in ledger.issues(IssueSelection())}
    elsewhere = sorted((events.keys() | reversals.keys()) - issues.keys())
    for id_, issue in (issues | dict.fromkeys(elsewhere)).items():
        history = {"events": events.get(id_, []), "reversal": reversals.get(id_)}
        yield {"type": "issue", "id": id_, "issue": issue, **history}


def _memory_lines(store: Store, namespace: str, memories: int) -> Lines:
    """Yield the versions of each memory, oldest first, memories by id."""
    page = max(_AT_ONCE, -(-memories // _MAX_PAGES))
    for offset in range(0, memories, page):
        for latest in store.memories(namespace, Selection(order="id", limit=page, offset=offset)):
            for version in store.versions(namespace, latest.owner.id):
                times = {"created_at": version.created_at, "expired_at": version.expired_at}
                yield {"type": "memory", **times, "owner": version.owner, "record": version.record}


GRAPH: Final = "graph"
LEDGER: Final = "ledger"
EXPORTED: Final = (*KINDS, GRAPH, LEDGER)
"""What an export may be of."""

_COUNTED: Final = {
    "memory": "versions",
    "link": "links",
    "owner": "owners",
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
    """The contents of an export.

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
    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._digest = hashlib.sha256()
        self.counts = dict.fromkeys(("memories", *_COUNTED.values()), 0)
        self.lines = self.size = 0

    def add(self, entries: dict[str, Any]) -> None:
        """Write a line.

        Raises:
            StoreDamagedError: what should be a JSON object is none.
        """
        kind = entries.get("type", "")
        try:
            line = encoded(entries)
        except NotAnObjectError as error:
            id_ = entries["owner" if kind == "memory" else kind].id
            raise StoreDamagedError(
                f"the {error} of {kind} {id_!r:.80} is not a JSON object",
                remedy="update or forget it, or restore a backup",
            ) from error
        self._digest.update(line)
        self.lines += 1
        self._put(line)
        if kind:
            self.counts[_COUNTED[kind]] += 1

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

    wanted = {*(kinds or EXPORTED)}
    with store.snapshot():
        graph = store.graph(namespace)
        parts = graph.counts() if GRAPH in wanted else GraphCounts()
        memories = store.count_memories(namespace, Selection()) if "memory" in wanted else 0
        links = store.links(namespace) if "memory" in wanted else []
        owners = _owners(store, namespace, wanted)
        known = list(_knowledge_lines(store.knowledge(namespace))) if "knowledge" in wanted else []
        issues = list(_ledger_lines(store.ledger(namespace))) if LEDGER in wanted else []
        items = sum(entries["type"] == "knowledge" for entries in known)
        counts = {
            "memories": memories,
            "links": len(links),
            "owners": len(owners),
            "knowledge": items,
            "contexts": len(known) - items,
            "episodes": parts.episodes,
            "entities": parts.entities,
            "relations": parts.relations,
            "issues": len(issues),
        }
        about = {"format": FORMAT, "version": VERSION, "commonplace": version("commonplace"), "namespace": namespace}
        lines.add({**about, "kinds": sorted(wanted, key=EXPORTED.index), "counts": counts})
        count = counter(progress, "Exporting", sum(counts.values()))
        last = None
        for entries in chain(
            _memory_lines(store, namespace, memories),
            ({"type": "link", "link": link} for link in links),
            (
                {"type": "owner", "owner": owner, "passages": chunks}
                for _, owner, chunks in cut_owners(store, namespace, owners)
            ),
            known,
            graph_lines(graph) if GRAPH in wanted else (),
            issues,
        ):
            lines.add(entries)
            id_ = entries["owner"].id if entries["type"] == "memory" else None
            if id_ is None or id_ != last:
                count(1)
            last = id_
        lines.counts["memories"] = memories
    lines.end()


def _owners(store: Store, namespace: str, wanted: Collection[str]) -> list[int]:
    """Return the numbers of the owners that have no record, by kind and id."""
    kinds = tuple(kind for kind in KINDS if kind in wanted)
    owners = plain_owners(store, namespace, Filter(kinds=kinds)) if kinds else ()
    return [number for _, _, number in sorted((KINDS.index(owner.kind), owner.id, number) for number, owner in owners)]


@contextmanager
def new_file(path: Path, directory: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Give the writing of a file that gets its name when it is whole and on disk.

    Args:
        directory: of the store whose content it is.

    Raises:
        StoreError: it exists already, its directory does not, or it cannot be written.
    """
    refuse_occupied(path)
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
