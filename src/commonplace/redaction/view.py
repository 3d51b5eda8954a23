"""The text as detectors read it, and what they report. It knows characters, no kinds of secrets.

Secrets are rare, so what finds nothing must be cheap: besides the text there are two drawings of it, in which long
words and long numbers are runs of one character, that `find` reaches faster than any pattern does.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret of one kind at characters `start` up to but not including `end`."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class View:
    """A text in ASCII, as it is and in lower case, and its drawings; every offset is that of the original text.

    `words` has `w` for each letter, digit and `_.~-`; `digits` has `0` for each digit and `-` for each blank and `-`;
    both have a space for the rest.
    """

    plain: str
    lowered: str
    words: bytes
    digits: bytes


def _drawing(marks: dict[str, str]) -> bytes:
    table = bytearray(b" " * 256)
    for mark, characters in marks.items():
        for character in characters:
            table[ord(character)] = ord(mark)
    return bytes(table)


_WORDS: Final = _drawing({"w": string.ascii_letters + string.digits + "_.~-"})
_DIGITS: Final = _drawing({"0": string.digits, "-": " -"})


def view_of(text: str) -> View:
    """Return a text with each other character as one `?`, so that patterns are cheap and offsets stay right.

    A line break or tab that is written as `\n`, `\r` or `\t` in a string is a blank, no letter of what follows it.
    """
    plain = text if text.isascii() else text.encode("ascii", "replace").decode("ascii")
    if "\\" in plain:
        for written in (r"\n", r"\r", r"\t"):
            plain = plain.replace(written, "\\ ")
    raw = plain.encode("ascii")
    return View(plain, plain.lower(), raw.translate(_WORDS), raw.translate(_DIGITS))


def places(text: str, anchor: str) -> Iterator[int]:
    """Yield where an anchor occurs, overlaps left out."""
    at = text.find(anchor)
    while at >= 0:
        yield at
        at = text.find(anchor, at + len(anchor))


def runs(drawing: bytes, mark: bytes, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of every run of one mark that has at least so many of it."""
    needle = mark * shortest
    whole = re.compile(mark + b"++")
    at = drawing.find(needle)
    while at >= 0 and (run := whole.match(drawing, at)):
        yield run.span()
        at = drawing.find(needle, run.end())
