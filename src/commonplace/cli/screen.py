"""Where output goes: text for a person, JSON for a program, progress and notices beside both. It knows no command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from commonplace.text.escaping import harmless, harmless_json, harmless_line

if TYPE_CHECKING:
    from commonplace.cli.invocation import Invocation
    from commonplace.cli.terminal import Terminal
    from commonplace.settings import Settings
    from commonplace.types import Progress


def console(*, stderr: bool = False) -> Terminal:
    """Return a console for people on standard output or standard error."""
    from commonplace.cli.terminal import Terminal

    return Terminal(stderr=stderr)


def say(text: str, *, err: bool = False) -> None:
    """Print plain text as a line, without the cost of a console."""
    _write(harmless(text), err=err)


def print_json(value: Any, *, indent: int | None = 2, err: bool = False) -> None:
    """Print one JSON value, in characters that the stream's encoding has."""
    stream = sys.stderr if err else sys.stdout
    is_unicode = (stream.encoding or "").lower().startswith("utf")
    _write(harmless_json(value, indent=indent, ascii_only=not is_unicode), err=err)


def _write(line: str, *, err: bool) -> None:
    """Write to the stream itself: `click.echo` sends UTF-8 to a terminal that says it has none."""
    stream = sys.stderr if err else sys.stdout
    stream.write(line + "\n")
    stream.flush()


def notify(notices: tuple[str, ...], invocation: Invocation) -> None:
    """Print each notice as one dim line on standard error; JSON output carries them itself."""
    if notices and not invocation.as_json:
        target = console(stderr=True)
        for notice in notices:
            target.print(f"note: {harmless_line(notice)}", style="dim")


def can_ask(invocation: Invocation) -> bool:
    """Return whether a person can be asked: an agent's shell and a script have no terminal, and JSON asks nothing."""
    return not invocation.as_json and sys.stdin.isatty() and sys.stderr.isatty()


def refuse_unasked(invocation: Invocation, purpose: str) -> None:
    """Refuse to go on without `--yes` where nobody can be asked.

    Args:
        purpose: what the option would allow, as an infinitive without `to`.

    Raises:
        click.UsageError: there is no terminal, or JSON is asked for.
    """
    import click

    if not can_ask(invocation):
        why = "--json asks nothing" if invocation.as_json else "there is no terminal to ask on"
        raise click.UsageError(f"{why}: pass --yes to {purpose}")


def own_store_notice(settings: Settings) -> tuple[str, ...]:
    """Say that what is stored goes to the user's own store, where there is no project and no store was named."""
    if settings.project is not None or settings.origins.get("store.path") != "default":
        return ()
    init = "`commonplace init` makes a project's, and offers to move what was remembered there"
    return (f"there is no project here, so your own store is used, {settings.store.path}; {init}",)


@contextmanager
def progress_bars(invocation: Invocation) -> Iterator[Progress | None]:
    """Give a callback that draws bars on a terminal's standard error; None in a pipe or for JSON."""
    if invocation.as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks.clear()
                tasks[what] = bars.add_task(what, total=None)
            bars.update(tasks[what], completed=done, total=total or None)

        yield show


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 file`, `2 files`, `12,345 files`; where the plural is not made with an s, it is given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def size_of(size: float) -> str:
    """Return a size as people write it, in powers of 1024."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
