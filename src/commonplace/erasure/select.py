"""Select what a deletion covers: the requested items, everything derived from them, and the traces of both.

* A memory derived from a forgotten one, directly or through others, is deleted too, even if it has other sources: which
  of its words came from which source is unknown. The other sources stay.
* Of the memories that a forgotten one was merged from, the archived ones are deleted: they are its text under another
  id, in no list. A source that is still live stays, and a notice names it.
* When a live memory is deleted that others were merged into, those of them that stay and that the merge archived become
  active again, since otherwise no live memory would have their content.
* An agent's knowledge is deleted completely, with the agent's context and soft-deleted items.
* Deleting a memory deletes its episodes; deleting an episode, the facts, entities and names that only it supported.
* Deleting an entity deletes all facts about it; deleting a fact, all its records. Episodes that mention them stay.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.erasure.scan import TOKENS, VECTOR, Collector
from commonplace.errors import NotFoundError
from commonplace.graph.episodes import take_out
from commonplace.graph.facts import facts_of, key_of
from commonplace.graph.runtime import GraphRuntime, subjects_of
from commonplace.graph.service import facts_about, families, remove_facts
from commonplace.ledger.erase import LedgerMentions
from commonplace.store.graph import GraphReading
from commonplace.store.memories import MemoryChange
from commonplace.store.owners import plain_owners
from commonplace.store.rows import RowQuery
from commonplace.store.schema import SCHEMA, Table, table_of, texts_of
from commonplace.store.store import Store
from commonplace.types import GRAPH_KINDS, Filter, Owner, Selection, StoredMemory
from commonplace.types.graph import GraphFilter

Parts = Mapping[str, tuple[str, ...]]
"""Ids of parts of a graph, by table: `episodes`, `entities` and `relations`."""
Rows = Sequence[tuple[Table, dict[str, Any]]]

NO_PARTS: Final[Parts] = {"episodes": (), "entities": (), "relations": ()}
_BATCH_SIZE: Final = 500
_MAX_LISTED: Final = 3
_MAX_NAMESPACES: Final = 10
_ANY_TIME: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """A request to forget: exactly one attribute is set.

    Attributes:
        ids: ids of memories, artifacts, documents, knowledge items, episodes, entities and facts; all must exist.
        tag, source, session: selects memories; a tag or session also documents.
        path: the stored path of an artifact.
        archived_by: selects memories archived and knowledge deleted at or before that time, without derived memories.
        agent: selects the knowledge of this agent.
    """

    ids: tuple[str, ...] = ()
    tag: str | None = None
    source: str | None = None
    session: str | None = None
    path: str | None = None
    archived_by: float | None = None
    agent: str | None = None


@dataclass(slots=True)
class Plan:
    """What will be deleted, and everything that must be read before the deletion.

    Attributes:
        memories: ids, those requested first.
        derived: how many of the memories are copies of, or derived from, the requested ones.
        owners: artifacts, documents and knowledge items by number.
        contexts: names of the agents whose context is deleted.
        revived: ids of memories that become active again, since the memory that they were merged into is deleted.
        parts: the requested parts of the graph, and the episodes of these memories.
        removed_parts: all deleted parts of the graph.
        outside: descriptions of what stays because it belongs to the user.
        traces: patterns and terms that would reveal the deleted data.
        rows: the number of deleted rows by table.
        passages: the deleted passages by namespace, including texts of the graph that may have been rewritten.
        vault_paths: paths of the vault notes of the memories.
        ledger_mentions: the ledger entries that name or quote them.
        in_process: ids of deleted memories of this process that were never stored.
        copied: groups, by id, of deleted episodes that are no memories and of deleted facts that no episode mentions:
            an outside graph may have copies of them.
    """

    memories: tuple[str, ...] = ()
    derived: int = 0
    owners: Mapping[int, Owner] = field(default_factory=dict)
    contexts: tuple[str, ...] = ()
    revived: tuple[str, ...] = ()
    parts: Parts = field(default_factory=lambda: NO_PARTS)
    notices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    removed_parts: Parts = field(default_factory=lambda: NO_PARTS)
    traces: Collector = field(default_factory=Collector)
    rows: Counter[str] = field(default_factory=Counter)
    passages: dict[str, tuple[int, ...]] = field(default_factory=dict)
    vault_paths: tuple[str, ...] = ()
    ledger_mentions: LedgerMentions = field(default_factory=LedgerMentions)
    in_process: tuple[str, ...] = ()
    copied: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.owners or self.contexts)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of everything deleted, each once."""
        owners = (owner.id for owner in self.owners.values())
        return tuple(dict.fromkeys((*self.memories, *owners, *chain(*self.removed_parts.values()), *self.in_process)))

    def counts(self) -> dict[str, int]:
        items = self.rows["knowledge_items"]
        return {
            "memories": len(self.memories),
            "derived": self.derived,
            "versions": self.rows["memories"],
            "passages": self.rows["passages"],
            "links": self.rows["links"],
            "owners": len(self.owners) - items,
            "knowledge": items,
            "contexts": len(self.contexts),
            "blocks": self.rows["mirror_blocks"],
            **{name: len(ids) for name, ids in self.removed_parts.items()},
            "issues": len(self.ledger_mentions.issues),
            "reversals": len(self.ledger_mentions.reversals),
            "log_lines": 0,
            "in_process": len(self.in_process),
            "vault_notes": 0,
        }


def plan_items(store: Store, namespace: str, request: EraseRequest, *, in_process: Sequence[StoredMemory] = ()) -> Plan:
    """Plan the deletion of the requested items; see `erase.forget`."""
    graph = store.graph(namespace)
    if request.archived_by is not None:
        archived = tuple(archived_by(store, namespace, request.archived_by))
        return Plan(archived, owners=_owners(store, namespace, request, ()), parts=_parts(graph, (), archived))
    context, memory_ids = None, list[str]()
    if request.agent is not None:
        context = store.knowledge(namespace).context(request.agent)
    elif request.ids:
        memory_ids = [id_ for id_ in dict.fromkeys(request.ids) if store.memory(namespace, id_) is not None]
    elif request.path is None:
        memory_ids = [memory.owner.id for memory in store.memories(namespace, selection(request))]
    owners = _owners(store, namespace, request, memory_ids)
    part_ids = (id_ for ids in _parts(graph, request.ids, ()).values() for id_ in ids)
    never_stored = [unstored.owner.id for unstored in in_process]
    found_ids = {*memory_ids, *never_stored, *(owner.id for owner in owners.values()), *part_ids}
    missing = [id_ for id_ in request.ids if id_ not in found_ids]
    if missing or not (found_ids or context):
        raise NotFoundError(
            f"{_nothing(request, missing)} in this namespace; nothing was forgotten",
            remedy="see `commonplace list`",
        )
    plan = _with_derived(store, namespace, request, memory_ids)
    plan.owners = owners
    plan.outside = tuple(
        f"the file {path} is yours and stays; the next `commonplace index build` indexes it again unless it is ignored"
        for path in sorted(owner.path for owner in owners.values() if owner.path)
    )
    plan.contexts = () if context is None else (context.name,)
    plan.in_process = tuple(never_stored)
    # Memories that were never stored leave traces too: a log may quote them. Ids are added before texts: a text that
    # equals the id is in the receipt and reveals nothing more.
    for record in (record for memory in in_process for record in (memory.owner, memory.record)):
        columns = table_of(type(record)).record_columns
        plan.traces.add_row(columns, {column.name: getattr(record, column.name) for column in columns})
    return plan


def _with_derived(store: Store, namespace: str, request: EraseRequest, memory_ids: Sequence[str]) -> Plan:
    """Plan the deletion of memories with everything derived from them, and of the requested parts of the graph."""
    graph = store.graph(namespace)
    sources, live = _merged_from(store, namespace, memory_ids)
    roots = [*memory_ids, *sources]
    dependents: defaultdict[str, set[str]] = defaultdict(set)
    for id_, source_ids in store.derivations(namespace):
        for source in source_ids:
            dependents[source].add(id_)
    derived = sorted(_reachable(roots, dependents) - set(roots))
    parts = _parts(graph, request.ids, [*roots, *derived])
    revived, archived = _left_behind(store, namespace, {*roots, *derived})
    tagged = Filter(tags=(request.tag,), kinds=("artifact",)) if request.tag is not None else None
    files = [owner.path for _, owner in (plain_owners(store, namespace, tagged) if tagged else ()) if owner.path]
    mentions = chain(
        graph.mentions("entity", families(graph, parts["entities"])).values(),
        graph.mentions("relation", parts["relations"]).values(),
    )
    mentioning = sorted({mention.episode for group in mentions for mention in group}.difference(parts["episodes"]))
    notices = (
        ("archived memories that it was merged from are deleted too", sources),
        ("memories derived from it are deleted too, even if they have other sources", derived),
        ("it was derived from memories that are still live and stay", live),
        ("other memories that it was merged with become active again", revived),
        ("other memories that it was made from stay archived; `commonplace memory restore` brings them back", archived),
        ("indexed files have that tag too and stay; forget them by path", files),
        ("episodes that mention it stay; forget them by their ids", mentioning),
    )
    return Plan(
        memories=(*roots, *derived),
        derived=len(sources) + len(derived),
        revived=tuple(revived),
        parts=parts,
        notices=tuple(f"{sentence}: {_listed(ids)}" for sentence, ids in notices if ids),
    )


def _nothing(request: EraseRequest, missing: Sequence[str]) -> str:
    if missing:
        return f"there is nothing with the id {missing[0]!r:.80}"
    if request.agent is not None:
        return f"nothing is known of an agent {request.agent!r:.80}"
    for name in ("tag", "source", "session", "path"):
        value = getattr(request, name)
        if value is not None:
            return f"nothing has the {name} {value!r:.80}"
    return "nothing was named"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def plan_namespace(store: Store, namespace: str, is_served: bool = False) -> Plan:
    """Plan the deletion of everything in a namespace.

    Raises:
        NotFoundError: the namespace does not exist; the message lists existing ones unless the store is served.
    """
    existing = [name for name in store.namespaces() if name]
    if namespace not in existing:
        names = ", ".join(map(repr, existing[:_MAX_NAMESPACES])) or "none yet"
        more = ", …" if len(existing) > _MAX_NAMESPACES else ""
        remedy = "" if is_served else f"the store has {names}{more}"
        raise NotFoundError(f"there is no namespace {namespace!r:.80}", remedy=remedy)
    knowledge, graph = store.knowledge(namespace), store.graph(namespace)
    owners = dict(plain_owners(store, namespace, Filter()))
    owners |= {item.number: item.owner for item in (*knowledge.items(), *knowledge.items(deleted=True))}
    has_files = any(owner.path for owner in owners.values())
    return Plan(
        memories=tuple(memory.owner.id for memory in store.memories(namespace, Selection(order="id"))),
        owners=owners,
        contexts=tuple(context.name for context in knowledge.contexts()),
        parts={
            "episodes": tuple(part.id for part in graph.list_episodes(_ANY_TIME)),
            "entities": tuple(part.id for part in graph.list_entities(_ANY_TIME)),
            "relations": tuple(part.id for part in graph.list_relations(_ANY_TIME)),
        },
        outside=("the files that its artifacts came from are yours and stay",) if has_files else (),
    )


def archived_by(store: Store, namespace: str, cutoff: float) -> list[str]:
    archived = store.memories(namespace, Selection(statuses=("archived",), order="id"))
    return [memory.owner.id for memory in archived if memory.expired_at is not None and memory.expired_at <= cutoff]


def selection(request: EraseRequest) -> Selection:
    """Return the selection of memories by ids, tag, source or session."""
    return Selection(
        ids=request.ids,
        tags=() if request.tag is None else (request.tag,),
        sources=() if request.source is None else (request.source,),
        sessions=() if request.session is None else (request.session,),
        order="id",
    )


def _parts(graph: GraphReading, ids: Sequence[str], memories: Sequence[str]) -> Parts:
    """Return the parts of a graph that have these ids, and the episodes of these memories."""
    memory_episodes = (episode.id for id_ in memories for episode in graph.episodes_of_memory(id_))
    episodes = dict.fromkeys((*graph.episodes(ids), *memory_episodes))
    return {
        "episodes": tuple(episodes),
        "entities": tuple(graph.entities(ids)),
        "relations": tuple(graph.relations(ids)),
    }


def _owners(store: Store, namespace: str, request: EraseRequest, memories: Sequence[str]) -> dict[int, Owner]:
    """Return the requested owners other than memories, by number; tag and session select only documents."""
    if request.source is not None or (request.ids and set(memories).issuperset(request.ids)):
        return {}
    owners = dict[int, Owner]()
    if request.ids or request.agent is not None or request.archived_by is not None:
        knowledge, cutoff = store.knowledge(namespace), request.archived_by
        for item in (*knowledge.items(request.agent), *knowledge.items(request.agent, deleted=True)):
            is_old = cutoff is not None and item.deleted_at is not None and item.deleted_at <= cutoff
            if request.agent is not None or item.owner.id in request.ids or is_old:
                owners[item.number] = item.owner
    if request.agent is None and request.archived_by is None:
        for number, owner in plain_owners(store, namespace, Filter(tags=() if request.tag is None else (request.tag,))):
            if request.path is not None:
                is_requested = owner.path == request.path
            elif request.ids:
                is_requested = owner.id in request.ids and owner.id not in memories
            else:
                is_requested = not owner.path and request.session in (None, owner.session)
            if is_requested:
                owners[number] = owner
    return dict(sorted(owners.items()))


def _merged_from(store: Store, namespace: str, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return (archived, live) memories that the requested ones were derived from, directly or via archived ones."""
    seen, archived, live = set(ids), list[str](), list[str]()
    queue = list(ids)
    while queue:
        for version in store.versions(namespace, queue.pop()):
            for id_ in version.record.derived_from:
                source = None if id_ in seen else store.memory(namespace, id_)
                seen.add(id_)
                if source is None:
                    continue
                if source.expired_at is None:
                    live.append(id_)
                else:
                    archived.append(id_)
                    queue.append(id_)
    return sorted(archived), sorted(live)


def _reachable(ids: Iterable[str], edges: Mapping[str, set[str]]) -> set[str]:
    """Return the ids and all ids that can be reached from them."""
    reached = set(ids)
    queue = list(reached)
    while queue:
        unseen = edges.get(queue.pop(), set()) - reached
        reached |= unseen
        queue += unseen
    return reached


def _left_behind(store: Store, namespace: str, deleted: set[str]) -> tuple[list[str], list[str]]:
    """Return the archived memories that stay although something derived from them is deleted.

    Returns:
        (reactivated, archived): those that were archived by a merge into a live memory, in the same transaction; those
        that stay archived, since a user archived them or the memory that they were merged into.
    """
    merged, archived = defaultdict[str, set[str]](set), set[str]()
    reactivated = set[str]()
    for id_ in sorted(deleted):
        for version in store.versions(namespace, id_):
            if version.expired_at is None:
                reactivated.add(id_)
            for source_id in version.record.derived_from:
                source = store.memory(namespace, source_id)
                if source is not None and source.expired_at is not None:
                    archived.add(source_id)
                    if source.expired_at == max(version.created_at, source.created_at):
                        merged[id_].add(source_id)
    reactivated = _reachable(reactivated, merged)
    return sorted(reactivated - deleted), sorted(archived - reactivated - deleted)


def add_rows(plan: Plan, store: Store, namespace: str) -> None:
    """Count the rows to delete with the chosen memories, owners and contexts, and collect their traces."""
    versions = [row["owner"] for _, row in store.rows_of([(SCHEMA["memories"], {"id": plan.memories})], namespace)]
    owners = [*versions, *plan.owners]
    related: list[RowQuery] = [
        (SCHEMA["agent_contexts"], {"name": plan.contexts}),
        (SCHEMA["mirror_blocks"], {"id": plan.memories}),
        (SCHEMA["links"], {"source": plan.memories}),
        (SCHEMA["links"], {"target": plan.memories}),
    ]
    links, paths, passages = set[tuple[str, ...]](), set[str](), list[int]()
    dependent = store.hanging_rows(SCHEMA["owners"], namespace, owners)
    for table, row in chain(dependent, store.rows_of(related, namespace)):
        if table.name == "links":
            link = (row["source"], row["target"], row["type"])
            if link in links:  # both of its memories are deleted
                continue
            links.add(link)
        plan.rows[table.name] += 1
        plan.traces.add_row(table.columns, row)
        if table.name == "memories":
            paths.add(row["vault_path"])
        elif table.name == "passages":
            passages.append(row["number"])
    plan.passages[namespace] = tuple(passages)
    plan.vault_paths = tuple(sorted(paths - {""}))


def erase_parts(plan: Plan, store: Store, change: MemoryChange, runtime: GraphRuntime) -> None:
    """Remove the chosen parts from the graph of a change; add the deleted parts and their traces to the plan.

    Args:
        store: reads the state before the change.
    """
    graph, parts = change.graph, plan.parts
    # Everything that may change when these parts are removed is read before and after.
    mentioned, stated = subjects_of(graph, parts["episodes"])
    entities = families(graph, [*mentioned, *parts["entities"]])
    about = [*parts["relations"], *facts_about(graph, families(graph, parts["entities"]))]
    facts = graph.relations(list(dict.fromkeys([*stated, *about]))).values()
    keys = dict.fromkeys(key_of(fact, runtime.kinds) for fact in facts)
    changing = {
        "episodes": parts["episodes"],
        "entities": tuple(dict.fromkeys(entities)),
        "relations": tuple(dict.fromkeys(fact.id for key in keys for fact in facts_of(graph, key))),
    }
    before = list(change.rows_of(_row_queries(changing)))
    for kind, name in zip(GRAPH_KINDS, ("entities", "relations"), strict=True):
        namespace = texts_of(runtime.namespace, kind)
        _add_texts(plan, store, namespace, list(store.owner_numbers(namespace, kind, changing[name]).values()))
    if parts["episodes"]:
        take_out(graph, runtime, parts["episodes"])
    deleted_entities = families(graph, parts["entities"])
    remove_facts(graph, runtime, [*parts["relations"], *facts_about(graph, deleted_entities)])
    graph.erase_entities(deleted_entities)
    _add_deleted(plan, before, list(change.rows_of(_row_queries(changing))))


def plan_graph(plan: Plan, store: Store, namespace: str) -> None:
    """Plan the deletion of the whole graph of a namespace."""
    for texts_namespace in (texts_of(namespace, kind) for kind in GRAPH_KINDS):
        _add_texts(plan, store, texts_namespace, store.matching_owners(texts_namespace, Filter()))
    _add_deleted(plan, list(store.rows_of(_row_queries(plan.parts), namespace)), [])


def _add_texts(plan: Plan, store: Store, namespace: str, owners: Sequence[int]) -> None:
    """Collect the passages of a graph's texts, with their tokens and vectors."""
    numbers = plan.passages[namespace] = tuple(store.passages_of(namespace, owners))
    for begin in range(0, len(numbers), _BATCH_SIZE):
        for tokens in store.tokens(namespace, numbers[begin : begin + _BATCH_SIZE]).values():
            plan.traces.add_array(tokens.token_ids, TOKENS)
            plan.traces.add_array(tokens.vector, VECTOR)


def _row_queries(parts: Parts) -> list[RowQuery]:
    """Return the queries for the rows of parts of a graph and for their dependent rows."""
    queries: list[RowQuery] = [(SCHEMA[name], {"id": ids}) for name, ids in parts.items()]
    for table in SCHEMA.values():
        if table.told == ("entity",):
            queries.append((table, {"entity": parts["entities"]}))
        elif table.told == ("kind", "subject"):
            queries += [
                (table, {"kind": [kind], "subject": parts[name]})
                for kind, name in zip(GRAPH_KINDS, ("entities", "relations"), strict=True)
            ]
    return queries


def _add_deleted(plan: Plan, before: Rows, after: Rows) -> None:
    """Add to the plan the parts and values in `before` that are no longer in `after`."""

    def erasable(rows: Rows) -> Iterator[tuple[Table, str, Any]]:
        for table, row in rows:
            for column in table.columns:
                if column.is_erased and column.name != "id":
                    yield table, column.name, row[column.name]

    remaining = {(table.name, row["id"]) for table, row in after if table.name in NO_PARTS}
    deleted = [(table.name, row) for table, row in before if (table.name, row.get("id")) not in remaining]
    plan.removed_parts = {name: tuple(sorted(row["id"] for part, row in deleted if part == name)) for name in NO_PARTS}
    for id_ in chain.from_iterable(plan.removed_parts.values()):
        plan.traces.add_id(id_)
    remaining_values = {value for _, _, value in erasable(after)}
    for table, column, value in dict.fromkeys(erasable(before)):
        if value not in remaining_values:
            plan.traces.add_row((table[column],), {column: value})
    mentioned = {row["subject"] for table, row in before if table.name == "mentions" and row["kind"] == "relation"}
    plan.copied = {
        row["id"]: row["group"]
        for part, row in deleted
        if (part == "episodes" and not row["memory"]) or (part == "relations" and row["id"] not in mentioned)
    }
