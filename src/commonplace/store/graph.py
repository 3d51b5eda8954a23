"""The graph in the SQLite store: reads, writes and packing of rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

from commonplace.store.graph_contract import texts_of
from commonplace.store.graph_rules import (
    MEANT,
    PAST,
    STAGES,
    STANDING,
    check_episode,
    check_filter,
    check_remark,
    check_subject,
    is_of_open,
    reaches_past,
    stage_of,
    times_of,
)
from commonplace.store.memories import hex_json
from commonplace.store.rows import Row, pack_id, pack_text, unpack
from commonplace.store.transaction import ChangingSpace, SpaceReading, StoredSpace, rows_of
from commonplace.store.writes import create_namespace, namespace_number, read_embedding
from commonplace.types import GRAPH_KINDS, NewPassage, OwnerWrite
from commonplace.types.graph import (
    Alias,
    Edge,
    Entity,
    Episode,
    GraphCounts,
    GraphFilter,
    Happening,
    Mention,
    Relation,
    Subject,
)

_EPISODE = """
    e.id, e.content, e.reference_time, e.created_at, e.name, e.source, e.source_description, e.origin, e.trust,
    e."group", e.memory, e.version
"""

_ENTITY = """
    x.id, x.name, x.type, x.created_at, x.summary, x.attributes, x.trust, x."group", x.valid_from, x.valid_to,
    x.expired_at, x.merged_into
"""

_RELATION = """
    r.id, r.source, r.target, r.type, r.fact, r.created_at, r.valid_from, r.valid_to, r.stated_to, r.expired_at,
    r.is_retracted, r.dispute, r.disputed_at, r.confidence, r.trust, r."group", r.attributes
"""

IDS_AT_ONCE = 32
_IDS = ", ".join(f":id{place}" for place in range(IDS_AT_ONCE))
"""So many ids a statement takes, some of them more than once where there are fewer."""

EPISODE = f"SELECT {_EPISODE} FROM episodes e WHERE e.namespace = :space AND e.id IN ({_IDS})"

# Without a hint SQLite reads the times of all episodes, which stand in an index.
REFERENCE_TIMES = f"""
    SELECT id, reference_time FROM episodes INDEXED BY episodes_by_id WHERE namespace = :space AND id IN ({_IDS})
"""

EPISODES_OF_MEMORY = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.memory = :memory AND e.memory != ''
    ORDER BY e.version, e.id
"""

EPISODES = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.created_at <= :known_at
        AND (:groups IS NULL OR hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
    ORDER BY e.reference_time DESC, e.id
    LIMIT :limit OFFSET :offset
"""

ENTITY = f"SELECT {_ENTITY} FROM entities x WHERE x.namespace = :space AND x.id IN ({_IDS})"

NAMED = f"""
    SELECT {_ENTITY}
    FROM aliases a CROSS JOIN entities x ON x.namespace = a.namespace AND x.id = a.entity
    WHERE a.namespace = :space AND a.normal = :normal AND x.expired_at IS NULL
    ORDER BY a.entity
    LIMIT :limit
"""

ENTITIES = f"""
    SELECT {_ENTITY} FROM entities x
    WHERE x.namespace = :space
        AND (:is_all OR (x.created_at <= :known_at AND (x.expired_at IS NULL OR x.expired_at > :known_at)))
        AND (:types IS NULL OR hex(CAST(x.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
        AND (
            :groups IS NULL
            OR hex(CAST(x."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            OR EXISTS (
                SELECT 1
                FROM mentions m CROSS JOIN episodes e ON e.namespace = m.namespace AND e.id = m.episode
                WHERE m.namespace = x.namespace AND m.kind = 'entity' AND m.subject = x.id
                    AND hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            )
        )
    ORDER BY x.name, x.id
    LIMIT :limit OFFSET :offset
"""

# Without a hint SQLite takes the primary key, of which one column fits, and reads every name of the namespace.
ALIASES = f"""
    SELECT entity, name, normal, created_at, episode FROM aliases INDEXED BY aliases_by_entity
    WHERE namespace = :space AND entity IN ({_IDS})
    ORDER BY created_at, normal
"""

RELATION = f"SELECT {_RELATION} FROM relations r WHERE r.namespace = :space AND r.id IN ({_IDS})"

_CHOSEN = f"""
    {MEANT}
    AND (:types IS NULL OR hex(CAST(r.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
    AND (:groups IS NULL OR hex(CAST(r."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
"""

_OF_FACT = f"""
    SELECT {_RELATION} FROM relations r INDEXED BY relations_by_fact
    WHERE r.namespace = :space AND r.source = :source AND r.type = :type
"""
_OLDEST = "ORDER BY r.created_at, r.id"

FACTS = f"{_OF_FACT} {_OLDEST}"
FACTS_TO = f"{_OF_FACT} AND r.target = :target {_OLDEST}"

_EDGE = "r.id, r.source, r.target, r.created_at, r.confidence, r.dispute != ''"


@dataclass(frozen=True, slots=True)
class ByStage:
    """A question about relations, asked of each stage that a filter may mean; each answer is in order.

    Attributes:
        stages: of each stage, which is its place.
        ending: what has an end, or is past, and holds after the time `:after`.
    """

    stages: tuple[str, ...]
    ending: str

    def parts(self, wanted: GraphFilter) -> tuple[str, ...]:
        """Return the statements whose answers together are that of the filter."""
        if is_of_open(wanted):
            return self.stages[STANDING], self.ending
        return self.stages if reaches_past(wanted) else self.stages[:PAST]


def _by_stage(columns: str, index: str, by: str) -> ByStage:
    """Return a question for the newest relations of those that a condition chooses, which an index serves."""

    def asked(suffix: str, condition: str) -> str:
        return f"""
            SELECT {columns} FROM relations r INDEXED BY relations_{suffix}
            WHERE r.namespace = :space AND {by} AND {condition} AND {_CHOSEN}
            ORDER BY r.created_at DESC, r.id
            LIMIT :limit
        """

    ending = "ending" if index == "by_time" else f"ending_{index}"
    return ByStage(
        tuple(asked(index, f"r.stage = {stage}") for stage in range(STAGES)),
        asked(ending, "r.stage > 0 AND ifnull(r.valid_to, '') > :after"),
    )


_FROM = "by_source", "r.source = :entity"
_TO = "by_target", "r.target = :entity AND r.source != r.target"

RELATIONS_FROM = _by_stage(_RELATION, *_FROM)
RELATIONS_TO = _by_stage(_RELATION, *_TO)
RELATIONS = _by_stage(_RELATION, "by_time", "1")
_EDGES_FROM = _by_stage(_EDGE, *_FROM)
_EDGES_TO = _by_stage(_EDGE, *_TO)


def _both(first: str, second: str) -> str:
    return f"SELECT * FROM ({first}) UNION ALL SELECT * FROM ({second})"


EDGES = ByStage(
    tuple(map(_both, _EDGES_FROM.stages, _EDGES_TO.stages)),
    _both(_EDGES_FROM.ending, _EDGES_TO.ending),
)
"""The newest edges from an entity, then those to it; to ask for both at once takes half the time."""

PAIRS = f"""
    SELECT r.number, r.id, r.source, r.target FROM relations r NOT INDEXED
    WHERE r.number > :after AND r.namespace = :space AND r.stage < :stages AND {_CHOSEN}
    ORDER BY r.number
    LIMIT :limit
"""

DISPUTED = f"""
    SELECT {_RELATION} FROM relations r
    WHERE r.namespace = :space AND r.dispute != ''
    ORDER BY r.dispute, r.created_at, r.id
"""

MENTIONS = f"""
    SELECT subject, episode, kind, start, "end", name FROM mentions
    WHERE namespace = :space AND kind = :kind AND subject IN ({_IDS})
    ORDER BY subject, episode, start, "end", name
"""

MENTIONED = f"""
    SELECT episode, kind, subject, start, "end", name FROM mentions INDEXED BY mentions_by_episode
    WHERE namespace = :space AND episode IN ({_IDS})
    ORDER BY start, "end", kind, subject, name
"""

HAPPENINGS = """
    SELECT kind, subject, at, what, reason, episode, detail FROM happenings
    WHERE namespace = :space AND kind = :kind AND subject = :id
    ORDER BY number
"""

COUNTS = """
    SELECT
        (SELECT count(*) FROM episodes WHERE namespace = :space),
        (SELECT count(*) FROM entities INDEXED BY entities_by_id WHERE namespace = :space)
            - (
                SELECT count(*) FROM entities INDEXED BY entities_past
                WHERE namespace = :space AND expired_at IS NOT NULL
            ),
        (SELECT count(*) FROM relations WHERE namespace = :space),
        (SELECT count(*) FROM relations WHERE namespace = :space AND dispute != '')
"""

PUT_EPISODE = """
    INSERT INTO episodes (
        namespace, id, content, reference_time, created_at, name, source, source_description, origin, trust, "group",
        memory, version
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        content = excluded.content, reference_time = excluded.reference_time, created_at = excluded.created_at,
        name = excluded.name, source = excluded.source, source_description = excluded.source_description,
        origin = excluded.origin, trust = excluded.trust, "group" = excluded."group", memory = excluded.memory,
        version = excluded.version
"""

PUT_ENTITY = """
    INSERT INTO entities (
        namespace, id, name, type, created_at, summary, attributes, trust, "group", valid_from, valid_to, expired_at,
        merged_into
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        name = excluded.name, type = excluded.type, created_at = excluded.created_at, summary = excluded.summary,
        attributes = excluded.attributes, trust = excluded.trust, "group" = excluded."group",
        valid_from = excluded.valid_from, valid_to = excluded.valid_to, expired_at = excluded.expired_at,
        merged_into = excluded.merged_into
"""

PUT_RELATION = """
    INSERT INTO relations (
        namespace, id, source, target, type, fact, created_at, valid_from, valid_to, stated_to, expired_at,
        is_retracted, dispute, disputed_at, confidence, trust, "group", attributes, stage
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        source = excluded.source, target = excluded.target, type = excluded.type, fact = excluded.fact,
        created_at = excluded.created_at, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
        stated_to = excluded.stated_to, expired_at = excluded.expired_at, is_retracted = excluded.is_retracted,
        dispute = excluded.dispute, disputed_at = excluded.disputed_at, confidence = excluded.confidence,
        trust = excluded.trust, "group" = excluded."group", attributes = excluded.attributes,
        stage = excluded.stage
"""

PUT_ALIAS = (
    "INSERT OR REPLACE INTO aliases (namespace, entity, name, normal, created_at, episode) VALUES (?, ?, ?, ?, ?, ?)"
)

PUT_MENTION = """
    INSERT OR IGNORE INTO mentions (namespace, episode, kind, subject, start, "end", name)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""

DROP_MENTION = """
    DELETE FROM mentions
    WHERE namespace = ? AND episode = ? AND kind = ? AND subject = ? AND start = ? AND "end" = ? AND name = ?
"""

PUT_HAPPENING = """
    INSERT INTO happenings (namespace, kind, subject, at, what, reason, episode, detail)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


def pack_episode(episode: Episode) -> Row:
    """Return the columns of an episode in the order of `graph_queries.PUT_EPISODE`, from `id` on."""
    return (
        pack_id(episode.id),
        pack_text(episode.content),
        episode.reference_time,
        episode.created_at,
        pack_text(episode.name),
        episode.source,
        pack_text(episode.source_description),
        episode.origin,
        episode.trust,
        pack_text(episode.group),
        pack_id(episode.memory),
        episode.version,
    )


def unpack_episode(row: Row) -> Episode:
    """Build an episode from the columns of `graph_queries`."""
    id_, content, reference_time, created_at, name, source, description, origin, trust, group, memory, version = row
    return Episode(
        unpack(id_),
        unpack(content),
        reference_time,
        created_at,
        unpack(name),
        source,
        unpack(description),
        origin,
        trust,
        unpack(group),
        unpack(memory),
        version,
    )


def pack_entity(entity: Entity) -> Row:
    """Return the columns of an entity in the order of `graph_queries.PUT_ENTITY`, from `id` on."""
    return (
        pack_id(entity.id),
        pack_text(entity.name),
        pack_text(entity.type),
        entity.created_at,
        pack_text(entity.summary),
        pack_text(entity.attributes),
        entity.trust,
        pack_text(entity.group),
        entity.valid_from,
        entity.valid_to,
        entity.expired_at,
        pack_id(entity.merged_into),
    )


def unpack_entity(row: Row) -> Entity:
    """Build an entity from the columns of `graph_queries`."""
    id_, name, type_, created_at, summary, attributes, trust, group, valid_from, valid_to, expired_at, merged_into = row
    return Entity(
        unpack(id_),
        unpack(name),
        unpack(type_),
        created_at,
        unpack(summary),
        unpack(attributes),
        trust,
        unpack(group),
        valid_from,
        valid_to,
        expired_at,
        unpack(merged_into),
    )


def pack_relation(relation: Relation) -> Row:
    """Return the columns of a relation in the order of `graph_queries.PUT_RELATION`, from `id` on."""
    return (
        pack_id(relation.id),
        pack_id(relation.source),
        pack_id(relation.target),
        pack_text(relation.type),
        pack_text(relation.fact),
        relation.created_at,
        relation.valid_from,
        relation.valid_to,
        relation.stated_to,
        relation.expired_at,
        int(relation.is_retracted),
        pack_id(relation.dispute),
        relation.disputed_at,
        relation.confidence,
        relation.trust,
        pack_text(relation.group),
        pack_text(relation.attributes),
        stage_of(relation),
    )


def unpack_relation(row: Row) -> Relation:
    """Build a relation from the columns of `graph_queries`."""
    id_, source, target, type_, fact, created_at, valid_from, valid_to, stated_to, expired_at = row[:10]
    is_retracted, dispute, disputed_at, confidence, trust, group, attributes = row[10:]
    return Relation(
        unpack(id_),
        unpack(source),
        unpack(target),
        unpack(type_),
        unpack(fact),
        created_at,
        valid_from,
        valid_to,
        stated_to,
        expired_at,
        bool(is_retracted),
        unpack(dispute),
        disputed_at,
        confidence,
        trust,
        unpack(group),
        unpack(attributes),
    )


def unpack_edge(row: Row, entity: str, key: str | bytes) -> Edge:
    """Build an edge from the columns of `graph_queries.EDGES`, of which `entity`, packed as `key`, is an end."""
    id_, source, target, created_at, confidence, is_disputed = row
    return Edge(
        unpack(id_),
        entity if source == key else unpack(source),
        entity if target == key else unpack(target),
        created_at,
        confidence,
        bool(is_disputed),
    )


def pack_alias(alias: Alias) -> Row:
    """Return the columns of a name in the order of `graph_queries.PUT_ALIAS`, but for the namespace."""
    return (
        pack_id(alias.entity),
        pack_text(alias.name),
        pack_text(alias.normal),
        alias.created_at,
        pack_id(alias.episode),
    )


def unpack_alias(row: Row) -> Alias:
    """Build a name from the columns of `graph_queries.ALIASES`."""
    entity, name, normal, created_at, episode = row
    return Alias(unpack(entity), unpack(name), unpack(normal), created_at, unpack(episode))


def pack_mention(mention: Mention) -> Row:
    """Return the columns of a mention in the order of `graph_queries.PUT_MENTION`, but for the namespace."""
    return (
        pack_id(mention.episode),
        mention.kind,
        pack_id(mention.subject),
        mention.start,
        mention.end,
        pack_text(mention.name),
    )


def unpack_mention(row: Row) -> Mention:
    """Build a mention from the columns of `graph_queries`."""
    episode, kind, subject, start, end, name = row
    return Mention(unpack(episode), kind, unpack(subject), start, end, unpack(name))


def unpack_mention_of(row: Row) -> Mention:
    """Build a mention from the columns of `graph_queries.MENTIONS`."""
    subject, episode, kind, start, end, name = row
    return Mention(unpack(episode), kind, unpack(subject), start, end, unpack(name))


def pack_happening(happening: Happening) -> Row:
    """Return the columns of a happening in the order of `graph_queries.PUT_HAPPENING`, but for the namespace."""
    return (
        happening.kind,
        pack_id(happening.subject),
        happening.at,
        pack_text(happening.what),
        pack_text(happening.reason),
        pack_id(happening.episode),
        pack_text(happening.detail),
    )


def unpack_happening(row: Row) -> Happening:
    """Build a happening from the columns of `graph_queries.HAPPENINGS`."""
    kind, subject, at, what, reason, episode, detail = row
    return Happening(kind, unpack(subject), at, unpack(what), unpack(reason), unpack(episode), unpack(detail))


_PAIRS_A_READ = 5000
_ID_NAMES = tuple(f"id{place}" for place in range(IDS_AT_ONCE))

Value = TypeVar("Value")
Values = dict[str, Any]


class SqliteGraphReading(SpaceReading):
    """What can be read of the graph of one namespace, through whatever connection `reading` gives."""

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        return self._by_id(EPISODE, ids, unpack_episode)

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id."""
        return self._by_id(REFERENCE_TIMES, episodes, itemgetter(1))

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes that a memory is, by version, ties by id."""
        with self.reading() as at:
            return [unpack_episode(row) for row in rows_of(at, EPISODES_OF_MEMORY, memory=pack_id(memory))]

    def list_episodes(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit), "offset": offset}
        with self.reading() as at:
            return [unpack_episode(row) for row in rows_of(at, EPISODES, **values)]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        return self._by_id(ENTITY, ids, unpack_entity)

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id."""
        found = {}
        with self.reading() as at:
            for normal in dict.fromkeys(normals):
                rows = rows_of(at, NAMED, normal=pack_text(normal), limit=_limit(limit))
                if rows:
                    found[normal] = [unpack_entity(row) for row in rows]
        return found

    def list_entities(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit), "offset": offset}
        with self.reading() as at:
            return [unpack_entity(row) for row in rows_of(at, ENTITIES, **values)]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        return self._lists(ALIASES, ids, unpack_alias)

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        return self._by_id(RELATION, ids, unpack_relation)

    def relations_of(
        self, entities: Sequence[str], wanted: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity: newest knowledge first, ties by id."""
        values = {**_values(wanted), "limit": _limit(limit)}
        asked = (*RELATIONS_FROM.parts(wanted), *RELATIONS_TO.parts(wanted))
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
            sql = FACTS if target is None else FACTS_TO
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
        asked, values = EDGES.parts(wanted), {**_values(wanted), "limit": _limit(limit)}
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
            rows = [row for sql in RELATIONS.parts(wanted) for row in rows_of(at, sql, **values)]
        return _newest_first(rows, offset, limit)

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        with self.reading() as at:
            return [unpack_relation(row) for row in rows_of(at, DISPUTED)]

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        return self._lists(MENTIONS, ids, unpack_mention_of, kind=kind)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        return self._lists(MENTIONED, episodes, unpack_mention)

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        with self.reading() as at:
            return [unpack_happening(row) for row in rows_of(at, HAPPENINGS, kind=kind, id=pack_id(id_))]

    def pairs(self, wanted: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that is meant, some thousands from one state."""
        stages = STAGES if reaches_past(wanted) else PAST
        values = {**_values(wanted), "limit": _PAIRS_A_READ, "stages": stages}
        after: int | None = 0
        while after is not None:
            with self.reading() as at:
                rows = rows_of(at, PAIRS, **{**values, "after": after})
            for _, id_, source, target in rows:
                yield unpack(id_), unpack(source), unpack(target)
            after = rows[-1][0] if len(rows) == _PAIRS_A_READ else None

    def counts(self) -> GraphCounts:
        """Return how much there is."""
        with self.reading() as at:
            return GraphCounts(*rows_of(at, COUNTS)[0])

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


_NO_SUBJECT = """
    (kind = 'entity' AND subject NOT IN (SELECT id FROM entities WHERE namespace = ?1))
    OR (kind = 'relation' AND subject NOT IN (SELECT id FROM relations WHERE namespace = ?1))
"""
_LOOSE = (
    "DELETE FROM aliases WHERE namespace = ?1 AND entity NOT IN (SELECT id FROM entities WHERE namespace = ?1)",
    "DELETE FROM mentions WHERE namespace = ?1 AND episode NOT IN (SELECT id FROM episodes WHERE namespace = ?1)",
    f"DELETE FROM mentions WHERE namespace = ?1 AND ({_NO_SUBJECT})",
    f"DELETE FROM happenings WHERE namespace = ?1 AND ({_NO_SUBJECT})",
)
_STRAY: Mapping[Subject, str] = {
    "entity": """
        SELECT id FROM owners
        WHERE namespace = ? AND kind = ? AND id NOT IN (SELECT id FROM entities WHERE namespace = ?)
    """,
    "relation": """
        SELECT id FROM owners
        WHERE namespace = ? AND kind = ? AND id NOT IN (SELECT id FROM relations WHERE namespace = ?)
    """,
}


class SqliteGraphChange(ChangingSpace, SqliteGraphReading):
    """Reads and writes the graph of one namespace; whatever is written or deleted takes a change number."""

    def put_episode(self, episode: Episode) -> None:
        """Write an episode in the place of the one with its id."""
        check_episode(episode)
        self._put(PUT_EPISODE, pack_episode(episode))

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id."""
        write = check_subject(entity, passages, read_embedding(self._transaction.db))
        self._put(PUT_ENTITY, pack_entity(entity))
        self._put_texts("entity", write, entity.created_at)

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id."""
        write = check_subject(relation, passages, read_embedding(self._transaction.db))
        self._put(PUT_RELATION, pack_relation(relation))
        self._put_texts("relation", write, relation.created_at)

    def put_alias(self, alias: Alias) -> None:
        """Give an entity a name, in the place of one with the same normal form."""
        check_remark(alias)
        self._put(PUT_ALIAS, pack_alias(alias))

    def drop_alias(self, entity: str, normal: str) -> None:
        """Take a name from an entity."""
        one = "DELETE FROM aliases WHERE namespace = ? AND entity = ? AND normal = ?"
        self._delete(one, pack_id(entity), pack_text(normal))

    def put_mentions(self, mentions: Sequence[Mention]) -> None:
        """Record mentions; one that is there already stays once."""
        for mention in mentions:
            check_remark(mention)
        if mentions:
            change = self._transaction.begin()
            rows = ((change.space, *pack_mention(each)) for each in mentions)
            self._transaction.db.executemany(PUT_MENTION, rows)
            change.mark()

    def drop_mentions(self, mentions: Sequence[Mention]) -> None:
        """Delete mentions."""
        for mention in mentions:
            self._delete(DROP_MENTION, *pack_mention(mention))

    def put_happening(self, happening: Happening) -> None:
        """Add to what happened."""
        check_remark(happening)
        self._put(PUT_HAPPENING, pack_happening(happening))

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        gone = 0
        for key in map(pack_id, dict.fromkeys(ids)):
            self._delete("DELETE FROM mentions WHERE namespace = ? AND episode = ?", key)
            gone += self._delete("DELETE FROM episodes WHERE namespace = ? AND id = ?", key)
        return gone

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            key = pack_id(id_)
            self._delete("DELETE FROM aliases WHERE namespace = ? AND entity = ?", key)
            self._erase_all_of("entity", id_)
            gone += self._delete("DELETE FROM entities WHERE namespace = ? AND id = ?", key)
        return gone

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        gone = 0
        for id_ in dict.fromkeys(ids):
            self._erase_all_of("relation", id_)
            gone += self._delete("DELETE FROM relations WHERE namespace = ? AND id = ?", pack_id(id_))
        return gone

    def erase_happenings(self, kind: Subject, id_: str) -> None:
        """Delete what happened to an entity or relation."""
        self._delete("DELETE FROM happenings WHERE namespace = ? AND kind = ? AND subject = ?", kind, pack_id(id_))

    def drop_loose_ends(self) -> int:
        """Delete what hangs on nothing: names, mentions, happenings and texts of what is gone; return how many went."""
        gone = sum(self._delete(sql) for sql in _LOOSE)
        change, db = self._transaction.known(), self._transaction.db
        if change is None:
            return gone
        for kind in GRAPH_KINDS:
            space = namespace_number(db, texts_of(self._transaction.namespace, kind))
            stray = db.execute(_STRAY[kind], (space, kind, change.space)).fetchall()
            for (id_,) in stray:
                self._drop_texts(kind, unpack(id_))
            gone += len(stray)
        return gone

    def _put(self, sql: str, columns: Row) -> None:
        change = self._transaction.begin()
        self._transaction.db.execute(sql, (change.space, *columns))
        change.mark()

    def _put_texts(self, kind: Subject, write: OwnerWrite | None, at: float) -> None:
        if write is None:
            return
        change, db = self._transaction.begin(), self._transaction.db
        if write.passages:
            change.flush()  # what it replaces may have been written in this transaction
            with change.inside(create_namespace(db, texts_of(self._transaction.namespace, kind))):
                change.put(write, at)
        else:
            self._drop_texts(kind, write.owner.id)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        change = self._transaction.known()
        space = namespace_number(self._transaction.db, texts_of(self._transaction.namespace, kind))
        if change is not None and space is not None:
            change.flush()
            with change.inside(space):
                change.drop(kind, id_)

    def _erase_all_of(self, kind: Subject, id_: str) -> None:
        """Delete what hangs on an entity or relation alike."""
        self._drop_texts(kind, id_)
        self._delete("DELETE FROM mentions WHERE namespace = ? AND kind = ? AND subject = ?", kind, pack_id(id_))
        self.erase_happenings(kind, id_)

    def _delete(self, sql: str, *values: str | bytes | int) -> int:
        change = self._transaction.known()
        if change is None:
            return 0
        gone = self._transaction.db.execute(sql, (change.space, *values)).rowcount
        if gone:
            change.mark()
        return gone
