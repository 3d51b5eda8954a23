"""Results of a search: their JSON and text, joining and re-ranking, and the trace that explains a ranking."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final, Literal

from commonplace.dataclasses import dataclass, field, fields, replace
from commonplace.dates.time import iso
from commonplace.errors import ProviderError
from commonplace.formats.escaping import harmless
from commonplace.formats.fence import FenceItem, fence
from commonplace.models.contract import Reranker
from commonplace.redaction import find_secrets, redact
from commonplace.search.time import AskedTime
from commonplace.text.markdown import front_matter_end, heading_slug, plain_heading
from commonplace.types import Confidence, Filter, Hit, Method, Owner, Stage, StoredMemory

if TYPE_CHECKING:
    from commonplace.text.snippet import Snippet

COPIES_NAMED: Final = 5
"""Maximum number of copies of a hit's text that are named: as many as a person can look through."""
_WORDS_NAMED: Final = 8
_GROUND: Final = 0.25
"""Least that a signal must add to be named as a ground: a quarter of a standard deviation over the candidates."""
_COMMENTS: Final = ("@", "#", "//", "/*", "*", '"', "'")
_GROUNDS: Final = {
    "dense": "its meaning is near to the query's",
    "time": "it is of the time that the query names",
    "speaker": "the speaker whom the query asks about says it",
    "neighbours": "its neighbours match too",
    "retention": "it was used often or lately",
}
_CONFIDENCE: Final = {
    "sure": "it is surely relevant",
    "likely": "it is likely to be relevant",
    "weak": "it may be only loosely related",
}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first (ties by id), and how they were found.

    Attributes:
        hits: at most as many as asked for; empty when nothing is relevant.
        degraded: True when a part of the search could not be used; `notices` says which.
        notices: one sentence each, for people.
        trace: the candidates behind the hits, for `why`.
        in_process: the result from the memories of this process alone, whose hits are among `hits`; None without any.
        reranked_by: the mode and model that re-ranked and scored the hits, "" if none did.
        agent: the agent whose strategy was used, "" without one.
        calibrated: False if the vectors are of an embedder that nothing was fitted for: probabilities then rest on
            words and late interaction alone.
        corrected: the corrected query that was searched for instead, because its own words found nothing; else "".
    """

    query: str
    namespace: str
    method: Method
    wanted: Filter
    hits: tuple[Hit, ...]
    stages: tuple[Stage, ...]
    latency_ms: int
    degraded: bool
    notices: tuple[str, ...]
    trace: Trace
    in_process: SearchResult | None = None
    reranked_by: str = ""
    agent: str = ""
    calibrated: bool = True
    also: tuple[str, ...] = ()
    corrected: str = ""

    @property
    def held_back(self) -> int:
        """How many memories, artifacts and knowledge items were ranked but lie below the minimum score."""
        return len(self._withheld)

    @property
    def best_held_back(self) -> float | None:
        """The best score among what is held back, None if nothing is."""
        return max(self._withheld, default=None)

    @property
    def _withheld(self) -> tuple[float, ...]:
        return self.trace.held_back + (() if self.in_process is None else self.in_process.trace.held_back)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; `agent_type` and `phase` are null where unused."""
        scores = [round(hit.score, 4) for hit in self.hits]
        # The auto-retrieval contract's form for every kind; `hits` has all fields.
        artifacts = [
            {
                "path": hit.path or hit.owner_id,
                "type": hit.type or hit.kind,
                "score": score,
                "content": hit.text,
                "metadata": {
                    "title": hit.title,
                    "heading": hit.heading,
                    "lines": list(hit.lines) if hit.lines else None,
                    "tags": list(hit.tags),
                    "phase": hit.phase or None,
                    "references": list(hit.references),
                    "summary": hit.summary,
                    "last_modified": iso(hit.at),
                },
            }
            for hit, score in zip(self.hits, scores, strict=True)
        ]
        return {
            "query": self.query,
            "also": list(self.also),
            "corrected_query": self.corrected or None,
            "agent_type": self.agent or None,
            "phase": ",".join(self.wanted.phases) or None,
            "artifacts": artifacts,
            "references": [f"@{reference(hit)}" for hit in self.hits],
            "confidence": {"overall": round(sum(scores) / len(scores), 4) if scores else 0.0, "per_artifact": scores},
            "latency_ms": self.latency_ms,
            "hits": [hit_json(hit) for hit in self.hits],
            "held_back": self.held_back,
            "best_held_back": None if self.best_held_back is None else round(self.best_held_back, 4),
            "calibrated": self.calibrated,
            "degraded": self.degraded,
            "method": self.method,
            "reranked_by": self.reranked_by or None,
            "namespace": self.namespace,
            "stages": [{"name": s.name, "candidates": s.candidates, "ms": round(s.ms, 2)} for s in self.stages],
            "notices": list(self.notices),
        }

    def to_text(self) -> str:
        """Return the hits as text for a model to read: fenced and labelled as data, "" where there is none."""
        return fence(FenceItem(reference(hit), hit.text, label(hit)) for hit in self.hits)


def owner_fields(owner: Owner, memory: StoredMemory | None) -> dict[str, Any]:
    """Return the fields of a hit that come from its owner."""
    fields: dict[str, Any] = {
        name: getattr(owner, name)
        for name in ("kind", "title", "tags", "references", "summary", "at", "path", "type", "phase")
    }
    record = None if memory is None else memory.record
    if record is not None:
        fields |= {name: getattr(record, name) for name in ("tier", "source", "origin", "trust")}
    elif owner.kind == "artifact":
        fields["origin"] = "document"
    return {**fields, "owner_id": owner.id}


def memory_hit(stored: StoredMemory, score: float) -> Hit:
    """Return a whole memory as a hit without a query; its score is its retention."""
    values = {**owner_fields(stored.owner, stored), "at": stored.at, "references": ()}
    return Hit(id=stored.owner.id, text=stored.record.content, score=score, signals={"retention": score}, **values)


def without_secrets(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with placeholders for secrets that were stored before secrets were looked for.

    All texts are scanned as one, which is far faster; only if that finds anything is each scanned by itself.
    """
    parts = [{name: getattr(hit, name) for name in ("text", "title", "heading", "summary", "source")} for hit in hits]
    if not find_secrets("\n\n".join(text for texts in parts for text in texts.values() if text)):
        return tuple(hits)
    cleaned: list[dict[str, Any]] = [{name: redact(text).text for name, text in texts.items()} for texts in parts]
    return tuple(
        replace(hit, **texts, anchor=heading_slug(texts["heading"]) if hit.anchor else "")
        for hit, texts in zip(hits, cleaned, strict=True)
    )


def is_likely(hit: Hit) -> bool:
    """Return whether a hit is likely or sure; one without a confidence counts, because its score passed the cut."""
    return hit.confidence in (None, "likely", "sure")


def reference(hit: Hit) -> str:
    """Return how a person names the hit: `path#anchor`, `path:10-40`, or the owner's id if there is no file."""
    if not hit.path:
        return hit.owner_id
    if hit.anchor:
        return f"{hit.path}#{hit.anchor}"
    if hit.lines is not None:
        return f"{hit.path}:{hit.lines[0]}-{hit.lines[1]}"
    return hit.path


def location(hit: Hit) -> str:
    """Return the location of a hit as editors open it, `path:line`; the owner's id if there is no file.

    The line is that of the symbol's declaration, else the first one of the passage.
    """
    if not hit.path or hit.lines is None:
        return hit.path or hit.owner_id
    symbol = re.split(r"\W", hit.heading)[-1] if is_code(hit) else ""
    rows = hit.text.split("\n") if symbol else []
    named = re.compile(rf"(?<!\w){re.escape(symbol)}(?!\w)")
    declared = (index for index, row in enumerate(rows) if not row.strip().startswith(_COMMENTS) and named.search(row))
    return f"{hit.path}:{hit.lines[0] + next(declared, 0)}"


def is_code(hit: Hit) -> bool:
    """Return whether the lines of a hit are code."""
    return hit.type in ("code", "test") and hit.path.rpartition(".")[2] not in ("md", "rst", "txt")


def excerpt(hit: Hit, query: str, *, limit: int | None = None) -> Snippet:
    """Return the part of a hit that matches, fit for a terminal.

    Args:
        limit: characters of a single line; None: several lines, without the front matter and heading above them.
    """
    from commonplace.text.snippet import snippet

    if limit is not None:
        return snippet(harmless(hit.text), query, limit=limit)
    if is_code(hit):
        return snippet(harmless(hit.text), query, layout="code")
    lines = hit.text.split("\n") if hit.path else []
    lines = "\n".join(lines[front_matter_end(lines) :]).strip("\n").split("\n")
    has_heading = hit.heading and plain_heading(lines[0].strip("# ")) == hit.heading
    body = "\n".join(lines[1:] if has_heading else lines).strip("\n")
    return snippet(harmless(body or hit.text), query, layout="text")


def hit_json(hit: Hit) -> dict[str, Any]:
    """Return the JSON form of a hit."""
    return {
        **{attribute.name: getattr(hit, attribute.name) for attribute in fields(hit)},
        "score": round(hit.score, 4),
        "probability": None if hit.probability is None else round(hit.probability, 4),
        "signals": {name: round(value, 4) for name, value in hit.signals.items()},
        "reference": reference(hit),
        "at": iso(hit.at),
    }


def copies_named(hit: Hit) -> tuple[str, ...]:
    """Return the first copies of a hit's text, and how many more there are: hundreds would take all the room."""
    more = len(hit.copies) - COPIES_NAMED
    return hit.copies if more <= 0 else (*hit.copies[:COPIES_NAMED], f"{more:,} more")


def label(hit: Hit) -> str:
    """Return what a reader should know of a text before believing it."""
    date = iso(hit.at)
    parts = (
        f"knowledge of {hit.agent}" if hit.agent else hit.type or hit.kind,
        date[:10] if date else "",
        hit.tier and f"tier {hit.tier}",
        hit.origin and f"origin {hit.origin}",
        "" if hit.trust is None else f"trust {hit.trust:.2f}",
        f"retention {hit.score:.2f}" if hit.signals.keys() == {"retention"} else f"score {hit.score:.2f}",
        hit.confidence,
        hit.superseded_by and f"{hit.superseded_by} {replaced(hit)} it",
        hit.copies and f"the same in {', '.join(copies_named(hit))}",
    )
    return ", ".join(part for part in parts if part)


def replaced(hit: Hit | None) -> str:
    """Return how sure it is that a memory replaced the one of a hit, as a verb."""
    return "replaced" if hit is not None and hit.is_superseded else "may have replaced"


Reason = Literal[
    "below the minimum score", "same owner as a better hit", "same text as a better hit", "beyond the limit"
]


@dataclass(frozen=True, slots=True)
class SignalShare:
    """One signal of a hit: its raw value, the value that was added up, and the weight of that in the order.

    Attributes:
        standardised: over the candidates; a date's fit, 0–1, and what neighbours lend are added as they are. The
            weighted sum of all is the value that orders the hits, "fused".
        evidence: what it adds to the log-odds of relevance.
    """

    name: str
    value: float
    standardised: float = 0.0
    weight: float = 0.0
    evidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """One ranked candidate. `rank` counts from 1; `rejected` is None for a hit."""

    number: int
    owner_number: int
    rank: int
    score: float
    signals: Mapping[str, SignalShare]
    rejected: Reason | None


@dataclass(frozen=True, slots=True)
class Trace:
    """How a result was made.

    Attributes:
        candidates: the best ranked ones, hits and rejected, in rank order; at most `TRACE_LENGTH` beyond the hits.
        terms: the words of the query as the lexical index reads them, the terms of each; the first is the English one.
        numbers: passage number of each hit, by hit id.
        times: the times that the query names, as they were understood.
        moved: for each hit that was moved before an older one that it may supersede, the older one's id, by its own.
        held_back: the best score of each owner that was ranked but lies below the minimum score.
    """

    candidates: Sequence[Candidate] = field(repr=False, compare=False)
    terms: tuple[tuple[str, ...], ...]
    min_score: float
    numbers: Mapping[str, int]
    times: tuple[AskedTime, ...] = ()
    passages: int = 0
    moved: Mapping[str, str] = field(default_factory=dict)
    held_back: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that did not become a hit."""

    reference: str
    rank: int
    score: float
    reason: Reason


@dataclass(frozen=True, slots=True)
class Receipt:
    """Why a hit was found.

    Attributes:
        rank: from 1, among the candidates; if the hits were re-ranked, among these.
        first_rank: from 1, among the candidates.
        reranked_by: the mode and model that re-ranked the hits and gave `score`, "" if none did.
        matched_terms: the words of the query that the passage holds, as written in the query; for an identifier, its
            parts too.
        probability: how likely the hit is relevant, 0–1.
        stands_before: the id of the older hit before which this newer one was moved, "" if it was not.
        superseded_by: the id of the newer memory that may supersede it; None without any.
        superseded_because: why the rule linked the two, "" if a person or the graph decided.
    """

    hit_id: str
    reference: str
    query: str
    rank: int
    score: float
    min_score: float
    signals: tuple[SignalShare, ...]
    matched_terms: tuple[str, ...]
    missing_terms: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    first_rank: int = 0
    reranked_by: str = ""
    probability: float | None = None
    confidence: Confidence | None = None
    stands_before: str = ""
    superseded_by: str | None = None
    superseded_because: str = ""

    def explain(self, rank: int, hits: Sequence[Hit]) -> str:
        """Return in words why a hit has its rank, without a subject: "is hit 1 of 3 because …".

        The signal that adds most to its place is named first; missing words of the query are named last.
        """
        by_id = {hit.id: hit for hit in hits}
        ranks = {id_: position for position, id_ in enumerate(by_id, 1)}
        ranks |= {hit.owner_id: position for position, hit in enumerate(hits, 1)}

        def named(id_: str) -> str:
            return f"hit {ranks[id_]}" if id_ in ranks else id_

        if self.reranked_by:
            because = f"because {self.reranked_by} put it there; it was candidate {self.first_rank} before"
        elif self.stands_before:
            below = by_id.get(self.stands_before)
            because = f"because it {replaced(below)} {named(self.stands_before)}"
            if below is not None and below.superseded_by is None:
                because = f"because {named(self.stands_before)} is still to begin"
        elif len(hits) == 1 and not self.rejected:
            because = "because it is the only candidate"
        else:
            because = self._reason()
        likely = f"; {_CONFIDENCE[self.confidence]}" if self.confidence else ""
        passed = f"; {named(self.superseded_by)} {replaced(by_id.get(self.hit_id))} it" if self.superseded_by else ""
        passed += f": {self.superseded_because}" if self.superseded_because else ""
        return f"is hit {rank} of {len(hits)} {because}{likely}{passed}."

    def _reason(self) -> str:
        """Return the grounds of the ranking, from what each signal added and which words of the query are there."""
        matched, count = self.matched_terms, len(self.matched_terms) + len(self.missing_terms)
        listed = ", ".join([*matched[:_WORDS_NAMED], *["…"][: len(matched) - _WORDS_NAMED]])
        phrase = {1: "the query's word", 2: "both words of the query"}.get(count, f"all {count} words of the query")
        by_words, lacks = f"it holds {phrase} ({listed})", ""
        if not matched:
            by_words = "it has words much like the query's"
            lacks = "it holds none of the query's words" if count > 1 else "it does not hold the query's word"
        elif len(matched) < count:
            by_words = f"it holds {len(matched)} of the query's {count} words ({listed})"
        added = {signal.name: signal.standardised * signal.weight for signal in self.signals if signal.weight}
        shares = added or {signal.name: signal.value for signal in self.signals}
        weighed = [(value, _GROUNDS[name]) for name, value in shares.items() if name in _GROUNDS]
        weighed.append((shares.get("lexical", 0.0) + shares.get("late", 0.0), by_words))
        grounds = [ground for value, ground in sorted(weighed, reverse=True) if value >= _GROUND]
        joined = " and ".join(filter(None, (", ".join(grounds[:-1]), *grounds[-1:])))
        because = f"because {joined}" if grounds else "because the other candidates match less"
        return f"{because}, though {lacks}" if lacks else because


RERANK: Final = "rerank"
FIRST_STAGE: Final = "first_stage"
"""Signals of a re-ranked hit: the score of the re-ranker (`RERANK`), and the score before it."""


def rerank(result: SearchResult, limit: int, name: str, opened: Callable[[], Reranker]) -> SearchResult:
    """Return the result with its hits in the re-ranker's order, ties in their old order, at most `limit` of them.

    A hit's score becomes that of the re-ranker, and its old score becomes one of its signals. If the re-ranker fails,
    order and scores stay as they are, and the result is degraded.

    Args:
        opened: opens the re-ranker of that name; called only if there are hits.
    """
    hits = result.hits
    if not hits:
        return result
    begun = time.perf_counter()
    try:
        order = opened().rerank(result.query, [hit.text for hit in hits], len(hits))
        ordered = tuple(
            replace(
                hits[scored.index],
                score=scored.score,
                signals={**hits[scored.index].signals, FIRST_STAGE: hits[scored.index].score, RERANK: scored.score},
            )
            for scored in order[:limit]
        )
        result = replace(result, reranked_by=name)
    except ProviderError as error:
        ordered = hits[:limit]
        notice = f"the hits are in the order of the first stages, because {name} did not re-rank them: {error}"
        result = replace(result, degraded=True, notices=(*result.notices, notice))
    spent_ms = (time.perf_counter() - begun) * 1000
    ids, in_process = {hit.id for hit in ordered}, result.in_process
    return replace(
        result,
        hits=ordered,
        stages=(*result.stages, Stage(RERANK, len(hits), spent_ms)),
        latency_ms=result.latency_ms + round(spent_ms),
        trace=_trace_of(result.trace, ids),
        in_process=None if in_process is None else replace(in_process, trace=_trace_of(in_process.trace, ids)),
    )


def _trace_of(trace: Trace, ids: set[str]) -> Trace:
    dropped = {number for id_, number in trace.numbers.items() if id_ not in ids}
    return replace(
        trace,
        numbers={id_: number for id_, number in trace.numbers.items() if id_ in ids},
        candidates=[
            replace(item, rejected="beyond the limit") if item.number in dropped else item for item in trace.candidates
        ],
    )


def merged(results: Sequence[Sequence[Hit]]) -> tuple[Hit, ...]:
    """Return the hits of several answers as one, best first, ties by id; a hit that was moved forward stays there."""
    keyed: list[tuple[tuple[float, str], int, Hit]] = []
    for hits in results:
        # From the last on: each ranks as the best of itself and those behind it.
        best = accumulate(((-hit.score, hit.id) for hit in reversed(hits)), min)
        keyed += zip(best, range(len(hits), 0, -1), reversed(hits), strict=True)
    return tuple(hit for *_, hit in sorted(keyed, key=lambda entry: entry[:2]))


def without_copies(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those of files whose text a better hit of a file has, which names them as copies.

    Projects keep one text in several places: a fork beside its original, a page for each release.
    """
    groups: dict[object, list[Hit]] = {}
    for hit in hits:
        # Two memories of one text are two things that somebody said; two files of one text are copies.
        key = " ".join(hit.text.split()) if hit.path else (hit.kind, hit.id)
        groups.setdefault(key, []).append(hit)
    return tuple(
        replace(first, copies=tuple(dict.fromkeys((*first.copies, *map(reference, copies))))) if copies else first
        for first, *copies in groups.values()
    )


def joined(results: Sequence[SearchResult], limit: int) -> SearchResult:
    """Return results of several searches for one query as one: the best hits, ties by id, and the times added up."""
    first, *further = results
    if not further:
        return replace(first, hits=first.hits[:limit])
    stages: dict[str, Stage] = {}
    for stage in chain.from_iterable(result.stages for result in results):
        before = stages.get(stage.name, Stage(stage.name, 0, 0.0))
        stages[stage.name] = Stage(stage.name, before.candidates + stage.candidates, before.ms + stage.ms)
    traces = [result.trace for result in results]
    return replace(
        first,
        trace=replace(
            first.trace,
            candidates=tuple(chain.from_iterable(trace.candidates for trace in traces)),
            numbers=dict(chain.from_iterable(trace.numbers.items() for trace in traces)),
            moved=dict(chain.from_iterable(trace.moved.items() for trace in traces)),
            held_back=tuple(chain.from_iterable(trace.held_back for trace in traces)),
        ),
        hits=without_copies(merged([result.hits for result in results]))[:limit],
        stages=tuple(stages.values()),
        latency_ms=sum(result.latency_ms for result in results),
        degraded=any(result.degraded for result in results),
        notices=tuple(dict.fromkeys(notice for result in results for notice in result.notices)),
    )
