"""The calls of `engine.graph` that ask. They parse and pass on; how questions are answered is in `graph.asking`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.errors import UsageError
from commonplace.memories.intake import flag, labels, refuse_unfit_id, texts, unfit, whole
from commonplace.memories.times import Moment, moment_in_words

if TYPE_CHECKING:
    from commonplace.graph.asking import GraphReader
    from commonplace.graph.finding import Search
    from commonplace.graph.ground import Ground
    from commonplace.graph.seeing import Times
    from commonplace.graph.views import (
        Community,
        Dispute,
        EntityView,
        EpisodeView,
        FoundEntities,
        FoundRelations,
        GraphContext,
        GraphPath,
        GraphStats,
        History,
        RelationView,
        Subgraph,
        Timeline,
    )
    from commonplace.models.contract import Generator
    from commonplace.types.graph import GraphCounts

MOST_RESULTS: Final = 200
MOST_FACTS: Final = 1_000
MOST_DEPTH, MOST_PATH = 4, 12
MOST_NEIGHBOURS: Final = 500
MOST_LISTED: Final = 10_000
FEWEST_TOKENS, MOST_TOKENS = 64, 1_000_000
DEFAULT_TOKENS: Final = 2_500


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the graph needs of the engine that it is part of.

    Attributes:
        before, after: what happens around every call.
        directory: of the store.
        ground: makes what the graph stands on, for reading or for writing.
        words_of: the words of a memory in one of its versions.
        open_reader: opens the language model that reads episodes; None where the rules do.
    """

    before: Callable[[], None]
    after: Callable[[], None]
    now: Callable[[], float]
    ground: Callable[[bool], Ground]
    search: Search
    snapshot: Callable[[], AbstractContextManager[None]]
    count_tokens: Callable[[str], int]
    words_of: Callable[[str, int], str]
    max_bytes: int
    directory: Path
    open_reader: Callable[[], Generator] | None = None


class GraphAsking:
    """The part of `Graph` that only reads."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings

    def search_entities(
        self,
        query: str,
        num_results: int = 10,
        *,
        group_ids: Sequence[str] | None = None,
        entity_types: Sequence[str] | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        center_node_uuid: str | None = None,
    ) -> FoundEntities:
        """Find entities by their names and by the facts that they are in, best first.

        Args:
            num_results: how many at most, 1–200.
            group_ids: only entities of these groups.
            entity_types: only entities of these types.
            as_of: as the graph was known at that time; an ISO 8601 text, a datetime, seconds, or words.
            valid_at: by the facts that were true in the world at that time; what is found by its name is found always.
            center_node_uuid: the id or name of an entity; what is near to it comes first.

        Raises:
            NotFoundError: there is no such centre.
            UsageError: a value is out of its range.
        """
        from commonplace.graph.finding import Wanted

        limit, asked = whole("num_results", num_results, 1, MOST_RESULTS), _query(query)
        groups, types = _groups(group_ids), self._types("entity_types", entity_types)
        times = self._times(as_of, valid_at)
        self._around.before()
        centre = self._centre(center_node_uuid)
        return self._reader.search_entities(asked, limit, Wanted(times, groups, types, centre))

    def search_edges(
        self,
        query: str,
        num_results: int = 10,
        *,
        group_ids: Sequence[str] | None = None,
        relation_types: Sequence[str] | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
        center_node_uuid: str | None = None,
    ) -> FoundRelations:
        """Find facts, best first: those that hold now, or at the time that is asked for.

        Args:
            num_results: how many at most, 1–200.
            group_ids: only facts of these groups.
            relation_types: only facts of these types.
            as_of: as the graph was known at that time.
            valid_at: what was true in the world at that time, as it is known now, or was known at `as_of`.
            include_past: also facts that have ended or were retracted.
            center_node_uuid: the id or name of an entity; what is near to it comes first.

        Raises:
            NotFoundError: there is no such centre.
            UsageError: a value is out of its range.
        """
        from commonplace.graph.finding import Wanted

        limit, asked = whole("num_results", num_results, 1, MOST_RESULTS), _query(query)
        groups, types = _groups(group_ids), self._types("relation_types", relation_types)
        times = self._times(as_of, valid_at, flag("include_past", include_past))
        self._around.before()
        centre = self._centre(center_node_uuid)
        return self._reader.search_relations(asked, limit, Wanted(times, groups, types, centre))

    def build_context(
        self,
        entity_names: Sequence[str] = (),
        max_facts: int = 20,
        center_node_uuid: str | None = None,
        *,
        query: str = "",
        max_tokens: int | None = None,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
    ) -> GraphContext:
        """Return what is known of some entities and what lies about them, as fenced, labelled text for a model.

        Facts carry the time in which they hold, and `disputed` where they are. Those that answer the query come first,
        then the nearest.

        Args:
            entity_names: names or ids; those that no entity has are told in `missing`.
            max_facts: 1–1,000.
            center_node_uuid: the id or name of one more entity.
            query: what it is for, in words.
            max_tokens: 64–1,000,000, counted by the default embedder's vocabulary; None is 2,500.
            as_of, valid_at: as for `search_edges`.

        Raises:
            NotFoundError: there is no such centre.
            UsageError: nothing is asked for, or a value is out of its range.
        """
        from commonplace.graph.asking import AskedContext

        names = labels("entity_names", entity_names)
        budget = whole("max_tokens", DEFAULT_TOKENS if max_tokens is None else max_tokens, FEWEST_TOKENS, MOST_TOKENS)
        if not isinstance(query, str):
            raise unfit("query", query, "give a text")
        if not names and center_node_uuid is None and not query.strip():
            raise UsageError("nothing is asked for", remedy="name entities, a centre or a query")
        whole("max_facts", max_facts, 1, MOST_FACTS)
        times = self._times(as_of, valid_at)
        self._around.before()
        asked = AskedContext(names, max_facts, self._centre(center_node_uuid), query, budget, times)
        return self._reader.context(asked, self._around.count_tokens)

    def entity(self, name: str, *, as_of: Moment | None = None) -> EntityView:
        """Return an entity by its id or one of its names.

        Raises:
            NotFoundError: there is none, or the name may mean several.
        """
        refuse_unfit_id(name)
        times = self._times(as_of)
        self._around.before()
        return self._reader.entity(name, times)

    def relation(self, uuid: str, *, as_of: Moment | None = None) -> RelationView:
        """Return a fact by its id.

        Raises:
            NotFoundError: there is none.
        """
        refuse_unfit_id(uuid)
        times = self._times(as_of)
        self._around.before()
        return self._reader.relation(uuid, times)

    def episode(self, uuid: str) -> EpisodeView:
        """Return an episode by its id.

        Raises:
            NotFoundError: there is none.
        """
        refuse_unfit_id(uuid)
        self._around.before()
        return self._reader.episode(uuid)

    def neighbourhood(
        self,
        entity: str,
        depth: int = 2,
        limit: int = 50,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        include_past: bool = False,
    ) -> Subgraph:
        """Return what lies about an entity, nearest first, and the facts between.

        Args:
            entity: its id or one of its names.
            depth: how many facts away, 1–4.
            limit: how many entities at most, 1–500. Of a hub the newest 100 facts are followed.
            as_of, valid_at, include_past: as for `search_edges`.

        Raises:
            NotFoundError: there is no such entity.
            UsageError: a number is out of its range.
        """
        refuse_unfit_id(entity)
        whole("depth", depth, 1, MOST_DEPTH)
        whole("limit", limit, 1, MOST_NEIGHBOURS)
        times = self._times(as_of, valid_at, flag("include_past", include_past))
        self._around.before()
        with self._around.snapshot():
            return self._reader.neighbourhood(entity, depth, limit, times)

    def path(
        self,
        source: str,
        target: str,
        *,
        max_depth: int = 6,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
    ) -> GraphPath:
        """Return a shortest way of facts from one entity to another, whichever way these point; empty without one.

        Args:
            source, target: ids or names.
            max_depth: how many facts it may have, 1–12.
            as_of, valid_at: as for `search_edges`.

        Raises:
            NotFoundError: there is no such entity.
            UsageError: the number is out of its range.
        """
        refuse_unfit_id(source)
        refuse_unfit_id(target)
        whole("max_depth", max_depth, 1, MOST_PATH)
        times = self._times(as_of, valid_at)
        self._around.before()
        with self._around.snapshot():
            return self._reader.path(source, target, max_depth, times)

    def timeline(self, entity: str, *, limit: int = 1_000, as_of: Moment | None = None) -> Timeline:
        """Return what began and ended for an entity, oldest first, past facts too.

        Raises:
            NotFoundError: there is no such entity.
        """
        refuse_unfit_id(entity)
        whole("limit", limit, 1, MOST_LISTED)
        times = self._times(as_of, None, True)
        self._around.before()
        with self._around.snapshot():
            return self._reader.timeline(entity, limit, times)

    def history(self, uuid: str) -> History:
        """Return what happened to an entity or a fact in our knowledge: when it came, ended, was disputed, and why.

        Raises:
            NotFoundError: there is neither an entity nor a fact of that id.
        """
        refuse_unfit_id(uuid)
        self._around.before()
        with self._around.snapshot():
            return self._reader.history(uuid)

    def episodes(
        self, limit: int = 50, group_ids: Sequence[str] | None = None, *, as_of: Moment | None = None
    ) -> list[EpisodeView]:
        """Return episodes, the newest first by the time they tell of."""
        whole("limit", limit, 1, MOST_LISTED)
        groups, times = _groups(group_ids), self._times(as_of)
        self._around.before()
        with self._around.snapshot():
            return list(self._reader.episodes(limit, groups, times))

    def communities(self, limit: int = 20, *, as_of: Moment | None = None) -> list[Community]:
        """Return entities that hang together more closely than with others, the largest community first."""
        whole("limit", limit, 1, MOST_FACTS)
        times = self._times(as_of)
        self._around.before()
        with self._around.snapshot():
            return list(self._reader.communities(limit, times))

    def disputes(self) -> list[Dispute]:
        """Return the facts that cannot all be true, oldest dispute first; `settle` ends one."""
        self._around.before()
        with self._around.snapshot():
            return list(self._reader.disputes())

    def counts(self) -> GraphCounts:
        """Return how many episodes, entities, facts and disputed facts there are."""
        self._around.before()
        return self._around.ground(False).graph.counts()

    def stats(self) -> GraphStats:
        """Return what the graph holds, by type."""
        self._around.before()
        with self._around.snapshot():
            return self._reader.stats()

    @cached_property
    def _reader(self) -> GraphReader:
        from commonplace.graph.asking import GraphReader

        return GraphReader(self._around.ground(False), self._around.search, self._around.words_of)

    def _times(self, as_of: Moment | None, valid_at: Moment | None = None, with_past: bool = False) -> Times:
        from commonplace.graph.seeing import Times

        now = self._around.now()
        return Times(
            now,
            None if as_of is None else moment_in_words("as_of", as_of, now),
            None if valid_at is None else moment_in_words("valid_at", valid_at, now),
            with_past,
        )

    def _types(self, name: str, given: Sequence[str] | None) -> tuple[str, ...]:
        kinds = self._around.ground(False).kinds
        check = kinds.entity if name == "entity_types" else kinds.relation
        return tuple(check(name, each) for each in labels(name, given or ()))

    def _centre(self, given: str | None) -> str:
        """Return the id of the entity that a search is about; "" where there is none."""
        if not given:
            return ""
        refuse_unfit_id(given)
        return self._reader.entity(given, self._times(None)).uuid


def _query(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise UsageError("the query is empty", remedy="say in a few words what you look for")
    return given


def _groups(given: Sequence[str] | None) -> tuple[str, ...]:
    return texts("group_ids", given or ())
