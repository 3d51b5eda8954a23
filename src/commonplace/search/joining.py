"""Put passages of one text together as they are read, and cut them where they may end. It knows texts, no budget's use.

What two passages share stands once. Where one follows the other in its text nothing stands between them but their blank
lines; else a mark says that something is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from commonplace.text.languages import PROSE, language_of
from commonplace.text.sections import front_matter_end

GAP: Final = "\n\n[…]\n\n"
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？｡][」』）”’]*|\n(?=\n)")
_NO_END: Final = re.compile(r"(?:^|[\s(])(?:\d{1,3}|[^\W\d_]|e\.g|i\.e|cf|vs|Dr|Mrs?|Ms|St|No)\.$")
"""What ends with a full stop and is no sentence: the number of a list's item, an initial, an abbreviation."""
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s.*|={1,6}\s+\S.*|\.\. _[^:]*:)\s*")
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~).*$", re.MULTILINE)
_RULE: Final = re.compile(r"\s*([=\-~^\"*#+])\1{2,}\s*")
_IMPORT: Final = re.compile(
    r"\s*(?:from\s+\S+\s+import\b|import\b|using\s|use\s|package\s|#\s*include\b|export\s.*\bfrom\b"
    r"|(?:const|let|var)\s.*\brequire\()"
)
_COMMENT: Final = re.compile(r"\s*(?:#|//)\s")
_MOST_SHARED: Final = 4_000
"""Characters that two neighbouring passages have in common at most."""
_FEWEST_SHARED, _FEWEST_SHARED_NEXT = 12, 4
"""What is shared and is no whole lines is no chance if it has so many characters; fewer of two that follow another."""
_MOST_BLANK: Final = 3

CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage, or the beginning of one, with its place in its text.

    Attributes:
        lines: first and last, from 1, where the text has lines that are counted.
        numbers: of the first and last passage in it, in a store that numbers those of one text without a gap; else
            None.
        is_cut: whether it ends before its passage does.
    """

    text: str
    lines: tuple[int, int] | None = None
    numbers: tuple[int, int] | None = None
    is_cut: bool = False


def together(pieces: Sequence[Piece]) -> str:
    """Return pieces of one text, in the order in which they are read, as one text."""
    whole = pieces[0].text
    for before, piece in pairwise(pieces):
        fewest = _FEWEST_SHARED_NEXT if _is_next(before, piece) else _FEWEST_SHARED
        shared = 0 if before.is_cut or _is_apart(before, piece) else _shared(whole, piece.text, fewest)
        between = "" if shared else _between(before, piece)
        whole += between + piece.text[shared:]
    return whole


def shortened(text: str, room: int, count: CountTokens, *, is_code: bool = False) -> str:
    """Return the longest beginning of a text that has at most `room` tokens and ends well; perhaps "".

    Prose ends with a sentence or a paragraph, never with a heading or within fenced code; code ends with a line.
    """
    if count(text) <= room:
        return text
    ends = [match.end() for match in re.finditer("\n", text)] if is_code else _sentence_ends(text)
    fitting = bisect_right(ends, room, key=lambda end: count(text[:end]))
    piece = text[: ends[fitting - 1]].rstrip() if fitting else ""
    return piece if is_code else _without_last_heading(_without_open_fence(piece))


def is_code(path: str) -> bool:
    """Return whether the file of this path is cut by lines: source code or configuration."""
    language = language_of(path.rpartition("/")[2])
    return language is not None and language not in PROSE


def says_nothing(text: str, path: str) -> bool:
    """Return whether a passage is front matter or a heading, or the first line of a declaration, and nothing else."""
    lines = text.split("\n")
    lines = [line for line in lines[front_matter_end(lines) :] if line.strip()]
    if is_code(path):
        return len(lines) == 1 and lines[0].rstrip().endswith((":", "{"))
    return not _without_last_heading("\n".join(lines))


def only_imports(text: str, path: str) -> bool:
    """Return whether a passage of code names what the file uses and nothing else."""
    if not is_code(path):
        return False
    depth, imports = 0, 0
    for line in text.split("\n"):
        if not depth and line.strip() and not _COMMENT.match(line):
            if not _IMPORT.match(line):
                return False
            imports += 1
        depth = max(0, depth + sum(map(line.count, "({")) - sum(map(line.count, ")}")))
    return imports > 0


def _sentence_ends(text: str) -> list[int]:
    ends = (match.end() for match in _SENTENCE_END.finditer(text))
    return [end for end in ends if not _NO_END.search(text[max(0, end - 8) : end])]


def _without_open_fence(text: str) -> str:
    fences = list(_FENCE.finditer(text))
    return text[: fences[-1].start()].rstrip() if len(fences) % 2 else text


def _without_last_heading(text: str) -> str:
    lines = text.rstrip().split("\n")
    while lines:
        if _HEADING.fullmatch(lines[-1]) or not lines[-1].strip():
            lines.pop()
        elif _RULE.fullmatch(lines[-1]):
            # A line under a title; with one above it, that one is the last next time.
            del lines[-2 if len(lines) > 1 and lines[-2].strip() else -1 :]
        else:
            break
    return "\n".join(lines)


def _is_apart(before: Piece, piece: Piece) -> bool:
    """Return whether two pieces are known to have nothing in common, by their lines or else by what is between them."""
    if before.lines and piece.lines:
        return before.lines[1] < piece.lines[0]
    return bool(before.numbers and piece.numbers and before.numbers[1] + 1 < piece.numbers[0])


def _is_next(before: Piece, piece: Piece) -> bool:
    return bool(before.numbers and piece.numbers and before.numbers[1] + 1 == piece.numbers[0])


def _between(before: Piece, piece: Piece) -> str:
    """Return what stands between two pieces that share nothing."""
    if before.is_cut or not _is_next(before, piece):
        return GAP
    if not (before.lines and piece.lines):
        return "\n\n"
    lines = piece.lines[0] - before.lines[1]
    return "\n" * min(lines, _MOST_BLANK) if lines > 0 else " "


def _shared(first: str, second: str, fewest: int) -> int:
    """Return the length of the longest end of one text that is the beginning of another.

    It is whole lines, or has the fewest characters at least.
    """
    most = min(len(first), len(second), _MOST_SHARED)
    starts = [0, *(match.end() for match in re.finditer("\n", second[:most])), most]
    lines = {length for start in starts for length in (start - 1, start) if length > 0}
    found = _longest(first, second, sorted(lines, reverse=True))
    return found or _longest(first, second, range(most, fewest - 1, -1))


def _longest(first: str, second: str, lengths: Iterable[int]) -> int:
    return next((length for length in lengths if first.endswith(second[:length])), 0)
