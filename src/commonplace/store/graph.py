"""The graph of a namespace: its reads and writes, and the only definition of which facts hold when.

Let *known* be `known_at`, the time whose knowledge a filter asks for, by default the end of time. A fact did not exist
before its `created_at`. As known before its `expired_at` it was true from `valid_from` to `stated_to`; as known from
then on it is true from `valid_from` to `valid_to`, or never if it was retracted. A fact that never expired ends at
`valid_to`. With `valid_at`, a filter selects the facts that were true then, including expired ones; with `open_at`,
those that do not end by then, including expired ones; with neither, those that had not expired. `with_past` without a
time selects all facts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import Final, TypeVar

from commonplace.store.change import ChangingSpace, GraphMemo, SpaceReading
from commonplace.store.dialect import listed
from commonplace.store.rows import Form, Row, Values, check_times, checked, form_of
from commonplace.store.schema import table_of, texts_of
from commonplace.store.statements import Statements
from commonplace.store.validate import check_write
from commonplace.types import NewPassage, Owner, OwnerWrite
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

_EPISODES = form_of(Episode)
_ENTITIES = form_of(Entity)
_RELATIONS = form_of(Relation)
_ALIASES = form_of(Alias)
_MENTIONS = form_of(Mention)
_HAPPENINGS = form_of(Happening)
_RELATION = _RELATIONS.names("r")
SQL: Final = Statements("graph")


_NAMES_PER_READ: Final = 32
STANDING, ENDING, PAST = range(3)
STAGES = 3
_EDGE = "r.id, r.source, r.target, r.created_at, r.confidence, r.dispute != ''"
_ENDS: Final = {
    "from": ("by_source", "r.source = :entity"),
    "to": ("by_target", "r.target = :entity AND r.source != r.target"),
    "all": ("by_time", "true"),
}
_PAIRS_PER_READ = 5000
_UNLIMITED = 2**63 - 1
Value = TypeVar("Value")


@cache
def _named(count: int) -> str:
    """Return the statement `named` for `count` names, with values `:normal_0`, `:normal_1` and so on."""
    statements = (SQL["named"].replace(":normal", f":normal_{n}") for n in range(count))
    return " UNION ALL ".join(f"SELECT * FROM ({sql}) n{n}" for n, sql in enumerate(statements))


def is_all(filter_: GraphFilter) -> bool:
    """Return whether a filter selects all facts, whatever their times."""
    return filter_.with_past and (filter_.valid_at, filter_.open_at, filter_.known_at) == (None, None, None)


def stage_of(relation: Relation) -> int:
    """Return the stage of a fact, by which the indexes group the facts that are read together."""
    if relation.expired_at is not None or relation.is_retracted:
        return PAST
    return STANDING if relation.valid_to is None else ENDING


def text_owner(record: Entity | Relation) -> Owner:
    """Return the owner of an entity's or relation's searchable texts, with its type, and its group as a tag."""
    tags = (record.group,) if record.group else ()
    if isinstance(record, Entity):
        return Owner(record.id, "entity", title=record.name, type=record.type, tags=tags)
    return Owner(record.id, "relation", type=record.type, tags=tags, at=record.valid_from)


def _by_stage(subject: str, columns: str) -> tuple[str, ...]:
    index, condition = _ENDS[subject]
    ending = "ending" if index == "by_time" else f"ending_{index}"
    parts = [(index, f"r.stage = {stage}") for stage in range(STAGES)]
    return tuple(
        f"""
        SELECT {columns} FROM relations r INDEXED BY relations_{suffix}
        WHERE r.namespace = :space AND {condition} AND {stage_condition} AND {SQL["chosen"]}
        ORDER BY r.created_at DESC, r.id
        LIMIT :limit
        """
        for suffix, stage_condition in [*parts, (ending, "r.stage > 0 AND ifnull(r.valid_to, '') > :after")]
    )


@cache
def question(of: str) -> tuple[str, ...]:
    """Return the statements that select the newest relations of a filter: one per stage, and one more.

    An index serves each of them, in the order of its result. The last selects relations that have an end or are past
    and that hold after the time `:after`. `_statements_for` chooses among them.

    Args:
        of: `from` an entity, `to` it, or `all`; `edges` are those from it, then those to it, in columns for `Edge`.
    """
    if of != "edges":
        return _by_stage(of, _RELATION)
    both = zip(_by_stage("from", _EDGE), _by_stage("to", _EDGE), strict=True)  # one statement takes half the time
    return tuple(f"SELECT * FROM ({first}) f UNION ALL SELECT * FROM ({second}) s" for first, second in both)


def _statements_for(statements: tuple[str, ...], filter_: GraphFilter) -> tuple[str, ...]:
    """Return the statements of `question` whose results together are those of a filter."""
    if filter_.known_at is None and (filter_.valid_at, filter_.open_at) != (None, None):
        # Of the facts with an end, the filter selects only those that hold after a time, as known now.
        return statements[STANDING], statements[STAGES]
    return statements[: _stages(filter_)]


def _stages(filter_: GraphFilter) -> int:
    """Return the number of stages with facts that a filter can select: all, or those before `PAST`."""
    is_timeless = (filter_.valid_at, filter_.open_at, filter_.known_at) == (None, None, None)
    return PAST if is_timeless and not filter_.with_past else STAGES


class GraphReading(SpaceReading):
    """The graph of one namespace, as it is at each call.

    Results omit ids that do not exist, and keys whose value would be empty. Ids and names are ordered by code points.
    The module's docstring defines which facts a filter selects; for episodes only its `known_at` counts, for entities
    also `with_past`.

    Raises:
        UsageError: a time of a filter is NaN.
    """

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        return self._by_id(_EPISODES, ids)

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id, without reading their texts, which may be long."""
        return dict(self._rows(SQL["reference_times"], ids=listed(dict.fromkeys(episodes))))

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes of a memory, sorted by version, then id."""
        return self._find(_EPISODES, {"memory": memory}, "AND memory != '' ORDER BY version, id")

    def list_episodes(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of the filter's groups known at `known_at`, newest reference time first, ties by id."""
        rows = self._rows(SQL["episodes"], **_values(filter_, limit), offset=offset)
        return [_EPISODES.build(row) for row in rows]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, including those that were merged into others."""
        return self._by_id(_ENTITIES, ids)

    def entities_by_name(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list sorted by id.

        Args:
            limit: the maximum for each name; the cost does not depend on how many entities exceed it.
        """
        unique = list(dict.fromkeys(normals))
        by_name: defaultdict[str, list[Entity]] = defaultdict(list)
        for begin in range(0, len(unique), _NAMES_PER_READ):
            batch = unique[begin : begin + _NAMES_PER_READ]
            values: Values = {f"normal_{n}": normal for n, normal in enumerate(batch)}
            values["limit"] = _UNLIMITED if limit is None else limit
            for normal, *row in self._rows(_named(len(batch)), **values):
                by_name[normal].append(_ENTITIES.build(row))
        return {normal: by_name[normal] for normal in unique if normal in by_name}

    def list_entities(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of the filter's types and groups, live at `known_at` or now, sorted by name, then id.

        `with_past` without a time includes merged entities. The groups of an entity are those of the episode that named
        it first and of those that mention it.
        """
        rows = self._rows(SQL["entities"], **_values(filter_, limit), offset=offset)
        return [_ENTITIES.build(row) for row in rows]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        # Without a hint SQLite uses one column of the primary key and reads every name of the namespace.
        return self._lists(_ALIASES, "entity", ids, "ORDER BY created_at, normal", by="aliases_by_entity")

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        return self._by_id(_RELATIONS, ids)

    def relations_of(
        self, entities: Sequence[str], filter_: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity (a self-loop once): newest first, ties by id.

        Args:
            limit: the maximum for each entity; the cost does not depend on how many relations exceed it, nor, if the
                filter selects only facts that hold, on how many have ended.
        """
        statements = (*_statements_for(question("from"), filter_), *_statements_for(question("to"), filter_))
        results = self._of_entities(statements, entities, filter_, limit)
        return {entity: _newest_first(rows, 0, limit) for entity, rows in results if rows}

    def facts(self, source: str, type_: str, target: str | None = None, said: str = "") -> list[Relation]:
        """Return all relations of one source and type, and of one target if given: oldest first, ties by id.

        This includes relations that ended or were retracted. The cost does not depend on other relations of the source
        and the target.

        Args:
            said: select those whose attributes, a JSON text, contain this text; not together with a target.
        """
        criteria = {"source": source, "type": type_} | ({} if target is None else {"target": target})
        clause = f"{'AND instr(attributes, :said) > 0 ' * bool(said)}ORDER BY created_at, id"
        return self._find(_RELATIONS, criteria, clause, by="relations_by_fact", said=said)

    def edges_of(
        self,
        entities: Sequence[str],
        filter_: GraphFilter,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
    ) -> dict[str, list[Edge]]:
        """Return the edges of the relations that `relations_of` returns, in the same order.

        The limit for each entity applies before `among` selects edges whose other end is one of these; None: all edges.
        """
        ends = None if among is None else set(among)
        edges = {}
        for entity, rows in self._of_entities(_statements_for(question("edges"), filter_), entities, filter_, limit):
            rows.sort(key=lambda row: (-row[3], row[0]))  # the newest first
            selected = rows if limit is None else rows[:limit]
            if ends is not None:
                selected = [row for row in selected if (row[2] if row[1] == entity else row[1]) in ends]
            if selected:
                edges[entity] = [Edge._make((*row[:5], bool(row[5]))) for row in selected]
        return edges

    def _of_entities(
        self, statements: Sequence[str], entities: Sequence[str], filter_: GraphFilter, limit: int | None
    ) -> Iterator[tuple[str, list[Row]]]:
        """Yield each entity with the rows that the statements find for it, all from one state."""
        values = _values(filter_, limit)
        with self._source.reading(self._namespace) as db:
            key = db.execute("SELECT number FROM namespaces WHERE name = :name", {"name": self._namespace}).fetchone()
            values["space"] = key and key[0]
            for entity in dict.fromkeys(entities):
                values["entity"] = entity
                yield entity, [row for sql in statements for row in db.execute(sql, values)]

    def list_relations(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, those created last first, ties by id."""
        upto = None if limit is None else offset + limit
        [(_, rows)] = self._of_entities(_statements_for(question("all"), filter_), [""], filter_, upto)
        return _newest_first(rows, offset, limit)

    def disputed(self) -> list[Relation]:
        """Return the disputed relations, sorted by dispute, then oldest first, ties by id."""
        return self._find(_RELATIONS, clause="AND dispute != '' ORDER BY dispute, created_at, id")

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return the mentions of entities or relations, by id; each list is sorted by episode, then position."""
        order = 'AND kind = :kind ORDER BY subject, episode, start, "end", name'
        return self._lists(_MENTIONS, "subject", ids, order, kind=kind)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return the mentions in episodes, by episode; each list is sorted by position, then subject."""
        order = 'ORDER BY start, "end", kind, subject, name'
        return self._lists(_MENTIONS, "episode", episodes, order, by="mentions_by_episode")

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return the history of an entity or relation, in the order of recording."""
        return self._find(_HAPPENINGS, {"kind": kind, "subject": id_}, "ORDER BY number")

    def pairs(self, filter_: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that the filter selects, in no order.

        Each batch of 5,000 comes from one state; inside a snapshot of the store, all of them do.
        """
        values = {**_values(filter_, _PAIRS_PER_READ), "stages": _stages(filter_)}
        rows = self._rows(SQL["pairs"], last=None, **values)
        while rows:
            yield from (row[1:] for row in rows)
            rows = self._rows(SQL["pairs"], last=rows[-1][0], **values) if len(rows) == _PAIRS_PER_READ else []

    def counts(self) -> GraphCounts:
        """Return the counts of the graph, including relations that have ended or were retracted."""
        return GraphCounts(*self._rows(SQL["counts"])[0])

    def _by_id(self, form: Form[Value], ids: Sequence[str]) -> dict[str, Value]:
        return {id_: records[0] for id_, records in self._lists(form, "id", ids).items()}

    def _lists(
        self, form: Form[Value], column: str, keys: Sequence[str], clause: str = "", *, by: str = "", **values: str
    ) -> dict[str, list[Value]]:
        """Return the records by their value in a column, for these values; omit keys without a record."""
        by_key: dict[str, list[Value]] = {key: [] for key in keys}
        for record in self._find(form, {column: list(by_key)}, clause, by=by, **values) if by_key else ():
            by_key[getattr(record, column)].append(record)
        return {key: records for key, records in by_key.items() if records}


def _values(filter_: GraphFilter, limit: int | None) -> Values:
    """Return the values of the condition `chosen`; `after` is the time after which a fact must hold, if any."""
    check_times("the filter of a graph", filter_.valid_at, filter_.open_at, filter_.known_at)
    types, groups = (listed(values) if values else None for values in (filter_.types, filter_.groups))
    return {
        "known_at": math.inf if filter_.known_at is None else filter_.known_at,
        "valid_at": filter_.valid_at,
        "after": filter_.open_at if filter_.valid_at is None else filter_.valid_at,
        "is_all": is_all(filter_),
        "types": types,
        "groups": groups,
        "limit": _UNLIMITED if limit is None else limit,
    }


def _newest_first(rows: Iterable[Row], offset: int, limit: int | None) -> list[Relation]:
    """Merge rows from several statements and return the relations of one page, newest first, ties by id."""
    ordered = sorted(rows, key=lambda row: (-row[5], row[0]))
    return [_RELATIONS.build(row) for row in ordered[offset : None if limit is None else offset + limit]]


class GraphChange(ChangingSpace, GraphReading):
    """The graph of one namespace inside one write transaction.

    Any write or deletion takes a change number, the same for the whole transaction. References are not checked: a
    relation may be written before its ends, and erasing a record does not change those that refer to it; `Store.check`
    reports dangling ids.
    """

    def make_id(self, id_: str, kind: Subject) -> str:
        """Record that an id belongs to an entity or fact that this transaction creates; return the id."""
        memo = self._memo
        memo.unwritten.add(id_)
        if kind == "entity":
            memo.created.add(id_)
            memo.without_facts.add(id_)
        return id_

    def expect(self, normals: Iterable[str], *, limit: int | None = None) -> None:
        """Read names ahead for later calls of `entities_by_name`, in one query; write their entities before."""
        memo, missing = self._memo, [name for name in normals if not self._is_cached(name, limit)]
        entities = super().entities_by_name(missing, limit=limit)
        for normal in missing:
            bearers = entities.get(normal, [])
            is_all = limit is None or len(bearers) < limit
            memo.by_name[normal] = None if is_all else limit, [entity.id for entity in bearers]
            memo.entities.update((entity.id, entity) for entity in bearers)

    def entities_by_name(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        memo = self._memo
        if not all(self._is_cached(normal, limit) for normal in normals):
            return super().entities_by_name(normals, limit=limit)
        ids = {normal: memo.by_name[normal][1][:limit] for normal in normals}
        return {normal: [memo.entities[id_] for id_ in entity_ids] for normal, entity_ids in ids.items() if entity_ids}

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        memo = self._memo
        is_cached = all(id_ in memo.created and id_ in memo.entities for id_ in ids)
        return {id_: memo.entities[id_] for id_ in ids} if is_cached else super().entities(ids)

    def facts(self, source: str, type_: str, target: str | None = None, said: str = "") -> list[Relation]:
        return [] if source in self._memo.without_facts else super().facts(source, type_, target, said)

    def put(self, *records: Episode | Alias | Mention | Happening) -> None:
        """Write records, replacing those with the same keys; append happenings to the history."""
        self._change.put(*records)
        for record in records:
            if isinstance(record, Alias):
                self._memo.by_name.pop(record.normal, None)

    def drop(self, record: type[Alias | Mention | Happening], **key: str | int) -> None:
        """Delete the records of a class whose fields have these values."""
        self._change.drop(table_of(record).name, **key)
        if record is Alias:
            self._memo.by_name.pop(str(key["normal"]), None)

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity, replacing the one with the same id.

        Args:
            passages: its searchable texts; an empty sequence removes them, None leaves them as they are. They belong to
                the kind "entity" and the entity's id, name (as title), type, group (as a tag) and `created_at`.
        """
        entity = checked(entity)
        self._put_searchable(entity, "entity", passages)
        memo = self._memo
        previous = memo.entities.get(entity.id)
        is_new = previous is None and entity.id in memo.created
        if not is_new and (previous is None or previous.expired_at is not None or entity.expired_at is not None):
            memo.by_name.clear()  # an entity became live or expired, and its names are unknown here
        memo.entities[entity.id] = entity

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation, replacing the one with the same id, and its searchable texts, as for an entity.

        Their owner has the kind "relation", no title, and `valid_from` as its time.
        """
        relation = checked(relation)
        self._put_searchable(relation, "relation", passages, stage=stage_of(relation))
        self._memo.without_facts -= {relation.source, relation.target}

    def drop_mentions(self, mentions: Iterable[Mention]) -> None:
        """Delete mentions."""
        for mention in mentions:
            self._change.drop("mentions", **_MENTIONS.pack(mention))

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        self._change.drop("mentions", episode=list(ids))
        return self._change.drop("episodes", id=list(ids)).rowcount

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and history; return how many there were."""
        self._change.graph = GraphMemo()
        self._change.drop("aliases", entity=list(ids))
        self._erase_all_of("entity", ids)
        return self._change.drop("entities", id=list(ids)).rowcount

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and history; return how many there were."""
        self._erase_all_of("relation", ids)
        return self._change.drop("relations", id=list(ids)).rowcount

    def _is_cached(self, normal: str, limit: int | None) -> bool:
        """Return whether the entities of a name are cached up to this limit."""
        cached_limit, _ = self._memo.by_name.get(normal, (0, None))
        return cached_limit is None or (limit is not None and limit <= cached_limit)

    def _put_searchable(
        self, record: Entity | Relation, kind: Subject, passages: Sequence[NewPassage] | None, **beside: int
    ) -> None:
        """Write an entity or relation, and its searchable texts if given."""
        change, texts = self._change, None
        if passages is not None:  # check them before writing anything
            texts = check_write(OwnerWrite(text_owner(record), tuple(passages)), change.embedding)
        change.write(record, **beside)
        if texts is None:
            return
        if not texts.passages:
            self._drop_texts(kind, record.id)
            return
        with change.inside(texts_of(self._namespace, kind)):
            if record.id in self._memo.unwritten:
                self._memo.unwritten.remove(record.id)
                change.add_owner(texts.owner, texts.passages, created_at=record.created_at)
            else:
                change.put_owner(texts, record.created_at)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        texts = texts_of(self._namespace, kind)
        if texts in self._change.namespace_ids:
            with self._change.inside(texts):
                self._change.drop_owner(kind, id_)

    def _erase_all_of(self, kind: Subject, ids: Sequence[str]) -> None:
        for id_ in dict.fromkeys(ids):
            self._drop_texts(kind, id_)
        self._change.drop("mentions", kind=kind, subject=list(ids))
        self._change.drop("happenings", kind=kind, subject=list(ids))

    @property
    def _memo(self) -> GraphMemo:
        return self._change.graph
