"""Lines of bytes in, lines of bytes out: the framing of messages on two streams. It knows nothing of what they say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_LINE = 4 * 1024 * 1024
_DRAINED_AT_ONCE = 64 * 1024
_KEPT = 256


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was longer than `LONGEST_LINE` bytes and has been read past: how it began and ended."""

    head: bytes
    tail: bytes


def read_lines(stream: BinaryIO) -> Iterator[bytes | TooLong]:
    """Yield each line without its end; blank ones are passed over, and one that is too long is told, not kept.

    What stands after the last newline is yielded too: a writer that died in the middle of a message is answered that
    it is not JSON, and one that only forgot the newline is served.
    """
    while line := stream.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE and not line.endswith(b"\n"):
            yield TooLong(line[:_KEPT], _drain(stream, line[-_KEPT:]))
        elif stripped := line.strip(b" \t\r\n"):
            yield stripped


def _drain(stream: BinaryIO, tail: bytes) -> bytes:
    while not tail.endswith(b"\n") and (part := stream.readline(_DRAINED_AT_ONCE)):
        tail = (tail + part)[-_KEPT:]
    return tail


class LineWriter:
    """Writes whole lines from any thread; after the reader has gone it takes lines and drops them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = threading.Lock()
        self._broken = threading.Event()

    @property
    def is_broken(self) -> bool:
        """Tell whether nobody reads what is written any more."""
        return self._broken.is_set()

    def write(self, line: bytes) -> None:
        """Write one line, given without its end, and flush it."""
        with self._turn:
            if self.is_broken:
                return
            try:
                left = memoryview(line + b"\n")
                while left:
                    left = left[self._stream.write(left) :]
                self._stream.flush()
            except (OSError, ValueError):
                # ValueError: the stream was closed. Either way the client is gone, and with it whoever could be told.
                self._broken.set()
