"""Send one HTTP request with limits on time and size.

Import this module late: `ssl` and `http.client` cost 30 ms and 8 MB.
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
from commonplace.models.providers import Endpoint, address_of

FAULTS: Final = (OSError, HTTPException)
"""Exceptions that `send` raises if no complete answer arrives; TimeoutError, an OSError, if it is not in time."""
_READ_BYTES: Final = 1 << 16
_PROXY: Final = re.compile(r"(https?://)?(?:([^/]*)@)?([^/@]+)/?", re.IGNORECASE)
_REFUSED: Final = re.compile(r"Tunnel connection failed: (\d+)")
"""The message of `http.client` if a proxy refuses a connection."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds: `read_s` for a connection or the next byte, `deadline` on the clock for everything."""

    read_s: float
    deadline: float
    clock: Callable[[], float] = time.monotonic

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.deadline - self.clock())


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP answer: its status, headers by lower-case name, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send(
    address: Endpoint,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    timeouts: Timeouts,
    max_bytes: int,
    method: str = "POST",
) -> HttpAnswer:
    """Send a request and return the answer, whatever its status; redirects are not followed.

    Raises:
        OSError, HTTPException: no connection, or no whole answer.
        ProviderError: the answer is larger than `max_bytes`, or the proxy is invalid or refuses.
    """
    left = timeouts.remaining_s
    if not left:
        raise TimeoutError("the deadline has passed")
    outcome: SimpleQueue[HttpAnswer | Exception] = SimpleQueue()
    connection, target, login = _connection(address, min(timeouts.read_s, left))
    opened: list[socket.socket] = []  # the connection drops its socket after the headers

    def exchange() -> None:
        try:
            connection.connect()
            opened.append(connection.sock)
            connection.request(method, f"{target}{path}" or "/", body, {**headers, **login, "Connection": "close"})
            with connection.getresponse() as response:
                by_name = {name.lower(): value for name, value in response.getheaders()}
                outcome.put(HttpAnswer(response.status, by_name, _body(response, timeouts, max_bytes)))
        except Exception as error:  # re-raised in the waiting thread
            outcome.put(error)
        finally:
            connection.close()

    # A socket's timeout applies to each step, and a name look-up has none: a server that sends a byte a second would
    # block the caller. So the steps run in a thread, and the caller waits until the deadline.
    threading.Thread(target=exchange, name="commonplace-http", daemon=True).start()
    try:
        result = outcome.get(timeout=left)
    except Empty:
        raise TimeoutError("the deadline has passed") from None
    finally:
        for connected in opened:  # so that the thread ends too
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)
    if isinstance(result, Exception):
        if refused := _REFUSED.match(str(result)):
            raise ProviderError(
                f"the proxy answers {refused[1]} to a connection with {address.host}",
                status=int(refused[1]),
                remedy="check the proxy's variable and its password, or name the host in no_proxy",
            )
        raise result
    return result


def _connection(address: Endpoint, timeout_s: float) -> tuple[HTTPConnection, str, dict[str, str]]:
    """Return a connection, through the environment's proxy if any, with a target prefix and proxy headers.

    The prefix begins the target of every request; the headers are for the proxy alone.
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


def _proxy(address: Endpoint) -> tuple[Endpoint, dict[str, str]] | None:
    """Return the proxy of an address and its login header, or None.

    The local machine, where Ollama runs, never has a proxy.
    """
    if address.is_loopback or proxy_bypass(address.authority):
        return None
    proxies = getproxies()
    written = proxies.get(address.scheme) or proxies.get("all", "")
    if not written:
        return None
    scheme, login, authority = match.groups("") if (match := _PROXY.fullmatch(written)) else ("", "", "")
    try:
        proxy = address_of(f"{scheme or 'http://'}{authority}")
    except UsageError:
        raise ProviderError(
            f"the proxy for {address.scheme} is not a valid http:// address",
            remedy="correct the variable, or name the host in no_proxy",
        ) from None
    secret = b64encode(unquote(login).encode()).decode()
    return proxy, {"Proxy-Authorization": f"Basic {secret}"} if login else {}


@cache
def _trusted() -> ssl.SSLContext:
    """Return the TLS context shared by all connections: reading the system's certificates takes 20 ms."""
    return ssl.create_default_context()


def _body(response: HTTPResponse, timeouts: Timeouts, max_bytes: int) -> bytes:
    expected, body = response.length or 0, bytearray()
    while len(body) <= max_bytes >= expected and (part := response.read1(_READ_BYTES)):
        body += part
        if not timeouts.remaining_s:
            raise TimeoutError("the deadline has passed")
    if max(expected, len(body)) > max_bytes:
        raise ProviderError(
            f"the answer has more than {max_bytes:,} bytes", remedy="ask for less at once, or check the address"
        )
    if len(body) < expected:
        raise IncompleteRead(bytes(body), expected - len(body))
    return bytes(body)
