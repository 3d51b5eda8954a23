"""Send one HTTP request with limits of time and size.

Import it late: `ssl` and `http.client` cost 30 ms and 8 MB.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.errors import ProviderError
from commonplace.models.providers import Address, Proxy

FAULTS: Final = (OSError, HTTPException)
"""What `send` raises where no whole answer came; TimeoutError, an OSError, where it did not come in time."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection, for the next byte, and until a moment of the clock for all."""

    connect_s: float
    read_s: float
    deadline: float
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. Its headers may hold a key, so it has no representation of its own."""

    address: Address
    path: str
    headers: Mapping[str, str]
    body: bytes
    proxy: Proxy | None = None
    method: str = "POST"

    def __repr__(self) -> str:
        return f"Request({self.address}{self.path}, {len(self.body)} bytes)"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: headers by name in small letters, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send(request: Request, patience: Patience, max_bytes: int) -> Answer:
    """Send a request and return the answer, whatever its status; a redirect is an answer like any other.

    Raises:
        OSError, HTTPException: no connection, or no whole answer.
        ProviderError: the answer is larger than `max_bytes`, or the proxy refuses.
    """
    left = patience.deadline - patience.clock()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    outcome: SimpleQueue[Answer | Exception] = SimpleQueue()
    connection = _connection(request, min(patience.connect_s, left))
    sockets: list[socket.socket] = []

    def exchange() -> None:
        try:
            _connect(connection, request)
            sockets.append(connection.sock)
            connection.sock.settimeout(patience.read_s)
            outcome.put(_exchange(connection, request, max_bytes))
        except Exception as error:  # it is raised where somebody waits
            outcome.put(error)
        finally:
            connection.close()
            for each in sockets:
                each.close()

    # A socket's timeout holds for each single step, and the look-up of a name has none: a server that sends a byte a
    # second would hold whoever asks. So the steps have a thread of their own, and who asks waits until the deadline.
    threading.Thread(target=exchange, name="commonplace-http", daemon=True).start()
    try:
        found = outcome.get(timeout=left)
    except Empty:
        raise TimeoutError("the deadline has passed") from None
    finally:
        for each in sockets:
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
    if isinstance(found, Exception):
        raise found
    return found


def _connection(request: Request, timeout_s: float) -> HTTPConnection:
    address, proxy = request.address, request.proxy
    host, port = (proxy.host, proxy.port) if proxy else (address.host, address.port)
    if address.scheme == "http":
        return HTTPConnection(host, port, timeout=timeout_s)
    connection = HTTPSConnection(host, port, timeout=timeout_s, context=ssl.create_default_context())
    if proxy:
        connection.set_tunnel(address.host, address.port, _authorisation(proxy))
    return connection


def _connect(connection: HTTPConnection, request: Request) -> None:
    try:
        connection.connect()
    except OSError as error:
        refused = re.match(r"Tunnel connection failed: (\d+)", str(error))
        if not refused or not request.proxy:
            raise
        raise ProviderError(
            f"the proxy {request.proxy.host} answers {refused[1]} to a connection with {request.address.host}",
            status=int(refused[1]),
            remedy="check the proxy's variable and its password, or name the host in no_proxy",
        ) from None


def _exchange(connection: HTTPConnection, request: Request, max_bytes: int) -> Answer:
    path, headers = f"{request.address.path}{request.path}", dict(request.headers)
    if request.proxy and request.address.scheme == "http":
        path = f"http://{request.address.authority}{path}"
        headers.update(_authorisation(request.proxy))
    fixed = {"Connection": "close", "Content-Type": "application/json"}
    connection.request(request.method, path, request.body, {**fixed, **headers})
    with connection.getresponse() as response:
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, _body(response, max_bytes))


def _body(response: HTTPResponse, max_bytes: int) -> bytes:
    expected = response.length or 0
    body = b"" if expected > max_bytes else response.read(max_bytes + 1)
    if max(expected, len(body)) > max_bytes:
        raise ProviderError(
            f"the answer has more than {max_bytes:,} bytes", remedy="ask for less at once, or check the address"
        )
    if len(body) < expected:
        raise IncompleteRead(body, expected - len(body))
    return body


def _authorisation(proxy: Proxy) -> dict[str, str]:
    if not proxy.credentials:
        return {}
    return {"Proxy-Authorization": f"Basic {b64encode(proxy.credentials.encode()).decode()}"}
