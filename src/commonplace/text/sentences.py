"""Split a text into sentences and code.

Nothing is lost by it: the pieces and the white space before each are the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from commonplace.dataclasses import dataclass
from commonplace.patterns import late_pattern
from commonplace.text.similarity import normal_form
from commonplace.text.words import entries

ABBREVIATIONS: Final = frozenset(entries(Path(__file__).with_name("abbreviations.txt")))
"""Written with a full stop that ends no sentence (without their last full stop)."""

_FENCE: Final = late_pattern(r"[ \t]{0,8}(`{3,}|~{3,})")
_MARK: Final = late_pattern(r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)+(\[[ xX]\][ \t]+)?")
_CODE: Final = late_pattern(
    r"[$%] |>>> |import [\w.{*]|from \S+ import |(?:def|class|const|let|var|func|fn|return|public|private) .*[(={:;]"
    r"|[@}\])]|[\w.\[\]\"']{1,80}[ \t]*(?::=|[-+*/|]?=(?!=))[ \t]*\S"
)
_END: Final = late_pattern(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？]")
_INITIALS: Final = late_pattern(r"[^\W\d_](?:\.[^\W\d_]){1,3}")
_ENDS_ALONE: Final = frozenset("the a he she it they we i this that in on at but and if when as there his her".split())
_BEFORE: Final = 16


class Stretch(NamedTuple):
    """A piece of a text, half-open: a sentence, or a line that is no prose."""

    start: int
    end: int
    is_prose: bool


def stretches(text: str) -> Iterator[Stretch]:
    """Yield the sentences of a text and its lines of code, in order.

    A line break inside a paragraph ends nothing; an empty line, a bullet, a heading or a quotation mark at the
    beginning of a line do. An unchecked box is a plan, not a fact, and counts as no prose.
    """
    fence, begin, end = "", -1, -1
    for start, stop in _lines(text):
        line = text[start:stop]
        fenced = _FENCE.match(line) if "`" in line or "~" in line else None
        if fenced is not None and (not fence or fenced[1].startswith(fence)):
            fence = "" if fence else fenced[1][:3]
            yield from _sentences(text, begin, end)
            begin = -1
            continue
        if fence or _is_code(line):
            yield from _sentences(text, begin, end)
            begin = -1
            if line.strip():
                yield Stretch(start, stop, is_prose=False)
            continue
        mark = _MARK.match(line)
        if mark is not None or not line.strip():
            yield from _sentences(text, begin, end)
            begin = -1
        if mark is not None and mark[1] is not None and mark[1].startswith("[ ]"):
            yield Stretch(start, stop, is_prose=False)
            continue
        if line.strip():
            begin = begin if begin >= 0 else start + (mark.end() if mark is not None else 0)
            end = stop
    yield from _sentences(text, begin, end)


def _is_code(line: str) -> bool:
    """Tell whether a line is no prose: a statement of a programming language, a row of a table."""
    plain = line.strip()
    if (
        plain.startswith("|")
        or plain.endswith(("{", "}"))
        or (plain.endswith(";") and any(c in plain for c in "=(){}"))
    ):
        return True
    return _CODE.match(plain) is not None


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        yield start, stop
        start = stop + 1


def _sentences(text: str, begin: int, end: int) -> Iterator[Stretch]:
    if begin < 0:
        return
    for match in _END.finditer(text, begin, end):
        if match.end() < end and not _goes_on(text, match):
            yield Stretch(begin, match.end(), is_prose=True)
            begin = match.end()
    if text[begin:end].strip():
        yield Stretch(begin, end, is_prose=True)


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    """Tell whether what looks like the end of a sentence is a full stop inside of it."""
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


_FENCE_LINE: Final = late_pattern(r"^[ \t]*(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_BULLET: Final = late_pattern(r"(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_HEADING: Final = late_pattern(r"#{1,6}[ \t]")

_ASIDE: Final = f"(?:{'|'.join(entries(Path(__file__).with_name('asides.txt')))})"
"""Words that tell nothing of what is spoken of, where commas, dashes or brackets set them off."""
_ASIDE_BEFORE: Final = late_pattern(rf"^{_ASIDE} ?[,:] ")
_ASIDE_BETWEEN: Final = late_pattern(rf",? \({_ASIDE}\)(?: |$)|, {_ASIDE}, | - {_ASIDE} - ")
_ASIDE_BEHIND: Final = late_pattern(rf"(?:,| -) {_ASIDE}$")


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a text says.

    Attributes:
        gap: the white space before it.
        text: as written, with the marks of an item or heading.
        said: without them.
        key: its normal form without asides; of code the code itself. Units with equal keys say the same.
    """

    gap: str
    text: str
    said: str
    key: str
    is_prose: bool

    @property
    def is_item(self) -> bool:
        """Tell whether it is an item of a list, or quoted."""
        return _BULLET.match(self.text) is not None

    @property
    def is_heading(self) -> bool:
        return self.is_prose and _HEADING.match(self.text) is not None


def say_the_same(one: str, other: str) -> bool:
    """Tell whether two texts say the same things in the same order, asides left out."""
    return [unit.key for unit in units_of(one)] == [unit.key for unit in units_of(other)]


def units_of(text: str) -> list[Unit]:
    """Return the units of a text, in order; a text of nothing but white space has none."""
    found: list[Unit] = []
    end = 0
    for start, stop, said, is_prose in _joined(text, list(_pieces(text))):
        begin = end + len(text[end:start]) - len(text[end:start].lstrip())
        found.append(_unit(text[end:begin], text[begin:stop], said, is_prose=is_prose))
        end = stop
    if rest := text[end:].strip():
        begin = text.index(rest, end)
        found.append(_unit(text[end:begin], rest, rest, is_prose=False))
    return found


def _unit(gap: str, text: str, said: str, *, is_prose: bool) -> Unit:
    if not is_prose:
        return Unit(gap, text, said, "\n".join(line.rstrip() for line in text.splitlines()) or said, is_prose)
    form = normal_form(said)
    bare = _ASIDE_BETWEEN.sub(" ", _ASIDE_BEFORE.sub("", _ASIDE_BEHIND.sub("", form)))
    return Unit(gap, text, said, bare.strip() or form or said, is_prose)


_Piece = tuple[int, int, str, bool]


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield (start, end, what is said, whether it is prose); `start` leaves out the marks before it, if any."""
    at = 0
    for start, end in [*_fenced(text), (len(text), len(text))]:
        for each in stretches(text[at:start]):
            said = text[at + each.start : at + each.end]
            begin, stop = at + each.start + len(said) - len(said.lstrip()), at + each.start + len(said.rstrip())
            yield begin, stop, said.strip(), each.is_prose
        if start < end:
            yield start, end, text[start:end], False
        at = end


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """Yield where fenced code stands; one that is not closed goes on to the end."""
    opened: re.Match[str] | None = None
    for fence in _FENCE_LINE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[0].strip().strip(fence[1][0]):
            yield opened.start(), fence.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text.rstrip())


def _joined(text: str, pieces: list[_Piece]) -> Iterator[_Piece]:
    """Yield the pieces, lines of code that stand together as one."""
    waiting: _Piece | None = None
    for piece in pieces:
        start, end, said, is_prose = piece
        if waiting is not None:
            gap = text[waiting[1] : start]
            is_one = not (waiting[3] or is_prose or gap.strip()) and gap.count("\n") == 1
            if is_one and not _BULLET.match(said) and not _FENCE_LINE.match(said) and not _FENCE_LINE.match(waiting[2]):
                waiting = (waiting[0], end, text[waiting[0] : end], False)
                continue
            yield waiting
        waiting = piece
    if waiting is not None:
        yield waiting
