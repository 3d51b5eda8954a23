"""Lay out what a benchmark measured as tables of text, or draw it with the extra `commonplace[plot]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import MissingExtraError, UsageError

_MEGABYTE: Final = 1_000_000
_NOT_SHOWN: Final = frozenset({"benchmark", "machine", "embedder", "curves"})
_MAX_COLUMNS: Final = 7
"""A table with more is turned on its side: a terminal is narrow."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table: a title, column names and rows of as many cells; the first column is text, the others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheets(result: Mapping[str, Any]) -> list[Sheet]:
    """Return the tables of what a benchmark measured: one for each part of its JSON form that holds no further ones."""
    return list(_sheets("", {name: value for name, value in result.items() if name not in _NOT_SHOWN}))


def _sheets(title: str, value: Mapping[str, Any]) -> Iterator[Sheet]:
    plain = {name: each for name, each in value.items() if not isinstance(each, Mapping | list)}
    if plain:
        rows = tuple((_heading(name), _cell(name, each)) for name, each in plain.items())
        yield Sheet(title or "In all", ("what", "value"), rows)
    for name, each in value.items():
        inner = f"{title}, {_heading(name)}" if title else _heading(name).capitalize()
        if isinstance(each, list):
            yield from _table(inner, {str(number): row for number, row in enumerate(each, start=1)})
        elif isinstance(each, Mapping) and each and all(isinstance(row, Mapping) for row in each.values()):
            yield from _table(inner, each)
        elif isinstance(each, Mapping):
            yield from _sheets(inner, each)


def _table(title: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Sheet]:
    flat = {
        what: {name: _cell(name, each) for name, each in row.items() if not isinstance(each, Mapping | list)}
        for what, row in rows.items()
    }
    names = list(dict.fromkeys(name for row in flat.values() for name in row))
    if len(names) > _MAX_COLUMNS:
        turned = tuple((_heading(name), *(row.get(name, "–") for row in flat.values())) for name in names)
        yield Sheet(title, ("what", *map(_heading, flat)), turned)
    elif names:
        lines = tuple((_heading(what), *(row.get(name, "–") for name in names)) for what, row in flat.items() if row)
        yield Sheet(title, ("what", *map(_heading, names)), lines)
    for what, row in rows.items():
        inside = {name: each for name, each in row.items() if isinstance(each, Mapping | list)}
        yield from _sheets(f"{title}, {_heading(what)}", inside)


def _heading(name: str) -> str:
    """Return a name with its unit: `p95_ms` becomes "p95 ms", bytes are shown as MB."""
    return ("MB" if name == "bytes" else name.replace("_bytes", "_MB")).replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if name.endswith("bytes"):
        return f"{value / _MEGABYTE:.1f}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def check_plot(target: Path) -> None:
    """Refuse early, before an hour of measuring, what `plot` could not do."""
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
    """
    from matplotlib.figure import Figure

    methods, curves = result["methods"], result.get("curves")
    known = [name for name in next(iter(methods.values())) if "@" in name or name == "mrr"]
    qualities = [name for name in known if all(name in row for row in methods.values())]
    names = qualities or ["p50_ms", "p95_ms", "max_ms"]
    size = (max(6.0, 1.1 * len(qualities)) + (10.0 if curves else 0.0), 4.5)
    figure = Figure(figsize=size, layout="constrained")
    bars, *others = figure.subplots(1, 3) if curves else [figure.add_subplot()]
    width = 0.8 / len(methods)
    for number, (method, row) in enumerate(methods.items()):
        places = [place + (number - (len(methods) - 1) / 2) * width for place in range(len(names))]
        bars.bar(places, [row[name] for name in names], width, label=method)
    bars.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=30, ha="right")
    bars.set_ylabel("share, higher is better" if qualities else "ms, lower is better")
    if curves:
        by_depth, trade = others
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
            beyond = [[0.0], [max(0.0, row["p95_ms"] - row["p50_ms"])]]
            trade.errorbar([row["p50_ms"]], [row["ndcg@10"]], xerr=beyond, marker="o", capsize=3, label=method)
        trade.set_xlabel("ms, median to 95th percentile, lower is better")
        trade.set_ylabel("ndcg@10, higher is better")
    for axes in (bars, *others):
        axes.legend()
    figure.suptitle(f"benchmark {result['benchmark']}, {result['embedder']}")
    figure.savefig(target)
