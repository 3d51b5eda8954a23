"""Split a text into sentences and code.

Nothing is lost: the pieces and the white space before each make up the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.markdown import fenced_blocks
from commonplace.text.similarity import normal_form
from commonplace.text.words import entries

ABBREVIATIONS: Final = frozenset(entries(Path(__file__).with_name("abbreviations.txt")))
"""Abbreviations whose full stop ends no sentence, listed without it."""
_MARK: Final = lazy_pattern(r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)+(\[[ xX]\][ \t]+)?")
_CODE: Final = lazy_pattern(
    r"[$%] |>>> |import [\w.{*]|from \S+ import |(?:def|class|const|let|var|func|fn|return|public|private) .*[(={:;]"
    r"|[@}\])]|[\w.\[\]\"']{1,80}[ \t]*(?::=|[-+*/|]?=(?!=))[ \t]*\S"
)
_END: Final = lazy_pattern(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？｡][」』）”’]*+")
_INITIALS: Final = lazy_pattern(r"[^\W\d_](?:\.[^\W\d_]){1,3}")
_ENDS_ALONE: Final = frozenset("the a he she it they we i this that in on at but and if when as there his her".split())
_BEFORE: Final = 16


class Stretch(NamedTuple):
    """A half-open range of a text: a sentence without leading marks, or lines that are not prose."""

    start: int
    end: int
    is_prose: bool


def stretches(text: str) -> Iterator[Stretch]:
    """Yield the sentences of a text and its blocks of code, in order.

    A line break inside a paragraph ends no sentence; an empty line, a bullet, a heading or a quotation mark at the
    beginning of a line does. An unchecked box is a plan, not a fact, and does not count as prose.
    """
    lines = text.split("\n")
    ends = list(accumulate((len(line) + 1 for line in lines), initial=-1))[1:]
    fenced = dict(fenced_blocks(lines))
    begun: Stretch | None = None
    number = 0
    while number < len(lines):
        line, last = lines[number], fenced.get(number, number + 1)
        start, stop = ends[number] - len(line), ends[last - 1]
        is_fence = number in fenced
        number = last
        mark, plain = _MARK.match(line), line.strip()
        # Program statements and table rows are not prose.
        is_statement = plain.endswith(";") and any(sign in plain for sign in "=(){}")
        is_drawn = plain.startswith("|") or plain.endswith(("{", "}"))
        is_code = is_fence or is_drawn or is_statement or _CODE.match(plain) is not None
        if begun is not None and not is_fence and plain and (is_code or not mark) and begun.is_prose != is_code:
            begun = begun._replace(end=stop)
            continue
        if begun is not None:
            yield from _sentences(text, begun.start, begun.end) if begun.is_prose else [begun]
        begun = None
        if is_fence or (mark is not None and mark[1] is not None and mark[1].startswith("[ ]")):
            yield Stretch(start, stop, is_prose=False)
        elif plain:
            begun = Stretch(start + (mark.end() if mark and not is_code else 0), stop, is_prose=not is_code)
    if begun is not None:
        yield from _sentences(text, begun.start, begun.end) if begun.is_prose else [begun]


def _sentences(text: str, begin: int, end: int) -> Iterator[Stretch]:
    for match in _END.finditer(text, begin, end):
        if match.end() < end and not _goes_on(text, match):
            yield Stretch(begin, match.end(), is_prose=True)
            begin = match.end()
    if text[begin:end].strip():
        yield Stretch(begin, end, is_prose=True)


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    """Return whether an apparent sentence end is a full stop inside the sentence."""
    behind = text[stop.end() : stop.end() + _BEFORE].split(maxsplit=1)[:1]
    if stop.group() != ".":
        return stop.group()[0] in ".…" and bool(behind) and behind[0][:1].islower()
    before = text[max(0, stop.start() - _BEFORE) : stop.start()]
    word = before[-1:] and before.split()[-1:] and before.split()[-1].lstrip("(\"'“").lower()
    if not word or before[-1:].isspace():
        return False
    if len(word) == 1 and word.isalpha() and word != "i":
        return True
    return (word in ABBREVIATIONS or _INITIALS.fullmatch(word) is not None) and not (
        behind and behind[0].lower() in _ENDS_ALONE
    )


_BULLET: Final = lazy_pattern(r"(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_HEADING: Final = lazy_pattern(r"#{1,6}[ \t]")
_ASIDE: Final = f"(?:{'|'.join(entries(Path(__file__).with_name('asides.txt')))})"
"""Words without content if commas, dashes or brackets set them off."""
_ASIDE_BEFORE: Final = lazy_pattern(rf"^{_ASIDE} ?[,:] ")
_ASIDE_BETWEEN: Final = lazy_pattern(rf",? \({_ASIDE}\)(?: |$)|, {_ASIDE}, | - {_ASIDE} - ")
_ASIDE_BEHIND: Final = lazy_pattern(rf"(?:,| -) {_ASIDE}$")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a block of code, of a text.

    Attributes:
        gap: the white space before it.
        text: as written, with the marks of an item or heading.
        body: `text` without these marks.
        key: the normal form without asides, or the code itself. Units with equal keys say the same.
    """

    gap: str
    text: str
    body: str
    key: str
    is_prose: bool

    @property
    def is_item(self) -> bool:
        """Whether the unit is a list item or a quotation."""
        return _BULLET.match(self.text) is not None

    @property
    def is_heading(self) -> bool:
        return self.is_prose and _HEADING.match(self.text) is not None


def say_the_same(left: str, right: str) -> bool:
    """Return whether two texts say the same things in the same order, without asides."""
    return [unit.key for unit in units_of(left)] == [unit.key for unit in units_of(right)]


def units_of(text: str) -> list[Unit]:
    """Return the units of a text, in order; a blank text has none."""
    units: list[Unit] = []
    end = 0
    for piece in (*stretches(text), Stretch(0, len(text), is_prose=False)):
        start, stop = (max(end, offset) for offset in piece[:2])
        said = text[start:stop].strip()
        if not said:
            continue
        stop = start + len(text[start:stop].rstrip())
        begin = end + len(text[end:stop]) - len(text[end:stop].lstrip())
        written = text[begin:stop]
        if piece.is_prose:
            form = normal_form(said)
            bare = _ASIDE_BETWEEN.sub(" ", _ASIDE_BEFORE.sub("", _ASIDE_BEHIND.sub("", form)))
            key = bare.strip() or form or said
        else:
            key = "\n".join(line.rstrip() for line in written.splitlines()) or said
        units.append(Unit(text[end:begin], written, said, key, piece.is_prose))
        end = stop
    return units
