"""Export and import a graph as one document of Graphiti's nodes and edges.

The document is a JSON object with the lists that Graphiti's own bulk import takes: `episodic_nodes`, `entity_nodes`,
`entity_edges`, `episodic_edges`; one record a line. Facts that come in get the assertions from which they can be
resolved again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ConfigError, NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.formats.graphiti import (
    RelationItem,
    entity_json,
    episode_json,
    mention_json,
    read_entity,
    read_episode,
    read_mention,
    read_relation,
    relation_json,
)
from commonplace.formats.json_values import View, read_json
from commonplace.graph.entities import Entities
from commonplace.graph.facts import Assertion, first_said, happening, relation_of
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, normal
from commonplace.graph.redact import Cleaner
from commonplace.graph.runtime import GraphRuntime, roots
from commonplace.graph.views import ViewBuilder, Wanted
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types import GRAPH_KINDS
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

FORMAT: Final = "graphiti"
EPISODES, ENTITIES, RELATIONS, MENTIONS = "episodic_nodes", "entity_nodes", "entity_edges", "episodic_edges"
_LISTS: Final = (EPISODES, ENTITIES, RELATIONS, MENTIONS)
_REMEDY: Final = f"give it the lists {', '.join(_LISTS)}"
_PAGE: Final = 500
MAX_BYTES: Final = 256 * 1024 * 1024
"""As values it takes some ten times as much memory."""
_ENDED: Final = "it had ended where it was imported from"


@dataclass(frozen=True, slots=True)
class Migration(View):
    """What was written, or taken in.

    Attributes:
        path: of the file; None where it went to a stream.
        episodes, entities, relations: how many; of an import, how many were new.
        known: of an import, how many were here already, under the same id, and stayed as they are.
    """

    path: Path | None
    episodes: int
    entities: int
    relations: int
    known: int = 0
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """What a file holds, checked and without secrets.

    Attributes:
        mentions: the ids of an episode and of an entity that it mentions.
        places: the path of each record in the document, by its id.
    """

    path: Path
    episodes: tuple[Episode, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[RelationItem, ...] = ()
    mentions: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


def write_graphiti(
    graph: GraphReading, wanted: Wanted, words_of: Callable[[str, int], str], write: Callable[[bytes], object]
) -> Migration:
    """Write a whole graph, past facts too; what was merged into another goes out as that.

    Args:
        words_of: the words of a memory in one of its versions.
        write: takes the document, piece by piece.
    """
    counts = dict.fromkeys(_LISTS, 0)
    write(b'{\n"format": "' + FORMAT.encode() + b'"')
    for name in _LISTS:
        write(f',\n"{name}": ['.encode())
        for record in _records(name, graph, ViewBuilder(graph, wanted), words_of):
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            write(f"{',' * bool(counts[name])}\n{line}".encode())
            counts[name] += 1
        write(b"\n]" if counts[name] else b"]")
    write(b"\n}\n")
    return Migration(None, counts[EPISODES], counts[ENTITIES], counts[RELATIONS])


def _records(
    name: str, graph: GraphReading, build: ViewBuilder, words_of: Callable[[str, int], str]
) -> Iterator[dict[str, Any]]:
    """Yield the records of one of the lists, read page by page."""
    lists: dict[str, Callable[..., Sequence[Any]]] = {ENTITIES: graph.list_entities, RELATIONS: graph.list_relations}
    listed = lists.get(name, graph.list_episodes)  # mentions are listed by episode, too
    offset, wanted = 0, GraphFilter(with_past=name == RELATIONS)
    while page := listed(wanted, limit=_PAGE, offset=offset):
        offset += len(page)
        ids = [each.id for each in page]
        if name == ENTITIES:
            for each, shown in zip(page, build.entities(page), strict=True):
                yield entity_json(each, shown.summary)
            continue
        if name == RELATIONS:
            mentions = graph.mentions("relation", ids)
            for each in page:
                yield relation_json(each, tuple(dict.fromkeys(found.episode for found in mentions.get(each.id, ()))))
            continue
        mentioned = graph.mentioned(ids)
        for each in page:
            said = {
                kind: dict.fromkeys(found.subject for found in mentioned.get(each.id, ()) if found.kind == kind)
                for kind in GRAPH_KINDS
            }
            if name == EPISODES:
                words = each.content or (words_of(each.memory, each.version) if each.memory else "")
                yield episode_json(each, words, tuple(said["relation"]))
            else:
                for entity in sorted(set(roots(graph, said["entity"]).values())):
                    yield mention_json(each, entity)


def read_graphiti(path: Path, now: float) -> Document:
    """Return what a file holds.

    Args:
        now: when what does not say was made.

    Raises:
        ConfigError: it is no such document, or a value is missing or wrong; `path` says where.
        NotFoundError: there is no such file.
        UsageError: it cannot be read, or is too large.
    """
    file = path.expanduser().absolute()
    try:
        data = read_file(file, MAX_BYTES)
    except FileNotFoundError as error:
        raise NotFoundError(f"there is nothing at {file}", remedy="name a file to import") from error
    except OSError as error:
        remedy = "name a file to import; a large graph can be exported in parts, group by group"
        raise UsageError(f"{file} cannot be read: {error.strerror}", remedy=remedy) from error
    try:
        return _document(file, data, now)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error.args[0]}", path=error.path, remedy=error.remedy) from error


def _document(file: Path, data: bytes, now: float) -> Document:
    try:
        value = read_json(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"the document is not JSON: {error}", path="", remedy="correct it, or export it again"
        ) from error
    if not isinstance(value, dict):
        raise ConfigError("the document is not a JSON object", path="", remedy=_REMEDY)
    if value.keys().isdisjoint(_LISTS):
        raise ConfigError("the document holds no nodes and no edges", path="", remedy=_REMEDY)
    lists: dict[str, list[tuple[str, Any]]] = {}
    for name in _LISTS:
        given = value.get(name)
        if given is not None and not isinstance(given, list):
            raise ConfigError(f"{name} is {given!r:.60}", path=name, remedy="give it a list")
        lists[name] = [(f"{name}[{place}]", each) for place, each in enumerate(given or ())]
    clean, places = Cleaner().record, dict[str, str]()
    episodes = [clean(read_episode(each, path)) for path, each in lists[EPISODES]]
    entities = [clean(read_entity(each, path, now)) for path, each in lists[ENTITIES]]
    items = [read_relation(each, path, now) for path, each in lists[RELATIONS]]
    relations = [replace(each, relation=clean(each.relation)) for each in items]
    for part, ids in (
        (EPISODES, [each.id for each in episodes]),
        (ENTITIES, [each.id for each in entities]),
        (RELATIONS, [each.relation.id for each in relations]),
    ):
        for id_, (path, _) in zip(ids, lists[part], strict=True):
            if id_ in places:
                where = f"{path}.uuid"
                raise ConfigError(f"{where} is {id_!r:.60}, as that of {places[id_]}", path=where, remedy="")
            places[id_] = path
    mentions = tuple(read_mention(each, path) for path, each in lists[MENTIONS])
    return Document(file, tuple(episodes), tuple(entities), tuple(relations), mentions, places)


def import_document(runtime: GraphRuntime, document: Document, *, is_dry_run: bool) -> Migration:
    """Import what of a document the graph does not hold, in one transaction.

    Raises:
        ConfigError: a fact is about entities that are neither in the document nor in the graph. Nothing was written.
    """
    new, done = _new_of(runtime.graph, document)
    if not is_dry_run:
        names = [each.name for each in new.entities]
        runtime.texts.prepare([*(each.relation.fact for each in new.relations), *names])
        with runtime.change() as change:
            new, done = _new_of(change.graph, document)
            _write(change.graph, runtime, new)
        runtime.destination.after_batch()
    return replace(done, is_dry_run=is_dry_run)


def _new_of(graph: GraphReading, document: Document) -> tuple[Document, Migration]:
    """Return what of a document the graph does not hold, and what an import of it does."""
    ends = [end for each in document.relations for end in (each.relation.source, each.relation.target)]
    entities = {each.id for each in document.entities}
    known = graph.entities([*entities, *ends, *(entity for _, entity in document.mentions)]).keys()
    for item in document.relations:
        for end in ("source", "target"):
            id_ = getattr(item.relation, end)
            if id_ not in known and id_ not in entities:
                where = f"{document.places[item.relation.id]}.{end}_node_uuid"
                told = f"{document.path}: {where} is {id_!r:.60}, which is neither in the document nor here"
                raise ConfigError(told, path=where, remedy="export the entities too")
    own = {each.id for each in document.episodes}
    said_in = [each for item in document.relations for each in item.episodes] + [each for each, _ in document.mentions]
    held = graph.episodes([*own, *said_in]).keys()
    facts = graph.relations([each.relation.id for each in document.relations]).keys()
    relations = [
        replace(each, episodes=tuple(id_ for id_ in each.episodes if id_ in held or id_ in own))
        for each in sorted(document.relations, key=lambda each: (each.relation.created_at, each.relation.id))
        if each.relation.id not in facts
    ]
    new = replace(
        document,
        episodes=tuple(each for each in document.episodes if each.id not in held),
        entities=tuple(each for each in document.entities if each.id not in known),
        relations=tuple(relations),
        mentions=tuple(
            pair for pair in document.mentions if pair[0] in {*held, *own} and pair[1] in {*known, *entities}
        ),
    )
    many, whole = ((len(each.episodes), len(each.entities), len(each.relations)) for each in (new, document))
    return new, Migration(document.path, *many, known=sum(whole) - sum(many))


def _write(graph: GraphChange, runtime: GraphRuntime, new: Document) -> None:
    entities = Entities(graph, runtime)
    for episode in new.episodes:
        graph.put(episode)
    first = {entity: episode for episode, entity in reversed(new.mentions)}
    for each in new.entities:
        graph.put_entity(each)
        name = cleaned(each.name)[:MAX_NAME_CHARACTERS]
        if normal(name):
            graph.put(Alias(each.id, name, normal(name), each.created_at, first.get(each.id, "")))
        entities.name_again(each)
    for order, item in enumerate(new.relations, 1):
        relation, happened = _resolved(item, order)
        graph.put_relation(relation, runtime.texts.of_relation(relation))
        for remark in happened:
            graph.put(remark)
        # The ends of a fact stay as long as it does.
        ends = (relation.source, relation.target)
        graph.put(*(Mention(each, "relation", relation.id, 0, 0) for each in item.episodes))
        graph.put(*(Mention(each, "entity", end, 0, 0) for each in item.episodes for end in ends))
        if not item.episodes:
            giver = Episode("", relation.fact, relation.created_at, relation.created_at)
            for entity in graph.entities(ends).values():
                entities.keep(entity, giver)
    graph.put(*(Mention(episode, "entity", entity, 0, 0) for episode, entity in new.mentions))


def _resolved(item: RelationItem, order: int) -> tuple[Relation, list[Happening]]:
    """Return a fact that another program kept as ours are kept, and what is to be remembered of it."""
    given = item.relation
    told = next((at for at in (item.told, given.valid_from) if at is not None), given.created_at)
    said = Assertion(
        given.id,
        given.source,
        given.target,
        "said",
        given.fact,
        given.created_at,
        told,
        order,
        valid_from=given.valid_from,
        valid_to=None if given.expired_at is not None else given.valid_to,
        trust=given.trust,
        confidence=given.confidence,
        group=given.group,
        episode=next(iter(item.episodes), ""),
        attributes=given.attributes,
    )
    fact = first_said(said, given.id, given.type, (given.source, given.target))
    for name in ("valid_from", "valid_to", "stated_to", "expired_at", "is_retracted"):
        setattr(fact, name, getattr(given, name))
    happened = [happening("created", given.id, said, "")]
    happened += [happening("confirmed", given.id, replace(said, episode=each), "") for each in item.episodes[1:]]
    if given.expired_at is not None or given.is_retracted:
        known = given.created_at if given.expired_at is None else given.expired_at
        until = given.valid_from if given.is_retracted else given.valid_to
        ended = replace(said, saying="denied", at=known, told=known, valid_from=None, valid_to=until, episode="")
        happened.append(happening("ended", given.id, ended, _ENDED))
    return relation_of(fact), happened
