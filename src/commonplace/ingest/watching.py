"""Index again whenever files change: when that is due, and when it must not be done. It knows no store and no files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from commonplace.errors import CommonplaceError, NotFoundError
from commonplace.ingest.looking import Look
from commonplace.types import IndexReport

if TYPE_CHECKING:
    from types import TracebackType

QUIET_S: Final = 0.5
"""Files are indexed when they have not changed for so long: a branch switch or a build is one run, not hundreds."""
UNREST_S: Final = 30.0
"""So long at most is waited for that."""
POLL_S: Final = 2.0
"""Between two looks where the system tells nothing."""
CHECK_S: Final = 60.0
"""Between two looks where it tells of changes, in case that one was lost; and until a failed run is tried again."""
LOOKING_SHARE: Final = 0.05
"""At most this part of the time is spent on looking, however large the directory is."""


class Stopped(Exception):  # noqa: N818 - it is no error
    """Raised through a run that is to end before it is done."""


class Waiting(Protocol):
    """How time passes for a watch; see `noticing.Alarm`."""

    @property
    def is_stopped(self) -> bool: ...
    @property
    def is_told(self) -> bool: ...
    def arm(self) -> None: ...
    def wait(self, most_s: float) -> None: ...
    def rest(self, seconds: float) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """What became of one change: either the report of the run, or why there was none."""

    report: IndexReport | None = None
    error: CommonplaceError | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """What a watch is made of.

    Attributes:
        look: returns what an indexing would choose.
        index: does one, with True until one has succeeded; raises Stopped where the watch was stopped meanwhile.
        waiting: tells of changes.
        release: called once, at the end.
        clock: seconds, from any beginning.
    """

    look: Callable[[], Look]
    index: Callable[[bool], IndexReport]
    waiting: Waiting
    release: Callable[[], None]
    clock: Callable[[], float] = time.monotonic


class Watch:
    """Gives the run of an indexing at once, and then one for every change, until it is stopped; made by `Engine.index`.

        with book.index("docs", watch=True) as watch:
            for run in watch:
                print(run.report or run.error)

    Files are looked after only while the loop waits for the next run. `stop` ends it, from another thread as well. A
    run that fails is given with its error, and tried again at the next change, or after a minute. Where the directory,
    all files in it or the disk of some are gone, nothing is removed from the store, and the error says so.
    """

    def __init__(self, means: Means) -> None:
        self._means = means
        self._waiting = means.waiting
        self._tried: Look | str | None = None
        self._indexed: Look | None = None
        self._armed: tuple[object, ...] | None = None
        self._told = ""
        self._retry_at: float | None = None
        self._owed_s = 0.0
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
                run = self._step()
                if run is not None:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def is_told(self) -> bool:
        """Whether the system tells of changes; else they are looked for every two seconds, or less often."""
        return self._waiting.is_told

    def stop(self) -> None:
        """End the loop: at once where it waits, else between two files. Safe to call from any thread, and twice."""
        self._waiting.stop()

    def close(self) -> None:
        """Stop, and let another watch have the directory; called by the thread that loops, or after it ended."""
        if not self._is_closed:
            self._is_closed = True
            self._waiting.close()
            self._means.release()

    def _step(self) -> WatchedRun | None:
        """Do what is due, and wait where nothing is."""
        self._waiting.rest(self._owed_s)
        self._owed_s = 0.0
        seen = self._settled()
        is_again = self._retry_at is not None and self._means.clock() >= self._retry_at
        if self._waiting.is_stopped or (_key(seen) == self._tried and not is_again):
            self._wait(seen)
            return None
        self._tried, self._retry_at = _key(seen), None
        lost = seen if isinstance(seen, CommonplaceError) else self._lost(seen)
        if isinstance(seen, Look) and lost is None:
            return self._indexed_now(seen)
        # What the system told of before is not there any more, and if it comes back, it is another one to the system.
        self._armed = None
        return self._failure(lost)

    def _indexed_now(self, seen: Look) -> WatchedRun | None:
        if self._armed != _place(seen) or not self._waiting.is_told:
            self._waiting.arm()
            self._armed = _place(seen)
        try:
            report = self._means.index(self._indexed is None)
        except CommonplaceError as error:
            self._retry_at = self._means.clock() + CHECK_S
            return self._failure(error)
        self._indexed, self._told, self._owed_s = seen, "", min(report.seconds, CHECK_S)
        return WatchedRun(report)

    def _failure(self, error: CommonplaceError | None) -> WatchedRun | None:
        """Return the run that failed, unless the one before it failed alike."""
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

    def _settled(self) -> Look | CommonplaceError:
        """Look, and where something changed, again until nothing does."""
        seen = self._seen()
        waited_s = 0.0
        while self._tried not in {None, _key(seen)} and waited_s < UNREST_S and not self._waiting.is_stopped:
            pause_s = max(QUIET_S, _spared_s(seen))
            self._waiting.rest(pause_s)
            before, seen = seen, self._seen()
            if _key(seen) == _key(before):
                break
            waited_s += pause_s
        return seen

    def _seen(self) -> Look | CommonplaceError:
        try:
            return self._means.look()
        except CommonplaceError as error:
            return error

    def _wait(self, seen: Look | CommonplaceError) -> None:
        # A root that is gone or was replaced is one that the system tells nothing about.
        is_told = self._waiting.is_told and isinstance(seen, Look) and _place(seen) == self._armed
        most_s = max(CHECK_S if is_told else POLL_S, _spared_s(seen))
        if self._retry_at is not None:
            most_s = min(most_s, max(0.0, self._retry_at - self._means.clock()))
        self._waiting.wait(most_s)


def _key(seen: Look | CommonplaceError) -> Look | str:
    return seen if isinstance(seen, Look) else str(seen)


def _place(seen: Look) -> tuple[object, ...]:
    """Return what the system is asked to tell about: of another directory, or a new disk in it, it tells nothing."""
    return seen.root, seen.devices


def _spared_s(seen: Look | CommonplaceError) -> float:
    """Return how long to leave the machine to others after a look."""
    return seen.seconds / LOOKING_SHARE if isinstance(seen, Look) else 0.0
