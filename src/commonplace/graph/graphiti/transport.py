"""MCP client transports over stdio and streamable HTTP, and their errors.

A message is a JSON-RPC object. An error says whether the server may have executed the request; only then is a retry
unsafe.

The stdio process starts with the first message and ends with the session. The end of its standard error is kept for
error messages.

See modelcontextprotocol.io/specification/2025-06-18/basic/transports.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from subprocess import PIPE
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Final

from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.jsonrpc import LineWriter, OversizedLine, decode, read_lines
from commonplace.models.http import FAULTS, HttpAnswer, Timeouts, send
from commonplace.models.providers import Endpoint
from commonplace.redaction import redact

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of an answer; Graphiti's answers contain no embeddings."""
_END_S: Final = 2.0
_FAREWELL_S: Final = 1.0
_MAX_SHOWN: Final = 300
_WAITING: Final = 100
"""Number of lines read ahead; a server that prints more blocks."""
_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"
_REMEDIES: Final = {
    **dict.fromkeys((401, 403), "set COMMONPLACE_GRAPH_PASSWORD"),
    404: "check the path of graph.graph_uri; Graphiti's is /mcp",
    421: "name the host that the server allows",
}


class UnansweredError(ProviderError):
    """Look before asking again: the server may have done what it was asked."""


class SessionEndedError(ProviderError):
    """Open a new session: the server knows this one no longer, and did nothing."""


def printable(told: object) -> str:
    """Return the message of a server as one line, without secrets."""
    return redact("".join(char if char.isprintable() else " " for char in str(told))).text


class Stdio:
    """A session with a server process started by a command."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._to_write: queue.Queue[bytes | None] = queue.Queue()
        self._lines: queue.Queue[bytes | OversizedLine | None] = queue.Queue(_WAITING)
        self._printed = TemporaryFile()  # noqa: SIM115 - closed with the session
        self._threads: list[threading.Thread] = []
        self._is_closed = threading.Event()

    def ask(self, message: Mapping[str, Any], timeouts: Timeouts) -> dict[str, Any]:
        """Send a request and return the answer with its id.

        Raises:
            ProviderError: it was not sent, or was refused.
            SessionEndedError: the server no longer knows this session.
            UnansweredError: no answer came, or it cannot be read.
        """
        self.tell(message, timeouts)
        name = self._command[0]
        while True:
            try:
                line = self._lines.get(timeout=timeouts.remaining_s)
            except queue.Empty:
                raise UnansweredError(f"{name} did not answer in time", remedy="raise graph.timeout_s") from None
            if line is None:
                raise UnansweredError(self._ended(), remedy="check its output")
            if isinstance(line, OversizedLine):
                raise UnansweredError(f"{name} answered more than can be read", remedy="ask for less")
            with suppress(CommonplaceError):  # servers print lines that are no messages to this pipe
                if (answer := _answer_to(message, decode(line))) is not None:
                    return answer

    def tell(self, message: Mapping[str, Any], _: Timeouts) -> None:
        """Queue a message for the writer thread: a write to a full pipe would block past the deadline."""
        if self._process is None:
            try:
                variables = {**os.environ, **self._environment}
                process = subprocess.Popen(self._command, stdin=PIPE, stdout=PIPE, stderr=self._printed, env=variables)
            except OSError as error:
                problem = f"{self._command[0]} cannot be started: {error.strerror}"
                raise ProviderError(problem, remedy="check graph.graph_uri") from error
            self._process = process
            for work, pipe in ((self._read, process.stdout), (self._write, process.stdin)):
                self._threads.append(threading.Thread(target=work, args=(pipe,), daemon=True))
                self._threads[-1].start()
        elif self._process.poll() is not None:
            raise SessionEndedError(self._ended(), remedy="check its output")
        self._to_write.put(_encoded(message))

    def close(self) -> None:
        """End the process: close its input, then send signals."""
        self._is_closed.set()
        process, self._process = self._process, None
        if process is not None:
            self._to_write.put(None)
            for stop in (None, process.terminate, process.kill):
                if stop is not None:
                    stop()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_END_S)
                    break
            for thread in self._threads:
                thread.join(_END_S)
            assert process.stdout is not None
            process.stdout.close()
        self._printed.close()

    def _write(self, pipe: BinaryIO) -> None:
        writer = LineWriter(pipe)
        while (line := self._to_write.get()) is not None and not writer.is_broken:
            writer.write(line)
        with suppress(OSError):  # buffered data has no reader any more
            pipe.close()

    def _read(self, pipe: BinaryIO) -> None:
        for line in chain(read_lines(pipe), [None]):
            while not self._is_closed.is_set():
                with suppress(queue.Full):
                    self._lines.put(line, timeout=0.1)
                    break

    def _ended(self) -> str:
        """Return a message that the process ended, with the end of its standard error."""
        size = self._printed.seek(0, os.SEEK_END)
        self._printed.seek(max(0, size - 4 * _MAX_SHOWN))
        text = " ".join(self._printed.read().decode("utf-8", "replace").split())
        shown = printable(text)[-_MAX_SHOWN:]
        return f"{self._command[0]} ended" + (f", with the output: {shown}" if shown else "")


class StreamableHttp:
    """A session with a server at an address."""

    def __init__(self, address: Endpoint, headers: Mapping[str, str]) -> None:
        self._address = address
        types = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        self._headers = {**types, "User-Agent": "commonplace", **headers}
        self._is_open = False

    def ask(self, message: Mapping[str, Any], timeouts: Timeouts) -> dict[str, Any]:
        """Send a request and return the answer; see `Stdio.ask`."""
        answer = self._send("POST", _encoded(message), timeouts)
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        for text in events_of(answer.body) if kind == "text/event-stream" else [answer.body]:
            try:
                response = _answer_to(message, decode(text))
            except CommonplaceError as error:
                problem = f"{self._address} answered what is not JSON"
                raise UnansweredError(problem, remedy="check the address") from error
            if response is not None:
                if message["method"] == "initialize":
                    # Every further request carries the session and the protocol version.
                    session, result = answer.headers.get(_SESSION.lower(), ""), response.get("result")
                    self._is_open = bool(session)
                    version = result.get("protocolVersion") if isinstance(result, dict) else None
                    session_headers = {_SESSION: session, _VERSION: version if isinstance(version, str) else ""}
                    self._headers.update({name: value for name, value in session_headers.items() if value})
                return response
        raise UnansweredError(f"{self._address} answered another question", remedy="check the address")

    def tell(self, message: Mapping[str, Any], timeouts: Timeouts) -> None:
        """Send a notification."""
        self._send("POST", _encoded(message), timeouts)

    def close(self) -> None:
        """Ask the server to end the session, if it answers at once."""
        if self._is_open:
            with suppress(ProviderError):  # the server ends it by itself after a while
                self._send("DELETE", b"", Timeouts(_FAREWELL_S, time.monotonic() + _FAREWELL_S))
        self._is_open = False

    def _send(self, method: str, body: bytes, timeouts: Timeouts) -> HttpAnswer:
        try:
            answer = send(self._address, "", self._headers, body, timeouts, MAX_ANSWER_BYTES, method)
        except FAULTS as fault:
            problem = getattr(fault, "strerror", None) or type(fault).__name__
            if isinstance(fault, ConnectionRefusedError | socket.gaierror):
                advice = "start it, or check graph.graph_uri"
                raise ProviderError(f"{self._address} cannot be reached ({problem})", remedy=advice) from fault
            if isinstance(fault, TimeoutError):
                reason = f"{self._address} did not answer in time"
                raise UnansweredError(reason, remedy="raise graph.timeout_s") from fault
            raise UnansweredError(f"{self._address} closed the connection ({problem})", remedy="try again") from fault
        status = answer.status
        if status in (200, 202, 204):
            return answer
        if status == 404 and self._is_open:
            raise SessionEndedError(f"{self._address} ended the session", status=status, remedy="try again")
        problem = f"{self._address} answered {status}"
        if status >= 500:
            raise UnansweredError(problem, status=status, remedy="try again later")
        raise ProviderError(problem, status=status, remedy=_REMEDIES.get(status, "check graph.graph_uri"))


Transport = Stdio | StreamableHttp


def _encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as ASCII: a lone surrogate, which UTF-8 cannot hold, stays an escape."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def _answer_to(message: Mapping[str, Any], value: object) -> dict[str, Any] | None:
    is_answer = isinstance(value, dict) and value.get("id") == message["id"] and ("result" in value or "error" in value)
    return value if is_answer else None  # type: ignore[return-value]


def events_of(body: bytes) -> list[bytes]:
    """Return the data of the message events of an event stream."""
    events, data, kind = [], list[bytes](), b"message"
    for line in [*body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""]:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data and kind == b"message" and any(data):
                events.append(b"\n".join(data))
            data, kind = [], b"message"
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
    return events
