"""Watch a directory and index again when files change.

Native file events are only a hint: they get lost under load, and none arrive on network drives or after a directory is
replaced. So every wait times out, and the directory is scanned.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, Final, Self

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, NotFoundError
from commonplace.ingest.discover import SKIPPED_DIRECTORIES, Look
from commonplace.types import IndexReport

QUIET_S: Final = 0.5
"""Seconds without a change before files are indexed: a branch switch or a build is one run, not hundreds."""
UNREST_S: Final = 30.0
"""Maximum seconds to wait for files to stop changing."""
POLL_S: Final = 2.0
"""Seconds between polls if the system does not report changes."""
CHECK_S: Final = 60.0
"""Seconds between polls if the system reports changes, in case one is lost; also before a failed run is retried."""
LOOKING_SHARE: Final = 0.05
"""Maximum share of the time spent polling, however large the directory is."""


class Stopped(Exception):  # noqa: N818 - not an error
    """Raised to end a run before it is complete."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The outcome of one change: the run's report, or the error that prevented it."""

    report: IndexReport | None = None
    error: CommonplaceError | None = None


class Watch:
    """Yields one indexing run at once, then one for every change, until it is stopped; made by `Engine.index`.

        with book.index("docs", watch=True) as watch:
            for run in watch:
                print(run.report or run.error)

    Files are watched only while the loop waits for the next run. `stop` ends the loop, from any thread. A failed run is
    yielded with its error and retried at the next change, or after a minute. If the directory, all its files or a disk
    with some of them disappears, nothing is removed from the store, and the error says so.
    """

    def __init__(
        self,
        look: Callable[[], Look],
        index: Callable[[bool], IndexReport],
        waiting: Alarm,
        release: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the functions that scan, index, wait and, once at the end, release.

        Args:
            look: returns the files that an indexing run would select.
            index: runs once, with True until a run has succeeded; raises Stopped if the watch is stopped meanwhile.
        """
        self._look, self._index, self._waiting, self._release, self._clock = look, index, waiting, release, clock
        self._tried: Look | None = None
        self._indexed: Look | None = None
        self._armed: tuple[object, ...] | None = None
        self._reported = ""
        self._retry_at: float | None = None
        self._is_closed = False

    def __iter__(self) -> Iterator[WatchedRun]:
        return self

    def __next__(self) -> WatchedRun:
        """Wait for the next run and return it.

        Raises:
            StopIteration: the watch was stopped.
        """
        try:
            while not self._waiting.is_stopped:
                if (run := self._step()) is not None:
                    return run
        except Stopped:
            pass
        except BaseException:
            self.close()
            raise
        self.close()
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_told(self) -> bool:
        """Whether the system reports changes; if not, files are polled every two seconds, or less often."""
        return self._waiting.is_told

    def stop(self) -> None:
        """End the loop: at once if it waits, else between two files. Safe to call from any thread, and repeatedly."""
        self._waiting.stop()

    def close(self) -> None:
        """Stop, and release the directory for another watch; call it in the looping thread, or after the loop ended."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.close()
            self._release()

    def _step(self) -> WatchedRun | None:
        seen = self._settled()
        is_retry_due = self._retry_at is not None and self._clock() >= self._retry_at
        location = seen.root, seen.devices
        if self._waiting.is_stopped or (seen == self._tried and not is_retry_due):
            # The system reports nothing about a root that was deleted or replaced.
            is_notified = self._waiting.is_told and location == self._armed
            wait_s = max(CHECK_S if is_notified else POLL_S, seen.seconds / LOOKING_SHARE)
            if self._retry_at is not None:
                wait_s = min(wait_s, max(0.0, self._retry_at - self._clock()))
            self._waiting.wait(wait_s)
            return None
        self._tried, self._retry_at = seen, None
        if (loss := seen.error or self._lost(seen)) is not None:
            # The watched directory is gone; if it comes back, it is a different one to the system.
            self._armed = None
            return self._failure(loss)
        if self._armed != location or not self._waiting.is_told:
            self._waiting.arm()
            self._armed = location
        try:
            report = self._index(self._indexed is None)
        except CommonplaceError as error:
            self._retry_at = self._clock() + CHECK_S
            return self._failure(error)
        self._indexed, self._reported = seen, ""
        return WatchedRun(report)

    def _failure(self, error: CommonplaceError) -> WatchedRun | None:
        is_new, self._reported = str(error) != self._reported, str(error)
        return WatchedRun(error=error) if is_new else None

    def _lost(self, look: Look) -> CommonplaceError | None:
        """Return why missing files cannot be taken as deleted, or None if they can."""
        if self._indexed is None or self._indexed.devices <= look.devices:
            return None
        if not look.files:
            loss = f"none of {self._indexed.files:,} files can be seen any more"
        else:
            loss = "a disk that held some of the files is gone"
        return NotFoundError(
            f"{loss}, so nothing was removed from the store",
            remedy="bring them back, or run `commonplace index build` and watch again",
        )

    def _settled(self) -> Look:
        """Scan the directory; if it changed, scan again until it no longer does."""
        waited_s, previous = 0.0, None
        while True:
            try:
                seen = self._look()
            except CommonplaceError as error:
                seen = Look(fault=str(error), error=error)
            is_still = self._tried in {None, seen} or seen == previous
            if is_still or waited_s >= UNREST_S or self._waiting.is_stopped:
                return seen
            previous, pause_s = seen, max(QUIET_S, seen.seconds / LOOKING_SHARE)
            self._waiting.sleep(pause_s)
            waited_s += pause_s


_STEP_MS: Final = 50
_GROUP_MS: Final = 400
_log = logging.getLogger(__name__)

Open = Callable[[Path], Any]
"""Opens an object like `watchfiles._rust_notify.RustNotify` for a directory or file; any error means it cannot."""


class Alarm:
    """Ends the waits of one thread when files may have changed. `stop` may be called from any thread.

    Args:
        excluded: directories whose changes are ignored, such as the store's own.
        open_source: opens the source of file events, anew whenever `arm` is called.
    """

    def __init__(self, root: Path, excluded: Iterable[Path] = (), open_source: Open | None = None) -> None:
        self._root = os.path.realpath(root)
        self._silent = tuple(os.path.realpath(path) + os.sep for path in excluded)
        self._open = open_source or open_native
        self._stopped = threading.Event()
        self._source: Any = None

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    @property
    def is_told(self) -> bool:
        return self._source is not None

    def arm(self) -> None:
        """Have the system report changes below the current root; if it cannot, waits time out."""
        self._disarm()
        try:
            self._source = self._open(Path(self._root))
        except Exception as error:
            # Not installed, too many directories, a file system without events: all are reported alike.
            _log.info("polling %s, native file events are unavailable: %s", self._root, error)

    def wait(self, most_s: float) -> None:
        """Wait until something may have changed, the seconds have passed, or it is time to stop."""
        end = time.monotonic() + most_s
        while not self.is_stopped and (left_s := end - time.monotonic()) > 0:
            if self._source is None:
                self.sleep(left_s)
                return
            try:
                events = self._source.watch(_GROUP_MS, _STEP_MS, max(1, int(1000 * left_s)), self._stopped)
            except Exception as error:
                # Any error of the foreign library: poll from here on.
                _log.info("native file events stopped, polling instead: %s", error)
                self._disarm()
                continue
            if events == "signal":
                raise KeyboardInterrupt
            if not isinstance(events, str) and any(self._matters(path) for _, path in events):
                return

    def sleep(self, seconds: float) -> None:
        """Wait until the seconds have passed, or it is time to stop."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """End every wait, now and from now on."""
        self._stopped.set()

    def close(self) -> None:
        """Stop, and end the system's reports."""
        self.stop()
        self._disarm()

    def _disarm(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _matters(self, path: str) -> bool:
        """Return whether indexing could select a path; ignore rules and globs are not checked."""
        if path.startswith(self._silent):
            return False
        inside = path[len(self._root) :] if path.startswith(self._root) else path
        return SKIPPED_DIRECTORIES.isdisjoint(Path(inside).parts[:-1])


def open_native(root: Path) -> Any:
    """Return the source of changes below a root: only the documented class in the Rust part of `watchfiles`.

    The package's `__init__` loads an asynchronous framework and `multiprocessing`, which a long-running server does not
    need: 7.5 MB and 45 ms, against 1.6 MB and 5 ms.
    """
    package = find_spec("watchfiles")
    if package is None:
        raise ImportError("watchfiles is not installed: pip install 'commonplace[watch]'")
    spec = PathFinder.find_spec("watchfiles._rust_notify", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("this watchfiles has no native part")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # No debugging, no polling, recursive, no error ignored: ignoring permission errors would hide a missing root.
    return module.RustNotify([str(root)], False, False, 0, True, False)
