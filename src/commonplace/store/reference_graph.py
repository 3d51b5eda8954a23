"""Reading the graph of a namespace in the in-memory store: every answer by looking at all there is.

It knows dictionaries, no lock and no rule about a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from commonplace.store.graph_checks import check_filter
from commonplace.store.graph_rules import in_groups, is_live, is_meant, order_of_id, order_of_name
from commonplace.types.graph import Edge, GraphCounts

if TYPE_CHECKING:
    from commonplace.types.graph import (
        Alias,
        Entity,
        Episode,
        GraphFilter,
        Happening,
        Mention,
        Relation,
        Subject,
    )

Value = TypeVar("Value")


@dataclass(slots=True)
class GraphState:
    """The graph of one namespace.

    Attributes:
        aliases: by entity and normal name.
        happenings: in the order in which they were recorded.
    """

    episodes: dict[str, Episode] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    aliases: dict[tuple[str, str], Alias] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    mentions: set[Mention] = field(default_factory=set)
    happenings: list[Happening] = field(default_factory=list)

    def copy(self) -> GraphState:
        """Return a graph that can be changed without changing this one."""
        return GraphState(
            dict(self.episodes),
            dict(self.entities),
            dict(self.aliases),
            dict(self.relations),
            set(self.mentions),
            list(self.happenings),
        )


class ReferenceGraph:
    """A `GraphReading` of whatever graph `opened` gives, for as long as each call lasts."""

    def __init__(self, opened: Callable[[], AbstractContextManager[GraphState]]) -> None:
        self._opened = opened

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        with self._opened() as graph:
            return _of_ids(graph.episodes, ids)

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id."""
        return {id_: episode.reference_time for id_, episode in self.episodes(episodes).items()}

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes that a memory is, by version, ties by id."""
        with self._opened() as graph:
            found = [episode for episode in graph.episodes.values() if memory and episode.memory == memory]
        return sorted(found, key=lambda episode: (episode.version, order_of_id(episode.id)))

    def list_episodes(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        check_filter(wanted)
        with self._opened() as graph:
            found = [
                episode
                for episode in graph.episodes.values()
                if in_groups(episode, wanted) and (wanted.known_at is None or episode.created_at <= wanted.known_at)
            ]
        found.sort(key=lambda episode: (-episode.reference_time, order_of_id(episode.id)))
        return found[offset:][:limit]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        with self._opened() as graph:
            return _of_ids(graph.entities, ids)

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id."""
        with self._opened() as graph:
            named = [(normal, graph.entities.get(entity)) for entity, normal in graph.aliases]
        live = [(normal, entity) for normal, entity in named if entity is not None and entity.expired_at is None]
        live.sort(key=lambda item: order_of_id(item[1].id))
        found = _listed(((normal, entity) for normal, entity in live), normals)
        return {normal: entities[:limit] for normal, entities in found.items() if limit != 0}

    def list_entities(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id."""
        check_filter(wanted)
        with self._opened() as graph:
            grouped = {mention.subject for mention in graph.mentions if _is_of_groups(mention, graph, wanted)}
            found = [
                entity
                for entity in graph.entities.values()
                if is_live(entity, wanted)
                and (not wanted.types or entity.type in wanted.types)
                and (in_groups(entity, wanted) or entity.id in grouped)
            ]
        found.sort(key=lambda entity: (order_of_name(entity.name), order_of_id(entity.id)))
        return found[offset:][:limit]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        with self._opened() as graph:
            ordered = sorted(graph.aliases.values(), key=lambda alias: (alias.created_at, order_of_name(alias.normal)))
        return _listed(((alias.entity, alias) for alias in ordered), ids)

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        with self._opened() as graph:
            return _of_ids(graph.relations, ids)

    def relations_of(
        self, entities: Sequence[str], wanted: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity: newest knowledge first, ties by id."""
        ordered = self.list_relations(wanted)
        ends = ((end, relation) for relation in ordered for end in {relation.source, relation.target})
        found = {end: relations[:limit] for end, relations in _listed(ends, entities).items()}
        return {end: relations for end, relations in found.items() if relations}

    def facts(self, source: str, type_: str, target: str | None = None) -> list[Relation]:
        """Return all relations of one source and type, to one target where it is given, oldest first, ties by id."""
        with self._opened() as graph:
            found = [
                each
                for each in graph.relations.values()
                if (each.source, each.type) == (source, type_) and target in (None, each.target)
            ]
        return sorted(found, key=lambda each: (each.created_at, order_of_id(each.id)))

    def edges_of(
        self,
        entities: Sequence[str],
        wanted: GraphFilter,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
    ) -> dict[str, list[Edge]]:
        """Return of what `relations_of` returns as much as it takes to follow it, in the same order."""
        found = {
            end: [
                Edge(each.id, each.source, each.target, each.created_at, each.confidence, bool(each.dispute))
                for each in relations
                if among is None or (each.target if each.source == end else each.source) in among
            ]
            for end, relations in self.relations_of(entities, wanted, limit=limit).items()
        }
        return {end: edges for end, edges in found.items() if edges}

    def list_relations(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, newest knowledge first, ties by id."""
        check_filter(wanted)
        with self._opened() as graph:
            found = [relation for relation in graph.relations.values() if is_meant(relation, wanted)]
        found.sort(key=lambda relation: (-relation.created_at, order_of_id(relation.id)))
        return found[offset:][:limit]

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        with self._opened() as graph:
            found = [relation for relation in graph.relations.values() if relation.dispute]
        return sorted(found, key=lambda each: (order_of_id(each.dispute), each.created_at, order_of_id(each.id)))

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        with self._opened() as graph:
            found = [mention for mention in graph.mentions if mention.kind == kind]
        found.sort(key=lambda each: (order_of_id(each.episode), each.start, each.end, order_of_name(each.name)))
        return _listed(((mention.subject, mention) for mention in found), ids)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        with self._opened() as graph:
            found = list(graph.mentions)
        found.sort(
            key=lambda each: (each.start, each.end, each.kind, order_of_id(each.subject), order_of_name(each.name))
        )
        return _listed(((mention.episode, mention) for mention in found), episodes)

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        with self._opened() as graph:
            return [each for each in graph.happenings if (each.kind, each.subject) == (kind, id_)]

    def pairs(self, wanted: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that is meant, from one state."""
        return ((each.id, each.source, each.target) for each in self.list_relations(wanted))

    def counts(self) -> GraphCounts:
        """Return how much there is."""
        with self._opened() as graph:
            return GraphCounts(
                len(graph.episodes),
                sum(entity.expired_at is None for entity in graph.entities.values()),
                len(graph.relations),
                sum(bool(relation.dispute) for relation in graph.relations.values()),
            )


def _of_ids(values: Mapping[str, Value], ids: Sequence[str]) -> dict[str, Value]:
    return {id_: values[id_] for id_ in ids if id_ in values}


def _listed(values: Iterable[tuple[str, Value]], wanted: Sequence[str]) -> dict[str, list[Value]]:
    """Return lists of values by the keys that are wanted; keys without a value are absent."""
    lists: dict[str, list[Value]] = {key: [] for key in wanted}
    for key, value in values:
        if key in lists:
            lists[key].append(value)
    return {key: found for key, found in lists.items() if found}


def _is_of_groups(mention: Mention, graph: GraphState, wanted: GraphFilter) -> bool:
    episode = graph.episodes.get(mention.episode)
    return mention.kind == "entity" and episode is not None and in_groups(episode, wanted)
