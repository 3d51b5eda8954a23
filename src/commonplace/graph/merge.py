"""Merge two entities and split them again, with their facts.

Assertions keep the entities that they were made about, so a merge can be undone exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.graph.entities import Entities, all_merged, merged_into, with_merged
from commonplace.graph.fact_keys import FactKeys
from commonplace.graph.facts import Assertion
from commonplace.graph.names import names_among, normal
from commonplace.graph.runtime import GraphRuntime
from commonplace.store.graph import GraphChange
from commonplace.types.graph import Alias, Entity, GraphFilter, Happening, Mention, Relation


class Joining:
    def __init__(self, graph: GraphChange, ground: GraphRuntime) -> None:
        self._graph = graph
        self._now = ground.now()
        self._ground = ground
        self._facts = FactKeys(graph, ground)
        self._entities = Entities(graph, ground)

    def merge(self, kept: Entity, other: Entity, reason: str) -> tuple[str, ...]:
        """Let one entity be another one from now on; return the ids of the facts that moved."""
        if kept.id == other.id:
            raise UsageError(f"both are {kept.name!r:.80}", remedy="name two entities")
        names = self._graph.aliases([kept.id, other.id])
        borne = {alias.normal for alias in names.get(kept.id, ())}
        added = [alias for alias in names_among(names.get(other.id, ())) if alias.normal not in borne]
        for alias in added:
            self._graph.put_alias(replace(alias, entity=kept.id))
        began = min((each for each in (kept.valid_from, other.valid_from) if each is not None), default=None)
        detail = {"into": kept.id, "names": [alias.normal for alias in added], "valid_from": kept.valid_from}
        self._graph.put_entity(replace(other, expired_at=self._now, merged_into=kept.id), ())
        self._entities.name_again(replace(with_merged(kept, [*merged_into(kept), other.id]), valid_from=began))
        self._tell(other.id, "merged", reason, detail)
        self._tell(kept.id, "merged", reason, {"from": other.id})
        moving = self._relations_of(other.id)
        erased = self._facts.revise(moving, _as_it_is).erased
        return tuple(sorted({each.id for each in moving} - erased.keys()))

    def unmerge(self, kept: Entity, others: Sequence[Entity], reason: str) -> list[str]:
        """Take entities apart that were merged, as they were before; return the ids of the others."""
        family = {each.id for other in others for each in all_merged(self._graph, other)}
        entity = kept
        for other in others:
            merged = [
                json.loads(each.detail) for each in self._graph.happenings("entity", other.id) if each.what == "merged"
            ]
            last = next(each for each in reversed(merged) if "into" in each)
            entity = self._without_names(entity, last["names"])
            left = [id_ for id_ in merged_into(entity) if id_ != other.id]
            entity = replace(with_merged(entity, left), valid_from=last["valid_from"])
            self._entities.name_again(replace(other, expired_at=None, merged_into=""))
            self._tell(kept.id, "split", reason, {"from": other.id})
            self._tell(other.id, "split", reason, {})
        self._entities.name_again(entity)
        self._facts.revise(
            self._relations_where(kept.id, lambda said: bool({said.source, said.target} & family)), _as_it_is
        )
        return [other.id for other in others]

    def take_apart(self, entity: Entity) -> list[tuple[Entity, str]]:
        """Undo every merge that went into an entity; return all of them, it first, each with why it was merged."""
        found = [(entity, "")]
        for known, _ in found:
            each = self._graph.entities([known.id])[known.id]
            merged = list(self._graph.entities(merged_into(each)).values())
            if merged:
                self.unmerge(each, merged[::-1], "")
            for other in merged:
                told = [one for one in self._graph.happenings("entity", other.id) if one.what == "merged"]
                found.append((other, told[-1].reason))
        now = self._graph.entities([each.id for each, _ in found])
        return [(now[each.id], reason) for each, reason in found]

    def part(self, entity: Entity, names: Sequence[str], reason: str) -> list[str]:
        """Make a new entity of some names, with the facts and mentions of episodes with no other; return its id."""
        forms = {normal(name) for name in names}
        aliases = names_among(self._graph.aliases([entity.id]).get(entity.id, []))
        leaving = [alias for alias in aliases if alias.normal in forms]
        staying = [alias for alias in aliases if alias.normal not in forms]
        _check_names(entity, names, leaving, staying)
        mentions = self._leaving_mentions(entity, {alias.normal for alias in aliases}, forms)
        new = self._new_of(entity, leaving)
        self._graph.drop_mentions(mentions)
        self._graph.put_mentions([replace(mention, subject=new.id) for mention in mentions])
        for alias in leaving:
            self._graph.drop_alias(entity.id, alias.normal)
        self._entities.name_again(replace(entity, name=staying[0].name) if normal(entity.name) in forms else entity)
        self._tell(entity.id, "split", reason, {"into": new.id})
        self._tell(new.id, "split", reason, {"from": entity.id})
        left = {mention.episode for mention in self._graph.mentions("entity", [entity.id]).get(entity.id, ())}
        episodes = {mention.episode for mention in mentions} - left

        def change(_: str, said: Assertion) -> Assertion:
            if said.episode not in episodes:
                return said
            source, target = (new.id if end == entity.id else end for end in (said.source, said.target))
            return replace(said, source=source, target=target)

        self._facts.revise(self._relations_where(entity.id, lambda said: said.episode in episodes), change)
        return [new.id]

    def _without_names(self, entity: Entity, forms: Sequence[str]) -> Entity:
        """Take names from an entity that came with another one, but for those that it was called by since."""
        mentions = self._graph.mentions("entity", [entity.id]).get(entity.id, [])
        called = {normal(mention.name) for mention in mentions if mention.name}
        for form in forms:
            if form not in called:
                self._graph.drop_alias(entity.id, form)
        names = names_among(self._graph.aliases([entity.id]).get(entity.id, []))
        if names and normal(entity.name) not in {alias.normal for alias in names}:
            return replace(entity, name=names[0].name)
        return entity

    def _new_of(self, entity: Entity, leaving: Sequence[Alias]) -> Entity:
        new = replace(
            with_merged(entity, []),
            id=self._ground.new_id(),
            name=next((alias.name for alias in leaving if alias.name == entity.name), leaving[0].name),
            created_at=self._now,
            summary="",
        )
        for alias in leaving:
            self._graph.put_alias(replace(alias, entity=new.id))
        self._entities.name_again(new)
        return new

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

    def _relations_where(self, entity: str, is_meant: Callable[[Assertion], bool]) -> list[Relation]:
        """Return the facts of an entity of which something is said that is meant."""
        relations = self._relations_of(entity)
        said = self._facts.said_of([each.id for each in relations])
        meant = {id_ for id_, each in said if is_meant(each)}
        return [each for each in relations if each.id in meant]

    def _relations_of(self, entity: str) -> list[Relation]:
        return self._graph.relations_of([entity], GraphFilter(with_past=True)).get(entity, [])

    def _tell(self, entity: str, what: str, reason: str, detail: Mapping[str, object]) -> None:
        self._graph.put_happening(
            Happening("entity", entity, self._now, what, reason, "", json.dumps(detail, sort_keys=True))
        )


def _as_it_is(_: str, said: Assertion) -> Assertion:
    return said


def _check_names(entity: Entity, names: Sequence[str], leaving: Sequence[Alias], staying: Sequence[Alias]) -> None:
    known = {alias.normal for alias in leaving}
    for name in names:
        if normal(name) not in known:
            raise UsageError(
                f"{entity.name!r:.80} has no name {name!r:.80}",
                remedy=f"it has {', '.join(repr(alias.name) for alias in (*leaving, *staying)):.500}",
            )
    if not leaving or not staying:
        raise UsageError(
            f"of {entity.name!r:.80}, {'all' if leaving else 'no'} names would leave", remedy="name some of its names"
        )
