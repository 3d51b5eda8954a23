"""The figures to reach, as data: what each is, who asks for how much, and which benchmark tells it.

It measures nothing, and nothing in it was measured: `contract` is what the contracts ask for, `aim` what we aim at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from commonplace.benchmarks.measures import mean

MEGABYTE: Final = 1_000_000
_SIGNS: Final = {"<": operator.lt, ">": operator.gt, "≥": operator.ge, "≤": operator.le}

Told = Mapping[str, Any]
"""The JSON form of what one benchmark measured."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must be: `sign` is one of <, >, ≤ and ≥."""

    sign: str
    value: float

    def is_met(self, measured: float) -> bool:
        """Tell whether a figure is as it must be."""
        return bool(_SIGNS[self.sign](measured, self.value))


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        parts: the benchmarks that `read` is given, in this order.
        is_smaller: measured at a smaller size than what is asked for speaks of, which it therefore cannot reach.
    """

    what: str
    unit: str
    parts: tuple[str, ...]
    read: Callable[..., float]
    contract: Bound | None = None
    aim: Bound | None = None
    is_smaller: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured. `passages`: of each made corpus; documents are built and stored at the first of them."""

    passages: tuple[int, ...]
    queries: int
    memories: int
    calls: int
    searches: int
    entities: int
    relations: int


ASKED: Final = Sizes((10_000, 100_000, 1_000_000), 300, 10_000, 300, 1_000, 100_000, 500_000)
"""The sizes that the targets speak of."""

SIZES: Final[Mapping[str, Sizes]] = {
    "quick": Sizes((100,), 5, 50, 2, 5, 50, 100),
    "small": Sizes((10_000, 100_000), 300, 10_000, 300, 300, 20_000, 100_000),
    "full": ASKED,
}

_SEARCH: Final = dict(zip(ASKED.passages, (Bound("<", 10), Bound("<", 15), Bound("<", 40)), strict=True))
_NDCG: Final = {"medquad": 0.60, "cosqa-dev": 0.51, "cranfield": 0.40}
"""What nDCG@10 is to be on sets of these names."""
ALONE, AMONG = "recall alone", "recall among"
_NEAR: Final = ", 50"
"""Ends the names of the neighbourhoods of as many entities as are asked for by default."""


def figures(sizes: Sizes, sets: Sequence[str]) -> Iterator[Figure]:
    """Yield the figures in the order of the table; `sets` names labelled sets of documents."""
    yield from _building(sizes)
    yield from _searching(sizes)
    yield from _serving(sizes)
    yield from _everyday()
    yield from _conversations()
    for name in sets:
        yield from _labelled(name)
    parts = tuple(retrieval(name) for name in sets)
    if parts:
        yield Figure("nDCG@10, mean gain over bm25", "%", parts, _mean_gain, aim=Bound("≥", 10))


def searched(sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes that have a row: those that are measured, and those that are asked for beyond them."""
    return ASKED.passages if sizes.passages[0] == ASKED.passages[0] else sizes.passages


def latency(passages: int) -> str:
    """Return the name of the part that builds and searches so many passages."""
    return f"latency {passages}"


def retrieval(name: str) -> str:
    """Return the name of the part that measures a labelled set."""
    return f"retrieval {name}"


def _building(sizes: Sizes) -> Iterator[Figure]:
    documents = sizes.passages[0]
    part, is_smaller = (latency(documents),), documents < ASKED.passages[0]
    of = f"{documents:,} documents"
    yield Figure(f"index build, {of}", "s", part, _at("corpus", "build_s"), Bound("<", 5), Bound("<", 3), is_smaller)
    yield Figure("the same, against Tantivy alone", "×", part, _at("ratios", "tantivy", "build"))
    yield Figure(f"store and index, {of}", "MB", part, _disk, Bound("<", 500), is_smaller=is_smaller)
    yield Figure(
        "the same, against the text", "×", part, _at("corpus", "size_to_text"), None, Bound("<", 3), is_smaller
    )


def _searching(sizes: Sizes) -> Iterator[Figure]:
    for passages in searched(sizes):
        yield Figure(
            f"search p95, {passages:,} passages",
            "ms",
            (latency(passages),),
            _at("methods", "two-stage", "p95_ms"),
            Bound("<", 150) if passages == sizes.passages[0] else None,
            _SEARCH.get(passages, _SEARCH[ASKED.passages[0]]),
            passages not in _SEARCH,
        )


def _serving(sizes: Sizes) -> Iterator[Figure]:
    is_smaller = sizes.memories < ASKED.memories
    of = f"{sizes.memories:,} memories"
    yield Figure(
        f"recall p95, {of}", "ms", ("memories",), _at("recall", "p95_ms"), Bound("<", 100), Bound("<", 25), is_smaller
    )
    yield Figure(
        f"store p95, durable, {of}",
        "ms",
        ("memories",),
        _at("store", "p95_ms"),
        Bound("<", 50),
        Bound("<", 40),
        is_smaller,
    )
    yield Figure(
        f"graph, depth 2, {sizes.entities:,} nodes, {sizes.relations:,} edges, p95",
        "ms",
        ("graph",),
        _around,
        Bound("<", 200),
        Bound("<", 10),
        sizes.relations < ASKED.relations,
    )
    yield Figure(
        f"resident, MCP process, {of}, after {sizes.searches:,} searches",
        "MB",
        ("mcp",),
        lambda told: told["memory"]["after_searches"]["resident_bytes"] / MEGABYTE,
        Bound("<", 50),
        Bound("<", 50),
        is_smaller,
    )
    yield Figure(
        "of which the process's own, anonymous",
        "MB",
        ("mcp",),
        lambda told: told["memory"]["after_searches"]["anonymous_bytes"] / MEGABYTE,
    )
    start = Bound("<", 150)
    first = _at("start", "first_search_ms")
    yield Figure("MCP process, start to first answer", "ms", ("mcp",), first, aim=start, is_smaller=is_smaller)
    yield Figure(
        "library, start of the process to first answer",
        "ms",
        (latency(sizes.passages[0]),),
        _at("process", "first_answer_ms"),
        aim=start,
        is_smaller=is_smaller,
    )


def _everyday() -> Iterator[Figure]:
    asked = {
        (ALONE, "everyday"): (
            ("paraphrase", "recall@5", 0.85),
            ("paraphrase", "recall@1", 0.55),
            ("keyword", "recall@5", 0.97),
            ("plain", "recall@5", 1.0),
            ("update", "recall@1", 0.70),
        ),
        (AMONG, "everyday among 1,000"): (
            ("paraphrase", "recall@5", 0.50),
            ("keyword", "recall@5", 0.90),
            ("update", "recall@1", 0.60),
        ),
    }
    for (part, of), rows in asked.items():
        for style, name, least in rows:
            what = f"{of}, {style}, {name.replace('recall', 'R')}"
            yield Figure(what, "", (part,), _at("styles", style, name), aim=Bound("≥", least))
    yield Figure("everyday, update, newest above overtaken", "share", (ALONE,), _newest, aim=Bound("≥", 0.90))
    quiet = _at("styles", "absent", "nothing_or_weak")
    yield Figure("everyday, absent, nothing or weak alone", "share", (ALONE,), quiet, aim=Bound("≥", 0.60))
    lost = _at("styles", "all with an answer", "nothing")
    yield Figure("everyday, with an answer, nothing", "share", (ALONE,), lost, aim=Bound("≤", 0.05))
    for style, least in (("keyword", 0.80), ("plain", 0.95), ("update", 0.85), ("paraphrase", 0.35)):
        read = _at("styles", style, "likely_or_sure")
        yield Figure(f"everyday, {style}, likely or sure", "share", (ALONE,), read, aim=Bound("≥", least))


def _conversations() -> Iterator[Figure]:
    asked = {
        ("longmemeval", "LongMemEval"): (
            ("turns, R@5", "recall@5", 0.75),
            ("turns, R@10", "recall@10", 0.85),
            ("sessions, R@1", "session_recall@1", 0.90),
            ("sessions, all@5", "all_sessions@5", 0.92),
        ),
        ("locomo", "LoCoMo"): (
            ("turns, R@5 (categories 1–4)", "recall@5", 0.66),
            ("turns, R@10 (categories 1–4)", "recall@10", 0.77),
        ),
    }
    for (part, of), rows in asked.items():
        for what, name, least in rows:
            read = _at("methods", "two-stage", name)
            yield Figure(f"{of} {what}", "", (part,), read, aim=Bound("≥", least))
        bound = Bound("<", 5) if part == "longmemeval" else None  # short turns weigh little beside their vectors
        yield Figure(
            f"store and index of {of}, against the text", "×", (part,), _at("corpus", "size_to_text"), aim=bound
        )


def _labelled(name: str) -> Iterator[Figure]:
    part = (retrieval(name),)
    if name in _NDCG:
        read = _at("methods", "two-stage", "ndcg@10")
        yield Figure(f"nDCG@10 on {name}", "", part, read, aim=Bound("≥", _NDCG[name]))
    yield Figure(f"nDCG@10 on {name}, gain over the better of bm25 and semantic", "%", part, _gain, Bound(">", 0))
    yield Figure(f"nDCG@10 on {name}, gain over bm25", "%", part, _gain_over_bm25, aim=Bound("≥", 0))
    yield Figure(f"precision@10 on {name}", "share", part, _at("methods", "two-stage", "precision@10"), Bound(">", 0.8))
    yield Figure(f"recall@10 on {name}", "share", part, _at("methods", "two-stage", "recall@10"), Bound(">", 0.7))


def _at(*path: str) -> Callable[[Told], float]:
    def read(told: Told) -> float:
        value: Any = told
        for name in path:
            value = value[name]
        return float(value)

    return read


def _disk(told: Told) -> float:
    return float(told["corpus"]["store_bytes"] + told["corpus"]["index_bytes"]) / MEGABYTE


def _around(told: Told) -> float:
    """Return the worst p95 of any entity, of the ends of facts, and of the greatest hubs."""
    return max(float(row["p95_ms"]) for where, row in told["neighbourhood"].items() if where.endswith(_NEAR))


def _newest(told: Told) -> float:
    row = told["styles"]["update"]
    return float(row["newest_first"]) / max(1.0, float(row["with_overtaken"]))


def _gain(told: Told, over: tuple[str, ...] = ("bm25", "semantic")) -> float:
    """Return by how many percent the two-stage method is better than the best of others."""
    found = {method: float(row["ndcg@10"]) for method, row in told["methods"].items()}
    best = max(found[method] for method in over)
    return 100.0 * (found["two-stage"] / best - 1.0) if best else 0.0


def _gain_over_bm25(told: Told) -> float:
    return _gain(told, ("bm25",))


def _mean_gain(*told: Told) -> float:
    return mean([_gain_over_bm25(each) for each in told])
