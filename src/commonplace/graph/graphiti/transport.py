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
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import IO, Any, BinaryIO, Final

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.jsonrpc import LineWriter, TooLong, decode, read_lines
from commonplace.models.http import FAULTS, Answer, Patience, send
from commonplace.models.providers import Address
from commonplace.redaction import redact

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""In bytes; what Graphiti answers holds no embeddings."""


class UnansweredError(ProviderError):
    """Look before asking again: the server may have done what it was asked."""


class SessionEndedError(ProviderError):
    """Open a new session: the server knows this one no longer, and did nothing."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when to wait, by a clock that only goes forward."""

    at: float
    clock: Callable[[], float]

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - self.clock())


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message as bytes; a lone surrogate, which UTF-8 cannot hold, as the escape that JSON has."""
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


def is_answer_to(value: object, id_: object) -> bool:
    return isinstance(value, dict) and value.get("id") == id_ and ("result" in value or "error" in value)


_END_S: Final = 2.0
_KEPT_LINES: Final = 5
_MAX_SHOWN: Final = 300
_WAITING: Final = 100
"""Lines that nobody has read yet; a server that talks more than it is asked waits."""


class Stdio:
    """One session with a server that a command starts."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = tuple(command)
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._to_write: queue.Queue[bytes | None] = queue.Queue()
        self._lines: queue.Queue[bytes | TooLong | None] = queue.Queue(_WAITING)
        self._said: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._threads: list[threading.Thread] = []
        self._is_closed = threading.Event()

    def ask(self, message: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Send a request and return the answer with its id.

        Raises:
            ProviderError: it was not sent, or was refused.
            SessionEndedError: the server knows this session no longer.
            UnansweredError: no answer came, or none that can be read.
        """
        self.tell(message, deadline)
        while True:
            try:
                line = self._lines.get(timeout=deadline.left_s)
            except queue.Empty:
                raise UnansweredError(
                    f"{self._command[0]} did not answer in time", remedy="raise graph.timeout_s"
                ) from None
            if line is None:
                raise UnansweredError(f"{self._command[0]} ended{self._last_words()}", remedy="check its output")
            if isinstance(line, TooLong):
                raise UnansweredError(f"{self._command[0]} answered more than can be read", remedy="ask for less")
            value = self._value(line)
            if is_answer_to(value, message["id"]):
                assert isinstance(value, dict)
                return value

    def tell(self, message: Mapping[str, Any], deadline: Deadline) -> None:
        del deadline  # it is written by a thread of its own, as a pipe that nobody reads lets nobody go on
        if self._process is None:
            self._start()
        elif self._process.poll() is not None:
            raise SessionEndedError(f"{self._command[0]} ended{self._last_words()}", remedy="check its output")
        self._to_write.put(encoded(message))

    def agree(self, version: str) -> None:
        """Nothing: on pipes no message names the version."""

    def close(self) -> None:
        """End the process: first it is told by the end of its input, then by signals."""
        self._is_closed.set()
        process, self._process = self._process, None
        if process is None:
            return
        self._to_write.put(None)
        for end in (None, process.terminate, process.kill):
            if end is not None:
                end()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
                break
        for thread in self._threads:
            thread.join(_END_S)
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def _start(self) -> None:
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **self._environment},
            )
        except OSError as error:
            raise ProviderError(
                f"{self._command[0]} cannot be started: {error.strerror}", remedy="check graph.graph_uri"
            ) from error
        self._process = process
        works: tuple[tuple[Callable[[BinaryIO], None], IO[bytes] | None], ...] = (
            (self._read_answers, process.stdout),
            (self._read_words, process.stderr),
            (self._write, process.stdin),
        )
        self._threads = [threading.Thread(target=work, args=(pipe,), daemon=True) for work, pipe in works]
        for thread in self._threads:
            thread.start()

    def _write(self, pipe: BinaryIO) -> None:
        writer = LineWriter(pipe)
        while (line := self._to_write.get()) is not None and not writer.is_broken:
            writer.write(line)
        with suppress(OSError):  # what was still to be written goes nowhere
            pipe.close()

    def _read_answers(self, pipe: BinaryIO) -> None:
        for line in chain(read_lines(pipe), [None]):
            while not self._is_closed.is_set():
                with suppress(queue.Full):
                    self._lines.put(line, timeout=0.1)
                    break

    def _read_words(self, pipe: BinaryIO) -> None:
        for line in read_lines(pipe):
            self._said.append(line if isinstance(line, bytes) else line.head)

    def _last_words(self) -> str:
        self._threads[1].join(_END_S)
        text = b" ".join(self._said).decode("utf-8", "replace")
        shown = redact("".join(each if each.isprintable() else " " for each in text)).text[-_MAX_SHOWN:]
        return f", with the output: {shown}" if shown else ""

    def _value(self, line: bytes) -> object:
        try:
            return decode(line)
        except CommonplaceError:
            return None  # a server that prints what is no message is read past


_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"
_FAREWELL_S: Final = 1.0


class StreamableHttp:
    """One session with a server that has an address."""

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        self._address = address
        self._headers = dict(headers)
        self._session = ""
        self._version = ""

    def ask(self, message: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
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
        self._send("POST", encoded(message), deadline)

    def agree(self, version: str) -> None:
        """Name the version in every request from now on."""
        self._version = version

    def close(self) -> None:
        """Let the server forget the session, if it answers at once."""
        if not self._session:
            return
        with suppress(ProviderError):  # it forgets in its own time
            self._send("DELETE", b"", Deadline(time.monotonic() + _FAREWELL_S, time.monotonic))
        self._session = ""

    def _send(self, method: str, body: bytes, deadline: Deadline) -> Answer:
        headers = {"Accept": "application/json, text/event-stream", "User-Agent": "commonplace"}
        headers |= {"Content-Type": "application/json", **self._headers}
        headers.update({name: text for name, text in ((_SESSION, self._session), (_VERSION, self._version)) if text})
        patience = Patience(deadline.left_s, deadline.at, deadline.clock)
        try:
            answer = send(self._address, "", headers, body, patience, MAX_ANSWER_BYTES, method)
        except FAULTS as fault:
            raise self._failed(fault) from fault
        return self._checked(answer)

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
        if isinstance(fault, ConnectionRefusedError | socket.gaierror):
            told = fault.strerror or type(fault).__name__
            return ProviderError(
                f"{self._address} cannot be reached ({told})", remedy="start it, or check graph.graph_uri"
            )
        if isinstance(fault, TimeoutError):
            return UnansweredError(f"{self._address} did not answer in time", remedy="raise graph.timeout_s")
        told = getattr(fault, "strerror", None) or type(fault).__name__
        return UnansweredError(f"{self._address} closed the connection ({told})", remedy="try again")

    def _value(self, text: bytes) -> object:
        try:
            return decode(text)
        except CommonplaceError as error:
            raise UnansweredError(f"{self._address} answered what is not JSON", remedy="check the address") from error


Transport = Stdio | StreamableHttp


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
