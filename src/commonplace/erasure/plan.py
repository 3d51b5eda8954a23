"""Build the plan of a deletion: the rows to delete, their counts and the byte patterns to search for afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from commonplace.erasure.scan import TOKENS, VECTOR, Collector, Needles, parts
from commonplace.erasure.select import Chosen, Gone
from commonplace.formats.escaping import strings
from commonplace.ledger.erase import Naming, naming
from commonplace.logs import query_hash
from commonplace.store.contract import Store
from commonplace.text.similarity import digest
from commonplace.text.tokens import possible_terms
from commonplace.types import StoredMemory

_NUMBERS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run must know of what it erases before it does.

    Attributes:
        change: the store's change that it was made at; at another one it may be wrong.
        versions: how many versions of memories go.
        passages: the numbers of all passages that go.
        firsts: (owner number, one of its passages) of what is no memory: whether it is still what it was.
        terms: the words under which the index had it.
        vectors: int8, of the passages; those of the graph's texts are in `gone`.
        vault_paths: the notes that were written of its memories.
        items: how many of the owners are items of knowledge.
        naming: what of the ledger names these memories.
        gone: what went of the graph, known when it is erased.
    """

    chosen: Chosen
    change: int
    needles: Needles
    versions: int = 0
    passages: tuple[int, ...] = ()
    firsts: tuple[tuple[int, int], ...] = ()
    links: int = 0
    blocks: int = 0
    terms: tuple[str, ...] = ()
    vectors: tuple[bytes, ...] = ()
    vault_paths: tuple[str, ...] = ()
    items: int = 0
    naming: Naming = field(default_factory=Naming)
    too_short: int = 0
    gone: Gone = field(default_factory=Gone)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that goes, each once."""
        return tuple(dict.fromkeys((*self.chosen.ids, *self.gone.parts.ids)))

    def with_gone(self, gone: Gone) -> Plan:
        """Return the plan with what went of the graph."""
        return replace(
            self,
            gone=gone,
            needles=self.needles.with_others(gone.needles),
            terms=tuple(sorted({*self.terms, *gone.terms})),
            too_short=self.too_short + gone.too_short,
        )

    def counts(self) -> dict[str, int]:
        """Return the counts of a receipt, as far as the store tells them."""
        return {
            "memories": len(self.chosen.memories),
            "derived": self.chosen.derived,
            "versions": self.versions,
            "passages": len(self.passages),
            "links": self.links,
            "owners": len(self.chosen.owners) - self.items,
            "knowledge": self.items,
            "contexts": len(self.chosen.contexts),
            "blocks": self.blocks,
            "episodes": len(self.gone.parts.episodes),
            "entities": len(self.gone.parts.entities),
            "relations": len(self.gone.parts.relations),
            "issues": len(self.naming.issues),
            "reversals": len(self.naming.reversals),
        }


@dataclass(slots=True)
class _Collected:
    """What is gathered while everything that goes is read once."""

    collector: Collector = field(default_factory=Collector)
    passages: list[int] = field(default_factory=list)
    terms: set[str] = field(default_factory=set)
    vectors: list[bytes] = field(default_factory=list)
    vault_paths: set[str] = field(default_factory=set)
    versions: int = 0


def make_plan(store: Store, namespace: str, chosen: Chosen, *, in_process: Sequence[StoredMemory] = ()) -> Plan:
    """Read all that goes.

    Args:
        in_process: memories that were never stored; a log may have their words.
    """
    change, got = store.change(), _Collected()
    for memory in in_process:
        _add_memory(got, memory)
    for id_ in chosen.memories:
        versions = store.versions(namespace, id_)
        for memory in versions:
            _add_memory(got, memory)
        got.versions += len(versions)
        _add_passages(store, namespace, got, [memory.number for memory in versions])
    firsts = []
    for number, owner in chosen.owners.items():
        got.collector.add_id(owner.id)
        for text in (owner.title, owner.summary):
            _add_text(got, text)
        firsts += [(number, passage) for passage in _add_passages(store, namespace, got, [number])[:1]]
    items = _add_knowledge(store, namespace, got, chosen)
    ids = set(chosen.memories)
    blocks = [block for block in store.blocks(namespace) if block.id in ids]
    for block in blocks:
        got.collector.add_digest(block.digest)
    links = {link for begin in range(0, len(ids), _NUMBERS_AT_ONCE) for link in _links(store, namespace, chosen, begin)}
    return Plan(
        chosen=chosen,
        change=change,
        needles=got.collector.needles(),
        versions=got.versions,
        passages=tuple(got.passages),
        firsts=tuple(firsts),
        links=len(links),
        blocks=len(blocks),
        terms=tuple(sorted(got.terms)),
        vectors=tuple(got.vectors),
        vault_paths=tuple(sorted(got.vault_paths)),
        items=items,
        naming=naming(store.ledger(namespace), chosen.memories),
        too_short=got.collector.too_short,
    )


def _links(store: Store, namespace: str, chosen: Chosen, begin: int) -> set[tuple[str, str, str]]:
    found = store.links(namespace, chosen.memories[begin : begin + _NUMBERS_AT_ONCE])
    return {(link.source, link.target, link.type) for link in found}


def texts_of(memory: StoredMemory) -> Iterator[str]:
    """Yield every text of one version of a memory but its content and id."""
    record, owner = memory.record, memory.owner
    yield from (record.source, record.category, owner.title, owner.summary, owner.session)
    yield from (*owner.tags, *record.entities)
    yield from strings(json.loads(record.metadata))


def _add_memory(got: _Collected, memory: StoredMemory) -> None:
    content = memory.record.content
    # Before its words: a title or a text that is also the id stands in the receipt, and betrays no more than that.
    got.collector.add_id(memory.owner.id)
    _add_text(got, content)
    got.collector.add_digest(digest(content))
    for text in texts_of(memory):
        got.collector.add_label(text)
        got.terms |= possible_terms(text)
    if memory.record.vault_path:
        got.vault_paths.add(memory.record.vault_path)


def _add_passages(store: Store, namespace: str, got: _Collected, owner_numbers: Sequence[int]) -> list[int]:
    numbers = store.passages_of(namespace, owner_numbers)
    for passage in store.passages(namespace, numbers).values():
        for text in (passage.chunk.text, passage.chunk.heading):
            _add_text(got, text)
    for tokens in store.tokens(namespace, numbers).values():
        got.collector.add_array(tokens.vector, VECTOR)
        got.collector.add_array(tokens.token_ids, TOKENS)
        if tokens.vector:
            got.vectors.append(tokens.vector)
    got.passages += numbers
    return numbers


def _add_knowledge(store: Store, namespace: str, got: _Collected, chosen: Chosen) -> int:
    """Take what items of knowledge hold besides their passages, and the contexts of agents; return how many items."""
    knowledge, items = store.knowledge(namespace), 0
    numbers = list(chosen.owners)
    for begin in range(0, len(numbers), _NUMBERS_AT_ONCE):
        for item in knowledge.of_numbers(numbers[begin : begin + _NUMBERS_AT_ONCE]).values():
            items += 1
            _add_text(got, item.record.content)
            _add_json(got, item.record.metadata)
            got.collector.add_digest(item.record.digest)
            got.collector.add_array(item.record.vector, VECTOR)
    for name in chosen.contexts:
        context = knowledge.context(name)
        if context is not None:
            _add_json(got, context.metadata)
    return items


def _add_json(got: _Collected, text: str) -> None:
    for each in strings(json.loads(text)):
        got.collector.add_label(each)
        got.terms |= possible_terms(each)


def _add_text(got: _Collected, text: str) -> None:
    if not text.strip():
        return
    got.collector.add_content(text)
    got.terms |= possible_terms(text)
    # A log names questions by these; somebody may have asked for the very words.
    for question in dict.fromkeys((text, text.strip(), *parts(text))):
        got.collector.add_digest(query_hash(question))
