"""Run the server until SIGINT or SIGTERM."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import MissingExtraError, UsageError
from commonplace.logs import LineFile

if TYPE_CHECKING:
    from commonplace.engine import Engine

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
SOCKET_MODE: Final = 0o600
GRACE_S: Final = 10
"""How long a stopping server waits for the requests that it is answering."""
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens: on a host and a port, or on a Unix socket.

    Attributes:
        port: 0 takes one that is free.
        path: of the socket; None is the host and port.
    """

    host: str
    port: int
    path: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether only users of this machine can reach it."""
        return self.path is not None or self.host in LOOPBACK


def run(
    open_engine: Callable[[], Engine],
    address: Address,
    *,
    log: Path,
    allowed_hosts: Sequence[str] = (),
    per_minute: int = 0,
    has_page: bool = False,
    waits_for_database: bool = False,
    serving: Callable[[str, Callable[[], Engine]], AbstractContextManager[None]],
) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests that are being answered.

    Args:
        log: the file that gets a JSON line for each request: the operation, its status and duration, no contents.
        allowed_hosts: further names by which it is reached, as behind a proxy.
        per_minute: how many requests each token may send a minute; 0 is without limit.
        waits_for_database: the store is on a server, for whose answers other calls need not wait.
        has_page: serve the page too; clients that have not opened its link then need a token.
        serving: is entered when the server listens, with its address or the link to the page, and with what returns the
            engine, which it opens if no request has; it is left before the engine is closed.

    Raises:
        MissingExtraError: the extra `server` is not installed.
        UsageError: the address cannot be listened on, or anybody could reach a store that has no tokens.
    """
    try:
        import uvicorn

        from commonplace.server.access import Access, PageSession
        from commonplace.server.app import MAX_WORKERS, EnginePool, Limits, Service, application

        if has_page:
            import commonplace.server.page.views  # noqa: F401 - Jinja2 may be missing
    except ImportError as error:
        raise MissingExtraError(
            f"the server needs {error.name}, which is not installed",
            remedy="install it with `pip install 'commonplace[server]'`",
        ) from error
    engines = EnginePool(open_engine)
    if not address.is_local and not engines.root().tokens.has_any():
        engines.close()
        raise UsageError(
            f"{address.host} can be reached from other machines, and this store has no access token",
            remedy="make one with `commonplace token create`, or listen on 127.0.0.1",
        )
    names = {*LOOPBACK, *map(str.lower, (address.host, *allowed_hosts))} if address.is_local or allowed_hosts else None
    page = PageSession() if has_page else None
    access = Access(engines.root, hosts=names, is_local=address.is_local, per_minute=per_minute, page=page)
    listening = _listen(address)
    limits = Limits(workers=MAX_WORKERS) if waits_for_database else Limits()
    config = uvicorn.Config(
        application(Service(engines, access, limits, LineFile(log))),
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    signal.signal(signal.SIGTERM, _stop)
    host = f"[{address.host}]" if ":" in address.host else address.host
    shown = f"http://{host}:{listening.getsockname()[1]}" if address.path is None else f"unix:{address.path}"
    try:
        with serving(shown + (page.path if page else ""), engines.root):
            uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # what was being answered is finished
    finally:
        listening.close()
        engines.close()
        if address.path is not None:
            address.path.unlink(missing_ok=True)


def _stop(*_: object) -> None:
    """End as for Ctrl-C: uvicorn raises the signal again when it has finished."""
    raise KeyboardInterrupt


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Said to be TCP, so that asyncio turns off Nagle's algorithm, which costs 40 ms an answer.
    kind = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening = socket.socket(*(kind if address.path is None else (socket.AF_UNIX, socket.SOCK_STREAM)))
    try:
        if (path := address.path) is not None:
            if path.exists() and stat.S_ISSOCK(path.stat().st_mode):  # a dead process may have left it
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    if probe.connect_ex(str(path)) != 0:
                        path.unlink()
            before = os.umask(0o777 & ~SOCKET_MODE)  # only this user can reach it
            try:
                listening.bind(str(path))
            finally:
                os.umask(before)
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address.host, address.port))
        listening.listen(_BACKLOG)
        return listening
    except OSError as error:
        listening.close()
        where = address.path or f"{address.host}:{address.port}"
        remedy = "stop what listens there, or choose another with " + ("--port" if address.path is None else "--socket")
        if isinstance(error, socket.gaierror):
            remedy = "give an address of this machine with --host"
        raise UsageError(f"cannot listen on {where}: {error.strerror or error}", remedy=remedy) from error
