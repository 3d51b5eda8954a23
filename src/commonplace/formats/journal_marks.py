r"""Tell the journal's own marks from text, and write text so that nothing in it is taken for a mark.

A mark is a line of ours: a heading, `Tags:`, `Links:`, the comment with a memory's id. A line of text that would be
one gets a backslash before it, as in Markdown, and a line that would be one but for its backslashes gets one more; so
taking one away gives back the text. Characters that no file should hold are written `&#13;`. It knows lines, no pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from commonplace.text.escaping import CHARACTERS, HIDDEN

_ALWAYS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
"""Controls but tab and line feed, which would act on a terminal or end a line; and what UTF-8 cannot write."""

_IN_ID: Final = " \t\n<>"
_IN_LINE: Final = "\n"
_EDGES: Final = " \t"

_TAG: Final = r"#((?:\\.|[^\\ \t,])++)"
_LINK: Final = r"\[\[((?:\\.|[^\\\[\]])++)\]\]"
_TAGS_LINE: Final = rf"Tags:(?:[ \t,]++{_TAG})++[ \t,]*+\Z"
_LINKS_LINE: Final = rf"Links:(?:[ \t,]++{_LINK})++[ \t,]*+\Z"
_FENCE_LINE: Final = r"`{3,}[^`]*\Z|~{3,}"

_TAGS: Final = re.compile(_TAGS_LINE)
_LINKS: Final = re.compile(_LINKS_LINE)
_ID: Final = re.compile(r"[ \t]*<!--[ \t]*memory:[ \t]*([^ \t<>]+?)[ \t]*-->[ \t]*\Z")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_DATED_HEADING: Final = r"#{2,3}[ \t]+(?:[0-9]{1,2}:[0-9]{2}|[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ \t]|\Z)"
_DATED: Final = re.compile(_DATED_HEADING)
_COMMENT_MARK: Final = r"[ \t]*(?=\\*<!--[ \t]*memory:)"
_MARK_IN_FENCE: Final = re.compile(rf"{_COMMENT_MARK}|(?=\\*{_DATED_HEADING})")


@dataclass(frozen=True, slots=True)
class Body:
    """What stands under a heading. `text` is None where there is none, `id` "" likewise."""

    text: str | None
    tags: tuple[str, ...]
    links: tuple[str, ...]
    id: str


def is_blank(line: str) -> bool:
    """Return whether a line holds nothing but blanks and its end."""
    return not line.strip(" \t\r\n")


def id_in(line: str) -> str:
    """Return the memory's id of a comment line, or "" where the line is no such comment."""
    match = _ID.match(line)
    return read_characters(match[1], _IN_ID) if match else ""


def is_footer(line: str) -> bool:
    """Return whether a line says tags or links."""
    return bool(_TAGS.match(line) or _LINKS.match(line))


def id_comment(memory_id: str) -> str:
    """Return the comment line that carries a memory's id."""
    return f"<!-- memory: {write_characters(memory_id, _IN_ID)} -->"


def fences(lines: Sequence[str]) -> list[bool]:
    """Return for each line of a page whether it belongs to fenced code.

    With one stroke of a key missing, all below it would be code, and its memories be taken for removed. So a fence that
    nothing closes before the next id comment is no fence; and where the fences up to there look mispaired, headings
    with a time or a date end code too. In the text of what we write these are no headings, in code or not.
    """
    ids = [number for number, line in enumerate(lines) if id_in(line)]
    inside: list[bool] = []
    for start, end in pairwise([-1, *ids, len(lines)]):
        stretch = lines[start + 1 : end]
        paired = _paired(stretch)
        if _looks_mispaired(stretch, paired):
            paired = _paired(stretch, _DATED)
        inside += [*paired, False]
    return inside[: len(lines)]


def conflict_line(text: str) -> int:
    """Return the line, from 1, at which a version control has marked a conflict outside of code; 0 for none."""
    if "<<<<<<< " not in text:
        return 0
    lines = [line.rstrip("\r") for line in text.split("\n")]
    begun, is_parted = 0, False
    for number, (line, fenced) in enumerate(zip(lines, fences(lines), strict=True), 1):
        if fenced:
            continue
        if line.startswith("<<<<<<< "):
            begun, is_parted = number, False
        elif line.rstrip() == "=======":
            is_parted = begun > 0
        elif line.startswith(">>>>>>> ") and is_parted:
            return begun
    return 0


def write_text(text: str, deepest: int) -> list[str]:
    """Return the lines of a text, harmless in a page whose headings have the levels 2 to `deepest`."""
    lines = write_characters(text).split("\n")
    filled = [number for number, line in enumerate(lines) if not is_blank(line)]
    first, last = (filled[0], filled[-1]) if filled else (len(lines), -1)
    written = []
    for number, (line, fenced) in enumerate(zip(lines, _paired(lines), strict=True)):
        at = 0 if number < first or number > last else _mark_at(line, deepest, fenced=fenced)
        written.append(line if at is None else f"{line[:at]}\\{line[at:]}")
    return written


def write_footer(tags: Iterable[str], links: Iterable[str], memory_id: str) -> list[str]:
    """Return the lines for tags, links and id, as many as there are."""
    written_tags = [re.sub(r"[\\ \t,]", r"\\\g<0>", write_characters(tag, _IN_LINE)) for tag in tags]
    written_links = [re.sub(r"[\\\[\]]", r"\\\g<0>", write_characters(link, _IN_LINE)) for link in links]
    lines = [f"Tags: {' '.join('#' + tag for tag in written_tags)}"] if written_tags else []
    lines += [f"Links: {' '.join(f'[[{link}]]' for link in written_links)}"] if written_links else []
    return lines + ([id_comment(memory_id)] if memory_id else [])


def read_body(lines: Sequence[str], deepest: int) -> Body:
    """Return what the lines under a heading say; marks count wherever they stand, what is left is the text."""
    tags: list[str] = []
    links: list[str] = []
    kept: list[tuple[str, bool]] = []
    memory_id, is_gap = "", False
    for line, fenced in zip(lines, fences(lines), strict=True):
        found = "" if fenced else id_in(line)
        if not found and (fenced or not is_footer(line)):
            if not (is_gap and is_blank(line)):
                kept.append((line, fenced))
                is_gap = False
            continue
        memory_id = memory_id or found
        tags += _items(_TAG, line) if _TAGS.match(line) else []
        links += _items(_LINK, line) if _LINKS.match(line) else []
        # Where a mark is taken out from between two blank lines, one of them goes too.
        is_gap = bool(kept) and is_blank(kept[-1][0])
    return Body(_read_text(kept, deepest), tuple(tags), tuple(links), memory_id)


def write_topic(topic: str) -> str:
    """Return a topic as it can end a heading: one line, its outer blanks written out."""
    bare = topic.strip(_EDGES)
    before = len(topic) - len(topic.lstrip(_EDGES))
    outer = (topic[:before], topic[before + len(bare) :])
    left, right = ("".join(f"&#{ord(character)};" for character in part) for part in outer)
    return left + write_characters(bare, _IN_LINE, _EDGES) + right


def read_topic(written: str) -> str:
    """Return the topic that `write_topic` wrote."""
    return read_characters(written, _IN_LINE + _EDGES)


def write_characters(text: str, also: str = "", readable: str = "", *, always: str = _ALWAYS) -> str:
    """Write out characters that do not belong in a file, `&#13;`, and protect what would be read as such.

    With them goes what nobody sees, see `text.escaping`.

    Args:
        also: more characters to write out.
        always: those that are written out in every place.
        readable: characters that the reader takes as well, though they are not written out here.
    """
    known = _characters(always + also + readable)

    def write(match: re.Match[str]) -> str:
        token = match.group()
        if match[1] is None:
            return f"&#{ord(token)};"
        return f"&#38;{token[1:]}" if _is_known(match[1], known) else token

    return _tokens(always + also).sub(write, text)


def read_characters(written: str, also: str = "", *, always: str = _ALWAYS) -> str:
    """Return the text that `write_characters` wrote; `also` is its `also` and `readable` together."""
    known = _characters(always + also)

    def read(match: re.Match[str]) -> str:
        token = match.group()
        if match[1] is None or not _is_known(match[1], known):
            return token
        return f"&{token[5:]}" if token.startswith("&#38;#") else chr(int(match[1]))

    return _tokens(always).sub(read, written)


def _paired(lines: Sequence[str], border: re.Pattern[str] | None = None) -> list[bool]:
    """Return whether each line is in a fence that another closes, with no border between. Linear in the text."""
    closers: dict[str, list[tuple[int, int]]] = {"`": [], "~": []}  # below a line: lengths rise from last to first
    closed_by: dict[int, int] = {}
    for number in range(len(lines) - 1, -1, -1):
        if border and border.match(lines[number]):
            closers = {"`": [], "~": []}
        elif fence := _FENCE.match(lines[number]):
            length, below = len(fence[1]), closers[fence[1][0]]
            nearest = next((at for long, at in reversed(below) if long >= length), None)
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


def _looks_mispaired(lines: Sequence[str], paired: Sequence[bool]) -> bool:
    """Return whether a fence is left over, or begins with a language inside code that it could end without."""
    opened = ""
    for line, inside in zip(lines, paired, strict=True):
        fence = _FENCE.match(line)
        if not fence:
            continue
        if not inside:
            return True
        if not opened:
            opened = fence[1]
        elif fence[1].startswith(opened):
            if not is_blank(line[fence.end() :]):
                return True
            opened = ""
    return False


def _read_text(kept: Sequence[tuple[str, bool]], deepest: int) -> str | None:
    filled = [number for number, (line, _) in enumerate(kept) if not is_blank(line)]
    if not filled:
        return None
    lines = []
    for line, fenced in kept[filled[0] : filled[-1] + 1]:
        at = _mark_at(line, deepest, fenced=fenced)
        is_escaped = at is not None and line.startswith("\\", at)
        lines.append(line[:at] + line[at + 1 :] if at is not None and is_escaped else line)
    return read_characters("\n".join(lines))


def _items(pattern: str, line: str) -> list[str]:
    return [read_characters(re.sub(r"\\(.)", r"\1", item), _IN_LINE) for item in re.findall(pattern, line)]


def _mark_at(line: str, deepest: int, *, fenced: bool) -> int | None:
    """Return where the backslashes before a mark begin, were there any; None where the line is no mark at all."""
    match = (_MARK_IN_FENCE if fenced else _mark_outside(deepest)).match(line)
    return match.end() if match else None


@cache
def _mark_outside(deepest: int) -> re.Pattern[str]:
    headings = rf"#{{2,{deepest}}}(?:[ \t]|\Z)|{_DATED_HEADING}"
    at_margin = rf"(?=\\*+(?:{headings}|{_TAGS_LINE}|{_LINKS_LINE})|\\++[ \t]*+\Z)"
    return re.compile(rf"{_COMMENT_MARK}|{at_margin}| {{0,3}}(?=\\*+(?:{_FENCE_LINE}))")


@cache
def _characters(characters: str) -> re.Pattern[str]:
    return re.compile(f"[{characters}{CHARACTERS}]")


@cache
def _tokens(characters: str) -> re.Pattern[str]:
    written = f"[{characters}]|{HIDDEN}" if characters else HIDDEN
    return re.compile(rf"&(?:#38;)*#(0|[1-9][0-9]{{0,6}});|{written}")


def _is_known(code: str, known: re.Pattern[str]) -> bool:
    number = int(code)
    return number < 0x110000 and known.match(chr(number)) is not None
