"""Change the graph: add, delete, merge, split, settle disputes, each in one transaction.

Deleting a fact keeps the episodes that mention it. Facts that had ended or were disputed only because of a deleted one
hold again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commonplace.dataclasses import replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.entities import MAX_ALIASES, Entities, known_by
from commonplace.graph.episodes import Added, add_episode, add_fact, bounded, prepare, take_out
from commonplace.graph.fact_keys import FactKeys
from commonplace.graph.facts import Assertion, Saying, assertion_of, fact_of
from commonplace.graph.names import names_among, normal
from commonplace.graph.runtime import GraphRuntime, all_merged, fact_text, merged_into, roots
from commonplace.graph.views import Addition, Deletion, Merging, Settlement, Splitting, ViewBuilder, Wanted
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Entity, Episode, GraphFilter, Relation

if TYPE_CHECKING:
    from commonplace.graph.graphiti.outbox import Outbox
    from commonplace.graph.model_extraction import Understood


class GraphService:
    """Changes the graph of one namespace, and queues the changes for Graphiti if that is used. Safe for threads."""

    def __init__(self, runtime: GraphRuntime, follower: Outbox | None = None) -> None:
        self._runtime = runtime
        self._follower = follower

    def add_episode(self, episode: Episode, understood: Understood, *, notices: Sequence[str] = ()) -> Addition:
        extraction, left_out = bounded(understood.extraction)
        prepare(self._runtime.texts, extraction)
        with self._runtime.change() as change:
            added = add_episode(change.graph, self._runtime, episode, extraction)
            if self._follower is not None:
                self._follower.added(change, added)
        told = (*notices, *understood.notices, *left_out, *added.notices)
        return replace(self._addition(replace(added, notices=told)), degraded=understood.is_degraded)

    def add_fact(self, given: Assertion, types: tuple[str, str]) -> Addition:
        self._runtime.texts.prepare([fact_text(given.text, given.type), given.source, given.target])
        with self._runtime.change() as change:
            added = add_fact(change.graph, self._runtime, given, types)
            if self._follower is not None:
                self._follower.added(change, added)
        return replace(self._addition(added), episode=None)

    def delete_episode(self, id_: str) -> Deletion:
        with self._runtime.change() as change:
            known = change.graph.episodes([id_]).get(id_)
            if known is None:
                raise NotFoundError(f"there is no episode {id_!r:.80}", remedy="see `commonplace graph episodes`")
            entities, relations, reopened = take_out(change.graph, self._runtime, [id_])
            if self._follower is not None:
                self._follower.deleted(change, id_, known.group)
        return Deletion(id_, entities, relations, self._views.relations(reopened))

    def merge(self, keep: str, other: str, reason: str) -> Merging:
        with self._runtime.change() as change:
            graph = change.graph
            kept, gone = (find_entity(graph, each) for each in (keep, other))
            names = {each.normal for some in graph.aliases([kept.id, gone.id]).values() for each in names_among(some)}
            if len(names) > MAX_ALIASES:
                raise UsageError(
                    f"{kept.name!r:.80} and {gone.name!r:.80} have {len(names):,} names, the limit of one is"
                    f" {MAX_ALIASES}",
                    remedy="keep them apart, or split names off first",
                )
            moved = Entities(graph, self._runtime).merge(kept, gone, reason)
        [entity, merged] = self._views.entities([kept.id, gone.id])
        return Merging(entity, merged, self._views.relations(moved), reason)

    def split(self, entity: str, names: Sequence[str], reason: str) -> Splitting:
        """Undo merges, of all or of those whose names are given; or part names that were never apart."""
        with self._runtime.change() as change:
            graph = change.graph
            split = find_entity(graph, entity)
            merged = list(graph.entities(merged_into(split)).values())
            if not names and not merged:
                raise UsageError(
                    f"nothing was merged into {split.name!r:.80}", remedy="name what is to be an entity of its own"
                )
            forms = {normal(each) for each in names}
            aliases = graph.aliases([each.id for each in merged])
            borne = {each.id: {alias.normal for alias in aliases.get(each.id, ())} for each in merged}
            chosen = [each for each in merged if not forms or each.id in names or forms & borne[each.id]]
            entities = Entities(graph, self._runtime)
            # The last that was merged goes first: so each finds what was there before it came.
            parted = entities.unmerge(split, chosen[::-1], reason) if chosen else entities.part(split, names, reason)
            relations = sorted(facts_about(graph, parted))
        [kept, *others] = self._views.entities([split.id, *parted])
        return Splitting(kept, tuple(others), self._views.relations(relations), reason)

    def settle(self, relation: str, reason: str, verdict: str = "right") -> Settlement:
        with self._runtime.change() as change:
            graph = change.graph
            fact, facts = find_relation(graph, relation), FactKeys(graph, self._runtime)
            if not fact.dispute:
                raise UsageError(f"the fact {relation!r:.80} is not disputed", remedy="see `commonplace review`")
            now = told = max(self._runtime.now(), fact.created_at)
            saying: Saying = "beside" if verdict == "both" else "denied" if verdict == "ended" else "settled"
            if verdict == "ended":
                denial = denial_of(graph, fact.id)
                if denial is None:
                    raise UsageError(f"nothing says that {fact.id!r:.80} has ended", remedy="say which fact is right")
                told = denial.told
            settled = Assertion(fact.id, fact.source, fact.target, saying, fact.fact, now, told, reason=reason)
            facts.say(replace(settled, aspect=fact_of(fact).aspect, type=fact.type))
        [right] = self._views.relations([fact.id])
        ended, retracted = map(self._views.relations, (facts.changed.ended, facts.changed.retracted))
        return Settlement(right, ended, retracted, reason)

    def _addition(self, added: Added) -> Addition:
        build = self._views
        entities = build.entities(added.entities, has_summaries=False)  # the new facts are returned beside them
        new, ended, disputed = map(build.relations, (added.changed.said, added.changed.ended, added.changed.disputed))
        return Addition(build.episode(added.episode), entities, new, ended, disputed, added.outcome, added.notices)

    @property
    def _views(self) -> ViewBuilder:
        return ViewBuilder(self._runtime.graph, Wanted(self._runtime.now()))


def find_entity(graph: GraphReading, name: str) -> Entity:
    """Return the entity of an id or a name; what was merged into another is that other.

    Raises:
        NotFoundError: there is none, or several of that name.
    """
    root = roots(graph, [name])[name]
    found = graph.entities([root]).get(root)
    if found is not None:
        return found
    named = graph.named([normal(name)]).get(normal(name), [])
    own = [each for each in named if normal(each.name) == normal(name)] or named
    if len(own) > 1:
        ids = ", ".join(f"{each.id} ({each.type})" for each in own[:5])
        raise NotFoundError(f"{name!r:.80} may mean {len(own)} entities, {ids}", remedy="name one by its id")
    if own:
        return own[0]
    for type_ in ("concept", "person", "file"):
        near = known_by(graph, name, type_)
        if near is not None:
            return near
    raise NotFoundError(f"there is no entity {name!r:.80}", remedy="see `commonplace graph entities QUERY`")


def denial_of(graph: GraphReading, relation: str) -> Assertion | None:
    """Return what says that a fact has ended, which was not believed, None where nothing does."""
    found = [assertion_of(each) for each in graph.happenings("relation", relation) if each.what == "disputed"]
    denied = [each for each in found if each is not None and each.saying == "denied"]
    return denied[-1] if denied else None


def find_relation(graph: GraphReading, id_: str) -> Relation:
    """Return the fact of an id.

    Raises:
        NotFoundError: there is none.
    """
    found = graph.relations([id_]).get(id_)
    if found is None:
        raise NotFoundError(f"there is no fact {id_!r:.80}", remedy="see `commonplace graph facts QUERY`")
    return found


def families(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of entities with all that they were merged with: they are one thing."""
    found = graph.entities(list(dict.fromkeys(roots(graph, entities).values())))
    return [each.id for root in found.values() for each in all_merged(graph, root)]


def facts_about(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of the facts of which one of these entities is an end, past ones too."""
    found = graph.relations_of(entities, GraphFilter(with_past=True))
    return list(dict.fromkeys(each.id for some in found.values() for each in some))


def remove_facts(graph: GraphChange, runtime: GraphRuntime, relations: Sequence[str]) -> None:
    gone = set(relations)
    FactKeys(graph, runtime).revise(
        graph.relations(relations).values(), lambda id_, said: None if id_ in gone else said
    )
