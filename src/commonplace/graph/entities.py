"""Find or create the entity that a name refers to, store its names, and merge, split and mend entities.

Assertions keep the entities that they were made about, so a merge can be undone exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.graph.fact_keys import FactKeys
from commonplace.graph.facts import Assertion
from commonplace.graph.names import (
    KEY,
    MAX_NAME_CHARACTERS,
    Known,
    better_name,
    choose,
    cleaned,
    lookups,
    names_among,
    normal,
    shown_names,
    stored_keys,
)
from commonplace.graph.runtime import GraphRuntime, all_merged, made_id, merged_into, with_merged
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

MAX_ALIASES: Final = 200
"""An entity has no more names; further ones are understood but not kept."""
MAX_CANDIDATES: Final = 64


class Entities:
    """The entities of a graph under change: made where they are not known, merged, split, mended when episodes go."""

    def __init__(self, graph: GraphChange, runtime: GraphRuntime) -> None:
        self._graph = graph
        self._runtime = runtime
        self._now = runtime.now()
        self._facts = FactKeys(graph, runtime)

    def of_name(self, name: str, type_: str, episode: Episode, aliases: Sequence[str] = ()) -> Entity:
        """Return the entity that an episode calls by a name, which is written with what is new about it."""
        name, at = cleaned(name)[:MAX_NAME_CHARACTERS], episode.reference_time
        known = known_by(self._graph, name, type_)
        if known is None:
            id_ = self._graph.make_id(made_id(), "entity")
            new = Entity(id_, name, type_, episode.created_at, trust=episode.trust, group=episode.group)
            return self._with_names(replace(new, valid_from=at), (name, *aliases), episode, [])
        # The better of two names and types is kept, and the earliest time at which it is known to be.
        entity = replace(
            known,
            name=better_name(known.name, name, known.type),
            type=type_ if known.type == "concept" else known.type,
            trust=max(known.trust, episode.trust),
            valid_from=at if known.valid_from is None else min(known.valid_from, at),
        )
        if entity.name != known.name:
            detail = json.dumps({"name": known.name})
            self._graph.put(Happening("entity", known.id, episode.created_at, "renamed", "", episode.id, detail))
        if entity != known:
            self._graph.put_entity(entity)
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

    def name_again(self, entity: Entity, aliases: Sequence[Alias] | None = None) -> None:
        """Write the keys and the text that follow from the names of an entity, and drop those that do not."""
        borne = self._aliases(entity) if aliases is None else aliases
        names = names_among(borne)
        wanted = {key for alias in names for key in stored_keys(alias.name, entity.type)}
        for alias in borne:
            if alias.normal.startswith(KEY) and alias.normal not in wanted:
                self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
        for key in sorted(wanted - {alias.normal for alias in borne}):
            self._graph.put(Alias(entity.id, "", key, entity.created_at))
        self._graph.put_entity(entity, () if entity.merged_into else self._runtime.texts.of_entity(entity, names))

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
            self.name_again(entity, sorted(borne.values(), key=lambda alias: (alias.created_at, alias.normal)))
        return entity

    def merge(self, kept: Entity, other: Entity, reason: str) -> tuple[str, ...]:
        """Let one entity be another one from now on; return the ids of the facts that moved."""
        if kept.id == other.id:
            raise UsageError(f"both are {kept.name!r:.80}", remedy="name two entities")
        names = self._graph.aliases([kept.id, other.id])
        borne = {alias.normal for alias in names.get(kept.id, ())}
        added = [alias for alias in names_among(names.get(other.id, ())) if alias.normal not in borne]
        for alias in added:
            self._graph.put(replace(alias, entity=kept.id))
        began = min((each for each in (kept.valid_from, other.valid_from) if each is not None), default=None)
        self._graph.put_entity(replace(other, expired_at=self._now, merged_into=kept.id), ())
        self.name_again(replace(with_merged(kept, [*merged_into(kept), other.id]), valid_from=began))
        forms = [alias.normal for alias in added]
        self._tell(other.id, "merged", reason, into=kept.id, names=forms, valid_from=kept.valid_from)
        self._tell(kept.id, "merged", reason, **{"from": other.id})
        moving = self._relations_of(other.id)
        _, erased = self._facts.revise(moving)
        return tuple(sorted({each.id for each in moving} - erased))

    def unmerge(self, kept: Entity, others: Sequence[Entity], reason: str) -> list[str]:
        """Take entities apart that were merged, as they were before; return the ids of the others."""
        family = {each.id for other in others for each in all_merged(self._graph, other)}
        entity = kept
        for other in others:
            happened = self._graph.happenings("entity", other.id)
            merged = [json.loads(each.detail) for each in happened if each.what == "merged"]
            last = next(each for each in reversed(merged) if "into" in each)
            # The names that came with it go, but for those that the entity was called by since.
            mentions = self._graph.mentions("entity", [entity.id]).get(entity.id, [])
            called = {normal(mention.name) for mention in mentions if mention.name}
            for form in last["names"]:
                if form not in called:
                    self._graph.drop(Alias, entity=entity.id, normal=form)
            names = names_among(self._aliases(entity))
            if names and normal(entity.name) not in {alias.normal for alias in names}:
                entity = replace(entity, name=names[0].name)
            left = [id_ for id_ in merged_into(entity) if id_ != other.id]
            entity = replace(with_merged(entity, left), valid_from=last["valid_from"])
            self.name_again(replace(other, expired_at=None, merged_into=""))
            self._tell(kept.id, "split", reason, **{"from": other.id})
            self._tell(other.id, "split", reason)
        self.name_again(entity)
        self._facts.revise(self._relations_of(kept.id, lambda said: bool({said.source, said.target} & family)))
        return [other.id for other in others]

    def mend(self, entity: Entity, gone: set[str]) -> list[str]:
        """Leave of an entity what others say than the episodes that went; return the ids of what is erased."""
        family = all_merged(self._graph, entity)
        ids = [each.id for each in family]
        mentions, aliases = self._graph.mentions("entity", ids), self._graph.aliases(ids)
        given = {id_ for id_ in ids if any(not each.episode for each in names_among(aliases.get(id_, ())))}
        erased = [id_ for id_ in ids if not mentions.get(id_) and id_ not in given]
        if not erased or len(family) == 1:
            self._graph.erase_entities(erased)
            for each in () if erased else family:
                whole = family if each.id == entity.id else [each]
                self._mend_one(each, [mention for one in whole for mention in mentions.get(one.id, ())], gone)
            return erased
        # Some of what is one has nothing left: all are taken apart, and those that are left become one again.
        found = [(entity.id, "")]
        for id_, _ in found:  # which grows
            each = self._graph.entities([id_])[id_]
            merged = list(self._graph.entities(merged_into(each)).values())
            if merged:
                self.unmerge(each, merged[::-1], "")
            for other in merged:
                told = [one for one in self._graph.happenings("entity", other.id) if one.what == "merged"]
                found.append((other.id, told[-1].reason))
        self._graph.erase_entities(erased)
        left = {id_: reason for id_, reason in found if id_ not in erased}
        mentions = self._graph.mentions("entity", list(left))
        for each in self._graph.entities(list(left)).values():
            self._mend_one(each, mentions.get(each.id, []), gone)
        first = next(iter(left), "")
        for id_, reason in left.items():
            if id_ != first:
                known = self._graph.entities([first, id_])
                self.merge(known[first], known[id_], reason)
        return erased

    def _mend_one(self, entity: Entity, mentions: Sequence[Mention], gone: set[str]) -> None:
        """Let go of the names, times and remarks of episodes that went."""
        times = self._graph.episodes(list(dict.fromkeys(mention.episode for mention in mentions)))
        used: dict[str, str] = {}
        for mention in sorted(mentions, key=lambda each: (times[each.episode].created_at, each.episode)):
            used.setdefault(normal(mention.name) if mention.name else "", mention.episode)
        names = names_among(self._aliases(entity))
        kept = [each for each in names if each.episode not in gone or each.normal in used] or names[:1]
        for alias in names:
            if alias not in kept:
                self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
            elif alias.episode in gone:
                home = used.get(alias.normal, next(iter(times), ""))
                self._graph.put(replace(alias, episode=home))
        has_name = any(each.normal == normal(entity.name) for each in kept)
        told = [each.reference_time for each in times.values()]
        mended = replace(
            entity,
            name=entity.name if has_name else max(kept, key=lambda each: (len(each.name), each.name)).name,
            valid_from=min(told, default=entity.valid_from or 0.0),
        )
        remarks = self._graph.happenings("entity", entity.id)
        if any(each.episode in gone for each in remarks):
            self._graph.drop(Happening, kind="entity", subject=entity.id)
            self._graph.put(*(each for each in remarks if each.episode not in gone))
        if mended.name == entity.name and len(kept) == len(names):
            self._graph.put_entity(mended)  # its names are what they were, and so is the text by which it is found
        else:
            self.name_again(mended)

    def part(self, entity: Entity, names: Sequence[str], reason: str) -> list[str]:
        """Make a new entity of some names, with the facts and mentions of episodes with no other; return its id."""
        forms = {normal(name) for name in names}
        aliases = names_among(self._aliases(entity))
        leaving = [alias for alias in aliases if alias.normal in forms]
        staying = [alias for alias in aliases if alias.normal not in forms]
        known = {alias.normal for alias in aliases}
        for name in names:
            if normal(name) not in known:
                has = ", ".join(repr(alias.name) for alias in (*leaving, *staying))
                raise UsageError(f"{entity.name!r:.80} has no name {name!r:.80}", remedy=f"it has {has:.500}")
        if not leaving or not staying:
            raise UsageError(
                f"of {entity.name!r:.80}, {'all' if leaving else 'no'} names would leave",
                remedy="name some of its names",
            )
        mentions = self._leaving_mentions(entity, known, forms)
        new = replace(
            with_merged(entity, []),
            id=made_id(),
            name=next((alias.name for alias in leaving if alias.name == entity.name), leaving[0].name),
            created_at=self._now,
            summary="",
        )
        self._graph.put(*(replace(alias, entity=new.id) for alias in leaving))
        self.name_again(new)
        self._graph.drop_mentions(mentions)
        self._graph.put(*(replace(mention, subject=new.id) for mention in mentions))
        for alias in leaving:
            self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
        self.name_again(replace(entity, name=staying[0].name) if normal(entity.name) in forms else entity)
        self._tell(entity.id, "split", reason, into=new.id)
        self._tell(new.id, "split", reason, **{"from": entity.id})
        left = {mention.episode for mention in self._graph.mentions("entity", [entity.id]).get(entity.id, ())}
        episodes = {mention.episode for mention in mentions} - left

        def move(_: str, said: Assertion) -> Assertion:
            if said.episode not in episodes:
                return said
            source, target = (new.id if end == entity.id else end for end in (said.source, said.target))
            return replace(said, source=source, target=target)

        self._facts.revise(self._relations_of(entity.id, lambda said: said.episode in episodes), move)
        return [new.id]

    def _leaving_mentions(self, entity: Entity, known: set[str], forms: set[str]) -> list[Mention]:
        """Return the mentions that go with some names: by these, and all of an episode that uses no other name."""
        mentions = self._graph.mentions("entity", [entity.id]).get(entity.id, [])
        used: dict[str, set[bool]] = {}
        for mention in mentions:
            form = normal(mention.name) if mention.name else ""
            if form in known:
                used.setdefault(mention.episode, set()).add(form in forms)
        alone = {episode for episode, which in used.items() if which == {True}}
        return [each for each in mentions if each.episode in alone or (each.name and normal(each.name) in forms)]

    def _relations_of(self, entity: str, is_meant: Callable[[Assertion], bool] | None = None) -> list[Relation]:
        """Return the facts of an entity; given a condition, only those with an assertion that meets it."""
        relations = self._graph.relations_of([entity], GraphFilter(with_past=True)).get(entity, [])
        if is_meant is None:
            return relations
        meant = {id_ for id_, said in self._facts.said_of([each.id for each in relations]) if is_meant(said)}
        return [each for each in relations if each.id in meant]

    def _tell(self, entity: str, what: str, reason: str, **detail: Any) -> None:
        self._graph.put(Happening("entity", entity, self._now, what, reason, "", json.dumps(detail, sort_keys=True)))


def known_by(graph: GraphReading, name: str, type_: str) -> Entity | None:
    """Return the live entity that a name means, None if it means none or is ambiguous."""
    named = graph.named(lookups(name, type_), limit=MAX_CANDIDATES)
    own = [each for each in named.get(normal(name), ()) if normal(each.name) == normal(name)]
    if (chosen := choose(name, type_, [Known(each, (each.name,)) for each in own])) is not None:
        return chosen.entity  # most names are known ones: what else they may mean need not be read
    live = {entity.id: entity for each in named.values() for entity in each}
    if not live:
        return None
    aliases = graph.aliases(list(live))
    candidates = [Known(entity, shown_names(entity, aliases.get(id_, ()))) for id_, entity in live.items()]
    chosen = choose(name, type_, candidates)
    return None if chosen is None else chosen.entity
