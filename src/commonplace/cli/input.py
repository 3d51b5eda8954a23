"""Read and check what a command is given: texts, files, times and other options."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from time import time as clock
from typing import TYPE_CHECKING, Any, Final

import click

from commonplace.errors import NotFoundError, UsageError
from commonplace.types import ARTIFACT_TYPES, METHODS, PHASES

if TYPE_CHECKING:
    from commonplace.settings import Settings


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


SHORT_FORMS = ("brief", "paths-only")
_REDUCED = re.compile(r"\d{4}(?:-(?:0[1-9]|1[0-2]))?")


def filled(_: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Refuse an empty value, which a shell makes of a variable that is not set.

    Raises:
        click.BadParameter: a value is empty or blank; click adds the option's name.
    """
    if any(not item.strip() for item in ([value] if isinstance(value, str) else value or ())):
        raise click.BadParameter("it is empty; give a value or leave the option out", param=parameter)
    return value


def globs(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse empty globs, and a list that only takes away and so names nothing."""
    filled(context, parameter, value)
    if value and all(glob.startswith("!") for glob in value):
        raise click.BadParameter(f"{_quoted(value)} only takes away; also give what to take from", param=parameter)
    return value


def time(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return a time that names no zone as one of this machine's zone, in which times are printed; words stay words."""
    try:
        moment = None if value is None else datetime.fromisoformat(value.strip())
        return value if moment is None or moment.tzinfo else moment.astimezone().isoformat()
    except (ValueError, OverflowError):
        return value


def beginning(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a time like `time`; what is longer, also in words, begins in this machine's zone, as any day."""
    if value is None or not value.strip():
        return value
    if _REDUCED.fullmatch(value.strip()):
        return time(context, parameter, f"{value.strip()}-01-01"[:10])
    found = time(context, parameter, value)
    return _beginning_in_words(value) if found == value else found


def _beginning_in_words(value: str) -> str:
    from commonplace.dates.time import iso, moment_in_words

    try:
        return str(iso(moment_in_words("time", value, clock(), is_start=True, zone=None)))
    except UsageError:
        return value  # who uses it says what is wrong with it


def score(_: click.Context, __: click.Parameter, value: str | None) -> float | str | None:
    """Return a number where one was written; the settings judge every other word, and the range."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value


def _given(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return None for an option that was not given: an empty list of phrasings is refused."""
    filled(context, parameter, value)
    return value or None


also = click.option(
    "--also", multiple=True, metavar="TEXT", callback=_given, help="The query in other words; up to four times."
)


def of_artifacts(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for how artifacts are found, and which."""
    for option in (
        click.option("--agent", metavar="NAME", callback=filled, help="Search by the strategy of this agent."),
        click.option(
            "--path", "paths", multiple=True, metavar="GLOB", callback=globs, help="Only artifacts whose path matches."
        ),
        click.option(
            "--phase",
            "phases",
            multiple=True,
            type=click.Choice(PHASES),
            help="Only this phase; what names none passes.",
        ),
        click.option(
            "--type", "types", multiple=True, type=click.Choice(ARTIFACT_TYPES), help="Only artifacts of this type."
        ),
        click.option("--method", type=click.Choice(METHODS), help="How candidates are found and ranked."),
    ):
        function = option(function)
    return function


def from_flags(loaded: Settings) -> dict[str, Any]:
    """Return what of the settings stands on the command line: it wins over an agent's strategy."""
    names = ("limit", "min_score", "stage1_limit")
    return {name: getattr(loaded.search, name) for name in names if loaded.origins.get(f"search.{name}") == "flag"}


def forms(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for the form in which hits are printed; of several the last one holds."""
    for option, told in (
        (("--why",), "Say beneath each hit why it stands there."),
        (("--brief",), "Print one line a hit."),
        (("-l", "--paths-only"), "Print the path of each file alone; of what is in no file, the id."),
    ):
        function = click.option(*option, "form", flag_value=option[-1][2:], default=None, help=told)(function)
    return function


def whole_as_json(form: str | None, *, as_json: bool) -> None:
    """Refuse a short form of JSON, which has whole hits.

    Raises:
        click.UsageError: both are asked for.
    """
    if as_json and form in SHORT_FORMS:
        raise click.UsageError(f"--json has whole hits: leave out --{form}, or --json")


def _quoted(values: Sequence[str]) -> str:
    return ", ".join(map(repr, values))


_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DURATION: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*([smhd])")
LEAST_S: Final = 10.0
MOST_S: Final = 366 * 86_400.0


def duration(_: click.Context, parameter: click.Parameter, value: str) -> float:
    """Return a duration as `30m`, `1h` or `1d` in seconds.

    Raises:
        click.BadParameter: it is none, or shorter than ten seconds or longer than a year.
    """
    found = _DURATION.fullmatch(value.strip().lower())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not LEAST_S <= seconds <= MOST_S:
        raise click.BadParameter(
            f"{value!r} is no duration from 10s to 366d; give one such as 30m, 1h or 1d", param=parameter
        )
    return seconds
