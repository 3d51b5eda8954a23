"""Do heavy work on a store in a separate process, which returns all its memory to the system when it ends.

The process is started anew, not forked: at a fork, some thread may hold any lock. It reads its task from standard input
and answers on a pipe of its own, to which nothing else prints: one pickle per line, exchanged only between a process
and its own child. Either may be killed at any time: a change to a store is atomic, or the next process finishes it.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import Any, Final, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.engine.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.errors import CommonplaceError, StoreError
from commonplace.ingest.index_update import bring_up_to_date
from commonplace.settings import Settings
from commonplace.settings.paths import DATABASE
from commonplace.types import Progress

_log = logging.getLogger(__name__)

_CODE: Final = "from commonplace.engine.worker import main; main()"
_STARTED: Final = ("started",)
SILENCE_S: Final = 600.0
"""Seconds of silence after which a process is killed: the longest step of its work, on a large store, takes less."""

_T = TypeVar("_T")


_TASKS: Final[Mapping[str, Callable[[Engine, Progress, Mapping[str, Any]], object]]] = {
    "forget": lambda engine, _, arguments: engine._erasure_api.erase(**arguments),
    "index": lambda engine, progress, arguments: engine._index_api.index_in_process(progress=progress, **arguments),
    "project": lambda engine, progress, arguments: bring_up_to_date(
        engine._runtime.store, engine._runtime.index, progress=progress, **arguments
    ),
}


@dataclass(frozen=True, slots=True)
class Worker:
    """Starts a process for each task on one store, and waits for it. Safe for threads.

    Attributes:
        settings: the engine's settings, which name the store and the namespace.
    """

    settings: Settings
    progress: Progress | None = None

    def run(self, task: str, run_here: Callable[[], _T], **arguments: object) -> _T:
        """Return what a task returns, and raise what it raises.

        Args:
            run_here: does the same in this process, if no other can be started, or one does not begin.

        Raises:
            StoreError: the process failed, or ended without a result.
        """
        with ExitStack() as stack:
            answers = _answers_of_child(stack, (self.settings, task, arguments))
            if answers is None:
                return run_here()
            silence = ""
            try:
                for kind, *values in answers:
                    if kind == "progress":
                        if self.progress is not None:
                            self.progress(*values)
                    elif kind == "done":
                        return values[0]  # type: ignore[no-any-return]
                    elif kind == "refused":
                        raise values[0]
                    else:
                        message, traceback = values
                        _log.error("the process that was to %s failed:\n%s", task, traceback)
                        raise StoreError(
                            f"the process that was to {task} failed: {message}",
                            remedy="the store's log has the traceback; `commonplace doctor` finishes what was left",
                        )
            except TimeoutError:
                silence = f"did not respond for {SILENCE_S:g} s and "
            raise StoreError(
                f"the process that was to {task} {silence}was stopped",
                remedy="run `commonplace doctor`, which finishes what it left",
            )


def _answers_of_child(stack: ExitStack, task: object) -> Iterator[tuple[Any, ...]] | None:
    """Start a process with a task; return its answers, or None if it does not start. The stack ends it."""
    import subprocess  # 3 ms, of a server's first answer

    if not sys.executable or getattr(sys, "frozen", False):  # a frozen program has no interpreter to start
        return None
    incoming, outgoing = os.pipe()
    stack.callback(os.close, incoming)
    # Do not import from the working directory, which may hold anybody's modules. Discard what anything prints, at start
    # too: it must reach neither the answers nor our own client.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _CODE, str(outgoing)]
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "pass_fds": (outgoing,)}
    try:
        child = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, **options))
        stack.callback(child.kill)
    except OSError:
        return None
    finally:
        os.close(outgoing)
    answers = _answers(incoming)
    try:
        if next(answers, None) != _STARTED:
            return None
    except TimeoutError:
        return None
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin as stream:
        pickle.dump(task, stream)
    return answers


def _answers(pipe: int) -> Iterator[tuple[Any, ...]]:
    """Yield the answers of a process until it ends; raise a `TimeoutError` after `SILENCE_S` without one."""
    import select

    poll, buffer = select.poll(), b""
    poll.register(pipe, select.POLLIN)
    while True:
        if not poll.poll(SILENCE_S * 1000):
            raise TimeoutError
        chunk = os.read(pipe, 65_536)
        if not chunk:
            return
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            yield pickle.loads(bytes.fromhex(line.decode()))  # noqa: S301 - of a process that we started


def _line(*answer: object) -> bytes:
    return f"{pickle.dumps(answer).hex()}\n".encode()


def main() -> None:
    """Run the task on standard input."""
    # Closed only by the end of the process, for which the parent waits.
    answers = os.fdopen(int(sys.argv[1]), "wb", closefd=False)

    def tell(*answer: object) -> None:
        with suppress(OSError):  # nobody waits any more: finish the work all the same
            answers.write(_line(*answer))
            answers.flush()

    tell(*_STARTED)
    settings, task, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    path, namespace = settings.store.path, settings.store.namespace
    progress: Progress = partial(tell, "progress")
    try:
        if not Path(path, DATABASE).is_file():
            message = f"the store at {path} was deleted while it was open"
            raise StoreError(message, remedy="open it again")  # noqa: TRY301 - reported as any refusal is
        with open_engine(path, namespace, None, settings=settings, progress=progress) as engine:
            result = _TASKS[task](engine, progress, arguments)
    except CommonplaceError as error:
        tell("refused", error)
    except Exception as error:
        tell("failed", f"{type(error).__name__}: {error}".rstrip(": "), "".join(format_exception(error)))
    else:
        tell("done", result)
