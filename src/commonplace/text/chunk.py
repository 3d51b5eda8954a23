"""Cut a text into chunks within a token limit, at headings, declarations and paragraphs.

A chunk is a section, or several neighbouring ones if they are tiny. Only a section over the limit is cut inside:
between paragraphs if possible, then between lines, then between sentences or words of one long line. Such chunks
overlap a little, so that a sentence at the cut is found whole. The time is linear in the length of the text.

Code is read by its layout: a declaration is a line with a known shape, at the left margin or at the first indentation
inside a class-like block. That is right for formatted code in nearly every language, and where it is wrong only the cut
moves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from commonplace.dataclasses import dataclass
from commonplace.errors import UsageError
from commonplace.lazy_regex import lazy_pattern
from commonplace.text import markdown
from commonplace.text.languages import Language
from commonplace.text.words import patterns
from commonplace.types import Chunk

_DECLARED: Final = patterns(Path(__file__).with_name("declarations.txt"))
_METHOD: Final = lazy_pattern(r"(?:[\w$<>\[\],.?*&:~]+\s+)*[*&]*([\w$~:#]+)\s*(?:<[^<>()]*>)?\(")
_NOT_METHODS: Final = frozenset(
    (
        "if for foreach while switch catch return else do sizeof typeof await new throw super assert elif "
        "match when until unless require include import print using lock with yield case"
    ).split()
)
_COMMENT: Final = ("//", "/*", "*", "#", "--", ";", "@", "[", "%")
_CLOSER: Final = lazy_pattern(r"[}\])({]|end\b|else\b|elif\b|except\b|finally\b|catch\b|rescue\b|begin\b|then\b|do\b")
_MAX_SIGNATURE_LENGTH: Final = 300


def _with_comments(lines: Sequence[str], line: int) -> int:
    """Return the first of the comment and annotation lines directly above `line`, or `line` itself."""
    while line > 0 and lines[line - 1].lstrip().startswith(_COMMENT):
        line -= 1
    return line


@dataclass(slots=True)
class _Container:
    indent: int
    name: str
    body: int = -1  # indentation of its members, unknown until the first is seen


def _layout_starts(lines: Sequence[str]) -> Iterator[markdown.Section]:
    containers: list[_Container] = []
    declared = -1  # indentation of the current declaration, -1 outside
    for number, line in enumerate(lines):
        bare = line.lstrip()
        if not bare or bare.startswith(_COMMENT):
            continue
        indent = len(line) - len(bare)
        is_closer = bool(_CLOSER.match(bare))
        while containers and indent <= containers[-1].indent and not is_closer:
            containers.pop()
        if is_closer:
            continue
        if containers and containers[-1].body < 0:
            containers[-1].body = indent
        if indent != (containers[-1].body if containers else 0):
            continue
        prefix = containers[-1].name if containers else ""
        following = lines[number + 1] if number + 1 < len(lines) else ""
        name, is_container = _declared_name(bare[:_MAX_SIGNATURE_LENGTH], following, in_container=bool(containers))
        if name:
            name = f"{prefix}.{name}" if prefix else name
            yield markdown.Section(_with_comments(lines, number), name, len(containers) + 1)
            declared = indent
            if is_container:
                containers.append(_Container(indent, name))
        elif declared >= 0 and indent <= declared:
            yield markdown.Section(_with_comments(lines, number), prefix, len(containers))
            declared = -1


def _declared_name(line: str, following: str, *, in_container: bool) -> tuple[str, bool]:
    """Return the name that a line declares, "" for none, and whether it may hold members."""
    if container := _DECLARED["container"].match(line):
        return next(filter(None, container.groups()), "").rstrip(":."), True
    if function := _DECLARED["function"].match(line):
        name = function["name"] or function["bound"] or function["table"] or function["test"]
        return f"{function['receiver']}.{name}" if function["receiver"] else name, False
    method = _METHOD.match(line)
    if method and method[1] not in _NOT_METHODS and line.split(maxsplit=1)[0] not in _NOT_METHODS:
        tail = line.rstrip()[-1:]
        if tail not in {";", ","} if in_container else tail == "{" or (tail == ")" and following.startswith("{")):
            return method[1], False
    return "", False


CountTokens = Callable[[str], int]
CHUNKER: Final = 2
"""Version of the chunker; raise it with every change that cuts a text differently."""
SMALL_TOKENS: Final = 40
"""Tokens below which a section is joined to a neighbour: alone it says too little to be found or understood."""
CHARACTERS_PER_TOKEN: Final = 8
"""Characters that count as at least one token, which limits a long run that is one unknown word."""
_PIECE_CHARACTERS: Final = 240


def chunk(
    text: str, *, language: Language = "text", max_tokens: int = 512, overlap: int = 50, count_tokens: CountTokens
) -> list[Chunk]:
    r"""Cut a text into chunks, in order, so that every non-blank line is in at least one.

    Args:
        text: with "\n" as its only line end.
        max_tokens: no chunk has more, by `count_tokens` and by its characters (8 make a token).
        overlap: maximum number of tokens that neighbouring chunks of one section share.
        count_tokens: returns the number of tokens of a text; that of two lines is at most the sum of theirs.

    Returns:
        Chunks whose `text` is exactly their whole lines, except where a single line is over the limit. Blank lines at
        a chunk's ends are dropped. A blank text has no chunks.

    Raises:
        UsageError: max_tokens is under 1, or overlap is not in 0 … max_tokens − 1.
    """
    if max_tokens < 1 or not 0 <= overlap < max_tokens:
        raise UsageError(
            f"chunks of {max_tokens} tokens with an overlap of {overlap} are impossible",
            remedy="the size must be at least 1 and the overlap under the size",
        )
    lines = text.split("\n")
    offsets = [0, *accumulate(len(line) + 1 for line in lines)]
    cutter = _Cutter(text, lines, offsets, language, max_tokens, overlap, count_tokens)
    chunks: list[Chunk] = []
    match language:
        case "markdown":
            sections = markdown.markdown_sections(lines)
        case "restructuredtext":
            sections = markdown.underlined_sections(lines)
        case "config":
            sections = markdown.config_sections(lines)
        case "python" | "code":
            sections = markdown.sections_between(_layout_starts(lines), lines)
        case "text":
            sections = markdown.sections_between((), lines)
    parts = [cutter.measure(section) for section in sections]
    for part in _join_small([part for part in parts if part.cost], max_tokens):
        if part.cost <= max_tokens:
            body = "\n".join(lines[part.first : part.last])
            chunks.append(Chunk(body, part.first + 1, part.last, part.heading))
        else:
            chunks.extend(cutter.cut(part))
    return chunks


@dataclass(slots=True)
class _Part:
    """Neighbouring sections that may form a chunk: lines `first` to `last` (half-open, no blank ends), and cost."""

    first: int
    last: int
    heading: str
    level: int
    cost: int
    heaviest: int  # cost of the section that gave the heading

    def append(self, following: _Part) -> None:
        """Absorb the following part; the heavier of the two gives the heading."""
        self.cost += following.cost + (following.first - self.last) // CHARACTERS_PER_TOKEN
        self.last = following.last
        if following.heaviest > self.heaviest or not self.heading:
            self.heading, self.heaviest = following.heading, following.heaviest


def _join_small(parts: Sequence[_Part], max_tokens: int) -> list[_Part]:
    """Join each tiny part to the next one or, at the end of its section, to the previous one."""
    joined: list[_Part] = []
    for part in (*parts, None):
        last = joined[-1] if joined else None
        is_tiny = last is not None and last.cost < SMALL_TOKENS
        if part and last and is_tiny and part.level >= last.level and last.cost + part.cost <= max_tokens:
            last.append(part)
            continue
        if last and is_tiny and len(joined) > 1:
            previous = joined[-2]
            if (last.level >= previous.level or not last.heading) and previous.cost + last.cost <= max_tokens:
                previous.append(joined.pop())
        if part:
            joined.append(part)
    return joined


@dataclass(frozen=True, slots=True)
class _Atom:
    """An uncut range of characters, `start` to `end`, with the quality of a cut before it as `seam`, 0 to 2."""

    start: int
    end: int
    cost: int
    seam: int


@dataclass(frozen=True, slots=True)
class _Cutter:
    text: str
    lines: Sequence[str]
    offsets: Sequence[int]
    language: Language
    max_tokens: int
    overlap: int
    count_tokens: CountTokens

    def measure(self, section: markdown.Section) -> _Part:
        first, last, lines = section.first, section.last, self.lines
        while first < last and not lines[first].strip():
            first += 1
        while last > first and not lines[last - 1].strip():
            last -= 1
        cost = self._cost("\n".join(lines[first:last]))
        return _Part(first, last, section.heading, section.level, cost, cost)

    def cut(self, part: _Part) -> Iterator[Chunk]:
        """Yield the chunks of a part that is over the limit."""
        atoms = list(self._atoms(part))
        begin, start = 0, atoms[0].start
        while begin < len(atoms):
            end = self._end(atoms, begin, self.max_tokens - self._cost(self.text[start : atoms[begin].start]))
            if end == begin:  # the overlap left no room
                start = atoms[begin].start
                end = self._end(atoms, begin, max(self.max_tokens, atoms[begin].cost))
            stop = atoms[end - 1].end
            first, last = (bisect_right(self.offsets, offset) for offset in (start, stop - 1))
            yield Chunk(self.text[start:stop], first, last, part.heading)
            start = self._overlap_start(atoms, begin, end)
            begin = end

    def _cost(self, text: str) -> int:
        return max(self.count_tokens(text), -(-len(text) // CHARACTERS_PER_TOKEN)) if text else 0

    def _atoms(self, part: _Part) -> Iterator[_Atom]:
        blocks = markdown.fenced_blocks(self.lines, part.first, part.last) if self.language == "markdown" else []
        fenced = dict(blocks)
        number, is_blank = part.first, False
        while number < part.last:
            start = self.offsets[number]
            block_last = fenced.get(number, number + 1)
            end = self.offsets[block_last] - 1
            cost = self._cost(self.text[start:end])
            if cost > self.max_tokens and block_last > number + 1:
                del fenced[number]
                continue
            if self.lines[number].strip():
                seam = 2 if is_blank else 1
                yield from [_Atom(start, end, cost, seam)] if cost <= self.max_tokens else self._pieces(start, end)
            is_blank = not self.lines[number].strip()
            number = block_last

    def _pieces(self, start: int, end: int) -> Iterator[_Atom]:
        """Yield the pieces of a line over the limit, cut after a sentence, else after a word, else anywhere."""
        text, seam = self.text, 1
        while start < end:
            stop = min(end, start + _PIECE_CHARACTERS)
            if stop < end:
                stop = max(text.rfind(". ", start, stop) + 1, text.rfind("。", start, stop) + 1) or stop
                if stop == min(end, start + _PIECE_CHARACTERS):
                    stop = text.rfind(" ", start + 1, stop) + 1 or stop
            cost = self._cost(text[start:stop])
            while cost > self.max_tokens and stop > start + 1:
                stop = start + (stop - start) // 2
                cost = self._cost(text[start:stop])
            if text[start:stop].strip():
                yield _Atom(start, stop, cost, seam)
                seam = 0
            start = stop

    def _end(self, atoms: Sequence[_Atom], begin: int, budget: int) -> int:
        """Return the end of a chunk from `begin`: the best seam of its second half, the last of equals."""
        total, end, best, best_seam = 0, begin, begin, -1
        while end < len(atoms) and total + atoms[end].cost <= budget:
            total += atoms[end].cost
            end += 1
            if end == len(atoms):
                return end
            # A better seam in the first half would leave chunks half empty.
            if total * 2 >= budget and atoms[end].seam >= best_seam:
                best, best_seam = end, atoms[end].seam
        return best if best_seam >= 0 else end

    def _overlap_start(self, atoms: Sequence[_Atom], begin: int, end: int) -> int:
        """Return the character at which the next chunk starts, with its overlap."""
        room, index = self.overlap, end
        while index > begin and atoms[index - 1].cost <= room:
            index -= 1
            room -= atoms[index].cost
        if index < end:
            return atoms[index].start
        atom = atoms[end - 1]
        is_lines = self.language in {"python", "code", "config"} or "\n" in self.text[atom.start : atom.end]
        characters = 0 if is_lines else self.overlap * 4
        while characters > 0:
            start = max(atom.start, atom.end - characters)
            start = self.text.find(" ", start, atom.end) + 1
            if start == 0:
                break
            if 0 < self._cost(self.text[start : atom.end].strip()) <= self.overlap:
                return start
            characters //= 2
        return atoms[end].start if end < len(atoms) else atom.end
