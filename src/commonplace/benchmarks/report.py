"""Lay out what a benchmark measured as tables of text, or draw it with the extra `commonplace[plot]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commonplace.benchmarks.figures import COLUMNS, cells_of
from commonplace.errors import MissingExtraError, UsageError

_MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: a title, column names and rows of as many cells; the first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(result: Mapping[str, Any]) -> list[Sheet]:
    """Return the tables of what the `run` of one of the benchmarks returned, the main one first."""
    alone = {
        "mcp": _mcp,
        "figures": _reached,
        "recall": _recall,
    }
    if result["benchmark"] in alone:
        return alone[result["benchmark"]](result)
    tables = {"retrieval": _retrieval, "conversations": _conversations, "latency": _latency}
    return [*tables[result["benchmark"]](result), *_build(result)]


def _mcp(result: Mapping[str, Any]) -> list[Sheet]:
    times = {**result["tools"], "a ping": result["floor"]["ping"], "a bare commit": result["floor"]["commit"]}
    return [
        Sheet(
            f"Tools, {result['memories']['stored']:,} memories stored before",
            ("call", "p50 ms", "p95 ms"),
            tuple(
                (name, _cell("p50_ms", row["p50_ms"]), _cell("p95_ms", row["p95_ms"])) for name, row in times.items()
            ),
        ),
        _pairs("From the start of the process", result["start"]),
        _memory(result["memory"]),
        _pairs("What a model reads in every session", result["told"]),
    ]


def _reached(result: Mapping[str, Any]) -> list[Sheet]:
    title = f"Figures to reach, measured on {result['date']} in {result['minutes']:g} minutes, size {result['size']}"
    return [Sheet(title, COLUMNS, tuple(cells_of(result)))]


def _recall(result: Mapping[str, Any]) -> list[Sheet]:
    names = ("questions", "recall@1", "recall@5", "nothing", "nothing_or_weak", "likely_or_sure")
    overtaken = ("with_overtaken", "newest_first", "overtaken_first")
    others = result["corpus"]["others_each"]
    where = f"among {others:,} turns of other talk" if others else "alone"
    return [
        _times(f"Found, each person's memories {where}", result["styles"], (*names, *overtaken)),
        _pairs(
            "Stored and asked", {**result["corpus"], **result["time"], "peak_memory_bytes": result["peak_memory_bytes"]}
        ),
    ]


def _times(title: str, rows: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> Sheet:
    return Sheet(
        title,
        ("what", *map(_heading, names)),
        tuple(
            (where, *(_cell(name, row[name]) if name in row else "–" for name in names)) for where, row in rows.items()
        ),
    )


def _memory(stages: Mapping[str, Mapping[str, int]]) -> Sheet:
    sizes = {stage: sizes for stage, sizes in stages.items() if sizes}
    names = dict.fromkeys(name for each in sizes.values() for name in each)
    return Sheet(
        "Memory of the process",
        ("when", *map(_heading, names)),
        tuple((_heading(stage), *(_cell(name, each[name]) for name in names)) for stage, each in sizes.items()),
    )


def _retrieval(result: Mapping[str, Any]) -> list[Sheet]:
    return [_by_method(f"Found, {result['queries']['asked']} queries", result["methods"])]


def _conversations(result: Mapping[str, Any]) -> list[Sheet]:
    methods = result["methods"]
    flat = {name: {key: value for key, value in row.items() if key != "by_type"} for name, row in methods.items()}
    turns = {
        name: {key: value for key, value in row.items() if not key.startswith(("session", "all_s"))}
        for name, row in flat.items()
    }
    sessions = {
        name: {key: value for key, value in row.items() if key.startswith(("session", "all_s"))}
        for name, row in flat.items()
    }
    shown = {
        "questions": "questions",
        "recall@5": "recall@5",
        "recall@10": "recall@10",
        "session_recall@5": "session@5",
        "all_evidence@5": "all@5",
    }
    return [
        _by_method("Evidence found, by turn", turns),
        _by_method("Evidence found, by session", sessions),
        *(
            Sheet(
                f"By type of question, {method}",
                ("type", *shown.values()),
                tuple((name, *(_cell(key, kind[key]) for key in shown)) for name, kind in row["by_type"].items()),
            )
            for method, row in methods.items()
        ),
    ]


def _latency(result: Mapping[str, Any]) -> list[Sheet]:
    columns = ("p50_ms", "p95_ms", "max_ms")
    rows = [
        (label, *(_cell(key, times[key]) for key in columns))
        for method, figures in result["methods"].items()
        for label, times in [(method, figures), *((f"  {name}", stage) for name, stage in figures["stages"].items())]
    ]
    tables = [Sheet("Search, whole and by stage", ("method", *map(_heading, columns)), tuple(rows))]
    tables.append(_pairs("A process of its own", result["process"]))
    if "baselines" in result:
        names = ("build_s", "bytes", *columns)
        cells = [
            (name, *(_cell(key, figures[key]) if key in figures else "–" for key in names))
            for name, figures in result["baselines"].items()
        ]
        tables.append(Sheet("The same work by simpler means", ("means", *map(_heading, names)), tuple(cells)))
        ratios = [
            (name, *(f"{row[key]:g} ×" if key in row else "–" for key in ("build", "p50", "p95")))
            for name, row in result["ratios"].items()
        ]
        tables.append(Sheet("Ours in multiples of theirs", ("means", "build", "p50", "p95"), tuple(ratios)))
    return tables


def _build(result: Mapping[str, Any]) -> list[Sheet]:
    build = dict(result["corpus"])
    return [_pairs("Build", {**build, "peak_memory_bytes": result["peak_memory_bytes"]})]


def _by_method(title: str, methods: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """Lay out one measure a row: there are more measures than methods, and a terminal is narrow."""
    names = dict.fromkeys(name for row in methods.values() for name in row)
    rows = tuple((_heading(name), *(_cell(name, row[name]) for row in methods.values())) for name in names)
    return Sheet(title, ("measure", *methods), rows)


def _pairs(title: str, values: Mapping[str, Any]) -> Sheet:
    return Sheet(
        title, ("what", "value"), tuple((_heading(name), _cell(name, value)) for name, value in values.items())
    )


def _heading(name: str) -> str:
    """Return a column's name with its unit: `p95_ms` becomes "p95 ms", bytes are shown as MB."""
    text = name.replace("_bytes", "_MB") if name != "bytes" else "MB"
    return text.replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith("bytes"):
        return f"{value / _MEGABYTE:.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if "@" in name or name == "mrr" else f"{value:.2f}"


def columns_of(methods: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return the names of the quality measures (0–1) that every method has, for a plot."""
    rows = list(methods.values())
    return [name for name in rows[0] if ("@" in name or name == "mrr") and all(name in row for row in rows)]


def check_plot(target: Path) -> None:
    """Refuse early, before an hour of measuring, what `plot` could not do.

    Raises:
        MissingExtraError: matplotlib is not installed.
        UsageError: the file's ending is not one that matplotlib writes, or its directory does not exist.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            "a plot needs matplotlib", remedy="install it with: pip install 'commonplace[plot]'"
        ) from error
    endings = sorted(Figure().canvas.get_supported_filetypes())
    if target.suffix.removeprefix(".").lower() not in endings:
        raise UsageError(f"cannot plot to {target}", remedy=f"use one of the endings {', '.join(endings)}")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target.parent} is not a directory", remedy="create it first")


def plot(result: Mapping[str, Any], target: Path) -> None:
    """Write a bar chart of every quality measure by method; a result without any shows its latencies.

    Where recall was measured by the number of hits, its curve stands beside it, and quality against latency.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    check_plot(target)
    from matplotlib.figure import Figure

    methods = result["methods"]
    names = columns_of(methods)
    width = max(6.0, 1.1 * len(names))
    curves = result.get("curves")
    drawn: list[tuple[Any, Mapping[str, Any]]] = []
    if curves:
        drawn = [(_draw_curves, curves), (_draw_trade, methods)]
    figure = Figure(figsize=(width + 5.0 * len(drawn), 4.5), layout="constrained")
    bars, *others = figure.subplots(1, 1 + len(drawn)) if drawn else [figure.add_subplot()]
    _draw_bars(bars, methods, names)
    for axes, (draw, rows) in zip(others, drawn, strict=True):
        draw(axes, rows)
    figure.suptitle(f"benchmark {result['benchmark']}, {result['embedder']}")
    figure.savefig(target)


def _draw_bars(axes: Any, methods: Mapping[str, Any], names: Sequence[str]) -> None:
    unit = "share, higher is better"
    if not names:
        names, unit = ["p50_ms", "p95_ms", "max_ms"], "ms, lower is better"
    width = 0.8 / len(methods)
    for number, (method, row) in enumerate(methods.items()):
        places = [place + (number - (len(methods) - 1) / 2) * width for place in range(len(names))]
        axes.bar(places, [row[name] for name in names], width, label=method)
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    axes.set_ylabel(unit)
    axes.legend()


def _draw_curves(axes: Any, curves: Mapping[str, Mapping[str, float]]) -> None:
    for method, curve in curves.items():
        depths = [int(value) for value in _values_of(curve, "recall")]
        axes.plot(depths, list(_values_of(curve, "recall").values()), marker="o", label=method)
    axes.set_xscale("log")
    axes.set_xticks(depths, [str(depth) for depth in depths])
    axes.minorticks_off()
    axes.set_xlabel("hits looked at")
    axes.set_ylabel("recall, higher is better")
    axes.legend()


def _values_of(curve: Mapping[str, float], name: str) -> dict[float, float]:
    """Return the values of a curve that are called `name@x`, by x."""
    return {float(key.rpartition("@")[2]): value for key, value in curve.items() if key.startswith(f"{name}@")}


def _draw_trade(axes: Any, methods: Mapping[str, Any]) -> None:
    """Draw each method as a point at its median latency, with a line to the 95th percentile."""
    for method, row in methods.items():
        beyond = [[0.0], [max(0.0, row["p95_ms"] - row["p50_ms"])]]
        axes.errorbar([row["p50_ms"]], [row["ndcg@10"]], xerr=beyond, marker="o", capsize=3, label=method)
    axes.set_xlabel("ms, median to 95th percentile, lower is better")
    axes.set_ylabel("ndcg@10, higher is better")
    axes.legend()
