"""Read texts from arguments, files and pipes, and know whether a person can be asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from commonplace.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation

PIPE: Final = "-"
"""In place of words or of a file's name: standard input."""
_LINE_END_BYTES: Final = 2


def refuse_unasked(invocation: Invocation, purpose: str) -> None:
    """Refuse to go on without --yes where nobody can be asked; `purpose` says what --yes would allow."""
    if not can_ask(invocation):
        why = "--json never asks" if invocation.as_json else "Not a terminal"
        raise click.UsageError(f"{why}: pass --yes to {purpose}.")


def can_ask(invocation: Invocation) -> bool:
    """Return whether a person can be asked: an agent's shell and a script have no terminal, and JSON never asks."""
    return not invocation.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def read_text(words: tuple[str, ...], file: Path | None, max_bytes: int) -> str | None:
    """Return the words, a file's text, or standard input; None if there is none of them.

    Args:
        max_bytes: the most that is read of a file or a pipe, without the end of its last line.

    Raises:
        NotFoundError: the file cannot be read.
        UsageError: it is not UTF-8, not a regular file, or too large.
        click.UsageError: there are words and a file.
    """
    if words and file is not None:
        raise click.UsageError("there is a text and a --file; give one of them")
    if words and words != (PIPE,):
        return " ".join(words)
    if not words and file is None and sys.stdin.isatty():
        return None
    name, data = read_bytes(PIPE if file is None else file, max_bytes + _LINE_END_BYTES)
    if data is None:
        raise UsageError(f"{name} has more than {max_bytes:,} bytes, the limit", remedy="give a shorter text")
    try:
        # The newline that ends a file or a pipe is not part of the text.
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}", remedy="convert it") from error


def read_bytes(file: Path | str, limit: int) -> tuple[str, bytes | None]:
    """Return a name for a file or standard input, and its bytes, None if there are more than `limit`.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it cannot be read.
    """
    from commonplace.files import read_file

    is_piped = str(file) == PIPE
    name = "standard input" if is_piped else str(file)
    try:
        data = sys.stdin.buffer.read(limit + 1) if is_piped else read_file(Path(file), limit)
    except FileNotFoundError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}", remedy="name a file with text") from error
    except OSError as error:
        remedy = "name a file with text, or send it on standard input"
        raise UsageError(f"{name} cannot be read: {error.strerror}", remedy=remedy) from error
    return name, data if len(data) <= limit else None
