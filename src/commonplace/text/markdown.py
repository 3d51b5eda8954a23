"""Parse Markdown, reStructuredText and configuration files into sections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.lazy_regex import lazy_pattern

_FENCE: Final = lazy_pattern(r"[ \t]*(`{3,}|~{3,})")
_ATX: Final = lazy_pattern(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE: Final = lazy_pattern(r"([!-/:-@\[-`{-~])\1*$")
_CONFIG: Final = lazy_pattern(r"\[\[?([^\[\]\n]{1,120})\]\]?|([A-Za-z_][\w./-]{0,80})[ \t]*:(?![=/])")
_LINK: Final = lazy_pattern(r"!?\[([^\[\]]*)\]\([^()]*\)")
_LABEL: Final = lazy_pattern(r"\.\. +(?:_[^\n]*:|[\w:+.-]+::.*)$")
_ROLE: Final = lazy_pattern(r":[a-z][\w:+.-]*:`~?([^`<]*?)(?:\s*<[^`>]*>)?`")


@dataclass(frozen=True, slots=True)
class Section:
    """Lines `first` to `last` (exclusive, counted from 0) under one heading; a deeper heading has a higher level."""

    first: int
    heading: str = ""
    level: int = 0
    last: int = 0


def sections_between(starts: Iterable[Section], lines: Sequence[str]) -> list[Section]:
    """Return sections that together cover all lines, each with a non-blank line if the text has one.

    `starts`, without their last lines, must be in ascending order; of several at one line the last counts.
    """
    merged = [Section(0)]
    for start in starts:
        first = start.first
        if not any(text.strip() for text in lines[merged[-1].first : first]):
            first = merged.pop().first  # the previous section would be blank
        merged.append(replace(start, first=first))
    ends = [start.first for start in merged[1:]] + [len(lines)]
    return [replace(start, last=end) for start, end in zip(merged, ends, strict=True) if end > start.first]


def front_matter_end(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, with both `---` lines; 0 if there is none."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 2) if line.rstrip() in ("---", "...")), 0)


def plain_text(text: str) -> str:
    """Return a text on one line without link targets, roles, code marks and strong emphasis."""
    return " ".join(_ROLE.sub(r"\1", _LINK.sub(r"\1", text)).replace("`", "").replace("**", "").split())


def plain_heading(text: str) -> str:
    """Return a heading as plain text, without trailing attributes."""
    return plain_text(re.sub(r"\s*\{[#.:][^{}]*\}$", "", text[:300].strip()))


def heading_slug(heading: str) -> str:
    """Return GitHub's link anchor of a heading from `plain_heading`: `sign-in--out`."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def fenced_blocks(lines: Sequence[str], first: int = 0, last: int | None = None) -> list[tuple[int, int]]:
    """Return the (first, last) line ranges, half-open, of fenced code; an unclosed block extends to the end."""
    blocks: list[tuple[int, int]] = []
    opened, mark = -1, ""
    last = len(lines) if last is None else last
    for number in range(first, last):
        line = lines[number]
        fence = _FENCE.match(line) if "`" in line or "~" in line else None
        if fence is None:
            continue
        if opened < 0:
            opened, mark = number, fence[1]
        elif fence[1].startswith(mark) and not line[fence.end() :].strip():
            blocks.append((opened, number + 1))
            opened = -1
    return blocks if opened < 0 else [*blocks, (opened, last)]


def markdown_sections(lines: Sequence[str]) -> list[Section]:
    """Cut at ATX and Setext headings outside fenced code and front matter."""
    begin = front_matter_end(lines)
    starts = [Section(begin)] if begin else []
    fenced = {number for first, last in fenced_blocks(lines, begin) for number in range(first, last)}
    for number in range(begin, len(lines)):
        line = lines[number]
        if line[:1] not in {" ", "#", "=", "-"} or number in fenced:
            continue
        if atx := _ATX.match(line):
            title = re.sub(r"(?:^|[ \t])#+$", "", line[atx.end() :][:300].strip())
            starts.append(Section(number, plain_heading(title), len(atx[1])))
            continue
        rule = line.strip()
        if rule and not (rule.strip("=") and rule.strip("-")) and number > begin:
            above = lines[number - 1]
            title = above.strip()
            if title and title[0] not in "#>|-*+`~=" and not above.startswith("    "):
                starts.append(Section(number - 1, plain_heading(title), 1 if rule[0] == "=" else 2))
    return sections_between(starts, lines)


def underlined_sections(lines: Sequence[str]) -> list[Section]:
    """Cut at titles underlined with one repeated sign, as in reStructuredText and plain text files.

    Levels follow the order in which underline styles first appear, as in reStructuredText. Labels and one-line
    directives directly above a title (`.. setting:: DEBUG`) stay with it.
    """
    starts: list[Section] = []
    styles: dict[tuple[str, bool], int] = {}
    for number in range(1, len(lines)):
        rule, above = lines[number].rstrip(), lines[number - 1]
        title = above.strip()
        if len(rule) < 3 or not _UNDERLINE.match(rule) or not title or _UNDERLINE.match(title):
            continue
        is_overlined = number >= 2 and lines[number - 2].rstrip() == rule
        if not is_overlined and (above[0] in " \t" or len(rule) < len(title)):
            continue
        level = styles.setdefault((rule[0], is_overlined), len(styles) + 1)
        first = number - 2 if is_overlined else number - 1
        above_it = first - 1
        while above_it >= 0 and (not lines[above_it].strip() or _LABEL.match(lines[above_it])):
            first = above_it if lines[above_it].strip() else first
            above_it -= 1
        starts.append(Section(first, plain_heading(title), level))
    return sections_between(starts, lines)


def config_sections(lines: Sequence[str]) -> list[Section]:
    """Cut at `[tables]`, top-level keys and make targets."""
    keys = ((number, _CONFIG.match(line)) for number, line in enumerate(lines) if line[:1] not in " \t#")
    return sections_between((Section(number, (key[1] or key[2]).strip(), 1) for number, key in keys if key), lines)
