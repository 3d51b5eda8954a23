"""Export and import a graph as one document of Graphiti's nodes and edges.

The document is a JSON object with the lists that Graphiti's own bulk import takes: `episodic_nodes`, `entity_nodes`,
`entity_edges`, `episodic_edges`; one record per line. Imported facts get assertions, from which they can be resolved
again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ConfigError, NotFoundError, UsageError
from commonplace.files import read_file
from commonplace.formats import graphiti
from commonplace.formats.json_values import View, read_json
from commonplace.graph.entities import Entities
from commonplace.graph.facts import Assertion, first_said, happening, relation_of
from commonplace.graph.names import clipped, normal
from commonplace.graph.redact import Cleaner
from commonplace.graph.runtime import GraphRuntime, roots
from commonplace.graph.views import QueryFilters, ViewBuilder
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

FORMAT: Final = "graphiti"
EPISODES, ENTITIES, RELATIONS, MENTIONS = "episodic_nodes", "entity_nodes", "entity_edges", "episodic_edges"
_LISTS: Final = (EPISODES, ENTITIES, RELATIONS, MENTIONS)
_REMEDY: Final = f"give it the lists {', '.join(_LISTS)}"
_PAGE: Final = 500
MAX_BYTES: Final = 256 * 1024 * 1024
"""Maximum size of a document; parsed, it takes about ten times as much memory."""
_ENDED: Final = "it had ended where it was imported from"


@dataclass(frozen=True, slots=True)
class Migration(View):
    """The result of an export or an import.

    Attributes:
        path: of the file; None for a stream.
        episodes, entities, relations: number of records; of an import, number of new ones.
        known: of an import, number of records whose id was in the graph already; they stay unchanged.
    """

    path: Path | None
    episodes: int
    entities: int
    relations: int
    known: int = 0
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file, checked and without secrets.

    Mentions are pairs of the ids of an episode and an entity; places are paths of records in the document, by id.
    """

    path: Path
    episodes: tuple[Episode, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[graphiti.GraphitiFact, ...] = ()
    mentions: tuple[tuple[str, str], ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)


def write_graphiti(
    graph: GraphReading, filters: QueryFilters, words_of: Callable[[str, int], str], write: Callable[[bytes], object]
) -> Migration:
    """Write a whole graph, past facts included; merged entities are replaced by the entity they were merged into.

    The text of a version of a memory comes from `words_of`; `write` takes the document, chunk by chunk.
    """
    counts = dict.fromkeys(_LISTS, 0)
    write(b'{\n"format": "' + FORMAT.encode() + b'"')
    for name in _LISTS:
        write(f',\n"{name}": ['.encode())
        for record in _records(name, graph, ViewBuilder(graph, filters), words_of):
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
    listed = lists.get(name, graph.list_episodes)  # mentions too are listed by episode
    offset, filter_ = 0, GraphFilter(with_past=name == RELATIONS)
    while page := listed(filter_, limit=_PAGE, offset=offset):
        offset += len(page)
        ids = [record.id for record in page]
        if name == ENTITIES:
            for record, view in zip(page, build.entities(page), strict=True):
                yield graphiti.entity_json(record, view.summary)
            continue
        if name == RELATIONS:
            mentions = graph.mentions("relation", ids)
            for record in page:
                cited = dict.fromkeys(row.episode for row in mentions.get(record.id, ()))
                yield graphiti.relation_json(record, tuple(cited))
            continue
        mentioned = graph.mentioned(ids)
        for record in page:
            rows = mentioned.get(record.id, ())
            if name == EPISODES:
                facts = dict.fromkeys(row.subject for row in rows if row.kind == "relation")
                words = record.content or words_of(record.memory, record.version)
                yield graphiti.episode_json(record, words, tuple(facts))
            else:
                ends = roots(graph, [row.subject for row in rows if row.kind == "entity"])
                yield from (graphiti.mention_json(record, entity) for entity in sorted(set(ends.values())))


def read_graphiti(path: Path, now: float) -> Document:
    """Read a document; `now` is the time of creation of records without one.

    Raises:
        ConfigError: it is not such a document, or a value is missing or wrong; `path` says where.
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
        records = value.get(name)
        if records is not None and not isinstance(records, list):
            raise ConfigError(f"{name} is {records!r:.60}", path=name, remedy="give it a list")
        lists[name] = [(f"{name}[{index}]", entry) for index, entry in enumerate(records or ())]
    clean, places = Cleaner().record, dict[str, str]()
    episodes = [clean(graphiti.read_episode(record, path)) for path, record in lists[EPISODES]]
    entities = [clean(graphiti.read_entity(record, path, now)) for path, record in lists[ENTITIES]]
    items = [graphiti.read_relation(record, path, now) for path, record in lists[RELATIONS]]
    relations = [replace(item, relation=clean(item.relation)) for item in items]
    listed: list[Episode | Entity | Relation] = [*episodes, *entities, *(item.relation for item in relations)]
    paths = [path for name in _LISTS[:-1] for path, _ in lists[name]]
    for stored, path in zip(listed, paths, strict=True):
        if stored.id in places:
            where = f"{path}.uuid"
            raise ConfigError(f"{where} is {stored.id!r:.60}, as that of {places[stored.id]}", path=where, remedy="")
        places[stored.id] = path
    mentions = tuple(graphiti.read_mention(record, path) for path, record in lists[MENTIONS])
    return Document(file, tuple(episodes), tuple(entities), tuple(relations), mentions, places)


def import_document(runtime: GraphRuntime, document: Document, *, is_dry_run: bool) -> Migration:
    """Import the records of a document that the graph does not have, in one transaction.

    Raises:
        ConfigError: a fact refers to an entity that is neither in the document nor in the graph. Nothing is written.
    """
    missing, summary = _new_of(runtime.graph, document)
    if not is_dry_run:
        names = [entity.name for entity in missing.entities]
        runtime.texts.prepare([*(item.relation.fact for item in missing.relations), *names])
        with runtime.change() as change:
            missing, summary = _new_of(change.graph, document)
            _write(change.graph, runtime, missing)
        runtime.destination.after_batch()
    return replace(summary, is_dry_run=is_dry_run)


def _new_of(graph: GraphReading, document: Document) -> tuple[Document, Migration]:
    """Return the records of a document that the graph does not have, and the result of importing them."""
    ends = [end for edge in document.relations for end in (edge.relation.source, edge.relation.target)]
    entities = {node.id for node in document.entities}
    stored = graph.entities([*entities, *ends, *(entity for _, entity in document.mentions)]).keys()
    for item in document.relations:
        for end in ("source", "target"):
            id_ = getattr(item.relation, end)
            if id_ not in stored and id_ not in entities:
                where = f"{document.places[item.relation.id]}.{end}_node_uuid"
                problem = f"{document.path}: {where} is {id_!r:.60}, which is neither in the document nor here"
                raise ConfigError(problem, path=where, remedy="export the entities too")
    listed = {episode.id for episode in document.episodes}
    cited = [ref for item in document.relations for ref in item.episodes] + [ref for ref, _ in document.mentions]
    present = graph.episodes([*listed, *cited]).keys()
    episodes_here, entities_here = present | listed, stored | entities
    facts = graph.relations([edge.relation.id for edge in document.relations]).keys()
    relations = [
        replace(edge, episodes=tuple(id_ for id_ in edge.episodes if id_ in episodes_here))
        for edge in sorted(document.relations, key=lambda edge: (edge.relation.created_at, edge.relation.id))
        if edge.relation.id not in facts
    ]
    missing = replace(
        document,
        episodes=tuple(episode for episode in document.episodes if episode.id not in present),
        entities=tuple(node for node in document.entities if node.id not in stored),
        relations=tuple(relations),
        mentions=tuple(pair for pair in document.mentions if pair[0] in episodes_here and pair[1] in entities_here),
    )
    counts, totals = ((len(part.episodes), len(part.entities), len(part.relations)) for part in (missing, document))
    return missing, Migration(document.path, *counts, known=sum(totals) - sum(counts))


def _write(graph: GraphChange, runtime: GraphRuntime, document: Document) -> None:
    entities = Entities(graph, runtime)
    for episode in document.episodes:
        graph.put(episode)
    first_episode = {entity: episode for episode, entity in reversed(document.mentions)}
    for node in document.entities:
        graph.put_entity(node)
        name = clipped(node.name)
        if normal(name):
            graph.put(Alias(node.id, name, normal(name), node.created_at, first_episode.get(node.id, "")))
        entities.name_again(node)
    for order, item in enumerate(document.relations, 1):
        relation, events = _resolved(item, order)
        graph.put_relation(relation, runtime.texts.of_relation(relation))
        for event in events:
            graph.put(event)
        # Mentions of the ends keep them as long as the fact exists.
        ends = (relation.source, relation.target)
        graph.put(*(Mention(episode_id, "relation", relation.id, 0, 0) for episode_id in item.episodes))
        graph.put(*(Mention(episode_id, "entity", end, 0, 0) for episode_id in item.episodes for end in ends))
        if not item.episodes:
            giver = Episode("", relation.fact, relation.created_at, relation.created_at)
            for entity in graph.entities(ends).values():
                entities.keep(entity, giver)
    graph.put(*(Mention(episode, "entity", entity, 0, 0) for episode, entity in document.mentions))


def _resolved(item: graphiti.GraphitiFact, order: int) -> tuple[Relation, list[Happening]]:
    """Return an imported fact in the stored form, and the happenings that record its assertions."""
    relation = item.relation
    said_at = next((time for time in (item.stated_at, relation.valid_from) if time is not None), relation.created_at)
    origin = Assertion(
        relation.id,
        relation.source,
        relation.target,
        "said",
        relation.fact,
        relation.created_at,
        said_at,
        order,
        valid_from=relation.valid_from,
        valid_to=None if relation.expired_at is not None else relation.valid_to,
        trust=relation.trust,
        confidence=relation.confidence,
        group=relation.group,
        episode=next(iter(item.episodes), ""),
        attributes=relation.attributes,
    )
    fact = first_said(origin, relation.id, relation.type, (relation.source, relation.target))
    for name in ("valid_from", "valid_to", "stated_to", "expired_at", "is_retracted"):
        setattr(fact, name, getattr(relation, name))
    events = [happening("created", relation.id, origin, "")]
    events += [happening("confirmed", relation.id, replace(origin, episode=id_), "") for id_ in item.episodes[1:]]
    if relation.expired_at is not None or relation.is_retracted:
        moment = relation.created_at if relation.expired_at is None else relation.expired_at
        until = relation.valid_from if relation.is_retracted else relation.valid_to
        ended = replace(origin, saying="denied", at=moment, told=moment, valid_from=None, valid_to=until, episode="")
        events.append(happening("ended", relation.id, ended, _ENDED))
    return relation_of(fact), events
