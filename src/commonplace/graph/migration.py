"""Export and import a graph as one document of Graphiti's nodes and edges.

The document is a JSON object with the lists that Graphiti's own bulk import takes: `episodic_nodes`, `entity_nodes`,
`entity_edges`, `episodic_edges`; one record a line. What the tools of Graphiti's MCP server answer is read too: there
the lists are called `episodes`, `nodes` and `facts`.

A document written here round-trips. Entities of others get lookup names, and facts get the assertions from which they
can be resolved again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from commonplace.dataclasses import dataclass, field, replace
from commonplace.errors import ConfigError, UsageError
from commonplace.formats.graphiti import (
    EntityItem,
    RelationItem,
    entity_json,
    episode_json,
    mentions_json,
    read_entity,
    read_episode,
    read_mentions,
    read_relation,
    relation_json,
)
from commonplace.formats.json_values import View
from commonplace.graph.entities import Entities
from commonplace.graph.facts import Assertion, fact_of, first_said, happening, relation_of
from commonplace.graph.names import MAX_NAME_CHARACTERS, cleaned, names_among, normal
from commonplace.graph.redact import Cleaner, refuse_many_names, refuse_odd_detail
from commonplace.graph.runtime import GraphRuntime, Texts, names_text
from commonplace.graph.views import Seeing
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Alias, Episode, GraphFilter, Happening, Mention, Relation

FORMAT: Final = "graphiti"
EPISODES, ENTITIES, RELATIONS, MENTIONS = "episodic_nodes", "entity_nodes", "entity_edges", "episodic_edges"
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    EPISODES: (EPISODES, "episodes"),
    ENTITIES: (ENTITIES, "nodes"),
    RELATIONS: (RELATIONS, "edges", "facts"),
    MENTIONS: (MENTIONS,),
}
_PAGE: Final = 500
_EVER: Final = GraphFilter(with_past=True)


@dataclass(frozen=True, slots=True)
class Migration(View):
    """What was written, or taken in.

    Attributes:
        path: of the file; None where it went to a stream.
        episodes, entities, relations: how many; of an import, how many were new.
        known: of an import, how many were here already, under the same id, and stayed as they are.
        notices: one sentence each, for people.
    """

    path: Path | None
    episodes: int
    entities: int
    relations: int
    known: int = 0
    is_dry_run: bool = False
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """What a document holds, checked."""

    episodes: tuple[Episode, ...] = ()
    entities: tuple[EntityItem, ...] = ()
    relations: tuple[RelationItem, ...] = ()
    mentions: tuple[Mention, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    """Where each record stands in the document, by its id."""


def write_graphiti(
    graph: GraphReading, seeing: Seeing, words_of: Callable[[str, int], str], write: Callable[[bytes], object]
) -> Migration:
    """Write a whole graph, past and merged things too.

    Args:
        words_of: the words of a memory in one of its versions.
        write: takes the document, piece by piece.
    """
    counts = {}
    write(b'{\n"format": "' + FORMAT.encode() + b'"')
    parts: tuple[tuple[str, Iterable[dict[str, Any]]], ...] = (
        (EPISODES, _episodes(graph, words_of)),
        (ENTITIES, _entities(graph, seeing)),
        (RELATIONS, _relations(graph)),
        (MENTIONS, _mentions(graph)),
    )
    for name, records in parts:
        write(f',\n"{name}": ['.encode())
        counts[name] = 0
        for record in records:
            write(
                (b",\n" if counts[name] else b"\n") + json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
            )
            counts[name] += 1
        write(b"\n]" if counts[name] else b"]")
    write(b"\n}\n")
    return Migration(None, counts[EPISODES], counts[ENTITIES], counts[RELATIONS])


def read_graphiti(data: bytes, now: float) -> Document:
    """Return what a document holds.

    Args:
        now: when what does not say was made.

    Raises:
        ConfigError: it is no such document, or a value is missing or wrong; `path` tells where.
    """
    value = _decoded(data)
    if not isinstance(value, dict):
        raise ConfigError("the document is not a JSON object", path="", remedy=_REMEDY)
    lists = {part: _list(value, names) for part, names in _LISTS.items()}
    if not any(name in value for names in _LISTS.values() for name in names):
        raise ConfigError("the document holds no nodes and no edges", path="", remedy=_REMEDY)
    places: dict[str, str] = {}

    def own(id_: str, path: str) -> None:
        if id_ in places:
            raise ConfigError(f"{path}.uuid is {id_!r:.60}, as that of {places[id_]}", path=f"{path}.uuid", remedy="")
        places[id_] = path

    episodes, entities, relations = [], [], []
    for path, each in lists[EPISODES]:
        episodes.append(read_episode(each, path))
        own(episodes[-1].id, path)
    for path, each in lists[ENTITIES]:
        entities.append(_entity(each, path, now))
        own(entities[-1].entity.id, path)
    for path, each in lists[RELATIONS]:
        relations.append(read_relation(each, path, now))
        own(relations[-1].relation.id, path)
    mentions = tuple(mention for path, each in lists[MENTIONS] for mention in read_mentions(each, path))
    return Document(tuple(episodes), tuple(entities), tuple(relations), mentions, places)


def _entity(value: object, path: str, now: float) -> EntityItem:
    item = read_entity(value, path, now)
    try:
        refuse_many_names(item.aliases)
    except UsageError as error:
        where = f"{path}.attributes"
        raise ConfigError(f"{where}: {error.args[0]}", path=where, remedy=error.remedy) from error
    return item


_REMEDY: Final = f"give it the lists {', '.join(_LISTS)}"


def _episodes(graph: GraphReading, words_of: Callable[[str, int], str]) -> Iterator[dict[str, Any]]:
    for page in _pages(lambda offset: graph.list_episodes(GraphFilter(), limit=_PAGE, offset=offset)):
        mentioned = graph.mentioned([each.id for each in page])
        for each in page:
            said = [found.subject for found in mentioned.get(each.id, ()) if found.kind == "relation"]
            words = each.content or (words_of(each.memory, each.version) if each.memory else "")
            yield episode_json(each, words, list(dict.fromkeys(said)))


def _entities(graph: GraphReading, seeing: Seeing) -> Iterator[dict[str, Any]]:
    for page in _pages(lambda offset: graph.list_entities(_EVER, limit=_PAGE, offset=offset)):
        aliases = graph.aliases([each.id for each in page])
        summaries = {each.uuid: each.summary for each in seeing.entities(page)}
        for each in page:
            happened = tuple(graph.happenings("entity", each.id))
            yield entity_json(EntityItem(each, tuple(aliases.get(each.id, ())), happened), summaries.get(each.id, ""))


def _relations(graph: GraphReading) -> Iterator[dict[str, Any]]:
    for page in _pages(lambda offset: graph.list_relations(_EVER, limit=_PAGE, offset=offset)):
        mentions = graph.mentions("relation", [each.id for each in page])
        for each in page:
            happened = tuple(graph.happenings("relation", each.id))
            yield relation_json(RelationItem(each, tuple(mentions.get(each.id, ())), happened))


def _mentions(graph: GraphReading) -> Iterator[dict[str, Any]]:
    for page in _pages(lambda offset: graph.list_episodes(GraphFilter(), limit=_PAGE, offset=offset)):
        mentioned = graph.mentioned([each.id for each in page])
        for episode in page:
            of_entity: dict[str, list[Mention]] = {}
            for found in mentioned.get(episode.id, ()):
                if found.kind == "entity":
                    of_entity.setdefault(found.subject, []).append(found)
            for some in of_entity.values():
                yield mentions_json(some, episode.group, episode.created_at)


def _pages(page_at: Callable[[int], Sequence[Any]]) -> Iterator[Sequence[Any]]:
    offset = 0
    while page := page_at(offset):
        yield page
        offset += len(page)


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"line {line} is not UTF-8", path=f"line {line}", remedy="save it as UTF-8") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}"
        told = f"{where}, column {error.colno} is not JSON: {error.msg}"
        raise ConfigError(told, path=where, remedy="correct it, or export it again") from error
    except RecursionError as error:
        raise ConfigError("the document nests too deeply", path="", remedy=_REMEDY) from error
    except ValueError as error:
        raise ConfigError(f"the document is not JSON: {error}", path="", remedy="correct it") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _list(value: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the records of a list with their places, under whichever of its names it stands."""
    found = []
    for name in names:
        given = value.get(name)
        if given is not None and not isinstance(given, list):
            raise ConfigError(f"{name} is {given!r:.60}", path=name, remedy="give it a list")
        found += [(f"{name}[{place}]", each) for place, each in enumerate(given or ())]
    return found


_ENDED: Final = "it had ended where it was imported from"


def prepare(texts: Texts, document: Document) -> None:
    """Embed what a document will most likely write, before a transaction begins."""
    names = [(item.entity.name, [alias.name for alias in item.aliases if alias.name]) for item in document.entities]
    texts.prepare([*(item.relation.fact for item in document.relations), *(names_text(*each) for each in names)])


def clean(document: Document) -> Document:
    """Return a document without secrets: placeholders stand for them.

    Raises:
        ConfigError: what stands in it for a program of ours cannot be read by one.
    """
    for item in document.relations:
        _refuse_unfit(item, document.places[item.relation.id])
    cleaner = Cleaner()
    episodes = tuple(map(cleaner.episode, document.episodes))
    entities = tuple(
        replace(
            item,
            entity=cleaner.entity(item.entity),
            aliases=cleaner.aliases(item.entity, item.aliases),
            happenings=cleaner.happenings(item.happenings),
        )
        for item in document.entities
    )
    relations = tuple(
        replace(
            item,
            relation=cleaner.relation(item.relation),
            mentions=cleaner.mentions(item.mentions),
            happenings=cleaner.happenings(item.happenings),
        )
        for item in document.relations
    )
    mentions = cleaner.mentions(document.mentions)
    return replace(document, episodes=episodes, entities=entities, relations=relations, mentions=mentions)


def take_in(
    graph: GraphChange, ground: GraphRuntime, texts: Texts, document: Document, has_memory: Callable[[str, int], bool]
) -> Migration:
    """Write what a document holds and the graph does not.

    Args:
        has_memory: tells whether a memory is there in a version, so that an episode need not hold its words.

    Raises:
        ConfigError: a fact is about entities that are neither in the document nor in the graph.
    """
    run = _TakingIn(graph, ground, texts, document)
    episodes = run.episodes(has_memory)
    entities = run.entities()
    relations = run.relations()
    run.mentions()
    whole = len(document.episodes) + len(document.entities) + len(document.relations)
    known = whole - episodes - entities - relations
    return Migration(None, episodes, entities, relations, known, notices=run.notices())


class _TakingIn:
    """One document on its way in."""

    def __init__(self, graph: GraphChange, ground: GraphRuntime, texts: Texts, document: Document) -> None:
        self._graph = graph
        self._texts = texts
        self._document = document
        self._names = Entities(graph, ground, texts)
        said_in = [each.episode for item in document.relations for each in item.mentions]
        said_in += [each.episode for each in document.mentions]
        known = graph.episodes(list(dict.fromkeys(said_in)))
        self._episodes = {each.id for each in document.episodes} | known.keys()
        ends = [end for item in document.relations for end in (item.relation.source, item.relation.target)]
        ends += [each.subject for each in document.mentions]
        ends += [item.entity.merged_into for item in document.entities if item.entity.merged_into]
        self._entities = {item.entity.id for item in document.entities} | graph.entities(ends).keys()
        self._new: list[str] = []

    def episodes(self, has_memory: Callable[[str, int], bool]) -> int:
        """Write the episodes that are new, and return how many these are."""
        known = self._graph.episodes([each.id for each in self._document.episodes])
        new = [each for each in self._document.episodes if each.id not in known]
        for each in new:
            if each.memory and has_memory(each.memory, each.version):
                self._graph.put_episode(replace(each, content=""))
            elif each.memory:
                self._graph.put_episode(replace(each, memory="", version=0, source="text"))
            else:
                self._graph.put_episode(each)
        return len(new)

    def entities(self) -> int:
        """Write the entities that are new, with their names, and return how many these are."""
        known = self._graph.entities([item.entity.id for item in self._document.entities])
        said = {each.subject: each.episode for each in reversed(self._document.mentions)}
        new = [item for item in self._document.entities if item.entity.id not in known]
        for item in new:
            self._entity(item, said.get(item.entity.id, ""))
        return len(new)

    def relations(self) -> int:
        """Write the facts that are new, and return how many these are."""
        known = self._graph.relations([item.relation.id for item in self._document.relations])
        new = [item for item in self._document.relations if item.relation.id not in known]
        new.sort(key=lambda item: (item.relation.created_at, item.relation.id))
        for order, item in enumerate(new, 1):
            for end, id_ in (("source", item.relation.source), ("target", item.relation.target)):
                if id_ not in self._entities:
                    self._refuse(item.relation.id, f"{end}_node_uuid", id_)
            relation, happened = item.relation, item.happenings
            if not happened:
                relation, happened = self._reckoned(item, order)
                self._hold(item)
            self._graph.put_relation(relation, self._texts.of_relation(relation))
            for each in happened:
                self._graph.put_happening(replace(each, kind="relation", subject=relation.id))
            self._graph.put_mentions([each for each in item.mentions if each.episode in self._episodes])
        return len(new)

    def _hold(self, item: RelationItem) -> None:
        """Let the ends of a fact that another program kept stay as long as the fact does."""
        given = item.relation
        ends = (given.source, given.target)
        episodes = [each.episode for each in item.mentions if each.episode in self._episodes]
        self._graph.put_mentions([Mention(episode, "entity", end, 0, 0) for episode in episodes for end in ends])
        if not episodes:
            giver = Episode("", given.fact, given.created_at, given.created_at)
            for end in self._graph.entities(ends).values():
                self._names.keep(end, giver)

    def mentions(self) -> None:
        """Write where episodes mention entities."""
        known = (each for each in self._document.mentions if each.episode in self._episodes)
        self._graph.put_mentions([each for each in known if each.subject in self._entities])

    def notices(self) -> tuple[str, ...]:
        """Say what a person may want to look at."""
        named = self._graph.named(list(dict.fromkeys(normal(name) for name in self._new)))
        twice = sorted(each[0].name for each in named.values() if len(each) > 1)
        if not twice:
            return ()
        shown = ", ".join(repr(name)[:60] for name in twice[:3])
        return (f"{len(twice)} names are those of several entities now, as {shown}: see `graph merge`",)

    def _entity(self, item: EntityItem, said_in: str) -> None:
        entity = item.entity
        if entity.merged_into and entity.merged_into not in self._entities:
            self._refuse(entity.id, "attributes.commonplace.merged_into", entity.merged_into)
        aliases = item.aliases
        if not names_among(aliases):
            name = cleaned(entity.name)[:MAX_NAME_CHARACTERS]
            home = said_in if said_in in self._episodes else ""
            aliases = (Alias(entity.id, name, normal(name), entity.created_at, home),) if normal(name) else ()
        self._graph.put_entity(entity)
        for each in aliases:
            self._graph.put_alias(replace(each, entity=entity.id))
        self._names.name_again(entity)
        happened = item.happenings or (Happening("entity", entity.id, entity.created_at, "created", "", said_in),)
        for remark in happened:
            self._graph.put_happening(replace(remark, kind="entity", subject=entity.id))
        if not entity.merged_into:
            self._new.append(entity.name)

    def _reckoned(self, item: RelationItem, order: int) -> tuple[Relation, tuple[Happening, ...]]:
        """Return a fact that another program kept as ours are kept, and what is to be remembered of it."""
        given = item.relation
        told = next((at for at in (item.told, given.valid_from) if at is not None), given.created_at)
        episodes = [each.episode for each in item.mentions if each.episode in self._episodes]
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
            episode=episodes[0] if episodes else "",
            attributes=given.attributes,
        )
        fact = first_said(said, given.id, given.type, (given.source, given.target))
        fact.valid_from, fact.valid_to = given.valid_from, given.valid_to
        fact.stated_to, fact.expired_at, fact.is_retracted = given.stated_to, given.expired_at, given.is_retracted
        happened = [happening("created", given.id, said, "")]
        happened += [
            happening("confirmed", given.id, replace(said, episode=each), "") for each in dict.fromkeys(episodes[1:])
        ]
        if given.expired_at is not None or given.is_retracted:
            known = given.created_at if given.expired_at is None else given.expired_at
            until = given.valid_from if given.is_retracted else given.valid_to
            ended = replace(said, saying="denied", at=known, told=known, valid_from=None, valid_to=until, episode="")
            happened.append(happening("ended", given.id, ended, _ENDED))
        return relation_of(fact), tuple(happened)

    def _refuse(self, id_: str, name: str, missing: str) -> None:
        where = f"{self._document.places[id_]}.{name}"
        raise ConfigError(
            f"{where} is {missing!r:.60}, which is neither in the document nor here",
            path=where,
            remedy="export the entities too",
        )


def _refuse_unfit(item: RelationItem, path: str) -> None:
    """Refuse what a fact remembers of its sources where it could not be used."""
    where = f"{path}.attributes.commonplace"
    try:
        fact_of(item.relation)
        for each in item.happenings:
            refuse_odd_detail(each, where)
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{where} is not what an export holds", path=where, remedy="export it again") from error
