"""Measure the figures to reach, each benchmark in a process of its own, and lay them beside what is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from commonplace.benchmarks import targets
from commonplace.benchmarks.machine import describe
from commonplace.benchmarks.targets import SIZES, Bound, Figure, Sizes
from commonplace.errors import UsageError
from commonplace.types import Progress

TIMEOUT_S: Final = 3_600
COLUMNS: Final = ("what", "the contracts ask", "we aim at", "measured", "reached: contract", "aim")
MOST_CALLS: Final = 20
"""Tools other than search are called so often at most: no figure is about them."""
_NAME_DATA: Final = "name the directory of the labelled sets with --data or COMMONPLACE_DATA"
_ONLY_FULL: Final = "only with --size full"
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
                raise UsageError(f"{directory} is not a directory", remedy=_NAME_DATA)


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
    wanted = parts(options, sets)
    for number, part in enumerate(wanted):
        if progress is not None:
            progress(f"measuring {part.name}", number, len(wanted))
        if part.why_not:
            missing[part.name] = part.why_not
            continue
        try:
            measured[part.name] = _measured(part)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            missing[part.name] = str(error)
    rows = [row(figure, measured, missing) for figure in targets.figures(sizes, list(sets))]
    if not sets:
        rows.append(_not_measured("nDCG@10, precision@10, recall@10 on labelled sets", _NAME_DATA))
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
    found: dict[str, Path] = {}
    for directory in data:
        for each in (directory, *sorted(path for path in directory.iterdir() if path.is_dir())):
            if all((each / name).is_file() for name in _OF_A_SET):
                found.setdefault(each.name, each)
    return found


def parts(options: FigureOptions, sets: Mapping[str, Path]) -> list[Part]:
    """Return the benchmarks to run, in order."""
    sizes = SIZES[options.size]
    seed = ("--seed", str(options.seed))
    found = [_latency(passages, sizes, seed) for passages in targets.searched(sizes)]
    memories = ("--memories", str(sizes.memories))
    numbers = map(str, (sizes.memories, sizes.calls, options.seed))
    found.append(Part("memories", ("-m", "commonplace.benchmarks.memories", *numbers)))
    each = ("--searches", str(sizes.searches), "--calls", str(min(sizes.calls, MOST_CALLS)))
    found.append(Part("mcp", ("mcp", *memories, *each, *seed)))
    numbers = map(str, (sizes.entities, sizes.relations, sizes.calls, options.seed))
    found.append(Part("graph", ("-m", "commonplace.benchmarks.graph", *numbers)))
    found += _everyday_parts(options)
    found += [_conversations_part(form, options) for form in _CONVERSATIONS]
    for name, directory in sets.items():
        corpus, queries, qrels = (str(directory / file) for file in _OF_A_SET)
        given = ("--corpus", corpus, "--queries", queries, "--qrels", qrels, *seed)
        found.append(Part(targets.retrieval(name), ("retrieval", *given)))
    return found


def _latency(passages: int, sizes: Sizes, seed: tuple[str, ...]) -> Part:
    name = targets.latency(passages)
    if passages not in sizes.passages:
        return Part(name, why_not=_ONLY_FULL)
    given = ("--passages", str(passages), "--queries", str(sizes.queries), *seed)
    # Beside the smallest the build of Tantivy alone is asked for; all others have searches alone in the table.
    beside = () if passages == sizes.passages[0] else ("--no-baselines",)
    return Part(name, ("latency", *given, *beside))


def _everyday_parts(options: FigureOptions) -> list[Part]:
    memories, questions, among = (_file(options.data, name) for name in _EVERYDAY)
    if memories is None or questions is None:
        return [Part(name, why_not=_NAME_DATA) for name in (targets.ALONE, targets.AMONG)]
    given = ("recall", str(memories), str(questions))
    beside = Part(targets.AMONG, why_not=_NAME_DATA if among is None else _NOT_QUICK)
    if among is not None and options.size != "quick":
        beside = Part(targets.AMONG, (*given, "--among", str(among)))
    return [Part(targets.ALONE, given), beside]


def _conversations_part(form: str, options: FigureOptions) -> Part:
    file = _file(options.data, _CONVERSATIONS[form])
    if file is None:
        return Part(form, why_not=_NAME_DATA)
    if form != "locomo" and options.size != "full":
        return Part(form, why_not=_ONLY_FULL)
    return Part(form, ("conversations", "--format", form, str(file), "--methods", "two-stage"))


def _file(data: Sequence[Path], name: str) -> Path | None:
    """Return the first file in these directories whose path ends so."""
    found = (path for directory in data for path in sorted(directory.rglob(name)))
    return next(found, None)


def _measured(part: Part) -> dict[str, Any]:
    """Return the JSON form of what a benchmark measured in a process of its own.

    Raises:
        ValueError: it failed; the message is its own.
    """
    with TemporaryDirectory(prefix="commonplace-benchmark-") as directory:
        # The same thousand turns are stored for each person.
        cache = ("--vectors-cache", str(Path(directory) / "vectors")) if part.arguments[0] == "recall" else ()
        command = [sys.executable, *part.arguments]
        if part.arguments[0] != "-m":
            command = [sys.executable, "-m", "commonplace", "benchmark", *part.arguments, *cache, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ValueError(_complaint(done.stderr) or f"it ended with {done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _complaint(stderr: str) -> str:
    """Return the message of the error that a command told as JSON, or else the last line that it wrote."""
    last = stderr.strip().rpartition("\n")[2]
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
    if value is None:
        return _not_measured(figure.what, why_not, _asked(figure, figure.contract), _asked(figure, figure.aim))
    return {
        "what": figure.what,
        "contract": _asked(figure, figure.contract),
        "aim": _asked(figure, figure.aim),
        "measured": _shown(value, figure.unit, is_gain=figure.unit == "%"),
        "contract_reached": _reached(figure, figure.contract, value),
        "aim_reached": _reached(figure, figure.aim, value),
        "value": round(value, 4),
        "unit": figure.unit,
    }


def _not_measured(what: str, why: str, contract: str = "–", aim: str = "–") -> dict[str, Any]:
    return {
        "what": what,
        "contract": contract,
        "aim": aim,
        "measured": f"not measured: {why}",
        "contract_reached": "–",
        "aim_reached": "–",
        "value": None,
        "unit": "",
    }


def _asked(figure: Figure, bound: Bound | None) -> str:
    if bound is None:
        return "–"
    return f"{bound.sign} {_shown(bound.value, figure.unit, is_gain=False, is_exact=True)}"


def _reached(figure: Figure, bound: Bound | None, value: float) -> str:
    if bound is None:
        return "–"
    if figure.is_smaller:
        return "smaller size"
    return "yes" if bound.is_met(value) else "no"


def _shown(value: float, unit: str, *, is_gain: bool, is_exact: bool = False) -> str:
    """Return a figure with its unit: three digits, or as many as it has where it is one that is asked for."""
    if unit == "share":
        return f"{100 * value:.3g} %"
    if not unit:
        return f"{value:g}" if is_exact else f"{value:.3f}"
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    sign = "+" if is_gain and value > 0 else ""
    return f"{sign}{number.replace('-', '−')} {unit}"


def markdown(result: Mapping[str, Any]) -> str:
    """Return the table as Markdown, with the line that no figure goes without: date, machine, sizes, seed."""
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    when = f"Measured on {result['date']} in {result['minutes']:g} minutes"
    lines = [
        f"{when}: {machine}; size {result['size']}, seed {result['seed']}.",
        "",
        *(f"| {' | '.join(cells)} |" for cells in (COLUMNS, ("---",) * len(COLUMNS), *cells_of(result))),
    ]
    return "\n".join(lines) + "\n"


def cells_of(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table as they are shown."""
    names = ("what", "contract", "aim", "measured", "contract_reached", "aim_reached")
    return [tuple(each[name] for name in names) for each in result["rows"]]
