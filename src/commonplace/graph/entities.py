"""Find or create the entity that a name refers to, store its names, and merge, split and mend entities.

Assertions keep the ids of the entities that they were first made about, so a merge can be undone exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.extract.model import ExtractedEntity
from commonplace.graph.fact_keys import FactKeys
from commonplace.graph.facts import Assertion
from commonplace.graph.names import better_name, choose, clipped, lookups, names_among, normal, shown_names, stored_keys
from commonplace.graph.runtime import GraphRuntime, all_merged, made_id, merged_into, with_merged
from commonplace.store.graph import GraphChange, GraphReading
from commonplace.types.graph import Alias, Entity, Episode, GraphFilter, Happening, Mention, Relation

MAX_ALIASES: Final = 200
"""Maximum number of names of an entity; further names are resolved but not stored."""
MAX_CANDIDATES: Final = 64


class Entities:
    """Creates, merges and splits the entities of a graph in a transaction, and mends them when episodes are deleted."""

    def __init__(self, graph: GraphChange, runtime: GraphRuntime, leaving: Sequence[str] = ()) -> None:
        """Use `leaving` for the episodes that are taken out next: a name that only they wrote is read anew."""
        self._leaving = frozenset(leaving)
        self._graph = graph
        self._runtime = runtime
        self._now = runtime.now()
        self._facts = FactKeys(graph, runtime)

    def of_name(self, name: str, type_: str, episode: Episode, aliases: Sequence[str] = ()) -> Entity:
        """Return the entity that an episode names; create it, or write what the episode adds to it."""
        name, at = clipped(name), episode.reference_time
        stored = known_by(self._graph, name, type_)
        if stored is None:
            id_ = self._graph.make_id(made_id(), "entity")
            entity = Entity(id_, name, type_, episode.created_at, trust=episode.trust, group=episode.group)
            return self._with_names(replace(entity, valid_from=at), (name, *aliases), episode, [])
        if self._leaving and self._is_leaving(stored):
            stored = replace(stored, name=name, type=type_, trust=episode.trust)
            self._graph.put(Alias(stored.id, name, normal(name), stored.created_at, episode.id))
            self.name_again(stored)
        # Keep the better of two names and types, and the earliest time from which the entity is known.
        updated = replace(
            stored,
            name=better_name(stored.name, name, stored.type),
            type=type_ if stored.type == "concept" else stored.type,
            trust=max(stored.trust, episode.trust),
            valid_from=at if stored.valid_from is None else min(stored.valid_from, at),
        )
        if updated.name != stored.name:
            detail = json.dumps({"name": stored.name})
            self._graph.put(Happening("entity", stored.id, episode.created_at, "renamed", "", episode.id, detail))
        if updated != stored:
            self._graph.put_entity(updated)
        if not aliases and episode.id and normal(stored.name) == normal(name):
            return updated  # the common case: the name is stored already
        return self._with_names(updated, (name, *aliases), episode, self._aliases(updated))

    def _is_leaving(self, entity: Entity) -> bool:
        """Return whether only episodes that are taken out next mention an entity."""
        mentions = self._graph.mentions("entity", [entity.id]).get(entity.id)
        is_left = mentions and self._leaving.issuperset(mention.episode for mention in mentions)
        is_kept = any(not alias.episode for alias in names_among(self._aliases(entity)))
        return bool(is_left) and not is_kept and not merged_into(entity)

    def expect(self, named: Sequence[ExtractedEntity]) -> None:
        """Prefetch what `of_name` will look up: the candidates for names, and the bearers of their aliases."""
        forms = [form for one in named for form in lookups(clipped(one.name), one.type)]
        aliases = [clipped(alias) for one in named for alias in one.aliases]
        self._graph.expect(dict.fromkeys((*forms, *map(normal, filter(None, aliases)))), limit=MAX_CANDIDATES)

    def keep(self, entity: Entity, giver: Episode) -> Entity:
        """Return an entity after marking it as named by a person, so that no deletion of an episode erases it."""
        return self._with_names(entity, (entity.name,), giver, self._aliases(entity))

    def name_again(self, entity: Entity, aliases: Sequence[Alias] | None = None) -> None:
        """Rewrite the lookup keys and the search text of an entity from its names; drop stale keys."""
        stored = self._aliases(entity) if aliases is None else aliases
        names = names_among(stored)
        keys = {key for alias in names for key in stored_keys(alias.name, entity.type)}
        for alias in stored:
            if not alias.name and alias.normal not in keys:
                self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
        for key in sorted(keys - {alias.normal for alias in stored}):
            self._graph.put(Alias(entity.id, "", key, entity.created_at))
        self._graph.put_entity(entity, () if entity.merged_into else self._runtime.texts.of_entity(entity, names))

    def _aliases(self, entity: Entity) -> list[Alias]:
        return self._graph.aliases([entity.id]).get(entity.id, [])

    def _with_names(self, entity: Entity, names: Iterable[str], episode: Episode, aliases: Sequence[Alias]) -> Entity:
        """Add names to an entity; skip stored ones, and those that are the main name of another entity."""
        stored = {alias.normal: alias for alias in aliases}
        has_changed = False
        for name in dict.fromkeys(clipped(raw) for raw in names):
            form = normal(name) if name else ""
            if not form or len(stored) >= MAX_ALIASES or (form in stored and (episode.id or not stored[form].episode)):
                continue
            if form not in stored and form != normal(entity.name):
                bearers = self._graph.entities_by_name([form]).get(form, [])
                if any(bearer.id != entity.id and normal(bearer.name) == form for bearer in bearers):
                    continue
            alias = Alias(entity.id, name, form, episode.created_at, episode.id)
            if form in stored:
                alias = replace(stored[form], episode=episode.id)
            stored[form] = alias
            self._graph.put(alias)
            has_changed = True
        if has_changed or not aliases:
            self.name_again(entity, sorted(stored.values(), key=lambda alias: (alias.created_at, alias.normal)))
        return entity

    def merge(self, survivor: Entity, duplicate: Entity, reason: str) -> tuple[str, ...]:
        """Merge `duplicate` into `survivor`; return the ids of the facts that moved, sorted."""
        if survivor.id == duplicate.id:
            raise UsageError(f"both are {survivor.name!r:.80}", remedy="name two entities")
        names = self._graph.aliases([survivor.id, duplicate.id])
        forms_kept = {alias.normal for alias in names.get(survivor.id, ())}
        added = [alias for alias in names_among(names.get(duplicate.id, ())) if alias.normal not in forms_kept]
        for alias in added:
            self._graph.put(replace(alias, entity=survivor.id))
        began = min((time for time in (survivor.valid_from, duplicate.valid_from) if time is not None), default=None)
        self._graph.put_entity(replace(duplicate, expired_at=self._now, merged_into=survivor.id), ())
        self.name_again(replace(with_merged(survivor, [*merged_into(survivor), duplicate.id]), valid_from=began))
        forms = [alias.normal for alias in added]
        self._record(duplicate.id, "merged", reason, into=survivor.id, names=forms, valid_from=survivor.valid_from)
        self._record(survivor.id, "merged", reason, **{"from": duplicate.id})
        moving = self._relations_of(duplicate.id)
        _, erased = self._facts.revise(moving)
        return tuple(sorted({fact.id for fact in moving} - erased))

    def unmerge(self, survivor: Entity, duplicates: Sequence[Entity], reason: str) -> list[str]:
        """Undo merges into `survivor`, restoring the entities as they were; return the ids of `duplicates`."""
        family = {member.id for other in duplicates for member in all_merged(self._graph, other)}
        entity = survivor
        for other in duplicates:
            events = self._graph.happenings("entity", other.id)
            details = [json.loads(event.detail) for event in events if event.what == "merged"]
            last = next(detail for detail in reversed(details) if "into" in detail)
            # Drop the names that came with the merge, except those that episodes have used for the entity since.
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
            self._record(survivor.id, "split", reason, **{"from": other.id})
            self._record(other.id, "split", reason)
        self.name_again(entity)
        self._facts.revise(self._relations_of(survivor.id, lambda said: bool({said.source, said.target} & family)))
        return [other.id for other in duplicates]

    def mend(self, entity: Entity, deleted: set[str]) -> list[str]:
        """Remove from an entity what only the deleted episodes said; return the ids of the entities erased."""
        family = all_merged(self._graph, entity)
        ids = [member.id for member in family]
        mentions, aliases = self._graph.mentions("entity", ids), self._graph.aliases(ids)
        named_ids = {id_ for id_ in ids if any(not alias.episode for alias in names_among(aliases.get(id_, ())))}
        erased = [id_ for id_ in ids if not mentions.get(id_) and id_ not in named_ids]
        if not erased or len(family) == 1:
            self._graph.erase_entities(erased)
            for member in () if erased else family:
                sources = family if member.id == entity.id else [member]
                self._mend_one(member, [item for source in sources for item in mentions.get(source.id, ())], deleted)
            return erased
        # Part of a merged family is erased: undo all of its merges, then merge the remaining entities again.
        queue = [(entity.id, "")]
        for id_, _ in queue:  # `queue` grows during the loop
            root = self._graph.entities([id_])[id_]
            merged = list(self._graph.entities(merged_into(root)).values())
            if merged:
                self.unmerge(root, merged[::-1], "")
            for other in merged:
                merges = [event for event in self._graph.happenings("entity", other.id) if event.what == "merged"]
                queue.append((other.id, merges[-1].reason))
        self._graph.erase_entities(erased)
        left = {id_: reason for id_, reason in queue if id_ not in erased}
        mentions = self._graph.mentions("entity", list(left))
        for entity_left in self._graph.entities(list(left)).values():
            self._mend_one(entity_left, mentions.get(entity_left.id, []), deleted)
        first = next(iter(left), "")
        for id_, reason in left.items():
            if id_ != first:
                pair = self._graph.entities([first, id_])
                self.merge(pair[first], pair[id_], reason)
        return erased

    def _mend_one(self, entity: Entity, mentions: Sequence[Mention], deleted: set[str]) -> None:
        """Remove the names, times and happenings that come from deleted episodes."""
        times = self._graph.episodes(list(dict.fromkeys(mention.episode for mention in mentions)))
        used: dict[str, str] = {}
        for mention in sorted(mentions, key=lambda item: (times[item.episode].created_at, item.episode)):
            used.setdefault(normal(mention.name) if mention.name else "", mention.episode)
        names = names_among(self._aliases(entity))
        kept = [item for item in names if item.episode not in deleted or item.normal in used] or names[:1]
        for alias in names:
            if alias not in kept:
                self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
            elif alias.episode in deleted:
                home = used.get(alias.normal, next(iter(times), ""))
                self._graph.put(replace(alias, episode=home))
        has_name = any(name.normal == normal(entity.name) for name in kept)
        times_said = [episode.reference_time for episode in times.values()]
        name = entity.name if has_name else max(kept, key=lambda alias: (len(alias.name), alias.name)).name
        mended = replace(entity, name=name, valid_from=min(times_said, default=entity.valid_from or 0.0))
        events = self._graph.happenings("entity", entity.id)
        if any(event.episode in deleted for event in events):
            self._graph.drop(Happening, kind="entity", subject=entity.id)
            self._graph.put(*(event for event in events if event.episode not in deleted))
        if mended.name == entity.name and len(kept) == len(names):
            self._graph.put_entity(mended)  # its names, and so its search text, are unchanged
        else:
            self.name_again(mended)

    def part(self, entity: Entity, names: Sequence[str], reason: str) -> list[str]:
        """Move names to a new entity, with the mentions and facts of episodes that use no other name; return its id."""
        forms = {normal(name) for name in names}
        aliases = names_among(self._aliases(entity))
        leaving = [alias for alias in aliases if alias.normal in forms]
        staying = [alias for alias in aliases if alias.normal not in forms]
        stored_forms = {alias.normal for alias in aliases}
        for name in names:
            if normal(name) not in stored_forms:
                own_names = ", ".join(repr(alias.name) for alias in (*leaving, *staying))
                raise UsageError(f"{entity.name!r:.80} has no name {name!r:.80}", remedy=f"it has {own_names:.500}")
        if not leaving or not staying:
            problem = f"of {entity.name!r:.80}, {'all' if leaving else 'no'} names would leave"
            raise UsageError(problem, remedy="name some of its names")
        mentions = self._leaving_mentions(entity, stored_forms, forms)
        name = next((alias.name for alias in leaving if alias.name == entity.name), leaving[0].name)
        created = replace(with_merged(entity, []), id=made_id(), name=name, created_at=self._now, summary="")
        self._graph.put(*(replace(alias, entity=created.id) for alias in leaving))
        self.name_again(created)
        self._graph.drop_mentions(mentions)
        self._graph.put(*(replace(mention, subject=created.id) for mention in mentions))
        for alias in leaving:
            self._graph.drop(Alias, entity=entity.id, normal=alias.normal)
        self.name_again(replace(entity, name=staying[0].name) if normal(entity.name) in forms else entity)
        self._record(entity.id, "split", reason, into=created.id)
        self._record(created.id, "split", reason, **{"from": entity.id})
        remaining = {mention.episode for mention in self._graph.mentions("entity", [entity.id]).get(entity.id, ())}
        episodes = {mention.episode for mention in mentions} - remaining

        def move(_: str, assertion: Assertion) -> Assertion:
            if assertion.episode not in episodes:
                return assertion
            source, target = (created.id if end == entity.id else end for end in (assertion.source, assertion.target))
            return replace(assertion, source=source, target=target)

        self._facts.revise(self._relations_of(entity.id, lambda assertion: assertion.episode in episodes), move)
        return [created.id]

    def _leaving_mentions(self, entity: Entity, stored_forms: set[str], forms: set[str]) -> list[Mention]:
        """Return the mentions by the names `forms`, and all mentions of episodes that use no other name."""
        mentions = self._graph.mentions("entity", [entity.id]).get(entity.id, [])
        used: dict[str, set[bool]] = {}
        for mention in mentions:
            form = normal(mention.name) if mention.name else ""
            if form in stored_forms:
                used.setdefault(mention.episode, set()).add(form in forms)
        alone = {episode for episode, flags in used.items() if flags == {True}}
        return [item for item in mentions if item.episode in alone or (item.name and normal(item.name) in forms)]

    def _relations_of(self, entity: str, matches: Callable[[Assertion], bool] | None = None) -> list[Relation]:
        """Return the facts of an entity, past ones included; with `matches`, those with an assertion it accepts."""
        relations = self._graph.relations_of([entity], GraphFilter(with_past=True)).get(entity, [])
        if matches is None:
            return relations
        ids = {id_ for id_, item in self._facts.said_of([fact.id for fact in relations]) if matches(item)}
        return [fact for fact in relations if fact.id in ids]

    def _record(self, entity: str, what: str, reason: str, **detail: Any) -> None:
        self._graph.put(Happening("entity", entity, self._now, what, reason, "", json.dumps(detail, sort_keys=True)))


def known_by(graph: GraphReading, name: str, type_: str) -> Entity | None:
    """Return the live entity that a name refers to; None if there is none or the name is ambiguous."""
    entities_by_form = graph.entities_by_name(lookups(name, type_), limit=MAX_CANDIDATES)
    exact = [match for match in entities_by_form.get(normal(name), ()) if normal(match.name) == normal(name)]
    if (chosen := choose(name, type_, [(match, (match.name,)) for match in exact])) is not None:
        return chosen  # the common case: an entity has exactly this name, so other candidates need not be read
    live = {entity.id: entity for group in entities_by_form.values() for entity in group}
    aliases = graph.aliases(list(live))
    return choose(name, type_, [(entity, shown_names(entity, aliases.get(id_, ()))) for id_, entity in live.items()])
