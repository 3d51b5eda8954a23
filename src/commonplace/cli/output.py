"""Print for people and programs: rows, text, JSON, notices, progress; and write files whole."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from commonplace.dataclasses import dataclass, field
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.escaping import harmless, harmless_json, harmless_line
from commonplace.formats.json_values import plain

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from commonplace.cli.invocation import Invocation
    from commonplace.engine import Engine
    from commonplace.settings import Settings
    from commonplace.types import Progress

INDENT: Final = "   "
MAX_LISTED: Final = 10
"""So many of many are shown; `--json` has all of them."""
MAX_LINES: Final = 3
"""Lines that are shown of a text."""
_WORD: Final = re.compile(r"(?P<word>^\s*\S+|\S+)\s*")
_MIN_WIDTH: Final = 40
"""Running text gets so many columns at least, on the narrowest of terminals too."""
_MIN_SENTENCE: Final = 20
_FIELD_WIDTH: Final = 12
_MAX_WRAPPED: Final = 4000
"""Characters of a text that are wrapped for its first lines: it may be a million long."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The process that a server runs a command for, in a thread.

    Attributes:
        environment: what a command's output and its settings depend on.
        stdin: what came in its pipe, for a command that reads it.
        terminals: which of its descriptors 1 and 2 are terminals.
        size: columns and lines of its terminal.
        encodings: of its two streams.
        output: what was printed for it so far: descriptors and texts.
    """

    environment: Mapping[str, str]
    stdin: str
    terminals: Sequence[int]
    size: tuple[int, int]
    encodings: Sequence[str]
    output: list[tuple[int, str]] = field(default_factory=list)

    def stream(self, err: bool) -> TextIO:
        """Return what stands in the place of its standard output or standard error."""
        return _CallersStream(self, 2 if err else 1)


class _CallersStream(StringIO):
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
"""For whom this thread prints; None is the process itself."""


def environment() -> Mapping[str, str]:
    """Return the environment of whoever gets the output."""
    caller = CALLER.get()
    return os.environ if caller is None else caller.environment


def _stream(err: bool) -> TextIO:
    caller = CALLER.get()
    if caller is not None:
        return caller.stream(err)
    return sys.stderr if err else sys.stdout


class Line(NamedTuple):
    """A sentence, wrapped to the terminal if it is indented or has a mark; a path or an id in it is never broken."""

    text: str
    style: str = ""
    level: int = 0
    before: str = ""

    def print(self, target: Console) -> None:
        if not self.level and not self.before:
            text = self.text.removeprefix("\n")
            target.print("\n" * (len(self.text) - len(text)) + harmless_line(text), style=self.style)
            return
        indent = INDENT * (self.level or 1)
        for number, line in enumerate(broken(self.text, target.width - len(indent))):
            target.print(styled(indent if number or self.level else self.before, (line, self.style)))


class Row(NamedTuple):
    """One thing of a list: its name, what is known of it, and the first lines of its text below."""

    name: str
    known: Sequence[str] = ()
    text: str = ""
    before: str = ""

    def print(self, target: Console) -> None:
        known = [styled(harmless_line(part), style="dim") for part in self.known if part]
        pieces = [styled(self.before, (harmless_line(self.name), "cyan")), *known]
        for line in packed(pieces, styled(" · ", style="dim"), target.width):
            target.print(line)
        Beginning(self.text).print(target)


class Beginning(NamedTuple):
    """The first lines of a text, indented."""

    text: str

    def print(self, target: Console) -> None:
        # Without its blank lines, and without wrapping what is not shown.
        start = "\n".join(line for line in harmless(self.text[:_MAX_WRAPPED]).splitlines() if line.strip())
        lines = wrapped(styled(start), columns(target.width)) if start else []
        for line in lines[:MAX_LINES]:
            target.print(styled(INDENT) + line)
        if len(lines) > MAX_LINES:
            target.print(f"{INDENT}…", style="dim")


class Paragraphs(NamedTuple):
    """A whole text, wrapped."""

    text: str
    level: int = 0

    def print(self, target: Console) -> None:
        for part in wrapped(styled(harmless(self.text)), columns(target.width)):
            target.print(styled(INDENT * self.level) + part)


class Fields(NamedTuple):
    """Names, in a column, and their values; those without a value are left out."""

    values: Mapping[str, str]

    def print(self, target: Console) -> None:
        for name, value in self.values.items():
            for number, shown in enumerate(broken(value, target.width - _FIELD_WIDTH - 2) if value else ()):
                target.print(styled((f"{'' if number else name:>{_FIELD_WIDTH}}  ", "dim"), shown))


class Parts(NamedTuple):
    """Pieces with their styles on as few indented lines as they fit on."""

    parts: Sequence[tuple[str, str]]
    level: int = 1

    def print(self, target: Console) -> None:
        indent = styled(INDENT * self.level)
        first, *rest = (styled(harmless_line(part), style=style) for part, style in self.parts)
        for line in packed([indent + first, *rest], styled(" · ", style="dim"), target.width, indent):
            target.print(line)


Rows = Iterable["Row | Line | Beginning | Paragraphs | Fields | Parts | Text | str"]


def emit(
    invocation: Invocation, found: Any, rows: Callable[[Any], Rows], *, value: Any = None, has_notices: bool = False
) -> None:
    """Print what a command found: its notices, then JSON or rows.

    Args:
        value: what JSON has in place of `found` itself.
        has_notices: the rows show the notices.
    """
    notify(() if has_notices else getattr(found, "notices", ()), invocation)
    if invocation.as_json:
        print_json(plain(found if value is None else value))
    else:
        print_rows(rows(found))


def print_rows(rows: Rows) -> None:
    target = console()
    for row in rows:
        if isinstance(row, str):
            Line(row).print(target)
        elif isinstance(row, tuple):
            row.print(target)
        else:
            target.print(row)


def styled(*parts: str | tuple[str, str] | Text, style: str = "") -> Text:
    """Return one text of plain and styled parts; rich is loaded here, when there is something to print."""
    from rich.text import Text

    return Text.assemble(*parts, style=style)


def packed(pieces: Sequence[Text], between: Text, width: int, indent: Text | str = INDENT) -> Iterator[Text]:
    """Yield lines of pieces, one after the other on as few lines as they fit on; none is ever broken."""
    line, *rest = pieces
    for piece in rest:
        if line.cell_len + between.cell_len + piece.cell_len > width:
            yield line
            line = styled(indent, piece)
        else:
            line = line + between + piece
    yield line


def some(lines: Sequence[object], style: str = "", *, level: int = 1) -> Iterator[Line]:
    """Yield the first of many lines below a heading, and how many there are besides."""
    for line in lines[:MAX_LISTED]:
        yield Line(str(line), style, level)
    yield from more(len(lines), level=level)


def more(count: int, *, level: int = 1) -> Iterator[Line]:
    """Yield how many of a list were not shown, if any."""
    if count > MAX_LISTED:
        yield Line(f"… {count - MAX_LISTED:,} more; --json lists all", "dim", level)


def broken(sentence: str, width: int) -> list[str]:
    """Return a sentence as lines that fit, as far as its words do."""
    return [line.plain for line in wrapped(styled(harmless_line(sentence)), max(_MIN_SENTENCE, width))]


def columns(width: int) -> int:
    """Return how many columns running text gets below its heading, on a terminal of that width."""
    return max(_MIN_WIDTH, width) - len(INDENT)


def wrapped(text: Text, width: int) -> list[Text]:
    """Return text as lines of that width; a longer word, such as a path, has a line of its own, whole."""
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
    starts = [0]
    for word in _WORD.finditer(line):
        if word.end("word") - starts[-1] > width and word.start() > starts[-1]:
            starts.append(word.start())
    return starts[1:]


def console(*, stderr: bool = False) -> Console:
    """Return a console for people on standard output or standard error; in a pipe it prints plain text."""
    caller = CALLER.get()
    its: dict[str, Any] = {}
    if caller is not None:
        columns, lines = (str(number) for number in caller.size)
        its = {"file": caller.stream(stderr), "_environ": {"COLUMNS": columns, "LINES": lines, **caller.environment}}
    return _terminal()(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True, **its)


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
    stream = _stream(err)
    is_unicode = (stream.encoding or "").lower().startswith("utf")
    _write(harmless_json(value, indent=indent, ascii_only=not is_unicode), err=err)


def _write(line: str, *, err: bool) -> None:
    """Write to the stream itself: `click.echo` sends UTF-8 to a terminal that says it has none."""
    stream = _stream(err)
    stream.write(line + "\n")
    stream.flush()


def notify(notices: Iterable[str], invocation: Invocation) -> None:
    """Print each notice as one dim line on standard error; JSON output carries them itself."""
    shown = () if invocation.as_json else tuple(notices)
    if shown:
        target = console(stderr=True)
        for notice in shown:
            target.print(f"note: {harmless_line(notice)}", style="dim")


def own_store_notice(settings: Settings) -> tuple[str, ...]:
    """Say that what is stored goes to the user's own store, if there is no project and no store was named."""
    if settings.project is not None or settings.origins.get("store.path") != "default":
        return ()
    init = "`commonplace init` makes a project's, and offers to move what was remembered there"
    return (f"there is no project here, so your own store is used, {settings.store.path}; {init}",)


@contextmanager
def progress_bars(invocation: Invocation) -> Iterator[Progress | None]:
    """Give a callback that draws bars on a terminal's standard error; None in a pipe or for JSON."""
    if invocation.as_json or invocation.caller is not None or not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    shown = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*shown, console=console(stderr=True), transient=True) as bars:
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
    """Return `1 file`, `2 files`, `12,345 files`; a plural that is not made with an s is given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def tally(counts: Iterable[tuple[int, str, str]]) -> str:
    """Return `2 memories, 1 link and 3 passages` of (number, singular, plural or ""), without what is none."""
    return joined([counted(number, noun, plural) for number, noun, plural in counts if number])


_NOUNS: Final[Mapping[str, tuple[str, str]]] = {
    "memories": ("memory", "memories"),
    "links": ("link", ""),
    "owners": ("artifact or document", "artifacts or documents"),
    "knowledge": ("item of knowledge", "items of knowledge"),
    "contexts": ("context of an agent", "contexts of agents"),
    "in_process": ("memory of this process", "memories of this process"),
    "episodes": ("episode", ""),
    "entities": ("entity", "entities"),
    "relations": ("fact", ""),
    "issues": ("issue", ""),
}
"""What a store holds, in the order in which it is told."""
STORED: Final = tuple(name for name in _NOUNS if name != "in_process")


def holdings(counts: Mapping[str, int], names: Iterable[str] = STORED) -> str:
    """Return `2 memories and 1 fact` of the counts under some names; "" for none of all."""
    return tally((counts.get(name, 0), *_NOUNS[name]) for name in names)


def memory_texts(engine: Engine, ids: Iterable[str]) -> dict[str, str]:
    """Return the texts of memories by id, of those that are still there."""
    texts: dict[str, str] = {}
    for id_ in ids:
        with suppress(NotFoundError):
            texts[id_] = engine.get(id_, touch=False).content
    return texts


def joined(parts: Sequence[str]) -> str:
    """Return parts as people enumerate them: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def size_text(size: float) -> str:
    """Return a size as people write it, in powers of 1024."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def local_time(moment: datetime | str | None) -> str:
    """Return a time as people of this machine write it: local, to the minute; "" for none."""
    if not moment:
        return ""
    from datetime import datetime

    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
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
