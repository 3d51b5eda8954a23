"""Query the graph: search entities and facts, traverse, read history. Read-only.

A graph is small and its texts are short, so some text is always fairly near: results need a minimum relevance.
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
from commonplace.graph import views
from commonplace.graph.entities import known_by
from commonplace.graph.facts import FactKey, facts_of, key_of
from commonplace.graph.kinds import Kinds
from commonplace.graph.names import MAX_NAME_CHARACTERS, names_among
from commonplace.graph.runtime import GraphRuntime, subjects_of
from commonplace.graph.service import find_entity, find_relation
from commonplace.graph.text import CountTokens, describe
from commonplace.graph.traversal import Adjacent, communities, outward, shortest_path
from commonplace.store.graph import GraphReading
from commonplace.store.schema import texts_of
from commonplace.text.languages import STOP_WORDS
from commonplace.text.tokens import analyse
from commonplace.types import StoredMemory
from commonplace.types.graph import Entity, GraphFilter, Happening, Relation, Subject

MIN_COSINE: Final[Mapping[Subject, float]] = {"relation": 0.45, "entity": 0.65}
"""Minimum cosine of a result that shares no word with the query; higher for names, which are shorter than sentences.
Round numbers between the scores of right hits (`SQL` finds a fact about Postgres at .55, `mountaineering` climbing at
.78) and of wrong ones (`penguins` finds a fact at .38, and Globex at .56)."""
MIN_NAME_COSINE: Final[Mapping[str, float]] = {"minilm": 0.75}
"""Minimum cosine of a name by embedder, for transformers: `Beethoven symphony` finds a place at .69, a greeting
finds a meaningless word at .74, and `mountaineering` finds climbing above that."""
MIN_LETTER_SIMILARITY: Final = 0.7
"""Minimum cosine with an embedder of `_OF_LETTERS`, whose vectors are made of letters and have no meaning."""
_OF_LETTERS: Final = frozenset({"hashing"})
_WORD: Final = re.compile(r"[^\W_]+")
_MIN_LETTERS: Final = 2.5
"""Letters per piece below which a word counts as unknown to the vocabulary: `zz`, `##zz`."""
NEVER: Final = 2.0


def least_score(query: str, kind: Subject, embedder: str, pieces: Callable[[str], int]) -> tuple[float, float]:
    """Return the minimum scores of results for a query: with a word in common, and without.

    The pieces are the number into which the vocabulary of the embedder cuts a word.
    """
    words = [word for word in _WORD.findall(query) if not (word.islower() and word in STOP_WORDS)]
    if not words:
        return NEVER, NEVER
    if embedder in _OF_LETTERS:
        return 0.0, MIN_LETTER_SIMILARITY
    # Only letters have a meaning in vectors: a number is similar to nothing else.
    plain_words = (word for word in words if word.isalpha() and word.lower() not in STOP_WORDS)
    is_known = any(len(word) >= _MIN_LETTERS * max(pieces(word), 1) for word in plain_words)
    least = MIN_NAME_COSINE.get(embedder, MIN_COSINE[kind]) if kind == "entity" else MIN_COSINE[kind]
    return 0.0, least if is_known else NEVER


MAX_IDS_PER_QUERY: Final = 1000
"""Maximum number of texts that a search returns."""
_ROUNDS: Final = (1, 5, 25)
"""Factors of the limit in successive searches, while filters leave too few results."""
_SPARE: Final = 20

FAN_OUT: Final = 100
"""Maximum number of facts followed from one entity."""
_REACH, _REACHED, _AROUND = 3, 500, 200
NEARNESS: Final = 0.3
"""Share of its missing score that a result right at the centre gains; a round guess."""
BY_FACTS: Final = 0.8
"""Share of the score of a fact that each of its ends gets; a round guess."""
NAMED: Final = 0.95
"""Minimum score of an entity whose name is the query."""
COMMUNITIES: Final = uuid.UUID("8c7a4a52-94de-5f1b-b0b4-0f4a2f1f6f53")
"""Namespace of the UUIDv5 of communities, named by their sorted members."""
MAX_VISITED: Final = 20_000
_MIN_MEMBERS, MAX_MEMBERS = 2, 10
_BETWEEN: Final = 100
"""Maximum number of facts read per entity to find those between entities at the rim."""


@dataclass(frozen=True, slots=True)
class TextHits:
    """The hits of a text search.

    Attributes:
        scores: scores by id, 0–1, best first.
        is_degraded, notices: whether a part of the search failed, and why.
        worded: the ids of hits with a word of the query; None if unknown.
        distances: number of facts between a hit and the centre, by id, where known.
    """

    scores: Mapping[str, float]
    is_degraded: bool = False
    notices: tuple[str, ...] = ()
    worded: frozenset[str] | None = None
    distances: Mapping[str, int] = field(default_factory=dict)


Search = Callable[[str, str, int], TextHits]
"""Takes a namespace, a query and a limit; returns the hits among the texts of the namespace."""


@dataclass(eq=False)
class GraphReader:
    """Answers queries about the graph of one namespace; the methods of `Graph` document them."""

    runtime: GraphRuntime
    search: Search
    words_of: Callable[[str, int], str]
    filters: views.QueryFilters
    newer: Callable[[Sequence[str]], Mapping[str, StoredMemory]]
    """Returns, by memory id, the newest memory that may have replaced it; absent if there is none."""

    _context_depth, _has_summaries = 2, True

    @property
    def _graph(self) -> GraphReading:
        return self.runtime.graph

    @property
    def _adjacent(self) -> Adjacent:
        """Reads the facts of entities, most recently learnt first."""
        return partial(self._graph.edges_of, filter_=self.filters.filter(), limit=FAN_OUT + 1)

    @cached_property
    def _build(self) -> views.ViewBuilder:
        return views.ViewBuilder(self._graph, self.filters)

    def _find(self, name: str) -> Entity:
        return find_entity(self._graph, name)

    def _centre(self, id_: str) -> str:
        return self._find(id_).id

    def _state(self) -> tuple[bool, tuple[str, ...]]:
        """Return whether results are `degraded` before anything is searched, and the notices that say why."""
        return False, ()

    def search_entities(self, query: str, limit: int) -> views.FoundEntities:
        hits = self._find_entities(query, limit)
        found = self._build.entities(hits.scores, hits.scores, hits.distances, has_summaries=self._has_summaries)
        return views.FoundEntities(query, found, hits.is_degraded, hits.notices)

    def search_relations(self, query: str, limit: int) -> views.FoundRelations:
        hits = self._find_relations(query, limit, self.filters.centre)
        stored = self._graph.relations(list(hits.scores))
        ranked = [stored[id_] for id_ in hits.scores if id_ in stored]
        if self.filters.as_of is None and self.filters.valid_at is None:
            ranked = _current_first(ranked, self.runtime.kinds, self.filters.now)
        found = self._with_overtaken(ranked, hits.scores)
        return views.FoundRelations(query, found, hits.is_degraded, hits.notices)

    def _find_entities(self, query: str, limit: int) -> TextHits:
        """Find entities by their names and by their facts."""
        keep = self._entities_that_pass
        name_hits = self._texts("entity", query, limit, keep)
        fact_hits = self._texts("relation", query, limit, partial(self._relations_that_pass, types=()))
        scores = dict(name_hits.scores)
        ends: dict[str, float] = {}
        for relation in self._graph.relations(list(fact_hits.scores)).values():
            for end in (relation.source, relation.target):
                ends[end] = max(ends.get(end, 0.0), BY_FACTS * fact_hits.scores[relation.id])
        for id_ in sorted(keep(list(ends))):
            # A matching name and a matching fact are independent evidence.
            scores[id_] = 1.0 - (1.0 - scores.get(id_, 0.0)) * (1.0 - ends[id_])
        match = known_by(self._graph, query, "concept") if len(query) <= MAX_NAME_CHARACTERS else None
        if match is not None and keep([match.id]):
            scores[match.id] = max(scores.get(match.id, 0.0), NAMED)
        return self._best(scores, {}, limit, self.filters.centre, (name_hits, fact_hits))

    def _find_relations(self, query: str, limit: int, centre: str) -> TextHits:
        """Find facts by their sentences, and by the names of their ends."""
        hits = self._texts("relation", query, limit, partial(self._relations_that_pass, types=self.filters.types))
        facts = self._graph.relations(list(hits.scores)) if centre else {}
        ends = {id_: (fact.source, fact.target) for id_, fact in facts.items()}
        return self._best(hits.scores, ends, limit, centre, (hits,))

    def _best(
        self,
        scores: Mapping[str, float],
        ends: Mapping[str, Sequence[str]],
        limit: int,
        centre: str,
        parts: Sequence[TextHits],
    ) -> TextHits:
        """Return the best hits, raised by their nearness to the centre; `ends`: the ends of facts, by id."""
        near: Mapping[str, int] = {}
        if centre:
            near = outward([centre], self._adjacent, depth=_REACH, limit=_REACHED, fan_out=FAN_OUT).distances
        distances, raised = {}, dict(scores)
        for id_, score in scores.items():
            if end_distances := [near[end] for end in ends.get(id_, (id_,)) if end in near]:
                distances[id_] = min(end_distances)
                raised[id_] = score + (1.0 - score) * NEARNESS / (1.0 + min(end_distances))
        # Equal scores keep the order of the search, which scores hits equally where a lower rank must not overtake.
        ids = sorted(raised, key=lambda id_: -raised[id_])[:limit]
        notices = tuple(dict.fromkeys(notice for part in parts for notice in part.notices))
        is_degraded = any(part.is_degraded for part in parts)
        return TextHits({id_: raised[id_] for id_ in ids}, is_degraded, notices, distances=distances)

    def _texts(self, kind: Subject, query: str, limit: int, keep: Callable[[Sequence[str]], set[str]]) -> TextHits:
        """Search texts until enough hits pass `keep`, or there are no more."""
        if not self._graph.list_entities(GraphFilter(with_past=True), limit=1):
            return TextHits({})  # an empty graph: a search would take as long as any other
        namespace = texts_of(self.runtime.namespace, kind)
        destination = self.runtime.destination
        embedder = destination.embedder.stamp.of("entity").name
        least = least_score(query, kind, embedder, lambda word: len(destination.tokenize(word)))
        for times in _ROUNDS:
            count = min(MAX_IDS_PER_QUERY, (limit + _SPARE) * times)
            hits = self.search(namespace, query, count)
            if kind == "relation":
                hits = self._without_types(hits, namespace, query, count)
            scores, worded = hits.scores, hits.worded
            passed = keep([id_ for id_, score in scores.items() if worded is None or score >= least[id_ not in worded]])
            if len(passed) >= limit or len(scores) < count or count == MAX_IDS_PER_QUERY:
                break
        return replace(hits, scores={id_: score for id_, score in scores.items() if id_ in passed}, worded=None)

    def _without_types(self, hits: TextHits, namespace: str, query: str, limit: int) -> TextHits:
        """Score facts that share only words of their type with the query by the rest of the query.

        "auth dependencies" asks about auth, not about every DEPENDS_ON; "what depends on what" does ask about these.
        """
        terms, type_terms, type_only = set(analyse(query)), set[str](), set[str]()
        for fact in self._graph.relations(sorted(hits.worded or ())).values():
            of_type = terms.intersection(analyse(fact.type.replace("_", " ")))
            if of_type and (other_terms := terms - of_type) and other_terms.isdisjoint(analyse(fact.fact)):
                type_terms |= of_type
                type_only.add(fact.id)
        if not type_only:
            return hits
        rest_of_query = " ".join(word for word in query.split() if type_terms.isdisjoint(analyse(word)))
        rest_scores = self.search(namespace, rest_of_query, limit).scores if rest_of_query else {}
        scores = {id_: rest_scores.get(id_, 0.0) if id_ in type_only else score for id_, score in hits.scores.items()}
        best_first = dict(sorted(scores.items(), key=lambda item: -item[1]))
        return replace(hits, scores=best_first, worded=(hits.worded or frozenset()) - type_only)

    def _entities_that_pass(self, ids: Sequence[str]) -> set[str]:
        wanted = self.filters
        live = {id_: entity for id_, entity in self._graph.entities(ids).items() if wanted.has(entity)}
        passing = {id_: entity for id_, entity in live.items() if not wanted.types or entity.type in wanted.types}
        if not wanted.groups:
            return set(passing)
        # An entity belongs to the group in which it was first named, and to those of the episodes that mention it.
        chosen = {id_ for id_, entity in passing.items() if entity.group in wanted.groups}
        mentions = self._graph.mentions("entity", list(passing.keys() - chosen))
        episodes = self._graph.episodes([mention.episode for rows in mentions.values() for mention in rows])
        grouped = {id_ for id_, episode in episodes.items() if episode.group in wanted.groups}
        return chosen | {id_ for id_, rows in mentions.items() if any(mention.episode in grouped for mention in rows)}

    def _relations_that_pass(self, ids: Sequence[str], types: Sequence[str]) -> set[str]:
        shown = [fact for fact in self._graph.relations(ids).values() if self.filters.shows(fact)]
        of_type = [fact for fact in shown if not types or fact.type in types]
        return {fact.id for fact in of_type if not self.filters.groups or fact.group in self.filters.groups}

    def entity(self, name: str) -> views.EntityView:
        return self._build.entities([self._find(name)])[0]

    def relation(self, id_: str) -> views.RelationView:
        return self._build.relations([find_relation(self._graph, id_)])[0]

    def neighbourhood(self, name: str, depth: int, limit: int) -> views.Subgraph:
        graph = self._graph
        centre = self._find(name)
        near = outward([centre.id], self._adjacent, depth=depth, limit=limit, fan_out=FAN_OUT)
        distances, edges = near.distances, dict.fromkeys(near.edges)
        rim = [id_ for id_, distance in distances.items() if distance == depth]
        for rows in graph.edges_of(rim, self.filters.filter(), limit=_BETWEEN, among=distances).values():
            edges.update({edge.id: None for edge in rows})
        entities = self._build.entities(distances, distances=distances, has_summaries=False)

        def order(fact: Relation) -> tuple[int, float, str]:
            ends = (distances.get(end, len(distances)) for end in (fact.source, fact.target))
            return min(ends), -fact.created_at, fact.id

        facts: list[Relation] = sorted(graph.relations(list(edges)).values(), key=order)
        return views.Subgraph(centre.id, entities, self._build.relations(facts), near.is_capped)

    def path(self, source: str, target: str, max_depth: int) -> views.GraphPath:
        graph = self._graph
        start, goal = (find_entity(graph, name).id for name in (source, target))
        limits = {"max_depth": max_depth, "max_visited": MAX_VISITED, "fan_out": FAN_OUT}
        shortest = shortest_path(start, goal, self._adjacent, **limits)
        entities = self._build.entities(shortest.ids, has_summaries=False)
        return views.GraphPath(entities, self._build.relations(shortest.edges), shortest.is_capped)

    def timeline(self, name: str, limit: int) -> views.Timeline:
        entity = self._find(name)
        facts = self._graph.relations_of([entity.id], self.filters.filter(), limit=limit).get(entity.id, [])
        found = self._build.relations(fact for fact in facts if not self.filters.known(fact).is_retracted)
        entries = [views.TimelineEntry(view.valid_from, "began", view) for view in found]
        entries += [views.TimelineEntry(view.valid_to, "ended", view) for view in found if view.valid_to is not None]
        entries.sort(key=lambda entry: (entry.what, entry.relation.fact, entry.relation.uuid))
        entries.sort(key=lambda entry: (entry.at is not None, 0.0 if entry.at is None else entry.at.timestamp()))
        return views.Timeline(self._build.entities([entity])[0], tuple(entries))

    def history(self, id_: str) -> views.History:
        graph = self._graph
        kind: Subject = "relation" if graph.relations([id_]) else "entity"
        if kind == "entity":
            id_ = (graph.entities([id_]).get(id_) or find_entity(graph, id_)).id
        events = graph.happenings(kind, id_)
        if kind == "entity" and all(event.what != "created" for event in events):
            names = names_among(graph.aliases([id_]).get(id_, ()))
            first = min(names, key=lambda alias: (alias.created_at, alias.normal), default=None)
            created_at = graph.entities([id_])[id_].created_at
            events.insert(0, Happening(kind, id_, created_at, "created", "", "" if first is None else first.episode))
        entries = (views.HistoryEntry(moment_of(event.at), event.what, event.reason, event.episode) for event in events)
        return views.History(id_, kind, tuple(entries))

    def episodes(self, limit: int) -> tuple[views.EpisodeView, ...]:
        filter_ = GraphFilter(groups=self.filters.groups, known_at=self.filters.as_of)
        stored = self._graph.list_episodes(filter_, limit=limit)
        return tuple(self._build.episode(row, self.words_of(row.memory, row.version)) for row in stored)

    def episode(self, id_: str) -> views.EpisodeView:
        stored = self._graph.episodes([id_]).get(id_)
        if stored is None:
            raise NotFoundError(f"there is no episode {id_!r:.80}", remedy="see `commonplace graph episodes`")
        return self._build.episode(stored, self.words_of(stored.memory, stored.version))

    def facts_of_memory(self, memory: str) -> list[views.RelationView]:
        graph = self._graph
        episodes = [episode.id for episode in graph.episodes_of_memory(memory)]
        return list(self._build.relations(subjects_of(graph, episodes)[1]))

    def communities(self, limit: int) -> tuple[views.Community, ...]:
        graph = self._graph
        edges = [(source, target) for _, source, target in graph.pairs(self.filters.filter())]
        degrees = Counter(end for ends in edges for end in ends)
        groups = communities(degrees, edges)
        group_of = {id_: number for number, group in enumerate(groups) for id_ in group}
        inside = Counter(group_of[source] for source, target in edges if group_of[source] == group_of[target])
        found = []
        for number, group in enumerate(groups[:limit]):
            if len(group) < _MIN_MEMBERS:
                break
            top = sorted(group, key=lambda id_: (-degrees[id_], id_))[:MAX_MEMBERS]
            stored = sorted(graph.entities(top).values(), key=lambda node: (-degrees[node.id], node.name, node.id))
            members = self._build.entities(stored, has_summaries=False)
            id_ = str(uuid.uuid5(COMMUNITIES, "\n".join(group)))
            found.append(views.Community(id_, members[0].name if members else "", members, len(group), inside[number]))
        return tuple(found)

    def disputes(self) -> tuple[views.Dispute, ...]:
        found = []
        for id_, rows in groupby(self._graph.disputed(), key=lambda fact: fact.dispute):
            facts = sorted(rows, key=lambda fact: (fact.created_at, fact.id))
            since = min((fact.disputed_at for fact in facts if fact.disputed_at is not None), default=0.0)
            found.append(views.Dispute(id_, moment_of(since), self._build.relations(facts)))
        return tuple(sorted(found, key=lambda dispute: (dispute.since, dispute.uuid)))

    def context(
        self, names: Sequence[str], query: str, *, max_facts: int, max_tokens: int, count: CountTokens
    ) -> views.GraphContext:
        graph, centre = self._graph, self.filters.centre
        starts: dict[str, None] = {}
        missing = []
        for name in names:
            try:
                starts[self._find(name).id] = None
            except NotFoundError:
                missing.append(name)
        if centre:
            starts[self._centre(centre)] = None
        hits = TextHits({}, *self._state())
        if query.strip():
            hits = self._find_relations(query, max_facts, centre or next(iter(starts), ""))
        near = outward(list(starts), self._adjacent, depth=self._context_depth, limit=_AROUND, fan_out=FAN_OUT)
        distances = near.distances

        def order(fact: Relation) -> tuple[float, float, str]:
            """Sort by score and nearness, then by the time learnt, newest first."""
            ends = [distances[end] for end in (fact.source, fact.target) if end in distances]
            nearness = 1.0 / (1.0 + sum(ends)) if ends else 0.0
            return -(hits.scores.get(fact.id, 0.0) + nearness), -fact.created_at, fact.id

        facts = graph.relations(list(dict.fromkeys([*hits.scores, *near.edges])))
        chosen = sorted(facts.values(), key=order)[:max_facts]
        ends = dict.fromkeys([*starts, *(end for relation in chosen for end in (relation.source, relation.target))])
        found = self._build.entities(ends, distances=distances, has_summaries=False)
        stated = self._with_overtaken(chosen, hits.scores)
        text, entities, shown = describe(found, stated, max_tokens=max_tokens, count=count)
        return views.GraphContext(text, entities, shown, count(text), tuple(missing), hits.is_degraded, hits.notices)

    def _with_overtaken(self, facts: Sequence[Relation], scores: Mapping[str, float]) -> tuple[views.RelationView, ...]:
        """Return the views of facts; a current one has in `overtook` the fact that held before it, and when."""
        found = self._build.relations(facts, scores)
        if self.filters.as_of is not None or self.filters.valid_at is not None:
            return found
        old: dict[str, Relation] = {}
        rows: dict[FactKey, list[Relation]] = {}
        for fact in facts:
            key, begun = key_of(fact, self.runtime.kinds), fact.valid_from
            if key.target or begun is None or fact.valid_to is not None or fact.is_retracted:
                continue
            if key not in rows:
                of_key = facts_of(self._graph, key)
                rows[key] = [row for row in of_key if row.valid_to is not None and not row.is_retracted]
            past = [row for row in rows[key] if (row.valid_to or 0.0) <= begun and row.target != fact.target]
            if past:
                old[fact.id] = max(past, key=lambda row: (row.valid_to or 0.0, row.id))
        marks: dict[str, dict[str, dict[str, str]]] = {}
        for id_, view in zip(old, self._build.relations(old.values()), strict=True):
            since, until = ("" if time is None else iso(time) for time in (view.valid_from, view.valid_to))
            before = {"uuid": view.uuid, "target_name": view.target_name, "fact": view.fact}
            marks[id_] = {"overtook": {**before, "valid_from": since, "valid_to": until}}
        marks |= self._replaced(facts)
        return tuple(replace(view, attributes={**marks.get(view.uuid, {}), **view.attributes}) for view in found)

    def _replaced(self, relations: Sequence[Relation]) -> dict[str, dict[str, dict[str, str]]]:
        """Return `superseded_by`, by id, of current facts whose memories may all have been replaced by newer ones."""
        current = [fact.id for fact in relations if fact.valid_to is None and not fact.is_retracted]
        mentions = self._graph.mentions("relation", current)
        if not mentions:
            return {}
        episodes = self._graph.episodes([*{mention.episode for rows in mentions.values() for mention in rows}])
        stating = {id_: {episodes[mention.episode].memory for mention in rows} for id_, rows in mentions.items()}
        newer = self.newer(sorted(set().union(*stating.values()) - {""}))
        found = {id_: [newer[memory] for memory in ids] for id_, ids in stating.items() if ids and newer.keys() >= ids}
        newest = {id_: max(ids, key=lambda memory: (memory.at, memory.owner.id)) for id_, ids in found.items()}
        return {
            id_: {"superseded_by": {"memory": memory.owner.id, "content": memory.record.content}}
            for id_, memory in newest.items()
        }


def _current_first(relations: list[Relation], kinds: Kinds, now: float) -> list[Relation]:
    """Return facts in order, but those of one key by when they hold: now, in the future, in the past."""

    def rank(fact: Relation) -> tuple[bool, bool]:
        return fact.is_retracted or (fact.valid_to or inf) <= now, (fact.valid_from or 0.0) > now

    positions: dict[FactKey, list[int]] = {}
    for position, fact in enumerate(relations):
        key = key_of(fact, kinds)
        if not key.target:
            positions.setdefault(key, []).append(position)
    ordered = list(relations)
    for group in positions.values():
        for position, old_position in zip(group, sorted(group, key=lambda index: rank(relations[index])), strict=True):
            ordered[position] = relations[old_position]
    return ordered
