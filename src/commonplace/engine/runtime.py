"""What the services of an engine share: its store, searcher, memories and models, and the work around each call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import Moment, iso, moment_in_words, seconds
from commonplace.engine.maintenance import INDEXING, IndexMaintenance
from commonplace.errors import EmbedderMismatchError, IndexFaultError, NotFoundError, UsageError
from commonplace.index.generations import Index
from commonplace.ingest.embeddings import EmbeddingBacklog
from commonplace.journal.sync import JournalRuntime, JournalSync
from commonplace.memory.usage import Use, UseCounter, write_uses
from commonplace.memory.validate import reject_invalid_id
from commonplace.memory.view import Memory, memory_view
from commonplace.models.cache import Bounds
from commonplace.models.client import Budget
from commonplace.models.contract import Embedder, Generator, Reranker
from commonplace.models.minilm import NAME as MINILM
from commonplace.models.registry import by_space, is_broken, is_slow
from commonplace.models.static import StaticEmbedder
from commonplace.retention import DAY_S, RetentionPolicy
from commonplace.search.rank import COMPARABLE
from commonplace.search.request import Request, kinds_of
from commonplace.search.result import SearchResult
from commonplace.search.retrieve import Searcher
from commonplace.settings import Settings
from commonplace.settings.paths import EMBEDDING_LOCK, INDEX
from commonplace.store.store import Store
from commonplace.text.tokens import clear_cache
from commonplace.types import Embedding, Filter, Progress, RerankMode, StoredMemory

if TYPE_CHECKING:
    from commonplace.engine.worker import Worker
    from commonplace.graph.episodes import MemoryFeed
    from commonplace.graph.kinds import Kinds
    from commonplace.graph.runtime import GraphRuntime
    from commonplace.ingest.passages import Destination
    from commonplace.journal.pages import PageReader
    from commonplace.knowledge.service import KnowledgeService
    from commonplace.memory.service import MemoryService
    from commonplace.memory.supersession import SupersessionRule
    from commonplace.memory.ultra import Ultra
    from commonplace.models.cross_encoder import CrossEncoder
DEFAULT_RERANKER: Final = "openai:gpt-4o-mini"
"""Re-ranking model if the settings name none; it is the one that the knowledge service's contract names."""


if TYPE_CHECKING:
    made_once = cached_property
else:

    class made_once(cached_property):  # noqa: N801 - named as the library's
        """A cached property that is made once for all threads: `functools`' own has no lock since Python 3.12."""

        def __init__(self, func):
            super().__init__(func)
            self._making = threading.RLock()

        def __get__(self, instance, owner=None):
            with self._making:
                return super().__get__(instance, owner)


MAX_TRIES: Final = 4
"""Maximum attempts at a search: the embedder may change twice meanwhile, and the index turn out damaged once."""
JUDGED_AT_ONCE = 32
"""Maximum of new passages whose supersessions a call judges before it returns; more are left to a thread."""
EMBEDDED_AT_ONCE = 64
"""Maximum tokens of a memory that is embedded before it is stored; a longer one takes a slow embedder too long."""


@dataclass(eq=False, repr=False)
class Runtime:
    """What the services of an engine share: its store and settings, and the work around every call.

    Safe for threads.

    Attributes:
        directory: the store's directory.
        project: the directory that artifact paths are relative to; None makes them absolute.
        embedder: the embedder of the store's vectors; another process may change it, see `follow`.
        tokens: the static model, for token ids and late interaction, whatever embedder makes the vectors.
        clock: seconds since the epoch.
        open_embedder: returns the embedder with a name, or without a name the one with the store's stamp.
        worker: does heavy work in another process if this one must stay small; else None.
        shares: the runtime whose store, index and models this one uses, and leaves open.
        is_served: its answers go to a server's clients, who must not learn of other namespaces.
        knowledge_services: the services that were made here, which have caches to clear.
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
    shares: Runtime | None = None
    is_served: bool = False

    def __post_init__(self) -> None:
        directory, store = self.directory, self.store
        self.searcher = self.searcher_over(store, self.index)
        self.maintenance = IndexMaintenance(self)
        self.backlog = EmbeddingBacklog(store, directory / EMBEDDING_LOCK, self.follow, self._filled)
        self._generators: dict[str, Generator] = {} if self.shares is None else self.shares._generators
        self.uses = UseCounter(self._write_uses)
        self.knowledge_services: WeakSet[KnowledgeService] = WeakSet()
        self.lock = threading.Lock()
        self._following = threading.Lock()
        self.is_closed = False
        # Whether Markdown pages and memories are synchronized automatically.
        self.keeps_journal = self.settings.memory.mirror == "on" and not store.is_on_server
        if self.worker is not None and self.shares is None:
            self.backlog.start()  # finish what a killed process left; a command has no time for it

    def close(self) -> None:
        """Write what is pending and release files and connections; calling twice is harmless."""
        if not self.is_closed:
            self.is_closed = True
            self.uses.close()
            self.backlog.close()
            if "rule" in self.__dict__:
                self.rule.close()
            if self.keeps_journal:
                self.journal.flush()
        if self.shares is None:
            self.index.close()
            self.store.close()

    def in_namespace(self, namespace: str, settings: Settings | None = None, *, is_served: bool = False) -> Runtime:
        """Return a runtime for another namespace of the store, which shares everything else."""
        settings = settings or self.settings
        settings = replace(settings, store=replace(settings.store, namespace=namespace))
        embedder = self.follow()
        return replace(
            self, namespace=namespace, settings=settings, embedder=embedder, shares=self, is_served=is_served
        )

    def follow(self) -> Embedder:
        """Return the embedder of the store's vectors, which another process may have changed.

        Raises:
            EmbedderMismatchError: it is not available here.
        """
        stored = self.store.embedding()
        if stored is not None and stored != self.embedder.stamp:
            with self._following:
                if stored != self.embedder.stamp:
                    self.adopt(self.open_embedder(None, stored))
        return self.embedder

    def search(self, request: Request) -> SearchResult:
        """Search the store; retry if its embedder changes meanwhile, or reading shows that the index is damaged."""
        tries, maintenance = 0, self.maintenance
        freshened: tuple[tuple[str, ...], bool] | None = None
        while True:
            generation = self.index.reader()
            try:
                with (
                    self.index.reading() as generation,
                    self.store.snapshot(self.namespace, maintenance.indexed_change(generation), INDEXING),
                ):
                    if freshened is not None or maintenance.is_fresh(generation):
                        notices, is_degraded = freshened or ((), False)
                        notices = (*notices, *self.unindexed(request.wanted))
                        return self.searcher.search(request, notices=notices, degraded=is_degraded)
            except (EmbedderMismatchError, IndexFaultError) as fault:
                tries += 1
                if tries == MAX_TRIES:
                    raise
                if isinstance(fault, IndexFaultError):
                    self.index.condemn(str(fault), generation)
            self.follow()
            freshened = maintenance.freshen()  # outside of the snapshot, which would not see what it writes

    def unindexed(self, filters: Filter) -> tuple[str, ...]:
        """Return a notice about files that are not indexed yet, if a search includes files."""
        return self.maintenance.incomplete_notices() if "artifact" in kinds_of(filters) else ()

    def generator(self, name: str) -> Generator:
        """Return the language model with a name, which is opened once: it keeps what it learned about its server.

        Raises:
            ProviderError: it needs a key and there is none.
            UsageError: the name or an address is malformed.
        """
        from commonplace.models.llm import open_generator

        with self.lock:
            if name not in self._generators:
                model = open_generator(name, settings=self.settings.models, budget=self.budget)
                self._generators[name] = model
            return self._generators[name]

    @property
    def reranker_name(self) -> str:
        """The model that re-ranks: the setting models.reranker_model, else models.generator, else the default."""
        return self.settings.models.reranker_model or self.settings.models.generator or DEFAULT_RERANKER

    def reranker(self, mode: RerankMode, model: str = "") -> Reranker:
        """Return the re-ranker of a mode, "single" or "batch", over a model; "" is `reranker_name`."""
        from commonplace.models.rerank import make_reranker

        model = model or self.reranker_name
        return make_reranker(self.generator(model), mode, self.settings.models.total_timeout_s)

    def adopt(self, embedder: Embedder) -> None:
        """Use another embedder from now on."""
        self.embedder = embedder
        self.index.follow(embedder.stamp)
        self.searcher = self.searcher_over(self.store, self.index)  # a search under way keeps the old one

    def now(self) -> float:
        """Return the time rounded to the microsecond, as a datetime holds it: a time that is shown can be queried.

        Raises:
            UsageError: the clock's time is outside the years 1 to 9999.
        """
        return round(seconds("the clock's time", self.clock()), 6)

    def before_call(self) -> None:
        """Write counted uses and import edits of Markdown pages, before a call."""
        self.uses.write()
        self.import_edits()

    def import_edits(self) -> None:
        """Import edits of Markdown pages."""
        if self.keeps_journal and self.journal.import_edits():
            self._judge()

    def after_write(self) -> None:
        """Start the background work after a write: pending vectors and Markdown pages."""
        if self.backlog.may_wait or any(is_slow(model) or is_broken(model) for model in by_space(self.embedder)):
            self.backlog.start()
        self._judge()
        if self.keeps_journal:
            self.journal.count_write()

    def _judge(self) -> None:
        # With a store on a server, judging runs in the background: finding similar memories there takes too long.
        if self.is_judging and (self.store.is_on_server or not self.rule.catch_up(JUDGED_AT_ONCE)):
            self.backlog.start(is_due=True)

    @contextmanager
    def writing(self, *ids: str) -> Iterator[None]:
        """Validate ids, and run `before_call` and, unless the block fails, `after_write`."""
        for id_ in ids:
            reject_invalid_id(id_)
        self.before_call()
        yield
        self.after_write()

    @made_once
    def journal(self) -> JournalSync:
        return JournalSync(
            JournalRuntime(
                directory=self.directory,
                namespace=self.namespace,
                store=self.store,
                service=lambda: self.memory,
                count_tokens=self.tokens.count_tokens,
                retention=self.retention,
                now=self.now,
                max_bytes=self.settings.memory.max_bytes,
            )
        )

    def count_uses(self, ids: Iterable[str]) -> None:
        """Count uses of memories, unless the store is read-only."""
        if not self.store.is_read_only:
            self.uses.count(ids, self.now())

    def _write_uses(self, uses: Sequence[Use]) -> None:
        if write_uses(self.store, self.namespace, self.retention, uses) and self.keeps_journal:
            self.journal.count_write()
        if self.has_ultra:
            write_uses(self.ultra.store, self.namespace, self.retention, uses)
            for memory in map(self.ultra.find, dict.fromkeys(use.id for use in uses)):
                if memory is not None:
                    self.store_if_risen(self.view(memory))

    def store_if_risen(self, memory: Memory) -> Memory:
        """Move a memory of this process to the store if its tier has risen above `ultra`; return it."""
        if memory.tier == "ultra":
            return memory
        names = ("content", "tier", "tags", "source", "at", "metadata", "category", "id", "entities", "origin", "trust")
        self.before_call()
        stored = self.memory.remember([{name: getattr(memory, name) for name in names}])[0]
        self.after_write()
        self.ultra.erase([memory.id])
        return stored

    def find(self, id_: str, as_of: float | None = None) -> StoredMemory | None:
        """Return a memory, or the version of it that was known at a time."""
        if self.has_ultra and (memory := self.ultra.find(id_)) is not None:
            return memory
        if as_of is None:
            return self.store.memory(self.namespace, id_)
        created = (version for version in self.store.versions(self.namespace, id_) if version.created_at <= as_of)
        return next((version for version in created if version.expired_at is None or as_of < version.expired_at), None)

    def get(self, id_: str, as_of: Moment | None = None) -> StoredMemory:
        """Return the latest version of a memory, or the one that was known at a time.

        Raises:
            NotFoundError: there is none.
        """
        reject_invalid_id(id_)
        moment = None if as_of is None else moment_in_words("as_of", as_of, self.now())
        stored = self.find(id_, moment)
        if stored is None:
            raise self.not_found(id_, moment)
        return stored

    def not_found(self, id_: str, at: float | None = None) -> NotFoundError:
        """Return the error for a missing memory, or one that was not known at a time."""
        label = f"{id_!r:.80}"
        message = f"there is no memory {label}" if at is None else f"memory {label} was not known at {iso(int(at))}"
        return NotFoundError(f"{message} in this namespace", remedy="see `commonplace list`")

    @made_once
    def pages(self) -> PageReader:
        from commonplace.journal.pages import PageReader

        return PageReader(self.directory, self.namespace, self.store)

    def view(self, stored: StoredMemory) -> Memory:
        return memory_view(stored, self.namespace, self.now(), self.retention)

    def forget_caches(self) -> None:
        """Drop cached queries, results and tokens."""
        self.searcher = self.searcher_over(self.store, self.index)
        self.tokens.release()
        clear_cache()
        for service in self.knowledge_services:
            service.forget_caches()

    @made_once
    def retention(self) -> RetentionPolicy:
        memory_settings = self.settings.memory
        days = {
            "preference": memory_settings.half_life_preference,
            "decision": memory_settings.half_life_decision,
            "context": memory_settings.half_life_context,
            "fact": memory_settings.half_life_fact,
        }
        half_lives = {category: value * DAY_S for category, value in days.items()}
        return RetentionPolicy(memory_settings.curve, half_lives)  # type: ignore[arg-type] # one of the choices

    @made_once
    def memory(self) -> MemoryService:
        from commonplace.memory.service import MemoryService

        return MemoryService(
            self._open_destination(),
            self.retention,
            self.now,
            lambda: self.searcher,
            max_bytes=self.settings.memory.max_bytes,
            feed=lambda: self.feed,
            project=self.project,
        )

    @made_once
    def rule(self) -> SupersessionRule:
        from commonplace.memory.supersession import SupersessionRule

        return SupersessionRule(
            self.store, lambda: self.searcher, self.namespace, self.tokens, self.now, self._pair_reader
        )

    @made_once
    def _cross_encoder(self) -> CrossEncoder:
        from commonplace.models.cross_encoder import CrossEncoder

        return CrossEncoder.load()

    def _pair_reader(self) -> CrossEncoder | None:
        return self._cross_encoder if self.embedder.stamp.of("memory").name == MINILM else None

    @property
    def is_judging(self) -> bool:
        """Whether new memories are judged for supersession; the cosines of an embedder not ours are no guide."""
        return not self.store.is_read_only and self.embedder.stamp.of("memory").name in COMPARABLE

    def _filled(self) -> None:
        """Update the index after passages got vectors; once all have theirs, judge memories in order of time."""
        self.maintenance.update_during_writes()
        if self.is_judging and not self.store.count_pending():
            self.rule.catch_up(is_stopped=self.backlog.stopped.is_set)

    @made_once
    def feed(self) -> MemoryFeed | None:
        """Updates the graph with memories; None if the setting graph.remember is off."""
        if self.settings.graph.remember == "off":
            return None
        from commonplace.graph.episodes import MemoryFeed

        return MemoryFeed(lambda destination: self.graph_on(destination or self.destination()))

    def graph_runtime(self, is_writing: bool) -> GraphRuntime:
        """Return the graph's runtime; one for reading does not fix the embedder of an empty store."""
        if is_writing:
            return self.graph_on(self.destination())
        from commonplace.ingest.passages import Destination

        return self.graph_on(Destination(self.store, self.embedder, self.tokens.tokenize, self.namespace))

    def graph_on(self, destination: Destination) -> GraphRuntime:
        from commonplace.graph.runtime import GraphRuntime, Texts

        return GraphRuntime(Texts(destination), self.kinds, self.now)

    @made_once
    def kinds(self) -> Kinds:
        """The types of entities and facts, built-in and of the settings."""
        from commonplace.graph.kinds import kinds_of

        return kinds_of(self.settings.graph)

    @made_once
    def ultra(self) -> Ultra:
        """The memories of this process; created for the first one."""
        from commonplace.memory.ultra import Ultra

        return Ultra(self.destination(), self.retention, self.now, self.searcher_over, self.tokens.count_tokens)

    @property
    def has_ultra(self) -> bool:
        return "ultra" in self.__dict__

    def searcher_over(self, store: Store, index: Index | None = None) -> Searcher:
        search, models = self.settings.search, self.settings.models
        if index is None:  # for a store in memory: the index in a directory that nobody creates is empty
            index = Index(self.directory / INDEX / "ultra", store_id=store.id, embedding=self.embedder.stamp)
        queries = Bounds(models.embedding_cache, search.cache_bytes, models.embedding_cache_minutes * 60)
        rankings = Bounds(search.candidate_cache, search.cache_bytes, search.candidate_cache_minutes * 60)
        return Searcher(store, index, self.embedder, self.tokens, queries, rankings)

    def destination(self) -> Destination:
        """Return where passages are written, with the store's embedder; an empty store gets ours for good."""
        self.follow()
        if self.store.embedding() is None:
            self.store.set_embedding(self.embedder.stamp)
        return self._open_destination()

    def _open_destination(self) -> Destination:
        """Return where passages are written, but leave open which embedder an empty store gets."""
        from commonplace.ingest.passages import Destination, Limits

        self.follow()
        limits = Limits(chunk_tokens=self.settings.index.chunk_tokens, chunk_overlap=self.settings.index.chunk_overlap)
        return Destination(
            self.store,
            self.embedder,
            self.tokens.tokenize,
            self.namespace,
            limits,
            after_batch=self.maintenance.update_during_writes,
            at=self.now(),
            renew=self.destination,
            later_above=EMBEDDED_AT_ONCE,
        )


class EngineApi:
    """Base class of an engine's services, which work on the store of its runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store
        self._namespace = runtime.namespace
        self._settings = runtime.settings


MIN_ABBREVIATION: Final = 4
"""Minimum characters of an abbreviated id: a shorter one may be a mistyped id that happens to begin another."""


def abbreviated(text: str, ids: Iterable[str], items: str) -> str:
    """Return the id that begins with a text, or the text if it is an id, begins none, or is too short."""
    found = sorted(id_ for id_ in ids if id_.startswith(text)) if len(text) >= MIN_ABBREVIATION else []
    if len(found) > 1 and text not in found:
        more = f" and {len(found) - 5:,} more" if len(found) > 5 else ""
        message = f"{text!r} begins the ids of {len(found):,} {items}: {', '.join(found[:5])}{more}"
        raise UsageError(message, remedy="give more characters")
    return text if text in found else next(iter(found), text)
