"""Watch a project's files, and repeat work, until the process is asked to stop."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from commonplace.cli.output import notify, progress_bars
from commonplace.errors import CommonplaceError, StoreBusyError

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation
    from commonplace.engine import Engine
    from commonplace.ingest.watch import Watch
    from commonplace.settings import Settings
    from commonplace.types import Progress

RETRY_S: Final = 60.0
"""How often to check whether another process still watches the project."""
END_S: Final = 1.0
"""How long to wait for the thread to end; a started index run is finished by its own process."""
_log = logging.getLogger(__name__)


class ProjectWatch:
    """Watches the project of an engine in a thread; if another process already does, it takes over when it ends."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._thread: threading.Thread | None = None

    def begin(self, engine: Engine) -> None:
        """Start watching; without a project, only log a warning."""
        if engine.project is None:
            _log.warning("nothing is watched: the store %s belongs to no project", engine.directory)
            return
        self._thread = threading.Thread(target=self._run, args=(engine,), name="commonplace-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop watching. Call it before the engine is closed."""
        self._stopped.set()
        with self._lock:
            if self._watch is not None:
                self._watch.stop()
        if self._thread is not None:
            self._thread.join(END_S)

    def _run(self, engine: Engine) -> None:
        while not self._stopped.is_set():
            try:
                with engine.index(engine.project or ".", watch=True) as watch:
                    with self._lock:
                        self._watch = watch
                        if self._stopped.is_set():
                            return
                    for run in watch:
                        if run.error is not None:
                            _log.warning("the project could not be indexed: %s", run.error)
            except StoreBusyError:
                self._stopped.wait(RETRY_S)
            except CommonplaceError as error:
                _log.warning("the project is not watched any more: %s", error)
                return
            except Exception:
                # The outermost frame of the thread: the server continues without it.
                _log.exception("the project is not watched any more")
                return


def repeat(
    work: Callable[[], object], every_s: float, wait: Callable[[float], bool], now: Callable[[], float] = time.monotonic
) -> None:
    """Do the work at once, and again every `every_s` seconds, measured between starts; missed runs are skipped.

    Args:
        wait: waits at most the given number of seconds, and returns whether to stop.
    """
    while True:
        started = now()
        work()
        if wait(max(0.0, started + every_s - now())):
            return


@contextmanager
def until_stopped() -> Iterator[Callable[[float], bool]]:
    """Yield a function that waits for SIGINT or SIGTERM; the signals end the wait but not the work in progress."""
    stop = threading.Event()
    with _signals_to(lambda *_: stop.set()):
        yield stop.wait


@contextmanager
def _signals_to(handler: Callable[..., Any]) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous_handler in previous.items():
            signal.signal(number, previous_handler)


POLLING = "watchfiles is not installed: polling every few seconds. Install commonplace[watch] for instant updates."


def watch(invocation: Invocation, loaded: Settings, root: Path, *, force: bool, on_indexed: Callable[[], None]) -> None:
    """Index a directory and print a line for each run, until SIGINT or SIGTERM.

    Args:
        on_indexed: called after the first successful run.
    """
    from commonplace.cli.app import report
    from commonplace.cli.index import print_reports

    displays: list[Progress] = []

    def progress(stage: str, completed: int, total: int) -> None:
        for display in displays:
            display(stage, completed, total)

    with (
        # SIGINT and SIGTERM leave the block at once, even during a run: it writes only whole files.
        suppress(KeyboardInterrupt),
        _signals_to(signal.default_int_handler),
        # A process that mostly idles leaves heavy work to short-lived processes.
        invocation.open(loaded, create=True, progress=progress, low_memory=True) as engine,
        engine.index(root, watch=True, force=force) as runs,
    ):
        # Bars are redrawn all the time, so they are removed after the first run.
        with progress_bars(invocation) as bars:
            displays += [] if bars is None else [bars]
            first = next(runs, None)
        displays.clear()
        is_indexed = False
        for run in () if first is None else chain([first], runs):
            if run.error is not None:
                report(run.error, invocation)
            elif run.report is not None:
                print_reports(invocation, loaded, {str(root): run.report}, indent=None)
            if run is first:
                notify((f"watching {root}; Ctrl-C ends it", *(() if runs.is_told else (POLLING,))), invocation)
            if run.report is not None and not is_indexed:
                is_indexed = True
                on_indexed()
