"""Index a directory again whenever its files change, until the process is told to stop. It knows no option."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from commonplace.cli.running import Invocation
    from commonplace.ingest.watching import Watch, WatchedRun
    from commonplace.settings import Settings
    from commonplace.types import Progress

POLLING = (
    "the system tells of no changes here, so they are looked for every few seconds; "
    "pip install 'commonplace[watch]' lets it tell"
)


def watch(invocation: Invocation, loaded: Settings, place: Path, *, force: bool, indexed: Callable[[], None]) -> None:
    """Index a directory and print a line for each run, until SIGINT or SIGTERM comes.

    Args:
        indexed: called after the first run that succeeds.
    """
    from commonplace.cli.screen import notify, progress_bars

    bars = _Bars()
    with (
        stopped_by_signals(),
        # What has nothing to do all day leaves the work to processes that end.
        invocation.open(loaded, create=True, progress=bars, stays_small=True) as engine,
        engine.index(place, watch=True, force=force) as runs,
    ):
        with progress_bars(invocation) as bars.show:
            first = next(runs, None)
        bars.show = None
        if first is None:
            return
        _tell(invocation, loaded, str(place), first)
        notify((f"watching {place}; Ctrl-C ends it", *(() if runs.is_told else (POLLING,))), invocation)
        _follow(invocation, loaded, str(place), first, runs, indexed)


def _follow(
    invocation: Invocation, loaded: Settings, place: str, first: WatchedRun, runs: Watch, indexed: Callable[[], None]
) -> None:
    is_indexed = first.report is not None
    if is_indexed:
        indexed()
    for run in runs:
        _tell(invocation, loaded, place, run)
        if run.report is not None and not is_indexed:
            is_indexed = True
            indexed()


def _tell(invocation: Invocation, loaded: Settings, place: str, run: WatchedRun) -> None:
    from commonplace.cli.failures import report as tell_failure
    from commonplace.cli.indexing_rendering import print_report
    from commonplace.cli.screen import console, notify, print_json

    if run.error is not None:
        tell_failure(run.error, invocation)
    elif run.report is not None and invocation.as_json:
        print_json({"store": loaded.store.path, "roots": {place: asdict(run.report)}}, indent=None)
    elif run.report is not None:
        print_report(place, run.report, console())
        notify(run.report.notices, invocation)


class _Bars:
    """Draws progress while there are bars: they are redrawn all the time, so there are none while nothing is done."""

    def __init__(self) -> None:
        self.show: Progress | None = None

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.show is not None:
            self.show(what, done, total)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Leave the block as soon as SIGINT or SIGTERM comes, also out of a run: what it has written are whole files."""
    before: dict[signal.Signals, Any] = {
        each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
