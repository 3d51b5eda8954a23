"""Reach an MCP server over the pipes of a process of ours: one JSON object a line, each way.

The process is started with the first message and ended with the session. What it says on standard error is kept, the
last of it, to tell why it ended.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, BinaryIO, Final

from commonplace.errors import CommonplaceError, ProviderError
from commonplace.formats.framing import LineWriter, TooLong, read_lines
from commonplace.formats.jsonrpc import decode
from commonplace.graph.graphiti.transports import (
    Deadline,
    SessionEndedError,
    UnansweredError,
    encoded,
    is_answer_to,
)

_END_S: Final = 2.0
_KEPT_LINES: Final = 5
_MOST_SHOWN: Final = 300
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
        self._owner = os.getpid()

    def __repr__(self) -> str:
        return f"Stdio({self._command[0]})"

    def ask(self, message: Mapping[str, Any], deadline: Deadline) -> dict[str, Any]:
        """Send a request and return the answer; see `Transport`."""
        self.tell(message, deadline)
        while True:
            try:
                line = self._lines.get(timeout=deadline.left_s)
            except queue.Empty:
                raise UnansweredError(
                    f"{self._command[0]} did not answer in time", remedy="raise graph.timeout_s"
                ) from None
            if line is None:
                raise UnansweredError(f"{self._command[0]} ended{self._last_words()}", remedy="see why it does")
            if isinstance(line, TooLong):
                raise UnansweredError(f"{self._command[0]} answered more than can be read", remedy="ask for less")
            value = self._value(line)
            if is_answer_to(value, message["id"]):
                assert isinstance(value, dict)
                return value

    def tell(self, message: Mapping[str, Any], deadline: Deadline) -> None:
        """Send a message; see `Transport`."""
        del deadline  # it is written by a thread of its own, as a pipe that nobody reads lets nobody go on
        if self._process is None:
            self._start()
        elif self._process.poll() is not None:
            raise SessionEndedError(f"{self._command[0]} ended{self._last_words()}", remedy="see why it does")
        self._to_write.put(encoded(message))

    def agree(self, version: str) -> None:
        """Nothing: on pipes no message names the version."""

    def close(self) -> None:
        """End the process: first it is told by the end of its input, then by signals."""
        self._is_closed.set()
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        self._to_write.put(None)
        ends: tuple[Callable[[], None], ...] = (_nothing, process.terminate, process.kill)
        for end in ends:
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
        for line in read_lines(pipe):
            if not self._put(line):
                return
        self._put(None)

    def _put(self, line: bytes | TooLong | None) -> bool:
        while not self._is_closed.is_set():
            try:
                self._lines.put(line, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def _read_words(self, pipe: BinaryIO) -> None:
        for line in read_lines(pipe):
            self._said.append(line if isinstance(line, bytes) else line.head)

    def _last_words(self) -> str:
        from commonplace.redaction import redact

        self._threads[1].join(_END_S)
        text = b" ".join(self._said).decode("utf-8", "replace")
        shown = redact("".join(each if each.isprintable() else " " for each in text)).text[-_MOST_SHOWN:]
        return f", having said: {shown}" if shown else ""

    def _value(self, line: bytes) -> object:
        try:
            return decode(line)
        except CommonplaceError:
            return None  # a server that prints what is no message is read past


def _nothing() -> None:
    """Give the process the time to end by itself, as its input has."""
