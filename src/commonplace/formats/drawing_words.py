"""The words of a drawing: names that fit, relations and times as people say them, and what a drawing leaves out."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from math import isfinite
from typing import Final

from commonplace.formats.drawing import Drawing, Edge, Node
from commonplace.text.escaping import HIDDEN

_BLANK: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_HIDDEN: Final = re.compile(f"[\u200b\u2060-\u2065\ufdd0-\ufdef\ufeff\ufffe\uffff]|{HIDDEN}")
"""Half characters, marks that change the direction of writing, what nobody sees and what no XML may hold."""
_ELLIPSIS: Final = "…"
_JOINERS: Final = "\u200c\u200d"
_LEFTWARD: Final = "\u200f"
"""Nobody sees it; a sign before it stands where it would in a word from right to left (Unicode, UAX 9)."""
_BREAKS: Final = " /_-."
_IN_TWO: Final = 1.8
"""How much of two lines is filled: the first one ends where a word does."""
_CAPITALS: Final = re.compile(r"[A-Z0-9]+(?:_[A-Z0-9]+)*")

_WIDTHS: Final = {
    **dict.fromkeys("iIjl.,:;'|!`", 0.34),
    **dict.fromkeys('frt()[]{}/\\ -"°·', 0.42),
    **dict.fromkeys("mwMW@%", 0.95),
    **dict.fromkeys("ABCDGHKNOPQRUVXYZ&+=<>~#", 0.74),
}
_WIDTH, _WIDE, _MARK = 0.62, 1.05, 0.0
"""Widths of characters in parts of the font's size, as in DejaVu Sans, the widest of the usual fonts."""

_EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC).timestamp()
_LATEST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def plain(text: str) -> str:
    """Return a text as one line in which everything can be seen: what cannot is written as a replacement character."""
    return _HIDDEN.sub("\ufffd", _BLANK.sub(" ", text)).strip()


def width(text: str, size: float) -> float:
    """Return about how wide a text is, in the unit of the font's size."""
    return size * sum(map(_width, text))


def _width(character: str) -> float:
    if character in _WIDTHS:
        return _WIDTHS[character]
    if character < "\u0300":
        return _WIDTH
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return _MARK
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _WIDTH


def shorten(text: str, most: float, size: float) -> str:
    """Return as much of a text as is about so wide, with `…` for the rest: of a path its end, of all else its start."""
    if width(text, size) <= most:
        return text
    is_path = "/" in text and " " not in text
    room = most - width(_ELLIPSIS, size)
    kept = 0
    for character in reversed(text) if is_path else text:
        room -= width(character, size)
        if room < 0:
            break
        kept += 1
    if is_path:
        end = text[len(text) - kept :]
        return _ELLIPSIS + (end[end.index("/") :] if "/" in end[:-1] else end.lstrip(_JOINERS))
    # A mark that belongs to a letter stays with it or goes with it.
    return _cut(text[:kept].rstrip(" " + _JOINERS))


def _cut(text: str) -> str:
    """Return a text with `…` behind its last letter, which is on the left of one that is written from right to left."""
    ways = (unicodedata.bidirectional(character) for character in reversed(text))
    is_leftward = next((way in ("R", "AL") for way in ways if way in ("L", "R", "AL")), False)
    return text + _ELLIPSIS + (_LEFTWARD if is_leftward else "")


def two_lines(text: str, most: float, size: float) -> tuple[str, ...]:
    """Return a text as one line or two, each about so wide at most; what has no room in two is shortened."""
    if width(text, size) <= most:
        return (text,)
    short = shorten(text, _IN_TWO * most, size)
    room, fits = most, 0
    while fits < len(short) and (room := room - width(short[fits], size)) >= 0:
        fits += 1
    # After a space or a sign between words, if the first line is not much shorter for it.
    cut = next((at for at in range(fits, fits // 2, -1) if short[at - 1] in _BREAKS), fits)
    return short[:cut].rstrip(), shorten(short[cut:].lstrip(), most, size)


def name_of(node: Node) -> str:
    """Return the whole name of an entity, its id where it has none."""
    return plain(node.name) or plain(node.id) or "no name"


def type_of(node: Node) -> str:
    """Return the type of an entity as it is shown."""
    return plain(node.type) or "no type"


def verb(edge: Edge) -> str:
    """Return a relation's type as it is said: `DEPENDS_ON` as "depends on", others as they are written."""
    type_ = plain(edge.type)
    return type_.replace("_", " ").lower() if _CAPITALS.fullmatch(type_) else type_


def sentence(edge: Edge, source: str, target: str) -> str:
    """Return what a fact says: its own words, or those of its type between the two names."""
    return plain(edge.fact) or f"{plain(source)} {verb(edge)} {plain(target)}"


def when(edge: Edge) -> str:
    """Return when a fact holds, and whether it is disputed: "since 2026-03-14", "until 2025-01-01, disputed"."""
    start, end = moment(edge.valid_from), moment(edge.valid_to)
    span = f"{start} – {end}" if start and end else f"since {start}" if start else f"until {end}" if end else ""
    return ", ".join(filter(None, (span, "disputed" if edge.is_disputed else "")))


def moment(at: float | None) -> str:
    """Return the day of a moment; "" for None and for no number.

    Always the day: the first of January may be a year, or just that day, and nobody knows which any more.
    """
    if at is None or not isfinite(at):
        return ""
    return datetime.fromtimestamp(min(max(at, _EARLIEST), _LATEST), UTC).date().isoformat()


def caption(drawing: Drawing) -> str:
    """Return what has to be said of a drawing as a whole: of when it is, what is in it and what is not."""
    parts = [f"as of {moment(drawing.as_of)}"] if moment(drawing.as_of) else []
    parts.append(f"{_count(len(drawing.nodes), 'entity', 'entities')}, {_count(len(drawing.edges), 'fact', 'facts')}")
    more = [
        f"{number:,} more {name}"
        for number, name in (
            (drawing.more_nodes, "entities" if drawing.more_nodes > 1 else "entity"),
            (drawing.more_edges, "facts" if drawing.more_edges > 1 else "fact"),
        )
        if number
    ]
    if more:
        parts.append(f"and {' and '.join(more)}, not drawn")
    elif drawing.is_capped:
        parts.append("and more, not drawn")
    return " · ".join(parts)


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
