"""Lay out what a benchmark measured as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    from commonplace.benchmarks.figures import COLUMNS, cells_of

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
    asked = result["queries"]["asked"]
    return [
        _by_method(f"Found, {asked} queries", result["methods"]),
        *([_significance(result["significance"])] if result["significance"] else []),
        *(_thresholds(method, rows) for method, rows in result["thresholds"].items()),
        Sheet(
            "What the cut does where none is named",
            ("method", *(_CUT[name] for name in next(iter(result["cut"].values())))),
            tuple((method, *map(_share, row.values())) for method, row in result["cut"].items()),
        ),
        *(_reliability(method, row) for method, row in result["calibration"].items() if row["hits"]),
    ]


_CUT = {"lost": "first relevant hit lost", "nothing": "strange left unanswered"}


def _thresholds(method: str, rows: Sequence[Mapping[str, float]]) -> Sheet:
    more = {"nothing": "strange: none"} if "nothing" in rows[0] else {}
    shown = {"first": "first relevant hit", "relevant": "relevant hits", "irrelevant": "other hits", **more}
    return Sheet(
        f"Kept by a threshold on the score, {method}",
        ("threshold", *shown.values()),
        tuple((f"{row['threshold']:g}", *(_share(row[name]) for name in shown)) for row in rows),
    )


def _reliability(method: str, row: Mapping[str, Any]) -> Sheet:
    errors = f"calibration error {row['ece']:.3f}, Brier {row['brier']:.3f} against {row['brier_constant']:.3f}"
    return Sheet(
        f"Probability of relevance of the first hits, {method}: {errors}",
        ("from", "to", "hits", "said", "relevant"),
        tuple(
            (f"{each['from']:.3f}", f"{each['to']:.3f}", f"{each['hits']:,}", *(f"{each[n]:.3f}" for n in _SAID))
            for each in row["bins"]
        ),
    )


_SAID = ("said", "relevant")


def _significance(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    return Sheet(
        f"Differences, by {rows[0]['resamples']:,} paired samples",
        ("methods", "measure", "difference", "95 % from", "to", "p"),
        tuple(
            (
                f"{row['method']} − {row['against']}",
                _heading(row["measure"]),
                *(f"{row[name]:+.3f}" for name in ("difference", "low", "high")),
                f"{row['p']:.4f}",
            )
            for row in rows
        ),
    )


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
        *(_consolidated(result["consolidation"]) if "consolidation" in result else ()),
        *(
            Sheet(
                f"By type of question, {method}",
                ("type", *shown.values()),
                tuple((name, *(_cell(key, kind[key]) for key in shown)) for name, kind in row["by_type"].items()),
            )
            for method, row in methods.items()
        ),
    ]


def _consolidated(result: Mapping[str, Any]) -> list[Sheet]:
    shown = ("recall@5", "recall@10", "recall@50", "session_recall@5")
    recall = {f"{_heading(step)}, {name}": row for step, rows in result["recall"].items() for name, row in rows.items()}
    lived = "recalled by each turn, " if result["recalling"] else ""
    title = f"{lived}consolidated {result['days_later']:g} days after the last turn"
    return [
        _times(f"Evidence found, {title}", recall, shown),
        _times(
            "What the agents did",
            result["done"],
            list(dict.fromkeys(n for row in result["done"].values() for n in row)),
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
    parts = {"whole": {**result["profile"]["whole"], "share": 1.0}, **result["profile"]["parts"]}
    tables.append(_times("Where the time goes, each part without the others", parts, ("p50_ms", "mean_ms", "share")))
    tables.append(_pairs("Going through the sign bits, and adding up as many bytes", result["scan"]))
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
    if name == "share":
        return _share(value)
    if name.endswith("bytes"):
        return f"{value / _MEGABYTE:.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if "@" in name or name == "mrr" else f"{value:.2f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def columns_of(methods: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return the names of the quality measures (0–1) that every method has, for a plot."""
    rows = list(methods.values())
    return [name for name in rows[0] if ("@" in name or name == "mrr") and all(name in row for row in rows)]
