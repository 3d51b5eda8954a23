"""Do something again and again until the process is told to stop. It does not know what it does."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhd])")
LEAST_S: Final = 10.0
MOST_S: Final = 366 * 86_400.0


def duration(_: click.Context, parameter: click.Parameter, value: str) -> float:
    """Return a duration as `30m`, `1h` or `1d` in seconds.

    Raises:
        click.BadParameter: it is none, or shorter than ten seconds or longer than a year.
    """
    found = _DURATION.fullmatch(value.strip().lower())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not LEAST_S <= seconds <= MOST_S:
        raise click.BadParameter(
            f"{value!r} is no duration from 10s to 366d; give one such as 30m, 1h or 1d", param=parameter
        )
    return seconds


def repeat(
    work: Callable[[], object],
    every_s: float,
    wait: Callable[[float], bool],
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Do the work at once and then every so many seconds, counted from beginning to beginning; none is made up for.

    Args:
        wait: waits for so many seconds at most, and tells whether it is time to stop.
    """
    while True:
        begun = now()
        work()
        if wait(max(0.0, begun + every_s - now())):
            return


@contextmanager
def told_to_stop() -> Iterator[Callable[[float], bool]]:
    """Give a way to wait until SIGINT or SIGTERM comes, which end the wait and not the work that is under way."""
    stop = threading.Event()

    def heard(_: int, __: Any) -> None:
        stop.set()

    before = {each: signal.signal(each, heard) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop.wait
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
