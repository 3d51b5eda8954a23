"""Make requests of searches, answer them from the store and this process, log them, and put contexts together.

A search does not log itself: only who answers a question of a person's or an agent's knows that it was one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import moment_of
from commonplace.engine.maintenance import INDEXING, Freshness
from commonplace.engine.runtime import Runtime, Service
from commonplace.errors import EmbedderMismatchError, IndexFaultError, StoreError
from commonplace.memory.usage import injected_hits
from commonplace.memory.validate import int_in, one_of
from commonplace.search.hits import is_likely, memory_hit, without_secrets
from commonplace.search.rank import FIRST_FLOOR, FLOOR
from commonplace.search.request import MAX_LIMIT, FadingRule, Request, kinds_of, phrasings
from commonplace.search.rerank import Reranking, rerank
from commonplace.search.result import Receipt, SearchResult, merged, reference
from commonplace.search.strategy import Wishes, about, for_part, joined
from commonplace.settings.paths import LOGS
from commonplace.settings.schema import SearchSettings
from commonplace.text.query import subject_of
from commonplace.types import (
    KINDS,
    RERANK_MODES,
    SEARCH_FIELDS,
    Filter,
    Hit,
    Kind,
    Method,
    Passage,
    RerankMode,
    Selection,
    StoredMemory,
    Tier,
)

if TYPE_CHECKING:
    from commonplace.logs import RetrievalLog
    from commonplace.memory.injections import Injection
    from commonplace.search.context import Context, Form
    from commonplace.search.retrieval_log import MemoryUse, RetrievalSummary

_log = logging.getLogger(__name__)

Used = Literal["memory", "artifact"]


def _key(hit: Hit) -> str:
    """Return what the log calls a hit."""
    return hit.path if hit.kind == "artifact" and hit.path else _name(hit.kind, hit.owner_id)


def _name(kind: str, id_: str) -> str:
    from commonplace.logs import query_hash

    return f"{kind}:{query_hash(id_)}"


SAME_S: Final = 2.0
_NO_FILES: Final = ("memory", "knowledge")
FACTOR: Final = 3
"""A language model chooses among so many times as many hits as are wanted."""
MAX_TRIES: Final = 4
"""Of a search of the store: the embedder may have changed, change once more, and the index turn out faulty once."""


class SearchApi(Service):
    """Makes requests of searches, and keeps account of them. Safe for threads."""

    _types_of_change: tuple[int, Mapping[str, bool]] | None = None

    def search(self, request: Request, wishes: Wishes, rerank: str | None) -> SearchResult:
        """Answer a request; where it is an agent's, with stand-ins for what the strategy finds none of."""
        mode = self._rerank_mode(rerank)
        self._runtime.pick_up()
        if wishes.agent:
            return self._answered_for(wishes, request, mode)
        found = self._answered(request, mode)
        return replace(found, notices=(*found.notices, *self._why_none(found)))

    def request(
        self,
        query: str,
        wishes: Wishes,
        wanted: Filter,
        now: float,
        *,
        method: Method | None = None,
        stage1_limit: int | None = None,
        per_owner: int = 1,
        also: Sequence[str] | None = None,
    ) -> Request:
        """Return a request, with the settings for what is None."""
        settings = self._settings.search
        floor = settings.min_score if wishes.min_score is None else wishes.min_score
        request = Request(
            query=query,
            namespace=self._namespace,
            limit=settings.limit if wishes.limit is None else wishes.limit,
            method=method or settings.method,  # type: ignore[arg-type]
            wanted=self._with_kinds(wanted, wishes),
            min_score=FLOOR if floor is None else floor,
            first_floor=FIRST_FLOOR if floor is None else 0.0,
            stage1_limit=settings.stage1_limit if stage1_limit is None else stage1_limit,
            fields=settings.fields or tuple(SEARCH_FIELDS),
            is_bounded=stage1_limit is not None or settings.stage1_limit != SearchSettings().stage1_limit,
            per_owner=per_owner,
            now=now,
            retention_weight=settings.retention_weight,
            fading=FadingRule(self._runtime.retention.curve, tuple(sorted(self._runtime.retention.half_lives.items()))),
        )
        return replace(request, also=_others(query, also, request.method))

    def _with_kinds(self, wanted: Filter, wishes: Wishes) -> Filter:
        """Leave artifacts out where no files are indexed and nothing asks for them."""
        is_named = wanted.kinds or wishes.agent or wanted.types or wanted.paths
        return wanted if is_named or self._settings.index.enabled != "off" else replace(wanted, kinds=_NO_FILES)

    def _answered_for(self, wishes: Wishes, request: Request, mode: RerankMode) -> SearchResult:
        """Search as an agent's strategy wishes."""
        parts = wishes.fitted(self._artifact_types())
        found = joined([self._answered(for_part(request, part), mode) for part in parts], request.limit)
        # What the strategy lets pass is told below; here is asked whether there is anything.
        why_none = self._why_none(replace(found, wanted=Filter(kinds=("artifact",))))
        notices = (*found.notices, *about(parts, found.hits or why_none), *why_none)
        return replace(found, agent=wishes.agent, notices=notices)

    def _why_none(self, found: SearchResult) -> tuple[str, ...]:
        """Say why nothing was found; what the index lacks yet is said already, and may be all that is missing."""
        if found.hits or self._incomplete(found.wanted):
            return ()
        # Most searches find something, and need none of what compares misspelt names.
        from commonplace.search.explain import diagnose

        return tuple(diagnose(self._store, found, self._runtime.has_ultra, self._runtime.is_served))

    def _rerank_mode(self, asked: str | None) -> RerankMode:
        mode = self._settings.models.reranker if asked is None else asked
        return one_of("rerank", mode, RERANK_MODES)  # type: ignore[return-value] # one of the modes

    def _answered(self, request: Request, mode: RerankMode) -> SearchResult:
        """Search the store, and the memories of this process; where a language model is to choose, for more hits."""
        wider = request if mode == "none" else replace(request, limit=min(MAX_LIMIT, FACTOR * request.limit))
        found = self.search_store(wider)
        if self._runtime.has_ultra and request.wanted.as_of is None:
            in_process = self._runtime.ultra.searcher.search(wider)
            if in_process.hits:
                hits = merged([found.hits, in_process.hits])
                found = replace(found, hits=hits[: wider.limit], in_process=in_process)
        if mode == "none":
            return found
        name = f"{self._runtime.models.reranker_name} ({mode})"
        return rerank(found, Reranking(lambda: self._runtime.models.reranker(mode), name, request.limit))

    def _artifact_types(self) -> Mapping[str, bool]:
        """Return the types of artifacts that there are, and whether some of the type has tags."""
        change = self._store.change(self._namespace)
        known = self._types_of_change
        if known is None or known[0] != change:
            known = self._types_of_change = change, self._store.artifact_types(self._namespace)
        return known[1]

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        from commonplace.search.explain import explain

        in_process = result.in_process
        if in_process is not None and hit_id in in_process.trace.numbers:
            return explain(self._runtime.ultra.store, replace(result, trace=in_process.trace), hit_id)
        return explain(self._store, result, hit_id)

    def _incomplete(self, wanted: Filter) -> tuple[str, ...]:
        """Say which files the index lacks yet, where files are looked for."""
        return self._runtime.maintenance.incomplete(self._namespace) if "artifact" in kinds_of(wanted) else ()

    def search_store(self, request: Request) -> SearchResult:
        """Search the store; again where its embedder is changed meanwhile, or a fault of the index shows in reading."""
        tries, freshness, maintenance = 0, None, self._runtime.maintenance
        while True:
            generation = self._runtime.index.reader()
            try:
                with (
                    self._runtime.index.reading() as generation,
                    self._store.snapshot(self._namespace, maintenance.held(generation, self._namespace), INDEXING),
                ):
                    if freshness is not None or maintenance.is_fresh(generation, self._namespace):
                        freshness = freshness or Freshness()
                        notices = (*freshness.notices, *self._incomplete(request.wanted))
                        return self._runtime.searcher.search(request, notices=notices, degraded=freshness.is_degraded)
            except (EmbedderMismatchError, IndexFaultError) as fault:
                tries += 1
                if tries == MAX_TRIES:
                    raise
                if isinstance(fault, IndexFaultError):
                    self._runtime.index.condemn(str(fault), generation)
            self._runtime.follow()
            freshness = maintenance.freshen(self._namespace)

    def log_retrieval(self, result: SearchResult | Context, call: str) -> None:
        from commonplace.search.context import Context
        from commonplace.search.retrieval_log import fields_of

        found = result.found if isinstance(result, Context) else result
        if found is not None:
            fields = fields_of(found, call, [_key(hit) for hit in result.hits])
            self._retrieval_log.write(found.query, fields, now=self._runtime.now())

    def log_use(self, name: str, kind: Used) -> None:
        used = name if kind == "artifact" else _name(kind, name)
        self._retrieval_log.write(None, {"namespace": self._namespace, "used": used}, now=self._runtime.now())

    def uses(self, id_: str, counted: Sequence[float]) -> list[MemoryUse]:
        from commonplace.search.retrieval_log import MemoryUse, uses_of

        found = uses_of(self._log_lines(), _name("memory", id_), namespace=self._namespace)
        # What a search counted as a use stands in its own line.
        logged = [use.at.timestamp() for use in found]
        found += [MemoryUse(moment_of(at), "used") for at in counted if all(abs(at - each) > SAME_S for each in logged)]
        return sorted(found, key=lambda use: (use.at, use.call), reverse=True)

    def retrievals(self, since: float) -> RetrievalSummary:
        from commonplace.search.retrieval_log import summarise

        return summarise(self._log_lines(), namespace=self._namespace, since=since)

    def _log_lines(self) -> list[dict[str, object]]:
        try:
            return list(self._retrieval_log.lines())
        except OSError as error:
            raise StoreError(
                f"the log {error.filename} cannot be read: {error.strerror}", remedy="make it readable"
            ) from error

    @cached_property
    def _retrieval_log(self) -> RetrievalLog:
        from commonplace.logs import RetrievalLog, Rotation

        log = self._settings.log
        return RetrievalLog(
            self._runtime.directory / LOGS, queries=log.queries, rotation=Rotation(log.max_bytes, log.keep)
        )


def _others(query: str, also: Sequence[str] | None, method: Method) -> tuple[str, ...]:
    """Return the further phrasings of a query: those given, else what a long task is about."""
    subject = subject_of(query) if also is None and method == "two-stage" else ""
    return (subject,) if subject else phrasings(query, also)


MIN_TOKENS, MAX_TOKENS = 64, 1_000_000
MAX_PASSAGES = 1_000
PROMPT_TOKENS, START_TOKENS = 500, 2_000
"""What a hook injects at a prompt and at the start of a session; clients cut what is beyond ten thousand characters."""
PASSAGES = 30
"""How many passages are in a context at most, where nobody says."""
PASSAGES_TOGETHER = 3
"""Of one artifact or memory, at most so many passages are in a context."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a context is for, checked.

    Attributes:
        limit: of passages; None where nobody says.
        tags: None leaves them to the agent's strategy, none of them lifts its filter.
    """

    task: str
    max_tokens: int
    wishes: Wishes
    limit: int | None
    kinds: tuple[Kind, ...]
    tags: tuple[str, ...] | None
    min_trust: float


class ContextApi(Service):
    """Puts together what a model should know. Safe for threads."""

    def __init__(self, runtime: Runtime, search: Callable[..., SearchResult]) -> None:
        super().__init__(runtime)
        self._search = search

    def context(self, asked: Asked, weak: int | None, touch: bool) -> Context:
        from commonplace.search.context import POSSIBLY_RELATED, context_of, without_old_news

        wishes = asked.wishes
        if not asked.task.strip():
            made = self._opening(asked)
            self._count(made, touch)
            return made
        result = self._found(asked, asked.kinds)
        if asked.limit is None and not wishes.agent:
            result = replace(result, hits=without_old_news(result.hits))
        following = self._under_headings(result)
        count, form = self._runtime.tokens.count_tokens, self._form
        few = POSSIBLY_RELATED if weak is None else int_in("weak", weak, 0, MAX_LIMIT)
        taken = few if wishes.min_score is None and self._settings.search.min_score is None else None
        made = context_of(result, max_tokens=asked.max_tokens, count=count, form=form, following=following, weak=taken)
        self._count(made, touch)
        return made

    def injection(self, asked: Asked, conversation: str, touch: bool) -> Context:
        from commonplace.memory.injections import add_injected, injected
        from commonplace.search.context import context_of, one_line_artifacts

        known = injected(self._store, self._namespace, conversation, self._runtime.now()) if conversation else set()
        if not asked.task.strip():
            made = self._opening(asked, known)
        else:
            wishes = asked.wishes
            kinds = asked.kinds or (("memory", "artifact") if wishes.agent else ("memory",))
            result = self._found(asked, kinds)
            if not (result.hits or result.degraded):
                result = replace(result, notices=wishes.notices)  # why nothing is there, nobody asked
            likely = {hit.id for hit in result.hits if is_likely(hit)}
            # What may have overtaken something likely goes with it: the older alone would mislead.
            likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
            new = [hit for hit in result.hits if hit.id in likely and hit.owner_id not in known]
            result = replace(result, hits=one_line_artifacts(new))
            following = self._under_headings(result)
            count = self._runtime.tokens.count_tokens
            made = context_of(result, max_tokens=asked.max_tokens, count=count, form=self._form, following=following)
        self._count(made, touch)
        ids = {hit.owner_id for hit in made.hits}
        if conversation and ids and not self._store.is_read_only:
            try:
                add_injected(self._store, self._namespace, conversation, ids, self._runtime.now())
            except StoreError as error:  # better said twice than not at all
                _log.warning("what was injected was not noted: %s", error)
        return made

    def clear_injected(self, conversation: str) -> None:
        from commonplace.memory.injections import clear_injected

        if not self._store.is_read_only:
            clear_injected(self._store, self._namespace, conversation, self._runtime.now())

    def injections(self, limit: int) -> list[Injection]:
        from commonplace.memory.injections import injections

        self._runtime.before()
        return injections(self._store, self._namespace, self._runtime.now())[:limit]

    def _count(self, made: Context, touch: bool) -> None:
        if touch:
            self._runtime.count_uses(injected_hits(made.hits))

    def _found(self, asked: Asked, kinds: Sequence[Kind]) -> SearchResult:
        if asked.wishes.agent:
            return self._found_for(asked, kinds)
        return self._find(asked, PASSAGES if asked.limit is None else asked.limit, kinds)

    def _find(self, asked: Asked, limit: int, kinds: Sequence[Kind], agent: str | None = None) -> SearchResult:
        return self._search(
            asked.task,
            limit,
            kinds,
            tags=asked.tags,
            min_score=asked.wishes.min_score,
            min_trust=asked.min_trust,
            per_owner=PASSAGES_TOGETHER,
            agent=agent,
        )

    def _under_headings(self, result: SearchResult) -> dict[int, Passage]:
        """Return what stands under the headings among the hits, by the numbers of their passages."""
        from commonplace.search.context import unsaid

        bare = unsaid(result)
        held = self._store.passages(self._namespace, [*bare, *(number + 1 for number in bare)])
        return {
            number: held[number + 1]
            for number in bare
            if {number, number + 1} <= held.keys() and held[number].owner_number == held[number + 1].owner_number
        }

    @property
    def _form(self) -> Form:
        from commonplace.search.context import Form

        own = self._settings.context
        return Form(metadata=own.metadata == "on", references=own.references == "on")

    def _found_for(self, asked: Asked, kinds: Sequence[Kind]) -> SearchResult:
        """Return what an agent's strategy finds for a task, and what memories and knowledge say of it.

        Types, phases and tags of a strategy are those of artifacts: what is remembered has none, and is never left out
        for that.
        """
        from commonplace.search.context import distinct, in_turn, of_the_first_owners, without_old_news

        wishes, limit = asked.wishes, asked.limit
        most = wishes.limit or PASSAGES
        # Twice as many as there is room for: some are passed over.
        passages = min(MAX_LIMIT, 2 * most * PASSAGES_TOGETHER) if limit is None else limit
        others = [kind for kind in kinds or KINDS if kind != "artifact"]
        counts = self._store.counts(self._namespace)
        if not kinds and not (counts["memories"] or counts["knowledge"] or self._runtime.has_ultra):
            others = []
        found = [] if kinds and "artifact" not in kinds else [self._find(asked, passages, ["artifact"], wishes.agent)]
        standing_in = set(found[0].wanted.types).difference(wishes.types or ()) if found else set()
        if others:
            found.append(self._find(asked, passages, others))
        result = joined(found, passages)
        hits = result.hits
        if limit is None:
            hits = of_the_first_owners(without_old_news(in_turn(distinct(hits), standing_in)), most)
        return replace(
            result, hits=hits, agent=wishes.agent, notices=tuple(dict.fromkeys((*wishes.notices, *result.notices)))
        )

    def _opening(self, asked: Asked, known: Collection[str] = ()) -> Context:
        """Return the context of a session that has no task yet."""
        from commonplace.search.context import Context, assemble, distinct

        limit = int_in("limit", PASSAGES if asked.limit is None else asked.limit, 1, MAX_PASSAGES)
        self._runtime.before()
        now = self._runtime.now()
        tiers: tuple[tuple[Tier, ...], ...] = (("long",), ("short", "medium"))
        kept = (  # one by one: there may be any number of them
            memory_hit(stored, min(1.0, self._runtime.retention.raw(stored.record, now)))
            for each in (tiers if not asked.kinds or "memory" in asked.kinds else ())
            for stored in self._first(each, asked.tags or (), limit)
            if stored.record.trust >= asked.min_trust and stored.owner.id not in known
        )
        found = distinct(without_secrets(list(islice(kept, limit))))
        count = self._runtime.tokens.count_tokens
        text, hits = assemble(found, max_tokens=asked.max_tokens, count=count, form=self._form)
        named, left_out = tuple(reference(hit) for hit in hits), len(found) - len(hits)
        agent, notices = asked.wishes.agent, asked.wishes.notices
        return Context("", text, named, hits, count(text), left_out=left_out, agent=agent, notices=notices)

    def _first(self, tiers: tuple[Tier, ...], tags: tuple[str, ...], limit: int) -> list[StoredMemory]:
        """Return live memories: long ones the most present first, others the newest first."""
        is_long = tiers == ("long",)
        wanted = Selection(tiers=tiers, tags=tags, statuses=("active", "promoted"), limit=None if is_long else limit)
        found = self._store.memories(self._namespace, wanted)
        if is_long:
            now = self._runtime.now()
            found.sort(key=lambda each: (-self._runtime.retention.raw(each.record, now), each.owner.id))
        return found
