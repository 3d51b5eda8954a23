"""The calls of an engine that find. It makes requests and passes them on; how they are answered is in `search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commonplace.engine.retrievals import Retrievals
from commonplace.engine.strategies import Wishes, about, for_part, joined, wishes_of
from commonplace.errors import EmbedderMismatchError, IndexFaultError, UsageError
from commonplace.memories.intake import one_of, share
from commonplace.memories.times import Moment, moment_in_words
from commonplace.memories.usage import used_hits
from commonplace.search.constants import FIRST_FLOOR, FLOOR
from commonplace.search.request import MAX_LIMIT, FadingRule, Request, chosen, kinds_of, phrasings
from commonplace.search.result import SearchResult, merged
from commonplace.settings.model import SearchSettings
from commonplace.text.query import subject_of
from commonplace.types import RERANK_MODES, SEARCH_FIELDS, TIERS, Filter, Hit

if TYPE_CHECKING:
    from commonplace.search.trace import Receipt
    from commonplace.types import Kind, Method, RerankMode

FACTOR: Final = 3
"""A language model chooses among so many times as many hits as are wanted."""
MAX_TRIES: Final = 3
"""Of a search of the store: the embedder may change once, and the index turn out faulty once."""


class Finding(Retrievals):
    """The part of `Engine` that finds."""

    _types_of_change: tuple[int, Mapping[str, bool]] | None = None

    def search(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        limit: int | None = None,
        kinds: Sequence[Kind] | None = None,
        method: Method | None = None,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        types: Sequence[str] | None = None,
        phases: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        paths: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        sessions: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        min_trust: float = 0.0,
        stage1_limit: int | None = None,
        per_owner: int = 1,
        rerank: RerankMode | None = None,
        agent: str | None = None,
        also: Sequence[str] | None = None,
    ) -> SearchResult:
        """Find the passages that answer a query, best first, and how likely each does; nothing when nothing is near.

        Filters apply before the limit. Dates in the query ("last May", "three days ago") lead to the memories of then.

        Args:
            query: words, a question, an identifier; never a query language.
            limit: how many hits at most, 1–1000; None is the setting, 10.
            kinds: only hits of these kinds; None is all.
            method: "two-stage" (lexical and dense recall, then late interaction), "bm25" or "semantic".
            as_of: find in what was known at that time: an ISO 8601 text, a datetime, seconds, or words such as "last
                Tuesday", which mean its end, or "two hours ago", which mean that very moment.
            valid_at: find in memories alone, and in what had happened by that time, whenever it was stored: of each
                memory the version that was true then. With `as_of`, as it was known then.
            min_score: hold back hits with a lower score, 0–1; 0 keeps all that was ranked. None is the setting, and
                where that is "auto" a low floor: the result tells how many lie below it.
            types, paths: only artifacts of one of these types, and whose path matches one of these globs.
            phases: only owners of these phases, and those that have none.
            tags: only owners with one of these tags.
            tiers, sessions, sources: only memories of these.
            min_trust: leave out memories that are trusted less, 0–1.
            stage1_limit: how many candidates lexical and dense recall bring at most, each, for each phrasing; 1–10,000.
                None is the setting, 100; as long as that says 100, a larger limit brings as many as it needs.
            per_owner: how many passages of one artifact or memory may be hits.
            rerank: "single" or "batch" has a language model re-rank three times as many hits as are asked for, by a
                call for each or by one for all, which sends query and passages to it; their scores are then the
                model's. None is the setting, "none". A model that fails leaves order and scores as they were, and the
                result is degraded.
            agent: whose strategy of the settings, or else that of `default`, says limit, min_score, types, phases and
                tags where this call does not; an empty list lifts a filter of it. It finds artifacts alone, unless it
                has no types. Types and tags that this index cannot have are replaced, and notices say so.
            also: one to four further phrasings; hits stand by the mean of all, and are as likely as the best says. None
                adds what a long task in English is about, see `subject_of`; the result tells.

        Raises:
            UsageError: a value is out of its range.
        """
        now = self._now()
        wishes = wishes_of(agent, self.settings.agents)
        wishes = wishes.under(limit=limit, min_score=min_score, types=types, phases=phases, tags=tags)
        # Request checks that kinds and method are what their types say.
        wanted = Filter(
            kinds=self._kinds_meant(chosen("kinds", kinds), agent is not None or types or paths),  # type: ignore[arg-type]
            types=chosen("types", wishes.types),
            phases=chosen("phases", wishes.phases),
            tags=chosen("tags", wishes.tags),
            paths=chosen("paths", paths),
            tiers=tuple(one_of("tiers", tier, TIERS) for tier in chosen("tiers", tiers)),  # type: ignore[misc]
            sessions=chosen("sessions", sessions),
            sources=chosen("sources", sources),
            min_trust=share("min_trust", min_trust),
            as_of=None if as_of is None else moment_in_words("as_of", as_of, now),
            valid_at=None if valid_at is None else moment_in_words("valid_at", valid_at, now),
        )
        mode = self._rerank_mode(rerank)
        request = self._request(query, wanted, wishes.limit, method, wishes.min_score, stage1_limit, per_owner, now)
        request = replace(request, also=_others(query, also, request.method))
        self._pick_up()
        if agent is not None:
            return self._answered_for(wishes, request, mode, types=types is None, tags=tags is None)
        found = self._answered(request, mode)
        return replace(found, notices=(*found.notices, *self._why_none(found)))

    def _kinds_meant(self, asked: Sequence[str], asks_for_files: object) -> Sequence[str]:
        """Return the kinds that are meant: without an index of artifacts, these are found only where they are named."""
        is_off = self.settings.index.enabled == "off" and not asks_for_files
        return ("memory", "knowledge") if is_off and not asked else asked

    def _answered_for(
        self, wishes: Wishes, request: Request, mode: RerankMode, *, types: bool, tags: bool
    ) -> SearchResult:
        """Search as an agent's strategy wishes; `types` and `tags` tell whether those are the strategy's own."""
        parts = wishes.fitted(self._artifact_types(), types=types, tags=tags)
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
        from commonplace.search.diagnosis import diagnose

        return tuple(diagnose(self._store, found, self._has_ultra))

    def _rerank_mode(self, asked: str | None) -> RerankMode:
        mode = self.settings.models.reranker if asked is None else asked
        return one_of("rerank", mode, RERANK_MODES)  # type: ignore[return-value] # one of the modes

    def _answered(self, request: Request, mode: RerankMode) -> SearchResult:
        """Search the store, and the memories of this process; where a language model is to choose, for more hits."""
        wider = request if mode == "none" else replace(request, limit=min(MAX_LIMIT, FACTOR * request.limit))
        found = self._search_store(wider)
        if self._has_ultra and request.wanted.as_of is None:
            in_process = self._ultra.search(wider)
            if in_process.hits:
                hits = merged([found.hits, in_process.hits])
                found = replace(found, hits=hits[: wider.limit], in_process=in_process)
        if mode == "none":
            return found
        from commonplace.search.reranking import Reranking, rerank

        name = f"{self._models.reranker_name} ({mode})"
        return rerank(found, Reranking(lambda: self._models.reranker(mode), name, request.limit))

    def _artifact_types(self) -> Mapping[str, bool]:
        """Return the types of artifacts that there are, and whether some of the type has tags."""
        change = self._store.change()
        known = self._types_of_change
        if known is None or known[0] != change:
            known = self._types_of_change = change, self._store.artifact_types(self.namespace)
        return known[1]

    def _request(
        self,
        query: str,
        wanted: Filter,
        limit: int | None,
        method: Method | None,
        min_score: float | None,
        stage1_limit: int | None,
        per_owner: int,
        now: float,
    ) -> Request:
        """Return a request, with the settings for what is None."""
        settings = self.settings.search
        floor = settings.min_score if min_score is None else min_score
        return Request(
            query=query,
            namespace=self.namespace,
            limit=settings.limit if limit is None else limit,
            method=method or settings.method,  # type: ignore[arg-type]
            wanted=wanted,
            min_score=FLOOR if floor is None else floor,
            first_floor=FIRST_FLOOR if floor is None else 0.0,
            stage1_limit=settings.stage1_limit if stage1_limit is None else stage1_limit,
            fields=settings.fields or tuple(SEARCH_FIELDS),
            is_bounded=stage1_limit is not None or settings.stage1_limit != SearchSettings().stage1_limit,
            per_owner=per_owner,
            now=now,
            retention_weight=settings.retention_weight,
            fading=FadingRule(self._fading.curve, tuple(sorted(self._fading.half_lives.items()))),
        )

    def recall(  # noqa: PLR0913 - the options of a facade
        self,
        query: str,
        limit: int | None = None,
        *,
        as_of: Moment | None = None,
        valid_at: Moment | None = None,
        min_score: float | None = None,
        tags: Sequence[str] | None = None,
        tiers: Sequence[str] | None = None,
        sessions: Sequence[str] | None = None,
        sources: Sequence[str] | None = None,
        min_trust: float = 0.0,
        per_owner: int = 1,
        also: Sequence[str] | None = None,
        touch: bool = True,
    ) -> SearchResult:
        """Find in memories alone, and count them as used, as `count_use` does, unless a time is given.

        The other arguments are those of `search`.

        Args:
            touch: False counts nothing, for who only looks at what would be found.
        """
        counts = self._store.counts(self.namespace)
        # Where there is nothing else, a filter by kind would only cost a look at every owner after each change.
        has_others = counts["artifacts"] or counts["knowledge"] or not counts["memories"]
        result = self.search(
            query,
            limit,
            ("memory",) if has_others else None,
            as_of=as_of,
            valid_at=valid_at,
            min_score=min_score,
            tags=tags,
            tiers=tiers,
            sessions=sessions,
            sources=sources,
            min_trust=min_trust,
            per_owner=per_owner,
            also=also,
        )
        if touch and as_of is None and valid_at is None:
            self.count_use(result.hits)
        return result

    def count_use(self, hits: Sequence[Hit]) -> None:
        """Count memories of an answer as used: those among the first three hits that are likely or sure.

        Each counts at most once an hour, whichever process asks, and not where a newer one may have overtaken it. It
        is written within a second, and at the latest when the engine is closed.
        """
        if not isinstance(hits, Sequence) or not all(isinstance(hit, Hit) for hit in hits):
            raise UsageError(f"hits is {hits!r:.80}", remedy="give the hits of a result, as `search` returned them")
        self._used(used_hits(hits))

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        """Explain a hit of a result: each signal, what it added, which words matched, and what was rejected.

        Raises:
            NotFoundError: the result has no such hit.
        """
        from commonplace.engine.explaining import explain

        if not isinstance(result, SearchResult):
            raise UsageError(f"result is {result!r:.80}", remedy="give what `search` returned")
        in_process = result.in_process
        if in_process is not None and hit_id in in_process.trace.numbers:
            return explain(self._ultra.store, replace(result, trace=in_process.trace), hit_id)
        return explain(self._store, result, hit_id)

    def _incomplete(self, wanted: Filter) -> tuple[str, ...]:
        """Say which files the index lacks yet, where files are looked for."""
        return self._upkeep.incomplete(self.namespace) if "artifact" in kinds_of(wanted) else ()

    def _search_store(self, request: Request) -> SearchResult:
        """Search the store; again where its embedder is changed meanwhile, or a fault of the index shows in reading."""
        tries = 0
        while True:
            self._follow()
            freshness = self._upkeep.freshen(self.namespace)
            generation = self._index.reader()
            notices = (*freshness.notices, *self._incomplete(request.wanted))
            try:
                return self._searcher.search(request, notices=notices, degraded=freshness.is_degraded)
            except (EmbedderMismatchError, IndexFaultError) as fault:
                tries += 1
                if tries == MAX_TRIES:
                    raise
                if isinstance(fault, IndexFaultError):
                    self._index.condemn(str(fault), generation)


def _others(query: str, also: Sequence[str] | None, method: Method) -> tuple[str, ...]:
    """Return the further phrasings of a query: those given, else what a long task is about."""
    subject = subject_of(query) if also is None and method == "two-stage" else ""
    return (subject,) if subject else phrasings(query, also)
