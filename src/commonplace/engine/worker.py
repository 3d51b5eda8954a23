"""Do heavy work on a store in a process of its own, which gives back all the memory it took.

The process is started anew, not forked, for a forked thread may hold any lock. It reads its task from standard input
and answers on a pipe of its own, on which nothing else is printed, in pickles, which only a process and its own child
exchange. Either may be killed at any time: what is done to a store is whole or finished by whoever comes next.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from traceback import format_exception
from typing import Any, Final, Self, TypeVar

from commonplace.dataclasses import dataclass
from commonplace.engine.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.errors import CommonplaceError, StoreError
from commonplace.ingest.projection import bring_up_to_date
from commonplace.settings import Settings
from commonplace.settings.paths import DATABASE
from commonplace.types import Progress

_log = logging.getLogger(__name__)

_CODE: Final = "from commonplace.engine.worker import main; main()"
_STARTED: Final = ("started",)
SILENCE_S: Final = 600.0
"""So long may a process say nothing at all before it is ended: the longest step of its work, on a large store."""
END_S: Final = 30.0
"""So long may it take to end when it has answered."""

_T = TypeVar("_T")


def _forget(engine: Engine, _progress: Progress, arguments: Mapping[str, Any]) -> object:
    return engine._erasure_api.forget_here(**arguments)


def _project(engine: Engine, progress: Progress, arguments: Mapping[str, Any]) -> object:
    return bring_up_to_date(engine._runtime.store, engine._runtime.index, progress=progress, **arguments)


def _index(engine: Engine, progress: Progress, arguments: Mapping[str, Any]) -> object:
    return engine._index_api.index_here(progress=progress, **arguments)


_TASKS: Final[Mapping[str, Callable[[Engine, Progress, Mapping[str, Any]], object]]] = {
    "forget": _forget,
    "index": _index,
    "project": _project,
}


@dataclass(frozen=True, slots=True)
class Worker:
    """Starts a process for each piece of work on one store, and waits for it. Safe for threads.

    Attributes:
        settings: those of the engine: they name the store and the namespace.
    """

    settings: Settings
    progress: Progress | None = None

    def run(self, task: str, here: Callable[[], _T], **arguments: object) -> _T:
        """Return what a task returns, and raise what it raises.

        Args:
            here: does the same in this process, where no other can be started, or one does not begin.

        Raises:
            StoreError: the process failed, or ended before it could tell what became of it.
        """
        try:
            child = _Child(pickle.dumps((self.settings, task, arguments)))
        except OSError:
            return here()
        with child:
            result = (self._result(task, child),) if child.next() == _STARTED else None
        return result[0] if result else here()

    def _result(self, task: str, child: _Child) -> Any:
        while (answer := child.next()) is not None:
            kind, *values = answer
            if kind == "progress":
                if self.progress is not None:
                    self.progress(*values)
            elif kind == "done":
                child.wait()
                return values[0]
            elif kind == "refused":
                raise _error(*values)
            else:
                what, traceback = values
                _log.error("the process that was to %s failed:\n%s", task, traceback)
                raise StoreError(
                    f"the process that was to {task} failed: {what}",
                    remedy="the store's log has the traceback; `commonplace doctor` finishes what was left",
                )
        silent = f"did not respond for {SILENCE_S:g} s and " if child.is_late else ""
        raise StoreError(
            f"the process that was to {task} {silent}was stopped",
            remedy="run `commonplace doctor`, which finishes what it left",
        )


class _Child:
    """A process at work; one that says nothing for `SILENCE_S` is killed, so that no read or write waits for longer.

    Raises:
        OSError: it cannot be started here.
    """

    def __init__(self, task: bytes) -> None:
        import subprocess  # 3 ms, of a server's first answer

        if not sys.executable or getattr(sys, "frozen", False):
            raise OSError("this is a program of its own: there is no interpreter to start")
        answers, outgoing = os.pipe()
        # The working directory, where anybody's modules may lie, is no place to import from; and whatever prints, at a
        # start too, must neither speak in between nor to our own client.
        command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _CODE, str(outgoing)]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(outgoing,),
            )
        except BaseException:
            os.close(answers)
            raise
        finally:
            os.close(outgoing)
        self.is_late = False
        self._answers = os.fdopen(answers, "rb")
        self._heard_at = time.monotonic()
        self._is_over = threading.Event()
        threading.Thread(target=self._watch, name="commonplace-worker", daemon=True).start()
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stream:
            stream.write(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process, which may have ended already, and let the system forget it."""
        self._is_over.set()
        self.process.kill()
        self.process.wait()
        self._answers.close()

    def next(self) -> tuple[Any, ...] | None:
        """Return the next answer, None where the process has ended."""
        try:
            answer: tuple[Any, ...] = pickle.load(self._answers)  # noqa: S301 - of a process that we started
        except (EOFError, pickle.UnpicklingError):
            return None
        self._heard_at = time.monotonic()
        return answer

    def wait(self) -> None:
        """Wait for its end, but not for long."""
        from subprocess import TimeoutExpired

        with suppress(TimeoutExpired):
            self.process.wait(END_S)

    def _watch(self) -> None:
        while (left_s := self._heard_at + SILENCE_S - time.monotonic()) > 0:
            if self._is_over.wait(left_s):
                return
        self.is_late = True
        self.process.kill()


def _error(kind: type[CommonplaceError], arguments: tuple[object, ...], state: Mapping[str, object]) -> Exception:
    """Return an error as it was raised; pickle would call its class, which may want more than it keeps."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def main() -> None:
    """Do what standard input asks for."""
    settings, task, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    # It is closed by the end of the process, which whoever started it waits for.
    answers = os.fdopen(int(sys.argv[1]), "wb", closefd=False)

    def tell(*answer: object) -> None:
        with suppress(OSError):  # nobody waits any more: the work is done all the same
            pickle.dump(answer, answers)
            answers.flush()

    def progress(what: str, done: int, total: int) -> None:
        tell("progress", what, done, total)

    tell(*_STARTED)
    try:
        result = _outcome(settings, task, arguments, progress)
    except CommonplaceError as error:
        tell("refused", type(error), error.args, error.__dict__)
    except Exception as error:
        tell("failed", f"{type(error).__name__}: {error}".rstrip(": "), "".join(format_exception(error)))
    else:
        tell("done", result)


def _outcome(settings: Settings, task: str, arguments: Mapping[str, Any], progress: Progress) -> object:
    where = settings.store
    if not Path(where.path, DATABASE).is_file():
        raise StoreError(f"the store at {where.path} was deleted while it was open", remedy="open it again")
    with open_engine(where.path, where.namespace, None, settings=settings, progress=progress) as engine:
        return _TASKS[task](engine, progress, arguments)
