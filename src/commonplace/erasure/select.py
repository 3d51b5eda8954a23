"""Select what a deletion covers: the requested items and everything derived from them.

* A memory that was derived from a forgotten one, directly or through others, goes too, also where it has other sources
  as well: nobody can tell which of its words came from where. The other sources stay.
* Of what a forgotten memory was itself merged from, the archived ones go: they are its text under another id, in no
  list. A source that is still live stays, and a notice names it.
* When a live memory goes that others were merged into, those of them that stay and that the merge archived are active
  again, since nothing live would tell them any more.
* With a memory goes what the graph has of it alone; see `graph`.
* An agent's knowledge goes whole, what was softly deleted and the agent's context with it.

* With an episode goes what only it supported: facts, entities, names. With a memory go the episodes that it is.
* With an entity goes every fact about it, with a fact all that is said of it. The episodes that speak of them stay.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import NotFoundError
from commonplace.graph.service import families
from commonplace.store.graph import GraphReading
from commonplace.store.owners import plain_owners
from commonplace.store.store import Store
from commonplace.types import Filter, Owner, Selection


@dataclass(frozen=True, slots=True)
class Parts:
    """Ids of parts of a graph."""

    episodes: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.episodes, *self.entities, *self.relations)


def choose_parts(graph: GraphReading, ids: Sequence[str], memories: Sequence[str]) -> Parts:
    """Return what goes of a graph because of these ids, and of these memories that go."""
    episodes = list(graph.episodes(ids))
    for id_ in memories if graph.counts().episodes else ():
        episodes += (episode.id for episode in graph.episodes_of_memory(id_))
    return Parts(tuple(dict.fromkeys(episodes)), tuple(graph.entities(ids)), tuple(graph.relations(ids)))


_NAMED: Final = 3
_NAMESPACES_NAMED: Final = 10


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


@dataclass(frozen=True, slots=True)
class Chosen:
    """What goes.

    Attributes:
        memories: ids, those that were asked for first.
        derived: how many of them are copies of those.
        owners: artifacts, documents and the like by number.
        contexts: names of agents.
        revived: ids of the memories that are active again, since what they were merged into goes.
        parts: of the graph, those that were asked for, and the episodes that these memories are.
    """

    memories: tuple[str, ...] = ()
    derived: int = 0
    owners: Mapping[int, Owner] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    revived: tuple[str, ...] = ()
    parts: Parts = field(default_factory=Parts)

    @property
    def is_empty(self) -> bool:
        return not (self.memories or self.owners or self.contexts or self.parts.ids)

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.memories, *(owner.id for owner in self.owners.values()))


def choose(store: Store, namespace: str, wanted: Wanted, *, in_process: Sequence[str] = ()) -> Chosen:
    """Return what goes.

    Args:
        in_process: ids that were found among the memories of this process already.

    Raises:
        NotFoundError: nothing matches, or one of the ids is of nothing.
    """
    graph = store.graph(namespace)
    if wanted.archived_by is not None:
        archived = tuple(archived_by(store, namespace, wanted.archived_by))
        owners = _owners(store, namespace, wanted, set())
        return Chosen(archived, owners=owners, parts=choose_parts(graph, (), archived))
    context = None if wanted.agent is None else store.knowledge(namespace).context(wanted.agent)
    asked = _memories(store, namespace, wanted)
    owners = _owners(store, namespace, wanted, set(asked))
    known = {*asked, *in_process, *(owner.id for owner in owners.values()), *choose_parts(graph, wanted.ids, ()).ids}
    missing = [id_ for id_ in wanted.ids if id_ not in known]
    if missing or not (known or context):
        named = f"there is nothing with the id {missing[0]!r:.80}" if missing else f"nothing {_described(wanted)}"
        raise NotFoundError(
            f"{named} in namespace {namespace!r}; nothing was forgotten", remedy="see `commonplace list`"
        )
    sources, live = _merged_from(store, namespace, asked)
    roots = [*asked, *sources]
    derived = _derived(store, namespace, roots)
    parts = choose_parts(graph, wanted.ids, [*roots, *derived])
    revived, left = _left_behind(store, namespace, {*roots, *derived})
    told = (
        ("archived memories that it was merged from are deleted too", sources),
        ("memories derived from it are deleted too, even if they have other sources", derived),
        ("it was derived from memories that are still live and stay", live),
        ("other memories that it was merged with become active again", revived),
        ("other memories that it was made from stay archived; `commonplace memory restore` brings them back", left),
        ("indexed files have that tag too and stay; forget them by path", _tagged_files(store, namespace, wanted)),
        ("episodes that mention it stay; forget them by their ids", _staying(graph, parts)),
    )
    return Chosen(
        memories=(*roots, *derived),
        derived=len(sources) + len(derived),
        owners=owners,
        notices=tuple(f"{what}: {_listed(ids)}" for what, ids in told if ids),
        outside=tuple(
            f"the file {path} is yours and stays; the next `commonplace index build` indexes it again unless it is"
            " ignored"
            for path in sorted(owner.path for owner in owners.values() if owner.path)
        ),
        contexts=() if context is None else (context.name,),
        revived=tuple(revived),
        parts=parts,
    )


def all_of(store: Store, namespace: str, is_served: bool = False) -> Chosen:
    """Return everything in a namespace.

    Args:
        is_served: whoever asks may not know of other namespaces.

    Raises:
        NotFoundError: there is no such namespace.
    """
    known = [name for name in store.namespaces() if name]
    if namespace not in known:
        named = ", ".join(map(repr, known[:_NAMESPACES_NAMED])) or "none yet"
        more = ", …" if len(known) > _NAMESPACES_NAMED else ""
        remedy = "" if is_served else f"the store has {named}{more}"
        raise NotFoundError(f"there is no namespace {namespace!r:.80}", remedy=remedy)
    memories = tuple(memory.owner.id for memory in store.memories(namespace, Selection(order="id")))
    owners = dict(plain_owners(store, namespace, Filter()))
    knowledge = store.knowledge(namespace)
    owners |= {item.number: item.owner for item in (*knowledge.items(), *knowledge.items(deleted=True))}
    is_of_files = any(owner.path for owner in owners.values())
    return Chosen(
        memories,
        owners=owners,
        outside=("the files that its artifacts came from are yours and stay",) if is_of_files else (),
        contexts=tuple(context.name for context in store.knowledge(namespace).contexts()),
    )


def archived_by(store: Store, namespace: str, by: float) -> list[str]:
    archived = store.memories(namespace, Selection(statuses=("archived",), order="id"))
    return [each.owner.id for each in archived if each.expired_at is not None and each.expired_at <= by]


def _memories(store: Store, namespace: str, wanted: Wanted) -> list[str]:
    """Return the memories that were asked for, live and archived, those asked for by id in their order."""
    if wanted.ids:
        return [id_ for id_ in dict.fromkeys(wanted.ids) if store.memory(namespace, id_) is not None]
    if wanted.path is not None or wanted.agent is not None:
        return []
    selection = Selection(
        tags=() if wanted.tag is None else (wanted.tag,),
        sources=() if wanted.source is None else (wanted.source,),
        sessions=() if wanted.session is None else (wanted.session,),
        order="id",
    )
    return [memory.owner.id for memory in store.memories(namespace, selection)]


def _owners(store: Store, namespace: str, wanted: Wanted, memories: set[str]) -> dict[int, Owner]:
    """Return what else was asked for by number: by id or path whatever it is, by tag or session what is no file."""
    if wanted.source is not None or (wanted.ids and memories.issuperset(wanted.ids)):
        return {}
    found = dict[int, Owner]()
    if wanted.ids or wanted.agent is not None or wanted.archived_by is not None:
        knowledge, by = store.knowledge(namespace), wanted.archived_by
        for item in (*knowledge.items(wanted.agent), *knowledge.items(wanted.agent, deleted=True)):
            is_old = by is not None and item.deleted_at is not None and item.deleted_at <= by
            if wanted.agent is not None or item.owner.id in wanted.ids or is_old:
                found[item.number] = item.owner
    if wanted.agent is None and wanted.archived_by is None:
        limits = Filter() if wanted.tag is None else Filter(tags=(wanted.tag,))
        found |= dict(plain_owners(store, namespace, limits))
    return {number: owner for number, owner in sorted(found.items()) if _is_asked(owner, wanted, memories)}


def _is_asked(owner: Owner, wanted: Wanted, memories: set[str]) -> bool:
    if wanted.path is not None:
        return owner.path == wanted.path
    if wanted.ids:
        return owner.id in wanted.ids and owner.id not in memories
    return not owner.path and wanted.session in (None, owner.session)


def _merged_from(store: Store, namespace: str, asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the archived memories that the asked ones were made from, through others too, and the live ones."""
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


def _derived(store: Store, namespace: str, roots: Sequence[str]) -> list[str]:
    """Return the memories any version of which was made from one of the roots, directly or through others."""
    made_from: defaultdict[str, set[str]] = defaultdict(set)
    for id_, sources in store.derivations(namespace):
        for source in sources:
            made_from[source].add(id_)
    return sorted(_reached(roots, made_from) - set(roots))


def _reached(ids: Iterable[str], beside: Mapping[str, set[str]]) -> set[str]:
    """Return the ids with all that lie beside them, and beside those."""
    reached = set(ids)
    waiting = list(reached)
    while waiting:
        new = beside.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def _left_behind(store: Store, namespace: str, gone: set[str]) -> tuple[list[str], list[str]]:
    """Return the archived memories that stay and that something was made from which goes.

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


def _tagged_files(store: Store, namespace: str, wanted: Wanted) -> list[str]:
    tagged = Filter(tags=(wanted.tag,), kinds=("artifact",)) if wanted.tag is not None else None
    return [owner.path for _, owner in (plain_owners(store, namespace, tagged) if tagged else ()) if owner.path]


def _staying(graph: GraphReading, chosen: Parts) -> list[str]:
    """Return the episodes that speak of what was asked for, and stay."""
    entities = graph.mentions("entity", families(graph, chosen.entities)).values()
    found = [*entities, *graph.mentions("relation", chosen.relations).values()]
    return sorted({mention.episode for some in found for mention in some} - set(chosen.episodes))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _described(wanted: Wanted) -> str:
    if wanted.agent is not None:
        return f"is known of an agent {wanted.agent!r:.80}"
    for name in ("tag", "source", "session", "path"):
        value = getattr(wanted, name)
        if value is not None:
            return f"has the {name} {value!r:.80}"
    return "was named"
