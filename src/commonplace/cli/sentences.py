"""Put numbers, names and long lines into a form that a person likes to read. It knows no command and no report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from commonplace.cli.rendering import INDENT, WIDEST, wrapped
from commonplace.cli.screen import counted
from commonplace.text.escaping import harmless, harmless_line

if TYPE_CHECKING:
    from rich.console import Console

_LEAST = 20
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
    from rich.cells import cell_len
    from rich.text import Text

    line = Text.assemble(before, (name, "cyan"))
    for part in (harmless_line(part) for part in known if part):
        if line.cell_len + len(" · ") + cell_len(part) > target.width:
            target.print(line)
            line = Text.assemble(INDENT, (part, "dim"))
        else:
            line.append(f" · {part}", "dim")
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
    columns = max(_LEAST, min(width, WIDEST))
    return wrap(harmless_line(sentence), columns, break_long_words=False, break_on_hyphens=False)
