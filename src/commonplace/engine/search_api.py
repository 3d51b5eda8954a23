"""Make requests of searches, answer them from the store and this process, and log them.

A search does not log itself: only who answers a question of a person's or an agent's knows that it was one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from commonplace.engine.runtime import Service
from commonplace.errors import EmbedderMismatchError, IndexFaultError, NotFoundError, StoreError, UsageError
from commonplace.memory.validate import one_of
from commonplace.search.hits import without_copies
from commonplace.search.rank import FIRST_FLOOR, FLOOR
from commonplace.search.request import MAX_LIMIT, FadingRule, Request, kinds_of, phrasings
from commonplace.search.rerank import FIRST_STAGE, RERANK, Reranking, rerank
from commonplace.search.result import (
    Candidate,
    HeldBack,
    Receipt,
    Rejected,
    SearchResult,
    SignalShare,
    merged,
    reference,
)
from commonplace.settings.agents import DEFAULT_AGENT, Strategy, agent_name
from commonplace.settings.paths import LOGS
from commonplace.settings.schema import SearchSettings
from commonplace.store.contract import Store
from commonplace.text.query import subject_of
from commonplace.text.tokens import analyse, fields_of
from commonplace.types import (
    ARTIFACT_TYPES,
    RERANK_MODES,
    SEARCH_FIELDS,
    Filter,
    Hit,
    Method,
    RerankMode,
    Stage,
)

if TYPE_CHECKING:
    from commonplace.logs import RetrievalLog
    from commonplace.search.context import Context
    from commonplace.search.retrieval_log import RetrievalSummary

Used = Literal["memory", "artifact"]


def _key(hit: Hit) -> str:
    """Return what the log calls a hit."""
    return hit.path if hit.kind == "artifact" and hit.path else _name(hit.kind, hit.owner_id)


def _name(kind: str, id_: str) -> str:
    from commonplace.logs import query_hash

    return f"{kind}:{query_hash(id_)}"


MOST_CHARACTERS = 100
"""Of an agent's name, as in the settings."""
STAND_INS: Final[Mapping[str, tuple[str, ...]]] = {
    "requirement": ("documentation", "code"),
    "architecture": ("documentation", "code"),
}
"""Where else a project tells what it has no files of a type for, the nearest first."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wished of a search; None leaves it to the settings or, of a filter, restricts nothing.

    Attributes:
        agent: whose strategy it is, in the spelling of settings; "" is nobody's.
        own: the names of the wishes that a call stated itself, which no index changes.
        notices: what people are to know of it.
    """

    limit: int | None = None
    min_score: float | None = None
    types: Sequence[str] | None = None
    phases: Sequence[str] | None = None
    tags: Sequence[str] | None = None
    agent: str = ""
    own: frozenset[str] = field(default=frozenset(), compare=False)
    notices: tuple[str, ...] = ()

    def under(self, **said: Any) -> Wishes:
        """Return these wishes with what a call says itself in their place; an empty list lifts a filter."""
        own = {name: value for name, value in said.items() if value is not None}
        return replace(self, own=self.own | own.keys(), **own)

    def fitted(self, held: Mapping[str, bool]) -> tuple[Wishes, ...]:
        """Return these wishes as an index can meet them, each for types of its own; the first has all notices.

        A project without files of a type that is wished for tells elsewhere what they would say, and that is found in
        their place. Tags are asked only of types of which some artifact has tags: nobody tags source code. No types are
        all of them, and memories and knowledge.

        Args:
            held: the types of the artifacts that there are, and whether some artifact of the type has tags.
        """
        fit = self if "types" in self.own else self._with_stand_ins(held)
        asked = fit.types or tuple(each for each in ARTIFACT_TYPES if each in held)
        untagged = tuple(each for each in asked if held.get(each) is False)
        if "tags" in self.own or not (fit.tags and untagged):
            return (fit,)
        told = f"no {' and no '.join(untagged)} has a tag, so agent {self.agent} finds what has none"
        notices = (*fit.notices, told)
        tagged = tuple(each for each in fit.types or () if each not in untagged)
        free = replace(fit, types=untagged, tags=())
        if fit.types and not any(each in held for each in tagged):
            return (replace(free, types=fit.types, notices=notices),)
        return replace(fit, types=tagged, notices=notices), free

    def _with_stand_ins(self, held: Mapping[str, bool]) -> Wishes:
        wished = tuple(self.types or ())
        lacking = [each for each in wished if each in STAND_INS and each not in held] if held else []
        nearest = (next((other for other in STAND_INS[each] if other in held), None) for each in lacking)
        added = tuple(dict.fromkeys(each for each in nearest if each and each not in wished))
        if not added:
            return self
        told = f"no {' and no '.join(lacking)} is indexed, so agent {self.agent} finds {' and '.join(added)} too"
        return replace(self, types=(*wished, *added), notices=(*self.notices, told))


def wishes_of(agent: str | None, known: Mapping[str, Strategy]) -> Wishes:
    """Return what an agent wishes of a search; one without a strategy has that of `default`, and the notices say so.

    Args:
        agent: in either spelling, `test_engineer` or `test-engineer`; None is nobody.

    Raises:
        UsageError: it is no name, or longer than one may be.
    """
    if agent is None:
        return Wishes()
    if not isinstance(agent, str) or not agent.strip() or len(agent) > MOST_CHARACTERS:
        raise UsageError(
            f"agent is {agent!r:.80}", remedy=f"name one, in 1 to {MOST_CHARACTERS} characters: {', '.join(known)}"
        )
    name = agent_name(agent)
    notices: tuple[str, ...] = ()
    if name not in known:
        notices = (
            f"there is no strategy for agent {name!r:.80}, so {DEFAULT_AGENT!r} is used; there are: {', '.join(known)}",
        )
        name = DEFAULT_AGENT
    strategy = known[name]
    return Wishes(
        limit=strategy.top_k,
        min_score=strategy.threshold,
        types=strategy.context_types,
        phases=strategy.phase_filter,
        tags=strategy.tag_filter,
        agent=name,
        notices=notices,
    )


def about(parts: Sequence[Wishes], hits: Sequence[object]) -> tuple[str, ...]:
    """Return the notices of a search for these wishes that found these hits; none may be the strategy's doing."""
    wishes = parts[0]
    if hits or not wishes.agent:
        return wishes.notices
    types = _types_of(part.types or () for part in parts)
    limits = (
        types and f"of the types {', '.join(types)}",
        wishes.phases and f"of the phases {', '.join(wishes.phases)} or of none",
        wishes.tags and f"with one of the tags {', '.join(wishes.tags)}",
        wishes.min_score and f"scored {wishes.min_score:.2f} or more",
    )
    told = ", ".join(str(limit) for limit in limits if limit)
    return (*wishes.notices, f"agent {wishes.agent} finds only what is {told}") if told else wishes.notices


def _types_of(parts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the types that parts of a search have together, each once; none is all of them."""
    found = tuple(parts)
    return tuple(dict.fromkeys(chain.from_iterable(found))) if all(found) else ()


def for_part(request: Request, part: Wishes) -> Request:
    """Return a request with the types and tags of a part of the wishes behind it."""
    return replace(request, wanted=replace(request.wanted, types=tuple(part.types or ()), tags=tuple(part.tags or ())))


def joined(results: Sequence[SearchResult], limit: int) -> SearchResult:
    """Return results of searches for one query as one: the best hits of all, ties by id, and what all of them took.

    Of their filters the types are joined; all else is the first's.
    """
    if len(results) == 1:
        return replace(results[0], hits=results[0].hits[:limit])
    hits = without_copies(merged([each.hits for each in results]))
    stages: dict[str, Stage] = {}
    for stage in (stage for each in results for stage in each.stages):
        before = stages.get(stage.name, Stage(stage.name, 0, 0.0))
        stages[stage.name] = Stage(stage.name, before.candidates + stage.candidates, before.ms + stage.ms)
    traces = [each.trace for each in results]
    numbers = dict(chain.from_iterable(each.numbers.items() for each in traces))
    return replace(
        results[0],
        wanted=replace(results[0].wanted, types=_types_of(each.wanted.types for each in results)),
        trace=replace(
            traces[0],
            make=lambda: tuple(chain.from_iterable(each.candidates for each in traces)),
            numbers=numbers,
            moved=dict(chain.from_iterable(each.moved.items() for each in traces)),
            held_back=HeldBack(
                sum(each.held_back.owners for each in traces),
                max((each.held_back.best for each in traces if each.held_back.best is not None), default=None),
            ),
        ),
        hits=hits[:limit],
        stages=tuple(stages.values()),
        latency_ms=sum(each.latency_ms for each in results),
        degraded=any(each.degraded for each in results),
        notices=tuple(dict.fromkeys(notice for each in results for notice in each.notices)),
    )


_NO_FILES: Final = ("memory", "knowledge")
FACTOR: Final = 3
"""A language model chooses among so many times as many hits as are wanted."""
MAX_TRIES: Final = 3
"""Of a search of the store: the embedder may change once, and the index turn out faulty once."""


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
        from commonplace.search.diagnosis import diagnose

        return tuple(diagnose(self._store, found, self._runtime.has_ultra))

    def _rerank_mode(self, asked: str | None) -> RerankMode:
        mode = self._settings.models.reranker if asked is None else asked
        return one_of("rerank", mode, RERANK_MODES)  # type: ignore[return-value] # one of the modes

    def _answered(self, request: Request, mode: RerankMode) -> SearchResult:
        """Search the store, and the memories of this process; where a language model is to choose, for more hits."""
        wider = request if mode == "none" else replace(request, limit=min(MAX_LIMIT, FACTOR * request.limit))
        found = self.search_store(wider)
        if self._runtime.has_ultra and request.wanted.as_of is None:
            in_process = self._runtime.ultra.search(wider)
            if in_process.hits:
                hits = merged([found.hits, in_process.hits])
                found = replace(found, hits=hits[: wider.limit], in_process=in_process)
        if mode == "none":
            return found
        name = f"{self._runtime.models.reranker_name} ({mode})"
        return rerank(found, Reranking(lambda: self._runtime.models.reranker(mode), name, request.limit))

    def _artifact_types(self) -> Mapping[str, bool]:
        """Return the types of artifacts that there are, and whether some of the type has tags."""
        change = self._store.change()
        known = self._types_of_change
        if known is None or known[0] != change:
            known = self._types_of_change = change, self._store.artifact_types(self._namespace)
        return known[1]

    def why(self, result: SearchResult, hit_id: str) -> Receipt:
        in_process = result.in_process
        if in_process is not None and hit_id in in_process.trace.numbers:
            return explain(self._runtime.ultra.store, replace(result, trace=in_process.trace), hit_id)
        return explain(self._store, result, hit_id)

    def _incomplete(self, wanted: Filter) -> tuple[str, ...]:
        """Say which files the index lacks yet, where files are looked for."""
        return self._runtime.maintenance.incomplete(self._namespace) if "artifact" in kinds_of(wanted) else ()

    def search_store(self, request: Request) -> SearchResult:
        """Search the store; again where its embedder is changed meanwhile, or a fault of the index shows in reading."""
        tries = 0
        while True:
            self._runtime.follow()
            freshness = self._runtime.maintenance.freshen(self._namespace)
            generation = self._runtime.index.reader()
            notices = (*freshness.notices, *self._incomplete(request.wanted))
            try:
                return self._runtime.searcher.search(request, notices=notices, degraded=freshness.is_degraded)
            except (EmbedderMismatchError, IndexFaultError) as fault:
                tries += 1
                if tries == MAX_TRIES:
                    raise
                if isinstance(fault, IndexFaultError):
                    self._runtime.index.condemn(str(fault), generation)

    def log_retrieval(self, result: SearchResult | Context, call: str) -> None:
        from commonplace.search.context import Context
        from commonplace.search.retrieval_log import fields_of

        found = result.found if isinstance(result, Context) else result
        if found is not None:
            fields = fields_of(found, call, [_key(hit) for hit in result.hits])
            self._retrieval_log.write(found.query, fields, now=self._runtime.now())

    def log_use(self, name: str, kind: Used) -> None:
        used = name if kind == "artifact" else _name(kind, name)
        self._retrieval_log.write_use({"namespace": self._namespace, "used": used}, now=self._runtime.now())

    def retrievals(self, since: float) -> RetrievalSummary:
        from commonplace.search.retrieval_log import summarise

        try:
            return summarise(self._retrieval_log.lines(), namespace=self._namespace, since=since)
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


_WORDS: Final = re.compile(r"[\w.\-]+")
_PARTS: Final = re.compile(r"[^\W_]+")
_HUMPS: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def explain(store: Store, result: SearchResult, hit_id: str) -> Receipt:
    """Return why a result holds a hit; see `Engine.why`."""
    place, hit = next(((place, hit) for place, hit in enumerate(result.hits) if hit.id == hit_id), (0, None))
    if hit is None:
        raise NotFoundError(f"the result has no hit {hit_id!r}", remedy="take an id from result.hits")
    number = result.trace.numbers[hit_id]
    candidate = next(item for item in result.trace.candidates if item.number == number)
    unfound = {name: value for name, value in candidate.standardised.items() if name not in candidate.signals}
    held, written = _held(store, result, number), _written(" ".join((result.corrected or result.query, *result.also)))
    matched, missing = (
        [word for word in result.trace.terms if held.isdisjoint(word) is is_missing] for is_missing in (False, True)
    )
    return Receipt(
        hit_id=hit_id,
        reference=reference(hit),
        query=result.query,
        rank=place + 1 if result.reranked_by else candidate.rank,
        score=hit.score,
        min_score=result.trace.min_score,
        signals=tuple(
            SignalShare(
                name,
                value,
                candidate.standardised.get(name, 0.0),
                candidate.weights.get(name, 0.0),
                value * candidate.evidence.get(name, 0.0),
            )
            for name, value in {**candidate.signals, **unfound, **_of_reranking(hit)}.items()
        ),
        matched_terms=_distinct(written.get(word[0], word[0]) for word in matched),
        missing_terms=_distinct(written.get(word[0], word[0]) for word in missing),
        rejected=_rejected(store, result),
        first_rank=candidate.rank,
        reranked_by=result.reranked_by,
        probability=hit.probability,
        confidence=hit.confidence,
        stands_before=result.trace.moved.get(hit_id, ""),
        superseded_by=hit.superseded_by,
    )


def _of_reranking(hit: Hit) -> dict[str, float]:
    return {name: hit.signals[name] for name in (FIRST_STAGE, RERANK) if name in hit.signals}


def _written(query: str) -> dict[str, str]:
    """Return the words of a query by the terms that they give: a part of an identifier for its own, else the whole."""
    words = _WORDS.findall(query)
    parts = _PARTS.findall(query)
    humps = _HUMPS.findall(query)
    found: dict[str, str] = {}
    for word in chain(words, parts, humps):
        terms = analyse(word)
        if len(terms) == 1:
            found.setdefault(terms[0], word.strip(".-_"))
    for word in words:
        for term in analyse(word)[:1]:
            if term not in word:  # a pair of characters of a script without spaces stands as it is
                found.setdefault(term, word.strip(".-_"))
    return found


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words, each once, without the characters of a script without spaces that stand in a pair of them."""
    each = dict.fromkeys(words)
    pairs = "".join(word for word in each if len(word) > 1)
    return tuple(word for word in each if len(word) > 1 or word.isascii() or word not in pairs)


def _held(store: Store, result: SearchResult, number: int) -> set[str]:
    entry = store.entries(result.namespace, [number]).get(number)
    return set() if entry is None else {term for terms in fields_of(entry).values() for term in terms}


def _rejected(store: Store, result: SearchResult) -> tuple[Rejected, ...]:
    left: list[Candidate] = [item for item in result.trace.candidates if item.rejected is not None]
    owners = store.owners(result.namespace, [item.owner_number for item in left])
    return tuple(
        Rejected(owner.path or owner.id, item.rank, item.score, item.rejected)
        for item in left
        if item.rejected is not None and (owner := owners.get(item.owner_number)) is not None
    )
