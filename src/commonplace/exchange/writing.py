"""Write items to a store, some hundreds in one transaction, so that what a crash leaves can be completed.

It compares again inside each transaction: others write meanwhile. What it passes over is as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.exchange.comparing import Known, outcome_of
from commonplace.exchange.graph_comparing import Outcome, is_said, text_of, write
from commonplace.exchange.graph_items import EpisodeItem, GraphItem
from commonplace.exchange.items import FactItem, Item, LinkItem, MemoryItem, OwnerItem
from commonplace.exchange.knowledge_items import (
    ContextItem,
    KnowledgeItem,
    items_by_id,
    outcome_of_context,
    outcome_of_item,
    put_item,
    writes_of_items,
)
from commonplace.exchange.ledger_items import IssueItem, put_issues
from commonplace.graph.giving import add_fact
from commonplace.graph.ground import Texts, fact_text, names_text
from commonplace.ingest.passages import PassageWriter, PreparedOwner, passage_text
from commonplace.memories.admission import replaced
from commonplace.memories.making import BATCH_CHARACTERS, writes_of
from commonplace.models.contract import TokenizedText

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground
    from commonplace.graph.remembering import Feed
    from commonplace.ingest.passages import Destination
    from commonplace.store.contract import Store
    from commonplace.store.memory_contract import MemoryChange
    from commonplace.types import MemoryWrite

BATCH = 256
"""A batch holds the store's write lock while it is written: so many versions take some hundredths of a second."""
BATCH_BYTES = 4_194_304


@dataclass(frozen=True, slots=True)
class Into:
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
    ground: Callable[[Destination], Ground]
    feed: Feed | None = None
    has_graph: bool = False

    @property
    def reader(self) -> Feed | None:
        """What reads the memories, where that is to be done."""
        return None if self.has_graph else self.feed


class Writer:
    """Collects items and writes them when a batch is full; call `flush` at the end.

    Attributes:
        notices: what was said of memories that say more than the graph takes, by how many it was said of.
    """

    def __init__(self, into: Into, *, is_replacing: bool) -> None:
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
        outcome = outcome_of(item, known)
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
