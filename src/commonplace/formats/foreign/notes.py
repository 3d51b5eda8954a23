"""Cut a Markdown note into its items: list entries with what is indented under them, paragraphs and code blocks.

It knows Markdown's outline, and no system that writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from commonplace.formats.foreign.values import plain_mapping
from commonplace.formats.front_matter import FrontMatter, parse_front_matter
from commonplace.text.sections import plain_heading

_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_BULLET: Final = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})")
_RULE: Final = re.compile(r" {0,3}(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}")


@dataclass(frozen=True, slots=True)
class Item:
    """A list entry, a paragraph or a block of code.

    Attributes:
        text: as written, without the mark and the indentation of its first line.
        line: the number of its first line in the file, from 1.
        headings: those it stands under, the outermost first.
    """

    text: str
    line: int
    headings: tuple[str, ...] = ()
    is_entry: bool = False
    is_code: bool = False


def front_and_body(text: str) -> tuple[FrontMatter, list[str]]:
    """Return a note's front matter, its values as JSON has them, and the lines.

    Those of the front matter are emptied, so that numbers stay.
    """
    front = parse_front_matter(text)
    front = replace(front, values=plain_mapping(front.values))
    lines = text.split("\n")
    return front, [""] * front.lines + lines[front.lines :]


def items_of(lines: list[str]) -> Iterator[Item]:
    """Yield the items of a note in order; headings, rules and blank lines are no items."""
    headings: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        heading = _HEADING.fullmatch(line)
        if heading:
            level = len(heading[1])
            headings = [one for one in headings if one[0] < level]
            headings.append((level, plain_heading(heading[2].rstrip(" \t#"))))
        if heading or not line.strip() or _RULE.fullmatch(line):
            at += 1
            continue
        end, is_entry, is_code = _end(lines, at)
        above = tuple(title for _, title in headings if title)
        yield Item(_text(lines[at:end], is_entry=is_entry), at + 1, above, is_entry, is_code)
        at = end


def _end(lines: list[str], at: int) -> tuple[int, bool, bool]:
    """Return where the item that begins at a line ends, and whether it is a list entry or code."""
    if _FENCE.match(lines[at]):
        return _fence_end(lines, at), False, True
    bullet = _BULLET.match(lines[at])
    indent = len(bullet[1]) if bullet else -1
    end = at + 1
    while end < len(lines):
        line = lines[end]
        deeper = len(line) - len(line.lstrip()) > indent
        if not line.strip():
            following = lines[end + 1] if bullet and end + 1 < len(lines) else ""
            if not following.strip() or len(following) - len(following.lstrip()) <= indent:
                break
        elif _HEADING.fullmatch(line) or (_BULLET.match(line) and not (bullet and deeper)):
            break
        elif _FENCE.match(line):
            if not (bullet and deeper):
                break
            end = _fence_end(lines, end)
            continue
        end += 1
    return end, bullet is not None, False


def _fence_end(lines: list[str], at: int) -> int:
    fence = _FENCE.match(lines[at])
    mark = fence[1] if fence else ""
    for end in range(at + 1, len(lines)):
        closing = _FENCE.match(lines[end])
        if closing and closing[1].startswith(mark) and not lines[end][closing.end() :].strip():
            return end + 1
    return len(lines)


def _text(lines: list[str], *, is_entry: bool) -> str:
    bullet = _BULLET.match(lines[0]) if is_entry else None
    first = lines[0][bullet.end() :] if bullet else lines[0]
    return "\n".join([first, *lines[1:]]).strip()
