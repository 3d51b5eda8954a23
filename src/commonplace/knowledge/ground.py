"""What a knowledge service stands on: a store, a search over it, a clock, and what it was given to work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commonplace.knowledge.configuring import MemoryConfig

if TYPE_CHECKING:
    from commonplace.ingest.passages import Destination
    from commonplace.knowledge.embedding import Vectors
    from commonplace.knowledge.reranking import Reranker
    from commonplace.search.request import Request
    from commonplace.search.result import SearchResult
    from commonplace.store.contract import Store
    from commonplace.types import Progress


@dataclass(frozen=True, slots=True)
class Ground:
    """What a service stands on.

    Attributes:
        place: where the store is, "" for one that is in no file.
        embedder: the name of what makes the store's vectors.
        destination: makes passages; asked for before each writing.
        search: answers a request from the store.
        after: called with how many items were written or deleted.
    """

    store: Store
    namespace: str
    place: str
    embedder: Callable[[], str]
    destination: Callable[[], Destination]
    search: Callable[[Request], SearchResult]
    now: Callable[[], float]
    after: Callable[[int], None] = lambda _: None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a service works with.

    Attributes:
        vectors: of an embedder of its own, None where the store's makes them.
        reranker: opens what re-ranks; a `ProviderError` says why there is none. None is not to re-rank.
        reranker_name: by which it is told.
        no_vectors: why an embedder that was asked for by name cannot be had, or "".
    """

    config: MemoryConfig
    vectors: Vectors | None = None
    reranker: Callable[[], Reranker] | None = None
    reranker_name: str = ""
    no_vectors: str = ""
