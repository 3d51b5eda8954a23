"""A few threads that work off a short queue. It knows nothing of what they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Full, Queue
from typing import TypeAlias, TypeVar

_MOST_HEAPS, _TRIM_THRESHOLD = -8, -1
"""M_ARENA_MAX and M_TRIM_THRESHOLD of mallopt(3) in the GNU C library."""
_KEPT_FREE = 1 << 18

_T = TypeVar("_T")
_Job: TypeAlias = Callable[[], Callable[[], None]]


class Pool:
    """Runs work in at most `workers` threads while at most `waiting` more is queued; used from one thread.

    A thread is started only when all others are busy, as each costs whoever it calls a connection of its own.
    """

    def __init__(self, workers: int, waiting: int) -> None:
        self._workers = workers
        self._jobs: Queue[_Job | None] = Queue(waiting)
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[[], _T], deliver: Callable[[_T], None]) -> bool:
        """Have `deliver(work())` called in a thread, neither of which may raise; False where the queue is full."""

        def job() -> Callable[[], None]:
            outcome = work()
            return lambda: deliver(outcome)

        try:
            self._jobs.put_nowait(job)
        except Full:
            return False
        if len(self._threads) < min(self._jobs.unfinished_tasks, self._workers):
            if not self._threads:
                _share_one_heap()
            thread = threading.Thread(target=self._run, name=f"mcp-{len(self._threads) + 1}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return True

    def finish(self) -> None:
        """Wait until all that was submitted is delivered, and end the threads."""
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            deliver = job()
            # Done before it is delivered: a client that then asks at once must find this thread free.
            self._jobs.task_done()
            deliver()


def _share_one_heap() -> None:
    """Keep the C library from giving each thread a heap, which would grow to the largest request that it ever served.

    As Python runs one thread at a time, they would rarely wait for one another anyway. Nor is what one request took
    kept for the next: 1 MB for a tenth of a millisecond. Where there is no such library, or it knows no such setting,
    nothing happens.
    """
    import ctypes

    with suppress(AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MOST_HEAPS, 1)
        library.mallopt(_TRIM_THRESHOLD, _KEPT_FREE)
