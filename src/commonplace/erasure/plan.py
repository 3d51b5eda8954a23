"""Build the plan of a deletion: the rows to delete, their counts and the byte patterns to search for afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.erasure.scan import TOKENS, VECTOR, Collector
from commonplace.erasure.select import Chosen, Parts
from commonplace.graph.episodes import take_out
from commonplace.graph.facts import facts_of, key_of
from commonplace.graph.runtime import GraphRuntime
from commonplace.graph.service import facts_about, families, remove_entities, remove_facts
from commonplace.ledger.erase import Naming, naming
from commonplace.store.graph import GraphChange
from commonplace.store.graph_rules import texts_of
from commonplace.store.memories import MemoryChange
from commonplace.store.schema import SCHEMA, Table, table_of
from commonplace.store.store import Store
from commonplace.text.similarity import digest
from commonplace.types import GRAPH_KINDS, Filter, StoredMemory
from commonplace.types.graph import GraphFilter

Rows = Callable[..., Iterator[dict[str, Any]]]
"""Reads the rows of a table whose columns have one of the given values."""

_AT_ONCE: Final = 500
_PARTS: Final = ("episodes", "entities", "relations")
"""The tables of the parts of a graph, and the fields of `Parts`."""
_EVER: Final = GraphFilter(with_past=True)


@dataclass(slots=True)
class Plan:
    """Everything that a run must know of what it erases before it does; what goes of the graph it learns as it goes.

    Attributes:
        change: the store's change that it was made at; at another one it may be wrong.
        traces: what would betray what went.
        rows: how many rows of each table go.
        passages: the numbers of all passages that go.
        vault_paths: the notes that were written of its memories.
        naming: what of the ledger names these memories.
        parts: what went of the graph.
        texts: by namespace of the graph's texts, the passages of all that was looked at, with those that went.
        told: the groups, by id, of the episodes that went and are no memories, and of the facts that no episode says:
            an outside graph may have been told of them.
    """

    chosen: Chosen
    change: int
    traces: Collector = field(default_factory=Collector)
    rows: Counter[str] = field(default_factory=Counter)
    passages: tuple[int, ...] = ()
    vault_paths: tuple[str, ...] = ()
    naming: Naming = field(default_factory=Naming)
    parts: Parts = field(default_factory=Parts)
    texts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that goes, each once."""
        return tuple(dict.fromkeys((*self.chosen.ids, *self.parts.ids)))

    def counts(self) -> dict[str, int]:
        items = self.rows["knowledge_items"]
        return {
            "memories": len(self.chosen.memories),
            "derived": self.chosen.derived,
            "versions": self.rows["memories"],
            "passages": len(self.passages),
            "links": self.rows["links"],
            "owners": len(self.chosen.owners) - items,
            "knowledge": items,
            "contexts": len(self.chosen.contexts),
            "blocks": self.rows["mirror_blocks"],
            **{name: len(getattr(self.parts, name)) for name in _PARTS},
            "issues": len(self.naming.issues),
            "reversals": len(self.naming.reversals),
        }


def make_plan(store: Store, namespace: str, chosen: Chosen, *, in_process: Sequence[StoredMemory] = ()) -> Plan:
    """Read all that goes.

    Args:
        in_process: memories that were never stored; a log may have their words.
    """
    plan = Plan(chosen, store.change(namespace), naming=naming(store.ledger(namespace), chosen.memories))
    for memory in in_process:
        # An id comes before words: a text that is also the id stands in the receipt, and betrays no more than that.
        for record in (memory.owner, memory.record):
            columns = table_of(type(record)).record_columns
            plan.traces.add_row(columns, {column.name: getattr(record, column.name) for column in columns})
        plan.traces.add_digest(digest(memory.record.content))
    versions = [row["owner"] for row in store.table_rows(SCHEMA["memories"], namespace, id=chosen.memories)]
    paths = set[str]()
    for table, row in _rows_that_go(store, namespace, chosen, versions):
        plan.rows[table.name] += 1
        plan.traces.add_row(table.columns, row)
        if table.name == "memories":
            plan.traces.add_digest(digest(row["content"]))
            paths.add(row["vault_path"])
    plan.passages = tuple(store.passages_of(namespace, [*versions, *chosen.owners]))
    _add_arrays(plan, store, namespace, plan.passages)
    plan.vault_paths = tuple(sorted(paths - {""}))
    return plan


def _rows_that_go(
    store: Store, namespace: str, chosen: Chosen, versions: Sequence[int]
) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield every row that goes, with its table, but those of the graph and of the ledger."""
    yield from store.hanging_rows(SCHEMA["owners"], namespace, [*versions, *chosen.owners])
    asked = (
        ("agent_contexts", "name", chosen.contexts),
        ("mirror_blocks", "id", chosen.memories),
        ("links", "source", chosen.memories),
        ("links", "target", chosen.memories),
    )
    ids = set(chosen.memories)
    for name, column, values in asked:
        for row in store.table_rows(SCHEMA[name], namespace, **{column: values}):
            if column != "target" or row["source"] not in ids:  # which came with its source
                yield SCHEMA[name], row


def erase_parts(plan: Plan, store: Store, change: MemoryChange, ground: GraphRuntime) -> None:
    """Take parts out of a graph under change; the plan learns what went, and what would betray that.

    Args:
        store: what it reads is as it was before the change.
    """
    chosen, graph = plan.chosen.parts, change.graph
    looked_at = _looked_at(graph, ground, chosen)
    before = _Snapshot(change.table_rows, looked_at)
    for kind, ids in zip(GRAPH_KINDS, (looked_at.entities, looked_at.relations), strict=True):
        space = texts_of(ground.namespace, kind)
        plan.texts[space] = tuple(store.passages_of(space, list(store.owner_numbers(space, kind, ids).values())))
    if chosen.episodes:
        take_out(graph, ground, chosen.episodes)
    remove_facts(graph, ground, chosen.relations)
    remove_entities(graph, ground, chosen.entities)
    _learn(plan, store, before, _Snapshot(change.table_rows, looked_at))


def rehearse(plan: Plan, store: Store, namespace: str, ground: Callable[[], GraphRuntime]) -> None:
    """Learn what `erase_parts` would, and change nothing: it is rolled back."""
    with suppress(_RehearsedError), store.change_memories(namespace) as change:
        # Asked for here, where nobody else can change the store's embedder any more.
        erase_parts(plan, store, change, ground())
        raise _RehearsedError


def erase_all_parts(plan: Plan, store: Store, namespace: str) -> None:
    """Plan that the whole graph of a namespace goes."""
    graph = store.graph(namespace)
    lists = (graph.list_episodes, graph.list_entities, graph.list_relations)
    parts = Parts(*(tuple(each.id for each in listed(_EVER)) for listed in lists))
    for space in (texts_of(namespace, kind) for kind in GRAPH_KINDS):
        plan.texts[space] = tuple(store.passages_of(space, store.matching_owners(space, Filter())))
    _learn(plan, store, _Snapshot(lambda table, **among: store.table_rows(table, namespace, **among), parts), None)


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
        found = self._add([(name, rows(SCHEMA[name], id=getattr(looked_at, name))) for name in _PARTS])
        self.parts = Parts(*(tuple(row["id"] for row in each) for each in found))
        self.told = {row["id"]: row["group"] for row in found[0] if not row["memory"]}
        hanging = [
            (name, rows(SCHEMA[name], kind=[kind], subject=ids))
            for name in ("mentions", "happenings")
            for kind, ids in (("entity", self.parts.entities), ("relation", self.parts.relations))
        ]
        _, facts, *_ = self._add([*hanging, ("aliases", rows(SCHEMA["aliases"], entity=self.parts.entities))])
        said = {row["subject"] for row in facts}
        self.told |= {row["id"]: row["group"] for row in found[2] if row["id"] not in said}

    def _add(self, asked: Sequence[tuple[str, Iterable[dict[str, Any]]]]) -> list[list[dict[str, Any]]]:
        """Add the values of rows by table; all are asked for before a server is waited for."""
        found = [list(rows) for _, rows in asked]
        for (table, _), held in zip(asked, found, strict=True):
            columns = [column.name for column in SCHEMA[table].columns if column.is_erased and column.name != "id"]
            self.values |= {(table, column, row[column]): None for row in held for column in columns}
        return found


def _learn(plan: Plan, store: Store, before: _Snapshot, after: _Snapshot | None) -> None:
    """Learn what was there before and is there no more."""
    left = Parts() if after is None else after.parts
    plan.parts = Parts(*(tuple(sorted({*getattr(before.parts, name)} - {*getattr(left, name)})) for name in _PARTS))
    for id_ in plan.parts.ids:
        plan.traces.add_id(id_)
    kept = set() if after is None else {value for _, _, value in after.values}
    for table, column, value in before.values:
        if value not in kept:
            plan.traces.add_row((SCHEMA[table][column],), {column: value})
    for space, numbers in plan.texts.items():
        _add_arrays(plan, store, space, numbers)
    plan.told = {id_: before.told[id_] for id_ in plan.parts.ids if id_ in before.told}


def _add_arrays(plan: Plan, store: Store, namespace: str, passages: Sequence[int]) -> None:
    for begin in range(0, len(passages), _AT_ONCE):
        for tokens in store.tokens(namespace, passages[begin : begin + _AT_ONCE]).values():
            plan.traces.add_array(tokens.token_ids, TOKENS)
            plan.traces.add_array(tokens.vector, VECTOR)


def _looked_at(graph: GraphChange, ground: GraphRuntime, chosen: Parts) -> Parts:
    """Return all that may change when parts of a graph go."""
    mentioned = [mention for some in graph.mentioned(chosen.episodes).values() for mention in some]
    subjects: Mapping[str, list[str]] = {
        kind: [mention.subject for mention in mentioned if mention.kind == kind] for kind in GRAPH_KINDS
    }
    entities = families(graph, [*subjects["entity"], *chosen.entities])
    asked = [*chosen.relations, *facts_about(graph, families(graph, chosen.entities))]
    facts = graph.relations(list(dict.fromkeys([*subjects["relation"], *asked]))).values()
    keys = dict.fromkeys(key_of(each, ground.kinds) for each in facts)
    relations = dict.fromkeys(each.id for key in keys for each in facts_of(graph, key))
    return Parts(chosen.episodes, tuple(dict.fromkeys(entities)), tuple(relations))
