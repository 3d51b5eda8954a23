"""Show what is stored of a graph as callers see it, as it is now or as it was known. It decides nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from commonplace.graph.entities import shown_names
from commonplace.graph.facts import shown_attributes
from commonplace.graph.views import EntityView, EpisodeView, RelationView
from commonplace.times import moment_of
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.store.graph_contract import GraphReading
    from commonplace.types.graph import Edge, Entity, Episode, Relation

SUMMARY_FACTS: Final = 3
SUMMARY_CHARACTERS: Final = 300
_LOOKED_AT: Final = 24


@dataclass(frozen=True, slots=True)
class Times:
    """Of which time it is asked, and what was known then; None is now.

    Attributes:
        now: the time, seconds since the epoch.
    """

    now: float
    as_of: float | None = None
    valid_at: float | None = None
    with_past: bool = False

    def filter(self, types: Sequence[str] = (), groups: Sequence[str] = ()) -> GraphFilter:
        """Return the filter that means the facts that are asked for."""
        chosen = GraphFilter(tuple(types), tuple(groups), self.valid_at, self.as_of)
        if self.valid_at is not None:
            return chosen
        if self.with_past:
            return replace(chosen, with_past=True) if self.as_of is None else replace(chosen, open_at=-math.inf)
        # What has been said to end later holds still; what begins later is known.
        return replace(chosen, open_at=self.now if self.as_of is None else self.as_of)

    def shows(self, relation: Relation) -> bool:
        """Tell whether a fact is asked for, of whatever type and group it is."""
        was_known = self.as_of is None or relation.created_at <= self.as_of
        if not was_known:
            return False
        start, end, is_retracted, _ = self.known(relation)
        if self.valid_at is not None:
            return (
                not is_retracted and (start is None or start <= self.valid_at) and (end is None or self.valid_at < end)
            )
        at = self.now if self.as_of is None else self.as_of
        return self.with_past or (not is_retracted and (end is None or at < end))

    def known(self, relation: Relation) -> tuple[float | None, float | None, bool, float | None]:
        """Return when a fact began and ended, whether it is retracted and since when it is expired, as it is known."""
        if self.as_of is not None and relation.expired_at is not None and relation.expired_at > self.as_of:
            return relation.valid_from, relation.stated_to, False, None
        return relation.valid_from, relation.valid_to, relation.is_retracted, relation.expired_at

    def has(self, entity: Entity) -> bool:
        """Tell whether an entity was one of ours."""
        at = self.as_of
        if at is None:
            return entity.expired_at is None
        return entity.created_at <= at and (entity.expired_at is None or entity.expired_at > at)


class Seeing:
    """Makes views of one reading of a graph."""

    def __init__(self, graph: GraphReading, times: Times) -> None:
        self._graph = graph
        self.times = times
        self._known: dict[str, Entity] = {}

    def relations(
        self, found: Iterable[Relation], scores: Mapping[str, float] | None = None
    ) -> tuple[RelationView, ...]:
        """Return facts as callers see them."""
        relations = list(found)
        ids = [relation.id for relation in relations]
        ends = self._ends(relations)
        mentions = self._graph.mentions("relation", ids)
        said = {id_: list(dict.fromkeys(each.episode for each in some)) for id_, some in mentions.items()}
        several = [some for some in said.values() if len(some) > 1]
        times = self._graph.reference_times([id_ for some in several for id_ in some])
        for some in several:
            some.sort(key=lambda id_: (times[id_], id_) if id_ in times else (0.0, id_))
        return tuple(
            self._relation(each, ends, tuple(said.get(each.id, ())), (scores or {}).get(each.id, 0.0))
            for each in relations
        )

    def entities(
        self,
        found: Iterable[Entity],
        scores: Mapping[str, float] | None = None,
        distances: Mapping[str, int] | None = None,
        *,
        has_summaries: bool = True,
    ) -> tuple[EntityView, ...]:
        """Return entities as callers see them; one without a summary of its own gets its newest facts."""
        entities = list(found)
        self._known.update((each.id, each) for each in entities)
        aliases = self._graph.aliases([entity.id for entity in entities])
        summaries = self._summaries([each.id for each in entities if not each.summary]) if has_summaries else {}
        at = self.times.as_of
        return tuple(
            EntityView(
                uuid=each.id,
                name=each.name,
                entity_type=each.type,
                summary=each.summary or summaries.get(each.id, ""),
                created_at=moment_of(each.created_at),
                valid_from=_moment(each.valid_from),
                valid_to=_moment(each.valid_to),
                expired_at=_moment(each.expired_at if self.times.as_of is None or not self.times.has(each) else None),
                merged_into=each.merged_into if self.times.as_of is None or not self.times.has(each) else "",
                aliases=shown_names(
                    each, [alias for alias in aliases.get(each.id, ()) if at is None or alias.created_at <= at]
                )[1:],
                attributes=shown_attributes(each.attributes),
                trust=each.trust,
                group_id=each.group,
                score=(scores or {}).get(each.id, 0.0),
                distance=(distances or {}).get(each.id),
            )
            for each in entities
        )

    def episode(self, found: Episode, content: str = "") -> EpisodeView:
        """Return an episode as callers see it. `content`: the words of the memory that it is."""
        return EpisodeView(
            uuid=found.id,
            name=found.name,
            content=found.content or content,
            source=found.source,
            source_description=found.source_description,
            reference_time=moment_of(found.reference_time),
            created_at=moment_of(found.created_at),
            origin=found.origin,
            trust=found.trust,
            group_id=found.group,
            memory=found.memory,
        )

    def _ends(self, relations: Iterable[Relation]) -> Mapping[str, Entity]:
        """Return the entities that facts are about; those that have just been seen are not read again."""
        ids = dict.fromkeys(end for each in relations for end in (each.source, each.target))
        self._known.update(self._graph.entities([id_ for id_ in ids if id_ not in self._known]))
        return self._known

    def _relation(
        self, each: Relation, ends: Mapping[str, Entity], episodes: tuple[str, ...], score: float
    ) -> RelationView:
        start, end, is_retracted, expired_at = self.times.known(each)
        at = self.times.as_of
        is_disputed = bool(each.dispute) and (at is None or each.disputed_at is None or each.disputed_at <= at)
        return RelationView(
            uuid=each.id,
            source_node_uuid=each.source,
            target_node_uuid=each.target,
            relation_type=each.type,
            fact=each.fact,
            created_at=moment_of(each.created_at),
            valid_from=_moment(start),
            valid_to=_moment(end),
            expired_at=_moment(expired_at),
            source_name=ends[each.source].name if each.source in ends else "",
            target_name=ends[each.target].name if each.target in ends else "",
            retracted=is_retracted,
            disputed=is_disputed,
            dispute=each.dispute if is_disputed else "",
            disputed_at=_moment(each.disputed_at) if is_disputed else None,
            confidence=each.confidence,
            trust=each.trust,
            group_id=each.group,
            episodes=episodes,
            attributes=shown_attributes(each.attributes),
            score=score,
        )

    def _summaries(self, ids: Sequence[str]) -> dict[str, str]:
        """Return what a few facts say of each entity, those that it is the source of first."""
        found = self._graph.edges_of(ids, self.times.filter(), limit=_LOOKED_AT)
        chosen = {
            id_: sorted(edges, key=partial(_place_in_summary, id_))[:SUMMARY_FACTS] for id_, edges in found.items()
        }
        relations = self._graph.relations([each.id for edges in chosen.values() for each in edges])
        summaries = {}
        for id_, edges in chosen.items():
            text = " ".join(dict.fromkeys(_sentence(relations[each.id].fact) for each in edges if each.id in relations))
            summaries[id_] = text if len(text) <= SUMMARY_CHARACTERS else f"{text[: SUMMARY_CHARACTERS - 1].rstrip()}…"
        return summaries


def _place_in_summary(entity: str, edge: Edge) -> tuple[bool, bool]:
    return edge.source != entity, edge.is_disputed


def _moment(at: float | None) -> datetime | None:
    return None if at is None else moment_of(at)


def _sentence(fact: str) -> str:
    text = fact.strip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
