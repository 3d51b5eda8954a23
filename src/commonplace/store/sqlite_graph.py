"""Reading the graph of a namespace in the SQLite store. It knows tables and connections, no rule about a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.store import graph_queries
from commonplace.store.graph_checks import check_filter
from commonplace.store.graph_queries import IDS_AT_ONCE
from commonplace.store.graph_rows import (
    unpack_alias,
    unpack_edge,
    unpack_entity,
    unpack_episode,
    unpack_happening,
    unpack_mention,
    unpack_mention_of,
    unpack_relation,
)
from commonplace.store.graph_rules import PAST, STAGES, reaches_past, times_of
from commonplace.store.memory_rows import hex_json
from commonplace.store.rows import Row, pack_id, pack_text, unpack
from commonplace.store.sqlite_space import SpaceReading, StoredSpace, rows_of
from commonplace.types.graph import GraphCounts

if TYPE_CHECKING:
    from commonplace.types.graph import (
        Alias,
        Edge,
        Entity,
        Episode,
        GraphFilter,
        Happening,
        Mention,
        Relation,
        Subject,
    )

_PAIRS_A_READ = 5000
_ID_NAMES = tuple(f"id{place}" for place in range(IDS_AT_ONCE))

Value = TypeVar("Value")
Values = dict[str, Any]


class SqliteGraphReading(SpaceReading):
    """What can be read of the graph of one namespace, through whatever connection `reading` gives."""

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        return self._by_id(graph_queries.EPISODE, ids, unpack_episode)

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id."""
        return self._by_id(graph_queries.REFERENCE_TIMES, episodes, itemgetter(1))

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes that a memory is, by version, ties by id."""
        with self.reading() as at:
            return [
                unpack_episode(row) for row in rows_of(at, graph_queries.EPISODES_OF_MEMORY, memory=pack_id(memory))
            ]

    def list_episodes(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit), "offset": offset}
        with self.reading() as at:
            return [unpack_episode(row) for row in rows_of(at, graph_queries.EPISODES, **values)]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        return self._by_id(graph_queries.ENTITY, ids, unpack_entity)

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id."""
        found = {}
        with self.reading() as at:
            for normal in dict.fromkeys(normals):
                rows = rows_of(at, graph_queries.NAMED, normal=pack_text(normal), limit=_limit(limit))
                if rows:
                    found[normal] = [unpack_entity(row) for row in rows]
        return found

    def list_entities(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit), "offset": offset}
        with self.reading() as at:
            return [unpack_entity(row) for row in rows_of(at, graph_queries.ENTITIES, **values)]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        return self._lists(graph_queries.ALIASES, ids, unpack_alias)

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        return self._by_id(graph_queries.RELATION, ids, unpack_relation)

    def relations_of(
        self, entities: Sequence[str], wanted: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity: newest knowledge first, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit)}
        asked = (*graph_queries.RELATIONS_FROM.parts(wanted), *graph_queries.RELATIONS_TO.parts(wanted))
        found = {}
        with self.reading() as at:
            for entity in dict.fromkeys(entities):
                values["entity"] = pack_id(entity)
                rows = [row for sql in asked for row in rows_of(at, sql, **values)]
                if rows:
                    found[entity] = _newest_first(rows, 0, limit)
        return found

    def facts(self, source: str, type_: str, target: str | None = None) -> list[Relation]:
        """Return all relations of one source and type, to one target where it is given, oldest first, ties by id."""
        values = {"source": pack_id(source), "type": pack_text(type_)}
        if target is not None:
            values["target"] = pack_id(target)
        with self.reading() as at:
            sql = graph_queries.FACTS if target is None else graph_queries.FACTS_TO
            return [unpack_relation(row) for row in rows_of(at, sql, **values)]

    def edges_of(
        self,
        entities: Sequence[str],
        wanted: GraphFilter,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
    ) -> dict[str, list[Edge]]:
        """Return of what `relations_of` returns as much as it takes to follow it, in the same order."""
        asked, values = graph_queries.EDGES.parts(wanted), {**_values(wanted), "limit": _limit(limit)}
        beside = None if among is None else {pack_id(each) for each in among}
        found = {}
        with self.reading() as (db, space):
            values["space"] = space
            for entity in dict.fromkeys(entities):
                values["entity"] = key = pack_id(entity)
                rows = [row for sql in asked for row in db.execute(sql, values)]
                if limit is not None and len(rows) > limit:
                    rows.sort(key=_newest_edge)
                    del rows[limit:]
                if beside is not None:
                    rows = [row for row in rows if (row[2] if row[1] == key else row[1]) in beside]
                if rows:
                    rows.sort(key=_newest_edge)
                    found[entity] = [unpack_edge(row, entity, key) for row in rows]
        return found

    def list_relations(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, newest knowledge first, ties by id."""
        values = {**_values(wanted), "limit": _limit(None if limit is None else offset + limit)}
        with self.reading() as at:
            rows = [row for sql in graph_queries.RELATIONS.parts(wanted) for row in rows_of(at, sql, **values)]
        return _newest_first(rows, offset, limit)

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        with self.reading() as at:
            return [unpack_relation(row) for row in rows_of(at, graph_queries.DISPUTED)]

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        return self._lists(graph_queries.MENTIONS, ids, unpack_mention_of, kind=kind)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        return self._lists(graph_queries.MENTIONED, episodes, unpack_mention)

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        with self.reading() as at:
            return [unpack_happening(row) for row in rows_of(at, graph_queries.HAPPENINGS, kind=kind, id=pack_id(id_))]

    def pairs(self, wanted: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that is meant, some thousands from one state."""
        stages = STAGES if reaches_past(wanted) else PAST
        values = {**_values(wanted), "limit": _PAIRS_A_READ, "stages": stages}
        after: int | None = 0
        while after is not None:
            with self.reading() as at:
                rows = rows_of(at, graph_queries.PAIRS, **{**values, "after": after})
            for _, id_, source, target in rows:
                yield unpack(id_), unpack(source), unpack(target)
            after = rows[-1][0] if len(rows) == _PAIRS_A_READ else None

    def counts(self) -> GraphCounts:
        """Return how much there is."""
        with self.reading() as at:
            return GraphCounts(*rows_of(at, graph_queries.COUNTS)[0])

    def _by_id(self, sql: str, ids: Sequence[str], build: Callable[[Row], Value]) -> dict[str, Value]:
        return {id_: values[0] for id_, values in self._lists(sql, ids, build).items()}

    def _lists(
        self, sql: str, ids: Sequence[str], build: Callable[[Row], Value], **values: str
    ) -> dict[str, list[Value]]:
        """Return what a statement gives for each id, which stands in the first of its columns."""
        asked = {pack_id(id_): id_ for id_ in ids}
        if not asked:
            return {}
        keys = list(asked)
        found: dict[str | bytes, list[Value]] = {}
        with self.reading() as at:
            for begin in range(0, len(keys), IDS_AT_ONCE):
                some = keys[begin : begin + IDS_AT_ONCE]
                some += some[-1:] * (IDS_AT_ONCE - len(some))
                for row in rows_of(at, sql, **dict(zip(_ID_NAMES, some, strict=True)), **values):
                    found.setdefault(row[0], []).append(build(row))
        return {id_: found[key] for key, id_ in asked.items() if key in found}


class SqliteGraph(StoredSpace, SqliteGraphReading):
    """The graph of one namespace as it is when each call is made: a `GraphReading`."""


def _values(wanted: GraphFilter) -> Values:
    check_filter(wanted)
    return {
        "types": hex_json(map(pack_text, wanted.types)),
        "groups": hex_json(map(pack_text, wanted.groups)),
        **times_of(wanted),
    }


def _limit(limit: int | None) -> int:
    return -1 if limit is None else limit


def _newest_edge(row: Row) -> tuple[float, bool, str | bytes]:
    return -row[3], isinstance(row[0], bytes), row[0]


def _newest_first(rows: Iterable[Row], offset: int, limit: int | None) -> list[Relation]:
    """Put rows in order that came in order from several indexes."""
    ordered = sorted(rows, key=lambda row: (-row[5], isinstance(row[0], bytes), row[0]))
    return [unpack_relation(row) for row in ordered[offset : None if limit is None else offset + limit]]
