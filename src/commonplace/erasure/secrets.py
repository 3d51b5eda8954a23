"""Find stored rows that hold secrets and rewrite them with placeholders.

A memory is rewritten with all its versions, other owners passage by passage; ids, times and uses stay. Secrets in
identifiers (an id, a session, a path) are only reported, since renaming would make it another item.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from commonplace.erasure.receipt import BACKUP, RECEIPT
from commonplace.erasure.secret_records import (
    NOTHING,
    Cleaner,
    GraphSecrets,
    KnowledgeSecrets,
    Known,
    LedgerSecrets,
    move_places,
)
from commonplace.graph.redact import replaced
from commonplace.ingest.passages import Destination, PassageMaker, PreparedOwner, passage_text
from commonplace.memory.content import writes_of
from commonplace.models.contract import TokenizedText
from commonplace.store.contract import Note, Store
from commonplace.store.graph_contract import namespace_of, texts_of
from commonplace.types import GRAPH_KINDS, Filter, Link, Owner, Selection, StoredMemory

_NUMBERS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Holder:
    """Something that holds secrets.

    Attributes:
        where: how people name it, secrets left out.
        kinds: how many different secrets of each kind it holds.
        namespace: of a memory; "" for anything else.
        mend: writes it anew without them; None where that is done elsewhere.
        is_name: they are a part of its name, which nobody but its owner can change.
        is_file: it was taken from a file, which still has them.
    """

    where: str
    kinds: Mapping[str, int]
    namespace: str = ""
    mend: Callable[[], None] | None = None
    is_name: bool = False
    is_file: bool = False


@dataclass(slots=True)
class Found:
    """What was found so far.

    Attributes:
        secrets: the kind of each.
        parts: what passages have of secrets that go from one to the next.
        named: secrets in names.
    """

    holders: list[Holder] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)

    def add(self, cleaner: Cleaner, holder: Holder) -> None:
        """Take in what a cleaner found in something; nothing if it found nothing."""
        if cleaner.kinds:
            self.holders.append(replace(holder, kinds=cleaner.counts()))
            if holder.is_name:
                self.named |= cleaner.kinds.keys()
            else:
                self.secrets |= cleaner.kinds
                self.parts |= cleaner.parts


class Stored:
    """All that a store holds, in every namespace.

    Args:
        destination: what makes passages; asked for when something is written anew.
        now: seconds since the epoch.
    """

    def __init__(self, store: Store, destination: Callable[[], Destination], now: Callable[[], float]) -> None:
        self._store = store
        self._destination = destination
        self._now = now
        self._known = NOTHING
        self._since = 0.0

    def look(self, found: Found, known: Known) -> None:
        """Add what holds secrets; nothing is written.

        Args:
            known: secrets that were found before, also to be found where nothing tells them.
        """
        self._known = known
        for namespace in self._store.namespaces():
            self._name(found, f"namespace {self._shown(namespace)}", (namespace,))
            for memory in self._store.memories(namespace, Selection(order="id")):
                self._memory(found, namespace, memory.owner.id)
            for number, owner in self._others(namespace):
                self._other(found, namespace, number, owner)
            self._graph(found, namespace)
            self._knowledge(found, namespace)
            self._ledger(found, namespace)
            for link in self._store.links(namespace):
                self._link(found, namespace, link)
            for note in self._store.notes(namespace, RECEIPT):
                self._receipt(found, namespace, note)
            for note in self._store.notes(namespace, BACKUP):
                self._name(found, f"a backup of namespace {self._shown(namespace)}", (note.id, note.body))

    def _graph(self, found: Found, namespace: str) -> None:
        """Look through a graph, and the texts by which its parts are found, which are made anew with them."""
        parts = GraphSecrets(self._store, namespace, self._destination, self._known).parts()
        mended = set()
        for part in parts:
            what = "fact" if part.kind == "relation" else part.kind
            named = f"{what} {self._shown(part.id)} of namespace {self._shown(namespace)}"
            self._name(found, named, (part.id,))
            found.add(part.cleaner, Holder(named, {}, mend=part.mend))
            if part.cleaner.kinds:
                mended.add((part.kind, part.id))
        for texts in (texts_of(namespace, kind) for kind in GRAPH_KINDS):
            for number, owner in self._others(texts):
                if (owner.kind, owner.id) not in mended:
                    self._other(found, texts, number, owner)

    def _knowledge(self, found: Found, namespace: str) -> None:
        for part in KnowledgeSecrets(self._store, namespace, self._destination, self._known).parts():
            named = f"{part.what} of agent {self._shown(part.agent)} of namespace {self._shown(namespace)}"
            self._name(found, named, part.names)
            found.add(part.cleaner, Holder(named, {}, mend=part.mend))

    def _ledger(self, found: Found, namespace: str) -> None:
        """Look through the issues of a namespace, and through what was done on them."""
        for part in LedgerSecrets(self._store, namespace, self._known).parts():
            named = f"issue {self._shown(part.id)} of namespace {self._shown(namespace)}"
            self._name(found, named, part.names)
            found.add(part.cleaner, Holder(named, {}, mend=part.mend))

    def _others(self, namespace: str) -> Iterator[tuple[int, Owner]]:
        """Yield the owners that are no memories with versions and no items of knowledge."""
        numbers = self._store.matching_owners(namespace, Filter())
        for begin in range(0, len(numbers), _NUMBERS_AT_ONCE):
            some = numbers[begin : begin + _NUMBERS_AT_ONCE]
            known = {*self._store.memory_records(namespace, some), *self._store.knowledge(namespace).of_numbers(some)}
            yield from sorted(
                (number, owner) for number, owner in self._store.owners(namespace, some).items() if number not in known
            )

    def _shown(self, name: str) -> str:
        return f"{Cleaner(self._known).text(name)!r:.200}"

    def _name(self, found: Found, named: str, names: Iterable[str]) -> None:
        cleaner = Cleaner(self._known)
        for name in names:
            cleaner.text(name)
        found.add(cleaner, Holder(f"the name of {named}", {}, is_name=True))

    def _memory(self, found: Found, namespace: str, id_: str) -> None:
        cleaner = Cleaner(self._known)
        named = f"memory {self._shown(id_)} of namespace {self._shown(namespace)}"
        versions = [_cleaned(version, cleaner) for version in self._store.versions(namespace, id_)]
        others = (each for v in versions for each in (v.owner.session, v.record.vault_path, *v.record.derived_from))
        self._name(found, named, {id_, *others})
        found.add(cleaner, Holder(named, {}, namespace, partial(self._rewrite, namespace, id_)))

    def _rewrite(self, namespace: str, id_: str) -> None:
        """Write every version of a memory anew, in one transaction."""
        destination = replace(self._destination(), namespace=namespace)
        with self._store.change_memories(namespace, made_by=destination.embedder.stamp) as change:
            # Nobody else can write now, so what is read here is what is replaced.
            cleaner = Cleaner(self._known)
            stored = self._store.versions(namespace, id_)
            versions = [_cleaned(version, cleaner) for version in stored]
            if not cleaner.kinds:
                return
            contents = {version.record.version: version.record.content for version in stored}
            for episode in change.graph.episodes_of_memory(id_):
                # Its words are those of the memory.
                move_places(change.graph, episode, replaced(contents.get(episode.version, ""), cleaner.find)[1])
            links = self._store.links(namespace, [id_])
            blocks = [block for block in self._store.blocks(namespace) if block.id == id_]
            writes = writes_of(destination, [(version.owner, version.record) for version in versions])
            change.erase([id_])
            for version, write in zip(versions, writes, strict=True):
                placed = replace(write, is_placed=True)
                change.add(placed, created_at=version.created_at, expired_at=version.expired_at)
            for link in links:
                change.link(link)
            for block in blocks:
                change.set_block(block)

    def _other(self, found: Found, namespace: str, number: int, owner: Owner) -> None:
        cleaner = Cleaner(self._known)
        what = f"the indexed file {self._shown(owner.path)}" if owner.path else f"document {self._shown(owner.id)}"
        if owner.kind in GRAPH_KINDS:
            what = f"the text of {owner.kind} {self._shown(owner.id)}"
        named = f"{what} of namespace {self._shown(namespace_of(namespace))}"
        self._name(found, named, {owner.id, owner.path, owner.root, owner.session})
        self._read(namespace, number, cleaner)
        mend = partial(self._put, namespace, number)
        found.add(cleaner, Holder(named, {}, mend=mend, is_file=bool(owner.path)))

    def _read(self, namespace: str, number: int, cleaner: Cleaner) -> PreparedOwner | None:
        """Return an owner with its passages, all without secrets and not yet tokenized; None for one that is gone."""
        with self._store.snapshot():
            owner = self._store.owners(namespace, [number]).get(number)
            numbers = self._store.passages_of(namespace, [number])
            passages = sorted(self._store.passages(namespace, numbers).values(), key=lambda each: each.ordinal)
        if owner is None:
            return None
        chunks = cleaner.passages([passage.chunk for passage in passages])
        return PreparedOwner(_cleaned_owner(owner, cleaner), tuple(chunks), (), 0)

    def _put(self, namespace: str, number: int) -> None:
        """Write an artifact or document anew. Its stamp stays: its file is as it was."""
        destination = replace(self._destination(), namespace=namespace)
        cleaner = Cleaner(self._known)
        prepared = self._read(namespace, number, cleaner)
        if prepared is None or not cleaner.kinds:
            return
        embedded = [passage_text(prepared.owner.title, chunk.heading, chunk.text) for chunk in prepared.chunks]
        texts = tuple(TokenizedText(text, destination.tokenize(text)) for text in embedded)
        writes = PassageMaker(destination).complete([replace(prepared, texts=texts)])
        since = self._counts_since(namespace, number)
        self._store.put_owners(namespace, writes, at=since, made_by=destination.embedder.stamp)

    def _counts_since(self, namespace: str, number: int) -> float:
        """Return from when on an owner counts, which the store tells only by who passes a filter: by halving."""

        def counts(at: float) -> bool:
            return number in self._store.matching_owners(namespace, Filter(as_of=at))

        # What was indexed in one run counts from one moment on.
        if counts(self._since) and not (self._since and counts(math.nextafter(self._since, 0.0))):
            return self._since
        low, high = 0.0, max(1.0, self._now())
        while not counts(high):
            low, high = high, high * 2
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if counts(middle) else (middle, high)
        self._since = high
        return high

    def _link(self, found: Found, namespace: str, link: Link) -> None:
        cleaner = Cleaner(self._known)
        clean = replace(link, type=cleaner.text(link.type))

        def mend() -> None:
            with self._store.change_memories(namespace) as change:
                if change.unlink(link.source, link.target, link.type):
                    change.link(clean)

        named = f"a link from memory {self._shown(link.source)} of namespace {self._shown(namespace)}"
        found.add(cleaner, Holder(named, {}, mend=mend))

    def _receipt(self, found: Found, namespace: str, note: Note) -> None:
        cleaner = Cleaner(self._known)
        clean = replace(note, body=json.dumps(cleaner.value(json.loads(note.body)), sort_keys=True))

        def mend() -> None:
            with self._store.change_memories(namespace) as change:
                change.put_note(clean)

        found.add(cleaner, Holder(f"the receipt {note.id}", {}, mend=mend))


def _cleaned(version: StoredMemory, cleaner: Cleaner) -> StoredMemory:
    record = version.record
    return replace(
        version,
        owner=_cleaned_owner(version.owner, cleaner),
        record=replace(
            record,
            content=cleaner.text(record.content),
            source=cleaner.text(record.source),
            category=cleaner.text(record.category),
            entities=cleaner.texts(record.entities),
            metadata=json.dumps(cleaner.value(json.loads(record.metadata)), sort_keys=True),
        ),
    )


def _cleaned_owner(owner: Owner, cleaner: Cleaner) -> Owner:
    return replace(
        owner,
        title=cleaner.text(owner.title),
        summary=cleaner.text(owner.summary),
        tags=cleaner.texts(owner.tags),
        references=cleaner.texts(owner.references),
    )
