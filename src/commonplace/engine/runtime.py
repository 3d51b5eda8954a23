"""What the parts of an engine share: its store, searcher, keeper of memories, and what happens around every call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.dates.time import seconds
from commonplace.engine.maintenance import IndexMaintenance
from commonplace.index.generations import Index
from commonplace.ingest.embeddings import EmbeddingBacklog
from commonplace.ingest.passages import Destination, Limits
from commonplace.journal.snapshot import JournalRuntime
from commonplace.journal.sync import JournalSync
from commonplace.memory.admission import Recogniser
from commonplace.memory.service import MemoryService
from commonplace.memory.usage import Use, UseCounter, write_uses
from commonplace.memory.view import RetentionPolicy
from commonplace.models.cache import Bounds
from commonplace.models.contract import Embedder, Generator, Reranker, TokenizedText
from commonplace.models.static import StaticEmbedder
from commonplace.retention import DAY_S
from commonplace.search.retrieve import Caches, Searcher
from commonplace.settings import ModelSettings, Settings
from commonplace.settings.paths import EMBEDDING_LOCK, INDEX
from commonplace.store.contract import Store
from commonplace.types import Embedding, Progress, RerankMode

if TYPE_CHECKING:
    from commonplace.engine.worker import Worker
    from commonplace.graph.episodes import MemoryFeed
    from commonplace.graph.kinds import Kinds
    from commonplace.graph.runtime import GraphRuntime
    from commonplace.memory.ultra import Ultra
    from commonplace.models.limits import Budget

DEFAULT_RERANKER: Final = "openai:gpt-4o-mini"
"""Where the settings name no model; the knowledge service's contract names this one."""


class Models:
    """Opens each model once, so that what it learned of its server is kept. Safe for threads."""

    def __init__(self, settings: ModelSettings, budget: Budget) -> None:
        self._settings = settings
        self._budget = budget
        self._opened: dict[str, Generator] = {}
        self._lock = threading.Lock()

    @property
    def reranker_name(self) -> str:
        """Which model re-ranks: the one that the settings name for it, else their language model, else the default."""
        return self._settings.reranker_model or self._settings.generator or DEFAULT_RERANKER

    def generator(self, name: str) -> Generator:
        """Return the language model of a name.

        Raises:
            ProviderError: it needs a key and there is none.
            UsageError: the name or an address is malformed.
        """
        from commonplace.models.llm import open_generator

        with self._lock:
            if name not in self._opened:
                self._opened[name] = open_generator(name, settings=self._settings, budget=self._budget)
            return self._opened[name]

    def reranker(self, mode: RerankMode) -> Reranker:
        """Return the re-ranker of a mode, "single" or "batch".

        Raises:
            ProviderError: its model needs a key and there is none.
            UsageError: the model's name or an address is malformed.
        """
        from commonplace.models.rerank import make_reranker

        return make_reranker(self.generator(self.reranker_name), mode, self._settings.total_timeout_s)


EMBEDDED_AT_ONCE = 64
"""A memory of at most so many tokens is embedded before it is stored; a longer one takes a slow embedder too long."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What an engine is made of.

    Attributes:
        directory: the store's directory.
        project: the directory that artifact paths are relative to; None makes them absolute.
        tokens: the static model, for token ids and late interaction, whatever embedder makes the vectors.
        clock: seconds since the epoch.
        budget: what all remote models of the run may spend together.
        open_embedder: returns the embedder of a name, or without one those of the store with that stamp.
        worker: where the process is to stay small, what does heavy work in another one.
    """

    directory: Path
    project: Path | None
    namespace: str
    store: Store
    index: Index
    embedder: Embedder
    tokens: StaticEmbedder
    settings: Settings
    progress: Progress | None
    clock: Callable[[], float]
    budget: Budget
    open_embedder: Callable[[str | Embedder | None, Embedding | None], Embedder]
    worker: Worker | None = None


class Workings:
    """The inside of an engine. Safe for threads."""

    def __init__(self, parts: Parts) -> None:
        self.directory = parts.directory
        self.project = parts.project
        self.namespace = parts.namespace
        self.settings = parts.settings
        self._store = parts.store
        self._index = parts.index
        self._embedder = parts.embedder
        self._tokens = parts.tokens
        self._progress = parts.progress
        self._clock = parts.clock
        self._searcher = self._searcher_of(parts.store, parts.index)
        self._worker = parts.worker
        self._upkeep = IndexMaintenance(parts.directory, parts.store, parts.index, parts.progress, parts.worker)
        self._backlog = EmbeddingBacklog(
            parts.store,
            parts.directory / EMBEDDING_LOCK,
            self._embedder_of_now,
            lambda: self._upkeep.keep_up(self.namespace),
        )
        self._models = Models(parts.settings.models, parts.budget)
        self._uses = UseCounter(self._write_uses)
        self._open_embedder = parts.open_embedder
        self._process_lock = threading.Lock()
        self._following = threading.Lock()
        self._made_keeper: tuple[Searcher, MemoryService] | None = None
        self._made_ultra: Ultra | None = None
        self._is_closed = False
        if parts.worker is not None:
            self._backlog.start()  # what a process that was killed left; a command has no time for it

    def close(self) -> None:
        """Write what is still to be written, release files and connections; calling twice is harmless."""
        if not self._is_closed:
            self._is_closed = True
            self._uses.close()
            self._backlog.close()
            if self._follows:
                self._mirror.settle()
        self._index.close()
        self._store.close()

    def _follow(self) -> None:
        """Take up the embedder of the store's vectors, where another process has changed it.

        Raises:
            EmbedderMismatchError: it cannot be had here.
        """
        stored = self._store.embedding()
        if stored is None or stored == self._embedder.stamp:
            return
        with self._following:
            if stored != self._embedder.stamp:
                self._adopt(self._open_embedder(None, stored))

    def _embedder_of_now(self) -> Embedder:
        self._follow()
        return self._embedder

    def _adopt(self, embedder: Embedder) -> None:
        """Make vectors by another embedder, and compare with what it made, from now on."""
        self._embedder = embedder
        self._index.follow(embedder.stamp)
        # What is under way goes on with the old one, and lets it go.
        self._searcher = self._searcher_of(self._store, self._index)

    def _now(self) -> float:
        """Return the time to the microsecond, as a datetime holds it: what is shown can be asked for again.

        Raises:
            UsageError: the clock that was given says no time of the years 1 to 9999.
        """
        return round(seconds("the clock's time", self._clock()), 6)

    def _before(self) -> None:
        """Take in what was used, and what people changed in Markdown, since the last call."""
        self._uses.write()
        self._pick_up()

    def _pick_up(self) -> None:
        """Take in what people changed in Markdown since the last call; enough where use does not matter."""
        if self._follows:
            self._mirror.pick_up()

    def _after(self) -> None:
        """Let vectors and Markdown follow what was written, in their own time."""
        self._backlog.start()
        if self._follows:
            self._mirror.written()

    @property
    def _follows(self) -> bool:
        """Whether Markdown and memories are brought together without being asked."""
        return self.settings.memory.mirror == "on"

    @cached_property
    def _mirror(self) -> JournalSync:
        return JournalSync(
            JournalRuntime(
                directory=self.directory,
                namespace=self.namespace,
                store=self._store,
                keeper=lambda: self._keeper,
                count_tokens=self._tokens.count_tokens,
                fading=self._fading,
                now=self._now,
                max_bytes=self.settings.memory.max_bytes,
            )
        )

    def _used(self, ids: Iterable[str]) -> None:
        """Count that memories were used, where it can be written."""
        if not self._store.is_read_only:
            self._uses.count(ids, self._now())

    def _write_uses(self, uses: Sequence[Use]) -> None:
        """Write that stored memories were used."""
        if write_uses(self._store, self.namespace, self._fading, uses) and self._follows:
            self._mirror.written()

    @cached_property
    def _fading(self) -> RetentionPolicy:
        chosen = self.settings.memory
        days = {
            "preference": chosen.half_life_preference,
            "decision": chosen.half_life_decision,
            "context": chosen.half_life_context,
            "fact": chosen.half_life_fact,
        }
        half_lives = {category: value * DAY_S for category, value in days.items()}
        return RetentionPolicy(chosen.curve, half_lives, rises=chosen.rise == "on")  # type: ignore[arg-type] # one of the choices

    @property
    def _keeper(self) -> MemoryService:
        """The keeper of memories, made anew with the searcher, by which it recognises what was recalled."""
        self._follow()
        searcher, made = self._searcher, self._made_keeper
        if made is None or made[0] is not searcher:
            made = self._made_keeper = (searcher, self._new_keeper(searcher))
        return made[1]

    def _new_keeper(self, searcher: Searcher) -> MemoryService:
        recogniser = Recogniser(self._store, searcher, self.namespace)
        return MemoryService(
            self._destination(),
            self._fading,
            self._now,
            recogniser.source_of,
            max_bytes=self.settings.memory.max_bytes,
            feed=lambda: self._feed,
            project=self.project,
        )

    @cached_property
    def _feed(self) -> MemoryFeed | None:
        """What lets the graph follow memories, where the settings want it to."""
        if self.settings.graph.remember == "off":
            return None
        from commonplace.graph.episodes import MemoryFeed

        return MemoryFeed(lambda destination: self._graph_on(destination or self._destination()))

    def _graph_ground(self, is_writing: bool) -> GraphRuntime:
        """Return what the graph stands on; for reading, nothing is settled about the store's embedder."""
        return self._graph_on(
            self._destination()
            if is_writing
            else Destination(self._store, self._embedder, self._tokens.tokenize, self.namespace)
        )

    def _graph_on(self, destination: Destination) -> GraphRuntime:
        from commonplace.graph.runtime import GraphRuntime

        return GraphRuntime(destination, self._kinds, self._similarity, self._now)

    @cached_property
    def _kinds(self) -> Kinds:
        """The types of entities and facts that there are, ours and those of the settings."""
        from commonplace.engine.graph_input import kinds_of_settings

        return kinds_of_settings(self.settings)

    def _similarity(self, one: str, other: str) -> float:
        """Return the cosine of two names' vectors in the shipped table."""
        first, second = self._tokens.embed([TokenizedText(each, self._tokens.tokenize(each)) for each in (one, other)])
        return float(first @ second)

    @property
    def _ultra(self) -> Ultra:
        """The memories of this process; made when the first one comes."""
        from commonplace.memory.ultra import Ultra

        with self._process_lock:
            if self._made_ultra is None:
                self._made_ultra = Ultra(
                    self._destination(), self._fading, self._now, self._searcher_over, self._tokens.count_tokens
                )
            return self._made_ultra

    @property
    def _has_ultra(self) -> bool:
        return self._made_ultra is not None

    def _searcher_over(self, store: Store) -> Searcher:
        # The index of a directory that nobody makes is an empty one.
        index = Index(self.directory / INDEX / "ultra", store_id=store.id, embedding=self._embedder.stamp)
        return self._searcher_of(store, index)

    def _searcher_of(self, store: Store, index: Index) -> Searcher:
        search, models = self.settings.search, self.settings.models
        queries = Bounds(models.embedding_cache, search.cache_bytes, models.embedding_cache_minutes * 60)
        rankings = Bounds(search.candidate_cache, search.cache_bytes, search.candidate_cache_minutes * 60)
        return Searcher(store, index, self._embedder, self._tokens, Caches(queries, rankings))

    def _destination(self) -> Destination:
        self._follow()
        if self._store.embedding() is None:
            self._store.set_embedding(self._embedder.stamp)
        limits = Limits(chunk_tokens=self.settings.index.chunk_tokens, chunk_overlap=self.settings.index.chunk_overlap)
        return Destination(
            self._store,
            self._embedder,
            self._tokens.tokenize,
            self.namespace,
            limits,
            after_batch=lambda: self._upkeep.keep_up(self.namespace),
            at=self._now(),
            renew=self._destination,
            later_above=EMBEDDED_AT_ONCE,
        )
