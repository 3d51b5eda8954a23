"""Write searches to the retrieval log and summarise it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from commonplace.dataclasses import dataclass
from commonplace.dates.time import moment_of, parse
from commonplace.errors import StoreError
from commonplace.formats.json_values import View
from commonplace.logs import RetrievalLog, query_hash
from commonplace.search.result import SearchResult
from commonplace.types import Hit

FOUND_LOGGED: Final = 10
"""Maximum number of found items named in the line of a search."""
MAX_FOUND: Final = 10
"""Maximum number of most often found artifacts named in a summary."""
SAME_S: Final = 2.0
"""Seconds within which a counted use and one in the log are the same use."""
Used = Literal["memory", "artifact"]


@dataclass(frozen=True, slots=True)
class MethodLatency:
    """How long the searches of one method took: the median and the 95th percentile, by nearest rank."""

    searches: int
    p50_ms: float
    p95_ms: float
    stages: Mapping[str, float]
    """Median milliseconds of each stage."""


@dataclass(frozen=True, slots=True)
class FoundOften(View):
    """How many searches found an artifact."""

    path: str
    searches: int


@dataclass(frozen=True, slots=True)
class RetrievalSummary(View):
    """A summary of the log of searches.

    Attributes:
        first, last: when the first and last of the searches ran; None without any.
        nothing: the share of searches that found nothing, 0–1, to four digits; 0 without searches.
        degraded: the share of searches of which a part could not be used.
        most_found: the most often found first, ties by path.
        uses: how often something was opened or touched that a search had found before.
        followed: of the searches that found something, the share of which something was used later.
    """

    searches: int
    first: datetime | None
    last: datetime | None
    nothing: float
    degraded: float
    agents: Mapping[str, int]
    methods: Mapping[str, MethodLatency]
    most_found: tuple[FoundOften, ...]
    uses: int
    followed: float


@dataclass(frozen=True, slots=True)
class MemoryUse(View):
    """When a memory was found or used.

    Attributes:
        call: "search", "recall", "context" found it; "used" is a use that was logged or counted.
        place: among what was found, from 1; None for a use.
        query: "" unless the settings let the log keep texts.
    """

    at: datetime
    call: str
    place: int | None = None
    query: str = ""
    agent: str = ""


class RetrievalHistory:
    """The searches of one namespace in a store's log, and the later uses of what they found.

    An artifact is named by its path, anything else by a hash of its id, which gives nothing away.
    """

    def __init__(self, log: RetrievalLog, namespace: str) -> None:
        self._log = log
        self._namespace = namespace

    def add(self, result: SearchResult, hits: Sequence[Hit], call: str, now: float) -> None:
        """Write what a search found; `call` is "search", "recall" or "context"."""
        paths = (hit.path if hit.kind == "artifact" and hit.path else _name(hit.kind, hit.owner_id) for hit in hits)
        line = {
            "namespace": result.namespace,
            "call": call,
            "agent": result.agent or None,
            "method": result.method,
            "hits": len(result.hits),
            "best": round(result.hits[0].score, 4) if result.hits else None,
            "latency_ms": result.latency_ms,
            "stages": {stage.name: round(stage.ms, 2) for stage in result.stages},
            "degraded": result.degraded,
            "found": list(dict.fromkeys(paths))[:FOUND_LOGGED],
        }
        self._log.write(result.query, line, now=now)

    def add_use(self, name: str, kind: Used, now: float) -> None:
        """Write that an artifact, by its path, or a memory, by its id, was opened or touched."""
        used = name if kind == "artifact" else _name(kind, name)
        self._log.write(None, {"namespace": self._namespace, "used": used}, now=now)

    def uses(self, id_: str, counted: Iterable[float]) -> list[MemoryUse]:
        """Return when a memory was found and used, the latest first.

        Args:
            counted: times of the uses that the memory itself records, seconds since the epoch.
        """
        name, events = _name("memory", id_), list[MemoryUse]()
        for line in self._lines():
            if line.used == name:
                events.append(MemoryUse(moment_of(line.at), "used"))
            elif line.method and name in line.found:
                position = line.found.index(name) + 1
                events.append(MemoryUse(moment_of(line.at), line.call, position, line.query, line.agent))
        # A use that a search counted is in the line of that search.
        times = [use.at.timestamp() for use in events]
        events += [MemoryUse(moment_of(at), "used") for at in counted if all(abs(at - time) > SAME_S for time in times)]
        return sorted(events, key=lambda use: (use.at, use.call), reverse=True)

    def summary(self, since: float = -math.inf) -> RetrievalSummary:
        """Return a summary of the log from `since` on, seconds since the epoch."""
        dated = sorted((line for line in self._lines() if line.at >= since), key=lambda line: line.at)
        searches = [line for line in dated if line.method]
        count, answered = max(1, len(searches)), sum(1 for line in searches if line.hits)
        last_use = {line.used: line.at for line in dated if line.used}
        first_find = {name: line.at for line in reversed(dated) for name in line.found}
        methods = {}
        for method in sorted({line.method for line in searches}):
            lines = [line for line in searches if line.method == method]
            times_ms, stages = [line.latency_ms for line in lines], defaultdict[str, list[float]](list)
            for name, ms in chain.from_iterable(line.stages.items() for line in lines):
                stages[name].append(ms)
            medians = {name: percentile(durations, 0.5) for name, durations in stages.items()}
            methods[method] = MethodLatency(len(lines), percentile(times_ms, 0.5), percentile(times_ms, 0.95), medians)
        paths = (name for line in searches for name in line.found)
        counts = Counter(name for name in paths if not name.startswith(("memory:", "knowledge:", "artifact:")))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        followed = sum(any(line.at <= last_use.get(name, -math.inf) for name in line.found) for line in dated)
        return RetrievalSummary(
            searches=len(searches),
            first=moment_of(min(line.at for line in searches)) if searches else None,
            last=moment_of(max(line.at for line in searches)) if searches else None,
            nothing=round((len(searches) - answered) / count, 4),
            degraded=round(sum(line.degraded for line in searches) / count, 4),
            agents=dict(sorted(Counter(line.agent for line in searches if line.agent).items())),
            methods=methods,
            most_found=tuple(FoundOften(*pair) for pair in ranked[:MAX_FOUND]),
            uses=sum(1 for line in dated if line.used and line.at >= first_find.get(line.used, math.inf)),
            followed=round(followed / max(1, answered), 4),
        )

    def _lines(self) -> list[_Line]:
        """Return the lines of the namespace, oldest first; skip lines that are not ours, which people may have written.

        Raises:
            StoreError: the log cannot be read.
        """
        try:
            lines = [line for line in self._log.lines() if line.get("namespace") == self._namespace]
        except OSError as error:
            message = f"the log {error.filename} cannot be read: {error.strerror}"
            raise StoreError(message, remedy="make it readable") from error
        parsed = []
        for line in lines:
            values: dict[str, Any] = {"stages": {}, "found": [], **line}
            with suppress(AttributeError, OverflowError, TypeError, ValueError):
                names = [*map(str, values["found"])]
                stages = {name: float(ms) for name, ms in values["stages"].items()}
                plain = {name: kind(values.get(name) or kind()) for name, kind in _PLAIN.items()}
                parsed.append(_Line(at=parse(values["at"]), stages=stages, found=names, **plain))
        return parsed


def _name(kind: str, id_: str) -> str:
    return f"{kind}:{query_hash(id_)}"


class _Line(NamedTuple):
    """A line of the log: a search, which has `method`, or a use, which has `used`."""

    at: float
    used: str
    method: str
    call: str
    query: str
    agent: str
    hits: int
    degraded: bool
    latency_ms: float
    stages: Mapping[str, float]
    found: Sequence[str]


_PLAIN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("used", "method", "call", "query", "agent"), str),
    "hits": int,
    "degraded": bool,
    "latency_ms": float,
}
"""Types of a line's plain values; a missing one is empty, or 0."""


def percentile(values: Collection[float], share: float) -> float:
    """Return the smallest value that at least `share` (0–1) of the values do not exceed: the nearest rank.

    Nothing is interpolated, so the answer is always a value that was measured; 0 for no values.
    """
    # The small amount keeps 0.95 × 100 = 95.00000000000001 from becoming rank 96.
    return sorted(values)[max(0, math.ceil(share * len(values) - 1e-9) - 1)] if values else 0.0
