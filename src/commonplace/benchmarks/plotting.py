"""Draw what a benchmark measured; needs the extra `commonplace[plot]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from commonplace.benchmarks.report import columns_of
from commonplace.errors import MissingExtraError, UsageError


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

    Where recall was measured by the number of hits, its curve stands beside it, and quality against latency; where
    questions were asked that nothing answers, what each threshold on the score does as well.

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
        drawn += [(_draw_abstaining, curves)] if any("nothing@0.5" in curve for curve in curves.values()) else []
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


def _draw_abstaining(axes: Any, curves: Mapping[str, Mapping[str, float]]) -> None:
    """Draw by threshold how many first relevant hits stay, and, dashed, how many unanswerable get nothing."""
    for number, (method, curve) in enumerate(curves.items()):
        kept, nothing = _values_of(curve, "first"), _values_of(curve, "nothing")
        axes.plot(list(kept), list(kept.values()), color=f"C{number}", label=f"{method}, first relevant kept")
        axes.plot(list(nothing), list(nothing.values()), color=f"C{number}", linestyle="--", label=f"{method}, nothing")
    axes.set_xlabel("threshold on the score")
    axes.set_ylabel("share, higher is better")
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
