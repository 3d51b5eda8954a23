"""Find or create the entity that a name refers to, and store its names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from commonplace.dataclasses import replace
from commonplace.graph.facts import OWN
from commonplace.graph.names import (
    KEY,
    MAX_NAME_CHARACTERS,
    Known,
    better_name,
    better_type,
    choose,
    cleaned,
    lookups,
    names_among,
    normal,
    stored_keys,
)
from commonplace.graph.runtime import GraphRuntime
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Alias, Entity, Episode, Happening

MAX_ALIASES: Final = 200
"""An entity has no more names; further ones are understood but not kept."""
MAX_CANDIDATES: Final = 64


class Entities:
    """The entities of a graph under change. What is asked for and not known is made."""

    def __init__(self, graph: GraphChange, ground: GraphRuntime) -> None:
        self._graph = graph
        self._ground = ground

    def of_name(self, name: str, type_: str, episode: Episode, aliases: Sequence[str] = ()) -> Entity:
        """Return the entity that an episode calls by a name, which is written with what is new about it."""
        name = cleaned(name)[:MAX_NAME_CHARACTERS]
        known = known_by(self._graph, name, type_)
        if known is None:
            return self._with_names(self._make(name, type_, episode), (name, *aliases), episode, [])
        entity = self._improve(known, name, type_, episode)
        if not aliases and episode.id and normal(known.name) == normal(name):
            return entity  # most are called by the name that they bear already
        return self._with_names(entity, (name, *aliases), episode, self._aliases(entity))

    def expect(self, called: Iterable[tuple[str, str]], aliases: Iterable[str]) -> None:
        """Read at once what `of_name` will ask for: what names with their types may mean, and what bears aliases."""
        forms = [form for name, type_ in called for form in lookups(cleaned(name)[:MAX_NAME_CHARACTERS], type_)]
        others = (normal(cleaned(alias)[:MAX_NAME_CHARACTERS]) for alias in aliases if cleaned(alias))
        self._graph.expect(dict.fromkeys((*forms, *others)), limit=MAX_CANDIDATES)

    def keep(self, entity: Entity, giver: Episode) -> Entity:
        """Return an entity that somebody names, which no episode's deletion takes along from now on."""
        return self._with_names(entity, (entity.name,), giver, self._aliases(entity))

    def name_again(self, entity: Entity) -> None:
        """Write the keys and the text that follow from the names of an entity, and drop those that do not."""
        self._write(entity, self._aliases(entity))

    def _write(self, entity: Entity, aliases: Sequence[Alias]) -> None:
        names = names_among(aliases)
        wanted = {key for alias in names for key in stored_keys(alias.name, entity.type)}
        for alias in aliases:
            if alias.normal.startswith(KEY) and alias.normal not in wanted:
                self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
        present = {alias.normal for alias in aliases}
        for key in sorted(wanted - present):
            self._graph.put(Alias(entity.id, "", key, entity.created_at))
        self._graph.put_entity(entity, () if entity.merged_into else self._ground.texts.of_entity(entity, names))

    def _make(self, name: str, type_: str, episode: Episode) -> Entity:
        now = episode.created_at
        id_ = self._graph.make_id(self._ground.new_id(), "entity")
        entity = Entity(id_, name, type_, now, trust=episode.trust, group=episode.group)
        return replace(entity, valid_from=episode.reference_time)

    def _improve(self, known: Entity, name: str, type_: str, episode: Episode) -> Entity:
        """Return a known entity with the better of two names and types, and since when it is known to be."""
        better = better_name(known.name, name, known.type)
        began = known.valid_from
        entity = replace(
            known,
            name=better,
            type=better_type(known.type, type_),
            trust=max(known.trust, episode.trust),
            valid_from=episode.reference_time if began is None else min(began, episode.reference_time),
        )
        if better != known.name:
            detail = json.dumps({"name": known.name})
            self._graph.put(Happening("entity", known.id, episode.created_at, "renamed", "", episode.id, detail))
        if entity != known:
            self._graph.put_entity(entity)
        return entity

    def _aliases(self, entity: Entity) -> list[Alias]:
        return self._graph.aliases([entity.id]).get(entity.id, [])

    def _with_names(self, entity: Entity, names: Iterable[str], episode: Episode, aliases: Sequence[Alias]) -> Entity:
        """Give an entity the names that are not among its aliases, but for those that another one bears alone."""
        borne = {alias.normal: alias for alias in aliases}
        fresh = False
        for name in dict.fromkeys(cleaned(each)[:MAX_NAME_CHARACTERS] for each in names):
            form = normal(name) if name else ""
            if not form or len(borne) >= MAX_ALIASES or (form in borne and (episode.id or not borne[form].episode)):
                continue
            if form not in borne and form != normal(entity.name):
                bearers = self._graph.named([form]).get(form, [])
                if any(each.id != entity.id and normal(each.name) == form for each in bearers):
                    continue
            alias = Alias(entity.id, name, form, episode.created_at, episode.id)
            if form in borne:
                alias = replace(borne[form], episode=episode.id)
            borne[form] = alias
            self._graph.put(alias)
            fresh = True
        if fresh or not aliases:
            self._write(entity, sorted(borne.values(), key=lambda alias: (alias.created_at, alias.normal)))
        return entity


def known_by(graph: GraphReading, name: str, type_: str) -> Entity | None:
    """Return the live entity that a name means, None where it means none or nobody can tell which."""
    form = normal(name)
    named = graph.named([form])
    own = [each for each in named.get(form, ()) if normal(each.name) == form]
    if own:
        # Most names are known ones: what else they may mean need not be read.
        chosen = choose(name, type_, [Known(each, (each.name,)) for each in own])
        if chosen is not None:
            return chosen.entity
    others = graph.named([each for each in lookups(name, type_) if each != form], limit=MAX_CANDIDATES)
    found = (named.get(form, [])[:MAX_CANDIDATES], *others.values())
    live = {entity.id: entity for each in found for entity in each}
    if not live:
        return None
    aliases = graph.aliases(list(live))
    candidates = [Known(entity, shown_names(entity, aliases.get(id_, ()))) for id_, entity in live.items()]
    chosen = choose(name, type_, candidates)
    return None if chosen is None else chosen.entity


def shown_names(entity: Entity, aliases: Iterable[Alias]) -> tuple[str, ...]:
    """Return the names of an entity, its own first, without the keys by which it is looked up."""
    return tuple(dict.fromkeys((entity.name, *(alias.name for alias in names_among(aliases)))))


def merged_into(entity: Entity) -> list[str]:
    """Return the ids of the entities that were merged into one, oldest first; not those merged into these."""
    found: list[str] = json.loads(entity.attributes).get(OWN, {}).get("merged", [])
    return found


def with_merged(entity: Entity, merged: Sequence[str]) -> Entity:
    attributes = json.loads(entity.attributes)
    attributes.pop(OWN, None)
    if merged:
        attributes[OWN] = {"merged": list(merged)}
    return replace(entity, attributes=json.dumps(attributes, sort_keys=True))


def all_merged(graph: GraphReading, entity: Entity) -> list[Entity]:
    """Return all entities that are one now: this one, those merged into it, those merged into these."""
    found = [entity]
    for each in found:
        found += graph.entities(merged_into(each)).values()
    return found


def roots(graph: GraphReading, ids: Iterable[str]) -> dict[str, str]:
    """Return what entities are now: themselves, or what they were merged into."""
    found: dict[str, str] = {}
    for id_ in dict.fromkeys(ids):
        root, seen = id_, set[str]()
        while root not in seen:
            seen.add(root)
            entity = graph.entities([root]).get(root)
            if entity is not None and entity.merged_into:
                root = entity.merged_into
        found[id_] = root
    return found
