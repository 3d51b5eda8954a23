"""Query the graph: search entities and facts, traverse, read history. Read-only.

A graph is small and its texts are short, so the nearest text is always somewhat near: results need a minimum relevance.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby
from math import inf
from typing import Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.dates.time import iso, moment_of
from commonplace.errors import NotFoundError
from commonplace.graph.entities import known_by
from commonplace.graph.facts import FactKey, facts_of, key_of
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, names_among
from commonplace.graph.runtime import GraphRuntime
from commonplace.graph.service import find_entity, find_relation
from commonplace.graph.text import CountTokens, describe
from commonplace.graph.traversal import Adjacent, communities, outward, shortest_path
from commonplace.graph.views import (
    Community,
    Dispute,
    EntityView,
    EpisodeView,
    FoundEntities,
    FoundRelations,
    GraphContext,
    GraphPath,
    History,
    HistoryEntry,
    RelationView,
    Subgraph,
    Timeline,
    TimelineEntry,
    ViewBuilder,
    Wanted,
)
from commonplace.store.graph import GraphReading
from commonplace.store.schema import texts_of
from commonplace.text.languages import STOP_WORDS
from commonplace.text.tokens import analyse
from commonplace.types import StoredMemory
from commonplace.types.graph import Entity, GraphFilter, Happening, Relation, Subject

MIN_COSINE: Final[Mapping[Subject, float]] = {"relation": 0.45, "entity": 0.65}
"""The least score of what shares no word with the query; a name has less to be alike by than a sentence. Round numbers,
between what answers (`SQL` finds a fact about Postgres at .55, `mountaineering` climbing at .78) and what does not
(`penguins` finds a fact at .38, and Globex at .56)."""
MIN_NAME_COSINE: Final[Mapping[str, float]] = {"minilm": 0.75}
"""Of a name, where a transformer made the vectors: it finds a place by `Beethoven symphony` at .69, a word that
names nothing by a greeting at .74, and climbing by `mountaineering` above."""
MIN_LETTER_SIMILARITY: Final = 0.7
"""The same where vectors are made of letters and mean nothing."""
_OF_LETTERS: Final = frozenset({"hashing"})
_WORD: Final = re.compile(r"[^\W_]+")
_MIN_LETTERS: Final = 2.5
"""A word that the vocabulary cuts into pieces of fewer letters on average is none it knows: `zz`, `##zz`."""
NEVER: Final = 2.0


def least_score(query: str, kind: Subject, embedder: str, pieces: Callable[[str], int]) -> tuple[float, float]:
    """Return what scores must reach that a query has for entities or facts: with a word in common, and without.

    Args:
        embedder: the name of that which makes the vectors.
        pieces: returns into how many pieces its vocabulary cuts a word.
    """
    words = [word for word in _WORD.findall(query) if not (word.islower() and word in STOP_WORDS)]
    if not words:
        return NEVER, NEVER
    if embedder in _OF_LETTERS:
        return 0.0, MIN_LETTER_SIMILARITY
    # Of these vectors can say what they mean: a number is only itself.
    able = (word for word in words if word.isalpha() and word.lower() not in STOP_WORDS)
    is_known = any(len(word) >= _MIN_LETTERS * max(pieces(word), 1) for word in able)
    least = MIN_NAME_COSINE.get(embedder, MIN_COSINE[kind]) if kind == "entity" else MIN_COSINE[kind]
    return 0.0, least if is_known else NEVER


MAX_IDS_PER_QUERY: Final = 1000
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
        distances: how near to the centre each is, where that is known.
    """

    scores: Mapping[str, float]
    is_degraded: bool = False
    notices: tuple[str, ...] = ()
    worded: frozenset[str] | None = None
    distances: Mapping[str, int] = field(default_factory=dict)


Search = Callable[[str, str, int], TextHits]
"""Searches the texts of a namespace for a query, and returns at most so many."""


def adjacent(graph: GraphReading, wanted: Wanted) -> Adjacent:
    """Return what gives the facts at entities, newest knowledge first."""
    return partial(graph.edges_of, wanted=wanted.filter(), limit=FAN_OUT + 1)


_ANY: Final = GraphFilter(with_past=True)


COMMUNITIES: Final = uuid.UUID("8c7a4a52-94de-5f1b-b0b4-0f4a2f1f6f53")
"""Namespace of the UUIDv5 of communities, named by their sorted members."""
MAX_VISITED: Final = 20_000
MAX_MEMBERS: Final = 10
_BETWEEN: Final = 100
"""Facts of one entity that are looked at to find those between entities at the rim."""


@dataclass(eq=False)
class GraphReader:
    """Answers a question about the graph of one namespace, as the methods of `Graph` say."""

    runtime: GraphRuntime
    search: Search
    words_of: Callable[[str, int], str]
    wanted: Wanted
    newer: Callable[[Sequence[str]], Mapping[str, StoredMemory]]
    """Returns the newest memory that may have replaced each of these; one without any is absent."""

    _context_depth, _has_summaries = 2, True

    @property
    def _graph(self) -> GraphReading:
        return self.runtime.graph

    @cached_property
    def _build(self) -> ViewBuilder:
        return ViewBuilder(self._graph, self.wanted)

    def _find(self, name: str) -> Entity:
        return find_entity(self._graph, name)

    def _centre(self, id_: str) -> str:
        return self._find(id_).id

    def _state(self) -> tuple[bool, tuple[str, ...]]:
        """Return whether an answer is `degraded`, and why, before anything is searched."""
        return False, ()

    def search_entities(self, query: str, limit: int) -> FoundEntities:
        found = self._find_entities(query, limit)
        views = self._build.entities(found.scores, found.scores, found.distances, has_summaries=self._has_summaries)
        return FoundEntities(query, views, found.is_degraded, found.notices)

    def search_relations(self, query: str, limit: int) -> FoundRelations:
        found = self._find_relations(query, limit, self.wanted.centre)
        stored = self._graph.relations(list(found.scores))
        ranked = [stored[id_] for id_ in found.scores if id_ in stored]
        if self.wanted.as_of is None and self.wanted.valid_at is None:
            ranked = _current_first(ranked, self.runtime.kinds, self.wanted.now)
        views = self._with_overtaken(ranked, found.scores)
        return FoundRelations(query, views, found.is_degraded, found.notices)

    def _find_entities(self, query: str, limit: int) -> TextHits:
        """Return entities by their names, and by the facts that they are in."""
        keep = self._entities_that_pass
        named = self._texts("entity", query, limit, keep)
        told = self._texts("relation", query, limit, partial(self._relations_that_pass, types=()))
        scores = dict(named.scores)
        ends: dict[str, float] = {}
        for relation in self._graph.relations(list(told.scores)).values():
            for end in (relation.source, relation.target):
                ends[end] = max(ends.get(end, 0.0), BY_FACTS * told.scores[relation.id])
        for id_ in sorted(keep(list(ends))):
            # Being named and being in a fact that answers are two signs, not one.
            scores[id_] = 1.0 - (1.0 - scores.get(id_, 0.0)) * (1.0 - ends[id_])
        meant = known_by(self._graph, query, "concept") if len(query) <= MAX_NAME_CHARACTERS else None
        if meant is not None and keep([meant.id]):
            scores[meant.id] = max(scores.get(meant.id, 0.0), NAMED)
        return self._best(scores, {}, limit, self.wanted.centre, (named, told))

    def _find_relations(self, query: str, limit: int, centre: str) -> TextHits:
        """Return facts by the sentences that say them, and by the names of their ends."""
        told = self._texts("relation", query, limit, partial(self._relations_that_pass, types=self.wanted.types))
        found = self._graph.relations(list(told.scores)) if centre else {}
        ends = {id_: (each.source, each.target) for id_, each in found.items()}
        return self._best(told.scores, ends, limit, centre, (told,))

    def _best(
        self,
        scores: Mapping[str, float],
        ends: Mapping[str, Sequence[str]],
        limit: int,
        centre: str,
        parts: Sequence[TextHits],
    ) -> TextHits:
        """Return the best of what was found, raised by how near it is to the centre; `ends`: of facts, by id."""
        near: Mapping[str, int] = {}
        if centre:
            steps = adjacent(self._graph, self.wanted)
            near = outward([centre], steps, depth=_REACH, limit=_REACHED, fan_out=FAN_OUT).distances
        distances, raised = {}, dict(scores)
        for id_, score in scores.items():
            if far := [near[end] for end in ends.get(id_, (id_,)) if end in near]:
                distances[id_] = min(far)
                raised[id_] = score + (1.0 - score) * NEARNESS / (1.0 + min(far))
        # Equal scores keep the order of the search, which gives one score to all that a worse rank must not overtake.
        ids = sorted(raised, key=lambda id_: -raised[id_])[:limit]
        notices = tuple(dict.fromkeys(notice for part in parts for notice in part.notices))
        is_degraded = any(part.is_degraded for part in parts)
        return TextHits({id_: raised[id_] for id_ in ids}, is_degraded, notices, distances=distances)

    def _texts(self, kind: Subject, query: str, limit: int, keep: Callable[[Sequence[str]], set[str]]) -> TextHits:
        """Search texts until enough of what is found passes, or there is no more."""
        if not self._graph.list_entities(_ANY, limit=1):
            return TextHits({})  # to search nothing takes as long as any search
        namespace = texts_of(self.runtime.namespace, kind)
        made = self.runtime.destination
        by = made.embedder.stamp.of("entity").name
        least = least_score(query, kind, by, lambda word: len(made.tokenize(word)))
        for times in _ROUNDS:
            asked = min(MAX_IDS_PER_QUERY, (limit + _SPARE) * times)
            found = self.search(namespace, query, asked)
            if kind == "relation":
                found = self._without_types(found, namespace, query, asked)
            worded = found.worded
            passed = keep(
                [id_ for id_, score in found.scores.items() if worded is None or score >= least[id_ not in worded]]
            )
            if len(passed) >= limit or len(found.scores) < asked or asked == MAX_IDS_PER_QUERY:
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
        meant = self.search(namespace, rest_of_query, limit).scores if rest_of_query else {}
        scores = {id_: meant.get(id_, 0.0) if id_ in alone else score for id_, score in found.scores.items()}
        best_first = dict(sorted(scores.items(), key=lambda each: -each[1]))
        return replace(found, scores=best_first, worded=(found.worded or frozenset()) - alone)

    def _entities_that_pass(self, ids: Sequence[str]) -> set[str]:
        wanted = self.wanted
        found = self._graph.entities(ids).items()
        known = {id_: each for id_, each in found if wanted.has(each)}
        passed = {id_: each for id_, each in known.items() if not wanted.types or each.type in wanted.types}
        if not wanted.groups:
            return set(passed)
        # Of a group is what was named first in it, or is mentioned by an episode of it.
        chosen = {id_ for id_, each in passed.items() if each.group in wanted.groups}
        mentions = self._graph.mentions("entity", list(passed.keys() - chosen))
        episodes = self._graph.episodes([each.episode for some in mentions.values() for each in some])
        of_them = {id_ for id_, each in episodes.items() if each.group in wanted.groups}
        return chosen | {id_ for id_, some in mentions.items() if any(each.episode in of_them for each in some)}

    def _relations_that_pass(self, ids: Sequence[str], types: Sequence[str]) -> set[str]:
        shown = [each for each in self._graph.relations(ids).values() if self.wanted.shows(each)]
        of_type = [each for each in shown if not types or each.type in types]
        return {each.id for each in of_type if not self.wanted.groups or each.group in self.wanted.groups}

    def entity(self, name: str) -> EntityView:
        return self._build.entities([self._find(name)])[0]

    def relation(self, id_: str) -> RelationView:
        return self._build.relations([find_relation(self._graph, id_)])[0]

    def neighbourhood(self, name: str, depth: int, limit: int) -> Subgraph:
        graph = self._graph
        centre = self._find(name)
        near = outward([centre.id], adjacent(graph, self.wanted), depth=depth, limit=limit, fan_out=FAN_OUT)
        distances, edges = near.distances, dict.fromkeys(near.edges)
        rim = [id_ for id_, distance in distances.items() if distance == depth]
        for some in graph.edges_of(rim, self.wanted.filter(), limit=_BETWEEN, among=distances).values():
            edges.update({each.id: None for each in some})
        entities = self._build.entities(distances, distances=distances, has_summaries=False)

        def order(fact: Relation) -> tuple[int, float, str]:
            ends = (distances.get(end, len(distances)) for end in (fact.source, fact.target))
            return min(ends), -fact.created_at, fact.id

        facts: list[Relation] = sorted(graph.relations(list(edges)).values(), key=order)
        return Subgraph(centre.id, entities, self._build.relations(facts), near.is_capped)

    def path(self, source: str, target: str, max_depth: int) -> GraphPath:
        graph = self._graph
        start, goal = (find_entity(graph, each).id for each in (source, target))
        found = shortest_path(
            start, goal, adjacent(graph, self.wanted), max_depth=max_depth, max_visited=MAX_VISITED, fan_out=FAN_OUT
        )
        entities = self._build.entities(found.ids, has_summaries=False)
        return GraphPath(entities, self._build.relations(found.edges), found.is_capped)

    def timeline(self, name: str, limit: int) -> Timeline:
        entity = self._find(name)
        found = self._graph.relations_of([entity.id], self.wanted.filter(), limit=limit).get(entity.id, [])
        views = self._build.relations(each for each in found if not self.wanted.known(each)[2])
        entries = [TimelineEntry(each.valid_from, "began", each) for each in views]
        entries += [TimelineEntry(each.valid_to, "ended", each) for each in views if each.valid_to is not None]
        entries.sort(key=lambda each: (each.what, each.relation.fact, each.relation.uuid))
        entries.sort(key=lambda each: (each.at is not None, 0.0 if each.at is None else each.at.timestamp()))
        return Timeline(self._build.entities([entity])[0], tuple(entries))

    def history(self, id_: str) -> History:
        graph = self._graph
        kind: Subject = "relation" if graph.relations([id_]) else "entity"
        if kind == "entity":
            id_ = (graph.entities([id_]).get(id_) or find_entity(graph, id_)).id
        happened = graph.happenings(kind, id_)
        if kind == "entity" and all(each.what != "created" for each in happened):
            names = names_among(graph.aliases([id_]).get(id_, ()))
            first = min(names, key=lambda each: (each.created_at, each.normal), default=None)
            made = graph.entities([id_])[id_].created_at
            happened.insert(0, Happening(kind, id_, made, "created", "", "" if first is None else first.episode))
        entries = (HistoryEntry(moment_of(each.at), each.what, each.reason, each.episode) for each in happened)
        return History(id_, kind, tuple(entries))

    def episodes(self, limit: int) -> tuple[EpisodeView, ...]:
        asked = GraphFilter(groups=self.wanted.groups, known_at=self.wanted.as_of)
        found = self._graph.list_episodes(asked, limit=limit)
        return tuple(self._build.episode(each, self.words_of(each.memory, each.version)) for each in found)

    def episode(self, id_: str) -> EpisodeView:
        found = self._graph.episodes([id_]).get(id_)
        if found is None:
            raise NotFoundError(f"there is no episode {id_!r:.80}", remedy="see `commonplace graph episodes`")
        return self._build.episode(found, self.words_of(found.memory, found.version))

    def facts_of_memory(self, memory: str) -> list[RelationView]:
        graph = self._graph
        said = graph.mentioned([each.id for each in graph.episodes_of_memory(memory)])
        ids = dict.fromkeys(each.subject for some in said.values() for each in some if each.kind == "relation")
        return list(self._build.relations(ids))

    def communities(self, limit: int) -> tuple[Community, ...]:
        graph = self._graph
        edges = [(source, target) for _, source, target in graph.pairs(self.wanted.filter())]
        degrees = Counter(end for ends in edges for end in ends)
        found = communities(degrees, edges)
        group_of = {id_: place for place, group in enumerate(found) for id_ in group}
        inside = Counter(group_of[source] for source, target in edges if group_of[source] == group_of[target])
        views = []
        for place, group in enumerate(found[:limit]):
            if len(group) < _MIN_MEMBERS:
                break
            first = sorted(group, key=lambda id_: (-degrees[id_], id_))[:MAX_MEMBERS]
            stored = sorted(graph.entities(first).values(), key=lambda each: (-degrees[each.id], each.name, each.id))
            members = self._build.entities(stored, has_summaries=False)
            id_ = str(uuid.uuid5(COMMUNITIES, "\n".join(group)))
            views.append(Community(id_, members[0].name if members else "", members, len(group), inside[place]))
        return tuple(views)

    def disputes(self) -> tuple[Dispute, ...]:
        found = []
        for id_, some in groupby(self._graph.disputed(), key=lambda each: each.dispute):
            facts = sorted(some, key=lambda each: (each.created_at, each.id))
            since = min((each.disputed_at for each in facts if each.disputed_at is not None), default=0.0)
            found.append(Dispute(id_, moment_of(since), self._build.relations(facts)))
        return tuple(sorted(found, key=lambda each: (each.since, each.uuid)))

    def context(
        self, names: Sequence[str], query: str, *, max_facts: int, max_tokens: int, count: CountTokens
    ) -> GraphContext:
        graph, centre = self._graph, self.wanted.centre
        starts: dict[str, None] = {}
        missing = []
        for name in names:
            try:
                starts[self._find(name).id] = None
            except NotFoundError:
                missing.append(name)
        if centre:
            starts[self._centre(centre)] = None
        told = TextHits({}, *self._state())
        if query.strip():
            told = self._find_relations(query, max_facts, centre or next(iter(starts), ""))
        steps = adjacent(graph, self.wanted)
        near = outward(list(starts), steps, depth=self._context_depth, limit=_AROUND, fan_out=FAN_OUT)
        distances = near.distances

        def order(fact: Relation) -> tuple[float, float, str]:
            """Put first what answers, then what is near, then what was learnt last."""
            ends = [distances[end] for end in (fact.source, fact.target) if end in distances]
            nearness = 1.0 / (1.0 + sum(ends)) if ends else 0.0
            return -(told.scores.get(fact.id, 0.0) + nearness), -fact.created_at, fact.id

        facts = graph.relations(list(dict.fromkeys([*told.scores, *near.edges])))
        chosen = sorted(facts.values(), key=order)[:max_facts]
        ends = dict.fromkeys([*starts, *(end for each in chosen for end in (each.source, each.target))])
        text, entities, kept = describe(
            self._build.entities(ends, distances=distances, has_summaries=False),
            self._with_overtaken(chosen, told.scores),
            max_tokens=max_tokens,
            count=count,
        )
        return GraphContext(text, entities, kept, count(text), tuple(missing), told.is_degraded, told.notices)

    def _with_overtaken(self, relations: Sequence[Relation], scores: Mapping[str, float]) -> tuple[RelationView, ...]:
        """Return facts as callers see them; one that holds now has in `overtook` what held before it, and when."""
        graph, build = self._graph, self._build
        views = build.relations(relations, scores)
        if self.wanted.as_of is not None or self.wanted.valid_at is not None:
            return views
        old: dict[str, Relation] = {}
        read: dict[FactKey, list[Relation]] = {}
        for each in relations:
            key, begun = key_of(each, self.runtime.kinds), each.valid_from
            if key.target or begun is None or each.valid_to is not None or each.is_retracted:
                continue
            if key not in read:
                read[key] = [one for one in facts_of(graph, key) if one.valid_to is not None and not one.is_retracted]
            past = [one for one in read[key] if (one.valid_to or 0.0) <= begun and one.target != each.target]
            if past:
                old[each.id] = max(past, key=lambda one: (one.valid_to or 0.0, one.id))
        before = {}
        for id_, past_view in zip(old, build.relations(old.values()), strict=True):
            since, until = ("" if at is None else iso(at) for at in (past_view.valid_from, past_view.valid_to))
            before[id_] = {
                "uuid": past_view.uuid,
                "target_name": past_view.target_name,
                "fact": past_view.fact,
                "valid_from": since,
                "valid_to": until,
            }
        marks = {id_: {"overtook": found} for id_, found in before.items()} | self._replaced(relations)
        return tuple(
            replace(each, attributes={**marks[each.uuid], **each.attributes}) if each.uuid in marks else each
            for each in views
        )

    def _replaced(self, relations: Sequence[Relation]) -> dict[str, dict[str, dict[str, str]]]:
        """Return what is said of facts that hold, but that only memories state which newer ones may have replaced."""
        current = [each.id for each in relations if each.valid_to is None and not each.is_retracted]
        mentions = self._graph.mentions("relation", current)
        if not mentions:
            return {}
        episodes = self._graph.episodes([*{each.episode for some in mentions.values() for each in some}])
        stating = {id_: {episodes[each.episode].memory for each in some} for id_, some in mentions.items()}
        newer = self.newer(sorted(set().union(*stating.values()) - {""}))
        found = {id_: [newer[each] for each in some] for id_, some in stating.items() if some and newer.keys() >= some}
        newest = {id_: max(some, key=lambda each: (each.at, each.owner.id)) for id_, some in found.items()}
        return {
            id_: {"superseded_by": {"memory": each.owner.id, "content": each.record.content}}
            for id_, each in newest.items()
        }


_MIN_MEMBERS: Final = 2
_AROUND: Final = 200


def _current_first(relations: list[Relation], kinds: Kinds, now: float) -> list[Relation]:
    """Return facts in their order, but of what has one value at a time the one that holds before all others.

    Behind it come those that are to begin, then those that ended.
    """

    def stands(each: Relation) -> tuple[bool, bool]:
        return each.is_retracted or (each.valid_to or inf) <= now, (each.valid_from or 0.0) > now

    places: dict[FactKey, list[int]] = {}
    for place, each in enumerate(relations):
        key = key_of(each, kinds)
        if not key.target:
            places.setdefault(key, []).append(place)
    ordered = list(relations)
    for some in places.values():
        for place, old in zip(some, sorted(some, key=lambda at: stands(relations[at])), strict=True):
            ordered[place] = relations[old]
    return ordered
