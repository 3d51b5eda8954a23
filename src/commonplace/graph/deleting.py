"""Take episodes out of a graph under change, with all that only they supported, as if they had never come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from commonplace.graph.entities import Entities, all_merged, roots
from commonplace.graph.joining import Joining
from commonplace.graph.naming import KEY, normal
from commonplace.graph.slots import Changed, Slots, facts_of

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground, Texts
    from commonplace.store.graph_contract import GraphChange, GraphReading
    from commonplace.types.graph import Alias, Entity, Mention, Relation


@dataclass(frozen=True, slots=True)
class TakenOut:
    """What went: ids, sorted; and the facts that hold again, or are no longer disputed."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    reopened: tuple[str, ...]


def take_out(graph: GraphChange, ground: Ground, texts: Texts, episodes: Sequence[str]) -> TakenOut:
    """Delete episodes with what only they said, ended or disputed: names, facts, entities."""
    mentioned = [mention for each in graph.mentioned(episodes).values() for mention in each]
    subjects = {
        kind: list(dict.fromkeys(each.subject for each in mentioned if each.kind == kind))
        for kind in ("entity", "relation")
    }
    slots = Slots(graph, ground, texts)
    relations = graph.relations(subjects["relation"]).values()
    wanted = list(dict.fromkeys(slots.slot_of(each.source, each.type, each.target) for each in relations))
    before = {each.id: each for slot in wanted for each in facts_of(graph, slot)}
    gone = set(episodes)
    changed = Changed()
    left = [each for each in slots.said_of(before.values()) if each.evidence.episode not in gone]
    slots.reckon_again(wanted, left, changed)
    graph.erase_episodes(episodes)
    after = graph.relations(list(before))
    erased = [
        id_
        for each in _root_entities(graph, subjects["entity"])
        for id_ in _Entity(graph, ground, texts, each).mend(gone)
    ]
    return TakenOut(
        tuple(sorted(erased)),
        tuple(sorted(changed.erased)),
        tuple(id_ for id_, old in before.items() if id_ in after and _is_reopened(old, after[id_])),
    )


def _root_entities(graph: GraphReading, ids: Sequence[str]) -> list[Entity]:
    return list(graph.entities(list(dict.fromkeys(roots(graph, ids).values()))).values())


def _is_reopened(old: Relation, new: Relation) -> bool:
    has_ended = old.expired_at is not None and new.expired_at is None
    return (
        has_ended or bool(old.dispute and not new.dispute) or (old.valid_to != new.valid_to and new.expired_at is None)
    )


class _Entity:
    """An entity, with those that were merged into it, some of whose episodes went."""

    def __init__(self, graph: GraphChange, ground: Ground, texts: Texts, entity: Entity) -> None:
        self._graph = graph
        self._ground = ground
        self._texts = texts
        self._entity = entity

    def mend(self, gone: set[str]) -> list[str]:
        """Leave of it what others say; return the ids of the entities that are erased."""
        family = all_merged(self._graph, self._entity)
        ids = [each.id for each in family]
        mentions = self._graph.mentions("entity", ids)
        aliases = self._graph.aliases(ids)
        is_given = {id_: any(not each.episode and _is_name(each) for each in aliases.get(id_, ())) for id_ in ids}
        erased = [id_ for id_ in ids if not mentions.get(id_) and not is_given[id_]]
        if len(family) > 1 and erased:
            return self._mend_apart(gone, erased)
        self._graph.erase_entities(erased)
        if not erased:
            everything = [mention for id_ in ids for mention in mentions.get(id_, ())]
            for each in family:
                of_it = everything if each.id == self._entity.id else mentions.get(each.id, [])
                self._mend_one(each, of_it, aliases.get(each.id, []), gone)
        return erased

    def _mend_apart(self, gone: set[str], erased: Sequence[str]) -> list[str]:
        """Mend entities that are one, some of which nothing is left of: the others become one again."""
        joining = Joining(self._graph, self._ground, self._texts, self._ground.now())
        apart = joining.take_apart(self._entity)
        self._graph.erase_entities(erased)
        left = [(each, reason) for each, reason in apart if each.id not in erased]
        ids = [each.id for each, _ in left]
        mentions, aliases = self._graph.mentions("entity", ids), self._graph.aliases(ids)
        for each, _ in left:
            self._mend_one(each, mentions.get(each.id, []), aliases.get(each.id, []), gone)
        for id_, (_, reason) in zip(ids[1:], left[1:], strict=True):
            known = self._graph.entities([ids[0], id_])
            joining.merge(known[ids[0]], known[id_], reason)
        return list(erased)

    def _mend_one(self, entity: Entity, mentions: Sequence[Mention], aliases: Sequence[Alias], gone: set[str]) -> None:
        """Let go of the names, times and remarks of episodes that went."""
        times = self._graph.episodes(list(dict.fromkeys(mention.episode for mention in mentions)))
        used: dict[str, list[str]] = {}
        for mention in sorted(mentions, key=lambda each: (times[each.episode].created_at, each.episode)):
            used.setdefault(normal(mention.name) if mention.name else "", []).append(mention.episode)
        names = [each for each in aliases if _is_name(each)]
        kept: list[Alias] = []
        for alias in names:
            if alias.episode not in gone:
                kept.append(alias)
            elif alias.normal in used:
                kept.append(replace(alias, episode=used[alias.normal][0]))
                self._graph.put_alias(kept[-1])
        if not kept and names:
            kept = [replace(names[0], episode=next(iter(times), ""))]
            self._graph.put_alias(kept[0])
        for alias in names:
            if alias.normal not in {each.normal for each in kept}:
                self._graph.drop_alias(entity.id, alias.normal)
        has_name = any(each.normal == normal(entity.name) for each in kept)
        told = [each.reference_time for each in times.values()]
        mended = replace(
            entity,
            name=entity.name if has_name else max(kept, key=lambda each: (len(each.name), each.name)).name,
            valid_from=min(told, default=entity.valid_from or 0.0),
        )
        self._forget(entity.id, gone)
        if mended.name == entity.name and len(kept) == len(names):
            self._graph.put_entity(mended)  # its names are what they were, and so is the text by which it is found
        else:
            Entities(self._graph, self._ground, self._texts).name_again(mended)

    def _forget(self, id_: str, gone: Iterable[str]) -> None:
        """Drop what happened because of episodes that went."""
        remarks = self._graph.happenings("entity", id_)
        kept = [each for each in remarks if each.episode not in gone]
        if len(kept) < len(remarks):
            self._graph.erase_happenings("entity", id_)
            for each in kept:
                self._graph.put_happening(each)


def _is_name(alias: Alias) -> bool:
    return not alias.normal.startswith(KEY)
