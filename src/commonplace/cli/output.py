"""Standard output that tells its own failures from all others. It does not know what is printed."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from commonplace.errors import CommonplaceError


class OutputError(CommonplaceError):
    """Standard output takes no more, for example because its disk is full; a pipe that was closed is another thing."""


class Output(io.TextIOWrapper):
    """A text stream whose failures are `OutputError`."""

    def write(self, text: str, /) -> int:
        """Write text."""
        with _told():
            return super().write(text)

    def flush(self) -> None:
        """Hand everything to the system."""
        with _told():
            super().flush()


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"standard output cannot be written: {error.strerror}"
        raise OutputError(message, remedy="send it to a place that takes it") from error


def guard_output() -> None:
    """Put an `Output` in the place of the process's standard output."""
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper):
        sys.stdout = Output(
            old.buffer, encoding=old.encoding, errors="backslashreplace", line_buffering=old.line_buffering
        )
