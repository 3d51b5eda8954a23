"""The standard streams of a process while it speaks a protocol on them: nothing else may read or write there."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

_INPUT, _OUTPUT, _ERRORS = 0, 1, 2
_BUFFER = 64 * 1024


@contextmanager
def standard_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield standard input and output for the protocol alone.

    Meanwhile whatever prints, a library in C or a child process included, prints on standard error, and whatever
    reads finds the end of input. Both are put back afterwards.
    """
    sys.stdout.flush()
    # Above the standard three, and closed in children: one that outlives us must not keep the client waiting.
    incoming, outgoing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _ERRORS + 1) for number in (_INPUT, _OUTPUT))
    _divert()
    try:
        with (
            os.fdopen(incoming, "rb", _BUFFER, closefd=False) as reader,
            os.fdopen(outgoing, "wb", 0, closefd=False) as writer,
        ):
            yield reader, writer
    finally:
        sys.stdout.flush()
        os.dup2(incoming, _INPUT)
        os.dup2(outgoing, _OUTPUT)
        os.close(incoming)
        os.close(outgoing)


def _divert() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, _INPUT)
    try:
        os.dup2(_ERRORS, _OUTPUT)
    except OSError:
        # Standard error is closed.
        os.dup2(nothing, _OUTPUT)
    os.close(nothing)
