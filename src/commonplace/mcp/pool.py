"""A few threads that work off a short queue. It knows nothing of what they do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Full, Queue
from typing import TypeAlias, TypeVar

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
