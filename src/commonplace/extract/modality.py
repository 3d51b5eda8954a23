"""Distinguish assertions from questions, conditions, wishes, hearsay and plans."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from commonplace.extract import words as lists
from commonplace.extract.tokens import Tokens
from commonplace.extract.words import PATTERNS
from commonplace.lazy_regex import lazy_pattern

BOUNDARIES: Final = frozenset({";", "but", "because", "—", "–", "however"})
"""Tokens that end a clause, and with it the scope of a doubt."""

_DENIALS: Final = lists.NEGATIONS | {"nobody", "no", "none"}
_CLOCK: Final = lazy_pattern(r"\d{1,2}(?:[:.]\d\d)?(?:[ap]m)?")
_WHY: Final = frozenset("with because since after near".split())
HEARSAY: Final = 0.45
"""Maximum confidence in hearsay: low enough that it is recorded, but ends no fact."""
_QUOTED_LINES: Final = lazy_pattern(r"^[ \t]{0,3}>(?!>>[ \t]).*$", re.MULTILINE)
_FORWARDED: Final = lazy_pattern(
    r"^[ \t]*(?:-{3,}[ \t]*(?:original message|forwarded message|forwarded by)\b|begin forwarded message:).*\Z",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
_PARAGRAPH: Final = lazy_pattern(r"\n[ \t]*\n")
_CLOSING: Final = {"“": "”", "«": "»", '"': '"'}
_OPENED_BEHIND: Final = frozenset(" \t\n([{—–-*_,:")
_LABEL: Final = lazy_pattern(r"[ \t>*-]*([^\W\d_][\w .'’()-]{0,59}?)[ \t]*:[ \t]*")
_REPORTS_OF_ALL: Final = lists.REPORTS | lists.REPORTS_WITH_THAT
_REPORTS_BEHIND: Final = lists.REPORTS | {"wrote", "writes"}
_AROUND_SPEAKER: Final = frozenset([",", '"', "”", "what", "so", "–", "—", "and", "but"])
_FURTHEST: Final = 6
_MAX_SPEAKER_LENGTH: Final = 5


def is_question(tokens: Tokens) -> bool:
    index = tokens.count - 1
    while index >= 0 and tokens.word[index] in ('"', "'", ")", "”", "’", "]", "*", "_"):
        index -= 1
    return index >= 0 and tokens.word[index][-1] in "?？"


def doubtful_places(tokens: Tokens) -> list[bool]:
    """Return for each word whether an earlier word in its part of the sentence makes it doubtful."""
    doubtful: list[bool] = []
    # `Should it fail, …` and `Were we to move …` are conditions by word order.
    is_doubtful = tokens.at(0) in lists.INVERTED
    for index, lower in enumerate(tokens.lower):
        if lower in BOUNDARIES:
            is_doubtful = False
        doubtful.append(is_doubtful)
        if is_doubtful:
            continue
        if lower in lists.TIMES:
            # `When she joined` refers to something that has happened.
            behind = tokens.lower[index + 1 : index + 6]
            is_doubtful = not any(word.endswith("ed") or word in lists.PASTS for word in behind)
        elif lower == "as":
            is_doubtful = tokens.at(index + 1) in ("if", "though")
        elif lower == "sure" and tokens.at(index - 1) in ("make", "making"):
            is_doubtful = True
        elif lower == "wrong" and tokens.at(index + 1) == "," and "i" in tokens.lower[max(index - 3, 0) : index]:
            continue  # `I was wrong, …`: what follows is the correction
        elif lower in lists.ASSURANCES:
            is_doubtful = tokens.any_of(_DENIALS, index - 3, index)
        elif lower in lists.DOUBTS:
            # Capitalised inside a sentence, `May` or `Hope` is a name.
            is_inside = index > 0 and tokens.word[index - 1] not in ('"', ".", ":", "“")
            is_doubtful = not (is_inside and tokens.word[index][0].isupper())
    return doubtful


def has_condition_behind(tokens: Tokens, first: int, last: int) -> bool:
    """Return whether a condition such as `if` follows in the same part of the sentence."""
    part = takewhile(lambda lower: lower not in BOUNDARIES, tokens.lower[first:last])
    return not lists.CONDITIONAL.isdisjoint(part)


def is_lasting(tail: list[str]) -> bool:
    """Return whether the words after a new value, without dates, are all compatible with its holding from now on."""
    if tail[:1] == ["as"]:
        return lists.NO_STAFF.isdisjoint(tail)
    rest = (word for word in tail if not _CLOCK.fullmatch(word))
    return not _WHY.isdisjoint(tail[:1]) or lists.LASTING.issuperset(rest)


def is_hedged(text: str) -> bool:
    """Return whether a text has a hedge: `…, I think`."""
    return PATTERNS["hedge"].search(text.replace("’", "'")) is not None


def is_recurring(words: str, *, is_event: bool) -> bool:
    """Return whether words name a time that comes again: `every Sunday`, `on weekends`, of a state also `in winter`."""
    names = ("recurring",) if is_event else ("recurring", "seasonal")
    return any(PATTERNS[name].search(words) for name in names)


def quotations(text: str) -> list[tuple[int, int]]:
    """Return the spans of quotations, in characters, half-open, in order: `>` lines, forwarded mail, quotation marks.

    An unclosed quotation mark quotes up to the end of its paragraph.
    """
    spans = [match.span() for match in _QUOTED_LINES.finditer(text)] if ">" in text else []
    forwarded = _FORWARDED.search(text) if "-" in text or "egin" in text else None
    if forwarded is not None:
        spans.append(forwarded.span())
    if any(mark in text for mark in _CLOSING):
        begin = 0
        for gap in [*(match.start() for match in _PARAGRAPH.finditer(text)), len(text)]:
            spans += _marked(text, begin, gap)
            begin = gap
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _marked(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans in quotation marks of a paragraph, except those after the label of a speaker."""
    spans: list[tuple[int, int]] = []
    opened, closing = -1, ""
    for index in range(begin, end):
        char = text[index]
        if opened >= 0:
            if char == closing:
                spans.append((opened, index + 1))
                opened = -1
        elif char in _CLOSING and (char != '"' or index == begin or text[index - 1] in _OPENED_BEHIND):
            opened, closing = index, _CLOSING[char]
    if opened >= 0:
        spans.append((opened, end))
    for start, stop in spans:
        # `Mira: "…"` is a turn of Mira; `Mira said: "…"` is a report.
        label = _LABEL.fullmatch(text, text.rfind("\n", 0, start) + 1, start)
        if label is None or not _REPORTS_OF_ALL.isdisjoint(label[1].lower().split()):
            yield start, stop


def is_inside(spans: list[tuple[int, int]], offset: int) -> bool:
    """Return whether a character is in one of the spans of `quotations`."""
    index = bisect_right(spans, offset, key=lambda span: span[0]) - 1
    return index >= 0 and offset < spans[index][1]


def is_passed_on(text: str, span: tuple[int, int], offset: int) -> bool:
    """Return whether a sentence quotes or reports what it says at `offset`; span and place are in characters."""
    if is_inside(quotations(text), offset):
        return True
    tokens = Tokens(text, *span)
    return is_reported(tokens, bisect_left(tokens.start, offset))


def is_reported(tokens: Tokens, verb: int) -> bool:
    """Return whether a sentence attributes the statement of a verb to somebody else, or to a story."""
    if lists.STORIES.isdisjoint(tokens.lower) and _REPORTS_OF_ALL.isdisjoint(tokens.lower):
        return False
    is_inserted = False
    for index in range(min(verb, tokens.count)):
        lower = tokens.lower[index]
        before = tokens.lower[max(index - 4, 0) : index]
        if _reports(tokens, index) or (lower in lists.STORIES and "in" in before and "," not in before):
            return True
        is_inserted = is_inserted or lower in ("who", "which")
    # The attribution may follow: `…, Bob said`, `…, said Bob.`, `… according to the report`.
    for index in range(verb + 1, tokens.count):
        lower = tokens.lower[index]
        if lower == "according" and tokens.at(index + 1) == "to":
            return True
        if lower not in _REPORTS_BEHIND or is_inserted or tokens.count - index > _FURTHEST:
            continue
        if tokens.word[index].islower() and not _is_own(tokens, index):
            # Only the speaker stands between a comma and `said`, or in `that is what Bob says`.
            words = tokens.lower[max(index - _MAX_SPEAKER_LENGTH, verb + 1) : index]
            mark = next((word for word in reversed(words) if word in _AROUND_SPEAKER), "and")
            if mark not in ("and", "but"):
                return True
    return False


def report_end(tokens: Tokens, first: int, last: int) -> int:
    """Return the index after the last `Tom told me that` between two words, `first` if nothing is reported there."""
    for index in range(last - 1, first, -1):
        is_said = _reports(tokens, index) or (tokens.lower[index] in lists.REPORTS and _is_own(tokens, index))
        if not is_said or tokens.lower[index - 1] in lists.DETERMINERS:  # `my claims adjuster`
            continue
        behind = index + 2 if tokens.at(index + 1) in lists.TO_THEM else index + 1
        return min(behind + (tokens.at(behind) == "that"), last)
    return first


def _reports(tokens: Tokens, index: int) -> bool:
    """Return whether a word attributes what follows to somebody else."""
    lower = tokens.lower[index]
    if lower in lists.REPORTS:
        if not tokens.word[index].islower() and index > 0:
            return False
        if lower == "according":
            return tokens.at(index + 1) == "to"
        return not (lower == "reports" and tokens.at(index + 1) == "to") and not _is_own(tokens, index)
    if lower not in lists.REPORTS_WITH_THAT or _is_own(tokens, index):
        return False
    behind = index + 2 if tokens.at(index + 1) in lists.TO_THEM else index + 1
    return tokens.at(behind) in ("that", ":", '"', "“") or (
        tokens.at(behind) == "," and tokens.at(behind + 1) in ('"', "“")
    )


def _is_own(tokens: Tokens, index: int) -> bool:
    """Return whether the subject of a reporting verb is the speaker: `I told you that …`."""
    index -= 1
    while tokens.at(index) in lists.REPORTING_HELPERS:
        index -= 1
    return tokens.at(index) in ("i", "we")
