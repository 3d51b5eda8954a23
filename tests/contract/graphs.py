"""Small graphs for the contract of stores, and everything that can be read of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.contract.stores import UUID

from commonplace.store.graph import GraphChange, GraphReading
from commonplace.store.schema import texts_of
from commonplace.store.store import Store
from commonplace.types import GRAPH_KINDS
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

FULL_EPISODE = Episode(
    UUID, "He said\x01 it", -1.5, 1e12, "Standup\ue000", "message", "from Ann", "user", 0.25, "team", "m", 3
)
FULL_ENTITY = Entity(
    UUID, "Ann\x01", "person", 1.5, "An engineer", '{"a":1}', 0.25, "team\ue000", -2.0, 1e12, 3.5, "other"
)
FULL_RELATION = Relation(
    id=UUID,
    source="a",
    target="é\x01",
    type="WORKS_FOR",
    fact="Ann works for Acme\ue000",
    created_at=1.5,
    valid_from=-2.0,
    valid_to=3.0,
    stated_to=1e12,
    expired_at=4.0,
    is_retracted=True,
    dispute=UUID,
    disputed_at=2.5,
    confidence=0.5,
    trust=0.25,
    group="team",
    attributes='{"a":1}',
)
FULL_HAPPENING = Happening("relation", UUID, 2.0, "ended", "They said so\ue000", "e", '{"a":1}')

NOW = GraphFilter()
EVER = GraphFilter(with_past=True)


def relation(id_: str, source: str = "a", target: str = "b", type_: str = "USES", **fields: Any) -> Relation:
    """Return a fact, known from 10 on."""
    return Relation(**{"created_at": 10.0, "fact": id_, **fields}, id=id_, source=source, target=target, type=type_)


def entity(id_: str, name: str = "", type_: str = "concept", **fields: Any) -> Entity:
    """Return an entity, known from 10 on."""
    return Entity(**{"created_at": 10.0, **fields}, id=id_, name=name or id_, type=type_)


def episode(id_: str, at: float = 10.0, **fields: Any) -> Episode:
    """Return an episode, said when it became known."""
    return Episode(**{"content": id_, "created_at": at, **fields}, id=id_, reference_time=at)


def change(store: Store, *acts: Callable[[GraphChange], object], name: str = "n") -> None:
    """Do things to a graph in one change."""
    with store.change_memories(name) as under_way:
        for act in acts:
            act(under_way.graph)


def put(store: Store, *values: Episode | Entity | Relation | Alias | Mention | Happening, name: str = "n") -> None:
    """Write values in one change, entities and relations without texts."""
    with store.change_memories(name) as under_way:
        graph = under_way.graph
        for value in values:
            match value:
                case Entity():
                    graph.put_entity(value)
                case Relation():
                    graph.put_relation(value)
                case _:
                    graph.put(value)


def ids(values: Sequence[Episode | Entity | Relation]) -> list[str]:
    """Return ids in the order of the values."""
    return [value.id for value in values]


def whole(graph: GraphReading, of: Sequence[str], wanted: Sequence[GraphFilter] = (NOW, EVER)) -> dict[str, object]:
    """Return every answer of every method: of these ids and names, and of everything."""
    return {
        "episodes": graph.episodes(of),
        "reference_times": graph.reference_times(of),
        "of_memory": [graph.episodes_of_memory(id_) for id_ in of],
        "entities": graph.entities(of),
        "named": graph.entities_by_name(of),
        "aliases": graph.aliases(of),
        "relations": graph.relations(of),
        "facts": [
            (graph.facts(each.source, each.type), graph.facts(each.source, each.type, each.target))
            for each in graph.list_relations(EVER)
        ],
        "disputed": graph.disputed(),
        "mentions": [graph.mentions(kind, of) for kind in GRAPH_KINDS],
        "mentioned": graph.mentioned(of),
        "happenings": [graph.happenings(kind, id_) for kind in GRAPH_KINDS for id_ in of],
        "counts": graph.counts(),
        "lists": [_listed(graph, of, each) for each in wanted],
    }


def _listed(graph: GraphReading, of: Sequence[str], wanted: GraphFilter) -> tuple[object, ...]:
    kept = GraphFilter(groups=wanted.groups, known_at=wanted.known_at)
    return (
        graph.list_episodes(kept),
        graph.list_entities(replace(kept, types=wanted.types)),
        graph.list_relations(wanted),
        graph.relations_of(of, wanted),
        graph.relations_of(of, wanted, limit=1),
        graph.edges_of(of, wanted),
        graph.edges_of(of, wanted, limit=1),
        graph.edges_of(of, wanted, limit=2, among=of[::2]),
        graph.list_relations(wanted, limit=1, offset=1),
        graph.list_entities(wanted, limit=2, offset=1),
        graph.list_episodes(wanted, limit=2, offset=1),
        sorted(graph.pairs(wanted)),
    )


def texts(store: Store, name: str = "n") -> dict[str, list[str]]:
    """Return the texts of entities and of relations, by kind."""
    found = {}
    for kind in GRAPH_KINDS:
        space = texts_of(name, kind)
        found[kind] = [entry.text for entry in store.entries_since(space, 0, store.change(space))]
    return found
