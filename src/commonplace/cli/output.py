"""Print for people and programs: text, rows, JSON, notices and progress."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from commonplace.errors import UsageError
from commonplace.text.escaping import harmless, harmless_json, harmless_line

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console
    from rich.text import Text

    from commonplace.cli.main import Invocation
    from commonplace.settings import Settings
    from commonplace.types import Progress


def console(*, stderr: bool = False) -> Console:
    """Return a console for people on standard output or standard error; in a pipe it prints plain text."""
    return _terminal()(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def _terminal() -> type[Console]:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Terminal(Console):
        """A console that lets styles through, and no control character of a text."""

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(harmless(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - `run_to_the_end` handles it: a reader that has seen enough is no failure

    return Terminal


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


INDENT = "   "
NARROWEST = 40
"""Running text gets so many columns at least, on the narrowest of terminals too."""
_LEAST = 20
_WORD = re.compile(r"(?P<word>^\s*\S+|\S+)\s*")
LISTED = 10
"""So many of many are shown; `--json` has all of them."""
LINES_LISTED = 3
_MOST_LOOKED_AT = 4000
"""Characters of a text that are wrapped for its first lines: it may be a million long."""


def tally(counts: Iterable[tuple[int, str, str]]) -> str:
    """Return `2 memories, 1 link and 3 passages`, without what is none; "" where all are none.

    Args:
        counts: (number, singular, plural or "" where that is made with an s).
    """
    return joined([counted(number, noun, plural) for number, noun, plural in counts if number])


def joined(parts: Sequence[str]) -> str:
    """Return parts as people enumerate them: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def print_under(sentence: str, target: Console, style: str = "", *, level: int = 1) -> None:
    """Print a sentence below a heading, each of its lines indented; a path or an id is never broken."""
    indent = INDENT * level
    for line in broken(sentence, target.width - len(indent)):
        target.print(f"{indent}{line}", style=style)


def print_some(sentences: Sequence[str], target: Console, style: str = "", *, level: int = 1) -> None:
    """Print the first of many sentences below a heading, and how many there are besides."""
    for sentence in sentences[:LISTED]:
        print_under(sentence, target, style, level=level)
    print_more(len(sentences), target, level=level)


def print_more(count: int, target: Console, *, level: int = 1) -> None:
    """Print how many of a list were not shown, if any."""
    if count > LISTED:
        print_under(f"… {count - LISTED:,} more; --json lists all", target, "dim", level=level)


def print_head(name: str, known: Sequence[str], target: Console, *, before: str = "") -> None:
    """Print an id and what is known of what it names, on as many lines as the terminal needs for it."""
    from rich.text import Text

    parts = [Text(harmless_line(part), "dim") for part in known if part]
    print_packed([Text.assemble(before, (name, "cyan")), *parts], target, Text(" · ", "dim"))


def print_packed(pieces: Sequence[Text], target: Console, between: Text, width: int | None = None) -> None:
    """Print pieces one after the other on as few lines as they fit on; none is ever broken.

    Args:
        width: how many columns there are, those of the terminal if None.
    """
    from rich.text import Text

    line, *rest = pieces
    for piece in rest:
        if line.cell_len + between.cell_len + piece.cell_len > (width or target.width):
            line += Text(between.plain.rstrip() if between.plain[:1] != " " else "", between.style)
            target.print(line)
            line = Text(INDENT) + piece
        else:
            line = line + between + piece
    target.print(line)


def print_beginning(content: str, target: Console) -> None:
    """Print the first lines of a text that hold anything."""
    from rich.text import Text

    start = "\n".join(line for line in harmless(content[:_MOST_LOOKED_AT]).splitlines() if line.strip())
    lines = wrapped(Text(start), target.width)
    for line in lines[:LINES_LISTED]:
        target.print(Text(INDENT) + line)
    if len(lines) > LINES_LISTED:
        target.print(f"{INDENT}…", style="dim")


def broken(sentence: str, width: int) -> list[str]:
    """Return a sentence as lines that fit, as far as its words do."""
    return wrap(harmless_line(sentence), max(_LEAST, width), break_long_words=False, break_on_hyphens=False)


def wrapped(text: Text, width: int) -> list[Text]:
    """Return running text as lines for a terminal of that width, a little narrower for the indent before them."""
    return fitted(text, columns(width))


def columns(width: int) -> int:
    """Return how many columns running text gets below its heading, on a terminal of that width."""
    return max(NARROWEST, width) - len(INDENT)


def fitted(text: Text, width: int) -> list[Text]:
    """Return running text as lines of that width; a word that is longer, such as a path, has one of its own, whole."""
    from rich.console import Console

    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        if line.cell_len > len(line):  # scripts of wide characters have no spaces: a line may end anywhere
            lines += line.wrap(Console(width=width), width)
        else:
            lines += line.divide(_line_starts(line.plain, width))
    for line in lines:
        line.rstrip()
    return lines


def _line_starts(line: str, width: int) -> list[int]:
    """Return where the further lines begin into which words are filled."""
    starts = [0]
    for word in _WORD.finditer(line):
        if word.end("word") - starts[-1] > width and word.start() > starts[-1]:
            starts.append(word.start())
    return starts[1:]


def told(moment: datetime) -> str:
    """Return a time as people of this machine write it: local, to the minute."""
    try:
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # the first and the last day there is, east or west of Greenwich
        return moment.strftime("%Y-%m-%d %H:%M")


def write_whole(
    path: Path, content: str | bytes, *, store: Path | None = None, remedy: str = "name another --output"
) -> None:
    """Write a file beside its place and move it there, so that nobody ever reads half of it.

    A link is followed, and a file that is there already keeps its rights.

    Args:
        store: whose content it is; None: none of a store's.

    Raises:
        UsageError: it cannot be written.
    """
    from commonplace.store.drafts import clear_drafts, draft

    data = content.encode() if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)  # a device or a pipe takes what it is given
            return
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        if store is not None:
            clear_drafts(store)
        with draft(store, target) as base:
            # Not tempfile's own file, which nobody else could read: this one gets the rights that any new file gets.
            fresh = base.with_name(f"{base.name}.new")
            with fresh.open("xb") as file:
                if target.exists():
                    os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(target)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", remedy=remedy) from error
