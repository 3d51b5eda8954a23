"""Import items into a store: validate all, then write what is new in batches; importing again changes nothing.

Items are compared again inside each transaction, since other processes may have written meanwhile.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.errors import UsageError
from commonplace.exchange.items import (
    ContextItem,
    EntityItem,
    EpisodeItem,
    FactItem,
    GraphItem,
    IssueItem,
    Item,
    KnowledgeItem,
    Known,
    LinkItem,
    MemoryItem,
    Outcome,
    OwnerItem,
    Problem,
    Remark,
    Source,
    is_said,
    knowledge_by_id,
)
from commonplace.graph.episodes import MemoryFeed, add_fact
from commonplace.graph.runtime import GraphRuntime, Texts, fact_text, names_text
from commonplace.ingest.passages import Destination, PassageMaker, PassageWriter
from commonplace.ingest.read import normalise
from commonplace.ledger.erase import rewrite
from commonplace.memory.admission import replaced
from commonplace.memory.content import BATCH, BATCH_CHARACTERS, writes_of
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.types import MemoryWrite, Progress
from commonplace.types.knowledge import KnowledgeRecord, KnowledgeWrite

BATCH_BYTES: Final = 4_194_304


@dataclass(frozen=True, slots=True)
class ImportRuntime:
    """Where items go.

    Attributes:
        destination: makes passages anew; asked for before the first write.
        now: seconds since the epoch.
        ground: returns what the graph stands on.
        feed: lets the graph follow the memories.
        has_graph: what is imported brings along what its memories say, as our own exports do.
    """

    store: Store
    namespace: str
    destination: Callable[[], Destination]
    now: float
    ground: Callable[[Destination], GraphRuntime]
    feed: MemoryFeed | None = None
    has_graph: bool = False

    @property
    def reader(self) -> MemoryFeed | None:
        """What reads the memories, where that is to be done."""
        return None if self.has_graph else self.feed


class Writer:
    """Collects items by kind and writes those of which a batch is full; call `flush` at the end.

    Attributes:
        notices: what was said of memories that say more than the graph takes, by how many it was said of.
    """

    def __init__(self, into: ImportRuntime, *, is_replacing: bool) -> None:
        self._into = into
        self._is_replacing = is_replacing
        self._skipped: dict[str, str] = {}
        self._versions_here: dict[str, int] = {}
        self.notices: Counter[str] = Counter()
        self._destination = into.destination()
        self._owners = PassageWriter(self._destination)
        # In the order in which they are written at the end: links and facts last, when what they are about is there.
        writes: dict[type, Callable[[list[Any]], None]] = {
            MemoryItem: self._write_memories,
            KnowledgeItem: self._write_knowledge,
            ContextItem: self._write_contexts,
            GraphItem: self._write_graph,
            IssueItem: self._write_issues,
            LinkItem: self._write_links,
            FactItem: self._write_facts,
        }
        self._batches = {kind: _Batch(write) for kind, write in writes.items()}
        self._batches[MemoryItem].max_characters = BATCH_BYTES if into.reader is None else BATCH_CHARACTERS
        # What undoes changes has one order, and links and facts wait for all that they may be about.
        for kind in (IssueItem, LinkItem, FactItem):
            self._batches[kind].is_held = True

    def add(self, item: Item, outcome: Outcome) -> None:
        """Take an item, and write the batch that it fills; one that is there already is passed over."""
        # An episode that is replaced takes its mentions along: what hangs on it is compared when that is done.
        if not (self._is_wanted(outcome) or (self._is_replacing and isinstance(item, GraphItem))):
            self._note_skipped(item, outcome)
            return
        if isinstance(item, OwnerItem):
            self._owners.add(PassageMaker(self._destination).keep(item.record, item.chunks))
        else:
            kind = GraphItem if isinstance(item, GraphItem) else type(item)
            self._batches[kind].add(item)

    def flush(self) -> None:
        """Write what is pending."""
        for kind, batch in self._batches.items():
            batch.flush()
            if kind is MemoryItem:
                self._owners.flush()

    def _is_wanted(self, outcome: Outcome) -> bool:
        return outcome == "added" or (outcome == "conflict" and self._is_replacing)

    def _note_skipped(self, item: Item, outcome: Outcome) -> None:
        if outcome == "conflict" and isinstance(item, MemoryItem):
            self._skipped[item.id] = item.latest.record.content

    def _change(self, *, vectors: bool = False) -> AbstractContextManager[MemoryChange]:
        made_by = self._destination.embedder.stamp if vectors else None
        return self._into.store.change_memories(self._into.namespace, made_by=made_by)

    def _write_links(self, items: list[LinkItem]) -> None:
        for begin in range(0, len(items), BATCH):
            with self._change() as change:
                for item in items[begin : begin + BATCH]:
                    if all(change.find(id_) is not None for _, id_ in item.needs):
                        change.link(item.record)

    def _write_facts(self, items: list[FactItem]) -> None:
        texts, ground = Texts(self._destination), self._into.ground(self._destination)
        for begin in range(0, len(items), BATCH):
            batch = [item.record for item in items[begin : begin + BATCH]]
            names = {name for fact in batch for name in (fact.source, fact.target)}
            texts.prepare([*sorted(names), *(fact_text(fact.fact, fact.type) for fact in batch)])
            with self._change(vectors=True) as change:
                for fact in batch:
                    if not is_said(change.graph, fact):
                        add_fact(change.graph, ground, texts, fact, self._into.now)
            self._destination.after_batch()

    def _write_memories(self, items: list[MemoryItem]) -> None:
        versions = [(version.owner, version.record) for item in items for version in item.versions]
        writes = (replace(write, is_placed=True) for write in writes_of(self._destination, versions))
        made = [(item, [next(writes) for _ in item.versions]) for item in items]
        feed = self._into.reader
        live = [its[-1] for item, its in made if item.latest.expired_at is None]
        readings = None if feed is None else feed.read(live, self._destination)
        with self._change(vectors=True) as change:
            for item, its_writes in made:
                is_written = self._write_memory(change, item, its_writes)
                if is_written and feed is not None and readings is not None:
                    feed.follow(change, [item.id], readings)
                    self.notices.update(readings.notices(its_writes[-1].owner, its_writes[-1].record))
        self._destination.after_batch()

    def _write_memory(self, change: MemoryChange, item: MemoryItem, writes: list[MemoryWrite]) -> bool:
        """Write what a memory lacks here, and tell whether there was something to write."""
        known = change.find(item.id)
        outcome = item.compared(known)
        if known is None:
            for version, write in zip(item.versions, writes, strict=True):
                change.add(write, created_at=version.created_at, expired_at=version.expired_at)
        elif self._is_wanted(outcome):
            now = max(self._into.now, known.created_at)
            stored = replaced(change, known, writes[-1], now)
            self._versions_here[item.id] = stored.record.version
            if self._into.has_graph and self._into.feed is not None:
                self._into.feed.let_go(change, item.id)
            if item.latest.expired_at is not None:
                change.expire(stored.number, stored.record, now)
        else:
            self._note_skipped(item, outcome)
            return False
        return True

    def _write_knowledge(self, items: list[KnowledgeItem]) -> None:
        maker = PassageMaker(self._destination)
        made = maker.complete([maker.prepare(item.record, normalise(item.map.content), "text") for item in items])
        embedder = str(self._destination.embedder.stamp.of("knowledge"))
        with self._change(vectors=True) as change:
            stored = knowledge_by_id(change.knowledge)
            for item, write in zip(items, made, strict=True):
                before = stored.get(item.id)
                if not self._is_wanted(item.compared(before)):
                    continue
                if before is not None:
                    change.knowledge.erase([before.number])
                record = KnowledgeRecord(item.agent, item.map.content, item.map.metadata, item.map.digest, embedder)
                change.knowledge.put(
                    KnowledgeWrite(write.owner, write.passages, record),
                    created_at=item.created_at,
                    updated_at=item.updated_at,
                    deleted_at=item.deleted_at,
                )
        self._destination.after_batch()

    def _write_contexts(self, items: list[ContextItem]) -> None:
        with self._change() as change:
            for item in items:
                if self._is_wanted(item.compared(change.knowledge.context(item.id))):
                    change.knowledge.put_context(item.record)

    def _write_issues(self, items: list[IssueItem]) -> None:
        """Write issues in the place of those that are here; what undoes their changes keeps its order."""
        with self._change() as change:
            ledger = change.ledger
            written = [item for item in items if self._is_wanted(item.compared(item.stored_in(ledger)))]
            for item in written:
                rewrite(ledger, item.id, item.record, item.events)
                ledger.drop_reversal(item.id)
            undoing = [item.reversal for item in written if item.reversal is not None]
            numbers = [reversal.number for reversal in (*ledger.reversals(), *undoing)]
            is_free = len(set(numbers)) == len(numbers)
            for reversal in sorted(undoing, key=lambda reversal: reversal.number):
                ledger.put_reversal(reversal if is_free else replace(reversal, number=0))

    def _write_graph(self, items: list[GraphItem]) -> None:
        """Write parts of the graph in their order; what they name came before them."""
        self._batches[MemoryItem].flush()
        texts = Texts(self._destination)
        texts.prepare(map(_text_of, items))
        with self._change(vectors=True) as change:
            for item in map(self._as_here, items):
                # What it names may be gone since it was looked at.
                is_wanted = self._is_wanted(item.compared(item.of(change.graph, item.id)))
                if is_wanted and not item.missing(change.graph):
                    item.put(change.graph, texts)
        self._destination.after_batch()

    def _as_here(self, item: GraphItem) -> GraphItem:
        """Let an episode that a memory is speak of the version that holds its words here, or hold them itself."""
        if not isinstance(item, EpisodeItem):
            return item
        episode = item.record
        if episode.memory in self._skipped:
            words = self._skipped[episode.memory]
            return replace(item, record=replace(episode, content=words, memory="", version=0, source="text"))
        version = self._versions_here.get(episode.memory, episode.version)
        return replace(item, record=replace(episode, version=version))


@dataclass(slots=True)
class _Batch:
    """Items of one kind that wait to be written.

    Attributes:
        is_held: it is written only at the end.
    """

    write: Callable[[list[Any]], None]
    max_characters: int = BATCH_BYTES
    is_held: bool = False
    items: list[Item] = field(default_factory=list)
    size: int = 0
    characters: int = 0

    def add(self, item: Item) -> None:
        """Take an item, and write all where they fill a batch."""
        self.items.append(item)
        versions = item.versions if isinstance(item, MemoryItem) else ()
        self.size += len(versions) or 1
        self.characters += sum(len(version.record.content) for version in versions)
        self.characters += len(item.record.content) if isinstance(item, EpisodeItem) else 0
        if not self.is_held and (self.size >= BATCH or self.characters >= self.max_characters):
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        items, self.items, self.size, self.characters = self.items, [], 0, 0
        if items:
            self.write(items)


def _text_of(item: GraphItem) -> str:
    source = item.text
    if source is None:
        return ""
    return names_text(source[0].name, [each.name for each in source[1]]) if isinstance(source, tuple) else source.fact


OnConflict = Literal["refuse", "skip", "replace"]
ON_CONFLICT: Final[tuple[OnConflict, ...]] = ("refuse", "skip", "replace")

MAX_NAMED: Final = 10
"""A message that refuses an import names so many items, a report all."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What an import does with what it does not simply add.

    Attributes:
        on_conflict: with an item that is there with other content.
        skip_problems: leave out what cannot be kept, in place of refusing all.
        is_dry_run: stop before the first write.
    """

    on_conflict: OnConflict = "refuse"
    skip_problems: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the items of one sort; `unchanged` were there already, `skipped` with other content."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do.

    Attributes:
        format: of what was imported.
        owners: artifacts and documents.
        knowledge, contexts: of agents.
        issues: of the ledger.
        episodes, entities, relations: of the graph.
        conflicts: names of what was there with other content, and was skipped or replaced.
        problems: what was left out because it cannot be kept.
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
    source: Source, into: ImportRuntime, rules: Rules, *, progress: Progress | None = None
) -> ImportReport:
    """Take in everything that a source holds, or nothing of it; see `Engine.import_`.

    Raises:
        UsageError: something cannot be kept, or is there with other content, and the rules do not say to go on.
            Nothing was written.
    """
    begun = time.perf_counter()
    survey = _surveyed(source, Known(into.store, into.namespace), rules)
    told: list[str] = []
    if not rules.is_dry_run:
        writer = Writer(into, is_replacing=rules.on_conflict == "replace")
        for number, (item, outcome) in enumerate(zip(source.items(), survey.found, strict=True)):
            if isinstance(item, Item) and outcome is not None:
                writer.add(item, outcome)
            if progress and number % 256 == 0:
                progress("Importing", number, len(survey.found))
        writer.flush()
        told = [f"{notice} ({count:,} of the memories)" for notice, count in writer.notices.items()]
        if progress:
            progress("Importing", len(survey.found), len(survey.found))
    return _report(source.format, survey, rules, time.perf_counter() - begun, told)


def refuse_unfit(source: Source, rules: Rules) -> None:
    """Refuse what no store takes in, before one is made for it.

    Raises:
        UsageError: something cannot be kept, and the rules do not say to go on.
    """
    _surveyed(source, Known(Store.in_memory(), ""), rules)


@dataclass(slots=True)
class _Survey:
    """Looks at every item, against the others and against the store, and writes nothing.

    Attributes:
        found: what becomes of each item, in their order; None for one that cannot be kept.
        outcomes: by the entry of the report and outcome.
        namesakes: how many new entities have a name that another one has here.
    """

    known: Known
    found: list[Outcome | None] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    outcomes: Counter[tuple[str, Outcome]] = field(default_factory=Counter)
    secrets: Counter[str] = field(default_factory=Counter)
    namesakes: int = 0
    _names: set[tuple[str, ...]] = field(default_factory=set)

    def look_at(self, items: Iterator[Item | Problem | Remark]) -> None:
        """Look at all items; links come last, when it is known which memories there are."""
        links: list[tuple[int, LinkItem]] = []
        for number, item in enumerate(items):
            self.found.append(None)
            if isinstance(item, Problem):
                self.problems.append(item)
            elif isinstance(item, Remark):
                self.remarks.append(item)
            elif isinstance(item, LinkItem):
                links.append((number, item))
            else:
                self._take(number, item)
        for number, link in links:
            self._take(number, link)

    def _take(self, number: int, item: Item) -> None:
        try:
            self._refuse_alone(item)
            outcome = item.outcome(self.known)
        except UsageError as error:
            self.problems.append(Problem(item.place, item.name, str(error)))
            return
        self.found[number] = outcome
        self._names.update(item.keys)
        self.outcomes[item.counted, outcome] += 1
        if isinstance(item, EntityItem) and outcome == "added":
            self.namesakes += self.known.has_namesake(item.record)
        if outcome == "conflict":
            self.conflicts.append(item.name)
        self.secrets.update(set(item.secrets))

    def _refuse_alone(self, item: Item) -> None:
        """Refuse an item that comes twice, or that lacks what it needs of the others."""
        if not self._names.isdisjoint(item.keys):
            raise UsageError("it comes twice", remedy="give each once, the versions of a memory one after the other")
        for kind, id_ in item.needs:
            if (kind, id_) not in self._names and not self.known.has(kind, id_):
                before = ", before this one" if isinstance(item, GraphItem) else ""
                raise UsageError(f"there is no {kind} {id_!r:.80}", remedy=f"import it too{before}")


def _surveyed(source: Source, known: Known, rules: Rules) -> _Survey:
    survey = _Survey(known)
    survey.look_at(source.items())
    if survey.problems and not rules.skip_problems:
        raise UsageError(
            f"{_items(survey.problems)} cannot be kept, nothing was imported: {_some(survey.problems)}",
            remedy="correct them, or import the others with skip_problems=True (--skip-problems)",
        )
    if survey.conflicts and rules.on_conflict == "refuse":
        raise UsageError(
            f"{_items(survey.conflicts)} {'is' if len(survey.conflicts) == 1 else 'are'} here with other content,"
            f" nothing was imported: {_some(survey.conflicts)}",
            remedy="keep what is here with on_conflict='skip' (--on-conflict skip), or replace it with 'replace'",
        )
    return survey


def _items(counted: Sequence[object]) -> str:
    return f"{len(counted):,} item{'' if len(counted) == 1 else 's'}"


def _some(named: Sequence[object]) -> str:
    more = [f"and {len(named) - MAX_NAMED:,} more"] if len(named) > MAX_NAMED else []
    return "; ".join([*map(str, named[:MAX_NAMED]), *more])


def _report(format_: str, survey: _Survey, rules: Rules, seconds: float, told: Sequence[str]) -> ImportReport:
    def counts(counted: str) -> Counts:
        added, unchanged, conflicts = (survey.outcomes[counted, each] for each in ("added", "unchanged", "conflict"))
        is_replacing = rules.on_conflict == "replace"
        return Counts(added, conflicts * is_replacing, unchanged, conflicts * (not is_replacing))

    notices = [
        f"what looks like a secret was replaced in {count:,} items: {kind}" for kind, count in survey.secrets.items()
    ]
    if survey.namesakes:
        notices.append(
            f"{survey.namesakes:,} new entities have a name that another one has here; where both are one,"
            " `commonplace graph merge` joins them"
        )
    return ImportReport(
        format=format_,
        **{each.name: counts(each.name) for each in fields(ImportReport) if each.type == "Counts"},
        conflicts=tuple(survey.conflicts),
        problems=tuple(survey.problems),
        is_dry_run=rules.is_dry_run,
        seconds=seconds,
        notices=(*notices, *told, *map(str, survey.remarks)),
    )
