"""Run commands that only ask for other processes of the same user, over a socket in the user's runtime directory.

A command runs here as it would in its own process, but for the store, which is open, and the streams: what it prints is
sent back. Whatever is not as it would be there, and every failure, is left to that process.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from commonplace.cli.invocation import Invocation
from commonplace.cli.main import ASKING
from commonplace.cli.output import CALLER, Caller, Notices
from commonplace.cli.socket_client import GREETING, MAX_REQUEST_BYTES, SAME, is_ours, socket_path
from commonplace.dataclasses import dataclass
from commonplace.settings import Settings
from commonplace.settings.paths import DATABASE
from commonplace.types import Progress

if TYPE_CHECKING:
    from commonplace.engine import Engine
_log = logging.getLogger(__name__)
_REQUEST_S: Final = 5.0
"""Timeout for reading a request and for sending its answer, and for the end of the thread."""
_WORKERS, _WAITING = 2, 16
"""Each thread costs a connection to the store."""
_BACKLOG: Final = 16


class _NotAnsweredError(Exception):
    """The requesting process must run the command itself."""


class Listener:
    """Listens for one store, in a thread. Where another process does, it takes over when that one is gone.

    Attributes:
        listens: set when this process is the one that listens.
    """

    def __init__(self) -> None:
        self.listens = threading.Event()
        self._turn = threading.Lock()
        self._is_ended = False
        self._thread: threading.Thread | None = None
        self._place = ""

    def begin(self, settings: Settings, engine: Callable[[], Engine]) -> None:
        """Start listening, unless the settings forbid it or no directory is safe; a second call does nothing.

        Args:
            engine: returns an engine of the store, which is left open.
        """
        if settings.store.server == "off" or self._thread is not None:
            return
        try:
            place = socket_path(str(Path(settings.store.path) / DATABASE))
            # What is in a store is taken for its own.
            if place is None or Path(place).resolve().is_relative_to(Path(settings.store.path).resolve()):
                return
            self._place = place
            # The kernel gives the lock to the next process, also when this one is killed; the file itself stays.
            with ExitStack() as failing:
                lock = failing.enter_context(open(f"{place}.lock", "ab"))  # noqa: PTH123 - the thread closes it
                arguments = lock, self._bound(lock, fcntl.LOCK_EX | fcntl.LOCK_NB), engine
                failing.pop_all()
        except OSError as error:
            _log.info("commands are not answered: %s", error)
            return
        self._thread = threading.Thread(target=self._run, args=arguments, name="commonplace-listen", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop listening after the current requests; call it before the engine is closed."""
        with self._turn:
            self._is_ended = True
        if self.listens.is_set() and self._thread is not None:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wake:
                wake.settimeout(_REQUEST_S)
                wake.connect(self._place)
            self._thread.join(_REQUEST_S)

    def _bound(self, lock: BinaryIO, how: int) -> socket.socket | None:
        """Return a listening socket; None if another process holds the lock, or `end` was called meanwhile."""
        try:
            fcntl.flock(lock, how)
        except BlockingIOError:
            return None
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._turn, ExitStack() as failing:
            failing.callback(listening.close)
            if self._is_ended:
                return None
            Path(self._place).unlink(missing_ok=True)
            listening.bind(self._place)
            Path(self._place).chmod(0o600)
            listening.listen(_BACKLOG)
            self.listens.set()
            failing.pop_all()
        return listening

    def _run(self, lock: BinaryIO, bound: socket.socket | None, engine: Callable[[], Engine]) -> None:
        from commonplace.mcp.server import Pool

        try:
            with lock, ExitStack() as ending:
                listening = bound or self._bound(lock, fcntl.LOCK_EX)
                if listening is None:
                    return
                ending.enter_context(listening)
                pool = Pool(_WORKERS, _WAITING)
                ending.callback(pool.finish)
                ending.callback(Path(self._place).unlink, missing_ok=True)
                while not self._is_ended:
                    connection, _ = listening.accept()
                    connection.settimeout(_REQUEST_S)
                    is_taken = not self._is_ended and is_ours(connection)
                    if not is_taken or not pool.submit(partial(_answer, connection, engine), lambda _: None):
                        connection.close()
        except Exception:
            # The outermost frame of the thread: the server continues without it.
            _log.exception("commands are not answered any more")


def _answer(connection: socket.socket, engine: Callable[[], Engine]) -> None:
    with connection, suppress(OSError):
        connection.sendall(GREETING)
        with connection.makefile("rb") as file:
            request = file.read(MAX_REQUEST_BYTES)
        try:
            answer: dict[str, Any] = {"output": run(json.loads(request), engine)}
        except Exception as error:  # a worker's outermost edge, and the other process meets the same error
            _log.debug("a command is left to the process that asked for it", exc_info=error)
            answer = {}
        connection.sendall(json.dumps(answer).encode())


def run(request: Mapping[str, Any], engine: Callable[[], Engine]) -> list[tuple[int, str]]:
    """Run the command of a request and return what it printed.

    Raises:
        Exception: it failed, or would not be here what it is in the process that asks.
    """
    from commonplace.cli.app import SUCCESS, cli

    name, *arguments = request["arguments"]
    given = request["environment"]
    if name not in ASKING or any(os.environ.get(each) != given.get(each) for each in SAME):
        raise _NotAnsweredError
    caller = Caller(given, request["stdin"], request["terminals"], tuple(request["size"]), request["encodings"])
    invocation = _Served(directory=Path(request["directory"]), caller=caller, engine=engine)
    token = CALLER.set(caller)
    try:
        command = cli.commands[name]
        # Help is printed by the process that asks for it.
        with command.make_context(name, arguments, obj=invocation, help_option_names=[]) as context:
            if command.invoke(context) not in (None, SUCCESS):
                raise _NotAnsweredError
    finally:
        CALLER.reset(token)
        invocation.close()
    return caller.output


@dataclass(slots=True)
class _Served(Invocation):
    engine: Callable[[], Engine] | None = None

    def open(
        self,
        settings: Settings | None = None,
        *,
        create: bool = False,  # noqa: ARG002 - there is a store
        progress: Progress | None = None,  # noqa: ARG002 - there is no terminal
        low_memory: bool = False,  # noqa: ARG002 - as the server is
    ) -> Engine:
        assert self.engine is not None
        loaded = settings or self.settings()
        if self.is_verbose or loaded.store.server == "off" or loaded.models.reranker != "none":
            raise _NotAnsweredError
        shared = self.engine()
        own = shared.settings
        is_same = (
            loaded.store.path == own.store.path and loaded.embedder == own.embedder and loaded.models == own.models
        )
        if not is_same or not shared.is_local():  # the keys of one that is not local are in the environment
            raise _NotAnsweredError
        notices, thread = Notices(self), threading.get_ident()
        notices.addFilter(lambda record: record.thread == thread)
        self.attach(notices)
        return shared.in_namespace(loaded.store.namespace, loaded)
