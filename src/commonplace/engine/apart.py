"""Do heavy work on a store in a process of its own, which gives back all it took: it knows how, not when that pays.

The process is started anew, not forked, for a forked thread may hold any lock. It is told what to do on standard input
and answers on a pipe of its own, on which nothing else is printed, in pickles, which only a process and its own child
exchange. Either may be killed at any time: what is done to a store is whole or finished by whoever comes next.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from commonplace.engine.layout import DATABASE
from commonplace.errors import CommonplaceError, StoreError
from commonplace.ingest.projection import bring_up_to_date

if TYPE_CHECKING:
    from commonplace.engine.facade import Engine
    from commonplace.settings import Settings
    from commonplace.types import Progress

_log = logging.getLogger(__name__)

_CODE: Final = "from commonplace.engine.apart import main; main()"
_ANSWERS: Final = 3
"""The descriptor that the process answers on."""
_STARTED: Final = ("started",)

_T = TypeVar("_T")


def _forget(engine: Engine, _progress: Progress, arguments: Mapping[str, Any]) -> object:
    return engine._forget_here(**arguments)


def _project(engine: Engine, progress: Progress, arguments: Mapping[str, Any]) -> object:
    return bring_up_to_date(engine._store, engine._index, progress=progress, **arguments)


_TASKS: Final[Mapping[str, Callable[[Engine, Progress, Mapping[str, Any]], object]]] = {
    "forget": _forget,
    "project": _project,
}


@dataclass(frozen=True, slots=True)
class Apart:
    """Starts a process for each piece of work on one store, and waits for it. Safe for threads.

    Attributes:
        settings: those of the engine: they name the store and the namespace.
    """

    settings: Settings
    progress: Progress | None = None

    def run(self, task: str, here: Callable[[], _T], **arguments: object) -> _T:
        """Return what a task returns, and raise what it raises.

        Args:
            here: does the same in this process, where no other can be started.

        Raises:
            StoreError: the process failed, or ended before it could tell what became of it.
        """
        asked = pickle.dumps((self.settings, task, arguments))
        try:
            process, answers = _start(asked)
        except OSError:
            return here()
        try:
            with answers:
                if _next(answers) != _STARTED:
                    return here()
                result: _T = self._result(task, answers)
                return result
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            raise
        finally:
            with suppress(ChildProcessError):
                os.waitpid(process, 0)

    def _result(self, task: str, answers: BinaryIO) -> Any:
        while (answer := _next(answers)) is not None:
            kind, *told = answer
            if kind == "progress":
                if self.progress is not None:
                    self.progress(*told)
            elif kind == "done":
                return told[0]
            elif kind == "refused":
                raise _error(*told)
            else:
                what, where = told
                _log.error("the process that was to %s failed:\n%s", task, where)
                raise StoreError(
                    f"the process that was to {task} failed: {what}",
                    remedy="the store's log has the traceback; `commonplace doctor` finishes what was left",
                )
        raise StoreError(
            f"the process that was to {task} was ended", remedy="run `commonplace doctor`, which finishes what it left"
        )


def _start(asked: bytes) -> tuple[int, BinaryIO]:
    """Start a process and ask it; return its id and what it answers.

    Raises:
        OSError: that cannot be done here.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise OSError("this is a program of its own: there is no interpreter to start")
    incoming, asking = os.pipe()
    answers, outgoing = os.pipe()
    streams: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_DUP2, incoming, 0), (os.POSIX_SPAWN_DUP2, outgoing, _ANSWERS)]
    # Whatever prints, at a start too, must neither speak in between nor to our own client.
    streams += [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    # The working directory, where anybody's modules may lie, is no place to import from.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-c", _CODE]
    try:
        process = os.posix_spawn(sys.executable, command, os.environ, file_actions=streams)
    except OSError:
        os.close(asking)
        os.close(answers)
        raise
    finally:
        os.close(incoming)
        os.close(outgoing)
    with suppress(BrokenPipeError), os.fdopen(asking, "wb") as stream:
        stream.write(asked)
    return process, os.fdopen(answers, "rb")


def _next(answers: BinaryIO) -> tuple[Any, ...] | None:
    """Return the next answer, None where the process has ended."""
    try:
        answer: tuple[Any, ...] = pickle.load(answers)  # noqa: S301 - of a process that we started
    except (EOFError, pickle.UnpicklingError):
        return None
    return answer


def _error(kind: type[CommonplaceError], arguments: tuple[object, ...], state: Mapping[str, object]) -> Exception:
    """Return an error as it was raised; pickle would call its class, which may want more than it keeps."""
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error


def main() -> None:
    """Do what standard input asks for."""
    settings, task, arguments = pickle.load(sys.stdin.buffer)  # noqa: S301 - of the process that started this one
    answers = os.fdopen(_ANSWERS, "wb")

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
        from traceback import format_exception

        tell("failed", f"{type(error).__name__}: {error}".rstrip(": "), "".join(format_exception(error)))
    else:
        tell("done", result)


def _outcome(settings: Settings, task: str, arguments: Mapping[str, Any], progress: Progress) -> object:
    from commonplace.engine.opening import open_engine

    where = settings.store
    if not Path(where.path, DATABASE).is_file():
        raise StoreError(f"the store at {where.path} was deleted while it was open", remedy="open it again")
    with open_engine(where.path, where.namespace, None, settings=settings, progress=progress) as engine:
        return _TASKS[task](engine, progress, arguments)
