"""Write a graph as one document of Graphiti's nodes and edges, and read such a document. It knows no files.

The document is a JSON object with the lists that Graphiti's own bulk import takes: `episodic_nodes`, `entity_nodes`,
`entity_edges`, `episodic_edges`; one record a line. What the tools of Graphiti's MCP server answer is read too: there
the lists are called `episodes`, `nodes` and `facts`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

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
from commonplace.graph.cleaning import refuse_many_names
from commonplace.graph.views import View
from commonplace.types.graph import Episode, GraphFilter, Mention

if TYPE_CHECKING:
    from commonplace.graph.seeing import Seeing
    from commonplace.store.graph_contract import GraphReading

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

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return View.to_dict(self) | {"path": None if self.path is None else str(self.path)}


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
            write((b",\n" if counts[name] else b"\n") + _encoded(record))
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
        raise ConfigError("the document is no JSON object", path="", remedy=_REMEDY)
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


def _encoded(record: dict[str, Any]) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which Python's texts can hold and UTF-8 cannot, goes out as the escape of JSON.
        return json.dumps(record, allow_nan=False).encode()


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
