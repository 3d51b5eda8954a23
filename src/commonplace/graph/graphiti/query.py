"""Answer questions about the graph from Graphiti, by the rules of the local reader.

Its tools give no scores and no entity by its id. So results are scored here, and of entities those are known that were
answered before, and those that a search for the words of their facts finds.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError, ProviderError
from commonplace.graph.graphiti.backend import Backend, error_text
from commonplace.graph.graphiti.client import GraphitiTools, unmarked
from commonplace.graph.graphiti.outbox import waiting_for
from commonplace.graph.names import normal
from commonplace.graph.query import GraphReader, TextHits
from commonplace.graph.views import (
    EntityView,
    EpisodeView,
    FoundEntities,
    FoundRelations,
    GraphContext,
    Subgraph,
)
from commonplace.store.graph import GraphReading
from commonplace.types.graph import Edge, Entity, Episode, GraphFilter, Relation

Score = Callable[[str, Sequence[str]], Iterable[float]]
"""How well texts answer a query, 0–1."""

MORE: Final = 3
"""So many times more is asked for than is wanted: what has ended, or is of another type, is left out here."""
MAX_RESULTS: Final = 100
MAX_CALLS: Final = 10
"""So many times at most Graphiti is asked for the facts about an entity, to answer one question."""
_LISTED: Final = 1_000
_REMEMBERED: Final = 10_000
"""So many of the entities that Graphiti has answered are kept, to know them by their ids."""
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED_BY: Final = 400
_BY_NAME: Final = "see `commonplace graph entities QUERY`; Graphiti finds entities by their names, not by ids"
_TIMELESS: Final = "Graphiti does not say when an entity was true; search facts for that"
_log = logging.getLogger(__name__)

T = TypeVar("T")


class _Question(GraphReader):
    """One question that Graphiti is asked, and the graph of what its searches find for it."""

    _context_depth, _has_summaries = 1, False

    def __init__(self, reader: GraphitiReader, tools: GraphitiTools) -> None:
        super().__init__(reader.runtime, reader.search, reader.words_of, reader.wanted, reader.newer)
        self._reader = reader
        self._tools = tools
        self._here = reader.runtime.graph
        # Our groups that are asked for, by their names at Graphiti's.
        self._labels = reader.backend.labels(reader.wanted.groups)
        self._known = reader.backend.answered
        self._facts: dict[str, Relation] = {}
        self._calls = 0

    # How it asks

    @property
    def _graph(self) -> GraphReading:
        return self  # type: ignore[return-value] # it has what the questions that Graphiti answers read

    def neighbourhood(self, name: str, depth: int, limit: int) -> Subgraph:
        found = super().neighbourhood(name, depth, limit)
        return replace(found, is_capped=found.is_capped or self._calls > MAX_CALLS)

    def _find(self, name: str) -> Entity:
        """Return the entity that an id of ours or of theirs, or a name, means there."""
        if name in self._known:
            return self._known[name]
        local = self._here.entities([name]).get(name)
        if local is not None or not is_id(name):
            meant = local.name if local is not None else name
            nodes = self._nodes(meant, MAX_CALLS)
            by_id = next((each for each in nodes if each.id == name), None)
            found = by_id or next((each for each in nodes if normal(each.name) == normal(meant)), None)
            if found is not None:
                return found
        raise NotFoundError(f"Graphiti has no entity {name!r:.80}", remedy=_BY_NAME)

    def _centre(self, id_: str) -> str:
        """Return what an id is called there; "" for an entity of ours that Graphiti does not have."""
        try:
            return self._find(id_).id if id_ else ""
        except NotFoundError:
            return "" if id_ in self._here.entities([id_]) else id_

    def _state(self) -> tuple[bool, tuple[str, ...]]:
        waiting = len(self._reader.backend.outbox.errands())
        return bool(waiting), (waiting_for(waiting),) if waiting else ()

    def _find_entities(self, query: str, limit: int) -> TextHits:
        wanted = self.wanted
        found = [each for each in self._nodes(query, limit) if wanted.has(each)]
        of_type = [each for each in found if not wanted.types or each.type in wanted.types]
        is_degraded, notices = self._state()
        if wanted.valid_at is not None:
            is_degraded, notices = True, (*notices, _TIMELESS)
        texts = {each.id: f"{each.name}: {each.summary}" for each in of_type}
        return TextHits(self._scored(query, texts, limit), is_degraded, notices)

    def _find_relations(self, query: str, limit: int, centre: str) -> TextHits:
        types, found = self.wanted.types, self._relations(query, limit, self._centre(centre))
        texts = {each.id: each.fact for each in found if not types or each.type in types}
        return TextHits(self._scored(query, texts, limit), *self._state())

    def _scored(self, query: str, texts: Mapping[str, str], limit: int) -> dict[str, float]:
        """Return scores by id, best first, ties in Graphiti's order, without what says nothing of the query."""
        scores = self._reader.score(query, list(texts.values())) if texts else ()
        scored = {id_: round(float(score), 4) for id_, score in zip(texts, scores, strict=True) if score > 0}
        return dict(sorted(scored.items(), key=lambda each: -each[1])[:limit])

    def _nodes(self, query: str, limit: int) -> list[Entity]:
        found = self._tools.search_nodes(query, list(self._labels), _more(limit), now=self.wanted.now)
        nodes = [replace(each, group=self._labels.get(each.group, each.group)) for each in found]
        self._known.update({each.id: each for each in nodes})
        for id_ in list(self._known)[:-_REMEMBERED]:
            self._known.pop(id_, None)
        return nodes

    def _relations(self, query: str, limit: int, centre: str = "") -> list[Relation]:
        """Return the facts that are found and are of the time that is asked for, in Graphiti's order."""
        groups = list(self._labels)
        found = self._tools.search_facts(query, groups, _more(limit), centre=centre, now=self.wanted.now)
        shown = [each.relation for each in found if self.wanted.shows(each.relation)]
        facts = [replace(each, group=self._labels.get(each.group, each.group)) for each in shown]
        self._facts.update({each.id: each for each in facts})
        return facts

    # What it has found, read like a graph

    def entities(self, ids: Sequence[str]) -> dict[str, Entity]:
        local = self._here.entities([id_ for id_ in ids if id_ not in self._known])
        missing = {id_ for id_ in ids if id_ not in self._known and id_ not in local}
        said = dict.fromkeys(each.fact for each in self._facts.values() if {each.source, each.target} & missing)
        if said:  # no tool gives an entity by its id
            self._nodes(" ".join(said)[:_NAMED_BY], len(missing))
        return {id_: each for id_ in ids if (each := self._known.get(id_) or local.get(id_)) is not None}

    def relations(self, ids: Sequence[str]) -> dict[str, Relation]:
        return {id_: self._facts[id_] for id_ in ids if id_ in self._facts}

    def facts(self, source: str, type_: str, *_: object) -> list[Relation]:
        # Only of what has one value at a time is it asked what held before, whatever the target is.
        return [each for each in self._facts.values() if (each.source, each.type) == (source, type_)]

    def edges_of(
        self, ids: Sequence[str], wanted: GraphFilter, *, limit: int, among: Collection[str] | None = None
    ) -> dict[str, list[Edge]]:
        """Ask for the facts about some entities; `among` others, return those that were found already."""
        del wanted  # only facts of the time that is asked for are kept
        found = {}
        for id_ in ids:
            name = self._known[id_].name if id_ in self._known else ""
            if among is None and name:
                self._calls += 1
                if self._calls <= MAX_CALLS:
                    self._relations(name, limit, id_)
            facts = [each for each in self._facts.values() if id_ in (each.source, each.target)]
            near = [each for each in facts if among is None or {each.source, each.target} <= set(among)]
            found[id_] = [Edge(f.id, f.source, f.target, f.created_at, f.confidence, bool(f.dispute)) for f in near]
        return found

    def aliases(self, *_: object) -> dict[str, Any]:
        return {}

    # Graphiti's tools return neither other names nor which episode says what.
    mentions = reference_times = aliases


@dataclass(eq=False)
class GraphitiReader(GraphReader):
    """Answers a question from Graphiti; one that its tools cannot answer, from the local graph."""

    backend: Backend
    score: Score

    @property
    def _local(self) -> GraphReader:
        return GraphReader(self.runtime, self.search, self.words_of, self.wanted, self.newer)

    def search_entities(self, query: str, limit: int) -> FoundEntities:
        return self._either(lambda reader: reader.search_entities(query, limit))

    def search_relations(self, query: str, limit: int) -> FoundRelations:
        return self._either(lambda reader: reader.search_relations(query, limit))

    def context(self, names: Sequence[str], query: str, **limits: Any) -> GraphContext:
        return self._either(lambda reader: reader.context(names, query, **limits))

    def neighbourhood(self, name: str, depth: int, limit: int) -> Subgraph:
        return self._either(lambda reader: reader.neighbourhood(name, depth, limit))

    def episodes(self, limit: int) -> tuple[EpisodeView, ...]:
        """Return the episodes that are here or at Graphiti's, newest first; see `Graph.episodes`.

        Over FalkorDB it lists those of one group alone.
        """
        here, as_of = self._local.episodes(limit), self.wanted.as_of
        labels = self.backend.labels(self.wanted.groups)
        found: list[Episode] = []
        try:
            listed = self.backend.ask(lambda tools: tools.episodes(list(labels), min(_LISTED, max(limit, MAX_RESULTS))))
            found = [unmarked(each) for each in listed]
        except ProviderError as error:
            _log.warning("%s", error_text(error))
        gone = {each.id for each in self.backend.outbox.errands() if each.what == "delete"}
        own = {*self._graph.episodes([each.id for each in found]), *gone}
        others = [replace(each, group=labels.get(each.group, each.group)) for each in found if each.id not in own]
        known = [each for each in others if as_of is None or each.created_at <= as_of]
        every = sorted((*here, *map(self._build.episode, known)), key=lambda each: each.uuid)
        return tuple(sorted(every, key=lambda each: each.reference_time, reverse=True)[:limit])

    def entity(self, name: str) -> EntityView:
        """Return an entity of the local graph, or else the one of that name or id at Graphiti's."""
        try:
            return self._local.entity(name)
        except NotFoundError:
            try:
                found = self.backend.ask(lambda tools: _Question(self, tools)._find(name))
            except (NotFoundError, ProviderError) as error:
                if isinstance(error, ProviderError):
                    _log.warning("%s", error_text(error))
                raise NotFoundError(f"there is no entity {name!r:.80}", remedy=_BY_NAME) from None
            return EntityView(found.id, found.name, found.type, found.summary, moment_of(found.created_at))

    def _either(self, ask: Callable[[GraphReader], T]) -> T:
        """Return what Graphiti answers, or else what the local graph does, which then says so."""
        try:
            return self.backend.ask(lambda tools: ask(_Question(self, tools)))
        except NotFoundError as nowhere:
            try:
                return ask(self._local)
            except NotFoundError:
                raise nowhere from None
        except ProviderError as error:
            notice = f"{error_text(error)}; the local graph did"
            _log.warning("%s", notice)
            found: Any = ask(self._local)
            return replace(found, degraded=True, notices=(notice, *found.notices))  # type: ignore[no-any-return]


def is_id(name: str) -> bool:
    """Return whether a name has the form of the ids of Graphiti's entities."""
    return _ID.fullmatch(name) is not None


def _more(limit: int) -> int:
    return max(1, min(MAX_RESULTS, limit * MORE))
