"""Check the values of options before anything is opened. It knows what an option may hold, not what it is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from time import time as clock
from typing import TYPE_CHECKING, Any

import click

from commonplace.types import ARTIFACT_TYPES, METHODS, PHASES

if TYPE_CHECKING:
    from commonplace.settings import Settings

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
    from commonplace.errors import UsageError
    from commonplace.memories.times import iso, moment_in_words

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
