"""Send one HTTP request with limits of time and size.

Import it late: `ssl` and `http.client` cost 30 ms and 8 MB.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.error import URLError
from urllib.request import (
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    UnknownHandler,
    getproxies,
    proxy_bypass,
)

from commonplace.dataclasses import dataclass
from commonplace.errors import ProviderError, UsageError
from commonplace.models.providers import Address, address_of

FAULTS: Final = (OSError, HTTPException)
"""What `send` raises if no complete answer came; TimeoutError, an OSError, if it did not come in time."""
_AT_ONCE: Final = 1 << 16
_PROXY: Final = re.compile(r"(?:https?://)?(?:[^/]*@)?([^/@]+)/?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for a connection or the next byte, and until a moment of the clock for all."""

    read_s: float
    deadline: float
    clock: Callable[[], float] = time.monotonic


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
    left = patience.deadline - patience.clock()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    outcome: SimpleQueue[Answer | Exception] = SimpleQueue()
    request = Request(f"{address}{path}", body, dict(headers), method=method)  # noqa: S310 - an http(s) address
    sockets: list[socket.socket] = []
    opener = _opener(address, sockets)

    def exchange() -> None:
        try:
            with opener.open(request, timeout=min(patience.read_s, left)) as response:
                named = {name.lower(): value for name, value in response.getheaders()}
                outcome.put(Answer(response.status, named, _body(response, patience, max_bytes)))
        except URLError as error:
            outcome.put(_reason(error, address))
        except Exception as error:  # raised again in the waiting thread
            outcome.put(error)

    # A socket's timeout holds for each single step, and the look-up of a name has none: a server that sends a byte a
    # second would block the caller. So the steps have a thread of their own, and the caller waits until the deadline.
    threading.Thread(target=exchange, name="commonplace-http", daemon=True).start()
    try:
        found = outcome.get(timeout=left)
    except Empty:
        raise TimeoutError("the deadline has passed") from None
    finally:
        for each in sockets:  # so that the thread ends, too
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
    if isinstance(found, Exception):
        raise found
    return found


def _opener(address: Address, sockets: list[socket.socket]) -> OpenerDirector:
    """Return what opens an address, through the proxy that the environment names for it; no redirect is followed."""

    def noting(kind: type[HTTPConnection]) -> Any:
        class Noting(kind):  # type: ignore[misc, valid-type]
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        return Noting

    class Plain(HTTPHandler):
        def http_open(self, req: Request) -> HTTPResponse:
            return self.do_open(noting(HTTPConnection), req)

    class Encrypted(HTTPSHandler):
        def https_open(self, req: Request) -> HTTPResponse:
            return self.do_open(noting(HTTPSConnection), req, context=_trusted())

    opener = OpenerDirector()
    proxy = _proxy(address)
    for handler in (ProxyHandler({address.scheme: proxy} if proxy else {}), Plain(), Encrypted(), UnknownHandler()):
        opener.add_handler(handler)
    return opener


def _proxy(address: Address) -> str:
    """Return the proxy of an address, "" for none: the local machine, where Ollama runs, never has one."""
    if address.is_loopback or proxy_bypass(address.authority):
        return ""
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all", "")
    place = _PROXY.fullmatch(proxy)
    try:
        if proxy:
            address_of(f"http://{place[1] if place else ''}")
    except UsageError:
        raise ProviderError(
            f"the proxy for {address.scheme} is not a valid http:// address",
            remedy="correct the variable, or name the host in no_proxy",
        ) from None
    return proxy


def _reason(error: URLError, address: Address) -> Exception:
    refused = re.match(r"Tunnel connection failed: (\d+)", str(error.reason))
    if refused:
        return ProviderError(
            f"the proxy answers {refused[1]} to a connection with {address.host}",
            status=int(refused[1]),
            remedy="check the proxy's variable and its password, or name the host in no_proxy",
        )
    return error.reason if isinstance(error.reason, Exception) else error


@cache
def _trusted() -> ssl.SSLContext:
    """Return the context of all connections: to read the system's certificates takes 20 ms."""
    return ssl.create_default_context()


def _body(response: HTTPResponse, patience: Patience, max_bytes: int) -> bytes:
    expected, body = response.length or 0, bytearray()
    while len(body) <= max_bytes >= expected and (part := response.read1(_AT_ONCE)):
        body += part
        if patience.clock() >= patience.deadline:
            raise TimeoutError("the deadline has passed")
    if max(expected, len(body)) > max_bytes:
        raise ProviderError(
            f"the answer has more than {max_bytes:,} bytes", remedy="ask for less at once, or check the address"
        )
    if len(body) < expected:
        raise IncompleteRead(bytes(body), expected - len(body))
    return bytes(body)
