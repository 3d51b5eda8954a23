"""Ask a graph: find, look around, go through time. It takes checked values, and never writes."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from commonplace.errors import NotFoundError
from commonplace.graph.communities import communities
from commonplace.graph.describing import describe
from commonplace.graph.finding import FAN_OUT, GraphFinder, Search, Wanted, adjacent
from commonplace.graph.keeping import find_entity, find_relation
from commonplace.graph.seeing import Seeing, Times
from commonplace.graph.traversal import outward, shortest_path
from commonplace.graph.views import (
    Community,
    Dispute,
    FoundEntities,
    FoundRelations,
    GraphContext,
    GraphPath,
    GraphStats,
    History,
    HistoryEntry,
    Subgraph,
    Timeline,
    TimelineEntry,
)
from commonplace.times import moment_of
from commonplace.types.graph import Entity, GraphFilter, Relation, Subject

if TYPE_CHECKING:
    from commonplace.graph.describing import CountTokens
    from commonplace.graph.ground import Ground
    from commonplace.graph.views import EntityView, EpisodeView, RelationView
    from commonplace.store.graph_contract import GraphReading

COMMUNITIES: Final = uuid.UUID("8c7a4a52-94de-5f1b-b0b4-0f4a2f1f6f53")
"""Namespace of the UUIDv5 of communities, named by their sorted members."""
MOST_VISITED: Final = 20_000
MOST_MEMBERS: Final = 10
_BETWEEN: Final = 100
"""Facts of one entity that are looked at to find those between entities at the rim."""


class GraphReader:
    """Answers questions about the graph of one namespace. Safe for threads."""

    def __init__(self, ground: Ground, search: Search, words_of: Callable[[str, int], str]) -> None:
        self._ground = ground
        self._search = search
        self._words_of = words_of

    @property
    def _graph(self) -> GraphReading:
        return self._ground.graph

    def search_entities(self, query: str, limit: int, wanted: Wanted) -> FoundEntities:
        """Return entities that answer a query; see `Graph.search_entities`."""
        found = GraphFinder(self._ground, self._search).entities(query, limit, wanted)
        stored = self._graph.entities(found.ids)
        views = Seeing(self._graph, wanted.times).entities(
            (stored[id_] for id_ in found.ids if id_ in stored), found.scores, found.distances
        )
        return FoundEntities(query, views, found.is_degraded, found.notices)

    def search_relations(self, query: str, limit: int, wanted: Wanted) -> FoundRelations:
        """Return facts that answer a query; see `Graph.search_edges`."""
        found = GraphFinder(self._ground, self._search).relations(query, limit, wanted)
        stored = self._graph.relations(found.ids)
        views = Seeing(self._graph, wanted.times).relations(
            (stored[id_] for id_ in found.ids if id_ in stored), found.scores
        )
        return FoundRelations(query, views, found.is_degraded, found.notices)

    def entity(self, name: str, times: Times) -> EntityView:
        """Return an entity by its id or name."""
        return self._one(find_entity(self._graph, self._ground, name), times)

    def relation(self, id_: str, times: Times) -> RelationView:
        """Return a fact by its id."""
        return Seeing(self._graph, times).relations([find_relation(self._graph, id_)])[0]

    def neighbourhood(self, name: str, depth: int, limit: int, times: Times) -> Subgraph:
        """Return what lies about an entity; see `Graph.neighbourhood`."""
        graph = self._graph
        centre = find_entity(graph, self._ground, name)
        near = outward([centre.id], adjacent(graph, times), depth=depth, limit=limit, fan_out=FAN_OUT)
        distances = {each.id: each.distance for each in near.reached}
        edges = dict.fromkeys(each.edge for each in near.crossings)
        rim = [each.id for each in near.reached if each.distance == depth]
        for some in graph.edges_of(rim, times.filter(), limit=_BETWEEN, among=distances).values():
            edges.update({each.id: None for each in some})
        stored, relations = graph.entities(list(distances)), graph.relations(list(edges))
        seeing = Seeing(graph, times)
        return Subgraph(
            centre.id,
            seeing.entities(
                (stored[id_] for id_ in distances if id_ in stored), distances=distances, has_summaries=False
            ),
            seeing.relations(sorted(relations.values(), key=lambda each: _nearest(each, distances))),
            near.is_capped,
        )

    def path(self, source: str, target: str, max_depth: int, times: Times) -> GraphPath:
        """Return a shortest way between two entities; see `Graph.path`."""
        graph = self._graph
        start, goal = (find_entity(graph, self._ground, each).id for each in (source, target))
        found = shortest_path(
            start, goal, adjacent(graph, times), max_depth=max_depth, max_visited=MOST_VISITED, fan_out=FAN_OUT
        )
        stored, relations, seeing = graph.entities(found.ids), graph.relations(found.edges), Seeing(graph, times)
        return GraphPath(
            seeing.entities((stored[id_] for id_ in found.ids), has_summaries=False),
            seeing.relations(relations[id_] for id_ in found.edges),
            found.is_capped,
        )

    def timeline(self, name: str, limit: int, times: Times) -> Timeline:
        """Return what began and ended for an entity; see `Graph.timeline`."""
        entity = find_entity(self._graph, self._ground, name)
        found = self._graph.relations_of([entity.id], times.filter(), limit=limit).get(entity.id, [])
        views = Seeing(self._graph, times).relations(each for each in found if not times.known(each)[2])
        entries = [TimelineEntry(each.valid_from, "began", each) for each in views]
        entries += [TimelineEntry(each.valid_to, "ended", each) for each in views if each.valid_to is not None]
        entries.sort(key=lambda each: (each.what, each.relation.fact, each.relation.uuid))
        entries.sort(key=lambda each: (each.at is not None, 0.0 if each.at is None else each.at.timestamp()))
        return Timeline(self._one(entity, times), tuple(entries))

    def history(self, id_: str) -> History:
        """Return what happened to an entity or a fact; see `Graph.history`."""
        graph = self._graph
        if graph.relations([id_]):
            return _history(graph, "relation", id_)
        entity = graph.entities([id_]).get(id_) or find_entity(graph, self._ground, id_)
        return _history(graph, "entity", entity.id)

    def episodes(self, limit: int, groups: tuple[str, ...], times: Times) -> tuple[EpisodeView, ...]:
        """Return episodes, newest first; see `Graph.episodes`."""
        found = self._graph.list_episodes(GraphFilter(groups=groups, known_at=times.as_of), limit=limit)
        seeing = Seeing(self._graph, times)
        return tuple(seeing.episode(each, self._words_of(each.memory, each.version)) for each in found)

    def episode(self, id_: str) -> EpisodeView:
        """Return an episode by its id."""
        found = self._graph.episodes([id_]).get(id_)
        if found is None:
            raise NotFoundError(f"there is no episode {id_!r:.80}", remedy="see `commonplace graph episodes`")
        seeing = Seeing(self._graph, Times(self._ground.now()))
        return seeing.episode(found, self._words_of(found.memory, found.version))

    def communities(self, limit: int, times: Times) -> tuple[Community, ...]:
        """Return entities that hang together; see `Graph.communities`."""
        graph = self._graph
        # What each fact weighs is left out: to read half a million of them would cost more than it tells.
        edges = {id_: (source, target) for id_, source, target in graph.pairs(times.filter())}
        ids = dict.fromkeys(end for ends in edges.values() for end in ends)
        found = communities(ids, [(*ends, 1.0) for ends in edges.values()])
        group_of = {id_: place for place, group in enumerate(found.groups) for id_ in group}
        inside = Counter(group_of[source] for source, target in edges.values() if group_of[source] == group_of[target])
        degrees = Counter(end for ends in edges.values() for end in ends)
        seeing = Seeing(graph, times)
        views = []
        for place, group in enumerate(found.groups[:limit]):
            if len(group) < _FEWEST_MEMBERS:
                break
            first = sorted(group, key=lambda id_: (-degrees[id_], id_))[:MOST_MEMBERS]
            stored = sorted(graph.entities(first).values(), key=lambda each: (-degrees[each.id], each.name, each.id))
            members = seeing.entities(stored, has_summaries=False)
            id_ = str(uuid.uuid5(COMMUNITIES, "\n".join(group)))
            views.append(Community(id_, members[0].name if members else "", members, len(group), inside[place]))
        return tuple(views)

    def disputes(self) -> tuple[Dispute, ...]:
        """Return what is disputed, oldest first."""
        seeing = Seeing(self._graph, Times(self._ground.now()))
        found = []
        for id_, some in groupby(self._graph.disputed(), key=lambda each: each.dispute):
            facts = sorted(some, key=lambda each: (each.created_at, each.id))
            since = min((each.disputed_at for each in facts if each.disputed_at is not None), default=0.0)
            found.append(Dispute(id_, moment_of(since), seeing.relations(facts)))
        return tuple(sorted(found, key=lambda each: (each.since, each.uuid)))

    def stats(self) -> GraphStats:
        """Return what the graph holds."""
        graph = self._graph
        counts = graph.counts()
        times = Times(self._ground.now(), with_past=True)
        now = Times(self._ground.now())
        relations = graph.list_relations(times.filter())
        return GraphStats(
            counts.episodes,
            counts.entities,
            counts.relations,
            sum(now.shows(each) for each in relations),
            counts.disputed,
            _most(each.type for each in graph.list_entities(GraphFilter())),
            _most(each.type for each in relations),
        )

    def context(self, asked: AskedContext, count: CountTokens) -> GraphContext:
        """Return what is known of some entities as text; see `Graph.build_context`."""
        graph, times = self._graph, asked.times
        found: dict[str, Entity] = {}
        missing = []
        for name in asked.names:
            try:
                entity = find_entity(graph, self._ground, name)
                found[entity.id] = entity
            except NotFoundError:
                missing.append(name)
        centre = find_entity(graph, self._ground, asked.centre).id if asked.centre else ""
        starts = [*found, *([centre] if centre and centre not in found else [])]
        scores: dict[str, float] = {}
        is_degraded, notices = False, tuple[str, ...]()
        if asked.query.strip():
            wanted = Wanted(times, centre=centre or next(iter(starts), ""))
            told = GraphFinder(self._ground, self._search).relations(asked.query, asked.max_facts, wanted)
            scores.update({id_: told.scores[id_] for id_ in told.ids})
            is_degraded, notices = told.is_degraded, told.notices
        near = outward(starts, adjacent(graph, times), depth=_DEPTH, limit=_AROUND, fan_out=FAN_OUT)
        distances = {each.id: each.distance for each in near.reached}
        facts = graph.relations(list(dict.fromkeys([*scores, *(each.edge for each in near.crossings)])))
        chosen = sorted(facts.values(), key=lambda each: _worth(each, distances, scores))[: asked.max_facts]
        ends = dict.fromkeys([*starts, *(end for each in chosen for end in (each.source, each.target))])
        stored, seeing = graph.entities(list(ends)), Seeing(graph, times)
        text, entities, kept = describe(
            seeing.entities((stored[id_] for id_ in ends if id_ in stored), distances=distances, has_summaries=False),
            seeing.relations(chosen, scores),
            max_tokens=asked.max_tokens,
            count=count,
        )
        return GraphContext(text, entities, kept, count(text), tuple(missing), is_degraded, notices)

    def _one(self, entity: Entity, times: Times) -> EntityView:
        return Seeing(self._graph, times).entities([entity])[0]


@dataclass(frozen=True, slots=True)
class AskedContext:
    """What `build_context` is asked for, checked."""

    names: tuple[str, ...]
    max_facts: int
    centre: str
    query: str
    max_tokens: int
    times: Times


_FEWEST_MEMBERS: Final = 2
_DEPTH: Final = 2
_AROUND: Final = 200


def _history(graph: GraphReading, kind: Subject, id_: str) -> History:
    entries = [
        HistoryEntry(moment_of(each.at), each.what, each.reason, each.episode) for each in graph.happenings(kind, id_)
    ]
    return History(id_, kind, tuple(entries))


def _nearest(relation: Relation, distances: dict[str, int]) -> tuple[int, float, str]:
    near = min(distances.get(end, len(distances)) for end in (relation.source, relation.target))
    return near, -relation.created_at, relation.id


def _worth(relation: Relation, distances: dict[str, int], scores: dict[str, float]) -> tuple[float, float, str]:
    """Return by what facts are put in order: what answers, then what is near, then what was learnt last."""
    ends = [distances[end] for end in (relation.source, relation.target) if end in distances]
    nearness = 1.0 / (1.0 + sum(ends)) if ends else 0.0
    return -(scores.get(relation.id, 0.0) + nearness), -relation.created_at, relation.id


def _most(types: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(types).items(), key=lambda each: (-each[1], each[0])))
