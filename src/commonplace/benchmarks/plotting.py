"""Draw what a benchmark measured, one group of bars a measure; needs the extra `commonplace[plot]`."""

from __future__ import annotations

from collections.abc import Mapping
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

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    check_plot(target)
    from matplotlib.figure import Figure

    methods = result["methods"]
    names = columns_of(methods)
    unit = "share, higher is better"
    if not names:
        names, unit = ["p50_ms", "p95_ms", "max_ms"], "ms, lower is better"
    figure = Figure(figsize=(max(6.0, 1.1 * len(names)), 4.5), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(methods)
    for number, (method, row) in enumerate(methods.items()):
        places = [place + (number - (len(methods) - 1) / 2) * width for place in range(len(names))]
        axes.bar(places, [row[name] for name in names], width, label=method)
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    axes.set_ylabel(unit)
    axes.set_title(f"benchmark {result['benchmark']}, {result['embedder']}")
    axes.legend()
    figure.savefig(target)
