"""Build the plan of a deletion: the rows to delete, their counts and the byte patterns to search for afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.erasure.scan import TOKENS, VECTOR, Collector, Patterns
from commonplace.erasure.select import Chosen, Parts
from commonplace.graph.episodes import take_out
from commonplace.graph.fact_keys import FactKeys, facts_of
from commonplace.graph.runtime import GraphRuntime, Texts
from commonplace.graph.service import facts_about, families, remove_entities, remove_facts
from commonplace.ledger.erase import Naming, naming
from commonplace.store.graph import GraphChange
from commonplace.store.graph_rules import texts_of
from commonplace.store.memories import MemoryChange
from commonplace.store.schema import SCHEMA, Table, table_of
from commonplace.store.store import Store
from commonplace.text.similarity import digest
from commonplace.types import GRAPH_KINDS, Filter, StoredMemory
from commonplace.types.graph import GraphFilter, Subject

Rows = Callable[..., Iterator[dict[str, Any]]]
"""Reads the rows of a table whose columns have one of the given values."""

_AT_ONCE: Final = 500
_PARTS: Final = ("episodes", "entities", "relations")
"""The tables of the parts of a graph, and the fields of `Parts`."""
_EVER: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class Traces:
    """What would betray what went.

    Attributes:
        terms: the words under which the index had it.
        too_short: how many of its texts are too short to be looked for.
    """

    patterns: Patterns = field(default_factory=lambda: Patterns({}))
    terms: tuple[str, ...] = ()
    too_short: int = 0


@dataclass(frozen=True, slots=True)
class Gone:
    """What went of a graph.

    Attributes:
        passages: by namespace of texts, the passages of all that was looked at; those that went are among them.
        told: (id, group) of the episodes that went and are no memories, and of the facts that no episode says: an
            outside graph may have been told of them.
    """

    parts: Parts = field(default_factory=Parts)
    traces: Traces = field(default_factory=Traces)
    passages: tuple[tuple[str, tuple[int, ...]], ...] = ()
    told: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a run must know of what it erases before it does.

    Attributes:
        change: the store's change that it was made at; at another one it may be wrong.
        rows: how many rows of each table go.
        passages: the numbers of all passages that go.
        firsts: (owner number, one of its passages) of what is no memory: whether it is still what it was.
        vault_paths: the notes that were written of its memories.
        naming: what of the ledger names these memories.
        gone: what went of the graph, known when it is erased.
    """

    chosen: Chosen
    change: int
    traces: Traces
    rows: Mapping[str, int] = field(default_factory=dict)
    passages: tuple[int, ...] = ()
    firsts: tuple[tuple[int, int], ...] = ()
    vault_paths: tuple[str, ...] = ()
    naming: Naming = field(default_factory=Naming)
    gone: Gone = field(default_factory=Gone)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that goes, each once."""
        return tuple(dict.fromkeys((*self.chosen.ids, *self.gone.parts.ids)))

    def with_gone(self, gone: Gone) -> Plan:
        """Return it with what went of the graph, and what would betray that."""
        own, more = self.traces, gone.traces
        terms = tuple(sorted({*own.terms, *more.terms}))
        traces = Traces(own.patterns.with_others(more.patterns), terms, own.too_short + more.too_short)
        return replace(self, gone=gone, traces=traces)

    def counts(self) -> dict[str, int]:
        """Return the counts of a receipt, as far as the store tells them."""
        items = self.rows.get("knowledge_items", 0)
        return {
            "memories": len(self.chosen.memories),
            "derived": self.chosen.derived,
            "versions": self.rows.get("memories", 0),
            "passages": len(self.passages),
            "links": self.rows.get("links", 0),
            "owners": len(self.chosen.owners) - items,
            "knowledge": items,
            "contexts": len(self.chosen.contexts),
            "blocks": self.rows.get("mirror_blocks", 0),
            "episodes": len(self.gone.parts.episodes),
            "entities": len(self.gone.parts.entities),
            "relations": len(self.gone.parts.relations),
            "issues": len(self.naming.issues),
            "reversals": len(self.naming.reversals),
        }


def make_plan(store: Store, namespace: str, chosen: Chosen, *, in_process: Sequence[StoredMemory] = ()) -> Plan:
    """Read all that goes.

    Args:
        in_process: memories that were never stored; a log may have their words.
    """
    change, collector = store.change(namespace), Collector()
    for memory in in_process:
        # An id comes before words: a text that is also the id stands in the receipt, and betrays no more than that.
        for record in (memory.owner, memory.record):
            table = table_of(type(record))
            columns = table.record_columns
            collector.add_row(columns, {column.name: getattr(record, column.name) for column in columns})
        collector.add_digest(digest(memory.record.content))
    versions = [row["owner"] for row in store.table_rows(SCHEMA["memories"], namespace, id=chosen.memories)]
    counts, paths, firsts = dict[str, int](), set[str](), dict[int, int]()
    for table, row in _rows_that_go(store, namespace, chosen, versions):
        counts[table.name] = counts.get(table.name, 0) + 1
        collector.add_row(table.columns, row)
        if table.name == "memories":
            collector.add_digest(digest(row["content"]))
            paths.add(row["vault_path"])
        elif table.name == "passages":
            firsts.setdefault(row["owner"], row["number"])
    passages = store.passages_of(namespace, [*versions, *chosen.owners])
    _add_arrays(store, namespace, passages, collector)
    return Plan(
        chosen=chosen,
        change=change,
        traces=_traces(collector),
        rows=counts,
        passages=tuple(passages),
        firsts=tuple((owner, passage) for owner, passage in firsts.items() if owner in chosen.owners),
        vault_paths=tuple(sorted(paths - {""})),
        naming=naming(store.ledger(namespace), chosen.memories),
    )


def _rows_that_go(
    store: Store, namespace: str, chosen: Chosen, versions: Sequence[int]
) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield every row that goes, with its table, but those of the graph and of the ledger."""
    yield from store.hanging_rows(SCHEMA["owners"], [*versions, *chosen.owners])
    context, block, link = (SCHEMA[name] for name in ("agent_contexts", "mirror_blocks", "links"))
    yield from ((context, row) for row in store.table_rows(context, namespace, name=chosen.contexts))
    yield from ((block, row) for row in store.table_rows(block, namespace, id=chosen.memories))
    yield from ((link, row) for row in store.table_rows(link, namespace, source=chosen.memories))
    ids = set(chosen.memories)
    targeted = store.table_rows(link, namespace, target=chosen.memories)
    yield from ((link, row) for row in targeted if row["source"] not in ids)


def erase_parts(store: Store, change: MemoryChange, ground: GraphRuntime, chosen: Parts) -> Gone:
    """Take parts out of a graph under change; return what went, and what would betray that.

    Args:
        store: what it reads is as it was before the change.
    """
    graph, texts = change.graph, Texts(ground.destination)
    looked_at = _looked_at(graph, ground, chosen)
    before = _Snapshot(change.table_rows, looked_at)
    passages = {}
    for kind, ids in zip(GRAPH_KINDS, (looked_at.entities, looked_at.relations), strict=True):
        space = texts_of(ground.namespace, kind)
        passages[space] = tuple(store.passages_of(space, list(store.owner_numbers(space, kind, ids).values())))
    if chosen.episodes:
        take_out(graph, ground, texts, chosen.episodes)
    remove_facts(graph, ground, texts, chosen.relations)
    remove_entities(graph, ground, texts, chosen.entities)
    return _gone(store, before, _Snapshot(change.table_rows, looked_at), passages)


def rehearse(store: Store, namespace: str, ground: Callable[[], GraphRuntime], chosen: Parts) -> Gone:
    """Return what `erase_parts` would, and change nothing: it is rolled back."""
    gone = Gone()
    with suppress(_RehearsedError), store.change_memories(namespace) as change:
        # Asked for here, where nobody else can change the store's embedder any more.
        gone = erase_parts(store, change, ground(), chosen)
        raise _RehearsedError
    return gone


def everything(store: Store, namespace: str) -> Gone:
    """Return the whole graph of a namespace as what is to go."""
    graph = store.graph(namespace)
    parts = Parts(
        tuple(each.id for each in graph.list_episodes(_EVER)),
        tuple(each.id for each in graph.list_entities(_EVER)),
        tuple(each.id for each in graph.list_relations(_EVER)),
    )
    passages = {
        space: tuple(store.passages_of(space, store.matching_owners(space, Filter())))
        for space in (texts_of(namespace, kind) for kind in GRAPH_KINDS)
    }
    return _gone(
        store, _Snapshot(lambda table, **among: store.table_rows(table, namespace, **among), parts), None, passages
    )


class _RehearsedError(Exception):
    """Raised in a change that is to be rolled back."""


class _Snapshot:
    """What some parts of a graph say at one moment: their rows, and those that belong to them.

    Attributes:
        values: by (table, column, value), in the order in which they were read.
        told: the group of each episode that is no memory, and of each fact that no episode says.
    """

    def __init__(self, rows: Rows, looked_at: Parts) -> None:
        self.values: dict[tuple[str, str, Any], None] = {}
        found = [self._add(name, rows(SCHEMA[name], id=getattr(looked_at, name))) for name in _PARTS]
        self.parts = Parts(*(tuple(row["id"] for row in each) for each in found))
        self.told = {row["id"]: row["group"] for row in found[0] if not row["memory"]}
        said = set[str]()
        for table in SCHEMA.values():
            if table.told == ("entity",):
                self._add(table.name, rows(table, entity=self.parts.entities))
            elif table.told == ("kind", "subject"):
                self._add(table.name, rows(table, subject=self.parts.entities, kind=["entity"]))
                held = self._add(table.name, rows(table, subject=self.parts.relations, kind=["relation"]))
                said |= {row["subject"] for row in held if table.name == "mentions"}
        self.told |= {row["id"]: row["group"] for row in found[2] if row["id"] not in said}

    def _add(self, table: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        held = list(rows)
        columns = [column.name for column in SCHEMA[table].columns if column.is_erased and column.name != "id"]
        self.values |= {(table, column, row[column]): None for row in held for column in columns}
        return held


def _gone(store: Store, before: _Snapshot, after: _Snapshot | None, passages: Mapping[str, tuple[int, ...]]) -> Gone:
    """Return what was there before and is there no more."""
    left = Parts() if after is None else after.parts
    parts = Parts(*(tuple(sorted({*getattr(before.parts, name)} - {*getattr(left, name)})) for name in _PARTS))
    collector = Collector()
    for id_ in parts.ids:
        collector.add_id(id_)
    kept = set() if after is None else {value for _, _, value in after.values}
    for table, column, value in before.values:
        if value not in kept:
            collector.add_row((SCHEMA[table][column],), {column: value})
    for space, numbers in passages.items():
        _add_arrays(store, space, numbers, collector)
    told = tuple((id_, before.told[id_]) for id_ in parts.ids if id_ in before.told)
    return Gone(parts, _traces(collector), tuple(passages.items()), told)


def _add_arrays(store: Store, namespace: str, passages: Sequence[int], collector: Collector) -> None:
    """Take the vectors and token ids of passages as what betrays them."""
    for begin in range(0, len(passages), _AT_ONCE):
        for tokens in store.tokens(namespace, passages[begin : begin + _AT_ONCE]).values():
            collector.add_array(tokens.token_ids, TOKENS)
            collector.add_array(tokens.vector, VECTOR)


def _traces(collector: Collector) -> Traces:
    return Traces(collector.patterns(), tuple(sorted(collector.terms)), collector.too_short)


def _looked_at(graph: GraphChange, ground: GraphRuntime, chosen: Parts) -> Parts:
    """Return all that may change when parts of a graph go."""
    mentioned = [mention for some in graph.mentioned(chosen.episodes).values() for mention in some]
    subjects: dict[Subject, list[str]] = {
        kind: [mention.subject for mention in mentioned if mention.kind == kind] for kind in GRAPH_KINDS
    }
    entities = families(graph, [*subjects["entity"], *chosen.entities])
    asked = [*chosen.relations, *facts_about(graph, families(graph, chosen.entities))]
    slots = FactKeys(graph, ground, Texts(ground.destination))
    facts = graph.relations(list(dict.fromkeys([*subjects["relation"], *asked]))).values()
    wanted = dict.fromkeys(slots.slot_of_fact(each) for each in facts)
    relations = dict.fromkeys(each.id for slot in wanted for each in facts_of(graph, slot))
    return Parts(chosen.episodes, tuple(dict.fromkeys(entities)), tuple(relations))
