"""Measure how long agents of consolidation look at memories, and how long a run of them takes.

The memories are made up: the words of a topic, two names of two thousand and a tag, remembered over 120 days. So some
fade, some name the same, some say again what another does, and some were reviewed. It knows no rule of any agent.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import commonplace
from commonplace.benchmarks.dialogues import DAY_S
from commonplace.benchmarks.memories import texts
from commonplace.benchmarks.workspace import open_engine
from commonplace.consolidation.running import Wanted, agent_of
from commonplace.errors import NoRelation, NotFoundError
from commonplace.types.ledger import AGENTS

if TYPE_CHECKING:
    from commonplace.consolidation.base import ConsolidationAgent
    from commonplace.types import Progress

_T = TypeVar("_T")

END: Final = 1_767_225_600.0
"""When the agents run: the beginning of 2026."""
_PARTS: Final = 100
_DAYS: Final = 120.0
_NAMES: Final = 2_000
_TAGS: Final = 50
_ITEMS: Final = 50
_AGAIN: Final = 10
"""Every tenth memory says again what the one before it does, without every fifth word."""
_REVIEWED: Final = 100
_REVIEWS: Final = 3
"""Every hundredth was reviewed so often."""


def fill(directory: Path, count: int, seed: int, embedder: str | None, progress: Progress | None = None) -> None:
    """Remember so many made memories in a new store, over the 120 days before `END`."""
    made = _memories(count, seed)
    size = max(1, -(-count // _PARTS))
    begins = range(0, count, size)
    clock = [END]
    with commonplace.open(directory, embedder=embedder, clock=lambda: clock[0]) as engine:
        for part, begin in enumerate(begins, start=1):
            clock[0] = END - _DAYS * DAY_S * (1 - part / len(begins))
            engine.remember_many(made[begin : begin + size])
            if progress is not None:
                progress("remembering", min(count, begin + size), count)
        for number in range(0, count, _REVIEWED):
            for _ in range(_REVIEWS):
                engine.review(str(number))


def looked(directory: Path, embedder: str | None) -> dict[str, dict[str, float | int]]:
    """Return, by agent, how many items it finds, and the seconds of its scans and of its slowest item; write nothing.

    Merging has none: its items are issues that the agent before it files.
    """
    figures: dict[str, dict[str, float | int]] = {}
    with open_engine(directory, embedder=embedder, now=END) as engine:
        for name in (each for each in AGENTS if each != "merge"):
            figures[name] = _looked(agent_of(name, engine, Wanted(dry_run=True)))
    return figures


def lived(directory: Path, embedder: str | None, progress: Progress | None = None) -> dict[str, Any]:
    """Return how long a dry run of all agents takes, and then a real one, agent by agent, without a rate limit."""
    with open_engine(directory, embedder=embedder, now=END) as engine:
        dry, _ = _timed(partial(engine.consolidate, dry_run=True, rate_limit=0))
        figures: dict[str, dict[str, float | int]] = {}
        for place, name in enumerate(AGENTS):
            if progress is not None:
                progress(f"running {name}", place, len(AGENTS))
            seconds, report = _timed(partial(engine.consolidate, [name], rate_limit=0))
            figures[name] = {
                "results": len(report.results[name]),
                "applied": report.applied,
                "failed": len(report.errors),
                "run_s": round(seconds, 3),
            }
    return {
        "dry_s": round(dry, 3),
        "real_s": round(sum(row["run_s"] for row in figures.values()), 3),
        "agents": figures,
    }


def _looked(agent: ConsolidationAgent[Any]) -> dict[str, float | int]:
    first, items = _timed(agent.scan)
    again, _ = _timed(agent.scan)
    times = [0.0]
    for item in items[:_ITEMS]:
        with suppress(NoRelation, NotFoundError):
            times.append(_timed(partial(agent.process_item, item))[0])
    return {
        "items": len(items),
        "scan_s": round(first, 3),
        "again_s": round(again, 3),
        "slowest_item_s": round(max(times), 4),
    }


def _memories(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)  # noqa: S311 - made memories
    weights = [1 / (place + 1) for place in range(_NAMES)]
    made: list[dict[str, Any]] = []
    for number, document in enumerate(texts(count, seed)):
        words = document.text.split()
        if number % _AGAIN == _AGAIN - 1:
            words = [word for place, word in enumerate(made[-1]["content"].split()) if place % 5]
        made.append(
            {
                "id": str(number),
                "content": " ".join(words),
                "tier": "medium",
                "entities": [f"Name {each}" for each in draw.choices(range(_NAMES), weights, k=2)],
                "tags": [f"tag-{draw.randrange(_TAGS)}"],
            }
        )
    return made


def _timed(call: Callable[[], _T]) -> tuple[float, _T]:
    begun = time.perf_counter()
    found = call()
    return time.perf_counter() - begun, found
