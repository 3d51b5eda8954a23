"""Put numbers, names and long lines into a form that a person likes to read. It knows no command and no report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from commonplace.cli.screen import counted
from commonplace.text.escaping import harmless, harmless_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
