"""Cut a text into chunks that fit a token limit, at its own seams where it has any; it knows no files and no model.

A chunk is a section, or several neighbouring ones where they are tiny. Only a section over the limit is cut inside:
between paragraphs if possible, then between lines, then between sentences or words of one long line. Those chunks
overlap a little, so that a sentence at the cut is found whole. The time taken grows with the text's length alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from commonplace.errors import UsageError
from commonplace.text.declarations import code_sections
from commonplace.text.languages import Language
from commonplace.text.sections import (
    Section,
    asciidoc_sections,
    config_sections,
    fenced_blocks,
    markdown_sections,
    sections_between,
    underlined_sections,
)
from commonplace.types import Chunk

CountTokens = Callable[[str], int]

CHUNKER: Final = 1
"""Which way of cutting this is; it grows with every change that cuts an old text anew."""

SMALL_TOKENS: Final = 40
"""A section with fewer tokens is joined to a neighbour: alone it says too little to be found or understood."""

CHARACTERS_PER_TOKEN: Final = 8
"""So many characters count as a token at least: a long run that the tokenizer sees as one unknown word has a limit."""

_PIECE_CHARACTERS: Final = 240


def chunk(
    text: str, *, language: Language = "text", max_tokens: int = 512, overlap: int = 50, count_tokens: CountTokens
) -> list[Chunk]:
    r"""Cut a text into chunks, in order, so that every non-blank line is in at least one.

    Args:
        text: with "\n" as its only line end.
        language: decides where sections begin.
        max_tokens: no chunk has more, by `count_tokens` and by its characters (8 make a token).
        overlap: at most so many tokens are repeated where a section had to be cut.
        count_tokens: the number of tokens of a text; that of two lines is at most the sum of theirs.

    Returns:
        Chunks of whole lines, `text` being exactly those lines, except where one line alone was over the limit. Blank
        lines at a chunk's ends are left off. A blank text has no chunks.

    Raises:
        UsageError: max_tokens is under 1, or overlap is not in 0 … max_tokens − 1.
    """
    if max_tokens < 1 or not 0 <= overlap < max_tokens:
        raise UsageError(
            f"chunks of {max_tokens} tokens with an overlap of {overlap} are impossible",
            remedy="the size must be at least 1 and the overlap under the size",
        )
    if not text.strip():
        return []
    lines = text.split("\n")
    cutter = _Cutter(text, lines, language, max_tokens, overlap, count_tokens)
    chunks: list[Chunk] = []
    parts = [cutter.measure(section) for section in _sections(text, lines, language)]
    for part in _join_small([part for part in parts if part.cost], max_tokens):
        if part.cost <= max_tokens:
            body = "\n".join(lines[part.first : part.last])
            chunks.append(Chunk(body, part.first + 1, part.last, part.heading))
        else:
            chunks.extend(cutter.cut(part))
    return chunks


def _sections(text: str, lines: Sequence[str], language: Language) -> list[Section]:
    match language:
        case "markdown":
            return markdown_sections(text, lines)
        case "restructuredtext":
            return underlined_sections(text, lines)
        case "asciidoc":
            return asciidoc_sections(lines)
        case "config":
            return config_sections(lines)
        case "python" | "code":
            return code_sections(text, lines, is_python=language == "python")
        case "text":
            return sections_between((), lines)


@dataclass(slots=True)
class _Part:
    """Neighbouring sections on the way to a chunk: lines first to last (half-open, no blank ends), and their cost."""

    first: int
    last: int
    heading: str
    level: int
    cost: int
    heaviest: int  # cost of the section that gave the heading


def _join_small(parts: Sequence[_Part], max_tokens: int) -> list[_Part]:
    """Join each tiny part to the one after it, or, at the end of what it stands in, to the one before."""
    joined: list[_Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last and last.cost < SMALL_TOKENS and part.level >= last.level and last.cost + part.cost <= max_tokens:
            _append(last, part)
            continue
        _join_backwards(joined, max_tokens)
        joined.append(part)
    _join_backwards(joined, max_tokens)
    return joined


def _join_backwards(joined: list[_Part], max_tokens: int) -> None:
    if len(joined) < 2:
        return
    before, last = joined[-2:]
    is_near = last.level >= before.level or not last.heading
    if is_near and last.cost < SMALL_TOKENS and before.cost + last.cost <= max_tokens:
        _append(before, joined.pop())


def _append(part: _Part, following: _Part) -> None:
    part.cost += following.cost + (following.first - part.last) // CHARACTERS_PER_TOKEN
    part.last = following.last
    if following.heaviest > part.heaviest or not part.heading:
        part.heading, part.heaviest = following.heading, following.heaviest


@dataclass(frozen=True, slots=True)
class _Atom:
    """What is not cut further: characters start to end of the text, and how good a cut before it would be, 0 to 2."""

    start: int
    end: int
    cost: int
    seam: int


class _Cutter:
    """Measures and cuts the sections of one text."""

    def __init__(
        self,
        text: str,
        lines: Sequence[str],
        language: Language,
        max_tokens: int,
        overlap: int,
        count_tokens: CountTokens,
    ) -> None:
        self._text = text
        self._lines = lines
        self._language = language
        self._max_tokens = max_tokens
        self._overlap = overlap
        self._count_tokens = count_tokens
        self._offsets: list[int] = []

    def measure(self, section: Section) -> _Part:
        """Return the section without blank lines at its ends, with its cost."""
        first, last, lines = section.first, section.last, self._lines
        while first < last and not lines[first].strip():
            first += 1
        while last > first and not lines[last - 1].strip():
            last -= 1
        cost = self._cost("\n".join(lines[first:last]))
        return _Part(first, last, section.heading, section.level, cost, cost)

    def cut(self, part: _Part) -> Iterator[Chunk]:
        """Yield chunks that fit, from a part that does not."""
        if not self._offsets:
            self._offsets = [0, *accumulate(len(line) + 1 for line in self._lines)]
        atoms = list(self._atoms(part))
        begin, start = 0, atoms[0].start
        while begin < len(atoms):
            end = self._end(atoms, begin, self._max_tokens - self._cost(self._text[start : atoms[begin].start]))
            if end == begin:  # the overlap left no room
                start = atoms[begin].start
                end = self._end(atoms, begin, max(self._max_tokens, atoms[begin].cost))
            stop = atoms[end - 1].end
            first, last = (bisect_right(self._offsets, offset) for offset in (start, stop - 1))
            yield Chunk(self._text[start:stop], first, last, part.heading)
            start = self._overlap_start(atoms, begin, end)
            begin = end

    def _cost(self, text: str) -> int:
        return max(self._count_tokens(text), -(-len(text) // CHARACTERS_PER_TOKEN)) if text else 0

    def _atoms(self, part: _Part) -> Iterator[_Atom]:
        blocks = fenced_blocks(self._lines, part.first, part.last) if self._language == "markdown" else []
        fenced = dict(blocks)
        number, is_blank = part.first, False
        while number < part.last:
            start = self._offsets[number]
            block_last = fenced.get(number, number + 1)
            end = self._offsets[block_last] - 1
            cost = self._cost(self._text[start:end])
            if cost > self._max_tokens and block_last > number + 1:
                del fenced[number]
                continue
            if self._lines[number].strip():
                seam = 2 if is_blank else 1
                yield from [_Atom(start, end, cost, seam)] if cost <= self._max_tokens else self._pieces(start, end)
            is_blank = not self._lines[number].strip()
            number = block_last

    def _pieces(self, start: int, end: int) -> Iterator[_Atom]:
        """Yield the parts of a line that is over the limit, cut after a sentence, else a word, else anywhere."""
        text, seam = self._text, 1
        while start < end:
            stop = min(end, start + _PIECE_CHARACTERS)
            if stop < end:
                stop = max(text.rfind(". ", start, stop) + 1, text.rfind("。", start, stop) + 1) or stop
                if stop == min(end, start + _PIECE_CHARACTERS):
                    stop = text.rfind(" ", start + 1, stop) + 1 or stop
            cost = self._cost(text[start:stop])
            while cost > self._max_tokens and stop > start + 1:
                stop = start + (stop - start) // 2
                cost = self._cost(text[start:stop])
            if text[start:stop].strip():
                yield _Atom(start, stop, cost, seam)
                seam = 0
            start = stop

    def _end(self, atoms: Sequence[_Atom], begin: int, budget: int) -> int:
        """Return where a chunk from `begin` ends: at the best seam of its second half, the last of equals."""
        total, end, best, best_seam = 0, begin, begin, -1
        while end < len(atoms) and total + atoms[end].cost <= budget:
            total += atoms[end].cost
            end += 1
            if end == len(atoms):
                return end
            if total * 2 >= budget and atoms[end].seam >= best_seam:
                best, best_seam = end, atoms[end].seam
        return best if best_seam >= 0 else end

    def _overlap_start(self, atoms: Sequence[_Atom], begin: int, end: int) -> int:
        """Return from which character the chunk after `end` repeats the one before it."""
        room, index = self._overlap, end
        while index > begin and atoms[index - 1].cost <= room:
            index -= 1
            room -= atoms[index].cost
        if index < end:
            return atoms[index].start
        atom = atoms[end - 1]
        if self._language in {"python", "code", "config"} or "\n" in self._text[atom.start : atom.end]:
            return atoms[end].start if end < len(atoms) else atom.end
        characters = self._overlap * 4
        while characters > 0:
            start = max(atom.start, atom.end - characters)
            start = self._text.find(" ", start, atom.end) + 1
            if start == 0:
                break
            if 0 < self._cost(self._text[start : atom.end].strip()) <= self._overlap:
                return start
            characters //= 2
        return atoms[end].start if end < len(atoms) else atom.end
