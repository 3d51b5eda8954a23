"""Import items into a store: validate all, then write the new ones in batches; importing again changes nothing.

Each transaction compares its items again, because other processes may have written meanwhile.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.errors import UsageError
from commonplace.exchange.items import (
    ChangeItem,
    ContextItem,
    EpisodeItem,
    FactItem,
    GraphItem,
    IssueItem,
    Item,
    KnowledgeItem,
    LinkItem,
    MemoryItem,
    NamespaceReader,
    Outcome,
    OwnerItem,
)
from commonplace.exchange.read import Problem, Source
from commonplace.graph.episodes import MemoryFeed, add_fact
from commonplace.graph.runtime import GraphRuntime, Texts
from commonplace.ingest.passages import Destination, PassageMaker, PassageWriter
from commonplace.memory.admission import BATCH, BATCH_CHARACTERS, write_version
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.types import MemoryRecord, Progress
from commonplace.types.graph import Episode

BATCH_BYTES: Final = 4_194_304


@dataclass(frozen=True, slots=True)
class ImportRuntime:
    """The store that items are imported into, and what their import needs.

    Attributes:
        destination: returns what makes the passages; called before the first write.
        now: seconds since the epoch.
        graph: returns the runtime of the graph.
        feed: updates the graph from the memories.
        has_graph: the source has the graph of its memories, as our own exports do.
    """

    store: Store
    namespace: str
    destination: Callable[[], Destination]
    now: float
    graph: Callable[[Destination], GraphRuntime]
    feed: MemoryFeed | None = None
    has_graph: bool = False


class Writer:
    """Collects items by kind and writes each full batch; call `flush` at the end.

    Attributes:
        notices: number of memories by notice, about memories that say more than the graph takes.
    """

    def __init__(self, into: ImportRuntime, *, is_replacing: bool) -> None:
        self._into = into
        self._is_replacing = is_replacing
        self._reader = None if into.has_graph else into.feed
        self._skipped: dict[str, str] = {}
        self._versions_here: dict[str, int] = {}
        self.notices: Counter[str] = Counter()
        self._destination = into.destination()
        self._owners = PassageWriter(self._destination)
        # In the order of the last write, which is the only one of issues, whose reversals have one order, and of links
        # and facts, which wait for everything that they may refer to.
        kinds: Any = (MemoryItem, KnowledgeItem, ContextItem, GraphItem, IssueItem, LinkItem, FactItem)
        self._waiting: dict[Any, list[Any]] = {kind: [] for kind in kinds}
        self._sizes: Counter[Any] = Counter()
        self._characters: Counter[Any] = Counter()

    def add(self, item: Item, outcome: Outcome) -> None:
        """Add an item, and write the batch that it fills; skip an item that is stored already."""
        # Replacing an episode drops its mentions: what depends on it is compared after that.
        if not (self._is_wanted(item, outcome) or (self._is_replacing and isinstance(item, GraphItem))):
            return
        if isinstance(item, OwnerItem):
            self._owners.add(PassageMaker(self._destination).keep(item.owner, item.passages))
            return
        kind: Any = GraphItem if isinstance(item, GraphItem) else type(item)
        self._waiting[kind].append(item)
        contents = [record.content for record in item.records() if isinstance(record, MemoryRecord | Episode)]
        self._sizes[kind] += len(contents) or 1
        self._characters[kind] += sum(map(len, contents))
        limit = BATCH_CHARACTERS if kind is MemoryItem and self._reader is not None else BATCH_BYTES
        is_full = self._sizes[kind] >= BATCH or self._characters[kind] >= limit
        if is_full and kind not in (IssueItem, LinkItem, FactItem):
            self._write(kind)

    def flush(self) -> None:
        for kind in self._waiting:
            self._write(kind)
            if kind is MemoryItem:
                self._owners.flush()

    def _is_wanted(self, item: Item, outcome: Outcome) -> bool:
        """Return whether to write an item; keep the content of a memory that is skipped for its episodes."""
        if outcome == "conflict" and not self._is_replacing and isinstance(item, MemoryItem):
            self._skipped[item.key] = item.latest.record.content
        return outcome == "added" or (outcome == "conflict" and self._is_replacing)

    def _write(self, kind: Any) -> None:
        if kind is GraphItem and self._waiting[kind]:
            self._write(MemoryItem)  # episodes refer to them
        items, self._waiting[kind] = self._waiting[kind], []
        self._sizes[kind] = self._characters[kind] = 0
        writers = {MemoryItem: self._put_memories, IssueItem: self._put_issues, FactItem: self._put_facts}
        write: Any = writers.get(kind, self._put)
        batch_size = len(items) if kind is IssueItem else BATCH
        for begin in range(0, len(items), batch_size or 1):
            texts = Texts(self._destination)
            write(kind.prepared(items[begin : begin + batch_size], texts), texts)
            self._destination.after_batch()

    def _change(self) -> AbstractContextManager[MemoryChange]:
        return self._into.store.change_memories(self._into.namespace, made_by=self._destination.embedder.stamp)

    def _put(self, items: Sequence[ChangeItem], texts: Texts) -> None:
        with self._change() as change:
            stored = NamespaceReader(self._into.store, self._into.namespace, change)
            for source_item in items:
                item = source_item
                if isinstance(item, EpisodeItem):
                    # An episode of a memory refers to the version that has its content here, or has the content itself.
                    episode = item.episode
                    if episode.memory in self._skipped:
                        content = self._skipped[episode.memory]
                        episode = replace(episode, content=content, memory="", version=0, source="text")
                    else:
                        episode = replace(episode, version=self._versions_here.get(episode.memory, episode.version))
                    item = replace(item, episode=episode)
                previous = item.stored(stored)
                # What it refers to may be deleted since the survey.
                if self._is_wanted(item, item.compared(previous)) and all(stored.has(*need) for need in item.needs):
                    item.put(change, texts, previous)

    def _put_memories(self, items: Sequence[MemoryItem], texts: Texts) -> None:
        feed = self._reader
        live = [item.made[-1] for item in items if item.latest.expired_at is None]
        readings = None if feed is None else feed.read(live, self._destination)
        with self._change() as change:
            for item in items:
                current = change.find(item.key)
                if current is None:
                    item.put(change, texts, None)
                elif self._is_wanted(item, item.compared(replace(item, versions=(current,)))):
                    now = max(self._into.now, current.created_at)
                    stored = write_version(change, current, item.made[-1], now)
                    self._versions_here[item.key] = stored.record.version
                    if self._into.has_graph and self._into.feed is not None:
                        self._into.feed.let_go(change, item.key)
                    if item.latest.expired_at is not None:
                        change.expire(stored.number, stored.record, now)
                else:
                    continue
                if feed is not None and readings is not None:
                    feed.follow(change, [item.key], readings)
                    self.notices.update(readings.notices(item.latest.owner, item.latest.record))

    def _put_issues(self, items: Sequence[IssueItem], texts: Texts) -> None:
        with self._change() as change:
            ledger, stored = change.ledger, NamespaceReader(self._into.store, self._into.namespace, change)
            written = [item for item in items if self._is_wanted(item, item.compared(item.stored(stored)))]
            for item in written:
                item.put(change, texts, None)
                ledger.drop_reversal(item.id)
            undoing = [item.reversal for item in written if item.reversal is not None]
            numbers = [reversal.number for reversal in (*ledger.reversals(), *undoing)]
            is_free = len(set(numbers)) == len(numbers)
            for reversal in sorted(undoing, key=lambda reversal: reversal.number):
                ledger.put_reversal(reversal if is_free else replace(reversal, number=0))

    def _put_facts(self, items: Sequence[FactItem], texts: Texts) -> None:
        runtime = replace(self._into.graph(self._destination), texts=texts)
        with self._change() as change:
            stored = NamespaceReader(self._into.store, self._into.namespace, change)
            for item in items:
                if item.stored(stored) is None:
                    add_fact(change.graph, runtime, item.fact, item.types)


ON_CONFLICT: Final = ("refuse", "skip", "replace")
"""What an import does with an item that is stored with other content."""
MAX_NAMED: Final = 10
"""Maximum number of items that the message of a refused import names; a report names all."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of the items of one kind; `unchanged` were stored already, `skipped` are stored with other content."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do.

    Attributes:
        format: format of the source.
        owners: artifacts and documents.
        knowledge, contexts: of agents.
        issues: of the ledger.
        episodes, entities, relations: of the graph.
        conflicts: names of items that were stored with other content and were skipped or replaced.
        problems: items that were left out because they cannot be stored.
        notices: one sentence each, for people.
    """

    format: str
    memories: Counts
    links: Counts
    owners: Counts
    knowledge: Counts
    contexts: Counts
    issues: Counts
    episodes: Counts
    entities: Counts
    relations: Counts
    conflicts: tuple[str, ...]
    problems: tuple[Problem, ...]
    is_dry_run: bool
    seconds: float
    notices: tuple[str, ...] = ()


def import_items(
    source: Source,
    into: ImportRuntime,
    *,
    on_conflict: str = "refuse",
    skip_problems: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import all items of a source, or none; see `Engine.import_`.

    Args:
        on_conflict: one of `ON_CONFLICT`.
    """
    begun, is_replacing = time.perf_counter(), on_conflict == "replace"
    survey = _surveyed(source, NamespaceReader(into.store, into.namespace), skip_problems=skip_problems)
    if survey.conflicts and on_conflict == "refuse":
        raise UsageError(
            f"{_count_of(survey.conflicts)} {'is' if len(survey.conflicts) == 1 else 'are'} here with other content,"
            f" nothing was imported: {_first_names(survey.conflicts)}",
            remedy="keep what is here with on_conflict='skip', or replace it with on_conflict='replace'",
        )
    kinds = survey.secrets.items()
    notices = [f"what looks like a secret was replaced in {count:,} items: {kind}" for kind, count in kinds]
    if not dry_run:
        writer, total = Writer(into, is_replacing=is_replacing), len(survey.results)
        for number, (item, outcome) in enumerate(zip(source.items(), survey.results, strict=True)):
            if isinstance(item, Item) and outcome is not None:
                writer.add(item, outcome)
            if progress and number % 256 == 0:
                progress("Importing", number, total)
        writer.flush()
        notices += [f"{notice} ({count:,} of the memories)" for notice, count in writer.notices.items()]
        if progress:
            progress("Importing", total, total)

    def counts(counted: str) -> Counts:
        added, unchanged, conflicts = (survey.outcomes[counted, name] for name in ("added", "unchanged", "conflict"))
        return Counts(added, conflicts * is_replacing, unchanged, conflicts * (not is_replacing))

    return ImportReport(
        format=source.format,
        **{entry.name: counts(entry.name) for entry in fields(ImportReport) if entry.type == "Counts"},
        conflicts=tuple(survey.conflicts),
        problems=tuple(survey.problems),
        is_dry_run=dry_run,
        seconds=time.perf_counter() - begun,
        notices=(*notices, *survey.remarks),
    )


@dataclass(slots=True)
class _Survey:
    """The result of comparing every item with the others and with the store, before anything is written.

    Attributes:
        results: outcome of each item, in order; None for one that cannot be stored and for a notice.
        outcomes: number of items by entry of the report and outcome.
    """

    results: list[Outcome | None] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    secrets: Counter[str] = field(default_factory=Counter)


def _surveyed(source: Source, stored: NamespaceReader, *, skip_problems: bool) -> _Survey:
    survey, keys = _Survey(), set[tuple[str, ...]]()

    def survey_item(number: int, item: Item) -> None:
        error, outcome = None, None
        missing = next((need for need in item.needs if need not in keys and not stored.has(*need)), None)
        if not keys.isdisjoint(item.keys):
            remedy = "give each once, the versions of a memory one after the other"
            error = UsageError("it comes twice", remedy=remedy)
        elif missing is not None:
            hint = ", before this one" if isinstance(item, GraphItem) else ""
            error = UsageError(f"there is no {missing[0]} {missing[1]!r:.80}", remedy=f"import it too{hint}")
        else:
            try:
                outcome = item.compared(item.stored(stored))
            except UsageError as refused:
                error = refused
        if outcome is None:
            survey.problems.append(Problem(item.place, item.name, str(error)))
            return
        survey.results[number] = outcome
        keys.update(item.keys)
        survey.outcomes[item.counted, outcome] += 1
        if outcome == "conflict":
            survey.conflicts.append(f"{item.name:.200}")
        survey.secrets.update(set(item.secrets))

    links = list[tuple[int, LinkItem]]()
    for number, item in enumerate(source.items()):
        survey.results.append(None)
        if isinstance(item, Problem):
            survey.problems.append(item)
        elif isinstance(item, str):
            survey.remarks.append(item)
        elif isinstance(item, LinkItem):
            links.append((number, item))
        else:
            survey_item(number, item)
    # Links come last, when all memories are known.
    for number, link in links:
        survey_item(number, link)
    if survey.problems and not skip_problems:
        raise UsageError(
            f"{_count_of(survey.problems)} cannot be stored, nothing was imported: {_first_names(survey.problems)}",
            remedy="correct them, or import the others with skip_problems=True",
        )
    return survey


def _count_of(items: Sequence[object]) -> str:
    return f"{len(items):,} item{'' if len(items) == 1 else 's'}"


def _first_names(names: Sequence[object]) -> str:
    more = [f"and {len(names) - MAX_NAMED:,} more"] if len(names) > MAX_NAMED else []
    return "; ".join([*map(str, names[:MAX_NAMED]), *more])
