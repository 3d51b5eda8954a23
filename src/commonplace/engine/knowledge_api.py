"""Make `engine.knowledge`: what a service of agents' knowledge works with, and the stores that it opens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.dataclasses import replace
from commonplace.engine.runtime import Runtime, Service
from commonplace.engine.upgrade import why_absent
from commonplace.errors import CommonplaceError, UsageError
from commonplace.models.contract import Embedder
from commonplace.models.registry import embedder_name, for_kind, open_embedder
from commonplace.search.request import Request
from commonplace.search.result import SearchResult
from commonplace.settings.paths import sqlite_directory
from commonplace.store.store import Store
from commonplace.types import RerankMode

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine
    from commonplace.knowledge.config import Embedder as AnyEmbedder
    from commonplace.knowledge.config import KnowledgeRuntime, MemoryConfig, Reranker
    from commonplace.knowledge.service import KnowledgeService


class KnowledgeApi(Service):
    """Makes knowledge services, and keeps the stores that they open. Safe for threads."""

    def __init__(self, runtime: Runtime, search: Callable[[Request], SearchResult]) -> None:
        super().__init__(runtime)
        self._search = search
        self._engines_beside: dict[Path, Engine] = {}

    def service(
        self, config: MemoryConfig | None, embedder: str | Embedder | AnyEmbedder | None, reranker: Reranker | None
    ) -> KnowledgeService:
        from commonplace.knowledge.service import KnowledgeService

        chosen = self._configured(config)
        if chosen.sqlite_enabled and chosen.sqlite_path:
            directory = sqlite_directory(chosen.sqlite_path)
            if directory != self._runtime.directory:
                here = replace(chosen, sqlite_path="")
                return self._engine_at(directory).knowledge_service(here, embedder=embedder, reranker=reranker)
        service = KnowledgeService(self._with_models(self._stored(chosen), embedder, reranker))
        self._runtime.knowledge_services.add(service)
        return service

    def close(self) -> None:
        """Release the other stores that knowledge services use; calling twice is harmless."""
        for engine in self._engines_beside.values():
            engine.close()

    def _configured(self, config: MemoryConfig | None) -> MemoryConfig:
        from commonplace.knowledge.config import MemoryConfig

        if config is not None:
            if not isinstance(config, MemoryConfig):
                raise UsageError(f"config is {config!r:.80}", remedy="give a MemoryConfig; it has `from_json`")
            return config
        chosen = self._settings.knowledge
        return MemoryConfig(
            vector_enabled=chosen.vector == "on",
            rerank_enabled=chosen.rerank == "on",
            rerank_model=chosen.rerank_model,
            rerank_top_k=chosen.rerank_top_k,
            retrieval_factor=chosen.retrieval_factor,
            use_batch_rerank=chosen.batch_rerank == "on",
        )

    def _stored(self, config: MemoryConfig) -> KnowledgeRuntime:
        """Return the runtime of a service: over this store, or over one in memory without an index."""
        from commonplace.knowledge.config import KnowledgeRuntime

        runtime = self._runtime

        def after(count: int) -> None:
            if count:
                runtime.tokens.release()
                runtime.maintenance.project()

        here = KnowledgeRuntime(
            store=runtime.store,
            namespace=runtime.namespace,
            place=str(runtime.directory),
            stored_embedder=lambda: str(runtime.embedder.stamp.of("knowledge")),
            destination=runtime.destination,
            search=self._search,
            now=runtime.now,
            after=after,
            progress=runtime.progress,
            config=config,
        )
        if config.sqlite_enabled:
            return here
        # It lives as long as this service, and keeps its embedder whatever becomes of that of the engine's store.
        store, embedder = Store.in_memory(), runtime.embedder
        store.set_embedding(embedder.stamp)
        own: dict[str, Any] = {
            "store": store,
            "embedder": embedder,
            "after_batch": lambda: None,
            "renew": None,
            "later_above": None,
        }
        return replace(
            here,
            store=store,
            place="",
            stored_embedder=lambda: str(embedder.stamp.of("knowledge")),
            destination=lambda: replace(runtime.destination(), **own),
            search=runtime.searcher_over(store).search,
            after=lambda _: None,
        )

    def _engine_at(self, directory: Path) -> Engine:
        from commonplace.engine.open import open_engine

        runtime = self._runtime
        with runtime.lock:
            if directory not in self._engines_beside:
                self._engines_beside[directory] = open_engine(
                    directory,
                    runtime.namespace,
                    None,
                    settings=self._settings,
                    progress=runtime.progress,
                    clock=runtime.clock,
                )
            return self._engines_beside[directory]

    def _with_models(self, given: KnowledgeRuntime, embedder: object, reranker: Reranker | None) -> KnowledgeRuntime:
        """Add the embedder and the re-ranker that a configuration asks for."""
        from commonplace.knowledge.config import Vectors

        config, own, why_not = given.config, for_kind(self._runtime.embedder, "knowledge"), ""
        if config.vector_enabled and isinstance(embedder, str):
            try:
                is_own = embedder_name(embedder) == own.stamp.name
                embedder = own if is_own else open_embedder(embedder, settings=self._settings.models)
            except UsageError:
                raise
            except CommonplaceError as failure:
                why_not = str(failure)
        elif config.vector_enabled and embedder is None:
            error = why_absent(own, self._settings.models)
            why_not = "" if error is None else str(error)
        is_wanted = config.vector_enabled and not why_not and embedder is not None
        is_other = is_wanted and getattr(embedder, "stamp", None) != self._runtime.embedder.stamp.of("knowledge")
        vectors = Vectors(embedder, self._runtime.tokens.tokenize) if is_other else None
        opened, name = self._reranker(config, reranker)
        return replace(given, vectors=vectors, no_vectors=why_not, reranker=opened, reranker_name=name)

    def _reranker(self, config: MemoryConfig, given: Reranker | None) -> tuple[Callable[[], Reranker] | None, str]:
        """Return a function that opens the re-ranker, or None, and the re-ranker's name."""
        if given is not None and not callable(getattr(given, "rerank", None)):
            remedy = "give an object with `rerank(query, texts, top_k)`"
            raise UsageError(f"the re-ranker is {given!r:.80}", remedy=remedy)
        mode: RerankMode = "batch" if config.use_batch_rerank else "single"

        def opened() -> Reranker:
            return self._runtime.reranker(mode, config.rerank_model) if given is None else given

        own_name = str(getattr(given, "name", "") or type(given).__name__)
        name = f"{config.rerank_model} ({mode})" if given is None else own_name
        return opened if config.rerank_enabled else None, name
