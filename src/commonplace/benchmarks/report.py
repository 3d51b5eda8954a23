"""Format the figures of a benchmark as text tables, or plot them with the extra `commonplace[plot]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import MissingExtraError, UsageError

_MEGABYTE: Final = 1_000_000
_NOT_SHOWN: Final = frozenset({"benchmark", "machine", "embedder", "curves"})
_MAX_COLUMNS: Final = 7
"""Maximum number of columns: wider tables are transposed to fit a terminal."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table: a title, column names and rows of cells. The first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(result: Mapping[str, Any]) -> list[Sheet]:
    """Return the figures of a benchmark as tables, one for each part of the JSON without nested parts."""
    return list(_sheets("", {name: value for name, value in result.items() if name not in _NOT_SHOWN}))


def _sheets(title: str, value: Mapping[str, Any]) -> Iterator[Sheet]:
    plain = {name: cell for name, cell in value.items() if not isinstance(cell, Mapping | list)}
    if plain:
        rows = tuple((_heading(name), _cell(name, cell)) for name, cell in plain.items())
        yield Sheet(title or "In all", ("what", "value"), rows)
    for name, part in value.items():
        heading = f"{title}, {_heading(name)}" if title else _heading(name).capitalize()
        if isinstance(part, list):
            yield from _table(heading, {str(number): row for number, row in enumerate(part, start=1)})
        elif isinstance(part, Mapping) and part and all(isinstance(row, Mapping) for row in part.values()):
            yield from _table(heading, part)
        elif isinstance(part, Mapping):
            yield from _sheets(heading, part)


def _table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Sheet]:
    flat = {
        key: {name: _cell(name, cell) for name, cell in row.items() if not isinstance(cell, Mapping | list)}
        for key, row in rows.items()
    }
    names = list(dict.fromkeys(name for row in flat.values() for name in row))
    if len(names) > _MAX_COLUMNS:
        transposed = tuple((_heading(name), *(row.get(name, "–") for row in flat.values())) for name in names)
        yield Sheet(title, ("what", *map(_heading, flat)), transposed)
    elif names:
        lines = tuple((_heading(key), *(row.get(name, "–") for name in names)) for key, row in flat.items() if row)
        yield Sheet(title, ("what", *map(_heading, names)), lines)
    for key, row in rows.items():
        nested = {name: cell for name, cell in row.items() if isinstance(cell, Mapping | list)}
        yield from _sheets(f"{title}, {_heading(key)}", nested)


def _heading(name: str) -> str:
    """Return a name as a heading: `p95_ms` becomes "p95 ms", and bytes become MB."""
    return ("MB" if name == "bytes" else name.replace("_bytes", "_MB")).replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith("bytes"):
        return f"{value / _MEGABYTE:.1f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def check_plot(target: Path) -> None:
    """Check that `plot` can write a file: it would otherwise fail after an hour of measuring."""
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
    """Write a bar chart of every quality measure by method, or of the latencies if there is no quality measure.

    If recall was measured by number of hits, its curve and a chart of quality against latency are added.
    """
    from matplotlib.figure import Figure

    methods, curves = result["methods"], result.get("curves")
    measured = [name for name in next(iter(methods.values())) if "@" in name or name == "mrr"]
    qualities = [name for name in measured if all(name in row for row in methods.values())]
    names = qualities or ["p50_ms", "p95_ms", "max_ms"]
    size = (max(6.0, 1.1 * len(qualities)) + (10.0 if curves else 0.0), 4.5)
    figure = Figure(figsize=size, layout="constrained")
    bars, *panels = figure.subplots(1, 3) if curves else [figure.add_subplot()]
    width = 0.8 / len(methods)
    for number, (method, row) in enumerate(methods.items()):
        positions = [tick + (number - (len(methods) - 1) / 2) * width for tick in range(len(names))]
        bars.bar(positions, [row[name] for name in names], width, label=method)
    bars.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    bars.set_ylabel("share, higher is better" if qualities else "ms, lower is better")
    if curves:
        by_depth, trade = panels
        for method, curve in curves.items():
            depths = [int(name.partition("@")[2]) for name in curve]
            by_depth.plot(depths, list(curve.values()), marker="o", label=method)
        by_depth.set_xscale("log")
        by_depth.set_xticks(depths, [str(depth) for depth in depths])
        by_depth.minorticks_off()
        by_depth.set_xlabel("hits looked at")
        by_depth.set_ylabel("recall, higher is better")
        # Each method is a point at its median latency, with a line to the 95th percentile.
        for method, row in methods.items():
            spread = [[0.0], [max(0.0, row["p95_ms"] - row["p50_ms"])]]
            trade.errorbar([row["p50_ms"]], [row["ndcg@10"]], xerr=spread, marker="o", capsize=3, label=method)
        trade.set_xlabel("ms, median to 95th percentile, lower is better")
        trade.set_ylabel("ndcg@10, higher is better")
    for axes in (bars, *panels):
        axes.legend()
    figure.suptitle(f"benchmark {result['benchmark']}, {result['embedder']}")
    figure.savefig(target)
