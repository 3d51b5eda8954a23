"""Print text, JSON, notices and progress, and write files atomically."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, TextIO

from commonplace.dataclasses import dataclass, field
from commonplace.formats.escaping import harmless, harmless_json, harmless_line

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from commonplace.cli.invocation import Invocation
    from commonplace.settings import Settings
    from commonplace.types import Progress


@dataclass(frozen=True, slots=True)
class Caller:
    """The process for which a server runs a command in a thread.

    Attributes:
        environment: the variables that determine the command's output and settings.
        stdin: the contents of its standard input, for a command that reads it.
        terminals: which of its descriptors 1 and 2 are terminals.
        size: columns and lines of its terminal.
        encodings: the encodings of its standard output and error.
        output: the output so far, as (descriptor, text).
    """

    environment: Mapping[str, str]
    stdin: str
    terminals: Sequence[int]
    size: tuple[int, int]
    encodings: Sequence[str]
    output: list[tuple[int, str]] = field(default_factory=list)


class _CallerStream(StringIO):
    def __init__(self, caller: Caller, descriptor: int) -> None:
        super().__init__()
        self._caller, self._descriptor = caller, descriptor

    @property
    def encoding(self) -> str:  # type: ignore[override] # a text stream's own is one too
        return self._caller.encodings[self._descriptor - 1]

    def isatty(self) -> bool:
        return self._descriptor in self._caller.terminals

    def write(self, text: str, /) -> int:
        self._caller.output.append((self._descriptor, text))
        return len(text)


CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
"""The caller for which this thread prints; None is this process itself."""


def _stream(err: bool) -> TextIO:
    if (caller := CALLER.get()) is not None:
        return _CallerStream(caller, 2 if err else 1)
    return sys.stderr if err else sys.stdout


@cache
def _terminal() -> type[Console]:
    # Rich is loaded here, on the first output for people.
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Terminal(Console):
        """A console that keeps styles but removes the control characters of texts."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(harmless(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - `run_to_the_end` handles it: a reader that stops early is not a failure

    return Terminal


def console(*, stderr: bool = False) -> Console:
    """Return a console on standard output or standard error; in a pipe it prints plain text."""
    overrides: dict[str, Any] = {}
    if (caller := CALLER.get()) is not None:
        columns, lines = map(str, caller.size)
        overrides = {"file": _stream(stderr), "_environ": {"COLUMNS": columns, "LINES": lines, **caller.environment}}
    return _terminal()(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True, **overrides)


def _write(line: str, *, err: bool) -> None:
    """Write to the stream directly: `click.echo` sends UTF-8 even to a terminal with another encoding."""
    stream = _stream(err)
    stream.write(line + "\n")
    stream.flush()


def say(text: str, *, err: bool = False) -> None:
    """Print a line of plain text, without the cost of a console."""
    _write(harmless(text), err=err)


def print_json(value: Any, *, indent: int | None = 2, err: bool = False) -> None:
    """Print one JSON value, escaping characters that the stream's encoding lacks."""
    is_unicode = (_stream(err).encoding or "").lower().startswith("utf")
    _write(harmless_json(value, indent=indent, ascii_only=not is_unicode), err=err)


def notify(notices: Iterable[str], invocation: Invocation) -> None:
    """Print each notice as a dim line on standard error; with --json nothing, as the JSON contains the notices."""
    from commonplace.cli.rows import Line

    for notice in () if invocation.as_json else notices:
        target = console(stderr=True)
        # A prefix makes the line wrap, which is wanted only on a terminal.
        prefix = "note: " if target.is_terminal else ""
        Line(notice if prefix else f"note: {notice}", "dim", before=prefix).print(target)


class Notices(logging.Handler):
    """Prints warnings about edited pages as notes; with --verbose, every other log record too."""

    def __init__(self, invocation: Invocation) -> None:
        super().__init__(logging.DEBUG if invocation.is_verbose else logging.WARNING)
        self._invocation = invocation

    def emit(self, record: logging.LogRecord) -> None:
        is_note = record.name == "commonplace.journal" and record.levelno >= logging.WARNING
        if is_note and not self._invocation.as_json:
            notify((record.getMessage(),), self._invocation)
        elif self._invocation.is_verbose:
            say(f"{record.levelname.lower()}: {harmless_line(record.getMessage())}", err=True)
            if record.exc_info:
                say(logging.Formatter().formatException(record.exc_info), err=True)


def hint(text: str) -> None:
    """Print a dim line on standard error, for a person at the terminal."""
    console(stderr=True).print(text, style="dim")


def own_store_notice(settings: Settings) -> tuple[str, ...]:
    """Return a notice that the user store is used, if there is no project and no store was named."""
    if settings.project is not None or settings.origins.get("store.path") != "default":
        return ()
    init = "`commonplace init` makes a project's, and offers to move what was remembered there"
    return (f"there is no project here, so your user store is used, {settings.store.path}; {init}",)


@contextmanager
def progress_bars(invocation: Invocation) -> Iterator[Progress | None]:
    """Yield a callback that draws bars on a terminal's standard error; None in a pipe or for JSON."""
    if invocation.as_json or invocation.caller is not None or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, completed: int, total: int) -> None:
            if stage not in tasks:
                # One bar at a time: hide that of the previous stage.
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks.clear()
                tasks[stage] = bars.add_task(stage, total=None)
            bars.update(tasks[stage], completed=completed, total=total or None)

        yield show


def write_whole(path: Path, text: str, remedy: str, store: Path | None = None, *, makes_parent: bool = False) -> None:
    """Write a file atomically, under another name that is then renamed, so that no reader sees half of it.

    A link is followed, and an existing file keeps its permissions.

    Args:
        store: the directory of the store whose content is written; None if it comes from no store.
        makes_parent: create the parent directory too, for paths that nobody typed.

    Raises:
        StoreError: the file cannot be written.
    """
    from commonplace.store.drafts import clear_drafts, draft, file_errors, refuse_occupied

    with file_errors(f"{path} cannot be written", remedy=remedy):
        if path.exists() and not path.is_file():
            path.write_bytes(text.encode())  # a device or a pipe cannot be replaced
            return
        target = path.resolve()
        if makes_parent:
            target.parent.mkdir(parents=True, exist_ok=True)
        refuse_occupied(target, may_exist=True)
        if store is not None:
            clear_drafts(store)
        with draft(store, target) as base:
            # Not a file of tempfile, which only its user can read: this one gets the default permissions.
            new_file = base.with_name(f"{base.name}.new")
            with new_file.open("xb") as file:
                if target.exists():
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            new_file.replace(target)
