"""Run the server until SIGINT or SIGTERM."""

from __future__ import annotations

import errno
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
"""How long a stopping server waits for the requests in progress."""
_BACKLOG: Final = 512


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address on which a server listens: a host and port, or a Unix socket.

    Attributes:
        port: the TCP port; 0 takes a free one.
        path: the path of the Unix socket; None listens on the host and port.
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
    address: ListenAddress,
    *,
    log: Path,
    allowed_hosts: Sequence[str] = (),
    per_minute: int = 0,
    has_page: bool = False,
    waits_for_database: bool = False,
    serving: Callable[[str, Callable[[], Engine]], AbstractContextManager[None]],
) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests in progress.

    Args:
        log: the file that gets a JSON line for each request: the operation, its status and duration, no contents.
        allowed_hosts: further host names of the server, such as those of a proxy.
        per_minute: how many requests a token may send per minute; 0 is unlimited.
        waits_for_database: the store is on a database server, so calls that wait for it can run beside others.
        has_page: serve the page too; clients that have not opened its link then need a token.
        serving: entered when the server listens, with its address or the link to the page, and a function that returns
            the engine, opening it if no request has; left before the engine is closed.

    Raises:
        MissingExtraError: the extra `server` is not installed.
        UsageError: the server cannot listen on the address, or other machines could reach a store without tokens.
    """
    try:
        import uvicorn

        from commonplace.server.access import AccessControl, PageSession
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
    hosts = {*LOOPBACK, *map(str.lower, (address.host, *allowed_hosts))} if address.is_local or allowed_hosts else None
    page = PageSession() if has_page else None
    access = AccessControl(engines.root, hosts=hosts, is_local=address.is_local, per_minute=per_minute, page=page)
    listener = _listen(address)
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
    # As for Ctrl-C: uvicorn raises the signal again when it has finished.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    host = f"[{address.host}]" if ":" in address.host else address.host
    url = f"http://{host}:{listener.getsockname()[1]}" if address.path is None else f"unix:{address.path}"
    try:
        with serving(url + (page.path if page else ""), engines.root):
            uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # the requests in progress are finished
    finally:
        listener.close()
        engines.close()
        if address.path is not None:
            address.path.unlink(missing_ok=True)


def _listen(address: ListenAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # Name TCP explicitly: only then asyncio turns off Nagle's algorithm, which costs 40 ms per answer.
    kind = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener = socket.socket(*(kind if address.path is None else (socket.AF_UNIX, socket.SOCK_STREAM)))
    try:
        if (path := address.path) is not None:
            if path.exists() and stat.S_ISSOCK(path.stat().st_mode):  # perhaps left by a dead process
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    if probe.connect_ex(str(path)) != 0:
                        path.unlink()
            old_mask = os.umask(0o777 & ~SOCKET_MODE)  # only this user can reach it
            try:
                listener.bind(str(path))
            finally:
                os.umask(old_mask)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
        return listener
    except OSError as error:
        listener.close()
        target = address.path or f"{address.host}:{address.port}"
        remedy = f"choose another with {'--port' if address.path is None else '--socket'}"
        if error.errno == errno.EADDRINUSE:
            remedy = f"stop what listens there, or {remedy}"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            remedy = "give an address of this machine with --host"
        raise UsageError(f"cannot listen on {target}: {error.strerror or error}", remedy=remedy) from error
