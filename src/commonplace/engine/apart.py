"""Do heavy work on a store in a process of its own, which gives back all it took: it knows how, not when that pays.

The process is started anew, not forked, for a forked thread may hold any lock. It is told what to do on standard input
and answers on a pipe of its own, on which nothing else is printed, in pickles, which only a process and its own child
exchange. Either may be killed at any time: what is done to a store is whole or finished by whoever comes next.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import select
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
SILENCE_S: Final = 600.0
"""So long may a process say nothing at all before it is ended: the longest step of its work, on a large store."""
END_S: Final = 30.0
"""So long may it take to end when it has answered."""

_T = TypeVar("_T")


def _forget(engine: Engine, _progress: Progress, arguments: Mapping[str, Any]) -> object:
    return engine._forget_here(**arguments)


def _project(engine: Engine, progress: Progress, arguments: Mapping[str, Any]) -> object:
    return bring_up_to_date(engine._store, engine._index, progress=progress, **arguments)


def _index(engine: Engine, progress: Progress, arguments: Mapping[str, Any]) -> object:
    return engine._brought_here(**arguments, progress=progress)


_TASKS: Final[Mapping[str, Callable[[Engine, Progress, Mapping[str, Any]], object]]] = {
    "forget": _forget,
    "index": _index,
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
            here: does the same in this process, where no other can be started, or one does not begin.

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
                told = self._told(task, answers)
        finally:
            _end(process)
        return told[0] if told else here()

    def _told(self, task: str, answers: BinaryIO) -> tuple[Any] | None:
        """Return the result of a task, and wait for the end of its process; None where that did not begin."""
        try:
            if _next(answers) != _STARTED:
                return None
        except TimeoutError:
            return None
        try:
            result = self._result(task, answers)
        except TimeoutError:
            raise StoreError(
                f"the process that was to {task} said nothing for {SILENCE_S:g} s and was ended",
                remedy="run `commonplace doctor`, which finishes what it left",
            ) from None
        with suppress(TimeoutError):
            _next(answers, END_S)
        return (result,)

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
    try:
        with suppress(BrokenPipeError):
            _write(asking, asked)
    except BaseException:
        os.close(answers)
        _end(process)
        raise
    finally:
        os.close(asking)
    return process, io.BufferedReader(_Hearing(answers))


def _end(process: int) -> None:
    """End a process, which may have ended already, and let the system forget it."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _write(descriptor: int, data: bytes) -> None:
    """Write to a pipe whose other end may never be read.

    Raises:
        TimeoutError: it is not read.
    """
    os.set_blocking(descriptor, False)
    rest = memoryview(data)
    while rest:
        _wait(descriptor, select.POLLOUT, SILENCE_S)
        rest = rest[os.write(descriptor, rest) :]


def _wait(descriptor: int, what: int, most_s: float) -> None:
    poll = select.poll()
    poll.register(descriptor, what)
    if not poll.poll(most_s * 1000):
        raise TimeoutError(f"nothing came for {most_s:g} s")


class _Hearing(io.RawIOBase):
    """The end of a pipe that answers come from; none is waited for longer than `most_s` without a byte of it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.most_s = SILENCE_S

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        _wait(self._descriptor, select.POLLIN, self.most_s)
        data = os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def _next(answers: BinaryIO, most_s: float | None = None) -> tuple[Any, ...] | None:
    """Return the next answer, None where the process has ended.

    Raises:
        TimeoutError: neither happens in time.
    """
    if most_s is not None:
        answers.raw.most_s = most_s  # type: ignore[attr-defined] # it is what `_start` made
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
    # It is closed by the end of the process, which whoever started it waits for.
    answers = os.fdopen(_ANSWERS, "wb", closefd=False)

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
