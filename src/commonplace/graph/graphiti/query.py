"""Query Graphiti, and fall back to the local graph where it does not answer.

Graphiti returns no scores: relevance is computed here from words and static token vectors, and irrelevant results are
dropped. It returns the ids of a fact's ends only, and no tool finds an entity by its id: names are looked up in the
local graph first, then among the entities that Graphiti has answered to this process, then in Graphiti by their facts.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from commonplace.dataclasses import replace
from commonplace.dates.time import moment_of
from commonplace.errors import NotFoundError, ProviderError
from commonplace.formats.graphiti import ALIASES, LABELS
from commonplace.graph.facts import shown_attributes
from commonplace.graph.graphiti.backend import Backend, told
from commonplace.graph.graphiti.client import GraphitiTools, unmarked
from commonplace.graph.graphiti.outbox import waiting_for
from commonplace.graph.names import normal
from commonplace.graph.query import AskedContext, GraphReader, Search, Wanted
from commonplace.graph.runtime import GraphRuntime
from commonplace.graph.text import CountTokens, describe
from commonplace.graph.views import (
    EntityView,
    EpisodeView,
    FoundEntities,
    FoundRelations,
    GraphContext,
    RelationView,
    Seeing,
    Subgraph,
    Times,
    relation_view,
)
from commonplace.types.graph import Entity, Relation

Score = Callable[[str, Sequence[str]], Sequence[float]]
"""How well texts answer a query, 0–1."""

MORE: Final = 3
"""So many times more is asked for than is wanted: what has ended, or is of another type, is left out here."""
MAX_RESULTS: Final = 100
MAX_CALLS: Final = 10
"""So many questions at most are put to Graphiti for one of ours."""
_LISTED: Final = 1_000
_REMEMBERED: Final = 10_000
"""So many of the entities that Graphiti has answered are kept, to know them by their ids."""
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NAMED_BY: Final = 400
_BY_NAME: Final = "see `commonplace graph entities QUERY`; Graphiti finds entities by their names, not by ids"
_TIMELESS: Final = "Graphiti does not say when an entity was true; search facts for that"
_log = logging.getLogger(__name__)

T = TypeVar("T")


class GraphitiReader(GraphReader):
    """Answers questions from Graphiti; those that its tools cannot answer, from the local graph. Safe for threads."""

    def __init__(
        self, ground: GraphRuntime, search: Search, words_of: Callable[[str, int], str], backend: Backend, score: Score
    ) -> None:
        super().__init__(ground, search, words_of)
        self._backend = backend
        self._score = score
        self._answered: dict[str, Entity] = {}

    def search_entities(self, query: str, limit: int, wanted: Wanted) -> FoundEntities:

        def ask(tools: GraphitiTools) -> FoundEntities:
            labels = self._backend.labels(wanted.groups)
            found = self._search_nodes(tools, query, list(labels), _more(limit))
            chosen = [
                each for each in found if (not wanted.types or each.type in wanted.types) and wanted.times.has(each)
            ]
            views = [_entity(each, labels) for each in chosen]
            scored = self._scored(query, views, [f"{each.name}: {each.summary}" for each in views])
            is_degraded, notices = self._state()
            if wanted.times.valid_at is not None:
                is_degraded, notices = True, (*notices, _TIMELESS)
            return FoundEntities(query, tuple(scored[:limit]), is_degraded, notices)

        return self._either(ask, lambda: super(GraphitiReader, self).search_entities(query, limit, wanted))

    def search_relations(self, query: str, limit: int, wanted: Wanted) -> FoundRelations:

        def ask(tools: GraphitiTools) -> FoundRelations:
            labels = self._backend.labels(wanted.groups)
            centre = wanted.centre
            if centre and (node := self._node(tools, centre, list(labels))) is not None:
                centre = node.id
            elif centre in self._graph.entities([centre]):  # one that nobody knows is theirs, and they take it as it is
                centre = ""
            found = self._facts(tools, query, labels, limit, wanted.times, centre)
            chosen = [each for each in found if not wanted.types or each.type in wanted.types]
            views = self._views(tools, chosen, labels, wanted.times)
            scored = self._scored(query, views, [each.fact for each in views])
            return FoundRelations(query, tuple(scored[:limit]), *self._state())

        return self._either(ask, lambda: super(GraphitiReader, self).search_relations(query, limit, wanted))

    def context(self, asked: AskedContext, count: CountTokens) -> GraphContext:

        def ask(tools: GraphitiTools) -> GraphContext:
            labels = self._backend.labels(())
            groups = list(labels)
            entities: dict[str, EntityView] = {}
            starts: dict[str, str] = {}
            missing = []
            for name in [*asked.names, *([asked.centre] if asked.centre else [])][:MAX_CALLS]:
                found = self._node(tools, name, groups)
                if found is not None:
                    entities[found.id] = _entity(found, labels)
                    starts[found.id] = found.name
                elif asked.query and is_id(name):
                    starts[name] = ""
                else:
                    missing.append(name)
            facts: dict[str, Relation] = {}
            for id_, known_as in starts.items():
                some = self._facts(tools, asked.query or known_as, labels, asked.max_facts, asked.times, id_)
                facts.update({each.id: each for each in some if asked.query or id_ in (each.source, each.target)})
            if asked.query and not starts:
                some = self._facts(tools, asked.query, labels, asked.max_facts, asked.times)
                facts.update({each.id: each for each in some})
            views = self._views(tools, facts.values(), labels, asked.times)
            about = asked.query or " ".join(each.name for each in entities.values())
            scored = self._scored(about, views, [each.fact for each in views], keep=bool(entities))
            text, shown, kept = describe(
                list(entities.values()), scored[: asked.max_facts], max_tokens=asked.max_tokens, count=count
            )
            return GraphContext(text, shown, kept, count(text), tuple(missing), *self._state())

        return self._either(ask, lambda: super(GraphitiReader, self).context(asked, count))

    def neighbourhood(self, name: str, depth: int, limit: int, times: Times) -> Subgraph:

        def ask(tools: GraphitiTools) -> Subgraph:
            labels = self._backend.labels(())
            centre = self._node(tools, name, list(labels))
            if centre is None:
                raise NotFoundError(f"Graphiti has no entity {name!r:.80}", remedy=_BY_NAME)
            known = {centre.id: _entity(centre, labels)}
            distances, calls = {centre.id: 0}, 0
            facts: dict[str, Relation] = {}
            rim, is_capped = [centre.id], False
            for distance in range(1, depth + 1):
                reached: dict[str, None] = {}
                for id_ in rim:
                    if calls >= MAX_CALLS or len(distances) >= limit:
                        is_capped = True
                        break
                    calls += 1
                    query = known[id_].name if id_ in known else ""
                    for each in self._facts(tools, query or name, labels, _more(limit), times, id_):
                        if id_ in (each.source, each.target):
                            facts[each.id] = each
                            reached.update(dict.fromkeys((each.source, each.target)))
                rim = [id_ for id_ in reached if id_ not in distances][: limit - len(distances)]
                distances.update(dict.fromkeys(rim, distance))
                nodes = self._nodes(tools, facts.values(), list(labels), rim)
                known.update({id_: _entity(each, labels) for id_, each in nodes.items()})
            inside = [each for each in facts.values() if {each.source, each.target} <= distances.keys()]
            names = {id_: each.name for id_, each in known.items()}
            local = self._graph.entities([id_ for id_ in distances if id_ not in known])
            for id_ in distances.keys() - known.keys():
                called = (local[id_].name, local[id_].type) if id_ in local else ("", "concept")
                known[id_] = EntityView(id_, *called, "", moment_of(0.0))
            entities = [replace(known[id_], distance=far) for id_, far in distances.items()]
            views = self._views(tools, inside, labels, times, names)
            return Subgraph(centre.id, tuple(entities), tuple(views), is_capped)

        return self._either(ask, lambda: super(GraphitiReader, self).neighbourhood(name, depth, limit, times))

    def episodes(self, limit: int, groups: tuple[str, ...], times: Times) -> tuple[EpisodeView, ...]:
        """Return the episodes that are here or at Graphiti's, newest first; see `Graph.episodes`.

        Over FalkorDB it lists those of one group alone.
        """
        here = super().episodes(limit, groups, times)

        def ask(tools: GraphitiTools) -> tuple[EpisodeView, ...]:
            labels = self._backend.labels(groups)
            found = [unmarked(each) for each in tools.episodes(list(labels), min(_LISTED, max(limit, MAX_RESULTS)))]
            seeing = Seeing(self._graph, times)
            gone = {each.id for each in self._backend.outbox.errands() if each.what == "delete"}
            own = {*self._graph.episodes([each.id for each in found]), *gone}
            others = [each for each in found if each.id not in own]
            views = [replace(seeing.episode(each), group_id=labels.get(each.group, each.group)) for each in others]
            known = [each for each in views if times.as_of is None or each.created_at <= moment_of(times.as_of)]
            every = sorted((*here, *known), key=lambda each: each.uuid)
            every.sort(key=lambda each: each.reference_time, reverse=True)
            return tuple(every[:limit])

        return self._either(ask, lambda: here)

    def entity(self, name: str, times: Times) -> EntityView:
        """Return an entity of the local graph, or else the one of that name or id at Graphiti's."""
        try:
            return super().entity(name, times)
        except NotFoundError:
            labels = self._backend.labels(())
            try:
                found = self._backend.ask(lambda tools: self._node(tools, name, list(labels)))
            except ProviderError as error:
                _log.warning("%s", told(error))
                found = None
            if found is None:
                raise NotFoundError(f"there is no entity {name!r:.80}", remedy=_BY_NAME) from None
            return _entity(found, labels)

    def _either(self, ask: Callable[[GraphitiTools], T], locally: Callable[[], T]) -> T:
        """Return what Graphiti answers, or else what the local graph does, which then says so where it can."""
        try:
            return self._backend.ask(ask)
        except NotFoundError as nowhere:
            try:
                return locally()
            except NotFoundError:
                raise nowhere from None
        except ProviderError as error:
            notice = f"{told(error)}; the local graph did"
            _log.warning("%s", notice)
            found: Any = locally()
            if isinstance(found, FoundEntities | FoundRelations | GraphContext | Subgraph):
                found = replace(found, degraded=True, notices=(notice, *found.notices))
            return found  # type: ignore[no-any-return]

    def _state(self) -> tuple[bool, tuple[str, ...]]:
        """Return whether something is missing there that is here, and say so."""
        waiting = len(self._backend.outbox.errands())
        return bool(waiting), (waiting_for(waiting),) if waiting else ()

    def _facts(
        self,
        tools: GraphitiTools,
        query: str,
        labels: Mapping[str, str],
        limit: int,
        times: Times,
        centre: str = "",
    ) -> list[Relation]:
        now = self._ground.now()
        found = tools.search_facts(query, list(labels), _more(limit), centre=centre, now=now)
        return [each.relation for each in found if times.shows(each.relation)]

    def _views(
        self,
        tools: GraphitiTools,
        facts: Iterable[Relation],
        labels: Mapping[str, str],
        times: Times,
        names: Mapping[str, str] | None = None,
    ) -> list[RelationView]:
        some = list(facts)
        ends = list(dict.fromkeys(end for each in some for end in (each.source, each.target)))
        known = {id_: each.name for id_, each in self._graph.entities(ends).items()}
        known.update(names or {})
        if any(end not in known for end in ends):
            nodes = self._nodes(tools, some, list(labels), [end for end in ends if end not in known])
            known.update({id_: each.name for id_, each in nodes.items()})
        return [
            replace(relation_view(each, times, known), group_id=labels.get(each.group, each.group)) for each in some
        ]

    def _nodes(
        self, tools: GraphitiTools, facts: Iterable[Relation], groups: list[str], wanted: Sequence[str]
    ) -> dict[str, Entity]:
        """Return entities by id, as far as a search for what their facts say finds them: no tool gives one by id."""
        words = " ".join(dict.fromkeys(each.fact for each in facts if {each.source, each.target} & set(wanted)))
        if not words or not wanted:
            return {}
        found = self._search_nodes(tools, words[:_NAMED_BY], groups, _more(len(wanted)))
        return {each.id: each for each in found if each.id in wanted}

    def _node(self, tools: GraphitiTools, name: str, groups: list[str]) -> Entity | None:
        """Return the entity that an id of ours or of theirs, or a name, means there."""
        if name in self._answered:
            return self._answered[name]
        local = self._graph.entities([name]).get(name)
        if local is None and is_id(name):
            return None
        meant = local.name if local is not None else name
        found = self._search_nodes(tools, meant, groups, MAX_CALLS)
        by_id = next((each for each in found if each.id == name), None)
        return by_id or next((each for each in found if normal(each.name) == normal(meant)), None)

    def _search_nodes(self, tools: GraphitiTools, query: str, groups: list[str], limit: int) -> list[Entity]:
        found = tools.search_nodes(query, groups, limit, now=self._ground.now())
        self._answered.update({each.id: each for each in found})
        for id_ in list(self._answered)[:-_REMEMBERED]:
            self._answered.pop(id_, None)
        return found

    def _scored(self, query: str, views: Sequence[Any], texts: Sequence[str], *, keep: bool = False) -> list[Any]:
        """Return views with their scores, best first, ties in Graphiti's order; without those that say nothing of it.

        Args:
            keep: those too: they are there because of whom they are about.
        """
        if not views:
            return []
        scores = [round(float(each), 4) for each in self._score(query, texts)]
        found = [replace(view, score=score) for view, score in zip(views, scores, strict=True) if keep or score > 0]
        return sorted(found, key=lambda view: -view.score)


def is_id(name: str) -> bool:
    """Return whether a name has the form of the ids of Graphiti's entities."""
    return _ID.fullmatch(name) is not None


def _more(limit: int) -> int:
    return max(1, min(MAX_RESULTS, limit * MORE)) if limit < MAX_RESULTS else limit


def _entity(entity: Entity, labels: Mapping[str, str]) -> EntityView:
    given = shown_attributes(entity.attributes)
    attributes = {name: value for name, value in given.items() if name not in (ALIASES, LABELS)}
    return EntityView(
        uuid=entity.id,
        name=entity.name,
        entity_type=entity.type,
        summary=entity.summary,
        created_at=moment_of(entity.created_at),
        attributes=attributes,
        trust=entity.trust,
        group_id=labels.get(entity.group, entity.group),
    )
