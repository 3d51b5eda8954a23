"""A small store of memories with an index and a searcher over it, for tests of finding; every store in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.contract.stores import BACKENDS

from commonplace.index.generations import Index
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.ingest.passages import Destination, PassageMaker, index_documents
from commonplace.memory.supersession import SupersessionRule
from commonplace.models.static import StaticEmbedder
from commonplace.search.rank import FIRST_FLOOR, FLOOR
from commonplace.search.request import Request
from commonplace.search.result import SearchResult
from commonplace.search.retrieve import Searcher
from commonplace.store.store import Store
from commonplace.types import Document, Filter, MemoryRecord, MemoryWrite, Owner

NAMESPACE = "tests"


@lru_cache(maxsize=1)
def model() -> StaticEmbedder:
    """Return the default embedder, loaded once."""
    return StaticEmbedder.load()


@dataclass
class Notebook:
    """Writes memories as they come, at times of the test's choosing, and searches them."""

    store: Store
    index: Index
    searcher: Searcher
    clock: float = 0.0
    namespace: str = NAMESPACE

    def remember(
        self,
        id_: str,
        text: str,
        *,
        at: float | None = None,
        dates: Sequence[tuple[float, float]] = (),
        tags: tuple[str, ...] = (),
        session: str = "",
        **record: Any,
    ) -> None:
        """Write a memory, or its next version where there is one, at the next second."""
        self.clock += 1.0
        owner = Owner(id_, "memory", tags=tags, session=session, at=at)
        destination = Destination(self.store, model(), model().tokenize, self.namespace)
        maker = PassageMaker(destination)
        [made] = maker.complete([maker.prepare(owner, text, "markdown")])
        kept = MemoryRecord(text, born_at=self.clock, last_used=self.clock, **record)
        with self.store.change_memories(self.namespace) as change:
            old = change.find(id_)
            if old is not None and old.expired_at is None:
                change.expire(old.number, old.record, self.clock)
            change.add(MemoryWrite(owner, made.passages, kept, dates=tuple(dates)), created_at=self.clock)

    def archive(self, id_: str) -> None:
        """Take a memory out of finding at the next second."""
        self.clock += 1.0
        with self.store.change_memories(self.namespace) as change:
            old = change.find(id_)
            assert old is not None
            change.expire(old.number, replace(old.record, status="archived"), self.clock)

    def index_documents(self, *documents: Document) -> None:
        """Bring in texts that are no memories, at the next second."""
        self.clock += 1.0
        destination = Destination(self.store, model(), model().tokenize, self.namespace, at=self.clock)
        index_documents(destination, documents)

    def judge(self) -> None:
        """Judge which memories overtake which, as an engine does when they are written."""
        SupersessionRule(self.store, lambda: self.searcher, self.namespace, model(), lambda: self.clock).catch_up()

    def project(self) -> None:
        """Bring the index up to date."""
        assert bring_up_to_date(self.store, self.index) is not None

    def search(self, query: str, *, wanted: Filter | None = None, **values: Any) -> SearchResult:
        """Search as the engine does where nothing is said of it."""
        given: dict[str, Any] = {
            "limit": 10,
            "method": "two-stage",
            "min_score": FLOOR,
            "first_floor": 0.0 if "min_score" in values else FIRST_FLOOR,
            "stage1_limit": 100,
            **values,
        }
        return self.searcher.search(Request(query, self.namespace, wanted=wanted or Filter(), **given))

    def found(self, query: str, **values: Any) -> list[str]:
        """Return the ids of what a search finds, best first."""
        return [hit.owner_id for hit in self.search(query, **values).hits]

    def close(self) -> None:
        """Let go of files."""
        self.index.close()
        self.store.close()


def notebook(backend: str, directory: Path) -> Notebook:
    """Return an empty one over a store of that backend, in a directory that is made."""
    directory.mkdir(parents=True, exist_ok=True)
    make: Callable[[Path], Store] = BACKENDS[backend]
    store = make(directory)
    store.set_embedding(model().stamp)
    index = Index(directory / "index", store_id=store.id, embedding=model().stamp)
    return Notebook(store, index, Searcher(store, index, model(), model()))
