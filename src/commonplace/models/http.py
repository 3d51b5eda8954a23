"""Send one HTTP request with limits of time and size.

Import it late: `ssl` and `http.client` cost 30 ms and 8 MB.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPException, HTTPResponse, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Final
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
from commonplace.errors import ProviderError
from commonplace.models.providers import Address

FAULTS: Final = (OSError, HTTPException)
"""What `send` raises where no whole answer came; TimeoutError, an OSError, where it did not come in time."""
_AT_ONCE: Final = 1 << 16


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
        ProviderError: the answer is larger than `max_bytes`.
    """
    left = patience.deadline - patience.clock()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    outcome: SimpleQueue[Answer | Exception] = SimpleQueue()
    request = Request(f"{address}{path}", body, dict(headers), method=method)  # noqa: S310 - an http(s) address

    def exchange() -> None:
        try:
            with _opener(address).open(request, timeout=min(patience.read_s, left)) as response:
                named = {name.lower(): value for name, value in response.getheaders()}
                outcome.put(Answer(response.status, named, _body(response, patience, max_bytes)))
        except URLError as error:
            outcome.put(error.reason if isinstance(error.reason, Exception) else error)
        except Exception as error:  # it is raised where somebody waits
            outcome.put(error)

    # A socket's timeout holds for each single step, and the look-up of a name has none: a server that sends a byte a
    # second would hold whoever asks. So the steps have a thread of their own, and who asks waits until the deadline.
    threading.Thread(target=exchange, name="commonplace-http", daemon=True).start()
    try:
        found = outcome.get(timeout=left)
    except Empty:
        raise TimeoutError("the deadline has passed") from None
    if isinstance(found, Exception):
        raise found
    return found


def _opener(address: Address) -> OpenerDirector:
    """Return what opens an address, through the proxy that the environment names for it; no redirect is followed."""
    proxies = getproxies()
    # This machine is never behind a proxy: none can reach it, and Ollama stands here.
    is_direct = address.is_loopback or proxy_bypass(address.authority)
    proxy = "" if is_direct else proxies.get(address.scheme) or proxies.get("all", "")
    opener = OpenerDirector()
    for handler in (
        ProxyHandler({address.scheme: proxy} if proxy else {}),
        HTTPHandler(),
        UnknownHandler(),
    ):
        opener.add_handler(handler)
    if "https" in (address.scheme, proxy.partition(":")[0]):
        opener.add_handler(HTTPSHandler(context=_trusted()))
    return opener


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
