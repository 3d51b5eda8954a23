"""Cut a text into what it says, one thing after the other: sentences, items of lists, headings, blocks of code.

Nothing is lost by it: the pieces and the white space before each are the text. It knows Markdown's outer shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from commonplace.extract.sentences import stretches
from commonplace.text.alike import normal_form

_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_BULLET: Final = re.compile(r"(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+")
_HEADING: Final = re.compile(r"#{1,6}[ \t]")

_ASIDE: Final = (
    r"(?:as (?:(?:i|we|you|was|were|is|has|have|had|been|already|just|also|previously|it) ){0,4}"
    r"(?:said|mentioned|noted|stated|told|explained|described|written)"
    r"(?: (?:already|above|before|earlier|previously|once|again|to you)){0,3}"
    r"|(?:just )?(?:as )?a reminder|to repeat|by the way|btw|fyi|for the record|once again|as you know"
    r"|wie (?:(?:ich|wir|schon|bereits|oben|vorhin|zuvor|auch) ){0,3}(?:gesagt|erwähnt|geschrieben|sagte|sagten)"
    r"|übrigens|nebenbei gesagt|nebenbei bemerkt|zur erinnerung"
    r"|comme (?:(?:je|on|nous|l'ai|l'a|l'avons|ai|a|avons|déjà|été) ){0,4}(?:dit|mentionné|indiqué)"
    r"(?: (?:plus haut|avant|précédemment|ci-dessus)){0,2}|au fait|pour rappel"
    r"|como (?:(?:ya|se|he|ha|hemos|te|lo) ){0,4}(?:dije|dijimos|dicho|mencioné|mencionó|mencionado|comenté)"
    r"(?: (?:antes|anteriormente|arriba)){0,2}|por cierto)"
)
"""Words that tell nothing of what is spoken of, where commas, dashes or brackets set them off: they must not keep two
texts apart. No word of them denies, doubts or agrees."""
_ASIDE_BEFORE: Final = re.compile(rf"^{_ASIDE} ?[,:] ")
_ASIDE_BETWEEN: Final = re.compile(rf",? \({_ASIDE}\)(?: |$)|, {_ASIDE}, | - {_ASIDE} - ")
_ASIDE_BEHIND: Final = re.compile(rf"(?:,| -) {_ASIDE}$")


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
        """Tell whether it is a heading."""
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
    rest = text[end:].strip()
    if rest:
        begin = text.index(rest, end)
        found.append(_unit(text[end:begin], rest, rest, is_prose=False))
    return found


def _unit(gap: str, text: str, said: str, *, is_prose: bool) -> Unit:
    key = _without_asides(normal_form(said)) if is_prose else "\n".join(line.rstrip() for line in text.splitlines())
    return Unit(gap, text, said, key or said, is_prose)


def _without_asides(form: str) -> str:
    """Return a normal form without what says only that it was said before, or that something follows."""
    bare = _ASIDE_BETWEEN.sub(" ", _ASIDE_BEFORE.sub("", _ASIDE_BEHIND.sub("", form)))
    return bare.strip() or form


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
    for fence in _FENCE.finditer(text):
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
            if is_one and not _BULLET.match(said) and not _FENCE.match(said) and not _FENCE.match(waiting[2]):
                waiting = (waiting[0], end, text[waiting[0] : end], False)
                continue
            yield waiting
        waiting = piece
    if waiting is not None:
        yield waiting
