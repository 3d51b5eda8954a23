"""`engine.knowledge`: what the agents of a namespace know. It finds what a service works with; the rules are below."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.dataclasses import replace
from commonplace.engine.runtime import Runtime, Service
from commonplace.engine.search_api import SearchApi
from commonplace.engine.upgrade import why_absent
from commonplace.errors import CommonplaceError, UsageError
from commonplace.models.contract import Embedder
from commonplace.models.registry import embedder_name, for_kind, open_embedder
from commonplace.settings.paths import sqlite_directory
from commonplace.store.store import Store
from commonplace.types import RerankMode

if TYPE_CHECKING:
    from commonplace.engine.engine import Engine
    from commonplace.knowledge.config import Embedder as AnyEmbedder
    from commonplace.knowledge.config import KnowledgeRuntime, Means, MemoryConfig, Reranker
    from commonplace.knowledge.service import KnowledgeService


class KnowledgeApi(Service):
    """Makes knowledge services, and keeps the stores that they open. Safe for threads."""

    def __init__(self, runtime: Runtime, search: SearchApi) -> None:
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
        ground = self._knowledge_ground if chosen.sqlite_enabled else self._ground_in_process()
        service = KnowledgeService(ground, self._means(chosen, embedder, reranker))
        self._runtime.knowledge_services.add(service)
        return service

    def close(self) -> None:
        """Release everything, other stores that a knowledge service uses too; calling twice is harmless."""
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

    @property
    def _knowledge_ground(self) -> KnowledgeRuntime:
        from commonplace.knowledge.config import KnowledgeRuntime

        def after(count: int) -> None:
            if count:
                self._runtime.tokens.release()
                self._runtime.maintenance.project()

        return KnowledgeRuntime(
            store=self._runtime.store,
            namespace=self._runtime.namespace,
            place=str(self._runtime.directory),
            embedder=lambda: str(self._runtime.embedder.stamp.of("knowledge")),
            destination=self._runtime.destination,
            search=self._search.search_store,
            now=self._runtime.now,
            after=after,
            progress=self._runtime.progress,
        )

    def _ground_in_process(self) -> KnowledgeRuntime:
        """Return a ground over a store that is in no file and has no index."""
        store, embedder = Store.in_memory(), self._runtime.embedder
        store.set_embedding(embedder.stamp)
        searcher = self._runtime.searcher_over(store)
        # It lives as long as this service, and keeps its embedder whatever becomes of that of the engine's store.
        return replace(
            self._knowledge_ground,
            store=store,
            place="",
            embedder=lambda: str(embedder.stamp.of("knowledge")),
            destination=lambda: replace(
                self._runtime.destination(),
                store=store,
                embedder=embedder,
                after_batch=lambda: None,
                renew=None,
                later_above=None,
            ),
            search=searcher.search,
            after=lambda _: None,
        )

    def _engine_at(self, directory: Path) -> Engine:
        from commonplace.engine.open import open_engine

        with self._runtime.lock:
            if directory not in self._engines_beside:
                self._engines_beside[directory] = open_engine(
                    directory,
                    self._runtime.namespace,
                    None,
                    settings=self._settings,
                    progress=self._runtime.progress,
                    clock=self._runtime.clock,
                )
            return self._engines_beside[directory]

    def _means(self, config: MemoryConfig, embedder: object, reranker: Reranker | None) -> Means:
        from commonplace.knowledge.config import Means, vectors_of

        why_not = ""
        found: object = None
        if config.vector_enabled:
            try:
                found = self._opened(embedder) if isinstance(embedder, str) else embedder
            except UsageError:
                raise
            except CommonplaceError as failure:
                why_not = str(failure)
            if found is None and not why_not:
                error = why_absent(for_kind(self._runtime.embedder, "knowledge"), self._settings.models)
                why_not = "" if error is None else str(error)
        is_own = found is not None and getattr(found, "stamp", None) != self._runtime.embedder.stamp.of("knowledge")
        open_reranker, name = self._reranker(config, reranker)
        return Means(
            config=config,
            vectors=vectors_of(found, self._runtime.tokens.tokenize) if is_own else None,
            reranker=open_reranker,
            reranker_name=name,
            no_vectors=why_not,
        )

    def _opened(self, name: str) -> Embedder:
        own = for_kind(self._runtime.embedder, "knowledge")
        return own if embedder_name(name) == own.stamp.name else open_embedder(name, settings=self._settings.models)

    def _reranker(self, config: MemoryConfig, given: Reranker | None) -> tuple[Callable[[], Reranker] | None, str]:
        from commonplace.knowledge.config import checked_reranker

        if given is not None:
            reranker = checked_reranker(given)
            name = getattr(given, "name", "")
            return (lambda: reranker) if config.rerank_enabled else None, str(name or type(given).__name__)
        mode: RerankMode = "batch" if config.use_batch_rerank else "single"

        def opened() -> Reranker:
            from commonplace.models.rerank import make_reranker

            total_s = self._settings.models.total_timeout_s
            return make_reranker(self._runtime.models.generator(config.rerank_model), mode, total_s)

        return opened if config.rerank_enabled else None, f"{config.rerank_model} ({mode})"
