"""Reach an MCP server over streamable HTTP: each message is a POST, each answer JSON or a stream of events.

See modelcontextprotocol.io/specification/2025-06-18/basic/transports. It opens no stream that the server could speak
on by itself: nobody here listens.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.jsonrpc import decode
from commonplace.graph.graphiti.transports import (
    LONGEST_ANSWER,
    Deadline,
    SessionEndedError,
    UnansweredError,
    encoded,
    is_answer_to,
)

if TYPE_CHECKING:
    from commonplace.models.addresses import Address, Proxy
    from commonplace.models.http import Answer

_CONNECT_S: Final = 5.0
_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"
_FAREWELL_S: Final = 1.0
_MOVED: Final = frozenset({307, 308})


class StreamableHttp:
    """One session with a server that has an address."""

    def __init__(self, address: Address, headers: Mapping[str, str], proxy: Proxy | None) -> None:
        self._address = address
        self._headers = dict(headers)
        self._proxy = proxy
        self._slash = ""
        self._session = ""
        self._version = ""

    def __repr__(self) -> str:
        return f"StreamableHttp({self._address})"

    def ask(self, message: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Send a request and return the answer; see `Transport`."""
        answer = self._send("POST", encoded(message), deadline)
        if message.get("method") == "initialize":
            self._session = answer.headers.get(_SESSION.lower(), "")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        texts = events_of(answer.body) if kind == "text/event-stream" else [answer.body]
        for text in texts:
            value = self._value(text)
            if is_answer_to(value, message["id"]):
                assert isinstance(value, dict)
                return value
        raise UnansweredError(f"{self._address} answered another question", remedy="check the address")

    def tell(self, message: Mapping[str, Any], deadline: Deadline) -> None:
        """Send a notification; see `Transport`."""
        self._send("POST", encoded(message), deadline)

    def agree(self, version: str) -> None:
        """Name the version in every request from now on."""
        self._version = version

    def close(self) -> None:
        """Let the server forget the session, if it answers at once."""
        if not self._session:
            return
        import time

        with suppress(ProviderError):  # it forgets in its own time
            self._send("DELETE", b"", Deadline(time.monotonic() + _FAREWELL_S, time.monotonic))
        self._session = ""

    def _send(self, method: str, body: bytes, deadline: Deadline) -> Answer:
        from commonplace.models.http import FAULTS, Patience, Request, send

        headers = {"Accept": "application/json, text/event-stream", "User-Agent": "commonplace", **self._headers}
        headers.update({name: text for name, text in ((_SESSION, self._session), (_VERSION, self._version)) if text})
        patience = Patience(min(_CONNECT_S, deadline.left_s), deadline.left_s, deadline.at, deadline.clock)
        for _ in range(2):
            request = Request(self._address, self._slash, headers, body, self._proxy, method)
            try:
                answer = send(request, patience, LONGEST_ANSWER)
            except FAULTS as fault:
                raise self._failed(fault) from fault
            if answer.status not in _MOVED or not self._moves(answer):
                break
        return self._checked(answer)

    def _moves(self, answer: Answer) -> bool:
        """Take note that the server wants its path with a slash at the end, or without; it is led nowhere else."""
        found = urlsplit(answer.headers.get("location", ""))
        is_here = not found.netloc or found.netloc in (
            self._address.authority,
            f"{self._address.host}:{self._address.port}",
        )
        wanted = {"": "/", "/": ""}[self._slash]
        if not is_here or found.path != f"{self._address.path}{wanted}":
            return False
        self._slash = wanted
        return True

    def _checked(self, answer: Answer) -> Answer:
        status = answer.status
        if status in (200, 202, 204):
            return answer
        if status == 404 and self._session:
            raise SessionEndedError(f"{self._address} ended the session", status=status, remedy="try again")
        if status >= 500:
            raise UnansweredError(f"{self._address} answered {status}", status=status, remedy="try again later")
        helps = {
            401: "set COMMONPLACE_GRAPH_PASSWORD",
            403: "set COMMONPLACE_GRAPH_PASSWORD",
            404: "check the path of graph.graph_uri; Graphiti's is /mcp",
            421: "name the host that the server allows",
        }
        raise ProviderError(
            f"{self._address} answered {status}", status=status, remedy=helps.get(status, "check graph.graph_uri")
        )

    def _failed(self, fault: Exception) -> ProviderError:
        import socket

        if isinstance(fault, ConnectionRefusedError | socket.gaierror):
            told = fault.strerror or type(fault).__name__
            return ProviderError(
                f"{self._address} cannot be reached ({told})", remedy="start it, or check graph.graph_uri"
            )
        if isinstance(fault, TimeoutError):
            return UnansweredError(f"{self._address} did not answer in time", remedy="raise graph.timeout_s")
        told = getattr(fault, "strerror", None) or type(fault).__name__
        return UnansweredError(f"{self._address} broke off ({told})", remedy="try again")

    def _value(self, text: bytes) -> object:
        try:
            return decode(text)
        except CommonplaceError as error:
            raise UnansweredError(f"{self._address} answered what is no JSON", remedy="check the address") from error


def events_of(body: bytes) -> list[bytes]:
    """Return the data of the events of a stream, without those of other kinds than messages."""
    found, data, kind = [], list[bytes](), b"message"
    for line in [*body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data and kind == b"message" and any(data):
                found.append(b"\n".join(data))
            data, kind = [], b"message"
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
    return found


def credentials(user: str, password: str) -> dict[str, str]:
    """Return the header that a password goes out in: with a user as Basic, alone as a bearer's token."""
    if not password:
        return {}
    if user:
        return {"Authorization": f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"}
    return {"Authorization": f"Bearer {password}"}
