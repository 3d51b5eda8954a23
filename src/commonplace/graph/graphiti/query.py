"""Answer queries about the graph from Graphiti, by the rules of the local reader.

Its tools return no scores, and no entity by its id. So results are scored here, and the entities known by id are those
returned before, and those that a search for the sentences of their facts finds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError, ProviderError
from commonplace.graph import views
from commonplace.graph.graphiti.backend import Backend, error_text
from commonplace.graph.graphiti.client import GraphitiTools, unmarked
from commonplace.graph.graphiti.outbox import waiting_for
from commonplace.graph.names import normal
from commonplace.graph.query import GraphReader, TextHits
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Edge, Entity, Episode, GraphFilter, Relation

Score = Callable[[str, Sequence[str]], Iterable[float]]
"""Takes a query and texts; returns how well each text answers the query, 0–1."""

MORE: Final = 3
"""Factor by which more results are requested, since ended facts and other types are filtered here."""
MAX_RESULTS: Final = 100
MAX_CALLS: Final = 10
"""Maximum number of calls for the facts of entities, per query."""
_LISTED: Final = 1_000
_REMEMBERED: Final = 10_000
"""Maximum number of entities returned by Graphiti that are kept, to find them by id."""
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED_BY: Final = 400
_BY_NAME: Final = "see `commonplace graph entities QUERY`; Graphiti finds entities by their names, not by ids"
_TIMELESS: Final = "Graphiti does not say when an entity was true; search facts for that"
_log = logging.getLogger(__name__)

T = TypeVar("T")


class _GraphitiQuery(GraphReader):
    """One query to Graphiti, and at the same time the graph of the results of its searches."""

    _context_depth, _has_summaries = 1, False

    def __init__(self, reader: GraphitiReader, tools: GraphitiTools) -> None:
        super().__init__(reader.runtime, reader.search, reader.words_of, reader.filters, reader.newer)
        self._reader = reader
        self._tools = tools
        self._local_graph = reader.runtime.graph
        # The requested groups, by their names at Graphiti.
        self._labels = reader.backend.labels(reader.filters.groups)
        self._answered = reader.backend.answered
        self._facts: dict[str, Relation] = {}
        self._calls = 0

    # The reader

    @property
    def _graph(self) -> GraphReading:
        return self  # type: ignore[return-value] # it has the methods that these queries read

    def neighbourhood(self, name: str, depth: int, limit: int) -> views.Subgraph:
        subgraph = super().neighbourhood(name, depth, limit)
        return replace(subgraph, is_capped=subgraph.is_capped or self._calls > MAX_CALLS)

    def _find(self, name: str) -> Entity:
        """Return the entity at Graphiti for a name, a local id or an id of Graphiti."""
        if name in self._answered:
            return self._answered[name]
        local = self._local_graph.entities([name]).get(name)
        if local is not None or not is_id(name):
            query = local.name if local is not None else name
            nodes = self._nodes(query, MAX_CALLS)
            by_id = next((node for node in nodes if node.id == name), None)
            match = by_id or next((node for node in nodes if normal(node.name) == normal(query)), None)
            if match is not None:
                return match
        raise NotFoundError(f"Graphiti has no entity {name!r:.80}", remedy=_BY_NAME)

    def _centre(self, id_: str) -> str:
        """Return the id at Graphiti of an entity; "" for a local entity that Graphiti does not have."""
        try:
            return self._find(id_).id if id_ else ""
        except NotFoundError:
            return "" if id_ in self._local_graph.entities([id_]) else id_

    def _state(self) -> tuple[bool, tuple[str, ...]]:
        waiting = len(self._reader.backend.outbox.items())
        return bool(waiting), (waiting_for(waiting),) if waiting else ()

    def _find_entities(self, query: str, limit: int) -> TextHits:
        wanted = self.filters
        nodes = [node for node in self._nodes(query, limit) if wanted.has(node)]
        of_type = [node for node in nodes if not wanted.types or node.type in wanted.types]
        is_degraded, notices = self._state()
        if wanted.valid_at is not None:
            is_degraded, notices = True, (*notices, _TIMELESS)
        texts = {node.id: f"{node.name}: {node.summary}" for node in of_type}
        return TextHits(self._scored(query, texts, limit), is_degraded, notices)

    def _find_relations(self, query: str, limit: int, centre: str) -> TextHits:
        types, facts = self.filters.types, self._relations(query, limit, self._centre(centre))
        texts = {fact.id: fact.fact for fact in facts if not types or fact.type in types}
        return TextHits(self._scored(query, texts, limit), *self._state())

    def _scored(self, query: str, texts: Mapping[str, str], limit: int) -> dict[str, float]:
        """Return scores by id, best first, ties in Graphiti's order, without texts that score 0."""
        scores = self._reader.score(query, list(texts.values())) if texts else ()
        scored = {id_: round(float(score), 4) for id_, score in zip(texts, scores, strict=True) if score > 0}
        return dict(sorted(scored.items(), key=lambda item: -item[1])[:limit])

    def _nodes(self, query: str, limit: int) -> list[Entity]:
        answered = self._tools.search_nodes(query, list(self._labels), _more(limit), now=self.filters.now)
        nodes = [replace(node, group=self._labels.get(node.group, node.group)) for node in answered]
        self._answered.update({node.id: node for node in nodes})
        for id_ in list(self._answered)[:-_REMEMBERED]:
            self._answered.pop(id_, None)
        return nodes

    def _relations(self, query: str, limit: int, centre: str = "") -> list[Relation]:
        """Search facts; return those that pass the filters of time, in Graphiti's order."""
        groups = list(self._labels)
        items = self._tools.search_facts(query, groups, _more(limit), centre=centre, now=self.filters.now)
        shown = [item.relation for item in items if self.filters.shows(item.relation)]
        facts = [replace(fact, group=self._labels.get(fact.group, fact.group)) for fact in shown]
        self._facts.update({fact.id: fact for fact in facts})
        return facts

    # The graph of the results

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        local = self._local_graph.entities([id_ for id_ in ids if id_ not in self._answered])
        missing = {id_ for id_ in ids if id_ not in self._answered and id_ not in local}
        sentences = dict.fromkeys(fact.fact for fact in self._facts.values() if {fact.source, fact.target} & missing)
        if sentences:  # no tool returns an entity by its id
            self._nodes(" ".join(sentences)[:_NAMED_BY], len(missing))
        return {id_: entity for id_ in ids if (entity := self._answered.get(id_) or local.get(id_)) is not None}

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        return {id_: self._facts[id_] for id_ in ids if id_ in self._facts}

    def facts(self, source: str, type_: str, *_: object) -> list[Relation]:
        # Callers ask only for single-valued facts, whatever their target.
        return [fact for fact in self._facts.values() if (fact.source, fact.type) == (source, type_)]

    def edges_of(
        self, ids: Sequence[str], filter_: GraphFilter, *, limit: int, among: Collection[str] | None = None
    ) -> dict[str, list[Edge]]:
        """Search the facts of entities; with `among`, return those between these entities that were found already."""
        del filter_  # `_relations` has filtered the facts by time
        edges = {}
        for id_ in ids:
            name = self._answered[id_].name if id_ in self._answered else ""
            if among is None and name:
                self._calls += 1
                if self._calls <= MAX_CALLS:
                    self._relations(name, limit, id_)
            facts = [fact for fact in self._facts.values() if id_ in (fact.source, fact.target)]
            near = [fact for fact in facts if among is None or {fact.source, fact.target} <= set(among)]
            edges[id_] = [Edge(f.id, f.source, f.target, f.created_at, f.confidence, bool(f.dispute)) for f in near]
        return edges

    def aliases(self, *_: object) -> dict[str, Any]:
        return {}

    # Graphiti's tools return no aliases, and not which episode states a fact.
    mentions = reference_times = aliases


@dataclass(eq=False)
class GraphitiReader(GraphReader):
    """Answers queries from Graphiti; those that its tools cannot answer, from the local graph."""

    backend: Backend
    score: Score

    @property
    def _local(self) -> GraphReader:
        return GraphReader(self.runtime, self.search, self.words_of, self.filters, self.newer)

    def search_entities(self, query: str, limit: int) -> views.FoundEntities:
        return self._with_fallback(lambda reader: reader.search_entities(query, limit))

    def search_relations(self, query: str, limit: int) -> views.FoundRelations:
        return self._with_fallback(lambda reader: reader.search_relations(query, limit))

    def context(self, names: Sequence[str], query: str, **limits: Any) -> views.GraphContext:
        return self._with_fallback(lambda reader: reader.context(names, query, **limits))

    def neighbourhood(self, name: str, depth: int, limit: int) -> views.Subgraph:
        return self._with_fallback(lambda reader: reader.neighbourhood(name, depth, limit))

    def episodes(self, limit: int) -> tuple[views.EpisodeView, ...]:
        """Return the local episodes and Graphiti's, newest first; over FalkorDB, it lists only those of one group."""
        local, as_of = self._local.episodes(limit), self.filters.as_of
        labels = self.backend.labels(self.filters.groups)
        remote: list[Episode] = []
        try:
            listed = self.backend.ask(lambda tools: tools.episodes(list(labels), min(_LISTED, max(limit, MAX_RESULTS))))
            remote = [unmarked(item) for item in listed]
        except ProviderError as error:
            _log.warning("%s", error_text(error))
        deleted = {item.id for item in self.backend.outbox.items() if item.what == "delete"}
        ours = {*self._graph.episodes([item.id for item in remote]), *deleted}
        foreign = [replace(item, group=labels.get(item.group, item.group)) for item in remote if item.id not in ours]
        visible = [item for item in foreign if as_of is None or item.created_at <= as_of]
        merged = sorted((*local, *map(self._build.episode, visible)), key=lambda view: view.uuid)
        return tuple(sorted(merged, key=lambda view: view.reference_time, reverse=True)[:limit])

    def entity(self, name: str) -> views.EntityView:
        """Return an entity of the local graph, else the one with that name or id at Graphiti."""
        try:
            return self._local.entity(name)
        except NotFoundError:
            try:
                match = self.backend.ask(lambda tools: _GraphitiQuery(self, tools)._find(name))
            except (NotFoundError, ProviderError) as error:
                if isinstance(error, ProviderError):
                    _log.warning("%s", error_text(error))
                raise NotFoundError(f"there is no entity {name!r:.80}", remedy=_BY_NAME) from None
            return views.EntityView(match.id, match.name, match.type, match.summary, moment_of(match.created_at))

    def _with_fallback(self, ask: Callable[[GraphReader], T]) -> T:
        """Return the answer of Graphiti, else that of the local graph with a notice."""
        try:
            return self.backend.ask(lambda tools: ask(_GraphitiQuery(self, tools)))
        except NotFoundError as nowhere:
            try:
                return ask(self._local)
            except NotFoundError:
                raise nowhere from None
        except ProviderError as error:
            notice = f"{error_text(error)}; the local graph did"
            _log.warning("%s", notice)
            result: Any = ask(self._local)
            return replace(result, degraded=True, notices=(notice, *result.notices))  # type: ignore[no-any-return]


def is_id(name: str) -> bool:
    """Return whether a name has the form of the ids of Graphiti's entities."""
    return _ID.fullmatch(name) is not None


def _more(limit: int) -> int:
    return max(1, min(MAX_RESULTS, limit * MORE))
