"""Import items into a store: validate all, then write what is new in batches; importing again changes nothing.

Items are compared again inside each transaction, since other processes may have written meanwhile.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from commonplace.errors import UsageError
from commonplace.exchange.records import (
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
    RelationItem,
    Remark,
    Source,
    is_said,
    item_outcome,
    items_by_id,
    needs,
    outcome_of_context,
    outcome_of_item,
    put_issues,
    put_item,
    text_of,
    write,
    writes_of_items,
)
from commonplace.graph.episodes import MemoryFeed, add_fact
from commonplace.graph.runtime import GraphRuntime, Texts, fact_text, names_text
from commonplace.ingest.passages import Destination, PassageWriter, PreparedOwner, passage_text
from commonplace.memory.admission import replaced
from commonplace.memory.content import BATCH_CHARACTERS, writes_of
from commonplace.models.contract import TokenizedText
from commonplace.store.contract import MemoryChange, Store
from commonplace.store.store import SqliteStore
from commonplace.types import MemoryWrite, Progress

BATCH = 256
"""A batch holds the store's write lock while it is written: so many versions take some hundredths of a second."""
BATCH_BYTES = 4_194_304


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
    """Collects items and writes them when a batch is full; call `flush` at the end.

    Attributes:
        notices: what was said of memories that say more than the graph takes, by how many it was said of.
    """

    def __init__(self, into: ImportRuntime, *, is_replacing: bool) -> None:
        self._into = into
        self._is_replacing = is_replacing
        self._known = Known(into.store, into.namespace)
        self._memories: list[MemoryItem] = []
        self._versions = self._bytes = 0
        self._links: list[LinkItem] = []
        self._facts: list[FactItem] = []
        self._knowledge: list[KnowledgeItem] = []
        self._issues: list[IssueItem] = []
        self._graph: list[GraphItem] = []
        self._graph_characters = 0
        self._skipped: dict[str, str] = {}
        self._versions_here: dict[str, int] = {}
        self.notices: Counter[str] = Counter()
        self._batch_characters = BATCH_BYTES if into.reader is None else BATCH_CHARACTERS
        self._destination = into.destination()
        self._owners = PassageWriter(self._destination)

    def add(self, item: Item) -> None:
        """Take an item, and write the batch that it fills; one that is there already is passed over."""
        # An episode that is replaced takes its mentions along: what hangs on it is compared when that is done.
        if not (self._is_replacing and isinstance(item, GraphItem)):
            outcome = self._known.outcome(item)
            if outcome == "unchanged" or (outcome == "conflict" and not self._is_replacing):
                self._note_skipped(item, outcome)
                return
        if isinstance(item, LinkItem):
            self._links.append(item)
        elif isinstance(item, FactItem):
            self._facts.append(item)
        elif isinstance(item, OwnerItem):
            self._owners.add(self._prepared(item))
        elif isinstance(item, MemoryItem):
            self._add_memory(item)
        elif isinstance(item, KnowledgeItem):
            self._add_knowledge(item)
        elif isinstance(item, ContextItem):
            self._write_context(item)
        elif isinstance(item, IssueItem):
            self._issues.append(item)
        else:
            self._add_part(item)

    def flush(self) -> None:
        """Write what is pending: links and facts last, when what they are about is there."""
        self._write_memories()
        self._owners.flush()
        self._write_knowledge()
        self._write_graph()
        self._write_issues()
        for begin in range(0, len(self._links), BATCH):
            with self._into.store.change_memories(self._into.namespace) as change:
                for item in self._links[begin : begin + BATCH]:
                    if change.find(item.link.source) is not None and change.find(item.link.target) is not None:
                        change.link(item.link)
        self._write_facts()

    def _write_facts(self) -> None:
        texts = Texts(self._destination)
        ground = self._into.ground(self._destination)
        for begin in range(0, len(self._facts), BATCH):
            batch = [item.fact for item in self._facts[begin : begin + BATCH]]
            names = {name for fact in batch for name in (fact.source, fact.target)}
            texts.prepare([*sorted(names), *(fact_text(fact.fact, fact.type) for fact in batch)])
            with self._changing() as change:
                for fact in batch:
                    if not is_said(change.graph, fact):
                        add_fact(change.graph, ground, texts, fact, self._into.now)
            self._destination.after_batch()

    def _add_memory(self, item: MemoryItem) -> None:
        self._memories.append(item)
        self._versions += len(item.versions)
        self._bytes += sum(len(version.record.content) for version in item.versions)
        if self._versions >= BATCH or self._bytes >= self._batch_characters:
            self._write_memories()

    def _write_memories(self) -> None:
        if not self._memories:
            return
        versions = [(version.owner, version.record) for item in self._memories for version in item.versions]
        writes = (replace(write, is_placed=True) for write in writes_of(self._destination, versions))
        made = [(item, [next(writes) for _ in item.versions]) for item in self._memories]
        feed = self._into.reader
        live = [its[-1] for item, its in made if item.latest.expired_at is None]
        readings = None if feed is None else feed.read(live, self._destination)
        with self._changing() as change:
            for item, its_writes in made:
                is_written = self._write_memory(change, item, its_writes)
                if is_written and feed is not None and readings is not None:
                    feed.follow(change, [item.id], readings)
                    self.notices.update(readings.notices(its_writes[-1].owner, its_writes[-1].record))
        self._destination.after_batch()
        self._memories, self._versions, self._bytes = [], 0, 0

    def _changing(self) -> AbstractContextManager[MemoryChange]:
        """Begin a change that writes vectors."""
        made_by = self._destination.embedder.stamp
        return self._into.store.change_memories(self._into.namespace, made_by=made_by)

    def _write_memory(self, change: MemoryChange, item: MemoryItem, writes: list[MemoryWrite]) -> bool:
        """Write what a memory lacks here, and tell whether there was something to write."""
        known = change.find(item.id)
        outcome = item_outcome(item, known)
        if known is None:
            for version, write in zip(item.versions, writes, strict=True):
                change.add(write, created_at=version.created_at, expired_at=version.expired_at)
        elif outcome == "conflict" and self._is_replacing:
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

    def _note_skipped(self, item: Item, outcome: Outcome) -> None:
        if outcome == "conflict" and isinstance(item, MemoryItem):
            self._skipped[item.id] = item.latest.record.content

    def _add_knowledge(self, item: KnowledgeItem) -> None:
        self._knowledge.append(item)
        if len(self._knowledge) >= BATCH:
            self._write_knowledge()

    def _write_knowledge(self) -> None:
        if not self._knowledge:
            return
        writes = writes_of_items(self._destination, self._knowledge)
        with self._changing() as change:
            stored = items_by_id(change.knowledge)
            for item, made in zip(self._knowledge, writes, strict=True):
                known = stored.get(item.id)
                outcome = outcome_of_item(item, known)
                if outcome == "added" or (outcome == "conflict" and self._is_replacing):
                    put_item(change.knowledge, item, made, known)
        self._destination.after_batch()
        self._knowledge = []

    def _write_context(self, item: ContextItem) -> None:
        with self._into.store.change_memories(self._into.namespace) as change:
            outcome = outcome_of_context(item, change.knowledge.context(item.context.name))
            if outcome == "added" or (outcome == "conflict" and self._is_replacing):
                change.knowledge.put_context(item.context)

    def _write_issues(self) -> None:
        """Write all issues at once: what undoes their changes has one order."""
        if self._issues:
            with self._into.store.change_memories(self._into.namespace) as change:
                put_issues(change.ledger, self._issues, is_replacing=self._is_replacing)
            self._issues = []

    def _add_part(self, item: GraphItem) -> None:
        self._graph.append(item)
        self._graph_characters += len(item.episode.content) if isinstance(item, EpisodeItem) else 0
        if len(self._graph) >= BATCH or self._graph_characters >= BATCH_BYTES:
            self._write_graph()

    def _write_graph(self) -> None:
        """Write parts of the graph in their order; what they name came before them."""
        if not self._graph:
            return
        self._write_memories()
        texts = Texts(self._destination)
        texts.prepare(map(_text_of, self._graph))
        with self._changing() as change:
            for item in self._graph:
                write(change.graph, self._as_here(item), texts, is_replacing=self._is_replacing)
        self._destination.after_batch()
        self._graph, self._graph_characters = [], 0

    def _as_here(self, item: GraphItem) -> GraphItem:
        """Let an episode that a memory is speak of the version that holds its words here, or hold them itself."""
        if not isinstance(item, EpisodeItem):
            return item
        episode = item.episode
        if episode.memory in self._skipped:
            words = self._skipped[episode.memory]
            return replace(item, episode=replace(episode, content=words, memory="", version=0, source="text"))
        version = self._versions_here.get(episode.memory, episode.version)
        return replace(item, episode=replace(episode, version=version))

    def _prepared(self, item: OwnerItem) -> PreparedOwner:
        """Return an owner that keeps the passages it was cut into."""
        embedded = [passage_text(item.owner.title, chunk.heading, chunk.text) for chunk in item.chunks]
        texts = tuple(TokenizedText(text, self._destination.tokenize(text)) for text in embedded)
        return PreparedOwner(item.owner, item.chunks, texts, sum(len(text) for text in embedded))


def _text_of(item: GraphItem) -> str:
    source = text_of(item)
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
    """What an import did, or in a dry run would do.

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
        for number, item in enumerate(source.items()):
            if isinstance(item, Item) and number not in survey.left_out:
                writer.add(item)
            if progress and number % 256 == 0:
                progress("Importing", number, survey.items)
        writer.flush()
        told = [f"{notice} ({count:,} of the memories)" for notice, count in writer.notices.items()]
        if progress:
            progress("Importing", survey.items, survey.items)
    return _report(source.format, survey, rules, time.perf_counter() - begun, told)


def refuse_unfit(source: Source, rules: Rules) -> None:
    """Refuse what no store takes in, before one is made for it.

    Raises:
        UsageError: something cannot be kept, and the rules do not say to go on.
    """
    _surveyed(source, Known(SqliteStore.in_memory(), ""), rules)


@dataclass(slots=True)
class _Survey:
    """Looks at every item, against the others and against the store, and writes nothing.

    Attributes:
        left_out: numbers of the items, in their order, that cannot be kept.
        outcomes: by sort of item and outcome.
        namesakes: how many new entities have a name that another one has here.
    """

    known: Known
    items: int = 0
    problems: list[Problem] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    outcomes: Counter[tuple[type[Item], Outcome]] = field(default_factory=Counter)
    secrets: Counter[str] = field(default_factory=Counter)
    namesakes: int = 0
    _names: set[tuple[str, ...]] = field(default_factory=set)

    def look_at(self, items: Iterator[Item | Problem | Remark]) -> None:
        """Look at all items; links come last, when it is known which memories there are."""
        links: list[tuple[int, LinkItem]] = []
        for number, item in enumerate(items):
            self.items += 1
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
            outcome = self.known.outcome(item)
        except UsageError as error:
            self.left_out.add(number)
            self.problems.append(Problem(item.place, name_of(item), str(error)))
            return
        self._names.update(_keys(item))
        self.outcomes[type(item), outcome] += 1
        if isinstance(item, EntityItem) and outcome == "added":
            self.namesakes += self.known.has_namesake(item.entity)
        if outcome == "conflict":
            self.conflicts.append(name_of(item))
        self.secrets.update(set(_secrets(item)))

    def _refuse_alone(self, item: Item) -> None:
        """Refuse an item that comes twice, or that lacks what it needs of the others."""
        if not self._names.isdisjoint(_keys(item)):
            raise UsageError("it comes twice", remedy="give each once, the versions of a memory one after the other")
        if isinstance(item, LinkItem):
            for end in (item.link.source, item.link.target):
                if ("memory", end) not in self._names and not self.known.has_memory(end):
                    raise UsageError(f"there is no memory {end!r:.80}", remedy="import it too")
        elif isinstance(item, GraphItem):
            entities, episodes = needs(item)
            self._refuse_missing("entity", entities, self.known.has_entity)
            self._refuse_missing("episode", episodes, self.known.has_episode)

    def _refuse_missing(self, kind: str, ids: Sequence[str], is_here: Callable[[str], bool]) -> None:
        for id_ in ids:
            if (kind, id_) not in self._names and not is_here(id_):
                raise UsageError(f"there is no {kind} {id_!r:.80}", remedy="import it too, before this one")


def _surveyed(source: Source, known: Known, rules: Rules) -> _Survey:
    survey = _Survey(known)
    survey.look_at(source.items())
    _refuse(survey, rules)
    return survey


def name_of(item: Item) -> str:
    """Return what an item is called in messages."""
    if isinstance(item, LinkItem):
        return f"link from {item.link.source!r:.80} to {item.link.target!r:.80} ({item.link.type!r:.80})"
    if isinstance(item, GraphItem | FactItem):
        return "{} {!r:.80}".format(*_key_of_part(item))
    if isinstance(item, KnowledgeItem):
        return f"knowledge {item.id!r:.80} of agent {item.agent!r:.80}"
    if isinstance(item, ContextItem):
        return f"the context of agent {item.context.name!r:.80}"
    if isinstance(item, IssueItem):
        return f"issue {item.id!r:.80}"
    owner = item.owner if isinstance(item, OwnerItem) else item.latest.owner
    return f"{owner.kind} {owner.id!r:.80}"


def _keys(item: Item) -> list[tuple[str, ...]]:
    """Return what no two items of an import may have in common."""
    if isinstance(item, LinkItem):
        return [("link", item.link.source, item.link.target, item.link.type)]
    if isinstance(item, MemoryItem):
        return [("memory", item.id)]
    if isinstance(item, GraphItem | FactItem):
        return [_key_of_part(item)]
    if isinstance(item, KnowledgeItem):
        return [("knowledge", item.id)]
    if isinstance(item, ContextItem | IssueItem):
        return [("issue", item.id) if isinstance(item, IssueItem) else ("context", item.context.name)]
    owner = item.owner
    return [(owner.kind, owner.id), *([("path", owner.kind, owner.path)] if owner.path else [])]


def _key_of_part(item: GraphItem | FactItem) -> tuple[str, str]:
    if isinstance(item, FactItem):
        return "fact", item.fact.fact
    if isinstance(item, EpisodeItem):
        return "episode", item.episode.id
    return ("entity", item.entity.id) if isinstance(item, EntityItem) else ("relation", item.relation.id)


def _secrets(item: Item) -> Sequence[str]:
    if isinstance(item, MemoryItem):
        return [kind for version in item.versions for kind in version.secrets]
    return () if isinstance(item, LinkItem) else item.secrets


def _refuse(survey: _Survey, rules: Rules) -> None:
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


def _items(counted: Sequence[object]) -> str:
    return f"{len(counted):,} item{'' if len(counted) == 1 else 's'}"


def _some(named: Sequence[object]) -> str:
    more = [f"and {len(named) - MAX_NAMED:,} more"] if len(named) > MAX_NAMED else []
    return "; ".join([*map(str, named[:MAX_NAMED]), *more])


def _report(format_: str, survey: _Survey, rules: Rules, seconds: float, told: Sequence[str]) -> ImportReport:
    def counts(*sorts: type[Item]) -> Counts:
        found = {outcome: sum(survey.outcomes[sort, outcome] for sort in sorts) for outcome in ("added", "unchanged")}
        conflicts = sum(survey.outcomes[sort, "conflict"] for sort in sorts)
        is_replacing = rules.on_conflict == "replace"
        return Counts(**found, replaced=conflicts * is_replacing, skipped=conflicts * (not is_replacing))

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
        memories=counts(MemoryItem),
        links=counts(LinkItem),
        owners=counts(OwnerItem),
        knowledge=counts(KnowledgeItem),
        contexts=counts(ContextItem),
        issues=counts(IssueItem),
        episodes=counts(EpisodeItem),
        entities=counts(EntityItem),
        relations=counts(RelationItem, FactItem),
        conflicts=tuple(survey.conflicts),
        problems=tuple(survey.problems),
        is_dry_run=rules.is_dry_run,
        seconds=seconds,
        notices=(*notices, *told, *map(str, survey.remarks)),
    )
