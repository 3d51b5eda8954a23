r"""Write one memory as an entry of a Markdown page, and find the words for its heading.

An entry is, in a day's page (`2026-11-21.md`):

    ## 09:30 Postgres for billing

    We chose Postgres for billing.

    Tags: #decision
    Links: [[invoices]]
    <!-- memory: 0b8ff5a4-3f6e-4a55-9d0b-6c1f1c0f5b1e -->

and in the long-term page (`MEMORY.md`) the same under `## Decisions` with `### 2026-11-21 Postgres for billing`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from commonplace.formats.journal_marks import read_topic, write_footer, write_text, write_topic
from commonplace.text.sections import plain_heading

PageKind = Literal["day", "long"]
LEVELS: Final[Mapping[PageKind, int]] = {"day": 2, "long": 3}
"""The level of an entry's heading in a page."""

LONGEST_TOPIC: Final = 60

_WHEN: Final[Mapping[PageKind, re.Pattern[str]]] = {
    "day": re.compile(r"([01]?[0-9]|2[0-3])(\\*)(:[0-5][0-9])(?=[ \t]|\Z)"),
    "long": re.compile(r"([0-9]{4})(\\*)(-[0-9]{2}-[0-9]{2})(?=[ \t]|\Z)"),
}
_SHORTEST_SENTENCE: Final = 12
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|[。！？]")
_LEAD: Final = re.compile(r"(?:[>\s]|[-*+]\s|\d{1,3}[.)]\s|#{1,6}\s|\[[ xX]\]\s)*")
_EMPHASIS: Final = re.compile(r"(?<!\w)(\*{1,2}|~~|_)(?=[^\s_])(.+?)(?<=\S)\1(?!\w)")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a page says of one memory.

    Attributes:
        id: the memory's, or "" where a person wrote a new note.
        at_minutes: local wall time in a day's page, minutes since midnight; None where the heading has none.
        topic: the rest of the heading; "" where there is none.
        tags, links: in their order, none of them empty.
        section: in the long-term page, ours in our spelling; else "".
        day: the memory's date in the long-term page; None in a day's page.
    """

    id: str
    at_minutes: int | None
    topic: str
    text: str
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    section: str = ""
    day: date | None = None


def render_entry(entry: Entry, kind: PageKind = "day") -> str:
    r"""Return the entry as Markdown that ends with "\n"; reading it gives the entry back, but for its section."""
    footer = write_footer(entry.tags, entry.links, entry.id)
    lines = [_heading(entry, kind), "", *write_text(entry.text, LEVELS[kind])]
    return "\n".join(lines + (["", *footer] if footer else [])) + "\n"


def render_bullet(entry: Entry) -> str:
    """Return the entry as an item of a list, as people write notes in the long-term page: topic and day are left out.

    A text that begins with blanks loses these.
    """
    lines = write_text(entry.text.lstrip(" \t"), LEVELS["long"]) + write_footer(entry.tags, entry.links, entry.id)
    first, *others = lines
    sign = "*" if first.startswith("-") else "-"  # `- - -` would be a rule across the page
    return "\n".join([f"{sign} {first}", *(f"  {line}" if line else "" for line in others)]) + "\n"


def read_heading(words: str, kind: PageKind) -> tuple[int | None, date | None, str]:
    """Return minutes, day and topic of what stands behind a heading's `#` signs."""
    words = words.strip(" \t")
    when = _WHEN[kind].match(words)
    if not when:
        return None, None, read_topic(words)
    rest = words[when.end() :].strip(" \t")
    if when[2]:
        return None, None, read_topic(when[1] + when[2][1:] + words[when.start(3) :])
    if kind == "day":
        return int(when[1]) * 60 + int(when[3][1:]), None, read_topic(rest)
    try:
        return None, date.fromisoformat(when.group()), read_topic(rest)
    except ValueError:
        return None, None, read_topic(words)


def begins_entry(heading: str, kind: PageKind) -> bool:
    """Return whether a heading, with its `#` signs, is that of an entry of this kind of page with its time or date."""
    level = LEVELS[kind]
    is_as_deep = heading.startswith("#" * level) and not heading.startswith("#" * (level + 1))
    when = _WHEN[kind].match(heading[level:].strip(" \t"))
    return is_as_deep and when is not None and not when[2]


def topic_of(text: str) -> str:
    """Return a short heading for a text: its first line or sentence without Markdown, at most 60 characters.

    A text that has no letter or digit in it has the topic "".
    """
    for line in text.splitlines():
        words = _plain(line)
        if re.search(r"\w", words) and not line.lstrip().startswith(("```", "~~~")):
            return _shortened(_first_sentence(words))
    return ""


def _heading(entry: Entry, kind: PageKind) -> str:
    topic = write_topic(entry.topic)
    when = ""
    if kind == "day" and entry.at_minutes is not None:
        when = f"{entry.at_minutes // 60:02d}:{entry.at_minutes % 60:02d}"
    elif kind == "long" and entry.day is not None:
        when = entry.day.isoformat()
    elif looks_like := _WHEN[kind].match(topic):
        topic = f"{topic[: looks_like.end(1)]}\\{topic[looks_like.end(1) :]}"
    return " ".join(part for part in ("#" * LEVELS[kind], when, topic) if part)


def _plain(line: str) -> str:
    words = _CONTROLS.sub(" ", line[:2000])
    words = plain_heading(words[_LEAD.match(words).end() :])  # type: ignore[union-attr]  # it matches everything
    return _EMPHASIS.sub(r"\2", words)


def _first_sentence(words: str) -> str:
    for end in _SENTENCE_END.finditer(words):
        following = words[end.end() :].lstrip()[:1]
        # "Dr. X", "e.g. this" and "approx. 3" go on.
        goes_on = end.end() < _SHORTEST_SENTENCE or following.islower() or following.isdigit()
        if end.group() != "." or not goes_on:
            words = words[: end.end()]
            break
    return words.rstrip(" .,;:。")


def _shortened(words: str) -> str:
    if len(words) <= LONGEST_TOPIC:
        return words
    end = LONGEST_TOPIC - 1
    while end > 1 and (unicodedata.category(words[end])[0] == "M" or "\u200d" in words[end - 1 : end + 1]):
        end -= 1
    space = words.rfind(" ", 0, end + 1)
    return words[: space if space > LONGEST_TOPIC // 2 else end].rstrip(" .,;:") + "…"
