"""Build `engine.knowledge`: the runtimes of knowledge services, and the other stores that they open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from commonplace.dataclasses import replace
from commonplace.engine.open import open_engine
from commonplace.engine.runtime import EngineApi, Runtime
from commonplace.engine.upgrade import embedder_error
from commonplace.errors import CommonplaceError, UsageError
from commonplace.knowledge.config import Embedder as AnyEmbedder
from commonplace.knowledge.config import KnowledgeRuntime, MemoryConfig, Reranker, Vectors
from commonplace.knowledge.service import KnowledgeService
from commonplace.models.contract import Embedder
from commonplace.models.registry import embedder_name, for_kind, open_embedder
from commonplace.settings.paths import sqlite_directory
from commonplace.store.store import Store
from commonplace.types import RerankMode

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine


class KnowledgeApi(EngineApi):
    """Builds knowledge services, and keeps the stores that they open. Safe for threads."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._engines_beside: dict[Path, Engine] = {}

    def service(
        self, config: MemoryConfig | None, embedder: str | Embedder | AnyEmbedder | None, reranker: Reranker | None
    ) -> KnowledgeService:
        runtime, defaults = self._runtime, self._settings.knowledge
        if config is None:
            config = MemoryConfig(
                vector_enabled=defaults.vector == "on",
                rerank_enabled=defaults.rerank == "on",
                rerank_model=defaults.rerank_model,
                rerank_top_k=defaults.rerank_top_k,
                retrieval_factor=defaults.retrieval_factor,
                use_batch_rerank=defaults.batch_rerank == "on",
            )
        elif not isinstance(config, MemoryConfig):
            raise UsageError(f"config is {config!r:.80}", remedy="give a MemoryConfig; it has `from_json`")
        directory = sqlite_directory(config.sqlite_path) if config.sqlite_enabled and config.sqlite_path else None
        if directory is not None and directory != runtime.directory:
            with runtime.lock:
                other_engine = self._engines_beside.get(directory)
                if other_engine is None:
                    options: dict[str, Any] = {"progress": runtime.progress, "clock": runtime.clock}
                    other_engine = open_engine(directory, runtime.namespace, None, settings=self._settings, **options)
                    self._engines_beside[directory] = other_engine
            return other_engine.knowledge_service(replace(config, sqlite_path=""), embedder=embedder, reranker=reranker)
        service = KnowledgeService(self._with_models(self._stored(config), embedder, reranker))
        runtime.knowledge_services.add(service)
        return service

    def close(self) -> None:
        """Release the other stores that knowledge services use; calling twice is harmless."""
        for engine in self._engines_beside.values():
            engine.close()

    def _stored(self, config: MemoryConfig) -> KnowledgeRuntime:
        """Return the runtime of a service: over this store, or over one in memory without an index."""
        runtime = self._runtime

        def after(count: int) -> None:
            if count:
                runtime.tokens.release()
                runtime.maintenance.update_index()

        runtime_here = KnowledgeRuntime(
            store=runtime.store,
            namespace=runtime.namespace,
            store_path=str(runtime.directory),
            stored_embedder=lambda: str(runtime.embedder.stamp.of("knowledge")),
            destination=runtime.destination,
            search=runtime.search,
            now=runtime.now,
            after=after,
            progress=runtime.progress,
            config=config,
        )
        if config.sqlite_enabled:
            return runtime_here
        # This store lives as long as the service, and keeps its embedder even if the engine's store changes its own.
        store, embedder = Store.in_memory(), runtime.embedder
        store.set_embedding(embedder.stamp)
        replacements: dict[str, Any] = {"store": store, "embedder": embedder, "renew": None, "later_above": None}
        return replace(
            runtime_here,
            store=store,
            store_path="",
            stored_embedder=lambda: str(embedder.stamp.of("knowledge")),
            destination=lambda: replace(runtime.destination(), after_batch=lambda: None, **replacements),
            search=runtime.searcher_over(store).search,
            after=lambda _: None,
        )

    def _with_models(self, stored: KnowledgeRuntime, embedder: object, reranker: Reranker | None) -> KnowledgeRuntime:
        config, engine_embedder, why_not = stored.config, for_kind(self._runtime.embedder, "knowledge"), ""
        if config.vector_enabled and isinstance(embedder, str):
            try:
                is_own = embedder_name(embedder) == engine_embedder.stamp.name
                embedder = engine_embedder if is_own else open_embedder(embedder, settings=self._settings.models)
            except UsageError:
                raise
            except CommonplaceError as failure:
                why_not = str(failure)
        elif config.vector_enabled and embedder is None:
            error = embedder_error(engine_embedder, self._settings.models)
            why_not = "" if error is None else str(error)
        is_wanted = config.vector_enabled and not why_not and embedder is not None
        is_other = is_wanted and getattr(embedder, "stamp", None) != self._runtime.embedder.stamp.of("knowledge")
        vectors = Vectors(embedder, self._runtime.tokens.tokenize) if is_other else None
        if reranker is not None and not callable(getattr(reranker, "rerank", None)):
            remedy = "give an object with `rerank(query, texts, top_k)`"
            raise UsageError(f"the re-ranker is {reranker!r:.80}", remedy=remedy)
        mode: RerankMode = "batch" if config.use_batch_rerank else "single"
        own_name = str(getattr(reranker, "name", "") or type(reranker).__name__)

        def open_reranker() -> Reranker:
            return self._runtime.reranker(mode, config.rerank_model) if reranker is None else reranker

        return replace(
            stored,
            vectors=vectors,
            no_vectors=why_not,
            reranker=open_reranker if config.rerank_enabled else None,
            reranker_name=f"{config.rerank_model} ({mode})" if reranker is None else own_name,
        )
