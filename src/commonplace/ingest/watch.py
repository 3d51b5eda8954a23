"""Watch a directory and index again when files change.

Native file events are only a hint: they get lost under load and do not arrive on network drives or after a directory
was replaced. So every wait has an end, after which the directory is scanned.
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
"""Files are indexed when they have not changed for so long: a branch switch or a build is one run, not hundreds."""
UNREST_S: Final = 30.0
"""Maximum seconds to wait for that."""
POLL_S: Final = 2.0
"""Seconds between two polls if the system reports no changes."""
CHECK_S: Final = 60.0
"""Seconds between two polls if it reports them, in case one was lost; and until a failed run is repeated."""
LOOKING_SHARE: Final = 0.05
"""Maximum share of the time that polling takes, however large the directory is."""


class Stopped(Exception):  # noqa: N818 - it is no error
    """Raised through a run that is to end before it is done."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """What became of one change: either the report of the run, or why there was none."""

    report: IndexReport | None = None
    error: CommonplaceError | None = None


class Watch:
    """Gives the run of an indexing at once, and then one for every change, until it is stopped; made by `Engine.index`.

        with book.index("docs", watch=True) as watch:
            for run in watch:
                print(run.report or run.error)

    Files are looked after only while the loop waits for the next run. `stop` ends it, from another thread as well. A
    run that fails is given with its error, and tried again at the next change, or after a minute. Where the directory,
    all files in it or the disk of some are gone, nothing is removed from the store, and the error says so.
    """

    def __init__(
        self,
        look: Callable[[], Look],
        index: Callable[[bool], IndexReport],
        waiting: Alarm,
        release: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what looks, what indexes, what waits, and what is called once at the end.

        Args:
            look: returns what an indexing would choose.
            index: does one, with True until one has succeeded; raises Stopped where the watch was stopped meanwhile.
        """
        self._look, self._index, self._waiting, self._release, self._clock = look, index, waiting, release, clock
        self._tried: Look | None = None
        self._indexed: Look | None = None
        self._armed: tuple[object, ...] | None = None
        self._told = ""
        self._retry_at: float | None = None
        self._is_closed = False

    def __iter__(self) -> Iterator[WatchedRun]:
        return self

    def __next__(self) -> WatchedRun:
        """Return the next run, when there is one.

        Raises:
            StopIteration: it was stopped.
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
        """End the loop: at once where it waits, else between two files. Safe to call from any thread, and twice."""
        self._waiting.stop()

    def close(self) -> None:
        """Stop, and let another watch have the directory; called by the thread that loops, or after it ended."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.close()
            self._release()

    def _step(self) -> WatchedRun | None:
        seen = self._settled()
        is_again = self._retry_at is not None and self._clock() >= self._retry_at
        place = seen.root, seen.devices
        if self._waiting.is_stopped or (seen == self._tried and not is_again):
            # The system reports nothing about a root that was deleted or replaced.
            is_told = self._waiting.is_told and place == self._armed
            most_s = max(CHECK_S if is_told else POLL_S, seen.seconds / LOOKING_SHARE)
            if self._retry_at is not None:
                most_s = min(most_s, max(0.0, self._retry_at - self._clock()))
            self._waiting.wait(most_s)
            return None
        self._tried, self._retry_at = seen, None
        if (lost := seen.error or self._lost(seen)) is not None:
            # What the system watched is not there any more, and if it comes back, it is another one to the system.
            self._armed = None
            return self._failure(lost)
        if self._armed != place or not self._waiting.is_told:
            self._waiting.arm()
            self._armed = place
        try:
            report = self._index(self._indexed is None)
        except CommonplaceError as error:
            self._retry_at = self._clock() + CHECK_S
            return self._failure(error)
        self._indexed, self._told = seen, ""
        return WatchedRun(report)

    def _failure(self, error: CommonplaceError) -> WatchedRun | None:
        is_new, self._told = str(error) != self._told, str(error)
        return WatchedRun(error=error) if is_new else None

    def _lost(self, seen: Look) -> CommonplaceError | None:
        """Return why files that are not there any more cannot be taken for deleted ones, if so."""
        if self._indexed is None or self._indexed.devices <= seen.devices:
            return None
        if not seen.files:
            what = f"none of {self._indexed.files:,} files can be seen any more"
        else:
            what = "a disk that held some of the files is gone"
        return NotFoundError(
            f"{what}, so nothing was removed from the store",
            remedy="bring them back, or run `commonplace index build` and watch again",
        )

    def _settled(self) -> Look:
        """Look, and where something changed, again until nothing does."""
        waited_s, before = 0.0, None
        while True:
            try:
                seen = self._look()
            except CommonplaceError as error:
                seen = Look(fault=str(error), error=error)
            is_still = self._tried in {None, seen} or seen == before
            if is_still or waited_s >= UNREST_S or self._waiting.is_stopped:
                return seen
            before, pause_s = seen, max(QUIET_S, seen.seconds / LOOKING_SHARE)
            self._waiting.rest(pause_s)
            waited_s += pause_s


_STEP_MS: Final = 50
_GROUP_MS: Final = 400
_log = logging.getLogger(__name__)

Open = Callable[[Path], Any]
"""Gives an object like `watchfiles._rust_notify.RustNotify` for a directory or file; any error is one that cannot."""


class Alarm:
    """Ends the waits of one thread when files may have changed. `stop` may be called from any thread.

    Args:
        excluded: directories whose changes end no wait, such as the store's own.
        open_source: how the system is asked; it is asked again whenever `arm` is called.
    """

    def __init__(self, root: Path, excluded: Iterable[Path] = (), open_source: Open | None = None) -> None:
        self._root = os.path.realpath(root)
        self._silent = tuple(os.path.realpath(each) + os.sep for each in excluded)
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
        """Have the system report changes below the present root; if it cannot, waits time out."""
        self._disarm()
        try:
            self._source = self._open(Path(self._root))
        except Exception as error:
            # Not installed, too many directories for the system, a file system without events: all are told alike.
            _log.info("polling %s, native file events are unavailable: %s", self._root, error)

    def wait(self, most_s: float) -> None:
        """Wait until something may have changed, the seconds have passed, or it is time to stop."""
        end = time.monotonic() + most_s
        while not self.is_stopped and (left_s := end - time.monotonic()) > 0:
            if self._source is None:
                self.rest(left_s)
                return
            try:
                told = self._source.watch(_GROUP_MS, _STEP_MS, max(1, int(1000 * left_s)), self._stopped)
            except Exception as error:
                # The edge of a foreign library: from here on changes are looked for.
                _log.info("native file events stopped, polling instead: %s", error)
                self._disarm()
                continue
            if told == "signal":
                raise KeyboardInterrupt
            if not isinstance(told, str) and any(self._matters(path) for _, path in told):
                return

    def rest(self, seconds: float) -> None:
        """Wait until the seconds have passed, or it is time to stop."""
        self._stopped.wait(seconds)

    def stop(self) -> None:
        """End every wait, now and from now on."""
        self._stopped.set()

    def close(self) -> None:
        """Stop, and end the reports of the system."""
        self.stop()
        self._disarm()

    def _disarm(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _matters(self, path: str) -> bool:
        """Return whether an indexing could choose what is at a path; whether it does is not asked here."""
        if path.startswith(self._silent):
            return False
        inside = path[len(self._root) :] if path.startswith(self._root) else path
        return SKIPPED_DIRECTORIES.isdisjoint(Path(inside).parts[:-1])


def open_native(root: Path) -> Any:
    """Return what tells of changes below a root: the documented class in the Rust part of `watchfiles`, and no more.

    The package's own `__init__` loads an asynchronous framework and `multiprocessing`, which a server that is there all
    day would carry for nothing: 7.5 MB and 45 ms, against 1.6 MB and 5 ms.
    """
    package = find_spec("watchfiles")
    if package is None:
        raise ImportError("watchfiles is not installed: pip install 'commonplace[watch]'")
    spec = PathFinder.find_spec("watchfiles._rust_notify", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("this watchfiles has no native part")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # No debugging, no polling, all below, no error passed over: with those of permission goes that of a missing root.
    return module.RustNotify([str(root)], False, False, 0, True, False)
