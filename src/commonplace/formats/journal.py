"""Parse and render the Markdown pages of the journal: one for each day and one for long-term memory.

A mark is a line of our own: a heading, `Tags:`, `Links:` or the comment with a memory's id. A line of text that looks
like a mark, or would without its leading backslashes, gets one more backslash, as in Markdown; removing one restores
the text. Characters that no file should hold are written as `&#13;`. The manual, docs/formats/markdown.md, shows both
kinds of pages.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Final, Literal

from commonplace.dataclasses import dataclass, replace
from commonplace.formats.escaping import CHARACTERS, HIDDEN
from commonplace.lazy_regex import lazy_pattern
from commonplace.text.markdown import plain_heading

_ALWAYS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""Controls other than tab and line feed, which act on a terminal or end a line; lone surrogates, not valid UTF-8."""

_IN_ID: Final = " \t\n<>"
_IN_LINE: Final = "\n"
_EDGES: Final = " \t"
_OUTER_BLANKS: Final = lazy_pattern(rf"\A[{_EDGES}]+|[{_EDGES}]+\Z")

_TAG: Final = r"#((?:\\.|[^\\ \t,])++)"
_LINK: Final = r"\[\[((?:\\.|[^\\\[\]])++)\]\]"
_TAGS_LINE: Final = rf"Tags:(?:[ \t,]++{_TAG})++[ \t,]*+\Z"
_LINKS_LINE: Final = rf"Links:(?:[ \t,]++{_LINK})++[ \t,]*+\Z"
_FENCE_LINE: Final = r"`{3,}[^`]*\Z|~{3,}"

_TAGS: Final = lazy_pattern(_TAGS_LINE)
_LINKS: Final = lazy_pattern(_LINKS_LINE)
_ID_LINE: Final = r"[ \t]*<!--[ \t]*memory:[ \t]*([^ \t<>]+?)[ \t]*-->[ \t]*\Z"
_ID: Final = lazy_pattern(_ID_LINE)
_FENCE: Final = lazy_pattern(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_DATED_HEADING: Final = r"#{2,3}[ \t]+(?:[0-9]{1,2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ \t]|\Z)"
_COMMENT_MARK: Final = r"[ \t]*(?=\\*<!--[ \t]*memory:)"
_BORDER: Final = lazy_pattern(rf"{_DATED_HEADING}|{_ID_LINE}")
"""A line that no fenced code of a page extends past; `write_text` escapes such lines of a text, also in code.

One missing backtick would turn all below it into code, and its memories would count as removed."""
_CONFLICT_LINE: Final = r"(?:<{7}|>{7})[ ]"
_CONFLICT: Final = lazy_pattern(_CONFLICT_LINE)
_MARK_IN_FENCE: Final = lazy_pattern(rf"{_COMMENT_MARK}|(?=\\*{_DATED_HEADING})")


def is_blank(line: str) -> bool:
    """Return whether a line holds only blanks and a line end."""
    return not line.strip(" \t\r\n")


def id_in(line: str) -> str:
    """Return the memory id in a comment line, or "" if the line is no such comment."""
    match = _ID.match(line)
    return read_characters(match[1], _IN_ID) if match else ""


def is_footer(line: str) -> bool:
    """Return whether a line is a `Tags:` or `Links:` line."""
    return bool(_TAGS.match(line) or _LINKS.match(line))


def id_comment(memory_id: str) -> str:
    """Return the comment line that carries a memory's id."""
    return f"<!-- memory: {write_characters(memory_id, _IN_ID)} -->"


def conflict_line(text: str) -> int:
    """Return the line, from 1, of the first version-control conflict marker outside code; 0 without a conflict."""
    lines = text.split("\n") if "<<<<<<< " in text else []
    fenced = paired_fences(lines, _BORDER)
    marks = [number for number, line in enumerate(lines) if not fenced[number] and _CONFLICT.match(line)]
    return marks[0] + 1 if len(marks) > 1 else 0


def write_text(text: str, deepest: int) -> list[str]:
    """Return the lines of a text, escaped for a page whose headings have the levels 2 to `deepest`."""
    lines = write_characters(text).split("\n")
    filled = [number for number, line in enumerate(lines) if not is_blank(line)]
    first, last = (filled[0], filled[-1]) if filled else (len(lines), -1)
    escaped = []
    for number, (line, fenced) in enumerate(zip(lines, paired_fences(lines), strict=True)):
        mark = 0 if number < first or number > last else _mark_position(line, deepest, fenced=fenced)
        escaped.append(line if mark is None else f"{line[:mark]}\\{line[mark:]}")
    return escaped


def write_footer(tags: Iterable[str], links: Iterable[str], memory_id: str) -> list[str]:
    """Return the lines for tags, links and id, without those that are empty."""
    written_tags = [re.sub(r"[\\ \t,]", r"\\\g<0>", write_characters(tag, _IN_LINE)) for tag in tags]
    written_links = [re.sub(r"[\\\[\]]", r"\\\g<0>", write_characters(link, _IN_LINE)) for link in links]
    lines = [f"Tags: {' '.join('#' + tag for tag in written_tags)}"] if written_tags else []
    lines += [f"Links: {' '.join(f'[[{link}]]' for link in written_links)}"] if written_links else []
    return lines + ([id_comment(memory_id)] if memory_id else [])


def read_body(lines: Sequence[str], deepest: int) -> tuple[str | None, tuple[str, ...], tuple[str, ...], str]:
    """Return text, tags, links and id from the lines under a heading; without them, None, (), () and "".

    Marks are recognised anywhere outside code; the other lines are the text.
    """
    tags: list[str] = []
    links: list[str] = []
    text_lines: list[tuple[str, bool]] = []
    memory_id, is_gap = "", False
    for line, fenced in zip(lines, paired_fences(lines, _BORDER), strict=True):
        line_id = "" if fenced else id_in(line)
        if not line_id and (fenced or not is_footer(line)):
            if not (is_gap and is_blank(line)):
                text_lines.append((line, fenced))
                is_gap = False
            continue
        memory_id = memory_id or line_id
        tags += _items(_TAG, line) if _TAGS.match(line) else []
        links += _items(_LINK, line) if _LINKS.match(line) else []
        # If the mark was between two blank lines, one of them is dropped too.
        is_gap = bool(text_lines) and is_blank(text_lines[-1][0])
    filled = [number for number, (line, _) in enumerate(text_lines) if not is_blank(line)]
    text = []
    for line, fenced in text_lines[filled[0] : filled[-1] + 1] if filled else ():
        mark = _mark_position(line, deepest, fenced=fenced)
        text.append(line[:mark] + line[mark + 1 :] if mark is not None and line.startswith("\\", mark) else line)
    return read_characters("\n".join(text)) if filled else None, tuple(tags), tuple(links), memory_id


def _items(pattern: str, line: str) -> list[str]:
    return [read_characters(re.sub(r"\\(.)", r"\1", item), _IN_LINE) for item in re.findall(pattern, line)]


def write_topic(topic: str) -> str:
    """Return a topic as the end of a heading: one line, with leading and trailing blanks escaped."""
    return _OUTER_BLANKS.sub(
        lambda blanks: "".join(f"&#{ord(blank)};" for blank in blanks[0]), write_characters(topic, _IN_LINE)
    )


def read_topic(escaped: str) -> str:
    """Return the topic that `write_topic` wrote."""
    return read_characters(escaped, _IN_LINE + _EDGES)


def write_characters(text: str, also: str = "", *, always: str = _ALWAYS) -> str:
    """Escape characters that do not belong in a file as `&#13;`, and existing `&#` so that it is not read as an escape.

    Invisible characters are escaped too, see `escaping`.

    Args:
        also: more characters to escape.
        always: the characters to escape in every context.
    """
    unfit = _pattern(f"[{always}{also}]|{HIDDEN}" if always + also else HIDDEN)
    return unfit.sub(lambda match: f"&#{ord(match[0])};", text.replace("&#", "&#38;#"))


def read_characters(escaped: str, also: str = "") -> str:
    """Undo `write_characters`; a reference that a person wrote to any other character stays."""
    escapable = _pattern(f"[&{_ALWAYS}{also}{CHARACTERS}]")

    def read(match: re.Match[str]) -> str:
        code = int(match[1])
        return chr(code) if code < 0x110000 and escapable.match(chr(code)) else match[0]

    return _WRITTEN.sub(read, escaped)


def paired_fences(lines: Sequence[str], border: re.Pattern[str] | None = None) -> list[bool]:
    """Return for each line, given without its end, whether it is in a closed fence; no fence spans a border."""
    closers: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}  # below the line; lengths rise from last to first
    closed_by: dict[int, int] = {}
    for number in range(len(lines) - 1, -1, -1):
        if border and border.match(lines[number]):
            closers = {"`": [], "~": []}
        elif fence := _FENCE.match(lines[number]):
            length, below = len(fence[1]), closers[fence[1][0]]
            nearest = next((index for long, index in reversed(below) if long >= length), None)
            if nearest is not None:
                closed_by[number] = nearest
            if is_blank(lines[number][fence.end() :]):
                while below and below[-1][0] <= length:
                    below.pop()
                below.append((length, number))
    inside = [False] * len(lines)
    number = 0
    while number < len(lines):
        last = closed_by.get(number, number - 1)
        inside[number : last + 1] = [True] * (last + 1 - number)
        number = max(last, number) + 1
    return inside


def _mark_position(line: str, deepest: int, *, fenced: bool) -> int | None:
    """Return where the backslashes before a mark begin or would begin; None if the line is no mark."""
    match = (_MARK_IN_FENCE if fenced else _mark_outside(deepest)).match(line)
    return match.end() if match else None


@cache
def _mark_outside(deepest: int) -> re.Pattern[str]:
    headings = rf"#{{2,{deepest}}}(?:[ \t]|\Z)|{_DATED_HEADING}"
    at_margin = rf"(?=\\*+(?:{headings}|{_TAGS_LINE}|{_LINKS_LINE}|{_CONFLICT_LINE})|\\++[ \t]*+\Z)"
    return lazy_pattern(rf"{_COMMENT_MARK}|{at_margin}| {{0,3}}(?=\\*+(?:{_FENCE_LINE}))")


_WRITTEN: Final = lazy_pattern(r"&#([0-9]{1,7});")


_pattern: Final[Callable[[str], re.Pattern[str]]] = cache(lazy_pattern)


PageKind = Literal["day", "long"]
LEVELS: Final[Mapping[PageKind, int]] = {"day": 2, "long": 3}
"""Level of the headings of entries."""

MAX_TOPIC_LENGTH: Final = 60

_WHEN: Final[Mapping[PageKind, re.Pattern[str]]] = {
    "day": lazy_pattern(r"([01]?[0-9]|2[0-3])(\\*)(:[0-5][0-9])(?=[ \t]|\Z)"),
    "long": lazy_pattern(r"([0-9]{4})(\\*)(-[0-9]{2}-[0-9]{2})(?=[ \t]|\Z)"),
}
_MIN_SENTENCE_LENGTH: Final = 12
_SENTENCE_END: Final = lazy_pattern(r"[.!?](?=\s)|[。！？]")
_LEAD: Final = lazy_pattern(r"(?:[>\s]|[-*+]\s|\d{1,3}[.)]\s|#{1,6}\s|\[[ xX]\]\s)*")
_EMPHASIS: Final = lazy_pattern(r"(?<!\w)(\*{1,2}|~~|_)(?=[^\s_])(.+?)(?<=\S)\1(?!\w)")
_CONTROLS: Final = lazy_pattern("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory as a page shows it.

    Attributes:
        id: the memory's id, or "" for a new note that a person wrote.
        at_minutes: local wall time in a day's page, minutes since midnight; None if the heading has none.
        topic: the rest of the heading, or "".
        tags, links: in page order, none of them empty.
        section: the section in the long-term page, one of ours in our spelling; else "".
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
    r"""Return an entry as Markdown that ends with "\n"; parsing it restores the entry except for its section."""
    topic, when = write_topic(entry.topic), ""
    if kind == "day" and entry.at_minutes is not None:
        when = f"{entry.at_minutes // 60:02d}:{entry.at_minutes % 60:02d}"
    elif kind == "long" and entry.day is not None:
        when = entry.day.isoformat()
    elif lookalike := _WHEN[kind].match(topic):
        topic = f"{topic[: lookalike.end(1)]}\\{topic[lookalike.end(1) :]}"
    heading = " ".join(part for part in ("#" * LEVELS[kind], when, topic) if part)
    footer = write_footer(entry.tags, entry.links, entry.id)
    lines = [heading, "", *write_text(entry.text, LEVELS[kind])]
    return "\n".join(lines + (["", *footer] if footer else [])) + "\n"


def render_bullet(entry: Entry) -> str:
    """Return an entry as a list item, as people write notes in the long-term page, without topic and day.

    Leading blanks of the text are dropped.
    """
    lines = write_text(entry.text.lstrip(" \t"), LEVELS["long"]) + write_footer(entry.tags, entry.links, entry.id)
    first, *following = lines
    marker = "*" if first.startswith("-") else "-"  # `- - -` would be a rule across the page
    return "\n".join([f"{marker} {first}", *(f"  {line}" if line else "" for line in following)]) + "\n"


def read_heading(words: str, kind: PageKind) -> tuple[int | None, date | None, str]:
    """Return minutes, day and topic of a heading, given without its `#` signs."""
    words = words.strip(" \t")
    when = _WHEN[kind].match(words)
    if not when:
        return None, None, read_topic(words)
    topic = words[when.end() :].strip(" \t")
    if when[2]:
        return None, None, read_topic(when[1] + when[2][1:] + words[when.start(3) :])
    if kind == "day":
        return int(when[1]) * 60 + int(when[3][1:]), None, read_topic(topic)
    try:
        return None, date.fromisoformat(when.group()), read_topic(topic)
    except ValueError:
        return None, None, read_topic(words)


def topic_of(text: str) -> str:
    """Return a short heading for a text: its first line or sentence without Markdown, at most 60 characters.

    A text without a letter or digit has the topic "".
    """
    words = ""
    for line in text.splitlines():
        words = _CONTROLS.sub(" ", line[:2000])
        words = plain_heading(words[_LEAD.match(words).end() :])  # type: ignore[union-attr]  # it matches everything
        words = _EMPHASIS.sub(r"\2", words)
        if re.search(r"\w", words) and not line.lstrip().startswith(("```", "~~~")):
            break
    else:
        return ""
    for end in _SENTENCE_END.finditer(words):
        following = words[end.end() :].lstrip()[:1]
        # The sentence goes on after "Dr. X", "e.g. this" and "approx. 3".
        goes_on = end.end() < _MIN_SENTENCE_LENGTH or following.islower() or following.isdigit()
        if end.group() != "." or not goes_on:
            words = words[: end.end()]
            break
    words = words.rstrip(" .,;:。")
    if len(words) <= MAX_TOPIC_LENGTH:
        return words
    # Cut between words, else between characters without splitting off accents or joiners.
    cut = MAX_TOPIC_LENGTH - 1
    while cut > 1 and (unicodedata.category(words[cut])[0] == "M" or "\u200d" in words[cut - 1 : cut + 1]):
        cut -= 1
    blank = words.rfind(" ", 0, cut + 1)
    return words[: blank if blank > MAX_TOPIC_LENGTH // 2 else cut].rstrip(" .,;:") + "…"


SECTIONS: Final = ("Decisions", "Preferences", "Lessons", "Events")
"""Our sections in page order. A person may add others, which keep their position."""

MAX_TOKENS: Final = 5000

_SECTION_OF: Final = {
    "decision": "Decisions",
    "preference": "Preferences",
    "lesson": "Lessons",
    "fact": "Lessons",
    "event": "Events",
    "context": "Events",
}
_DEFAULT_SECTION: Final = "Lessons"
_CATEGORY_OF: Final = {"Decisions": "decision", "Preferences": "preference", "Lessons": "lesson", "Events": "event"}


def section_of(category: str, page_sections: Iterable[str] = ()) -> str:
    """Return the section for a category: ours, else the page's section of that name, else Lessons.

    Args:
        page_sections: the names of the page's sections.
    """
    name_key = category.strip().casefold()
    if name_key in _SECTION_OF:
        return _SECTION_OF[name_key]
    return next((name for name in page_sections if name.casefold() == name_key), _DEFAULT_SECTION)


def category_of(section: str) -> str:
    """Return the category for a note in a section; `section_of` maps it back to that section."""
    name = canonical_section(section)
    return _CATEGORY_OF.get(name, name.casefold())


def canonical_section(section: str) -> str:
    """Return a section's name without outer blanks, in our spelling if it is one of ours."""
    name = section.strip()
    return next((ours for ours in SECTIONS if ours.casefold() == name.casefold()), name)


BOM: Final = "\ufeff"

_LINE: Final = lazy_pattern(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HEADING: Final = lazy_pattern(r"(#{1,3})(?:[ \t]|\Z)")
_OTHER_KIND: Final[Mapping[PageKind, PageKind]] = {"day": "long", "long": "day"}
_WORD: Final = lazy_pattern(r"\w")
_BULLET: Final = lazy_pattern(r"(?!([-*])(?:[ \t]*\1){2,}[ \t]*\Z)[-*+][ \t]+(?=[^ \t])")
"""A list item, but not a horizontal rule such as `* * *`."""


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a page.

    Attributes:
        start_line, end_line: from 1, both included.
        raw: these lines unchanged; with a heading, including the blank ones up to the next heading.
        is_bullet: whether it is a list item in the long-term page, not an entry with a heading.
        is_bare: whether it is neither.
    """

    entry: Entry
    start_line: int
    end_line: int
    raw: str
    is_bullet: bool = False
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class PageSection:
    """A `## ` heading of the long-term page with everything below it; lines from 1, both included."""

    name: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page.

    Attributes:
        preamble: the text before the first block, a byte order mark included.
    """

    preamble: str
    blocks: tuple[Block, ...]
    sections: tuple[PageSection, ...] = ()


def parse_page(text: str, kind: PageKind = "day") -> Page:
    """Return the blocks of a page in order. Never raises.

    * Outside fenced code, a `## ` heading begins a block of a day's page, a `### ` heading one of the long-term page;
      so does a heading of the other kind of page with its time or date. A block without an id is a new note; if it has
      only a heading, that is its text.
    * Text after an id comment, up to the next heading or id comment, is a block without a heading, unless it holds only
      tags, links and lines without a word; below a list item it is none, with an id or without. A block that repeats
      an id of the page is a copy: its id is "".
    * In the long-term page, a list item directly under a section's heading or after a finished entry is a block,
      together with the lines indented under it.
    """
    mark = BOM if text.startswith(BOM) else ""
    lines = split_lines(text[len(mark) :])
    reader = _Reader([line.rstrip("\r\n") for line in lines], kind)
    starts = [number for number, level in enumerate(reader.levels) if level == 2] if kind == "long" else []
    sections = [
        PageSection(canonical_section(read_heading(lines[start][2:].rstrip("\r\n"), "long")[2]), start + 1, end)
        for start, end in pairwise([*starts, len(lines)])
    ]
    blocks: list[Block] = []
    seen: set[str] = set()
    for start, end in reader.spans():
        above = bisect_right(starts, start)
        entry, is_bullet, is_bare = reader.read(start, end, sections[above - 1].name if above else "")
        is_copy = entry.id in seen
        seen.add(entry.id)
        entry = replace(entry, id="") if is_copy else entry
        blocks.append(Block(entry, start + 1, end, "".join(lines[start:end]), is_bullet, is_bare))
    first = blocks[0].start_line - 1 if blocks else len(lines)
    return Page(mark + "".join(lines[:first]), tuple(blocks), tuple(sections))


def split_lines(text: str) -> list[str]:
    r"""Return the lines with their ends; only "\n", "\r\n" and "\r" end a line."""
    return _LINE.findall(text)


class _Reader:
    """The lines of one page without their ends, counted from 0.

    Attributes:
        levels: heading level of each line, 0 if it is none; every entry's heading has the level of this kind of page.
    """

    def __init__(self, lines: list[str], kind: PageKind) -> None:
        self._lines, self._kind, self._entry_level = lines, kind, LEVELS[kind]
        self._fenced = paired_fences(lines, _BORDER)
        self._ids = [id_in(line) for line in lines]
        self.levels: list[int] = []
        self._others: set[int] = set()  # headings in the form of the other kind of page
        other = _OTHER_KIND[kind]
        for number, (line, inside) in enumerate(zip(lines, self._fenced, strict=True)):
            heading = None if inside else _HEADING.match(line)
            level = len(heading[1]) if heading else 0
            if level == LEVELS[other] and (when := _WHEN[other].match(line[level:].strip(" \t"))) and not when[2]:
                self._others.add(number)
                level = self._entry_level
            self.levels.append(level)
        below = self.levels.index(2) if kind == "long" and 2 in self.levels else len(lines)
        self._is_bullet = [
            number > below and not inside and _BULLET.match(line) is not None
            for number, (line, inside) in enumerate(zip(lines, self._fenced, strict=True))
        ]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Yield start and end (exclusive) of each block; no block has two ids, or words after its id."""
        lines, levels, ids = self._lines, self.levels, self._ids
        start, has_id = -1, False
        last = 0  # the last line that is not blank
        loose = 0  # the first line that a block without a heading may begin at
        for number, line in enumerate(lines):
            level, has_text = levels[number], not is_blank(line)
            is_heading = 2 <= level <= self._entry_level
            is_listed = start >= 0 and self._is_bullet[start]
            is_lazy = number == last + 1 and not level and not ids[last]
            is_over = is_listed and has_text and not (line[0] in " \t" or is_lazy)
            # After an id, a line with a word begins a block; a horizontal rule does not.
            begins = has_id and has_text and not is_over
            if begins and not (ids[number] or self._fenced[number]):
                begins = _WORD.search(line) is not None and not is_footer(line)
            if self._is_bullet[number]:  # in an entry, it is text until after the id
                begins = start < 0 or has_id or levels[start] != self._entry_level
            if start >= 0 and (is_heading or begins or is_over):
                yield start, last + 1 if is_listed else number
                start, has_id, loose = -1, False, number
            if is_heading:
                start = number if level == self._entry_level else -1
            elif begins:
                start = number
            elif start < 0 and ids[number]:
                start = next((index for index in range(loose, number) if not is_blank(lines[index])), number)
            if start < 0 and level:
                loose = number + 1
            has_id = start >= 0 and (has_id or ids[number] != "")
            last = number if has_text else last
        if start >= 0:
            yield start, last + 1 if self._is_bullet[start] else len(lines)

    def read(self, start: int, end: int, section: str) -> tuple[Entry, bool, bool]:
        """Return the entry of a block, and whether the block is a list item, or bare."""
        head, body = self._lines[start], self._lines[start + 1 : end]
        minutes, day, topic = None, None, ""
        bullet = _BULLET.match(head) if self._is_bullet[start] else None
        is_bare = bullet is None and self.levels[start] != self._entry_level
        if bullet:
            width = bullet.end()
            margins = [len(line) - len(line.lstrip(" \t")) for line in body]
            below = zip(body, margins, strict=True)
            body = [line[1 if line.startswith("\t") else min(margin, width) :] for line, margin in below]
            body.insert(0, head[width:])
        elif is_bare:
            body = [head, *body]
        else:
            kind = _OTHER_KIND[self._kind] if start in self._others else self._kind
            minutes, day, topic = read_heading(head[LEVELS[kind] :], kind)
        text, tags, links, id_ = read_body(body, self._entry_level)
        entry = Entry(id_, minutes, topic, topic if text is None else text, tags, links, section, day)
        return entry, bullet is not None, is_bare
