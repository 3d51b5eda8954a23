"""Convert episodes, entities and facts to and from the JSON of Graphiti's nodes and edges.

The shapes are those of `graphiti_core` (EpisodicNode, EntityNode, EntityEdge, EpisodicEdge) without embeddings, which
its MCP server returns too. Values without a field in Graphiti are under the key `commonplace` as JSON text, since
Graphiti's attributes hold no objects; only what cannot be derived from the rest, so that edits made there count.

Each reader raises a ConfigError whose `path` names the value that is missing or wrong.
"""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar

from commonplace.dataclasses import asdict, dataclass, fields, replace
from commonplace.dates.time import iso, parse
from commonplace.errors import ConfigError
from commonplace.types import ORIGINS
from commonplace.types.graph import EPISODE_SOURCES, Alias, Entity, Episode, Happening, Mention, Relation

MAX_CHARACTERS: Final = 1024 * 1024
"""Of one text."""
MAX_ID_CHARACTERS: Final = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fields:
    """The members of one JSON object; `path` is where it stands in its document."""

    values: Mapping[str, Any]
    path: str

    def id(self, name: str) -> str:
        """Return an id."""
        value = self.text(name)
        if not value.strip() or len(value) > MAX_ID_CHARACTERS or "\0" in value:
            self.refuse(name, value, f"give it an id of 1 to {MAX_ID_CHARACTERS} characters")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text; null counts as absent."""
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.refuse(name, value, "give it a text")
        if len(value) > MAX_CHARACTERS:
            self.refuse(name, value, f"the limit is {MAX_CHARACTERS:,} characters")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts, each once; none where it is absent."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not _is_texts(value):
            self.refuse(name, value, "give it a list of texts")
        return tuple(dict.fromkeys(value))

    def time(self, name: str) -> float | None:
        """Return seconds since the epoch of an ISO 8601 text; one without a zone is UTC; None where it is absent."""
        value = self.values.get(name)
        if value is None:
            return None
        with suppress(ValueError, OverflowError):
            if isinstance(value, str):
                return parse(value.strip())
        return self.refuse(name, value, "give it an ISO 8601 time")

    def needed_time(self, name: str) -> float:
        """Return a time that has to be there."""
        found = self.time(name)
        return self.refuse(name, None, "give it an ISO 8601 time") if found is None else found

    def members(self, name: str) -> dict[str, Any]:
        """Return a JSON object; an empty one where it is absent."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(name, value, "give it an object")
        return value

    def refuse(self, name: str, value: object, remedy: str) -> NoReturn:
        """Say that a value is wrong."""
        where = f"{self.path}.{name}" if name else self.path
        shown = "missing" if value is None else f"{value!r:.60}"
        raise ConfigError(f"{where} is {shown}", path=where, remedy=remedy)


def fields_of(value: object, path: str) -> Fields:
    """Return the members of a JSON object."""
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is {value!r:.60}", path=path, remedy="give it an object")
    return Fields(value, path)


def differences(record: object, plain: object) -> dict[str, Any]:
    """Return the fields of a record that another one of its kind has otherwise."""
    pairs = ((each.name, getattr(record, each.name)) for each in fields(record))  # type: ignore[arg-type]
    return {name: value for name, value in pairs if value != getattr(plain, name)}


def checked(kind: type[T], values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return values as fields of a dataclass."""
    types = {each.name: str(each.type) for each in fields(kind)}  # type: ignore[arg-type]
    found = Fields(values, path)
    for name, value in values.items():
        if name not in types or not _IS[types[name]](value):
            found.refuse(name, value, f"it is no {kind.__name__.lower()}'s; export it again")
    return dict(values)


def json_text(value: object) -> str:
    """Return JSON as text, keys sorted."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def from_json_text(text: object, path: str) -> Any:
    """Return what a JSON text holds."""
    with suppress(ValueError, RecursionError):
        if isinstance(text, str):
            return json.loads(text)
    raise ConfigError(f"{path} is {text!r:.60}", path=path, remedy="give it JSON as a text")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_one_of(choices: Sequence[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in choices


_IS: Final[Mapping[str, Callable[[object], bool]]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
    "bool": lambda value: isinstance(value, bool),
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "Origin": _is_one_of(ORIGINS),
    "EpisodeSource": _is_one_of(EPISODE_SOURCES),
    "Subject": _is_one_of(("entity", "relation")),
    "Saying": _is_one_of(("said", "denied", "once", "settled", "beside")),
}


EXTRA: Final = "commonplace"
LABELS: Final = "labels"
"""The attribute that keeps labels of an entity which its type does not tell."""
FOREIGN_TRUST: Final = 0.6
"""How far is trusted what comes from another's graph: as far as what a tool says."""
_ENTITY: Final = "Entity"
_OURS: Final = {"location": "place", "topic": "concept"}
_UNTYPED: Final = "concept"
_MENTIONS: Final = uuid.UUID("0f0d8b3e-5f6a-5f7b-9a53-6f2d9a1c7f10")
"""Namespace of the UUIDv5 of edges from an episode to an entity, named by both."""
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class EntityItem:
    """An entity with its names and what happened to it."""

    entity: Entity
    aliases: tuple[Alias, ...] = ()
    happenings: tuple[Happening, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationItem:
    """A fact with where it is said and what happened to it.

    Attributes:
        told: when it was said, where Graphiti knows.
    """

    relation: Relation
    mentions: tuple[Mention, ...] = ()
    happenings: tuple[Happening, ...] = ()
    told: float | None = None


def episode_json(episode: Episode, content: str, relations: Sequence[str] = ()) -> dict[str, Any]:
    """Return an episode as an EpisodicNode.

    Args:
        content: its words, also where a memory holds them.
        relations: ids of the facts that it says.
    """
    node = {
        "uuid": episode.id,
        "name": episode.name,
        "group_id": episode.group,
        "labels": [],
        "created_at": iso(episode.created_at),
        "source": "text" if episode.source == "memory" else episode.source,
        "source_description": episode.source_description,
        "content": content,
        "valid_at": iso(episode.reference_time),
        "entity_edges": list(relations),
    }
    extra = differences(replace(episode, content=content), read_episode(node, ""))
    return {**node, EXTRA: json_text(extra)} if extra else node


def read_episode(value: object, path: str) -> Episode:
    """Return the episode of an EpisodicNode.

    An answer of the MCP server lacks `valid_at`: the time when it was taken in stands for it.
    """
    node = fields_of(value, path)
    source = node.text("source", "text")
    created, at = node.time("created_at"), node.time("valid_at")
    if created is None:
        created = node.needed_time("created_at") if at is None else at
    episode = Episode(
        id=node.id("uuid"),
        content=node.text("content", ""),
        reference_time=created if at is None else at,
        created_at=created,
        name=node.text("name", ""),
        source=source if source in ("text", "message", "json") else "text",  # type: ignore[arg-type]
        source_description=node.text("source_description", ""),
        origin="tool",
        trust=FOREIGN_TRUST,
        group=node.text("group_id", ""),
    )
    if EXTRA not in node.values:
        return episode
    where = f"{node.path}.{EXTRA}"
    return _with_own(episode, fields_of(from_json_text(node.values[EXTRA], where), where).values, where)


def entity_json(item: EntityItem, summary: str) -> dict[str, Any]:
    """Return an entity as an EntityNode. `summary`: to show where it has none of its own."""
    entity = item.entity
    attributes = _shown(entity.attributes)
    labels = attributes.pop(LABELS, None)
    if not _is_texts(labels) or type_of(labels) != entity.type:
        labels = labels_of(entity.type)
    node = {
        "uuid": entity.id,
        "name": entity.name,
        "group_id": entity.group,
        "labels": labels,
        "created_at": iso(entity.created_at),
        "summary": entity.summary or summary,
        "attributes": attributes,
    }
    extra: dict[str, Any] = differences(entity, read_entity(node, "").entity)
    extra.update(_lists(aliases=item.aliases, happenings=item.happenings))
    node["attributes"] = {**attributes, EXTRA: json_text(extra)}
    return node


def read_entity(value: object, path: str, now: float = 0.0) -> EntityItem:
    """Return the entity of an EntityNode, or of a node that the MCP server found.

    Args:
        now: when it was made, where it does not say.
    """
    node = fields_of(value, path)
    attributes, extra = _attributes(node)
    created = node.time("created_at")
    labels = node.texts("labels")
    type_ = type_of(list(labels))
    if labels and list(labels) != labels_of(type_) and set(labels) != {_ENTITY}:
        attributes[LABELS] = list(labels)
    entity = Entity(
        id=node.id("uuid"),
        name=node.text("name"),
        type=type_,
        created_at=now if created is None else created,
        summary=node.text("summary", ""),
        attributes=json_text(attributes),
        trust=FOREIGN_TRUST,
        group=node.text("group_id", ""),
    )
    where = f"{path}.attributes.{EXTRA}"
    aliases = _items(Alias, extra.pop("aliases", []), f"{where}.aliases")
    happenings = _items(Happening, extra.pop("happenings", []), f"{where}.happenings")
    return EntityItem(_with_own(entity, extra, where), aliases, happenings)


def relation_json(item: RelationItem) -> dict[str, Any]:
    """Return a fact as an EntityEdge; one that was never true is never valid there."""
    relation = item.relation
    ended = relation.valid_to
    if relation.is_retracted and ended is None:
        ended = relation.valid_from if relation.valid_from is not None else relation.expired_at
    edge = {
        "uuid": relation.id,
        "group_id": relation.group,
        "source_node_uuid": relation.source,
        "target_node_uuid": relation.target,
        "created_at": iso(relation.created_at),
        "name": relation.type,
        "fact": relation.fact,
        "episodes": list(dict.fromkeys(each.episode for each in item.mentions)),
        "expired_at": iso(relation.expired_at),
        "valid_at": iso(relation.valid_from),
        "invalid_at": iso(ended),
        "attributes": _shown(relation.attributes),
    }
    plain = read_relation(edge, "")
    extra: dict[str, Any] = differences(relation, plain.relation)
    if item.mentions != plain.mentions:
        extra.update(_lists(mentions=item.mentions))
    extra.update(_lists(happenings=item.happenings))
    edge["attributes"] = {**_shown(relation.attributes), EXTRA: json_text(extra)}
    return edge


def read_relation(value: object, path: str, now: float = 0.0) -> RelationItem:
    """Return the fact of an EntityEdge, or of a fact that the MCP server found.

    Args:
        now: when it was made, where it does not say.
    """
    edge = fields_of(value, path)
    attributes, extra = _attributes(edge)
    id_, created = edge.id("uuid"), edge.time("created_at")
    expired, began, ended = edge.time("expired_at"), edge.time("valid_at"), edge.time("invalid_at")
    relation = Relation(
        id=id_,
        source=edge.id("source_node_uuid"),
        target=edge.id("target_node_uuid"),
        type=edge.text("name", "") or "RELATED_TO",
        fact=edge.text("fact", ""),
        created_at=now if created is None else created,
        valid_from=began,
        valid_to=ended,
        stated_to=None if expired is not None else ended,
        expired_at=expired,
        # What ends before it begins was never true: so Graphiti says it, and so it is said to Graphiti.
        is_retracted=began is not None and ended is not None and ended <= began,
        trust=FOREIGN_TRUST,
        group=edge.text("group_id", ""),
        attributes=json_text(attributes),
    )
    where = f"{path}.attributes.{EXTRA}"
    mentions = tuple(Mention(each, "relation", id_, 0, 0) for each in edge.texts("episodes"))
    if "mentions" in extra:
        mentions = _items(Mention, extra.pop("mentions"), f"{where}.mentions")
    happenings = _items(Happening, extra.pop("happenings", []), f"{where}.happenings")
    return RelationItem(_with_own(relation, extra, where), mentions, happenings, edge.time("reference_time"))


def mentions_json(mentions: Sequence[Mention], group: str, created_at: float) -> dict[str, Any]:
    """Return where one episode mentions one entity as an EpisodicEdge."""
    first = mentions[0]
    edge = {
        "uuid": str(uuid.uuid5(_MENTIONS, f"{first.episode}\n{first.subject}")),
        "group_id": group,
        "source_node_uuid": first.episode,
        "target_node_uuid": first.subject,
        "created_at": iso(created_at),
    }
    if tuple(mentions) != read_mentions(edge, ""):
        edge[EXTRA] = json_text([[each.start, each.end, each.name] for each in mentions])
    return edge


def read_mentions(value: object, path: str) -> tuple[Mention, ...]:
    """Return where an EpisodicEdge says that an episode mentions an entity."""
    edge = fields_of(value, path)
    episode, entity = edge.id("source_node_uuid"), edge.id("target_node_uuid")
    if EXTRA not in edge.values:
        return (Mention(episode, "entity", entity, 0, 0),)
    where = f"{path}.{EXTRA}"
    found = from_json_text(edge.values[EXTRA], where)
    if not isinstance(found, list) or not all(isinstance(each, list) and len(each) == 3 for each in found):
        edge.refuse(EXTRA, edge.values[EXTRA], "give it a list of [start, end, name]")
    values = [dict(zip(("start", "end", "name"), each, strict=True)) for each in found]
    return tuple(Mention(episode, "entity", entity, **checked(Mention, each, where)) for each in values)


def type_of(labels: object) -> str:
    """Return the type that an entity's labels say; `concept` where they say none."""
    names = [each for each in labels if each != _ENTITY] if isinstance(labels, list) else []
    words = _WORD.findall(names[-1].lower()) if names and isinstance(names[-1], str) else []
    name = "_".join(words)
    return _OURS.get(name, name) or _UNTYPED


def labels_of(type_: str) -> list[str]:
    """Return the labels of an entity of a type."""
    if type_ == _UNTYPED:
        return [_ENTITY]
    return [_ENTITY, "_".join(word.capitalize() for word in type_.split("_"))]


def _shown(attributes: str) -> dict[str, Any]:
    """Return attributes without those whose names begin as ours do, and objects, which Graphiti's databases refuse."""
    given = json.loads(attributes).items()
    return {name: value for name, value in given if name not in ("_", EXTRA) and not _has_objects(value)}


def _has_objects(value: object) -> bool:
    parts = value if isinstance(value, list) else [value]
    return any(isinstance(each, dict | list) or each is None for each in parts)


def _attributes(found: Fields) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of a node or edge, and what of ours stands among them."""
    attributes = dict(found.members("attributes"))
    text = attributes.pop(EXTRA, None)
    attributes.pop("_", None)
    if text is None:
        return attributes, {}
    where = f"{found.path}.attributes.{EXTRA}"
    return attributes, dict(fields_of(from_json_text(text, where), where).values)


def _with_own(record: T, extra: Mapping[str, Any], where: str) -> T:
    """Return a record with those of its fields that stand under our own key."""
    if "attributes" in extra:
        fields_of(from_json_text(extra["attributes"], f"{where}.attributes"), f"{where}.attributes")
    return replace(record, **checked(type(record), extra, where))  # type: ignore[type-var]


def _lists(**records: Sequence[Any]) -> dict[str, list[dict[str, Any]]]:
    return {name: [asdict(each) for each in found] for name, found in records.items() if found}


def _items(kind: type[Any], values: object, path: str) -> tuple[Any, ...]:
    if not isinstance(values, list):
        return (fields_of(values, path),)
    found = []
    for place, value in enumerate(values):
        where = f"{path}[{place}]"
        given = checked(kind, fields_of(value, where).values, where)
        if "detail" in given:
            fields_of(from_json_text(given["detail"], f"{where}.detail"), f"{where}.detail")
        try:
            found.append(kind(**given))
        except TypeError:
            fields_of(value, where).refuse("", value, "export it again")
    return tuple(found)
