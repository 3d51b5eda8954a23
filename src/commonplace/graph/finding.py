"""Find entities and facts: by words and meaning, by how near they are to a centre, in the time that is asked for.

How texts are ranked is the searcher's part; here what it finds is filtered before it is cut, and brought together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from commonplace.graph.entities import known_by
from commonplace.graph.relevance import Bar, bar
from commonplace.graph.seeing import Times
from commonplace.graph.traversal import Adjacent, Step, outward
from commonplace.store.graph_contract import texts_of
from commonplace.text.analysis import analyse
from commonplace.types.graph import GraphFilter

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground
    from commonplace.store.graph_contract import GraphReading
    from commonplace.types.graph import Edge, Entity, Subject

MOST_ASKED: Final = 1000
"""So many texts a search gives at most."""
_ROUNDS: Final = (1, 5, 25)
"""Of what is found much may be filtered out: then it is searched again for so many times more."""
_SPARE: Final = 20

FAN_OUT: Final = 100
"""Of a hub so many facts are followed."""
_REACH: Final = 3
_REACHED: Final = 500
NEARNESS: Final = 0.3
"""What an entity or fact right at the centre gains of the score that it lacks; a round guess."""
BY_FACTS: Final = 0.8
"""What of a fact's score each of its ends has for it; a round guess."""
NAMED: Final = 0.95
"""The least score of an entity whose name is what is asked for."""


@dataclass(frozen=True, slots=True)
class TextHits:
    """What a search of texts finds.

    Attributes:
        scores: of ids, 0–1, best first.
        is_degraded, notices: what is wrong with the search, if anything.
        worded: the ids of what has a word of the query; None where nobody knows.
    """

    scores: Mapping[str, float]
    is_degraded: bool = False
    notices: tuple[str, ...] = ()
    worded: frozenset[str] | None = None


Search = Callable[[str, str, int], TextHits]
"""Searches the texts of a namespace for a query, and returns at most so many."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be found. Empty means no restriction."""

    times: Times
    groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    centre: str = ""


@dataclass(frozen=True, slots=True)
class FoundIds:
    """What was found, best first, with scores; and how near to the centre each is, where that is known."""

    ids: tuple[str, ...]
    scores: Mapping[str, float]
    distances: Mapping[str, int]
    is_degraded: bool = False
    notices: tuple[str, ...] = ()


class GraphFinder:
    """Finds in one reading of a graph."""

    def __init__(self, ground: Ground, search: Search) -> None:
        self._ground = ground
        self._graph: GraphReading = ground.graph
        self._search = search

    def entities(self, query: str, limit: int, wanted: Wanted) -> FoundIds:
        """Return entities by their names, and by the facts that they are in."""
        keep = partial(self._entities_that_pass, wanted)
        named = self._texts("entity", query, limit, keep)
        told = self._texts("relation", query, limit, partial(self._relations_that_pass, _untyped(wanted)))
        scores = dict(named.scores)
        ends: dict[str, float] = {}
        for relation in self._graph.relations(list(told.scores)).values():
            for end in (relation.source, relation.target):
                ends[end] = max(ends.get(end, 0.0), BY_FACTS * told.scores[relation.id])
        for id_ in sorted(keep(list(ends))):
            # Being named and being in a fact that answers are two signs, not one.
            scores[id_] = 1.0 - (1.0 - scores.get(id_, 0.0)) * (1.0 - ends[id_])
        meant = known_by(self._graph, self._ground, query, "concept") if len(query) <= _LONGEST_NAME else None
        if meant is not None and keep([meant.id]):
            scores[meant.id] = max(scores.get(meant.id, 0.0), NAMED)
        distances = self._distances(wanted)
        scores = {id_: _nearer(score, distances.get(id_)) for id_, score in scores.items()}
        return _best(scores, limit, distances, (named, told))

    def relations(self, query: str, limit: int, wanted: Wanted) -> FoundIds:
        """Return facts by the sentences that say them, and by the names of their ends."""
        told = self._texts("relation", query, limit, partial(self._relations_that_pass, wanted))
        scores = dict(told.scores)
        distances = self._distances(wanted)
        if distances:
            near = {}
            for relation in self._graph.relations(list(scores)).values():
                ends = [distances[end] for end in (relation.source, relation.target) if end in distances]
                if ends:
                    near[relation.id] = min(ends)
            distances = near
            scores = {id_: _nearer(score, distances.get(id_)) for id_, score in scores.items()}
        return _best(scores, limit, distances, (told,))

    def _texts(self, kind: Subject, query: str, limit: int, keep: Callable[[Sequence[str]], set[str]]) -> TextHits:
        """Search texts until enough of what is found passes, or there is no more."""
        if not self._graph.list_entities(_ANY, limit=1):
            return TextHits({})  # to search nothing takes as long as any search
        namespace = texts_of(self._ground.namespace, kind)
        bar = self._bar(query, kind)
        for times in _ROUNDS:
            asked = min(MOST_ASKED, (limit + _SPARE) * times)
            found = self._search(namespace, query, asked)
            if kind == "relation":
                found = self._without_types(found, namespace, query, asked)
            passed = keep([id_ for id_, score in found.scores.items() if _is_about(id_, score, found, bar)])
            if len(passed) >= limit or len(found.scores) < asked or asked == MOST_ASKED:
                break
        kept = {id_: score for id_, score in found.scores.items() if id_ in passed}
        return TextHits(kept, found.is_degraded, found.notices)

    def _without_types(self, found: TextHits, namespace: str, query: str, limit: int) -> TextHits:
        """Judge the facts that share with the query nothing but words of their type by the rest of the query.

        "auth dependencies" asks about auth, not about all that depends on something; "what depends on what" does.
        """
        terms, typed, alone = set(analyse(query)), set[str](), set[str]()
        for each in self._graph.relations(sorted(found.worded or ())).values():
            of_type = terms.intersection(analyse(each.type.replace("_", " ")))
            if of_type and (rest := terms - of_type) and rest.isdisjoint(analyse(each.fact)):
                typed |= of_type
                alone.add(each.id)
        if not alone:
            return found
        rest_of_query = " ".join(word for word in query.split() if typed.isdisjoint(analyse(word)))
        meant = self._search(namespace, rest_of_query, limit).scores if rest_of_query else {}
        scores = {id_: meant.get(id_, 0.0) if id_ in alone else score for id_, score in found.scores.items()}
        best_first = dict(sorted(scores.items(), key=lambda each: -each[1]))
        return replace(found, scores=best_first, worded=(found.worded or frozenset()) - alone)

    def _bar(self, query: str, kind: Subject) -> Bar:
        made = self._ground.destination
        return bar(query, kind, made.embedder.stamp.of("entity").name, lambda word: len(made.tokenize(word)))

    def _entities_that_pass(self, wanted: Wanted, ids: Sequence[str]) -> set[str]:
        found = self._graph.entities(ids)
        passed = {
            id_
            for id_, each in found.items()
            if wanted.times.has(each) and (not wanted.types or each.type in wanted.types)
        }
        return passed if not wanted.groups else self._of_groups(passed, found, wanted.groups)

    def _of_groups(self, ids: Iterable[str], entities: Mapping[str, Entity], groups: Sequence[str]) -> set[str]:
        """Return which entities are of one of some groups: named first in it, or mentioned by an episode of it."""
        chosen = {id_ for id_ in ids if entities[id_].group in groups}
        rest = [id_ for id_ in ids if id_ not in chosen]
        mentions = self._graph.mentions("entity", rest)
        episodes = self._graph.episodes([each.episode for some in mentions.values() for each in some])
        for id_, some in mentions.items():
            if any(each.episode in episodes and episodes[each.episode].group in groups for each in some):
                chosen.add(id_)
        return chosen

    def _relations_that_pass(self, wanted: Wanted, ids: Sequence[str]) -> set[str]:
        return {
            id_
            for id_, each in self._graph.relations(ids).items()
            if wanted.times.shows(each)
            and (not wanted.types or each.type in wanted.types)
            and (not wanted.groups or each.group in wanted.groups)
        }

    def _distances(self, wanted: Wanted) -> Mapping[str, int]:
        if not wanted.centre:
            return {}
        steps = adjacent(self._graph, wanted.times, groups=wanted.groups)
        near = outward([wanted.centre], steps, depth=_REACH, limit=_REACHED, fan_out=FAN_OUT)
        return {each.id: each.distance for each in near.reached}


def adjacent(graph: GraphReading, times: Times, *, groups: Sequence[str] = ()) -> Adjacent:
    """Return what gives the facts at entities as steps, newest knowledge first."""
    wanted = times.filter(groups=groups)

    def steps(ids: Sequence[str]) -> Mapping[str, list[Step]]:
        found = graph.edges_of(ids, wanted, limit=FAN_OUT + 1)
        return {id_: [_step(id_, each) for each in edges] for id_, edges in found.items()}

    return steps


_LONGEST_NAME: Final = 200
_ANY: Final = GraphFilter(with_past=True)


def _step(id_: str, edge: Edge) -> Step:
    return Step(edge.target if edge.source == id_ else edge.source, edge.id, edge.confidence)


def _is_about(id_: str, score: float, found: TextHits, least: Bar) -> bool:
    return found.worded is None or least.passes(score, has_word=id_ in found.worded)


def _untyped(wanted: Wanted) -> Wanted:
    """Return what facts may lead to entities: types are of entities here."""
    return Wanted(wanted.times, wanted.groups)


def _nearer(score: float, distance: int | None) -> float:
    """Return a score raised by nearness, still below 1."""
    return score if distance is None else score + (1.0 - score) * NEARNESS / (1.0 + distance)


def _best(scores: Mapping[str, float], limit: int, distances: Mapping[str, int], parts: Sequence[TextHits]) -> FoundIds:
    # Equal scores stand in the order of the search, which gives all that a worse rank must not overtake one score.
    ids = sorted(scores, key=lambda id_: -scores[id_])[:limit]
    return FoundIds(
        tuple(ids),
        scores,
        distances,
        any(part.is_degraded for part in parts),
        tuple(dict.fromkeys(notice for part in parts for notice in part.notices)),
    )
