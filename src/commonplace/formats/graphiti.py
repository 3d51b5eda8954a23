"""Convert episodes, entities and facts to and from the JSON of Graphiti's nodes and edges.

The shapes are those of `graphiti_core` (EpisodicNode, EntityNode, EntityEdge, EpisodicEdge) without embeddings; its MCP
server returns the same. Graphiti has no field for aliases, trust, disputes, merges and history: they stay here.

Every reader raises a ConfigError whose `path` names the missing or wrong value.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from commonplace.dataclasses import dataclass
from commonplace.dates.time import iso, parse
from commonplace.errors import ConfigError
from commonplace.types.graph import Entity, Episode, Relation

MAX_CHARACTERS: Final = 1024 * 1024
"""Maximum length of one text."""
MAX_ID_CHARACTERS: Final = 200
FOREIGN_TRUST: Final = 0.6
"""Trust in whatever comes from a foreign graph, the same as in a tool's output."""
_ENTITY: Final = "Entity"
_TYPE_SYNONYMS: Final = {"location": "place", "topic": "concept"}
_DEFAULT_TYPE: Final = "concept"
_MENTIONS: Final = uuid.UUID("0f0d8b3e-5f6a-5f7b-9a53-6f2d9a1c7f10")
"""UUIDv5 namespace of the edges from an episode to an entity; the name holds both ids."""
_EDGE_ENDS: Final = ("source_node_uuid", "target_node_uuid")
_UNFIT: Final = (dict, list, type(None))
_WORD: Final = re.compile(r"[^\W_]+")


def _members(
    value: object, path: str, *, ids: Iterable[str], texts: Iterable[str] = (), times: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the checked members of the JSON object at a path; an absent text is "", an absent time None."""
    if not isinstance(value, dict):
        raise ConfigError(f"{path} is {value!r:.60}", path=path, remedy="give it an object")
    members: dict[str, Any] = {}
    for name in (*ids, *texts):
        text = members[name] = "" if value.get(name) is None and name not in ids else value.get(name)
        if not isinstance(text, str):
            _refuse(path, name, text, "give it a text")
        if len(text) > MAX_CHARACTERS:
            _refuse(path, name, text, f"the limit is {MAX_CHARACTERS:,} characters")
        if name in ids and (not text.strip() or len(text) > MAX_ID_CHARACTERS or "\0" in text):
            _refuse(path, name, text, f"give it an id of 1 to {MAX_ID_CHARACTERS} characters")
    for name in times:
        timestamp = value.get(name)
        try:
            members[name] = None if timestamp is None else parse(str(timestamp).strip())
        except (ValueError, OverflowError):
            _refuse(path, name, timestamp, "give it an ISO 8601 time")
    attributes = {} if value.get("attributes") is None else value["attributes"]
    if not isinstance(attributes, dict):
        _refuse(path, "attributes", attributes, "give it an object")
    return {**members, "attributes": {name: attribute for name, attribute in attributes.items() if name != "_"}}


def _list(value: Any, path: str, name: str) -> list[str]:
    """Return a list of texts without duplicates, [] if it is absent."""
    texts = [] if value.get(name) is None else value[name]
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        _refuse(path, name, texts, "give it a list of texts")
    return list(dict.fromkeys(texts))


def _refuse(path: str, name: str, value: object, remedy: str) -> NoReturn:
    description = "missing" if value is None else f"{value!r:.60}"
    raise ConfigError(f"{path}.{name} is {description}", path=f"{path}.{name}", remedy=remedy)


@dataclass(frozen=True, slots=True)
class GraphitiFact:
    """A fact, the ids of the episodes that state it, and the time of the statement, if Graphiti has it."""

    relation: Relation
    episodes: tuple[str, ...] = ()
    stated_at: float | None = None


def episode_json(episode: Episode, content: str, relations: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return an episode as an EpisodicNode, with its text, even if a memory holds it, and the ids of its facts."""
    return {
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


def read_episode(value: object, path: str) -> Episode:
    """Return the episode of an EpisodicNode; `created_at` replaces `valid_at`, which the MCP server's answers lack."""
    texts = ("content", "name", "source", "source_description", "group_id")
    node = _members(value, path, ids=("uuid",), texts=texts, times=("created_at", "valid_at"))
    created, valid = node["created_at"], node["valid_at"]
    reference_time = created if valid is None else valid
    if reference_time is None:
        _refuse(path, "created_at", None, "give it an ISO 8601 time")
    source = node["source"]
    return Episode(
        id=node["uuid"],
        content=node["content"],
        reference_time=reference_time,
        created_at=reference_time if created is None else created,
        name=node["name"],
        source=source if source in ("text", "message", "json") else "text",
        source_description=node["source_description"],
        origin="tool",
        trust=FOREIGN_TRUST,
        group=node["group_id"],
    )


def entity_json(entity: Entity, summary: str) -> dict[str, Any]:
    """Return an entity as an EntityNode. `summary`: used if the entity has none of its own."""
    return {
        "uuid": entity.id,
        "name": entity.name,
        "group_id": entity.group,
        "labels": labels_of(entity.type),
        "created_at": iso(entity.created_at),
        "summary": entity.summary or summary,
        "attributes": _scalars(entity.attributes),
    }


def read_entity(value: object, path: str, now: float = 0.0) -> Entity:
    """Return the entity of an EntityNode, or of an answer of the MCP server; `now` replaces a missing `created_at`."""
    node = _members(value, path, ids=("uuid",), texts=("name", "summary", "group_id"), times=("created_at",))
    created = node["created_at"]
    if isinstance(value, dict) and value.get("name") is None:
        _refuse(path, "name", None, "give it a text")
    return Entity(
        id=node["uuid"],
        name=node["name"],
        type=type_of(_list(value, path, "labels")),
        created_at=now if created is None else created,
        summary=node["summary"],
        attributes=_json_text(node["attributes"]),
        trust=FOREIGN_TRUST,
        group=node["group_id"],
    )


def relation_json(relation: Relation, episodes: tuple[str, ...]) -> dict[str, Any]:
    """Return a fact as an EntityEdge; a retracted one becomes invalid when it begins, so it is never valid there."""
    ended = relation.valid_to
    if relation.is_retracted and ended is None:
        ended = relation.valid_from if relation.valid_from is not None else relation.expired_at
    return {
        "uuid": relation.id,
        "group_id": relation.group,
        "source_node_uuid": relation.source,
        "target_node_uuid": relation.target,
        "created_at": iso(relation.created_at),
        "name": relation.type,
        "fact": relation.fact,
        "episodes": list(episodes),
        "expired_at": iso(relation.expired_at),
        "valid_at": iso(relation.valid_from),
        "invalid_at": iso(ended),
        "attributes": _scalars(relation.attributes),
    }


def read_relation(value: object, path: str, now: float = 0.0) -> GraphitiFact:
    """Return the fact of an EntityEdge, or of an answer of the MCP server; `now` replaces a missing `created_at`."""
    times = ("created_at", "expired_at", "valid_at", "invalid_at", "reference_time")
    edge = _members(value, path, ids=("uuid", *_EDGE_ENDS), texts=("name", "fact", "group_id"), times=times)
    created, expired, began, ended, stated_at = (edge[name] for name in times)
    relation = Relation(
        id=edge["uuid"],
        source=edge["source_node_uuid"],
        target=edge["target_node_uuid"],
        type=edge["name"] or "RELATED_TO",
        fact=edge["fact"],
        created_at=now if created is None else created,
        valid_from=began,
        valid_to=ended,
        stated_to=None if expired is not None else ended,
        expired_at=expired,
        # A fact that ends before it begins was never true; `relation_json` writes retracted facts in this way.
        is_retracted=began is not None and ended is not None and ended <= began,
        trust=FOREIGN_TRUST,
        group=edge["group_id"],
        attributes=_json_text(edge["attributes"]),
    )
    return GraphitiFact(relation, tuple(_list(value, path, "episodes")), stated_at)


def mention_json(episode: Episode, entity: str) -> dict[str, Any]:
    """Return the mention of an entity in an episode as an EpisodicEdge."""
    return {
        "uuid": str(uuid.uuid5(_MENTIONS, f"{episode.id}\n{entity}")),
        "group_id": episode.group,
        "source_node_uuid": episode.id,
        "target_node_uuid": entity,
        "created_at": iso(episode.created_at),
    }


def read_mention(value: object, path: str) -> tuple[str, str]:
    """Return the ids of the episode and the entity of an EpisodicEdge."""
    edge = _members(value, path, ids=_EDGE_ENDS)
    return edge["source_node_uuid"], edge["target_node_uuid"]


def type_of(labels: Sequence[str]) -> str:
    """Return the type of an entity from its labels; `concept` if they name none."""
    names = [label for label in labels if label != _ENTITY]
    name = "_".join(_WORD.findall(names[-1].lower())) if names else ""
    return _TYPE_SYNONYMS.get(name, name) or _DEFAULT_TYPE


def labels_of(type_: str) -> list[str]:
    """Return the labels of entities of a type."""
    if type_ == _DEFAULT_TYPE:
        return [_ENTITY]
    return [_ENTITY, "_".join(word.capitalize() for word in type_.split("_"))]


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _scalars(attributes: str) -> dict[str, Any]:
    """Return attributes without our own `_`, and without nulls and objects, which Graphiti's databases refuse."""
    own = ((name, value) for name, value in json.loads(attributes).items() if name != "_")
    listed = ((name, value, value if isinstance(value, list) else [value]) for name, value in own)
    return {name: value for name, value, parts in listed if not any(isinstance(one, _UNFIT) for one in parts)}
