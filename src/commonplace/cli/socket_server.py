"""Run read-only commands for other processes of the same user, over a socket in the user's runtime directory.

A command runs here as in its own process, except that the store is already open and the output is sent back. A command
that would run differently here, or that fails, is left to its own process.
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
from commonplace.cli.main import QUERY_COMMANDS
from commonplace.cli.output import CALLER, Caller, Notices
from commonplace.cli.socket_client import GREETING, MAX_REQUEST_BYTES, SHARED, is_ours, socket_path
from commonplace.dataclasses import dataclass
from commonplace.settings import Settings
from commonplace.settings.paths import DATABASE
from commonplace.types import Progress

if TYPE_CHECKING:
    from commonplace.engine import Engine
_log = logging.getLogger(__name__)
_REQUEST_S: Final = 5.0
"""Timeout for reading a request, for sending its answer, and for the end of the thread."""
_WORKERS, _WAITING = 2, 16
"""Number of threads and of queued requests; each thread costs a connection to the store."""
_BACKLOG: Final = 16


class _NotAnsweredError(Exception):
    """The requesting process has to run the command itself."""


class Listener:
    """Listens for one store, in a thread. If another process already listens, it takes over when that process ends.

    Attributes:
        listens: set when this process listens.
    """

    def __init__(self) -> None:
        self.listens = threading.Event()
        self._state_lock = threading.Lock()
        self._is_ended = False
        self._thread: threading.Thread | None = None
        self._path = ""

    def begin(self, settings: Settings, engine: Callable[[], Engine]) -> None:
        """Start listening, unless the settings forbid it or no directory is safe; a second call does nothing.

        Args:
            engine: returns an engine of the store, which the listener never closes.
        """
        if settings.store.server == "off" or self._thread is not None:
            return
        try:
            path = socket_path(str(Path(settings.store.path) / DATABASE))
            # A file inside a store would be taken for a part of it.
            if path is None or Path(path).resolve().is_relative_to(Path(settings.store.path).resolve()):
                return
            self._path = path
            # The kernel passes the lock to the next process, even if this one is killed; the lock file stays.
            with ExitStack() as cleanup:
                lock = cleanup.enter_context(open(f"{path}.lock", "ab"))  # noqa: PTH123 - the thread closes it
                arguments = lock, self._listen(lock, fcntl.LOCK_EX | fcntl.LOCK_NB), engine
                cleanup.pop_all()
        except OSError as error:
            _log.info("commands are not answered: %s", error)
            return
        self._thread = threading.Thread(target=self._run, args=arguments, name="commonplace-listen", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop listening after the current requests. Call it before the engine is closed."""
        with self._state_lock:
            self._is_ended = True
        if self.listens.is_set() and self._thread is not None:
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wake:
                wake.settimeout(_REQUEST_S)
                wake.connect(self._path)
            self._thread.join(_REQUEST_S)

    def _listen(self, lock: BinaryIO, operation: int) -> socket.socket | None:
        """Return a listening socket; None if another process holds the lock, or `end` was called meanwhile."""
        try:
            fcntl.flock(lock, operation)
        except BlockingIOError:
            return None
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._state_lock, ExitStack() as cleanup:
            cleanup.callback(listener.close)
            if self._is_ended:
                return None
            Path(self._path).unlink(missing_ok=True)
            listener.bind(self._path)
            Path(self._path).chmod(0o600)
            listener.listen(_BACKLOG)
            self.listens.set()
            cleanup.pop_all()
        return listener

    def _run(self, lock: BinaryIO, bound: socket.socket | None, engine: Callable[[], Engine]) -> None:
        from commonplace.mcp.server import Pool

        try:
            with lock, ExitStack() as cleanup:
                listener = bound or self._listen(lock, fcntl.LOCK_EX)
                if listener is None:
                    return
                cleanup.enter_context(listener)
                pool = Pool(_WORKERS, _WAITING)
                cleanup.callback(pool.finish)
                cleanup.callback(Path(self._path).unlink, missing_ok=True)
                while not self._is_ended:
                    connection, _ = listener.accept()
                    connection.settimeout(_REQUEST_S)
                    is_accepted = not self._is_ended and is_ours(connection)
                    if not is_accepted or not pool.submit(partial(_answer, connection, engine), lambda _: None):
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
        except Exception as error:  # a worker's outermost frame; the other process meets the same error
            _log.debug("a command is left to the process that asked for it", exc_info=error)
            answer = {}
        connection.sendall(json.dumps(answer).encode())


def run(request: Mapping[str, Any], engine: Callable[[], Engine]) -> list[tuple[int, str]]:
    """Run the command of a request, and return its output.

    Raises:
        Exception: the command failed, or would run differently in the requesting process.
    """
    from commonplace.cli.app import SUCCESS, cli

    name, *arguments = request["arguments"]
    environment = request["environment"]
    if name not in QUERY_COMMANDS or any(os.environ.get(variable) != environment.get(variable) for variable in SHARED):
        raise _NotAnsweredError
    caller = Caller(environment, request["stdin"], request["terminals"], tuple(request["size"]), request["encodings"])
    invocation = _Served(directory=Path(request["directory"]), caller=caller, engine=engine)
    token = CALLER.set(caller)
    try:
        command = cli.commands[name]
        # The requesting process prints help itself.
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
        ours = shared.settings
        is_same = (
            loaded.store.path == ours.store.path and loaded.embedder == ours.embedder and loaded.models == ours.models
        )
        if not is_same or not shared.is_local():  # the keys of remote models are in the environment
            raise _NotAnsweredError
        notices, thread = Notices(self), threading.get_ident()
        notices.addFilter(lambda record: record.thread == thread)
        self.attach(notices)
        return shared.in_namespace(loaded.store.namespace, loaded)
