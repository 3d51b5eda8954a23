"""Select what a deletion covers: the requested items, everything derived from them, and the traces of both.

* A memory that was derived from a forgotten one, directly or through others, goes too, also where it has other sources
  as well: nobody knows which of its words came from where. The other sources stay.
* Of what a forgotten memory was itself merged from, the archived ones go: they are its text under another id, in no
  list. A source that is still live stays, and a notice names it.
* When a live memory goes that others were merged into, those of them that stay and that the merge archived are active
  again, since nothing live would say what they say.
* An agent's knowledge goes whole, with the agent's context and what was softly deleted.
* With a memory go the episodes that it is, with an episode the facts, entities and names that only it supported.
* With an entity goes every fact about it, with a fact all that is said of it. The episodes that speak of them stay.
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
from commonplace.graph.runtime import GraphRuntime
from commonplace.graph.service import facts_about, families, remove_facts
from commonplace.ledger.erase import Naming
from commonplace.store.graph import GraphReading
from commonplace.store.memories import MemoryChange
from commonplace.store.owners import plain_owners
from commonplace.store.rows import Asked
from commonplace.store.schema import SCHEMA, Table, table_of, texts_of
from commonplace.store.store import Store
from commonplace.types import GRAPH_KINDS, Filter, Owner, Selection, StoredMemory
from commonplace.types.graph import GraphFilter

Parts = Mapping[str, tuple[str, ...]]
"""Ids of parts of a graph, by their tables: episodes, entities and relations."""
Rows = Sequence[tuple[Table, dict[str, Any]]]

NO_PARTS: Final[Parts] = {"episodes": (), "entities": (), "relations": ()}
_AT_ONCE: Final = 500
_NAMED: Final = 3
_NAMESPACES_NAMED: Final = 10
_EVER: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be forgotten: exactly one of these is given.

    Attributes:
        ids: of memories, artifacts, documents, items of knowledge, episodes, entities, facts; each must be there.
        tag, source, session: of memories; a tag and a session of documents too.
        path: of an artifact, as it is stored.
        archived_by: the memories that were archived at that time or before, and nothing that is derived from them; the
            knowledge that was deleted.
        agent: whose knowledge it is.
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
    """What will be deleted, and everything that must be read before it is.

    Attributes:
        memories: ids, those requested first.
        derived: how many of them are copies of those.
        owners: artifacts, documents and knowledge by number.
        revived: ids of the memories that become active again, since what they were merged into goes.
        parts: of the graph, those requested, and the episodes of these memories.
        gone: all parts of the graph that go.
        outside: what stays, and is the user's.
        traces: patterns and words that would reveal it.
        rows: how many rows of each table go.
        passages: those that go, by namespace; of the graph's texts, also those that may have been rewritten.
        vault_paths: the notes that were written of the memories.
        naming: the ledger entries that name or quote them.
        in_process: ids of memories of this process that go, and were never stored.
        copied: the groups, by id, of the episodes that go and are no memories, and of the facts that no episode says:
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
    gone: Parts = field(default_factory=lambda: NO_PARTS)
    traces: Collector = field(default_factory=Collector)
    rows: Counter[str] = field(default_factory=Counter)
    passages: dict[str, tuple[int, ...]] = field(default_factory=dict)
    vault_paths: tuple[str, ...] = ()
    naming: Naming = field(default_factory=Naming)
    in_process: tuple[str, ...] = ()
    copied: dict[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.owners or self.contexts)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all that goes, each once."""
        owners = (owner.id for owner in self.owners.values())
        return tuple(dict.fromkeys((*self.memories, *owners, *chain(*self.gone.values()), *self.in_process)))

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
            **{name: len(ids) for name, ids in self.gone.items()},
            "issues": len(self.naming.issues),
            "reversals": len(self.naming.reversals),
            "log_lines": 0,
            "in_process": len(self.in_process),
            "vault_notes": 0,
        }


def choose(store: Store, namespace: str, wanted: Wanted, *, in_process: Sequence[StoredMemory] = ()) -> Plan:
    """Return what goes; see `erase.forget`."""
    graph = store.graph(namespace)
    if wanted.archived_by is not None:
        archived = tuple(archived_by(store, namespace, wanted.archived_by))
        return Plan(archived, owners=_owners(store, namespace, wanted, ()), parts=_parts(graph, (), archived))
    context, asked = None, list[str]()
    if wanted.agent is not None:
        context = store.knowledge(namespace).context(wanted.agent)
    elif wanted.ids:
        asked = [id_ for id_ in dict.fromkeys(wanted.ids) if store.memory(namespace, id_) is not None]
    elif wanted.path is None:
        asked = [memory.owner.id for memory in store.memories(namespace, selection(wanted))]
    owners = _owners(store, namespace, wanted, asked)
    of_graph = (id_ for ids in _parts(graph, wanted.ids, ()).values() for id_ in ids)
    never_stored = [each.owner.id for each in in_process]
    known = {*asked, *never_stored, *(owner.id for owner in owners.values()), *of_graph}
    missing = [id_ for id_ in wanted.ids if id_ not in known]
    if missing or not (known or context):
        raise NotFoundError(
            f"{_nothing(wanted, missing)} in this namespace; nothing was forgotten",
            remedy="see `commonplace list`",
        )
    plan = _with_derived(store, namespace, wanted, asked)
    plan.owners = owners
    plan.outside = tuple(
        f"the file {path} is yours and stays; the next `commonplace index build` indexes it again unless it is ignored"
        for path in sorted(owner.path for owner in owners.values() if owner.path)
    )
    plan.contexts = () if context is None else (context.name,)
    plan.in_process = tuple(never_stored)
    # Memories that were never stored leave traces too: a log may quote them. An id comes before words: a text that is
    # also the id is in the receipt, and betrays no more than that.
    for record in (record for memory in in_process for record in (memory.owner, memory.record)):
        columns = table_of(type(record)).record_columns
        plan.traces.add_row(columns, {column.name: getattr(record, column.name) for column in columns})
    return plan


def _with_derived(store: Store, namespace: str, wanted: Wanted, asked: Sequence[str]) -> Plan:
    """Return the plan for some memories, with all that is derived from them, and for the wanted parts of the graph."""
    graph = store.graph(namespace)
    sources, live = _merged_from(store, namespace, asked)
    roots = [*asked, *sources]
    made_from: defaultdict[str, set[str]] = defaultdict(set)
    for id_, its_sources in store.derivations(namespace):
        for source in its_sources:
            made_from[source].add(id_)
    derived = sorted(_reached(roots, made_from) - set(roots))
    parts = _parts(graph, wanted.ids, [*roots, *derived])
    revived, left = _left_behind(store, namespace, {*roots, *derived})
    tagged = Filter(tags=(wanted.tag,), kinds=("artifact",)) if wanted.tag is not None else None
    files = [owner.path for _, owner in (plain_owners(store, namespace, tagged) if tagged else ()) if owner.path]
    mentions = chain(
        graph.mentions("entity", families(graph, parts["entities"])).values(),
        graph.mentions("relation", parts["relations"]).values(),
    )
    mentioning = sorted({each.episode for some in mentions for each in some}.difference(parts["episodes"]))
    notices = (
        ("archived memories that it was merged from are deleted too", sources),
        ("memories derived from it are deleted too, even if they have other sources", derived),
        ("it was derived from memories that are still live and stay", live),
        ("other memories that it was merged with become active again", revived),
        ("other memories that it was made from stay archived; `commonplace memory restore` brings them back", left),
        ("indexed files have that tag too and stay; forget them by path", files),
        ("episodes that mention it stay; forget them by their ids", mentioning),
    )
    return Plan(
        memories=(*roots, *derived),
        derived=len(sources) + len(derived),
        revived=tuple(revived),
        parts=parts,
        notices=tuple(f"{what}: {_listed(ids)}" for what, ids in notices if ids),
    )


def _nothing(wanted: Wanted, missing: Sequence[str]) -> str:
    if missing:
        return f"there is nothing with the id {missing[0]!r:.80}"
    if wanted.agent is not None:
        return f"nothing is known of an agent {wanted.agent!r:.80}"
    for name in ("tag", "source", "session", "path"):
        value = getattr(wanted, name)
        if value is not None:
            return f"nothing has the {name} {value!r:.80}"
    return "nothing was named"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def all_of(store: Store, namespace: str, is_served: bool = False) -> Plan:
    """Return everything in a namespace.

    Raises:
        NotFoundError: there is none; unless the store is served, the others are named.
    """
    known = [name for name in store.namespaces() if name]
    if namespace not in known:
        named = ", ".join(map(repr, known[:_NAMESPACES_NAMED])) or "none yet"
        more = ", …" if len(known) > _NAMESPACES_NAMED else ""
        remedy = "" if is_served else f"the store has {named}{more}"
        raise NotFoundError(f"there is no namespace {namespace!r:.80}", remedy=remedy)
    knowledge, graph = store.knowledge(namespace), store.graph(namespace)
    owners = dict(plain_owners(store, namespace, Filter()))
    owners |= {item.number: item.owner for item in (*knowledge.items(), *knowledge.items(deleted=True))}
    is_of_files = any(owner.path for owner in owners.values())
    return Plan(
        memories=tuple(memory.owner.id for memory in store.memories(namespace, Selection(order="id"))),
        owners=owners,
        contexts=tuple(context.name for context in knowledge.contexts()),
        parts={
            "episodes": tuple(each.id for each in graph.list_episodes(_EVER)),
            "entities": tuple(each.id for each in graph.list_entities(_EVER)),
            "relations": tuple(each.id for each in graph.list_relations(_EVER)),
        },
        outside=("the files that its artifacts came from are yours and stay",) if is_of_files else (),
    )


def archived_by(store: Store, namespace: str, by: float) -> list[str]:
    archived = store.memories(namespace, Selection(statuses=("archived",), order="id"))
    return [each.owner.id for each in archived if each.expired_at is not None and each.expired_at <= by]


def selection(wanted: Wanted) -> Selection:
    """Return the selection of memories by ids, tag, source or session."""
    return Selection(
        ids=wanted.ids,
        tags=() if wanted.tag is None else (wanted.tag,),
        sources=() if wanted.source is None else (wanted.source,),
        sessions=() if wanted.session is None else (wanted.session,),
        order="id",
    )


def _parts(graph: GraphReading, ids: Sequence[str], memories: Sequence[str]) -> Parts:
    """Return the parts of a graph that have these ids, and the episodes that these memories are."""
    are_memories = (episode.id for id_ in memories for episode in graph.episodes_of_memory(id_))
    episodes = dict.fromkeys((*graph.episodes(ids), *are_memories))
    return {
        "episodes": tuple(episodes),
        "entities": tuple(graph.entities(ids)),
        "relations": tuple(graph.relations(ids)),
    }


def _owners(store: Store, namespace: str, wanted: Wanted, memories: Sequence[str]) -> dict[int, Owner]:
    """Return the other requested owners by number: any by id or path, only documents by tag or session."""
    if wanted.source is not None or (wanted.ids and set(memories).issuperset(wanted.ids)):
        return {}
    found = dict[int, Owner]()
    if wanted.ids or wanted.agent is not None or wanted.archived_by is not None:
        knowledge, by = store.knowledge(namespace), wanted.archived_by
        for item in (*knowledge.items(wanted.agent), *knowledge.items(wanted.agent, deleted=True)):
            is_old = by is not None and item.deleted_at is not None and item.deleted_at <= by
            if wanted.agent is not None or item.owner.id in wanted.ids or is_old:
                found[item.number] = item.owner
    if wanted.agent is None and wanted.archived_by is None:
        for number, owner in plain_owners(store, namespace, Filter(tags=() if wanted.tag is None else (wanted.tag,))):
            if wanted.path is not None:
                is_asked = owner.path == wanted.path
            elif wanted.ids:
                is_asked = owner.id in wanted.ids and owner.id not in memories
            else:
                is_asked = not owner.path and wanted.session in (None, owner.session)
            if is_asked:
                found[number] = owner
    return dict(sorted(found.items()))


def _merged_from(store: Store, namespace: str, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the archived memories that the requested ones were made from, also indirectly, and the live ones."""
    seen, archived, live = set(asked), list[str](), list[str]()
    waiting = list(asked)
    while waiting:
        for version in store.versions(namespace, waiting.pop()):
            for id_ in version.record.derived_from:
                source = None if id_ in seen else store.memory(namespace, id_)
                seen.add(id_)
                if source is None:
                    continue
                if source.expired_at is None:
                    live.append(id_)
                else:
                    archived.append(id_)
                    waiting.append(id_)
    return sorted(archived), sorted(live)


def _reached(ids: Iterable[str], beside: Mapping[str, set[str]]) -> set[str]:
    """Return the ids with all that can be reached from them."""
    reached = set(ids)
    waiting = list(reached)
    while waiting:
        new = beside.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _left_behind(store: Store, namespace: str, gone: set[str]) -> tuple[list[str], list[str]]:
    """Return the archived memories that stay, though something derived from them goes.

    Returns:
        Those that were archived by becoming part of what is live, which comes in one transaction; and those that stay
        archived, since somebody archived them, or what they had become part of.
    """
    merged, archived = defaultdict[str, set[str]](set), set[str]()
    carried = set[str]()
    for id_ in sorted(gone):
        for made in store.versions(namespace, id_):
            if made.expired_at is None:
                carried.add(id_)
            for source_id in made.record.derived_from:
                source = store.memory(namespace, source_id)
                if source is not None and source.expired_at is not None:
                    archived.add(source_id)
                    if source.expired_at == max(made.created_at, source.created_at):
                        merged[id_].add(source_id)
    carried = _reached(carried, merged)
    return sorted(carried - gone), sorted(archived - carried - gone)


def add_rows(plan: Plan, store: Store, namespace: str) -> None:
    """Count the rows that go with the chosen memories, owners and contexts, and collect their traces."""
    versions = [row["owner"] for _, row in store.rows_of([(SCHEMA["memories"], {"id": plan.memories})], namespace)]
    owners = [*versions, *plan.owners]
    beside: list[Asked] = [
        (SCHEMA["agent_contexts"], {"name": plan.contexts}),
        (SCHEMA["mirror_blocks"], {"id": plan.memories}),
        (SCHEMA["links"], {"source": plan.memories}),
        (SCHEMA["links"], {"target": plan.memories}),
    ]
    links, paths, passages = set[tuple[str, ...]](), set[str](), list[int]()
    hanging = store.hanging_rows(SCHEMA["owners"], namespace, owners)
    for table, row in chain(hanging, store.rows_of(beside, namespace)):
        if table.name == "links":
            link = (row["source"], row["target"], row["type"])
            if link in links:  # both of its memories go
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
    """Remove the chosen parts from a graph under change; the plan collects what went, and its traces.

    Args:
        store: what it reads is as it was before the change.
    """
    graph, parts = change.graph, plan.parts
    # All that may change when these parts are removed is read before and after.
    mentioned = [mention for some in graph.mentioned(parts["episodes"]).values() for mention in some]
    subjects = {kind: [each.subject for each in mentioned if each.kind == kind] for kind in GRAPH_KINDS}
    entities = families(graph, [*subjects["entity"], *parts["entities"]])
    about = [*parts["relations"], *facts_about(graph, families(graph, parts["entities"]))]
    facts = graph.relations(list(dict.fromkeys([*subjects["relation"], *about]))).values()
    keys = dict.fromkeys(key_of(each, runtime.kinds) for each in facts)
    changing = {
        "episodes": parts["episodes"],
        "entities": tuple(dict.fromkeys(entities)),
        "relations": tuple(dict.fromkeys(each.id for key in keys for each in facts_of(graph, key))),
    }
    before = list(change.rows_of(_rows_asked(changing)))
    for kind, name in zip(GRAPH_KINDS, ("entities", "relations"), strict=True):
        space = texts_of(runtime.namespace, kind)
        _add_texts(plan, store, space, list(store.owner_numbers(space, kind, changing[name]).values()))
    if parts["episodes"]:
        take_out(graph, runtime, parts["episodes"])
    gone = families(graph, parts["entities"])
    remove_facts(graph, runtime, [*parts["relations"], *facts_about(graph, gone)])
    graph.erase_entities(gone)
    _add_gone(plan, before, list(change.rows_of(_rows_asked(changing))))


def plan_all_parts(plan: Plan, store: Store, namespace: str) -> None:
    """Plan that the whole graph of a namespace goes."""
    for space in (texts_of(namespace, kind) for kind in GRAPH_KINDS):
        _add_texts(plan, store, space, store.matching_owners(space, Filter()))
    _add_gone(plan, list(store.rows_of(_rows_asked(plan.parts), namespace)), [])


def _add_texts(plan: Plan, store: Store, space: str, owners: Sequence[int]) -> None:
    """Collect the passages of a graph's texts, with their tokens and vectors."""
    numbers = plan.passages[space] = tuple(store.passages_of(space, owners))
    for begin in range(0, len(numbers), _AT_ONCE):
        for tokens in store.tokens(space, numbers[begin : begin + _AT_ONCE]).values():
            plan.traces.add_array(tokens.token_ids, TOKENS)
            plan.traces.add_array(tokens.vector, VECTOR)


def _rows_asked(parts: Parts) -> list[Asked]:
    """Return the queries for the rows of parts of a graph, and for those that belong to them."""
    asked: list[Asked] = [(SCHEMA[name], {"id": ids}) for name, ids in parts.items()]
    for table in SCHEMA.values():
        if table.told == ("entity",):
            asked.append((table, {"entity": parts["entities"]}))
        elif table.told == ("kind", "subject"):
            asked += [
                (table, {"kind": [kind], "subject": parts[name]})
                for kind, name in zip(GRAPH_KINDS, ("entities", "relations"), strict=True)
            ]
    return asked


def _add_gone(plan: Plan, before: Rows, after: Rows) -> None:
    """Collect what was there before and is gone afterwards."""

    def values(rows: Rows) -> Iterator[tuple[Table, str, Any]]:
        for table, row in rows:
            for column in table.columns:
                if column.is_erased and column.name != "id":
                    yield table, column.name, row[column.name]

    left = {(table.name, row["id"]) for table, row in after if table.name in NO_PARTS}
    of_parts = [(table.name, row) for table, row in before if (table.name, row.get("id")) not in left]
    plan.gone = {name: tuple(sorted(row["id"] for of, row in of_parts if of == name)) for name in NO_PARTS}
    for id_ in chain.from_iterable(plan.gone.values()):
        plan.traces.add_id(id_)
    kept = {value for _, _, value in values(after)}
    for table, column, value in dict.fromkeys(values(before)):
        if value not in kept:
            plan.traces.add_row((table[column],), {column: value})
    said = {row["subject"] for table, row in before if table.name == "mentions" and row["kind"] == "relation"}
    plan.copied = {
        row["id"]: row["group"]
        for of, row in of_parts
        if (of == "episodes" and not row["memory"]) or (of == "relations" and row["id"] not in said)
    }
