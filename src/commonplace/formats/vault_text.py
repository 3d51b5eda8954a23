r"""Write a text into a section of a note, and read it back, so that nothing in it is taken for a part of the note.

What would begin a section, hide what follows, or link somewhere gets a backslash, as in Markdown, and shows what the
text says: headings of the first two levels and lines that make one of the line above; fences that nothing closes;
`[[`, `%%`, `$$` and `<` before a tag. Text inside of fences that are closed is left as it is. Backslashes that stand
there already are counted, so that reading gives back the text to the byte. What nobody sees is written `&#8238;`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from commonplace.formats.journal_marks import read_characters, write_characters

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})")
_HEADING: Final = re.compile(r"(?P<lead> {0,3})(?P<slashes>\\*)(?=#{1,2}(?:[ \t\r\n]|\Z)|(?:-+|=+)[ \t]*(?:[\r\n]|\Z))")
_OPEN_FENCE: Final = re.compile(r"(?P<lead> {0,3})(?P<slashes>\\*)(?=`{3}|~{3})")
_TAG: Final = re.compile(r"(?P<lead>(?<!\\))(?P<slashes>\\*)(?=<[A-Za-z!/?%])")
_TWICE: Final = re.compile(r"(?P<lead>(?P<mark>[\[%$]))(?P<slashes>\\*)(?=(?P=mark))")

_SECTION: Final = re.compile(r" {0,3}(#{1,2})[ \t]+(?P<name>[^\r\n]*?)[ \t]*(?:[ \t]#+[ \t]*)?(?:[\r\n]|\Z)")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text with their ends, whichever these are; together they are the text."""
    return [line for line in _LINE.findall(text) if line]


def are_fenced(lines: list[str]) -> list[bool]:
    """Return for each line whether it belongs to fenced code, its fences included; code that nothing closes is none."""
    inside = [False] * len(lines)
    shortest_open: dict[str, int] = {}
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        mark = opened[1] if opened else ""
        # Where nothing closed a shorter fence, nothing closes this one: without that, many open ones take forever.
        is_open = len(mark) >= shortest_open.get(mark[:1], len(mark) + 1)
        end = _closing(lines, number, mark) if mark and not is_open else None
        if end is None:
            if mark and not is_open:
                shortest_open[mark[0]] = len(mark)
            number += 1
        else:
            inside[number : end + 1] = [True] * (end + 1 - number)
            number = end + 1
    return inside


def section_name(line: str) -> str | None:
    """Return the name of the section that a line begins, None where it begins none."""
    found = _SECTION.match(line)
    return found["name"] if found else None


def escaped(text: str) -> str:
    """Return a text as it is written into a section."""
    return "".join(_changed(write_characters(text, always=""), more=True))


def unescaped(text: str) -> str:
    """Return the text that was written into a section."""
    return read_characters("".join(_changed(text, more=False)), always="")


def _closing(lines: list[str], opened: int, mark: str) -> int | None:
    for number in range(opened + 1, len(lines)):
        fence = _FENCE.match(lines[number])
        if fence and fence[1].startswith(mark) and not lines[number][fence.end() :].strip():
            return number
    return None


def _changed(text: str, *, more: bool) -> Iterator[str]:
    lines = lines_of(text)
    for line, is_fenced in zip(lines, are_fenced(lines), strict=True):
        yield line if is_fenced else _written(line) if more else _read(line)


def _written(line: str) -> str:
    line = _at_start(_OPEN_FENCE, _odd, _at_start(_HEADING, _odd, line))
    return _TWICE.sub(_one_more, _TAG.sub(_odd, line))


def _read(line: str) -> str:
    line = _at_start(_OPEN_FENCE, _half, _at_start(_HEADING, _half, line))
    return _TWICE.sub(_one_less, _TAG.sub(_half, line))


def _at_start(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], line: str) -> str:
    found = pattern.match(line)
    return change(found) + line[found.end() :] if found else line


def _odd(found: re.Match[str]) -> str:
    # Doubled, those that are there stay; and one more, which is always odd, takes its meaning from what follows.
    return found["lead"] + "\\" * (2 * len(found["slashes"]) + 1)


def _half(found: re.Match[str]) -> str:
    return found["lead"] + "\\" * (len(found["slashes"]) // 2)


def _one_more(found: re.Match[str]) -> str:
    return found["lead"] + found["slashes"] + "\\"


def _one_less(found: re.Match[str]) -> str:
    return found["lead"] + found["slashes"][1:]
