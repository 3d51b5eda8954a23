"""Read the Markdown pages of the memories: one for each day, and one for what is kept long.

A page is read without loss: a block's raw text is what stands between its lines, and what belongs to no block is left
where it is. Every id comment belongs to exactly one block, whatever a person did to the headings, so that no slip of
the pen lets a memory vanish. Who changed what, and what to do about it, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

from commonplace.formats.journal_entry import LEVELS, Entry, PageKind, begins_entry, read_heading
from commonplace.formats.journal_marks import fences, id_in, is_blank, is_footer, read_body
from commonplace.formats.long_term import canonical

LONG_TERM_PAGE: Final = "MEMORY.md"
BOM: Final = "\ufeff"

_DAY_PAGE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HEADING: Final = re.compile(r"(#{1,3})(?:[ \t]|\Z)")
_OTHER: Final[Mapping[PageKind, PageKind]] = {"day": "long", "long": "day"}
_WORD: Final = re.compile(r"\w")
_BULLET: Final = re.compile(r"(?!([-*])(?:[ \t]*\1){2,}[ \t]*\Z)[-*+][ \t]+(?=[^ \t])")
"""An item of a list, not a rule across the page such as `* * *`."""


@dataclass(frozen=True, slots=True)
class Block:
    """One entry as it stands in a page.

    Attributes:
        start_line, end_line: from 1, both included.
        raw: these lines as they are; with a heading, the blank ones up to the next heading are among them.
        is_bullet: it is an item of a list in the long-term page, not an entry with a heading.
        is_bare: it is neither.
    """

    entry: Entry
    start_line: int
    end_line: int
    raw: str
    is_bullet: bool = False
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A `## ` heading of the long-term page with all below it. Lines count from 1, both ends included."""

    name: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page that was read.

    Attributes:
        preamble: what stands before the first block, a byte order mark included.
    """

    preamble: str
    blocks: tuple[Block, ...]
    sections: tuple[Section, ...] = ()


def page_name(day: date) -> str:
    """Return the file name of a day's page."""
    return f"{day.isoformat()}.md"


def day_of(name: str) -> date | None:
    """Return the day of a day's page, or None where the name is none of such a page."""
    if not _DAY_PAGE.fullmatch(name):
        return None
    try:
        return date.fromisoformat(name[:10])
    except ValueError:
        return None


def is_page_name(name: str) -> bool:
    """Return whether a file of this name is read as a page; a conflict copy, a README, a person's own notes are not."""
    return name == LONG_TERM_PAGE or day_of(name) is not None


def parse_page(text: str, kind: PageKind = "day") -> Page:
    """Return the blocks of a page, in their order; never raises.

    * A `## ` heading begins a block of a day's page, a `### ` heading one of the long-term page; not in fenced code. So
      does a heading of the other kind of page with its time or date. A block without an id is a new note; where it has
      nothing but a heading, that is its text.
    * What stands behind an id comment up to the next heading or id comment is a block without a heading, but for tags,
      links and what has no word. A note that repeats an id of the page is a copy: its id is "".
    * In the long-term page each item of a list directly under a section's heading, or behind a finished entry, is a
      block, with what is indented under it.
    """
    mark = BOM if text.startswith(BOM) else ""
    lines = split_lines(text[len(mark) :])
    reader = _Reader(lines, [line.rstrip("\r\n") for line in lines], kind)
    blocks = tuple(reader.blocks())
    first = blocks[0].start_line - 1 if blocks else len(lines)
    return Page(mark + "".join(lines[:first]), blocks, tuple(reader.sections()))


def split_lines(text: str) -> list[str]:
    r"""Return the lines with their ends: "\n", "\r\n" and "\r" and nothing else end a line."""
    return _LINE.findall(text)


class _Reader:
    """The lines of one page, counted from 0."""

    def __init__(self, lines: list[str], bare: list[str], kind: PageKind) -> None:
        self._lines, self._bare, self._kind = lines, bare, kind
        fenced = fences(bare)
        levels = [
            len(heading[1]) if not inside and (heading := _HEADING.match(line)) else 0
            for line, inside in zip(bare, fenced, strict=True)
        ]
        other = LEVELS[_OTHER[kind]]
        self._is_other = [
            level == other and begins_entry(line, _OTHER[kind]) for level, line in zip(levels, bare, strict=True)
        ]
        self._level = [
            LEVELS[kind] if is_other else level for level, is_other in zip(levels, self._is_other, strict=True)
        ]
        below = self._level.index(2) if kind == "long" and 2 in self._level else len(bare)
        self._is_bullet = [
            number > below and not inside and _BULLET.match(line) is not None
            for number, (line, inside) in enumerate(zip(bare, fenced, strict=True))
        ]
        self._ids = [id_in(line) for line in bare]

    def sections(self) -> Iterator[Section]:
        if self._kind != "long":
            return
        starts = [number for number, level in enumerate(self._level) if level == 2]
        for start, end in pairwise([*starts, len(self._lines)]):
            yield Section(canonical(read_heading(self._bare[start][2:], "long")[2]), start + 1, end)

    def blocks(self) -> Iterator[Block]:
        seen: set[str] = set()
        section = ""
        starts = [0, *(n for n, level in enumerate(self._level) if 2 <= level <= LEVELS[self._kind] and n > 0)]
        for start, end in pairwise([*starts, len(self._lines)]):
            level = self._level[start] if start < end else 0
            if self._kind == "long" and level == 2:
                section = canonical(read_heading(self._bare[start][2:], "long")[2])
            spans = self._entries(start, end) if level == LEVELS[self._kind] else self._loose(start, end)
            for first, last in spans:
                yield self._block(first, last, section, seen)

    def _entries(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what a heading begins; in the long-term page, a list behind the finished entry apart."""
        ids = [number for number in range(start, end) if self._ids[number]]
        after = self._behind(ids[-1] + 1, end) if ids else end
        border = next((number for number in range(after, end) if self._is_bullet[number]), end)
        yield from self._split(start, border)
        yield from self._loose(border, end)

    def _loose(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what needs no heading to be a block: items of a list, and whatever an id comment ends."""
        number = plain = start
        while number < end:
            if not self._is_bullet[number]:
                number += 1
                continue
            yield from self._bare_entries(plain, number)
            plain = self._end_of_bullet(number, end)
            yield from self._split(number, plain)
            number = plain
        yield from self._bare_entries(plain, end)

    def _end_of_bullet(self, start: int, end: int) -> int:
        """Return where an item ends: before the next one and before what is neither indented nor its paragraph."""
        last = start
        for number in range(start + 1, end):
            line = self._bare[number]
            if is_blank(line):
                continue
            is_lazy = number == last + 1 and not self._level[number] and not self._ids[last]
            if self._is_bullet[number] or not (line[0] in " \t" or is_lazy):
                break
            last = number
        return last + 1

    def _bare_entries(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield what has id comments among lines that no heading of an entry begins."""
        ids = [number for number in range(start, end) if self._ids[number]]
        if not ids:
            return
        titles = [number + 1 for number in range(start, ids[0]) if self._level[number]]
        yield from self._split(self._filled(titles[-1] if titles else start, ids[0]), end)

    def _split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of some lines so that no part has two ids, or words behind its id."""
        ids = [number for number in range(start, end) if self._ids[number]]
        for number, following in pairwise(ids):
            border = self._filled(number + 1, following)
            yield start, border
            start = border
        behind = self._behind(ids[-1] + 1, end) if ids else end
        if start < behind < end:
            yield start, behind
            start = behind
        if start < end:
            yield start, end

    def _behind(self, start: int, end: int) -> int:
        """Return where words begin that stand behind a finished entry, `end` where there are none."""
        found = (n for n in range(start, end) if not is_blank(self._bare[n]) and not is_footer(self._bare[n]))
        first = next(found, end)
        return first if any(_WORD.search(line) for line in self._bare[first:end]) else end

    def _filled(self, start: int, end: int) -> int:
        return next((number for number in range(start, end) if not is_blank(self._bare[number])), end)

    def _block(self, start: int, end: int, section: str, seen: set[str]) -> Block:
        head, body = self._bare[start], self._bare[start + 1 : end]
        minutes, day, topic, is_bare = None, None, "", False
        bullet = _BULLET.match(head) if self._is_bullet[start] else None
        if bullet:
            body = [head[bullet.end() :], *_dedented(body, bullet.end())]
        elif self._level[start] == LEVELS[self._kind]:
            kind = _OTHER[self._kind] if self._is_other[start] else self._kind
            minutes, day, topic = read_heading(head[LEVELS[kind] :], kind)
        else:
            is_bare = True
            body = [head, *body]
        said = read_body(body, LEVELS[self._kind])
        memory_id = "" if said.id in seen else said.id
        seen.add(said.id)
        text = topic if said.text is None else said.text
        entry = Entry(memory_id, minutes, topic, text, said.tags, said.links, section, day)
        return Block(entry, start + 1, end, "".join(self._lines[start:end]), bullet is not None, is_bare)


def _dedented(lines: Iterable[str], width: int) -> Iterator[str]:
    for line in lines:
        margin = len(line) - len(line.lstrip(" \t"))
        yield line[1 if line.startswith("\t") else min(margin, width) :]
