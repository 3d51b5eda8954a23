"""How a graph stands in the columns of the SQLite store, both ways. It knows bytes and tuples, no SQL."""

from __future__ import annotations

from commonplace.store.graph_rules import stage_of
from commonplace.store.rows import Row, pack_id, pack_text, unpack
from commonplace.types.graph import Alias, Edge, Entity, Episode, Happening, Mention, Relation


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
