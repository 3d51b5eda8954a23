"""Choose the snippet of a passage that best shows a query, with highlights."""

from __future__ import annotations

import re
from typing import Literal

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.languages import natural_language
from commonplace.text.query import analyse_query
from commonplace.text.tokens import analyse

SNIPPET_CHARACTERS = 300
LEAD_CHARACTERS = 60
"""Maximum characters shown before the first matching word, so that it appears in its sentence."""
ELLIPSIS = "…"
_WORDS = lazy_pattern(r"\w+(?:[_.\-]\w+)*")
_RULES = lazy_pattern(r"^[ \t]*([-=~^*#_.+])\1{2,}[ \t]*$", re.MULTILINE)
"""Lines drawn under headings and between paragraphs, in Markdown and reStructuredText."""
_HEADING = lazy_pattern(r"^#{1,6}[ \t]+(.*?)[ \t]*#*$", re.MULTILINE)
_SPACE = lazy_pattern(r"\s+")
_IDEOGRAPHS = lazy_pattern(r"[぀-ヿ㐀-䶿一-鿿가-힯]")
Layout = Literal["line", "text", "code"]
"""Line handling: "line" folds all white space, "text" drops blank lines and drawn rules, "code" only blank lines."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A part of a text.

    Attributes:
        emphasis: (start, end) of the matching words in `text`, in order, end exclusive.
    """

    text: str
    emphasis: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    terms: frozenset[str]


def snippet(text: str, query: str, *, limit: int = SNIPPET_CHARACTERS, layout: Layout = "line") -> Snippet:
    """Return the window of at most `limit` characters with the most distinct query words, the first of equals.

    Args:
        limit: at least 2; an ellipsis at either end counts.
        layout: how lines are treated; in "code" the last line is cut off if incomplete, unless that loses a match.
    """
    if layout == "line":  # a dot separates a heading from the text after it
        clean = _SPACE.sub(" ", _RULES.sub(" ", _HEADING.sub(r"\1 ·", text))).strip()
    else:
        source = text if layout == "code" else _RULES.sub("", text)
        lines = [line.expandtabs(4).rstrip() for line in source.splitlines() if line.strip()]
        margin = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        clean = "\n".join(line[margin:] for line in lines)
    language = natural_language(clean)
    matches = _matches(clean, frozenset(analyse_query(query, (language,)).terms), language)
    start, end = _window(clean, matches, limit)
    if layout == "code" and end < len(clean):
        last = max((match.end for match in matches if match.end <= end), default=start)
        line_end = clean.rfind("\n", max(start + 1, last), end)
        end = end if line_end < 0 else line_end
    before, after = ELLIPSIS if start > 0 else "", ELLIPSIS if end < len(clean) else ""
    if before and clean[start : start + 1] == " ":
        start += 1  # the ellipsis replaces a column of indentation, so that the lines below stay aligned
    end = start + len(clean[start:end].rstrip())
    offset = len(before) - start
    emphasis = tuple((m.start + offset, m.end + offset) for m in matches if start <= m.start and m.end <= end)
    return Snippet(before + clean[start:end] + after, emphasis)


def _matches(text: str, query_terms: frozenset[str], language: str) -> list[_Match]:
    matches: list[_Match] = []
    for word in _WORDS.finditer(text) if query_terms else ():
        start, end = word.span()
        spans = [(start, end)]
        if not word[0].isascii() and _IDEOGRAPHS.search(word[0]):
            # Pairs of such characters are terms of the index; overlapping ones become one match.
            spans = [(index, min(index + 2, end)) for index in range(start, max(end - 1, start + 1))]
        for first, last in spans:
            terms = query_terms.intersection(analyse(text[first:last], language))
            if terms and matches and first <= matches[-1].end:
                matches[-1] = _Match(matches[-1].start, last, matches[-1].terms | terms)
            elif terms:
                matches.append(_Match(first, last, terms))
    return matches


def _window(text: str, matches: list[_Match], limit: int) -> tuple[int, int]:
    """Return start and end of the best window, on word borders if possible."""
    if len(text) <= limit:
        return 0, len(text)
    room = limit - 2 * len(ELLIPSIS)
    best, best_worth = 0, (0, 0)
    for first in matches:
        # Start at the beginning of the match's line or sentence, if that is near.
        start = max(0, first.start - LEAD_CHARACTERS)
        if start:
            borders = [text.rfind(mark, start, first.start) + len(mark) for mark in ("\n", ". ", "。") if mark in text]
            start = max((border for border in borders if border > start), default=0) or _align(text, start)
        inside = [match for match in matches if start <= match.start and match.end <= start + room]
        worth = (len(frozenset[str]().union(*(match.terms for match in inside))), len(inside))
        if worth > best_worth:
            best, best_worth = start, worth
    best = min(best, max(0, len(text) - room))
    end = min(best + room, len(text))
    if end < len(text) and not text[end].isspace():
        # Back to the end of a word, unless that is far away.
        near = text[max(0, end - LEAD_CHARACTERS // 2) : end]
        spaces = [match.start() for match in _SPACE.finditer(near)]
        end += spaces[-1] - len(near) if spaces else 0
    return _align(text, best), end


def _align(text: str, position: int) -> int:
    """Move forward to the beginning of a word, unless that is far away."""
    if position == 0 or text[position - 1].isspace():
        return position
    space = _SPACE.search(text, position, min(len(text), position + LEAD_CHARACTERS // 2))
    return space.end() if space else position
