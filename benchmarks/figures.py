"""Measure the figures to reach, each benchmark in a process of its own, and lay them beside what is asked for.

`contract` is what the contracts ask for, `aim` what we aim at.
"""

from __future__ import annotations

import json
import operator
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from commonplace.benchmarks.harness import describe, last_line
from commonplace.benchmarks.measures import mean
from commonplace.benchmarks.report import Sheet
from commonplace.dataclasses import asdict, dataclass
from commonplace.errors import NotFoundError, UsageError
from commonplace.types import Progress

MEGABYTE: Final = 1_000_000
COLUMNS: Final = ("what", "the contracts ask", "we aim at", "measured", "reached: contract", "aim")
_CELLS: Final = ("what", "contract", "aim", "measured", "contract_reached", "aim_reached")
"""What is below each column in the rows of a result."""
_SIGNS: Final = {"<": operator.lt, ">": operator.gt, "≥": operator.ge, "≤": operator.le}

Output = Mapping[str, Any]
"""The JSON form of what one benchmark measured."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must be: `sign` is one of <, >, ≤ and ≥."""

    sign: str
    value: float

    def is_met(self, measured: float) -> bool:
        """Return whether a figure is as it must be."""
        return bool(_SIGNS[self.sign](measured, self.value))


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        parts: the benchmarks that `read` is given, in this order.
        is_smaller: measured at a smaller size than what is asked for speaks of, which it therefore cannot reach.
    """

    name: str
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
_EVERYDAY_AIMS: Final = (
    (ALONE, "everyday", "paraphrase", "recall@5", 0.85),
    (ALONE, "everyday", "paraphrase", "recall@1", 0.55),
    (ALONE, "everyday", "keyword", "recall@5", 0.97),
    (ALONE, "everyday", "plain", "recall@5", 1.0),
    (ALONE, "everyday", "update", "recall@1", 0.70),
    (AMONG, "everyday among 1,000", "paraphrase", "recall@5", 0.50),
    (AMONG, "everyday among 1,000", "keyword", "recall@5", 0.90),
    (AMONG, "everyday among 1,000", "update", "recall@1", 0.60),
)
_CONVERSATION_AIMS: Final = (
    ("longmemeval", "LongMemEval turns, R@5", "recall@5", 0.75),
    ("longmemeval", "LongMemEval turns, R@10", "recall@10", 0.85),
    ("longmemeval", "LongMemEval sessions, R@1", "session_recall@1", 0.90),
    ("longmemeval", "LongMemEval sessions, all@5", "all_sessions@5", 0.92),
    ("locomo", "LoCoMo turns, R@5 (categories 1–4)", "recall@5", 0.66),
    ("locomo", "LoCoMo turns, R@10 (categories 1–4)", "recall@10", 0.77),
)
_NEAR: Final = ", 50"
"""Ends the names of the neighbourhoods of as many entities as are asked for by default."""
TIMEOUT_S: Final = 3_600
MAX_CALLS: Final = 20
"""Tools other than search are called so often at most: no figure is about them."""
_NAME_DATA: Final = "name the directory of the labelled sets with --data or COMMONPLACE_DATA"
_ONLY_FULL: Final = "only with --size full"
_CLONE: Final = Path(__file__).parents[1]
_NOT_QUICK: Final = "not with --size quick"
_EVERYDAY: Final = ("everyday/memories.jsonl", "everyday/questions.jsonl", "locomo10.json")
_CONVERSATIONS: Final = {"longmemeval": "longmemeval_dev.json", "locomo": "locomo10.json"}
_OF_A_SET: Final = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


@dataclass(frozen=True, slots=True)
class FigureOptions:
    """What to measure.

    Attributes:
        size: one of `SIZES`.
        data: directories that hold labelled sets of documents, each in a directory in the BEIR layout, or are such a
            directory themselves, and the files everyday/memories.jsonl and everyday/questions.jsonl, locomo10.json and
            longmemeval_dev.json.
    """

    size: str = "small"
    data: tuple[Path, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size not in SIZES:
            raise UsageError(f"size {self.size!r} is unknown", remedy=f"use one of {', '.join(SIZES)}")
        for directory in self.data:
            if not directory.is_dir():
                raise NotFoundError(f"{directory} is not a directory", remedy=_NAME_DATA)


@dataclass(frozen=True, slots=True)
class Part:
    """A benchmark to run: its name, the arguments of `commonplace benchmark`, or of Python, or why it is not run."""

    name: str
    arguments: tuple[str, ...] = ()
    why_not: str = ""


def run(options: FigureOptions, progress: Progress | None = None) -> dict[str, Any]:
    """Run every benchmark that a figure needs, one after the other, and return the JSON form of the table."""
    sizes, sets = SIZES[options.size], labelled_sets(options.data)
    begun = datetime.now(UTC)
    measured: dict[str, Any] = {}
    missing: dict[str, str] = {}
    planned = parts(options, sets)
    for number, part in enumerate(planned):
        if progress is not None:
            progress(f"measuring {part.name}", number, len(planned))
        if part.why_not:
            missing[part.name] = part.why_not
            continue
        try:
            measured[part.name] = _measured(part)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            missing[part.name] = str(error)
    rows = [row(figure, measured, missing) for figure in figures(sizes, list(sets))]
    if not sets:
        unmeasured = Figure("nDCG@10, precision@10, recall@10 on labelled sets", "", ("sets",), mean)
        rows.append(row(unmeasured, {}, {"sets": _NAME_DATA}))
    return {
        "benchmark": "figures",
        "machine": describe(),
        "date": begun.date().isoformat(),
        "minutes": round((datetime.now(UTC) - begun).total_seconds() / 60, 1),
        "size": options.size,
        "sizes": {**asdict(sizes), "passages": list(sizes.passages)},
        "seed": options.seed,
        "rows": rows,
        "parts": measured,
    }


def labelled_sets(data: Sequence[Path]) -> dict[str, Path]:
    """Return the directories in the BEIR layout among these and in them, by name; the first of a name counts."""
    sets: dict[str, Path] = {}
    for directory in data:
        for folder in (directory, *sorted(path for path in directory.iterdir() if path.is_dir())):
            if all((folder / name).is_file() for name in _OF_A_SET):
                sets.setdefault(folder.name, folder)
    return sets


def parts(options: FigureOptions, sets: Mapping[str, Path]) -> list[Part]:
    """Return the benchmarks to run, in order."""
    sizes = SIZES[options.size]
    seed = ("--seed", str(options.seed))
    plan = [_latency(passages, sizes, seed) for passages in searched(sizes)]
    memories, calls = ("--memories", str(sizes.memories)), ("--calls", str(sizes.calls))
    plan.append(_of_clone("memories", (*memories, *calls, *seed, "--json")))
    counts = ("--searches", str(sizes.searches), "--calls", str(min(sizes.calls, MAX_CALLS)))
    plan.append(Part("mcp", ("mcp", *memories, *counts, *seed)))
    numbers = map(str, (sizes.entities, sizes.relations, sizes.calls, options.seed))
    plan.append(_of_clone("graph", tuple(numbers), "made_graph"))
    plan += _everyday_parts(options)
    plan += [_conversations_part(form, options) for form in _CONVERSATIONS]
    for name, directory in sets.items():
        corpus, queries, qrels = (str(directory / file) for file in _OF_A_SET)
        files = ("--corpus", corpus, "--queries", queries, "--qrels", qrels)
        plan.append(Part(f"retrieval {name}", ("retrieval", *files)))
    return plan


def _of_clone(name: str, arguments: tuple[str, ...], module: str = "") -> Part:
    """Return a benchmark of the directory `benchmarks`, which is not installed."""
    return Part(name, ("-m", f"benchmarks.{module or name}", *arguments))


def _latency(passages: int, sizes: Sizes, seed: tuple[str, ...]) -> Part:
    name = f"latency {passages}"
    if passages not in sizes.passages:
        return Part(name, why_not=_ONLY_FULL)
    arguments = ("--passages", str(passages), "--queries", str(sizes.queries), *seed)
    # Beside the smallest the build of Tantivy alone is asked for; all others have searches alone in the table.
    if passages == sizes.passages[0]:
        return _of_clone(name, (*arguments, "--json"), "baselines")
    return Part(name, ("latency", *arguments))


def _everyday_parts(options: FigureOptions) -> list[Part]:
    memories, questions, among = (_file(options.data, name) for name in _EVERYDAY)
    if memories is None or questions is None:
        return [Part(name, why_not=_NAME_DATA) for name in (ALONE, AMONG)]
    command = ("recall", str(memories), str(questions))
    beside = Part(AMONG, why_not=_NAME_DATA if among is None else _NOT_QUICK)
    if among is not None and options.size != "quick":
        beside = Part(AMONG, (*command, "--among", str(among)))
    return [Part(ALONE, command), beside]


def _conversations_part(form: str, options: FigureOptions) -> Part:
    file = _file(options.data, _CONVERSATIONS[form])
    if file is None:
        return Part(form, why_not=_NAME_DATA)
    if form != "locomo" and options.size != "full":
        return Part(form, why_not=_ONLY_FULL)
    return Part(form, ("conversations", "--format", form, str(file), "--methods", "two-stage"))


def _file(data: Sequence[Path], name: str) -> Path | None:
    """Return the first file in these directories whose path ends so."""
    files = (path for directory in data for path in sorted(directory.rglob(name)))
    return next(files, None)


def _measured(part: Part) -> dict[str, Any]:
    """Return the JSON form of what a benchmark measured in a process of its own; a ValueError says why it failed."""
    is_of_clone = part.arguments[0] == "-m"
    command = [*part.arguments] if is_of_clone else ["-m", "commonplace", "benchmark", *part.arguments, "--json"]
    process = subprocess.run(
        [sys.executable, *command],
        cwd=_CLONE if is_of_clone else None,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if process.returncode != 0:
        raise ValueError(_complaint(process.stderr))
    output: dict[str, Any] = json.loads(process.stdout)
    return output


def _complaint(stderr: str) -> str:
    """Return the message of the error that a command told as JSON, or else the last line that it wrote."""
    last = last_line(stderr)
    try:
        return str(json.loads(last)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return last


def row(figure: Figure, measured: Mapping[str, Any], missing: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON form of one row: texts as they are shown, and the figure itself in `value`."""
    why_not = "; ".join(dict.fromkeys(missing[part] for part in figure.parts if part in missing))
    value = None
    if not why_not:
        try:
            value = figure.read(*(measured[part] for part in figure.parts))
        except LookupError as error:
            why_not = f"this system does not tell {error.args[0]}"
    bounds = {"contract": figure.contract, "aim": figure.aim}
    return {
        "what": figure.name,
        **{name: _asked(goal, figure.unit) for name, goal in bounds.items()},
        "measured": f"not measured: {why_not}" if value is None else _shown(value, figure.unit),
        **{f"{name}_reached": _reached(figure, goal, value) for name, goal in bounds.items()},
        "value": value if value is None else round(value, 4),
        "unit": "" if value is None else figure.unit,
    }


def _asked(goal: Bound | None, unit: str) -> str:
    if goal is None:
        return "–"
    text = f"{goal.value:g}" if not unit else _shown(goal.value, unit).removeprefix("+")
    return f"{goal.sign} {text}"


def _reached(figure: Figure, goal: Bound | None, value: float | None) -> str:
    if goal is None or value is None:
        return "–"
    if figure.is_smaller:
        return "smaller size"
    return "yes" if goal.is_met(value) else "no"


def _shown(value: float, unit: str) -> str:
    """Return a figure with its unit, to three digits; a percentage is a gain and has a sign."""
    if unit == "share":
        return f"{100 * value:.3g} %"
    if not unit:
        return f"{value:.3f}"
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    sign = "+" if unit == "%" and value > 0 else ""
    return f"{sign}{number.replace('-', '−')} {unit}"


def sheet(result: Mapping[str, Any]) -> Sheet:
    """Return the table of figures to reach, as it is shown."""
    title = f"Figures to reach, measured on {result['date']} in {result['minutes']:g} minutes, size {result['size']}"
    return Sheet(title, COLUMNS, tuple(tuple(cells[name] for name in _CELLS) for cells in result["rows"]))


def figures(sizes: Sizes, sets: Sequence[str]) -> Iterator[Figure]:
    """Yield the figures in the order of the table; `sets` names labelled sets of documents."""
    yield from _building(sizes)
    yield from _serving(sizes)
    yield from _everyday()
    yield from _conversations()
    for name in sets:
        yield from _labelled(name)
    if sets:
        parts = tuple(f"retrieval {name}" for name in sets)
        yield Figure("nDCG@10, mean gain over bm25", "%", parts, _mean_gain, aim=Bound("≥", 10))


def searched(sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes that have a row: those that are measured, and those that are asked for beyond them."""
    return ASKED.passages if sizes.passages[0] == ASKED.passages[0] else sizes.passages


def _building(sizes: Sizes) -> Iterator[Figure]:
    documents = sizes.passages[0]
    part, is_smaller = (f"latency {documents}",), documents < ASKED.passages[0]
    of, size = f"{documents:,} documents", _at("corpus", "size_to_text")
    yield Figure(f"index build, {of}", "s", part, _at("corpus", "build_s"), Bound("<", 5), Bound("<", 3), is_smaller)
    yield Figure("the same, against Tantivy alone", "×", part, _at("ratios", "tantivy", "build"))
    yield Figure(f"store and index, {of}", "MB", part, _disk, Bound("<", 500), None, is_smaller)
    yield Figure("the same, against the text", "×", part, size, None, Bound("<", 3), is_smaller)
    for passages in searched(sizes):
        label, read = f"search p95, {passages:,} passages", _at("methods", "two-stage", "p95_ms")
        contract = Bound("<", 150) if passages == documents else None
        aim = _SEARCH.get(passages, _SEARCH[ASKED.passages[0]])
        yield Figure(label, "ms", (f"latency {passages}",), read, contract, aim, passages not in _SEARCH)


def _serving(sizes: Sizes) -> Iterator[Figure]:
    is_smaller = sizes.memories < ASKED.memories
    of, part = f"{sizes.memories:,} memories", ("memories",)
    recall, store = _at("recall", "p95_ms"), _at("store", "p95_ms")
    yield Figure(f"recall p95, {of}", "ms", part, recall, Bound("<", 100), Bound("<", 25), is_smaller)
    yield Figure(f"store p95, durable, {of}", "ms", part, store, Bound("<", 50), Bound("<", 40), is_smaller)
    label = f"graph, depth 2, {sizes.entities:,} nodes, {sizes.relations:,} edges, p95"
    is_small_graph = sizes.relations < ASKED.relations
    yield Figure(label, "ms", ("graph",), _around, Bound("<", 200), Bound("<", 10), is_small_graph)
    label, part = f"resident, MCP process, {of}, after {sizes.searches:,} searches", ("mcp",)
    resident, private = (_at("memory", "after_searches", f"{name}_bytes") for name in ("resident", "anonymous"))
    yield Figure(label, "MB", part, lambda out: resident(out) / MEGABYTE, Bound("<", 50), Bound("<", 50), is_smaller)
    yield Figure("of which the process's own, anonymous", "MB", part, lambda out: private(out) / MEGABYTE)
    start, first = Bound("<", 150), _at("start", "first_search_ms")
    yield Figure("MCP process, start to first answer", "ms", part, first, None, start, is_smaller)
    label, part = "library, start of the process to first answer", (f"latency {sizes.passages[0]}",)
    yield Figure(label, "ms", part, _at("process", "first_answer_ms"), None, start, is_smaller)


def _everyday() -> Iterator[Figure]:
    for part, of, style, name, least in _EVERYDAY_AIMS:
        read = _at("styles", style, name)
        yield Figure(f"{of}, {style}, {name.replace('recall', 'R')}", "", (part,), read, aim=Bound("≥", least))
    yield Figure("everyday, update, newest above overtaken", "share", (ALONE,), _newest, aim=Bound("≥", 0.90))
    quiet = _at("styles", "absent", "nothing_or_weak")
    yield Figure("everyday, absent, nothing or weak alone", "share", (ALONE,), quiet, aim=Bound("≥", 0.60))
    lost = _at("styles", "all with an answer", "nothing")
    yield Figure("everyday, with an answer, nothing", "share", (ALONE,), lost, aim=Bound("≤", 0.05))
    for style, least in (("keyword", 0.80), ("plain", 0.95), ("update", 0.85), ("paraphrase", 0.35)):
        read = _at("styles", style, "likely_or_sure")
        yield Figure(f"everyday, {style}, likely or sure", "share", (ALONE,), read, aim=Bound("≥", least))


def _conversations() -> Iterator[Figure]:
    for part, label, name, least in _CONVERSATION_AIMS:
        yield Figure(label, "", (part,), _at("methods", "two-stage", name), aim=Bound("≥", least))
    # The short turns of LoCoMo weigh little beside their vectors.
    for part, of, aim in (("longmemeval", "LongMemEval", Bound("<", 5)), ("locomo", "LoCoMo", None)):
        size = _at("corpus", "size_to_text")
        yield Figure(f"store and index of {of}, against the text", "×", (part,), size, aim=aim)


def _labelled(name: str) -> Iterator[Figure]:
    part = (f"retrieval {name}",)
    if name in _NDCG:
        read = _at("methods", "two-stage", "ndcg@10")
        yield Figure(f"nDCG@10 on {name}", "", part, read, aim=Bound("≥", _NDCG[name]))
    yield Figure(f"nDCG@10 on {name}, gain over the better of bm25 and semantic", "%", part, _gain, Bound(">", 0))
    yield Figure(f"nDCG@10 on {name}, gain over bm25", "%", part, _gain_over_bm25, aim=Bound("≥", 0))
    yield Figure(f"precision@10 on {name}", "share", part, _at("methods", "two-stage", "precision@10"), Bound(">", 0.8))
    yield Figure(f"recall@10 on {name}", "share", part, _at("methods", "two-stage", "recall@10"), Bound(">", 0.7))


def _at(*path: str) -> Callable[[Output], float]:
    def read(output: Output) -> float:
        value: Any = output
        for name in path:
            value = value[name]
        return float(value)

    return read


def _disk(output: Output) -> float:
    return float(output["corpus"]["store_bytes"] + output["corpus"]["index_bytes"]) / MEGABYTE


def _around(output: Output) -> float:
    """Return the worst p95 of any entity, of the ends of facts, and of the greatest hubs."""
    return max(float(row["p95_ms"]) for start, row in output["neighbourhood"].items() if start.endswith(_NEAR))


def _newest(output: Output) -> float:
    row = output["styles"]["update"]
    return float(row["newest_first"]) / max(1.0, float(row["with_overtaken"]))


def _gain(output: Output, over: tuple[str, ...] = ("bm25", "semantic")) -> float:
    """Return by how many percent the two-stage method is better than the best of others."""
    values = {method: float(row["ndcg@10"]) for method, row in output["methods"].items()}
    best = max(values[method] for method in over)
    return 100.0 * (values["two-stage"] / best - 1.0) if best else 0.0


def _gain_over_bm25(output: Output) -> float:
    return _gain(output, ("bm25",))


def _mean_gain(*outputs: Output) -> float:
    return mean([_gain_over_bm25(output) for output in outputs])
