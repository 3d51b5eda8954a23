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
"""Maximum number of characters that two neighbouring passages share."""
_MIN_SHARED, _MIN_SHARED_NEXT = 12, 4
"""Least number of shared characters, other than whole lines, that is no chance; fewer for consecutive passages."""
_MAX_BLANK: Final = 3
CountTokens = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A hit with its text in a context, or the beginning of it where `is_cut`.

    Attributes:
        number: of its passage, in a store that numbers the passages of one text without gaps; else None.
    """

    hit: Hit
    text: str
    number: int | None = None
    is_cut: bool = False


def together(pieces: Sequence[Piece]) -> str:
    """Return pieces of one text, given in reading order, as one text; what two of them share is written once."""
    joined = pieces[0].text
    for previous, piece in pairwise(pieces):
        steps = 0 if previous.number is None or piece.number is None else piece.number - previous.number
        is_next, is_apart = steps == 1, steps > 1
        gap = GAP if previous.is_cut or not is_next else "\n\n"
        if previous.hit.lines and piece.hit.lines:
            lines = piece.hit.lines[0] - previous.hit.lines[1]
            is_apart = lines > 0  # they are known to have nothing in common
            if gap != GAP:
                gap = "\n" * min(lines, _MAX_BLANK) if lines > 0 else " "
        shared = 0
        if not previous.is_cut and not is_apart:
            # The longest end of the text so far that begins the next piece: whole lines, or enough characters.
            longest = min(len(joined), len(piece.text), _MAX_SHARED)
            starts = [0, *(match.end() for match in re.finditer("\n", piece.text[:longest])), longest]
            ends = {length for start in starts for length in (start - 1, start) if length > 0}
            shortest = _MIN_SHARED_NEXT if is_next else _MIN_SHARED
            lengths = chain(sorted(ends, reverse=True), range(longest, shortest - 1, -1))
            shared = next((length for length in lengths if joined.endswith(piece.text[:length])), 0)
        joined += piece.text[shared:] if shared else gap + piece.text
    return joined


def shortened(text: str, room: int, count: CountTokens, *, is_code: bool = False) -> str:
    """Return the longest beginning of a text that has at most `room` tokens and ends well; perhaps "".

    Prose ends with a sentence or a paragraph, never with a heading or within fenced code; code ends with a line.
    """
    if count(text) <= room:
        return text
    ends = [match.end() for match in re.finditer("\n", text)] if is_code else [span.end for span in stretches(text)]
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
            # A line under a title goes with the title; a line above it is then the last one.
            del lines[-2 if len(lines) > 1 and lines[-2].strip() else -1 :]
        else:
            break
    return "\n".join(lines)


LINE: Final = 120


def distinct(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those whose text, white space aside, a better one has."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(" ".join(hit.text.split()), hit)
    return tuple(first.values())


def one_line_artifacts(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits with each artifact once, by one line of its best passage: a name to look it up by."""
    by_owner: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        if hit.kind != "artifact":
            by_owner[hit.kind, hit.id] = hit
        elif (hit.kind, hit.owner_id) not in by_owner:
            lines = (" ".join(line.split()) for line in hit.text.splitlines())
            first = next((line for line in lines if any(map(str.isalnum, line))), "")
            by_owner[hit.kind, hit.owner_id] = replace(hit, id=hit.owner_id, text=first[:LINE])
    return tuple(by_owner.values())


def of_the_first_owners(hits: Sequence[Hit], most: int) -> tuple[Hit, ...]:
    """Return the hits of the first `most` owners, in their order."""
    owners = set(list(dict.fromkeys((hit.kind, hit.owner_id) for hit in hits))[:most])
    return tuple(hit for hit in hits if (hit.kind, hit.owner_id) in owners)


POSSIBLY_RELATED: Final = 3
"""Maximum number of weak memories in a context, after the likely hits."""
_CONTEXT_HEADING: Final = "Possibly related:"
_LAST_LINE: Final = "References:"
_MIN_TOKENS: Final = 24
"""Number of tokens below which a cut piece is not worth its label."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a context says about its texts: whether each has a label, and whether a last line names all of them."""

    metadata: bool = True
    references: bool = True


@dataclass(frozen=True, slots=True)
class Context:
    """What a model should know before a task.

    Attributes:
        text: fenced and labelled data, likely passages first, then, under a heading, weak memories; and a line that
            names the references; "" if nothing is relevant.
        references: how people and tools name its passages, best first.
        hits: the hits in it, best first; the last one may be cut short in the text.
        tokens: of the text, counted by the default embedder's vocabulary.
        degraded, notices: those of the search behind it.
        left_out: how many relevant passages had no room.
        agent: the agent whose strategy was used, "" without one.
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
            "references": [f"@{name}" for name in self.references],
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
    """Return the context made of a result's likely hits and a few weak memories.

    Args:
        weak: maximum number of weak memories; None takes every hit in order.
        max_tokens: maximum number of tokens of the text.
        count: returns the tokens of a text; two texts together have at most the sum of theirs.
    """
    unique = distinct(result.hits)
    likely_ids = {hit.id for hit in unique if weak is None or hit.confidence != "weak"}
    # What may supersede a likely hit counts as likely, however little of the question it repeats.
    likely_ids |= {newer for newer, older in result.trace.moved.items() if older in likely_ids}
    likely_hits = [hit for hit in unique if hit.id in likely_ids]
    related = [hit for hit in unique if hit.kind == "memory" and hit not in likely_hits][:weak]
    numbers = result.trace.numbers
    text, hits = assemble(likely_hits, related, max_tokens=max_tokens, count=count, form=form, numbers=numbers)
    return Context(
        task=result.query,
        text=text,
        references=tuple(dict.fromkeys(map(reference, hits))),
        hits=hits,
        tokens=count(text),
        degraded=result.degraded,
        notices=result.notices,
        latency_ms=result.latency_ms,
        left_out=len(likely_hits) + len(related) - len(hits),
        agent=result.agent,
        found=result,
    )


def with_text_under(result: SearchResult, store: Store) -> SearchResult:
    """Return the result with the text under each bare heading; drop a heading without text, or whose text is a hit.

    Args:
        store: the one that was searched.
    """
    numbers, hits = result.trace.numbers, list[Hit]()
    bare = {numbers[hit.id] for hit in result.hits if hit.id in numbers and says_nothing(hit.text, hit.path)}
    passage_numbers = [number for head in bare for number in (head, head + 1)]
    passages = store.passages(result.namespace, passage_numbers) if bare else {}
    for hit in result.hits:
        number = numbers.get(hit.id)
        if number is None or number not in bare:
            hits.append(hit)
            continue
        head, body = passages.get(number), passages.get(number + 1)
        # Where the text under it was found too, that passage names the heading itself.
        if head and body and head.owner_number == body.owner_number and number + 1 not in numbers.values():
            lines = (hit.lines[0], body.chunk.end_line) if hit.lines else None
            hits += without_secrets([replace(hit, text=f"{hit.text}\n\n{body.chunk.text}", lines=lines)])
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
        related: what follows under a heading, if there is room left.
        numbers: of the passages of hits, by their ids; see `Piece`.
    """
    room = max_tokens - count(f"{OPENING}\n{CLOSING}\n{_LAST_LINE if form.references else ''}")
    passage_numbers, parts, cited = numbers or {}, list[str](), list[Hit]()
    for heading, group in ("", hits), (_CONTEXT_HEADING, related):
        if heading:
            room -= count(f"{heading}\n{OPENING}\n{CLOSING}\n") if parts else count(heading)
        chosen: list[Piece] = []
        for hit in group:
            # As it will be written: escaped characters take more room.
            text, number = visible(hit.text), passage_numbers.get(hit.id)
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
            cited += [piece.hit for piece in chosen]
        if len(chosen) < len(group) or any(piece.is_cut for piece in chosen):
            break  # there is no room for what is only related
    if form.references and cited:
        parts.append(f"{_LAST_LINE} {', '.join(f'@{name}' for name in dict.fromkeys(map(reference, cited)))}")
    return "\n\n".join(parts), tuple(cited)


def _fenced(chosen: Sequence[Piece], form: Form) -> str:
    """Return pieces as fenced data: those of one owner are one text in reading order."""
    groups: dict[tuple[str, str], list[Piece]] = {}
    for piece in chosen:
        groups.setdefault((piece.hit.kind, piece.hit.owner_id), []).append(piece)
    items = []
    for group in groups.values():
        ordered = sorted(group, key=lambda piece: (piece.hit.lines or (0, 0), piece.number or 0))
        best, path = group[0].hit, group[0].hit.path
        names = list(dict.fromkeys(reference(piece.hit) for piece in ordered))
        suffixes = (name.removeprefix(path).removeprefix(":") if path else name for name in names[1:])
        description = _description(best, [piece.hit for piece in ordered], form)
        items.append(FenceItem(", ".join((names[0], *suffixes)), together(ordered), description))
    return fence(items)


def _cost(hit: Hit, text: str, count: CountTokens, form: Form) -> int:
    """Return an upper bound of the tokens of one passage: as if it stood alone."""
    item = fence([FenceItem(reference(hit), text, _description(hit, [hit], form))])
    return count(item.removeprefix(OPENING).removesuffix(CLOSING)) + count(f"{GAP}, , , @{reference(hit)}")


def _description(best: Hit, hits: Sequence[Hit], form: Form) -> str:
    if not form.metadata:
        return ""
    # A reference without an anchor gives lines, not the heading.
    names = dict.fromkeys(hit.heading for hit in hits if hit.heading and not hit.anchor)
    parts = (
        label(best),
        best.phase and f"phase {best.phase}",
        best.tags and f"tags {' '.join(best.tags)}",
        names and f"of {', '.join(names)}",
    )
    return ", ".join(part for part in parts if part)
