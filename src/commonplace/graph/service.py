"""Change the graph: add, delete, merge and split, and settle disputes, each in one transaction.

Deleting a fact keeps the episodes that mention it. Facts that were ended or disputed only because of it hold again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from commonplace.dataclasses import replace
from commonplace.errors import NotFoundError, UsageError
from commonplace.graph.entities import MAX_ALIASES, Entities, known_by
from commonplace.graph.episodes import Added, add_episode, add_fact, bounded, prepare, take_out
from commonplace.graph.fact_keys import FactKeys
from commonplace.graph.facts import Assertion, Saying, assertion_of, fact_of
from commonplace.graph.names import names_among, normal
from commonplace.graph.runtime import GraphRuntime, all_merged, fact_text, merged_into, roots
from commonplace.graph.views import Addition, Deletion, Merging, QueryFilters, Settlement, Splitting, ViewBuilder
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Entity, Episode, GraphFilter, Relation

if TYPE_CHECKING:
    from commonplace.graph.graphiti.outbox import Outbox
    from commonplace.graph.model_extraction import Understood


class GraphService:
    """Changes the graph of one namespace and queues the changes for Graphiti if it is in use. Safe for threads."""

    def __init__(self, runtime: GraphRuntime, follower: Outbox | None = None) -> None:
        self._runtime = runtime
        self._follower = follower

    def add_episode(self, episode: Episode, understood: Understood, *, notices: Sequence[str] = ()) -> Addition:
        extraction, left_out = bounded(understood.extraction)
        prepare(self._runtime.texts, extraction)
        addition = self._added(lambda graph: add_episode(graph, self._runtime, episode, extraction))
        all_notices = (*notices, *understood.notices, *left_out, *addition.notices)
        return replace(addition, notices=all_notices, degraded=understood.is_degraded)

    def add_fact(self, assertion: Assertion, types: tuple[str, str]) -> Addition:
        self._runtime.texts.prepare([fact_text(assertion.text, assertion.type), assertion.source, assertion.target])
        return replace(self._added(lambda graph: add_fact(graph, self._runtime, assertion, types)), episode=None)

    def delete_episode(self, id_: str) -> Deletion:
        with self._runtime.change() as change:
            episode = change.graph.episodes([id_]).get(id_)
            if episode is None:
                raise NotFoundError(f"there is no episode {id_!r:.80}", remedy="see `commonplace graph episodes`")
            entities, relations, reopened = take_out(change.graph, self._runtime, [id_])
            if self._follower is not None:
                self._follower.deleted(change, id_, episode.group)
        return Deletion(id_, entities, relations, self._views.relations(reopened))

    def merge(self, keep: str, other: str, reason: str) -> Merging:
        with self._runtime.change() as change:
            graph = change.graph
            kept, gone = (find_entity(graph, name) for name in (keep, other))
            names = {alias.normal for rows in graph.aliases([kept.id, gone.id]).values() for alias in names_among(rows)}
            if len(names) > MAX_ALIASES:
                both = f"{kept.name!r:.80} and {gone.name!r:.80}"
                problem = f"{both} have {len(names):,} names, the limit of one is {MAX_ALIASES}"
                raise UsageError(problem, remedy="keep them apart, or split names off first")
            moved = Entities(graph, self._runtime).merge(kept, gone, reason)
        [entity, merged] = self._views.entities([kept.id, gone.id])
        return Merging(entity, merged, self._views.relations(moved), reason)

    def split(self, entity: str, names: Sequence[str], reason: str) -> Splitting:
        """Undo all merges into an entity or those of `names`; names that were never merged become a new entity."""
        with self._runtime.change() as change:
            graph = change.graph
            whole = find_entity(graph, entity)
            merged = list(graph.entities(merged_into(whole)).values())
            if not names and not merged:
                problem = f"nothing was merged into {whole.name!r:.80}"
                raise UsageError(problem, remedy="name what is to be an entity of its own")
            forms = {normal(name) for name in names}
            aliases = graph.aliases([member.id for member in merged])
            alias_forms = {member.id: {alias.normal for alias in aliases.get(member.id, ())} for member in merged}
            chosen = [member for member in merged if not forms or member.id in names or forms & alias_forms[member.id]]
            entities = Entities(graph, self._runtime)
            # Undo the latest merge first, so that each undo finds the state from before its merge.
            parts = entities.unmerge(whole, chosen[::-1], reason) if chosen else entities.part(whole, names, reason)
            relations = sorted(facts_about(graph, parts))
        [view, *other_views] = self._views.entities([whole.id, *parts])
        return Splitting(view, tuple(other_views), self._views.relations(relations), reason)

    def settle(self, relation: str, reason: str, verdict: str = "right") -> Settlement:
        with self._runtime.change() as change:
            graph = change.graph
            fact, facts = find_relation(graph, relation), FactKeys(graph, self._runtime)
            if not fact.dispute:
                raise UsageError(f"the fact {relation!r:.80} is not disputed", remedy="see `commonplace review`")
            now = said_at = max(self._runtime.now(), fact.created_at)
            saying: Saying = "beside" if verdict == "both" else "denied" if verdict == "ended" else "settled"
            if verdict == "ended":
                denial = denial_of(graph, fact.id)
                if denial is None:
                    raise UsageError(f"nothing says that {fact.id!r:.80} has ended", remedy="say which fact is right")
                said_at = denial.told
            settled = Assertion(fact.id, fact.source, fact.target, saying, fact.fact, now, said_at, reason=reason)
            facts.say(replace(settled, aspect=fact_of(fact).aspect, type=fact.type))
            changed = facts.finish()
        [right] = self._views.relations([fact.id])
        ended, retracted = map(self._views.relations, (changed.ended, changed.retracted))
        return Settlement(right, ended, retracted, reason)

    def _added(self, add: Callable[[GraphChange], Added]) -> Addition:
        with self._runtime.change() as change:
            added = add(change.graph)
            if self._follower is not None:
                self._follower.added(change, added)
        views = self._views
        entities = views.entities(added.entities, has_summaries=False)  # the new facts are returned beside them
        new, ended, disputed = map(views.relations, (added.changed.said, added.changed.ended, added.changed.disputed))
        return Addition(views.episode(added.episode), entities, new, ended, disputed, added.outcome, added.notices)

    @property
    def _views(self) -> ViewBuilder:
        return ViewBuilder(self._runtime.graph, QueryFilters(self._runtime.now()))


def find_entity(graph: GraphReading, name: str) -> Entity:
    """Return the entity of an id or a name; for a merged entity, the one that it was merged into.

    Raise a `NotFoundError` if no entity matches, or several have that name.
    """
    root = roots(graph, [name])[name]
    found = graph.entities([root]).get(root)
    if found is not None:
        return found
    candidates = graph.entities_by_name([normal(name)]).get(normal(name), [])
    matches = [entity for entity in candidates if normal(entity.name) == normal(name)] or candidates
    if len(matches) > 1:
        ids = ", ".join(f"{entity.id} ({entity.type})" for entity in matches[:5])
        raise NotFoundError(f"{name!r:.80} may mean {len(matches)} entities, {ids}", remedy="name one by its id")
    if matches:
        return matches[0]
    for type_ in ("concept", "person", "file"):
        likely = known_by(graph, name, type_)
        if likely is not None:
            return likely
    raise NotFoundError(f"there is no entity {name!r:.80}", remedy="see `commonplace graph entities QUERY`")


def denial_of(graph: GraphReading, relation: str) -> Assertion | None:
    """Return the latest disputed assertion that a fact has ended; None if there is none."""
    assertions = [assertion_of(event) for event in graph.happenings("relation", relation) if event.what == "disputed"]
    denials = [assertion for assertion in assertions if assertion is not None and assertion.saying == "denied"]
    return denials[-1] if denials else None


def find_relation(graph: GraphReading, id_: str) -> Relation:
    """Return the fact with an id; raise a `NotFoundError` if there is none."""
    found = graph.relations([id_]).get(id_)
    if found is None:
        raise NotFoundError(f"there is no fact {id_!r:.80}", remedy="see `commonplace graph facts QUERY`")
    return found


def families(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of entities and of all entities merged with them."""
    root_entities = graph.entities(list(dict.fromkeys(roots(graph, entities).values())))
    return [entity.id for root in root_entities.values() for entity in all_merged(graph, root)]


def facts_about(graph: GraphReading, entities: Sequence[str]) -> list[str]:
    """Return the ids of the facts that have one of these entities as an end, past facts included."""
    facts_by_entity = graph.relations_of(entities, GraphFilter(with_past=True))
    return list(dict.fromkeys(fact.id for facts in facts_by_entity.values() for fact in facts))


def remove_facts(graph: GraphChange, runtime: GraphRuntime, relations: Sequence[str]) -> None:
    removed = graph.relations(relations)
    FactKeys(graph, runtime).revise(removed.values(), lambda id_, said: None if id_ in removed else said)
