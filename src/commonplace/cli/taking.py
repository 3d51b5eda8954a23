"""Take the text that a command is given: its words, a file, or what comes in a pipe. It knows no command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

PIPE = "-"
"""In place of words or of a file's name: what comes on standard input."""


def said(words: tuple[str, ...], file: Path | None) -> str | None:
    """Return the words, a file's text, or what comes in a pipe; None where nothing came.

    Raises:
        NotFoundError: the file cannot be read.
        UsageError: it is no UTF-8.
        click.UsageError: there are words and a file.
    """
    from commonplace.errors import NotFoundError, UsageError

    if words and file is not None:
        raise click.UsageError("there is a text and a --file; give one of them")
    if words and words != (PIPE,):
        return " ".join(words)
    if not words and file is None and sys.stdin.isatty():
        return None
    try:
        data = sys.stdin.buffer.read() if file is None or str(file) == PIPE else file.read_bytes()
    except OSError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}", remedy="name a file with text") from error
    try:
        # The newline that ends a file or a pipe is no part of what is said.
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        where = "standard input" if file is None else str(file)
        raise UsageError(f"{where} is no UTF-8: {error.reason} at byte {error.start}", remedy="convert it") from error
