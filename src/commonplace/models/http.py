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
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Final
from urllib.parse import unquote
from urllib.request import getproxies, proxy_bypass

from commonplace.dataclasses import dataclass
from commonplace.errors import ProviderError, UsageError
from commonplace.models.providers import Address, address_of

FAULTS: Final = (OSError, HTTPException)
"""What `send` raises if no complete answer came; TimeoutError, an OSError, if it did not come in time."""
_AT_ONCE: Final = 1 << 16
_PROXY: Final = re.compile(r"(https?://)?(?:([^/]*)@)?([^/@]+)/?", re.IGNORECASE)
_REFUSED: Final = re.compile(r"Tunnel connection failed: (\d+)")
"""How `http.client` says that a proxy refuses a connection."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection or the next byte, and until a moment of the clock for all."""

    read_s: float
    deadline: float
    clock: Callable[[], float] = time.monotonic

    @property
    def left_s(self) -> float:
        return max(0.0, self.deadline - self.clock())


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: headers by name in small letters, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send(
    address: Address,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    patience: Patience,
    max_bytes: int,
    method: str = "POST",
) -> Answer:
    """Send a request and return the answer, whatever its status; a redirect is an answer like any other.

    Raises:
        OSError, HTTPException: no connection, or no whole answer.
        ProviderError: the answer is larger than `max_bytes`, or the proxy is invalid or refuses.
    """
    left = patience.left_s
    if not left:
        raise TimeoutError("the deadline has passed")
    outcome: SimpleQueue[Answer | Exception] = SimpleQueue()
    connection, target, more = _connection(address, min(patience.read_s, left))
    opened: list[socket.socket] = []  # the connection itself lets go of its socket when it has read the headers

    def exchange() -> None:
        try:
            connection.connect()
            opened.append(connection.sock)
            connection.request(method, f"{target}{path}" or "/", body, {**headers, **more, "Connection": "close"})
            with connection.getresponse() as response:
                named = {name.lower(): value for name, value in response.getheaders()}
                outcome.put(Answer(response.status, named, _body(response, patience, max_bytes)))
        except Exception as error:  # raised again in the waiting thread
            outcome.put(error)
        finally:
            connection.close()

    # A socket's timeout holds for each single step, and the look-up of a name has none: a server that sends a byte a
    # second would block the caller. So the steps have a thread of their own, and the caller waits until the deadline.
    threading.Thread(target=exchange, name="commonplace-http", daemon=True).start()
    try:
        found = outcome.get(timeout=left)
    except Empty:
        raise TimeoutError("the deadline has passed") from None
    finally:
        for each in opened:  # so that the thread ends, too
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
    if isinstance(found, Exception):
        if refused := _REFUSED.match(str(found)):
            raise ProviderError(
                f"the proxy answers {refused[1]} to a connection with {address.host}",
                status=int(refused[1]),
                remedy="check the proxy's variable and its password, or name the host in no_proxy",
            )
        raise found
    return found


def _connection(address: Address, timeout_s: float) -> tuple[HTTPConnection, str, dict[str, str]]:
    """Return a connection, through the proxy that the environment names; no redirect is followed.

    With it come what the target of a request begins with, and headers for the proxy alone.
    """
    proxy, login = _proxy(address) or (None, {})
    reached = proxy or address
    if "https" in (address.scheme, reached.scheme):
        connection: HTTPConnection = HTTPSConnection(reached.host, reached.port, timeout=timeout_s, context=_trusted())
    else:
        connection = HTTPConnection(reached.host, reached.port, timeout=timeout_s)
    if proxy and address.scheme == "http":
        return connection, str(address), login
    if proxy:
        connection.set_tunnel(address.host, address.port, headers=login)
    return connection, address.path, {}


def _proxy(address: Address) -> tuple[Address, dict[str, str]] | None:
    """Return the proxy of an address and the header that logs in to it; None for none.

    The local machine, where Ollama runs, never has one.
    """
    if address.is_loopback or proxy_bypass(address.authority):
        return None
    proxies = getproxies()
    written = proxies.get(address.scheme) or proxies.get("all", "")
    if not written:
        return None
    scheme, login, place = found.groups("") if (found := _PROXY.fullmatch(written)) else ("", "", "")
    try:
        proxy = address_of(f"{scheme or 'http://'}{place}")
    except UsageError:
        raise ProviderError(
            f"the proxy for {address.scheme} is not a valid http:// address",
            remedy="correct the variable, or name the host in no_proxy",
        ) from None
    secret = b64encode(unquote(login).encode()).decode()
    return proxy, {"Proxy-Authorization": f"Basic {secret}"} if login else {}


@cache
def _trusted() -> ssl.SSLContext:
    """Return the context of all connections: to read the system's certificates takes 20 ms."""
    return ssl.create_default_context()


def _body(response: HTTPResponse, patience: Patience, max_bytes: int) -> bytes:
    expected, body = response.length or 0, bytearray()
    while len(body) <= max_bytes >= expected and (part := response.read1(_AT_ONCE)):
        body += part
        if not patience.left_s:
            raise TimeoutError("the deadline has passed")
    if max(expected, len(body)) > max_bytes:
        raise ProviderError(
            f"the answer has more than {max_bytes:,} bytes", remedy="ask for less at once, or check the address"
        )
    if len(body) < expected:
        raise IncompleteRead(bytes(body), expected - len(body))
    return bytes(body)
