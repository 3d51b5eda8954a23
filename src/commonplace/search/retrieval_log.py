"""Write searches to the retrieval log and summarise it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from commonplace.dataclasses import asdict, dataclass
from commonplace.dates.time import iso, moment_of, parse
from commonplace.formats.json_values import View
from commonplace.search.result import SearchResult

FOUND_LOGGED: Final = 10
"""Of what a search found, so many are named in its line."""
MAX_FOUND: Final = 10
"""So many of the artifacts that were found most often are named in a summary."""

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MethodLatency:
    """How long the searches of one method took: the median and the 95th percentile, by nearest rank."""

    searches: int
    p50_ms: float
    p95_ms: float
    stages: Mapping[str, float]
    """Median milliseconds of each stage."""


@dataclass(frozen=True, slots=True)
class RetrievalSummary:
    """A summary of the log of searches.

    Attributes:
        first, last: when the first and last of the searches ran, seconds since the epoch; None without any.
        nothing: the share of searches that found nothing, 0–1; 0 without searches.
        degraded: the share of searches of which a part could not be used.
        most_found: paths of artifacts and how many searches found them, most first, ties by path.
        uses: how often something was opened or touched that a search had found before.
        followed: the share of the searches that found something of which something was used later.
    """

    searches: int
    first: float | None
    last: float | None
    nothing: float
    degraded: float
    agents: Mapping[str, int]
    methods: Mapping[str, MethodLatency]
    most_found: tuple[tuple[str, int], ...]
    uses: int
    followed: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; times are ISO 8601."""
        told = {name: iso(at) for name, at in _ends(self)}
        most = [{"path": path, "searches": number} for path, number in self.most_found]
        shares = {name: round(getattr(self, name), 4) for name in ("nothing", "degraded", "followed")}
        return {**asdict(self), **shares, **told, "most_found": most}


def _ends(summary: RetrievalSummary) -> tuple[tuple[str, float | None], ...]:
    return ("first", summary.first), ("last", summary.last)


def fields_of(result: SearchResult, call: str, keys: Sequence[str]) -> dict[str, object]:
    """Return what is logged of a search besides its query.

    Args:
        call: how it was asked for: "search", "recall", "context".
        keys: what it found, best first: paths of artifacts, and names of all else that give no text away.
    """
    return {
        "namespace": result.namespace,
        "call": call,
        "agent": result.agent or None,
        "method": result.method,
        "hits": len(result.hits),
        "best": round(result.hits[0].score, 4) if result.hits else None,
        "latency_ms": result.latency_ms,
        "stages": {stage.name: round(stage.ms, 2) for stage in result.stages},
        "degraded": result.degraded,
        "found": list(dict.fromkeys(keys))[:FOUND_LOGGED],
    }


@dataclass(frozen=True, slots=True)
class MemoryUse(View):
    """When a memory was found or used.

    Attributes:
        call: "search", "recall", "context" found it; "used" is a use that was logged or counted.
        place: among what was found, from 1; None of a use.
        query: "" unless the settings let the log keep texts.
    """

    at: datetime
    call: str
    place: int | None = None
    query: str = ""
    agent: str = ""


def uses_of(lines: Iterable[Line], name: str, *, namespace: str) -> list[MemoryUse]:
    """Return what the lines of a log say of one thing, by its name there, in their order."""
    found = []
    for line in lines:
        if line.get("namespace") == namespace and (at := _at(line)) > -math.inf:
            if line.get("used") == name:
                found.append(MemoryUse(moment_of(at), "used"))
            elif "method" in line and name in (keys := _found(line)):
                texts = (str(line.get(key) or "") for key in ("query", "agent"))
                found.append(MemoryUse(moment_of(at), str(line.get("call") or ""), keys.index(name) + 1, *texts))
    return found


def summarise(lines: Iterable[Line], *, namespace: str, since: float = -math.inf) -> RetrievalSummary:
    """Return what the lines of a log say of one namespace from a time on; what is no line of ours does not count."""
    dated = [(at, line) for line in lines if line.get("namespace") == namespace if (at := _at(line)) >= since]
    asked = [(at, line) for at, line in dated if "method" in line]
    by_method: defaultdict[str, list[Line]] = defaultdict(list)
    found: Counter[str] = Counter()
    for _, line in asked:
        by_method[str(line["method"])].append(line)
        found.update(key for key in _found(line) if not _is_name(key))
    uses, followed = _uses(dated)
    answered = sum(1 for _, line in asked if line.get("hits"))
    return RetrievalSummary(
        searches=len(asked),
        first=min((at for at, _ in asked), default=None),
        last=max((at for at, _ in asked), default=None),
        nothing=(len(asked) - answered) / max(1, len(asked)),
        degraded=sum(1 for _, line in asked if line.get("degraded")) / max(1, len(asked)),
        agents=dict(sorted(Counter(str(line["agent"]) for _, line in asked if line.get("agent")).items())),
        methods={method: _latency(some) for method, some in sorted(by_method.items())},
        most_found=tuple(sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MAX_FOUND]),
        uses=uses,
        followed=followed / max(1, answered),
    )


def _uses(dated: Sequence[tuple[float, Line]]) -> tuple[int, int]:
    """Return how many uses there were of what had been found, and how many searches found something that was used."""
    last_use: dict[str, float] = {}
    for at, line in dated:
        if "used" in line:
            last_use[str(line["used"])] = max(at, last_use.get(str(line["used"]), at))
    first_find: dict[str, float] = {}
    followed = 0
    for at, line in dated:
        keys = _found(line) if "method" in line else []
        followed += any(at <= last_use.get(key, -math.inf) for key in keys)
        for key in keys:
            first_find[key] = min(at, first_find.get(key, at))
    used = sum(1 for at, line in dated if "used" in line and at >= first_find.get(str(line["used"]), math.inf))
    return used, followed


def _latency(lines: Sequence[Line]) -> MethodLatency:
    took = [float(line["latency_ms"]) for line in lines if isinstance(line.get("latency_ms"), int | float)]
    stages: defaultdict[str, list[float]] = defaultdict(list)
    for line in lines:
        told = line.get("stages")
        for name, ms in told.items() if isinstance(told, Mapping) else ():
            if isinstance(ms, int | float):
                stages[name].append(float(ms))
    return MethodLatency(
        searches=len(lines),
        p50_ms=percentile(took, 0.5),
        p95_ms=percentile(took, 0.95),
        stages={name: percentile(some, 0.5) for name, some in stages.items()},
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed; 0 of no values."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)] if values else 0.0


def _found(line: Line) -> list[str]:
    found = line.get("found")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _is_name(key: str) -> bool:
    """Tell whether it names something that has no path."""
    return key.startswith(("memory:", "knowledge:", "artifact:"))


def _at(line: Line) -> float:
    """Return when a line was written; what is no time is neither before nor after any other."""
    try:
        return parse(str(line["at"]))
    except (KeyError, ValueError, OverflowError):
        return math.nan
