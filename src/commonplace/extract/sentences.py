"""Cut a text into sentences, apart from its code; knows Markdown's outer shape and abbreviations, no grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

ABBREVIATIONS: Final = frozenset(
    """
mr mrs ms dr prof sen rep gov gen lt col maj capt sgt cpl rev st mt ft jr sr inc corp co ltd bros vs etc fig no vol pp
jan feb mar apr jun jul aug sept sep oct nov dec mon tue tues wed thu thurs fri sat e.g i.e cf al approx dept est
ala ariz ark calif colo conn del fla ga ill ind kan kans ky la mass md mich minn miss mo mont neb nev okla ore pa penn
tenn tex va vt wash wis wyo a.m p.m u.s u.n u.k d.c n.y n.j n.h n.c n.d s.c s.d n.m r.i w.va ph.d m.d b.c a.d
""".split()
)
"""Written with a full stop that ends no sentence (without their last full stop)."""

_FENCE: Final = re.compile(r"[ \t]{0,8}(`{3,}|~{3,})")
_MARK: Final = re.compile(r"[ \t]*(?:(?:[-*+•]|\d{1,3}[.)]|#{1,6}|>)[ \t]+)+(\[[ xX]\][ \t]+)?")
_CODE: Final = re.compile(
    r"[$%] |>>> |import [\w.{*]|from \S+ import |(?:def|class|const|let|var|func|fn|return|public|private) .*[(={:;]"
    r"|[@}\])]|[\w.\[\]\"']{1,80}[ \t]*(?::=|[-+*/|]?=(?!=))[ \t]*\S"
)
_END: Final = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？]")
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_]){1,3}")
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
