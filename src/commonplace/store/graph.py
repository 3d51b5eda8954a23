"""The graph of a namespace: its reads and writes, and the rules of which facts hold when, which are nowhere else.

Let *known* be the time of which it is asked what was known, or the end of time. A fact was not there before its
`created_at`. Until its `expired_at` it was true from `valid_from` to `stated_to`; from then on it is true from
`valid_from` to `valid_to`, or never where it was retracted. Where a fact never expired, `valid_to` is its end. With
`valid_at`, a filter selects the facts that were true then, expired ones included; with `open_at`, those that do not
end by then, expired ones included; without both, those that had not expired. `with_past` selects all facts there are,
where no time is given.
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


_NAMES_A_READ: Final = 32


@cache
def _named(count: int) -> str:
    """Return the statement that is `named` of so many names, `:normal_0` and so on."""
    each = (SQL["named"].replace(":normal", f":normal_{n}") for n in range(count))
    return " UNION ALL ".join(f"SELECT * FROM ({sql}) n{n}" for n, sql in enumerate(each))


def times_of(wanted: GraphFilter) -> dict[str, float | None]:
    """Return the values of the condition `chosen`; `after` is the time after which a fact must hold, if any.

    Raises:
        UsageError: a time is not a number.
    """
    check_times("the filter of a graph", wanted.valid_at, wanted.open_at, wanted.known_at)
    return {
        "known_at": math.inf if wanted.known_at is None else wanted.known_at,
        "valid_at": wanted.valid_at,
        "after": wanted.open_at if wanted.valid_at is None else wanted.valid_at,
        "is_all": is_all(wanted),
    }


def reaches_past(wanted: GraphFilter) -> bool:
    """Return whether a filter can select facts that have expired or were retracted."""
    return wanted.with_past or (wanted.valid_at, wanted.open_at, wanted.known_at) != (None, None, None)


def is_all(wanted: GraphFilter) -> bool:
    """Return whether a filter selects all facts, whatever their times."""
    return wanted.with_past and (wanted.valid_at, wanted.open_at, wanted.known_at) == (None, None, None)


STANDING, ENDING, PAST = range(3)
STAGES = 3


def stage_of(relation: Relation) -> int:
    """Return the stage of a fact, by which an index keeps together the facts that are asked for together.

    `PAST` are those that have expired or were retracted, `ENDING` others that have an end, `STANDING` all others.
    """
    if relation.expired_at is not None or relation.is_retracted:
        return PAST
    return STANDING if relation.valid_to is None else ENDING


def text_owner(what: Entity | Relation) -> Owner:
    """Return the owner of the texts by which an entity or relation is found: its type, its group as a tag."""
    tags = (what.group,) if what.group else ()
    if isinstance(what, Entity):
        return Owner(what.id, "entity", title=what.name, type=what.type, tags=tags)
    return Owner(what.id, "relation", type=what.type, tags=tags, at=what.valid_from)


_EDGE = "r.id, r.source, r.target, r.created_at, r.confidence, r.dispute != ''"


_ENDS: Final = {
    "from": ("by_source", "r.source = :entity"),
    "to": ("by_target", "r.target = :entity AND r.source != r.target"),
    "all": ("by_time", "true"),
}


def _by_stage(of: str, columns: str) -> tuple[str, ...]:
    index, by = _ENDS[of]
    ending = "ending" if index == "by_time" else f"ending_{index}"
    parts = [(index, f"r.stage = {stage}") for stage in range(STAGES)]
    return tuple(
        f"""
        SELECT {columns} FROM relations r INDEXED BY relations_{suffix}
        WHERE r.namespace = :space AND {by} AND {condition} AND {SQL["chosen"]}
        ORDER BY r.created_at DESC, r.id
        LIMIT :limit
        """
        for suffix, condition in [*parts, (ending, "r.stage > 0 AND ifnull(r.valid_to, '') > :after")]
    )


@cache
def question(of: str) -> tuple[str, ...]:
    """Return a question about the newest relations that are chosen: a statement for each stage, and one more.

    Each is served by an index and gives its answer in order. The last asks for what has an end, or is past, and holds
    after the time `:after`; `_asked` chooses among them.

    Args:
        of: `from` an entity, `to` it, or `all`; `edges` are from it, then to it, as far as it takes to follow them.
    """
    if of != "edges":
        return _by_stage(of, _RELATION)
    both = zip(_by_stage("from", _EDGE), _by_stage("to", _EDGE), strict=True)  # asked at once they take half the time
    return tuple(f"SELECT * FROM ({first}) f UNION ALL SELECT * FROM ({second}) s" for first, second in both)


def _asked(statements: tuple[str, ...], wanted: GraphFilter) -> tuple[str, ...]:
    """Return those statements of a question whose answers together are that of a filter."""
    if wanted.known_at is None and (wanted.valid_at, wanted.open_at) != (None, None):
        # Of facts with an end it selects only those that hold after a time, as known now.
        return statements[STANDING], statements[STAGES]
    return statements[:STAGES] if reaches_past(wanted) else statements[:PAST]


_PAIRS_A_READ = 5000
_UNLIMITED = 2**63 - 1

Value = TypeVar("Value")


class GraphReading(SpaceReading):
    """The graph of one namespace, as it is when each call is made.

    What is not there is absent from answers, and so is what an answer by id would have nothing for. Ids and names are
    ordered by code points. The rules above say which facts a filter selects; of episodes its `known_at` alone
    counts, of entities `with_past` too.

    Raises:
        UsageError: a time of a filter is not a number.
    """

    def episodes(self, ids: Sequence[str]) -> dict[str, Episode]:
        """Return episodes by id."""
        return self._by_id(_EPISODES, ids)

    def reference_times(self, episodes: Sequence[str]) -> dict[str, float]:
        """Return when episodes were said or happened, by id; their words, of which there may be many, are not read."""
        return dict(self._rows(SQL["reference_times"], ids=listed(dict.fromkeys(episodes))))

    def episodes_of_memory(self, memory: str) -> list[Episode]:
        """Return the episodes that a memory is, by version, ties by id."""
        return self._find(_EPISODES, {"memory": memory}, "AND memory != '' ORDER BY version, id")

    def list_episodes(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        rows = self._rows(SQL["episodes"], **_values(wanted, limit), offset=offset)
        return [_EPISODES.build(row) for row in rows]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        return self._by_id(_ENTITIES, ids)

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id.

        Args:
            limit: how many of each name at most; what it costs does not grow with those beyond.
        """
        asked = list(dict.fromkeys(normals))
        found: defaultdict[str, list[Entity]] = defaultdict(list)
        for begin in range(0, len(asked), _NAMES_A_READ):
            some = asked[begin : begin + _NAMES_A_READ]
            values: Values = {f"normal_{n}": normal for n, normal in enumerate(some)}
            values["limit"] = _UNLIMITED if limit is None else limit
            for normal, *row in self._rows(_named(len(some)), **values):
                found[normal].append(_ENTITIES.build(row))
        return {normal: found[normal] for normal in asked if normal in found}

    def list_entities(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id.

        With `with_past`, where no time is given, those that were merged into others are listed too. An entity is of a
        group where it was named first in it or any episode of the group mentions it.
        """
        rows = self._rows(SQL["entities"], **_values(wanted, limit), offset=offset)
        return [_ENTITIES.build(row) for row in rows]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        # Without a hint SQLite takes the primary key, of which one column fits, and reads every name of the namespace.
        return self._lists(_ALIASES, "entity", ids, "ORDER BY created_at, normal", by="aliases_by_entity")

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        return self._by_id(_RELATIONS, ids)

    def relations_of(
        self, entities: Sequence[str], wanted: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity, one with itself once: newest first, ties by id.

        Args:
            limit: how many of each entity at most; what it costs does not grow with those beyond, nor, where the filter
                selects only what holds, with those that have ended.
        """
        asked = (*_asked(question("from"), wanted), *_asked(question("to"), wanted))
        found = self._of_entities(asked, entities, wanted, limit)
        return {entity: _newest_first(rows, 0, limit) for entity, rows in found if rows}

    def facts(self, source: str, type_: str, target: str | None = None, said: str = "") -> list[Relation]:
        """Return all relations of one source and type, to one target where it is given, oldest first, ties by id.

        Those that have ended or were retracted are among them. What it costs does not grow with the other relations of
        source and target.

        Args:
            said: only those whose attributes, a JSON text, have these words; not together with a target.
        """
        wanted = {"source": source, "type": type_} | ({} if target is None else {"target": target})
        rest = f"{'AND instr(attributes, :said) > 0 ' * bool(said)}ORDER BY created_at, id"
        return self._find(_RELATIONS, wanted, rest, by="relations_by_fact", said=said)

    def edges_of(
        self,
        entities: Sequence[str],
        wanted: GraphFilter,
        *,
        limit: int | None = None,
        among: Collection[str] | None = None,
    ) -> dict[str, list[Edge]]:
        """Return of what `relations_of` returns as much as it takes to follow it, in the same order.

        Args:
            limit: how many of each entity at most, those counted that do not lead to one `among` these.
            among: only edges whose other end is one of these; None: all.
        """
        beside = None if among is None else set(among)
        found = {}
        for entity, rows in self._of_entities(_asked(question("edges"), wanted), entities, wanted, limit):
            rows.sort(key=lambda row: (-row[3], row[0]))  # the newest first
            kept = rows if limit is None else rows[:limit]
            if beside is not None:
                kept = [row for row in kept if (row[2] if row[1] == entity else row[1]) in beside]
            if kept:
                found[entity] = [Edge._make((*row[:5], bool(row[5]))) for row in kept]
        return found

    def _of_entities(
        self, asked: Sequence[str], entities: Sequence[str], wanted: GraphFilter, limit: int | None
    ) -> Iterator[tuple[str, list[Row]]]:
        """Yield each entity with what the statements find of it, all in one state."""
        values = _values(wanted, limit)
        with self._source.reading(self._namespace) as db:
            found = db.execute("SELECT number FROM namespaces WHERE name = :name", {"name": self._namespace}).fetchone()
            values["space"] = found and found[0]
            for entity in dict.fromkeys(entities):
                values["entity"] = entity
                yield entity, [row for sql in asked for row in db.execute(sql, values)]

    def list_relations(self, wanted: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, newest knowledge first, ties by id."""
        upto = None if limit is None else offset + limit
        [(_, rows)] = self._of_entities(_asked(question("all"), wanted), [""], wanted, upto)
        return _newest_first(rows, offset, limit)

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        return self._find(_RELATIONS, rest="AND dispute != '' ORDER BY dispute, created_at, id")

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        rest = 'AND kind = :kind ORDER BY subject, episode, start, "end", name'
        return self._lists(_MENTIONS, "subject", ids, rest, kind=kind)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        rest = 'ORDER BY start, "end", kind, subject, name'
        return self._lists(_MENTIONS, "episode", episodes, rest, by="mentions_by_episode")

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        return self._find(_HAPPENINGS, {"kind": kind, "subject": id_}, "ORDER BY number")

    def pairs(self, wanted: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that the filter selects, in no order.

        Some thousands at a time are of one state; inside a snapshot of the store, all are.
        """
        stages = STAGES if reaches_past(wanted) else PAST
        values = {**_values(wanted, _PAIRS_A_READ), "stages": stages}
        rows = self._rows(SQL["pairs"], last=None, **values)
        while rows:
            yield from (row[1:] for row in rows)
            rows = self._rows(SQL["pairs"], last=rows[-1][0], **values) if len(rows) == _PAIRS_A_READ else []

    def counts(self) -> GraphCounts:
        """Return how much there is: relations that have ended or were retracted count."""
        return GraphCounts(*self._rows(SQL["counts"])[0])

    def _by_id(self, form: Form[Value], ids: Sequence[str]) -> dict[str, Value]:
        return {id_: records[0] for id_, records in self._lists(form, "id", ids).items()}

    def _lists(
        self, form: Form[Value], column: str, keys: Sequence[str], rest: str = "", *, by: str = "", **values: str
    ) -> dict[str, list[Value]]:
        """Return the records that have each key in a column."""
        found: dict[str, list[Value]] = {key: [] for key in keys}
        for record in self._find(form, {column: list(found)}, rest, by=by, **values) if found else ():
            found[getattr(record, column)].append(record)
        return {key: records for key, records in found.items() if records}


def _values(wanted: GraphFilter, limit: int | None) -> Values:
    types, groups = (listed(values) if values else None for values in (wanted.types, wanted.groups))
    return {"types": types, "groups": groups, "limit": _UNLIMITED if limit is None else limit, **times_of(wanted)}


def _newest_first(rows: Iterable[Row], offset: int, limit: int | None) -> list[Relation]:
    """Put rows in order that came in order from several indexes."""
    ordered = sorted(rows, key=lambda row: (-row[5], row[0]))
    return [_RELATIONS.build(row) for row in ordered[offset : None if limit is None else offset + limit]]


class GraphChange(ChangingSpace, GraphReading):
    """The graph of one namespace inside one write transaction.

    Whatever is written or deleted takes a change number, that of all that is done in the transaction. Ids are not
    followed: a relation may be written before its ends, and what is erased may be named by others; `Store.check`
    reports ids that lead nowhere.
    """

    def make_id(self, id_: str, kind: Subject) -> str:
        """Return an id that was made for an entity or fact that is about to be written."""
        memo = self._memo
        memo.unwritten.add(id_)
        if kind == "entity":
            memo.made.add(id_)
            memo.untold.add(id_)
        return id_

    def expect(self, normals: Iterable[str], *, limit: int | None = None) -> None:
        """Read at once what `named` will be asked for; see there. Whoever has got a name has been written."""
        memo, asked = self._memo, [each for each in normals if not self._holds(each, limit)]
        found = super().named(asked, limit=limit)
        for normal in asked:
            bearers = found.get(normal, [])
            is_all = limit is None or len(bearers) < limit
            memo.named[normal] = None if is_all else limit, [each.id for each in bearers]
            memo.entities.update((each.id, each) for each in bearers)

    def named(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        memo = self._memo
        if not all(self._holds(normal, limit) for normal in normals):
            return super().named(normals, limit=limit)
        ids = {normal: memo.named[normal][1][:limit] for normal in normals}
        return {normal: [memo.entities[id_] for id_ in some] for normal, some in ids.items() if some}

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        memo = self._memo
        is_known = all(id_ in memo.made and id_ in memo.entities for id_ in ids)
        return {id_: memo.entities[id_] for id_ in ids} if is_known else super().entities(ids)

    def facts(self, source: str, type_: str, target: str | None = None, said: str = "") -> list[Relation]:
        return [] if source in self._memo.untold else super().facts(source, type_, target, said)

    def put(self, *records: Episode | Alias | Mention | Happening) -> None:
        """Write records in the places of those with their keys; what happened comes after all that happened before."""
        self._change.put(*records)
        for record in records:
            if isinstance(record, Alias):
                self._memo.named.pop(record.normal, None)

    def drop(self, record: type[Alias | Mention | Happening], **key: str | int) -> None:
        """Delete the records of a class that have these values."""
        self._change.drop(table_of(record).name, **key)
        if record is Alias:
            self._memo.named.pop(str(key["normal"]), None)

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id.

        Args:
            passages: the texts by which it is found; none makes it unfindable by words; None leaves them as they are.
                They belong to an owner of the kind "entity" with its id, its name as title, its type, its group as a
                tag, and its `created_at`, as they are now.
        """
        entity = checked(entity)
        self._put_found(entity, "entity", passages)
        memo = self._memo
        was = memo.entities.get(entity.id)
        is_new = was is None and entity.id in memo.made
        if not is_new and (was is None or was.expired_at is not None or entity.expired_at is not None):
            memo.named.clear()  # one that came to life, or went, with names that nobody has looked at
        memo.entities[entity.id] = entity

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id.

        Args:
            passages: as for an entity; the owner has the kind "relation", no title, and `valid_from` as its time.
        """
        relation = checked(relation)
        self._put_found(relation, "relation", passages, stage=stage_of(relation))
        self._memo.untold -= {relation.source, relation.target}

    def drop_mentions(self, mentions: Iterable[Mention]) -> None:
        """Delete mentions."""
        for mention in mentions:
            self._change.drop("mentions", **_MENTIONS.pack(mention))

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        self._change.drop("mentions", episode=list(ids))
        return self._change.drop("episodes", id=list(ids)).rowcount

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        self._change.graph = GraphMemo()
        self._change.drop("aliases", entity=list(ids))
        self._erase_all_of("entity", ids)
        return self._change.drop("entities", id=list(ids)).rowcount

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        self._erase_all_of("relation", ids)
        return self._change.drop("relations", id=list(ids)).rowcount

    def _holds(self, normal: str, limit: int | None) -> bool:
        """Return whether so many entities of a name are known."""
        read, _ = self._memo.named.get(normal, (0, None))
        return read is None or (limit is not None and limit <= read)

    def _put_found(
        self, what: Entity | Relation, kind: Subject, passages: Sequence[NewPassage] | None, **beside: int
    ) -> None:
        """Write an entity or relation, and the texts by which it is found where they are given."""
        change, texts = self._change, None
        if passages is not None:  # refused before anything is written
            texts = check_write(OwnerWrite(text_owner(what), tuple(passages)), change.embedding)
        change.write(what, **beside)
        if texts is None:
            return
        if not texts.passages:
            self._drop_texts(kind, what.id)
            return
        with change.inside(texts_of(self._namespace, kind)):
            if what.id in self._memo.unwritten:
                self._memo.unwritten.remove(what.id)
                change.add_owner(texts.owner, texts.passages, created_at=what.created_at)
            else:
                change.put_owner(texts, what.created_at)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        texts = texts_of(self._namespace, kind)
        if texts in self._change.spaces:
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
