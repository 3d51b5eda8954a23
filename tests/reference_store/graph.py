"""The graph of the reference store, in dictionaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.store.graph import is_all, text_owner
from commonplace.store.rows import check_times, checked
from commonplace.store.schema import texts_of
from commonplace.store.validate import check_write
from commonplace.types import OwnerWrite
from commonplace.types.graph import Alias, Edge, Episode, GraphCounts, Happening, Mention

if TYPE_CHECKING:
    from tests.reference_store.state import ReferenceTransaction

    from commonplace.types import NewPassage
    from commonplace.types.graph import Entity, GraphFilter, Relation, Subject


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


def check_filter(filter_: GraphFilter) -> None:
    """Refuse a filter with a time that is not a number."""
    check_times("the filter of a graph", filter_.valid_at, filter_.open_at, filter_.known_at)


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
        return sorted(found, key=lambda episode: (episode.version, episode.id))

    def list_episodes(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Episode]:
        """Return the episodes of some groups, known by then, newest reference time first, ties by id."""
        check_filter(filter_)
        with self._opened() as graph:
            found = [
                episode
                for episode in graph.episodes.values()
                if in_groups(episode, filter_) and (filter_.known_at is None or episode.created_at <= filter_.known_at)
            ]
        found.sort(key=lambda episode: (-episode.reference_time, episode.id))
        return found[offset:][:limit]

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        """Return entities by id, those that were merged into others too."""
        with self._opened() as graph:
            return _of_ids(graph.entities, ids)

    def entities_by_name(self, normals: Sequence[str], *, limit: int | None = None) -> dict[str, list[Entity]]:
        """Return the live entities that have one of these normal names, by name, each list by id."""
        with self._opened() as graph:
            named = [(normal, graph.entities.get(entity)) for entity, normal in graph.aliases]
        live = [(normal, entity) for normal, entity in named if entity is not None and entity.expired_at is None]
        live.sort(key=lambda item: item[1].id)
        found = _listed(((normal, entity) for normal, entity in live), normals)
        return {normal: entities[:limit] for normal, entities in found.items() if limit != 0}

    def list_entities(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Entity]:
        """Return the entities of some types and groups, live at `known_at` or now, by name, ties by id."""
        check_filter(filter_)
        with self._opened() as graph:
            grouped = {mention.subject for mention in graph.mentions if _is_of_groups(mention, graph, filter_)}
            found = [
                entity
                for entity in graph.entities.values()
                if is_live(entity, filter_)
                and (not filter_.types or entity.type in filter_.types)
                and (in_groups(entity, filter_) or entity.id in grouped)
            ]
        found.sort(key=lambda entity: (entity.name, entity.id))
        return found[offset:][:limit]

    def aliases(self, ids: Sequence[str]) -> dict[str, list[Alias]]:
        """Return the names of entities, oldest first, ties by normal name."""
        with self._opened() as graph:
            ordered = sorted(graph.aliases.values(), key=lambda alias: (alias.created_at, alias.normal))
        return _listed(((alias.entity, alias) for alias in ordered), ids)

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        """Return relations by id."""
        with self._opened() as graph:
            return _of_ids(graph.relations, ids)

    def relations_of(
        self, entities: Sequence[str], filter_: GraphFilter, *, limit: int | None = None
    ) -> dict[str, list[Relation]]:
        """Return the relations that start or end at each entity: newest knowledge first, ties by id."""
        ordered = self.list_relations(filter_)
        ends = ((end, relation) for relation in ordered for end in {relation.source, relation.target})
        found = {end: relations[:limit] for end, relations in _listed(ends, entities).items()}
        return {end: relations for end, relations in found.items() if relations}

    def facts(self, source: str, type_: str, target: str | None = None, said: str = "") -> list[Relation]:
        """Return all relations of one source and type, to one target where it is given, oldest first, ties by id."""
        with self._opened() as graph:
            found = [
                each
                for each in graph.relations.values()
                if (each.source, each.type) == (source, type_)
                and target in (None, each.target)
                and (target is not None or said in each.attributes)
            ]
        return sorted(found, key=lambda each: (each.created_at, each.id))

    def edges_of(
        self,
        entities: Sequence[str],
        filter_: GraphFilter,
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
            for end, relations in self.relations_of(entities, filter_, limit=limit).items()
        }
        return {end: edges for end, edges in found.items() if edges}

    def list_relations(self, filter_: GraphFilter, *, limit: int | None = None, offset: int = 0) -> list[Relation]:
        """Return relations, newest knowledge first, ties by id."""
        check_filter(filter_)
        with self._opened() as graph:
            found = [relation for relation in graph.relations.values() if is_meant(relation, filter_)]
        found.sort(key=lambda relation: (-relation.created_at, relation.id))
        return found[offset:][:limit]

    def disputed(self) -> list[Relation]:
        """Return the relations that are disputed, by dispute, then oldest first, ties by id."""
        with self._opened() as graph:
            found = [relation for relation in graph.relations.values() if relation.dispute]
        return sorted(found, key=lambda each: (each.dispute, each.created_at, each.id))

    def mentions(self, kind: Subject, ids: Sequence[str]) -> dict[str, list[Mention]]:
        """Return where entities or relations are mentioned, by id; lists by episode, then place."""
        with self._opened() as graph:
            found = [mention for mention in graph.mentions if mention.kind == kind]
        found.sort(key=lambda each: (each.episode, each.start, each.end, each.name))
        return _listed(((mention.subject, mention) for mention in found), ids)

    def mentioned(self, episodes: Sequence[str]) -> dict[str, list[Mention]]:
        """Return what episodes mention, by episode; lists by place, then subject."""
        with self._opened() as graph:
            found = list(graph.mentions)
        found.sort(key=lambda each: (each.start, each.end, each.kind, each.subject, each.name))
        return _listed(((mention.episode, mention) for mention in found), episodes)

    def happenings(self, kind: Subject, id_: str) -> list[Happening]:
        """Return what happened to an entity or relation, in the order in which it was recorded."""
        with self._opened() as graph:
            return [each for each in graph.happenings if (each.kind, each.subject) == (kind, id_)]

    def pairs(self, filter_: GraphFilter) -> Iterator[tuple[str, str, str]]:
        """Yield (relation, source, target) of every relation that is meant, from one state."""
        return ((each.id, each.source, each.target) for each in self.list_relations(filter_))

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


def _is_of_groups(mention: Mention, graph: GraphState, filter_: GraphFilter) -> bool:
    episode = graph.episodes.get(mention.episode)
    return mention.kind == "entity" and episode is not None and in_groups(episode, filter_)


def is_meant(relation: Relation, filter_: GraphFilter) -> bool:
    """Return whether a filter means a relation."""
    is_chosen = (not filter_.types or relation.type in filter_.types) and in_groups(relation, filter_)
    return is_chosen and _is_meant_in_time(relation, filter_)


def is_live(entity: Entity, filter_: GraphFilter) -> bool:
    """Return whether an entity was one at the time of which it is asked what was known, or whether all are meant."""
    if is_all(filter_):
        return True
    known = math.inf if filter_.known_at is None else filter_.known_at
    return entity.created_at <= known and not _has_expired(entity, known)


def in_groups(what: Episode | Entity | Relation, filter_: GraphFilter) -> bool:
    """Return whether something is of one of the groups that are wanted."""
    return not filter_.groups or what.group in filter_.groups


def _is_meant_in_time(relation: Relation, filter_: GraphFilter) -> bool:
    if is_all(filter_):
        return True
    known = math.inf if filter_.known_at is None else filter_.known_at
    if relation.created_at > known:
        return False
    was_open = relation.expired_at is not None and not _has_expired(relation, known)
    if relation.is_retracted and not was_open:
        return False
    end = relation.stated_to if was_open else relation.valid_to
    if filter_.valid_at is None:
        if filter_.open_at is None:
            return not _has_expired(relation, known)
        return end is None or filter_.open_at < end
    has_begun = relation.valid_from is None or relation.valid_from <= filter_.valid_at
    return has_begun and (end is None or filter_.valid_at < end)


def _has_expired(what: Entity | Relation, known: float) -> bool:
    return what.expired_at is not None and what.expired_at <= known


class ReferenceGraphChange(ReferenceGraph):
    """A `GraphChange` on the copy of a graph; whatever is written or deleted takes a change number."""

    def __init__(self, transaction: ReferenceTransaction) -> None:
        super().__init__(self._opened_copy)
        self._transaction = transaction

    def make_id(self, id_: str, kind: Subject) -> str:
        """Return an id that was made for what is about to be written."""
        return id_

    def expect(self, normals: Iterable[str], *, limit: int | None = None) -> None:
        """Do nothing: reading costs nothing here."""

    def put(self, *records: Episode | Alias | Mention | Happening) -> None:
        """Write records in the places of those with their keys."""
        for record in [checked(each) for each in records]:
            match record:
                case Episode():
                    self._graph.episodes[record.id] = record
                case Alias():
                    self._graph.aliases[record.entity, record.normal] = record
                case Mention():
                    self._graph.mentions.add(record)
                case Happening():
                    self._graph.happenings.append(record)
            self._transaction.mark()

    def drop(self, record: type[Alias | Mention | Happening], **key: str | int) -> None:
        """Delete the records of a class that have these values."""
        graph = self._graph
        if record is Alias:
            self._drop(graph.aliases, [(key["entity"], key["normal"])])
        elif record is Mention:
            self._drop_mentions({each for each in graph.mentions if _has(each, key)})
        else:
            kept = [each for each in graph.happenings if not _has(each, key)]
            if len(kept) < len(graph.happenings):
                graph.happenings = kept
                self._transaction.mark()

    def put_entity(self, entity: Entity, passages: Sequence[NewPassage] | None = None) -> None:
        """Write an entity in the place of the one with its id."""
        entity = checked(entity)
        write = self._texts_of(entity, passages)
        self._set(self._graph.entities, entity.id, entity)
        self._put_texts("entity", write, entity.created_at)

    def put_relation(self, relation: Relation, passages: Sequence[NewPassage] | None = None) -> None:
        """Write a relation in the place of the one with its id."""
        relation = checked(relation)
        write = self._texts_of(relation, passages)
        self._set(self._graph.relations, relation.id, relation)
        self._put_texts("relation", write, relation.created_at)

    def _texts_of(self, what: Entity | Relation, passages: Sequence[NewPassage] | None) -> OwnerWrite | None:
        if passages is None:
            return None
        return check_write(OwnerWrite(text_owner(what), tuple(passages)), self._transaction.embedding)

    def drop_mentions(self, mentions: Sequence[Mention]) -> None:
        """Delete mentions."""
        self._drop_mentions(set(mentions) & self._graph.mentions)

    def erase_episodes(self, ids: Sequence[str]) -> int:
        """Delete episodes with their mentions; return how many there were."""
        self._drop_mentions({mention for mention in self._graph.mentions if mention.episode in ids})
        return self._drop(self._graph.episodes, ids)

    def erase_entities(self, ids: Sequence[str]) -> int:
        """Delete entities with their names, texts, mentions and what happened to them; return how many there were."""
        self._drop(self._graph.aliases, [key for key in self._graph.aliases if key[0] in ids])
        self._erase_all_of("entity", ids)
        return self._drop(self._graph.entities, ids)

    def erase_relations(self, ids: Sequence[str]) -> int:
        """Delete relations with their texts, mentions and what happened to them; return how many there were."""
        self._erase_all_of("relation", ids)
        return self._drop(self._graph.relations, ids)

    @property
    def _graph(self) -> GraphState:
        return self._transaction.change.space.graph

    @contextmanager
    def _opened_copy(self) -> Iterator[GraphState]:
        yield self._graph

    def _put_texts(self, kind: Subject, write: OwnerWrite | None, at: float) -> None:
        if write is None:
            return
        if write.passages:
            with self._transaction.inside(texts_of(self._transaction.namespace, kind)) as change:
                change.put(write.owner, write.passages, at)
        else:
            self._drop_texts(kind, write.owner.id)

    def _drop_texts(self, kind: Subject, id_: str) -> None:
        texts = texts_of(self._transaction.namespace, kind)
        if not self._transaction.has(texts):
            return
        with self._transaction.inside(texts) as change:
            number = change.space.by_id.get((kind, id_))
            if number is not None:
                change.remove(number)
                self._transaction.mark()

    def _erase_all_of(self, kind: Subject, ids: Sequence[str]) -> None:
        """Delete what hangs on entities or relations alike."""
        for id_ in ids:
            self._drop_texts(kind, id_)
            self.drop(Happening, kind=kind, subject=id_)
        graph = self._graph
        self._drop_mentions({each for each in graph.mentions if each.kind == kind and each.subject in ids})

    def _drop_mentions(self, gone: set[Mention]) -> None:
        if gone:
            self._graph.mentions -= gone
            self._transaction.mark()

    def _set(self, values: dict[Any, Any], key: object, value: object) -> None:
        values[key] = value
        self._transaction.mark()

    def _drop(self, values: dict[Any, Any], keys: Iterable[object]) -> int:
        gone = [values.pop(key) for key in dict.fromkeys(keys) if key in values]
        if gone:
            self._transaction.mark()
        return len(gone)


def _has(record: object, key: Mapping[str, object]) -> bool:
    return all(getattr(record, name) == value for name, value in key.items())


def _subjects(graph: GraphState, memory: str) -> set[str]:
    own = {each.id for each in graph.episodes.values() if each.memory == memory and memory}
    return {each.subject for each in graph.mentions if each.kind == "relation" and each.episode in own}


def facts_of(graph: GraphState, memory: str) -> list[Relation]:
    """Return the facts that a memory states."""
    return [graph.relations[each] for each in _subjects(graph, memory) if each in graph.relations]


def overtaken_by(graph: GraphState, memory: str) -> str | None:
    """Return the memory that ended the last fact of one, None where any of its facts holds, or none was ended so."""
    facts = _subjects(graph, memory)
    if any(each.valid_to is None or each.is_retracted for each in facts_of(graph, memory)):
        return None
    ended = [each for each in graph.happenings if each.what == "ended" and each.subject in facts]
    by = [graph.episodes[each.episode].memory for each in ended if each.episode in graph.episodes]
    return next((each for each in reversed(by) if each not in ("", memory)), None)
