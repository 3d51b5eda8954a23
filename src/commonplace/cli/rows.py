"""Rows: the text form of a command's answer. One renderer, based on rich, prints them all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from commonplace.cli.output import console, notify, print_json, say
from commonplace.errors import NotFoundError
from commonplace.formats.escaping import harmless, harmless_line
from commonplace.formats.json_values import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from commonplace.cli.invocation import Invocation
    from commonplace.engine import Engine

_T = TypeVar("_T")
INDENT: Final = "   "
MAX_LISTED: Final = 10
"""Number of items of a long list that are shown; `--json` prints all of them."""
MAX_LINES: Final = 3
"""Number of lines of a text that are shown."""
_WORD: Final = re.compile(r"(?P<word>^\s*\S+|\S+)\s*")
_MIN_WIDTH: Final = 40
"""Minimum width of running text, even on narrower terminals."""
_MIN_SENTENCE: Final = 20
_FIELD_WIDTH: Final = 12
_MAX_WRAPPED: Final = 4000
"""Number of characters that are wrapped for the first lines of a text, which may have a million."""


class Line(NamedTuple):
    """A sentence, wrapped to the terminal if it has a level or `before`; paths and ids in it are never broken.

    A Line without text prints nothing; an empty string as a row prints a blank line.
    """

    text: str
    style: str = ""
    level: int = 0
    before: str = ""

    def print(self, target: Console) -> None:
        text = self.text.removeprefix("\n")
        if text != self.text:
            target.print()
        indent = INDENT * (self.level or 1)
        is_whole = not self.level and not self.before
        lines = [harmless_line(text)] if is_whole else wrap_line(text, target.width - len(indent))
        for number, line in enumerate(lines if text else ()):
            target.print(styled(indent if number or self.level else self.before, (line, self.style)))


class Row(NamedTuple):
    """An item of a list: its name, its properties as texts or (text, style), and the start of its text."""

    name: str = ""
    properties: Sequence[str | tuple[str, str]] = ()
    text: str = ""
    level: int = 0
    before: str = ""

    def print(self, target: Console) -> None:
        parts = [(prop, "dim") if isinstance(prop, str) else prop for prop in self.properties]
        first, *rest = [
            styled(harmless_line(text), style=style) for text, style in ((self.name, "cyan"), *parts) if text
        ]
        pieces = [styled(self.before or INDENT * self.level, first), *rest]
        lines = packed(pieces, DOT, target.width, self.level + 1 if self.name else self.level)
        for line in lines:
            target.print(line)
        Body(self.text).print(target)


class Body(NamedTuple):
    """The first lines of a text, or the whole text, wrapped and indented."""

    text: str
    level: int = 1
    is_whole: bool = False

    def print(self, target: Console) -> None:
        text = harmless(self.text if self.is_whole else self.text[:_MAX_WRAPPED])
        if not self.is_whole:
            text = "\n".join(line for line in text.splitlines() if line.strip())
        lines = wrapped(styled(text), columns(target.width)) if text else []
        visible_lines = lines if self.is_whole else lines[:MAX_LINES]
        for line in visible_lines:
            target.print(styled(INDENT * self.level) + line)
        if len(lines) > len(visible_lines):
            target.print(f"{INDENT * self.level}…", style="dim")


class Fields(NamedTuple):
    """A column of names with their values; names without a value are left out."""

    values: Mapping[str, str]

    def print(self, target: Console) -> None:
        for name, value in self.values.items():
            for number, shown in enumerate(wrap_line(value, target.width - _FIELD_WIDTH - 2) if value else ()):
                target.print(styled((f"{'' if number else name:>{_FIELD_WIDTH}}  ", "dim"), shown))


Rows: TypeAlias = "Iterable[Row | Line | Body | Fields | Text | str]"
Content: TypeAlias = "Rows | Row | Line | str"
Answer: TypeAlias = "tuple[Any, Content]"
"""The answer of a command: the value that JSON prints, and the row or rows that people read."""


def rows_of(content: Content) -> Rows:
    """Return rows as an iterable."""
    if isinstance(content, str):
        return [Line(content)]
    return [content] if isinstance(content, Line | Row) else content


def listed(
    items: Iterable[_T],
    view: Callable[[_T], Content],
    title: str = "",
    style: str = "",
    *,
    none: str = "",
    level: int = 0,
    is_numbered: bool = False,
    limit: int | None = None,
) -> Rows:
    """Yield the rows of items.

    Args:
        title: a line above the items, in `style`, indented one level less.
        none: the line to print if there are no items.
        level: added to the level of each row.
        limit: maximum number of items shown; a last line counts the others.
    """
    entries = list(items)
    if heading := title if entries else none:
        yield Line(heading, style, max(0, level - 1))
    for number, entry in enumerate(entries[:limit], 1):
        for position, row in enumerate(rows_of(view(entry))):
            changes: dict[str, Any] = {"before": f"{number}. "} if is_numbered and not position else {}
            if level and isinstance(row, Line | Row | Body):
                changes["level"] = row.level + level
            yield row._replace(**changes) if changes else row  # type: ignore[union-attr]
    if limit is not None:
        yield from more(len(entries), level=max(1, level))


def emit(invocation: Invocation, result: Any, rows: Content, *, value: Any = None, has_notices: bool = False) -> None:
    """Print the answer of a command: its notices, then JSON or rows, which may be a generator.

    Args:
        value: the value that JSON prints instead of `result`.
        has_notices: whether the rows already contain the notices.
    """
    notices = result.get("notices", ()) if isinstance(result, dict) else getattr(result, "notices", ())
    notify(() if has_notices else notices, invocation)
    if invocation.as_json:
        print_json(plain(result if value is None else value))
    else:
        print_rows(rows_of(rows))


def emit_text(invocation: Invocation, result: Any, text: str, *nothing: str) -> None:
    """Print the text of a result that a model reads, unchanged, after the notices of the result.

    Args:
        nothing: notices to print if the text is empty.
    """
    notify(result.notices, invocation)
    if invocation.as_json:
        print_json(result.to_dict())
    elif text:
        say(text)
    else:
        notify(nothing, invocation)


def print_rows(rows: Rows) -> None:
    """Print rows on standard output."""
    target = console()
    for row in rows:
        if isinstance(row, tuple):
            row.print(target)
        elif isinstance(row, str) and row:
            Line(row).print(target)
        else:
            target.print(row)


def styled(*parts: str | tuple[str, str] | Text, style: str = "") -> Text:
    """Join plain and styled parts to one text; rich is loaded here, on the first output."""
    from rich.text import Text

    return Text.assemble(*parts, style=style)


DOT: Final = " · "


def packed(pieces: Sequence[Text], between: str, width: int, level: int = 1) -> Iterator[Text]:
    """Yield the pieces on as few lines as possible, in order; no piece is broken."""
    line, *rest = pieces
    for piece in rest:
        if line.cell_len + len(between) + piece.cell_len > width:
            yield line
            line = styled(INDENT * level, piece)
        else:
            line = styled(line, (between, "dim"), piece)
    yield line


def more(count: int, *, level: int = 1) -> Rows:
    """Yield a line that counts the items of a list beyond `MAX_LISTED`, if any."""
    if count > MAX_LISTED:
        yield Line(f"… {count - MAX_LISTED:,} more; --json lists all", "dim", level)


def wrap_line(sentence: str, width: int) -> list[str]:
    """Wrap a sentence to a width; only single longer words exceed it."""
    return [line.plain for line in wrapped(styled(harmless_line(sentence)), max(_MIN_SENTENCE, width))]


def columns(width: int) -> int:
    """Return the number of columns for running text below a heading, on a terminal of this width."""
    return max(_MIN_WIDTH, width) - len(INDENT)


def wrapped(text: Text, width: int) -> list[Text]:
    """Wrap text to a width; a longer word, such as a path, is kept whole on its own line."""
    from rich.console import Console

    lines: list[Text] = []
    for line in text.split("\n", allow_blank=True):
        if line.cell_len > len(line):  # scripts with wide characters have no spaces: a line may break anywhere
            lines += line.wrap(Console(width=width), width)
            continue
        starts = [0]
        for word in _WORD.finditer(line.plain):
            if word.end("word") - starts[-1] > width and word.start() > starts[-1]:
                starts.append(word.start())
        lines += line.divide(starts[1:])
    for line in lines:
        line.rstrip()
    return lines


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 file`, `2 files`, `12,345 files`; `plural` is needed if it does not end in an added s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


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
"""Nouns (singular, plural) of the contents of a store, in the order in which they are printed."""
STORED: Final = tuple(name for name in _NOUNS if name != "in_process")


def holdings(result: Any, names: Iterable[str] = STORED) -> str:
    """Return a text such as `2 memories and 1 fact` from the counts or lists under `names` of a result, or ""."""
    values = {name: result.get(name) if isinstance(result, Mapping) else getattr(result, name, None) for name in names}
    counts = {name: value if isinstance(value, int) else len(value or ()) for name, value in values.items()}
    return tally((number, *_NOUNS[name]) for name, number in counts.items())


def tally(counts: Iterable[tuple[int, str, str]]) -> str:
    """Return `2 memories, 1 link and 3 passages` from (number, singular, plural or ""), leaving out zeros."""
    return joined([counted(number, noun, plural) for number, noun, plural in counts if number])


def joined(parts: Sequence[str]) -> str:
    """Join parts as an enumeration: `a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def memory_texts(engine: Engine, ids: Iterable[str]) -> dict[str, str]:
    """Return the texts of memories by id, leaving out memories that no longer exist."""
    texts: dict[str, str] = {}
    for id_ in ids:
        with suppress(NotFoundError):
            texts[id_] = engine.get(id_, touch=False).content
    return texts


def size_text(size: float) -> str:
    """Format a size in bytes with units of powers of 1024."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def local_time(moment: datetime | str | None) -> str:
    """Format a time in the local time zone, to the minute; "" for none."""
    if not moment:
        return ""
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    try:
        return moment.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError):  # conversion leaves the range of datetime on its first and last day
        return moment.strftime("%Y-%m-%d %H:%M")


def note(text: str) -> Line:
    """Return a notice as a row of an answer."""
    return Line(f"note: {text}", "dim", 1)


def tagged(tags: Iterable[str]) -> str:
    """Format tags as `#decision #billing`."""
    return " ".join(f"#{tag}" for tag in tags)


def counts_text(counts: Mapping[str, int]) -> str:
    """Format counts by name as `2 open, 1 closed`, leaving out zeros."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.items() if number)
