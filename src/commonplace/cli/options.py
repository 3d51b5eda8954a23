"""Options shared by several commands, the parsing of their values, and reading texts from files and pipes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from time import time as clock
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.errors import NotFoundError, UsageError
from commonplace.types import ARTIFACT_TYPES, KINDS, METHODS, ORIGINS, PHASES, TIERS

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FILE: Final = click.Path(dir_okay=False, path_type=Path)
ANY_FILE: Final = click.Path(path_type=Path, readable=False)
"""A path that click does not check: the engine's error for an unreadable file has a remedy."""
STORED_TIERS: Final = TIERS[1:]
"""The tiers without ultra, whose memories end with their process: a command would forget them at once."""
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhd])")
MIN_DURATION_S: Final = 10.0
MAX_DURATION_S: Final = 366 * 86_400.0


def group(*decorators: Decorator) -> Decorator:
    """Return one decorator that adds several options; help lists them in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(decorators):
            function = option(function)
        return function

    return decorate


def text(*names: str, help: str, metavar: str = "TEXT", many: bool = False, **extra: Any) -> Decorator:  # noqa: A002
    """Return an option for a non-empty text, or any number of them."""
    return click.option(*names, metavar=metavar, multiple=many, callback=non_empty, help=help, **extra)


def choice(*names: str, of: Sequence[str], help: str, many: bool = False, **extra: Any) -> Decorator:  # noqa: A002
    """Return an option for one of a set of words, or any number of them; help shows its default."""
    kind = click.Choice(of)
    return click.option(*names, type=kind, multiple=many, show_default="default" in extra, help=help, **extra)


def number(name: str, help: str, default: int | None = None, **extra: Any) -> Decorator:  # noqa: A002
    """Return an option for a number; help shows its default."""
    is_shown = default is not None
    return click.option(name, type=int, default=default, show_default=is_shown, metavar="N", help=help, **extra)


def globs(*names: str, help: str) -> Decorator:  # noqa: A002
    """Return an option for non-empty globs that are not all exclusions, since those alone match nothing."""

    def check(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
        non_empty(context, parameter, value)
        if value and all(glob.startswith("!") for glob in value):
            shown = ", ".join(map(repr, value))
            raise click.BadParameter(f"{shown} only takes away; also give what to take from", param=parameter)
        return value

    return click.option(*names, multiple=True, metavar="GLOB", callback=check, help=help)


def golden(effect: str) -> Decorator:
    """Return the option for a file of golden queries; `effect` says what happens when one fails."""
    return click.option("--golden", type=FILE, metavar="FILE", help=f"Queries with expected results; {effect}.")


def time(*names: str, help: str, is_start: bool = False) -> Decorator:  # noqa: A002
    """Return an option for a time, passed on as text. A time without a zone is local, as times are printed.

    Args:
        is_start: whether a day, month or year, also in words, means its start, and not its end.
    """

    def read(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is not None and value.strip().lower() not in ("", "now"):
            from commonplace.dates.time import iso, moment_in_words

            with suppress(UsageError):  # the command reports the fault
                return iso(moment_in_words("time", value, clock(), is_start=is_start, zone=None))
        return value

    return click.option(*names, metavar="TIME", callback=read, help=help)


def limit(name: str = "limit", default: int = 20) -> Decorator:
    """Return the option for the maximum number of results."""
    names = ("-n", "--limit", name)
    return click.option(*names, type=int, default=default, show_default=True, metavar="N", help="Maximum number.")


def non_empty(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Reject an empty value, which a shell passes for an empty or unset variable."""
    if any(not item.strip() for item in ([value] if isinstance(value, str) else value or ())):
        raise click.BadParameter("it is empty; give a value or leave the option out", param=parameter)
    return value


def duration(_: click.Context, parameter: click.Parameter, value: str) -> float:
    """Convert a duration such as `30m`, `1h` or `1d` to seconds.

    Raises:
        click.BadParameter: the value is not a duration, or not from 10 seconds to 366 days.
    """
    match = _DURATION.fullmatch(value.strip().lower())
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not MIN_DURATION_S <= seconds <= MAX_DURATION_S:
        raise click.BadParameter(f"{value!r} is not a duration from 10s to 366d, such as 30m or 1d", param=parameter)
    return seconds


query = click.argument("query", nargs=-1, required=True)
as_of = time("--as-of", help="What the store knew at this time: ISO 8601, or words such as 'last Tuesday'.")
valid_at = time("--valid-at", help="What was true at this time, by what is known now.")
yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run = click.option("--dry-run", is_flag=True, help="Show what would happen; change nothing.")
reason = click.option("--reason", default="", metavar="TEXT", help="Why; it is kept with the change.")
text_file = click.option("--file", type=click.Path(path_type=Path), help="Read the text from this file, or from -.")
origin = group(
    choice("--origin", of=ORIGINS, help="Kind of source; sets the trust."),
    click.option("--trust", type=float, metavar="SHARE", help="Trust from 0 to 1. [default: by origin]"),
)
kinds = choice("--kind", "kinds", of=KINDS, many=True, help="Only of this kind.")
tags = text("--tag", "tags", metavar="TAG", many=True, help="Only with this tag.")
tiers = choice("--tier", "tiers", of=STORED_TIERS, many=True, help="Only this tier.")
place = group(
    text("--session", "sessions", metavar="NAME", many=True, help="Only from this conversation."),
    text("--source", "sources", many=True, help="Only from this source."),
)
min_trust = click.option("--min-trust", type=float, default=0.0, metavar="SHARE", help="Minimum trust, from 0 to 1.")
# None if omitted: the engine rejects an empty list of phrasings.
also = click.option(
    "--also",
    multiple=True,
    metavar="TEXT",
    callback=lambda *args: non_empty(*args) or None,
    help="The query in other words; up to four times.",
)
_RANGE: Final = """Hide hits below this score, 0 to 1, but for what is newer than one above; 0 shows all.
[default: 0.30; all are hidden if none reaches 0.50]"""
min_score = click.option("--min-score", metavar="SCORE", help=_RANGE)
artifacts = group(
    choice("--method", of=METHODS, help="How candidates are found and ranked."),
    choice("--type", "types", of=ARTIFACT_TYPES, many=True, help="Only this artifact type."),
    choice("--phase", "phases", of=PHASES, many=True, help="Only files of this phase, and those without one."),
    globs("--path", "paths", help="Only matching paths."),
    text("--agent", metavar="NAME", help="Use the search strategy of this agent."),
)
forms = group(
    click.option("-l", "--paths-only", "form", flag_value="paths-only", help="Print only paths, or ids of memories."),
    click.option("--brief", "form", flag_value="brief", help="Print one line for each hit."),
    click.option("--why", "form", flag_value="why", default=None, help="Explain the rank of each hit."),
)


PIPE: Final = "-"
"""Stands for standard input in place of words or a file name."""
_LINE_END_BYTES: Final = 2


def refuse_unasked(invocation: Invocation, purpose: str) -> None:
    """Require --yes if there is no terminal for a question; `purpose` says what --yes would allow."""
    if not can_ask(invocation):
        cause = "--json never asks" if invocation.as_json else "Not a terminal"
        raise click.UsageError(f"{cause}: pass --yes to {purpose}.")


def can_ask(invocation: Invocation) -> bool:
    """Return whether a person can be asked. An agent's shell and a script have no terminal, and JSON never asks."""
    return not invocation.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def read_text(words: tuple[str, ...], file: Path | None, max_bytes: int) -> str | None:
    """Return the words, the text of a file, or standard input; None if there is none of these.

    Args:
        max_bytes: maximum size of a file or pipe, without its final newline.

    Raises:
        NotFoundError: there is no such file.
        UsageError: the input cannot be read, is too large or not UTF-8.
        click.UsageError: both words and a file are given.
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
        # The final newline of a file or pipe is not part of the text.
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8: {error.reason} at byte {error.start}", remedy="convert it") from error


def read_bytes(file: Path | str, limit: int) -> tuple[str, bytes | None]:
    """Return the name and the bytes of a file or standard input; the bytes are None if there are more than `limit`.

    Raises:
        NotFoundError: there is no such file.
        UsageError: the file cannot be read.
    """
    from commonplace.files import open_file

    name = "standard input" if (is_piped := str(file) == PIPE) else str(file)
    try:
        with nullcontext(sys.stdin.buffer) if is_piped else open_file(Path(file)) as source:
            data = source.read(limit + 1)
    except FileNotFoundError as error:
        raise NotFoundError(f"{file} cannot be read: {error.strerror}", remedy="name a file with text") from error
    except OSError as error:
        remedy = "name a file with text, or send it on standard input"
        raise UsageError(f"{name} cannot be read: {error.strerror}", remedy=remedy) from error
    return name, data if len(data) <= limit else None
