"""The engine calls that the specialist uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from commonplace.dates.time import Moment
from commonplace.graph.views import (
    Addition,
    Deletion,
    EntityView,
    EpisodeView,
    FoundEntities,
    FoundRelations,
    RelationView,
    Subgraph,
)
from commonplace.types import Kind, Link
from commonplace.types.graph import GraphCounts

if TYPE_CHECKING:
    from commonplace.erasure.receipt import ForgetReceipt
    from commonplace.memory.decay import DecayReport
    from commonplace.memory.view import Memory
    from commonplace.search.result import SearchResult


class Counts(Protocol):
    """How many memories there are: live by tier, archived ones, and links."""

    @property
    def ultra(self) -> int: ...
    @property
    def short(self) -> int: ...
    @property
    def medium(self) -> int: ...
    @property
    def long(self) -> int: ...
    @property
    def archived(self) -> int: ...
    @property
    def links(self) -> int: ...


class GraphBook(Protocol):
    """The graph of one namespace; each call is told at the engine, `Engine.graph`."""

    def add_episode(
        self, content: Mapping[str, Any], *, name: str = "", source_description: str = "", source: str = "text"
    ) -> Addition: ...

    def delete_episode(self, uuid: str) -> Deletion: ...

    def search_entities(self, query: str, num_results: int = 10) -> FoundEntities: ...

    def search_edges(
        self, query: str, num_results: int = 10, *, as_of: Moment | None = None, valid_at: Moment | None = None
    ) -> FoundRelations: ...

    def neighbourhood(
        self, entity: str, depth: int = 2, limit: int = 50, *, as_of: Moment | None = None
    ) -> Subgraph: ...

    def entity(self, name: str, *, as_of: Moment | None = None) -> EntityView: ...

    def relation(self, uuid: str, *, as_of: Moment | None = None) -> RelationView: ...

    def episode(self, uuid: str) -> EpisodeView: ...

    def counts(self) -> GraphCounts: ...


class Book(Protocol):
    """The memories of one namespace; each call is told at the engine, `Engine`."""

    @property
    def graph(self) -> GraphBook: ...

    def search(
        self,
        query: str,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        *,
        min_score: float | None = None,
    ) -> SearchResult: ...

    def recall(
        self,
        query: str,
        limit: int | None = None,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        also: Sequence[str] | None = None,
    ) -> SearchResult: ...

    def remember(
        self,
        content: str,
        tier: str | None = None,
        tags: Sequence[str] = (),
        source: str = "",
        at: Moment | None = None,
        metadata: Mapping[str, Any] | None = None,
        category: str = "",
        *,
        entities: Sequence[str] = (),
    ) -> Memory: ...

    def get(self, id: str, *, as_of: Moment | None = None, touch: bool | None = None) -> Memory: ...  # noqa: A002

    def links(self, id: str | None = None) -> list[Link]: ...  # noqa: A002

    def forget(self, id: str, *, dry_run: bool = False) -> ForgetReceipt: ...  # noqa: A002

    def decay(self, tier: str, threshold: float) -> DecayReport: ...

    def raise_tier(self, id: str, tier: str | None = None) -> Memory: ...  # noqa: A002

    def memory_counts(self) -> Counts: ...

    def count_tokens(self, text: str) -> int: ...

    def log_retrieval(self, result: SearchResult, call: str = "search") -> None: ...

    def log_use(self, name: str) -> None: ...
