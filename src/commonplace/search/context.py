"""Assemble hits into one text for a model within a token budget.

Passages of one owner are kept together in reading order, and overlaps and duplicates are written once. The best fill
the budget first; the last that does not fit is cut at the end of a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final

from commonplace.dataclasses import dataclass, field, replace
from commonplace.formats.escaping import visible
from commonplace.formats.fence import CLOSING, OPENING, FenceItem, fence
from commonplace.lazy_regex import lazy_pattern
from commonplace.search.result import SearchResult, hit_json, label, reference, without_secrets
from commonplace.store.store import Store
from commonplace.text.languages import PROSE, language_of
from commonplace.text.markdown import front_matter_end
from commonplace.text.sentences import stretches
from commonplace.types import Hit

GAP: Final = "\n\n[…]\n\n"
_HEADING: Final = lazy_pattern(r"\s*(?:#{1,6}\s.*|={1,6}\s+\S.*|\.\. _[^:]*:)\s*")
_RULE: Final = lazy_pattern(r"\s*([=\-~^\"*#+])\1{2,}\s*")
_MAX_SHARED: Final = 4_000
"""Characters that two neighbouring passages have in common at most."""
_MIN_SHARED, _MIN_SHARED_NEXT = 12, 4
"""What is shared and is no whole lines is no chance if it has so many characters; fewer of two that follow another."""
_MAX_BLANK: Final = 3
CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A hit with its text in a context, or the beginning of it where `is_cut`.

    Attributes:
        number: of its passage, in a store that numbers those of one text without a gap; else None.
    """

    hit: Hit
    text: str
    number: int | None = None
    is_cut: bool = False


def together(pieces: Sequence[Piece]) -> str:
    """Return pieces of one text, in the order in which they are read, as one text; what two share is written once."""
    whole = pieces[0].text
    for before, piece in pairwise(pieces):
        steps = 0 if before.number is None or piece.number is None else piece.number - before.number
        is_next, is_apart = steps == 1, steps > 1
        gap = GAP if before.is_cut or not is_next else "\n\n"
        if before.hit.lines and piece.hit.lines:
            lines = piece.hit.lines[0] - before.hit.lines[1]
            is_apart = lines > 0  # they are known to have nothing in common
            if gap != GAP:
                gap = "\n" * min(lines, _MAX_BLANK) if lines > 0 else " "
        shared = 0
        if not before.is_cut and not is_apart:
            # The longest end of what is there that begins the next piece: whole lines, or no few characters.
            most = min(len(whole), len(piece.text), _MAX_SHARED)
            starts = [0, *(match.end() for match in re.finditer("\n", piece.text[:most])), most]
            ends = {length for start in starts for length in (start - 1, start) if length > 0}
            fewest = _MIN_SHARED_NEXT if is_next else _MIN_SHARED
            lengths = chain(sorted(ends, reverse=True), range(most, fewest - 1, -1))
            shared = next((length for length in lengths if whole.endswith(piece.text[:length])), 0)
        whole += piece.text[shared:] if shared else gap + piece.text
    return whole


def shortened(text: str, room: int, count: CountTokens, *, is_code: bool = False) -> str:
    """Return the longest beginning of a text that has at most `room` tokens and ends well; perhaps "".

    Prose ends with a sentence or a paragraph, never with a heading or within fenced code; code ends with a line.
    """
    if count(text) <= room:
        return text
    ends = [match.end() for match in re.finditer("\n", text)] if is_code else [each.end for each in stretches(text)]
    fitting = bisect_right(ends, room, key=lambda end: count(text[:end]))
    piece = text[: ends[fitting - 1]].rstrip() if fitting else ""
    return piece if is_code else _without_last_heading(piece)


def is_cut_by_lines(path: str) -> bool:
    """Return whether the file of this path is cut by lines: source code or configuration."""
    language = language_of(path.rpartition("/")[2])
    return language is not None and language not in PROSE


def says_nothing(text: str, path: str) -> bool:
    """Return whether a passage is front matter or a heading, or the first line of a declaration, and nothing else."""
    lines = text.split("\n")
    lines = [line for line in lines[front_matter_end(lines) :] if line.strip()]
    if is_cut_by_lines(path):
        return len(lines) == 1 and lines[0].rstrip().endswith((":", "{"))
    return not _without_last_heading("\n".join(lines))


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


LINE: Final = 120


def distinct(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those whose text a better one has, whatever the white space."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(" ".join(hit.text.split()), hit)
    return tuple(first.values())


def one_line_artifacts(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with each artifact once, by one line of its best passage: a name to look it up by."""
    found: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.kind != "artifact":
            found[hit.kind, hit.id] = hit
        elif (hit.kind, hit.owner_id) not in found:
            lines = (" ".join(line.split()) for line in hit.text.splitlines())
            first = next((line for line in lines if any(map(str.isalnum, line))), "")
            found[hit.kind, hit.owner_id] = replace(hit, id=hit.owner_id, text=first[:LINE])
    return tuple(found.values())


def of_the_first_owners(hits: Sequence[Hit], most: int) -> tuple[Hit, ...]:
    """Return the hits of the first owners, at most so many of them, in their order."""
    owners = set(list(dict.fromkeys((hit.kind, hit.owner_id) for hit in hits))[:most])
    return tuple(hit for hit in hits if (hit.kind, hit.owner_id) in owners)


POSSIBLY_RELATED: Final = 3
"""So many memories that are weak are in a context at most, after what is likely."""
_CONTEXT_HEADING: Final = "Possibly related:"
_LAST_LINE: Final = "References:"
_MIN_TOKENS: Final = 24
"""A piece with fewer is not worth its label."""


@dataclass(frozen=True, slots=True)
class Form:
    """What is said of the texts of a context: whether each has a label, and whether a last line names all of them."""

    metadata: bool = True
    references: bool = True


@dataclass(frozen=True, slots=True)
class Context:
    """What a model should know before a task.

    Attributes:
        text: fenced and labelled data, likely passages first, then, under a heading, weak memories; and a line that
            names the references; "" where nothing is relevant.
        references: how people and tools name what stands in it, best first.
        hits: what stands in it, best first; the last one may be cut short in the text.
        tokens: of the text, counted by the default embedder's vocabulary.
        degraded, notices: as of the search behind it.
        left_out: how many relevant passages had no room.
        agent: whose strategy chose, "" where nobody's did.
        found: the search behind it, None without a task.
    """

    task: str
    text: str
    references: tuple[str, ...]
    hits: tuple[Hit, ...]
    tokens: int
    degraded: bool = False
    notices: tuple[str, ...] = ()
    latency_ms: int = 0
    left_out: int = 0
    agent: str = ""
    found: SearchResult | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "task": self.task,
            "agent_type": self.agent or None,
            "text": self.text,
            "references": [f"@{each}" for each in self.references],
            "tokens": self.tokens,
            "left_out": self.left_out,
            "hits": [hit_json(hit) for hit in self.hits],
            "degraded": self.degraded,
            "notices": list(self.notices),
            "latency_ms": self.latency_ms,
        }


def context_of(
    result: SearchResult,
    *,
    max_tokens: int,
    count: CountTokens,
    form: Form = Form(),
    weak: int | None = POSSIBLY_RELATED,
) -> Context:
    """Return the context that the hits of a result make: what is likely, and a few memories that are weak.

    Args:
        weak: how many of these at most; None takes every hit as it comes.
        max_tokens: the text has at most so many.
        count: the tokens of a text; that of two texts is at most the sum of theirs.
    """
    found = distinct(result.hits)
    likely = {hit.id for hit in found if weak is None or hit.confidence != "weak"}
    # What may have overtaken something likely is worth as much, however little of the question it repeats.
    likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
    certain = [hit for hit in found if hit.id in likely]
    related = [hit for hit in found if hit.kind == "memory" and hit not in certain][:weak]
    numbers = result.trace.numbers
    text, hits = assemble(certain, related, max_tokens=max_tokens, count=count, form=form, numbers=numbers)
    return Context(
        task=result.query,
        text=text,
        references=tuple(dict.fromkeys(map(reference, hits))),
        hits=hits,
        tokens=count(text),
        degraded=result.degraded,
        notices=result.notices,
        latency_ms=result.latency_ms,
        left_out=len(certain) + len(related) - len(hits),
        agent=result.agent,
        found=result,
    )


def with_text_under(result: SearchResult, store: Store) -> SearchResult:
    """Return the result with the text under each bare heading, which alone tells nothing; one without any is left out.

    Args:
        store: the one that was searched.
    """
    numbers, hits = result.trace.numbers, list[Hit]()
    bare = {numbers[hit.id] for hit in result.hits if hit.id in numbers and says_nothing(hit.text, hit.path)}
    asked = [number for head in bare for number in (head, head + 1)]
    passages = store.passages(result.namespace, asked) if bare else {}
    for hit in result.hits:
        number = numbers.get(hit.id)
        if number is None or number not in bare:
            hits.append(hit)
            continue
        head, under = passages.get(number), passages.get(number + 1)
        # Where the text under it was found too, that passage names the heading itself.
        if head and under and head.owner_number == under.owner_number and number + 1 not in numbers.values():
            lines = (hit.lines[0], under.chunk.end_line) if hit.lines else None
            hits += without_secrets([replace(hit, text=f"{hit.text}\n\n{under.chunk.text}", lines=lines)])
    return replace(result, hits=tuple(hits))


def assemble(
    hits: Sequence[Hit],
    related: Sequence[Hit] = (),
    *,
    max_tokens: int,
    count: CountTokens,
    form: Form = Form(),
    numbers: Mapping[str, int] | None = None,
) -> tuple[str, tuple[Hit, ...]]:
    """Return the text of as many hits as there is room for, best first, and these hits.

    Args:
        related: what comes under a heading after them, where there is room left.
        numbers: of the passages of hits, by their ids; see `Piece`.
    """
    room = max_tokens - count(f"{OPENING}\n{CLOSING}\n{_LAST_LINE if form.references else ''}")
    known, parts, named = numbers or {}, list[str](), list[Hit]()
    for heading, some in ("", hits), (_CONTEXT_HEADING, related):
        if heading:
            room -= count(f"{heading}\n{OPENING}\n{CLOSING}\n") if parts else count(heading)
        chosen: list[Piece] = []
        for hit in some:
            # As it goes out: what is written out takes more room.
            text, number = visible(hit.text), known.get(hit.id)
            cost = _cost(hit, text, count, form)
            if cost > room:
                text = shortened(text, room - _cost(hit, "", count, form), count, is_code=is_cut_by_lines(hit.path))
                if count(text) >= _MIN_TOKENS:
                    chosen.append(Piece(hit, text, number, is_cut=True))
                break
            chosen.append(Piece(hit, text, number))
            room -= cost
        if chosen:
            fenced = _fenced(chosen, form)
            parts.append(f"{heading}\n{fenced}" if heading else fenced)
            named += [piece.hit for piece in chosen]
        if len(chosen) < len(some) or any(piece.is_cut for piece in chosen):
            break  # there is no room for what is only related
    if form.references and named:
        parts.append(f"{_LAST_LINE} {', '.join(f'@{each}' for each in dict.fromkeys(map(reference, named)))}")
    return "\n\n".join(parts), tuple(named)


def _fenced(chosen: Sequence[Piece], form: Form) -> str:
    """Return pieces as fenced data: those of one owner are one text in reading order."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in chosen:
        groups.setdefault((piece.hit.kind, piece.hit.owner_id), []).append(piece)
    items = []
    for group in groups.values():
        read = sorted(group, key=lambda piece: (piece.hit.lines or (0, 0), piece.number or 0))
        best, path = group[0].hit, group[0].hit.path
        names = list(dict.fromkeys(reference(piece.hit) for piece in read))
        others = (name.removeprefix(path).removeprefix(":") if path else name for name in names[1:])
        told = _described(best, [piece.hit for piece in read], form)
        items.append(FenceItem(", ".join((names[0], *others)), together(read), told))
    return fence(items)


def _cost(hit: Hit, text: str, count: CountTokens, form: Form) -> int:
    """Return the tokens of one passage, at most: as if nothing else stood with it."""
    item = fence([FenceItem(reference(hit), text, _described(hit, [hit], form))])
    return count(item.removeprefix(OPENING).removesuffix(CLOSING)) + count(f"{GAP}, , , @{reference(hit)}")


def _described(best: Hit, hits: Sequence[Hit], form: Form) -> str:
    """Return what the text's reader is told of it, "" where nothing is."""
    if not form.metadata:
        return ""
    # A reference without an anchor has lines, no name.
    names = dict.fromkeys(hit.heading for hit in hits if hit.heading and not hit.anchor)
    parts = (
        label(best),
        best.phase and f"phase {best.phase}",
        best.tags and f"tags {' '.join(best.tags)}",
        names and f"of {', '.join(names)}",
    )
    return ", ".join(part for part in parts if part)
