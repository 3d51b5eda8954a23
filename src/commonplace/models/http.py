"""Send one JSON request over HTTP and read the answer, within time and size. It retries nothing and follows nothing.

A client of our own over `http.client`: it loads nothing of asyncio, and its deadline holds for every single read, so
that an answer that comes a byte at a time ends too. Each request has a connection of its own. Import it late: `ssl`
and `http.client` cost 30 ms and 8 MB.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from commonplace.errors import ProviderError

if TYPE_CHECKING:
    from commonplace.models.addresses import Address, Proxy

_PIECE: Final = 1 << 16

FAULTS: Final = (OSError, HTTPException)
"""What `send` raises where no whole answer came; TimeoutError, an OSError, where it did not come in time."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection, for the next byte, and until a moment of the clock for all."""

    connect_s: float
    read_s: float
    deadline: float
    clock: Callable[[], float] = time.monotonic

    def left(self, most: float) -> float:
        """Return how long the next step may take.

        Raises:
            TimeoutError: the deadline has passed.
        """
        left = min(most, self.deadline - self.clock())
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left


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
        ProviderError: the answer is larger than `max_bytes`.
    """
    address, proxy = request.address, request.proxy
    is_tunnelled = proxy is not None and address.scheme == "https"
    connection = HTTPConnection(address.host, address.port)
    wire = _connect(request, patience)
    connection.sock = wire
    try:
        path = f"{address.path}{request.path}"
        headers = dict(request.headers)
        if proxy is not None and not is_tunnelled:
            path = f"{address.scheme}://{address.authority}{path}"
            headers.update(_authorisation(proxy))
        fixed = {"Host": address.authority, "Connection": "close", "Accept-Encoding": "identity"}
        connection.request(request.method, path, request.body, {**fixed, "Content-Type": "application/json", **headers})
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, _body(response, max_bytes))
    finally:
        wire.end()


def _body(response: HTTPResponse, max_bytes: int) -> bytes:
    expected = response.length
    if expected is not None and expected > max_bytes:
        raise _too_large(max_bytes)
    pieces, size = [], 0
    while piece := response.read(_PIECE):
        size += len(piece)
        if size > max_bytes:
            raise _too_large(max_bytes)
        pieces.append(piece)
    body = b"".join(pieces)
    if expected is not None and size < expected:
        raise IncompleteRead(body, expected - size)
    return body


def _too_large(max_bytes: int) -> ProviderError:
    return ProviderError(
        f"the answer has more than {max_bytes:,} bytes", remedy="ask for less at once, or check the address"
    )


def _connect(request: Request, patience: Patience) -> _Wire:
    address, proxy = request.address, request.proxy
    place = (address.host, address.port) if proxy is None else (proxy.host, proxy.port)
    plain = _opened(place, patience)
    try:
        if address.scheme == "http":
            return _Wire(plain, patience)
        if proxy is not None:
            _tunnel(_Wire(plain, patience), address, proxy)
        plain.settimeout(patience.left(patience.connect_s))
        context = ssl.create_default_context()
        return _Wire(context.wrap_socket(plain, server_hostname=address.host), patience)
    except BaseException:
        plain.close()
        raise


def _opened(place: tuple[str, int], patience: Patience) -> socket.socket:
    """Return a connection to the first address of a host that takes one; the deadline holds for all of them."""
    fault = OSError("the host has no address")
    for family, kind, protocol, _, where in _addresses(place, patience):
        left = patience.left(patience.connect_s)
        plain = socket.socket(family, kind, protocol)
        try:
            plain.settimeout(left)
            plain.connect(where)
            return plain
        except OSError as error:
            plain.close()
            fault = error
        except BaseException:
            plain.close()
            raise
    raise fault


def _addresses(place: tuple[str, int], patience: Patience) -> list[Any]:
    """Return where a host is. The system's look-up has no deadline: it goes on by itself where it takes too long.

    Raises:
        OSError: the host is not known, or not in time.
    """
    with suppress(socket.gaierror):
        return socket.getaddrinfo(*place, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    found: SimpleQueue[list[Any] | Exception] = SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(*place, type=socket.SOCK_STREAM))
        except Exception as error:  # it is raised where somebody waits
            found.put(error)

    left = patience.left(patience.connect_s)
    threading.Thread(target=look_up, name="commonplace-look-up", daemon=True).start()
    try:
        known = found.get(timeout=left)
    except Empty:
        raise TimeoutError(f"the name {place[0]} was not looked up in time") from None
    if isinstance(known, Exception):
        raise known
    return known


def _tunnel(wire: _Wire, address: Address, proxy: Proxy) -> None:
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"CONNECT {host}:{address.port} HTTP/1.1", f"Host: {host}:{address.port}"]
    lines += [f"{name}: {value}" for name, value in _authorisation(proxy).items()]
    wire.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
    response = HTTPResponse(wire, method="CONNECT")  # type: ignore[arg-type] # only makefile is used
    response.begin()
    if response.status != 200:
        raise ProviderError(
            f"the proxy {proxy.host} answers {response.status} to a connection with {address.host}",
            status=response.status,
            remedy="check the proxy's variable and its password, or name the host in no_proxy",
        )


def _authorisation(proxy: Proxy) -> dict[str, str]:
    if not proxy.credentials:
        return {}
    return {"Proxy-Authorization": f"Basic {b64encode(proxy.credentials.encode()).decode()}"}


class _Wire:
    """A socket whose every read and write ends at the deadline; what `HTTPConnection` asks of a socket, no more."""

    def __init__(self, sock: socket.socket, patience: Patience) -> None:
        self._sock = sock
        self._patience = patience

    def sendall(self, data: bytes) -> None:
        # A TLS socket's own `sendall` would wait anew for each of its records.
        rest = memoryview(data)
        while rest:
            self._sock.settimeout(self._patience.left(self._patience.read_s))
            rest = rest[self._sock.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Reading(self._sock, self._patience))

    def close(self) -> None:
        """Leave the socket open: `HTTPConnection` is done with it before its answer is read."""

    def end(self) -> None:
        self._sock.close()


class _Reading(io.RawIOBase):
    """The bytes of a socket, each read of which ends at the deadline; closing it leaves the socket open."""

    def __init__(self, sock: socket.socket, patience: Patience) -> None:
        self._sock = sock
        self._patience = patience

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        self._sock.settimeout(self._patience.left(self._patience.read_s))
        return self._sock.recv_into(buffer)
