"""Take the text that a command is given: its words, a file, or what comes in a pipe. It knows no command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

PIPE = "-"
"""In place of words or of a file's name: what comes on standard input."""
_LINE_END_BYTES = 2


def said(words: tuple[str, ...], file: Path | None, max_bytes: int) -> str | None:
    """Return the words, a file's text, or what comes in a pipe; None where nothing came.

    Args:
        max_bytes: the most that is read of a file or a pipe, without the end of its last line.

    Raises:
        NotFoundError: the file cannot be read.
        UsageError: it is no UTF-8, not a regular file, or too large.
        click.UsageError: there are words and a file.
    """
    from commonplace.errors import NotFoundError, UsageError
    from commonplace.files import read_file

    if words and file is not None:
        raise click.UsageError("there is a text and a --file; give one of them")
    if words and words != (PIPE,):
        return " ".join(words)
    if not words and file is None and sys.stdin.isatty():
        return None
    is_piped = file is None or str(file) == PIPE
    where = "standard input" if is_piped else str(file)
    limit = max_bytes + _LINE_END_BYTES
    try:
        data = sys.stdin.buffer.read(limit + 1) if file is None or is_piped else read_file(file, limit)
    except FileNotFoundError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}", remedy="name a file with text") from error
    except OSError as error:
        remedy = "name a file with text, or send it on standard input"
        raise UsageError(f"{where} cannot be read: {error.strerror}", remedy=remedy) from error
    if len(data) > limit:
        raise UsageError(f"{where} has more than {max_bytes:,} bytes, the limit", remedy="give a shorter text")
    try:
        # The newline that ends a file or a pipe is no part of what is said.
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is no UTF-8: {error.reason} at byte {error.start}", remedy="convert it") from error
