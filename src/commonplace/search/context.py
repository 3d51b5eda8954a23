"""Put what was found together as one text for a model, within a budget of tokens. It searches nothing.

Passages of one owner stand together in the order in which they are read, and what two of them share stands once, as
does a text that several owners have. The best come first into the budget; the last that does not fit is cut at the end
of a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from commonplace.formats.fence import CLOSING, OPENING, Recalled, fence
from commonplace.search.choosing import distinct
from commonplace.search.hits import without_secrets
from commonplace.search.joining import (
    GAP,
    CountTokens,
    Piece,
    is_code,
    only_imports,
    says_nothing,
    shortened,
    together,
)
from commonplace.search.result import hit_json, label, reference
from commonplace.text.escaping import visible
from commonplace.types import Hit

if TYPE_CHECKING:
    from commonplace.search.result import SearchResult
    from commonplace.types import Passage

POSSIBLY_RELATED: Final = 3
"""So many memories that are weak are in a context at most, after what is likely."""
_HEADING: Final = "Possibly related:"
_LAST_LINE: Final = "References:"
_FEWEST_TOKENS: Final = 24
"""A piece with fewer is not worth its label."""

Spans = Mapping[str, tuple[int, int]]
"""Of hits, by their ids, the store's numbers of the first and the last passage that they hold."""


@dataclass(frozen=True, slots=True)
class Form:
    """What is said of the texts of a context.

    Attributes:
        metadata: whether each has a label, with type, date, trust, phase, tags and score.
        references: whether a last line names all of them.
    """

    metadata: bool = True
    references: bool = True


@dataclass(frozen=True, slots=True)
class Context:
    """What a model is to know before it does a task.

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
    following: Mapping[int, Passage] | None = None,
    weak: int | None = POSSIBLY_RELATED,
) -> Context:
    """Return the context that the hits of a result make: what is likely, and a few memories that are weak.

    Args:
        weak: how many of these at most; None takes every hit as it comes.
        max_tokens: the text has at most so many.
        count: the tokens of a text; that of two texts is at most the sum of theirs.
        following: for hits that say nothing by themselves, as `unsaid` names them, what comes next in their texts, by
            the number of the hit's passage.
    """
    hits, spans = _completed(result, following or {})
    found = distinct(hits)
    likely = {hit.id for hit in hits if weak is None or hit.confidence != "weak"}
    # What may have overtaken something likely is worth as much, however little of the question it repeats.
    likely |= {newer for newer, older in result.trace.moved.items() if older in likely}
    certain = [hit for hit in found if hit.id in likely]
    related = [hit for hit in found if hit.kind == "memory" and hit not in certain][:weak]
    text, hits = assemble(certain, related, max_tokens=max_tokens, count=count, form=form, spans=spans)
    named = tuple(dict.fromkeys(reference(hit) for hit in hits))
    return Context(
        task=result.query,
        text=text,
        references=named,
        hits=hits,
        tokens=count(text),
        degraded=result.degraded,
        notices=result.notices,
        latency_ms=result.latency_ms,
        left_out=len(certain) + len(related) - len(hits),
        agent=result.agent,
        found=result,
    )


def unsaid(result: SearchResult) -> list[int]:
    """Return the numbers of the passages among the hits that are a heading without what stands under it."""
    numbers = result.trace.numbers
    return [numbers[hit.id] for hit in result.hits if hit.id in numbers and says_nothing(hit.text, hit.path)]


def _completed(result: SearchResult, following: Mapping[int, Passage]) -> tuple[tuple[Hit, ...], Spans]:
    """Return the hits that say something: a heading has what stands under it with it, or is left out.

    Where both were found they are one hit, in the place and with the score of the better.
    """
    numbers, bare = result.trace.numbers, set(unsaid(result))
    found = {numbers[hit.id]: hit for hit in result.hits if hit.id in numbers}
    heads = {following[number].number: number for number in bare if number in following}
    hits: list[Hit] = []
    spans: dict[str, tuple[int, int]] = {}
    told: set[int] = set()
    for hit in result.hits:
        if only_imports(hit.text, hit.path):
            continue
        number = numbers.get(hit.id)
        if number is None:
            hits.append(hit)
            continue
        head = number if number in bare else heads.get(number)
        if head is None:
            hits.append(hit)
            spans[hit.id] = number, number
        elif head in following and head not in told:
            told.add(head)
            whole = _with(found[head], following[head])
            hits.extend(without_secrets([replace(hit, text=whole.text, lines=whole.lines)]))
            spans[hit.id] = head, following[head].number
    return tuple(hits), spans


def _with(hit: Hit, after: Passage) -> Hit:
    """Return a hit with the passage that follows it in its text."""
    if hit.lines is None:
        return replace(hit, text=f"{hit.text}\n\n{after.chunk.text}")
    first, last = after.chunk.start_line, after.chunk.end_line
    pieces = Piece(hit.text, hit.lines, (0, 0)), Piece(after.chunk.text, (first, last), (1, 1))
    return replace(hit, text=together(pieces), lines=(hit.lines[0], last))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A hit that has room, with as much of its text as has."""

    hit: Hit
    text: str
    is_cut: bool = False


def assemble(
    hits: Sequence[Hit],
    related: Sequence[Hit] = (),
    *,
    max_tokens: int,
    count: CountTokens,
    form: Form = Form(),
    spans: Spans | None = None,
) -> tuple[str, tuple[Hit, ...]]:
    """Return the text of as many hits as there is room for, best first, and these hits.

    Args:
        related: what comes under a heading after them, where there is room left.
    """
    room = max_tokens - count(f"{OPENING}\n{CLOSING}\n{_LAST_LINE if form.references else ''}")
    chosen = _fitting(hits, room, count, form)
    room -= sum(_cost(each.hit, each.text, count, form) for each in chosen)
    room -= count(f"{_HEADING}\n{OPENING}\n{CLOSING}\n") if chosen else count(_HEADING)
    beside = (
        [] if any(each.is_cut for each in chosen) or len(chosen) < len(hits) else _fitting(related, room, count, form)
    )
    named = tuple(each.hit for each in (*chosen, *beside))
    return _rendered(chosen, beside, form, spans or {}) if named else "", named


def _fitting(hits: Sequence[Hit], room: int, count: CountTokens, form: Form) -> list[_Chosen]:
    """Return the first hits that there is room for, the last of them cut where it is too long."""
    chosen: list[_Chosen] = []
    for hit in hits:
        # As it goes out: what is written out takes more room.
        text = visible(hit.text)
        cost = _cost(hit, text, count, form)
        if cost > room:
            piece = shortened(text, room - _cost(hit, "", count, form), count, is_code=is_code(hit.path))
            if count(piece) >= _FEWEST_TOKENS:
                chosen.append(_Chosen(hit, piece, is_cut=True))
            break
        chosen.append(_Chosen(hit, text))
        room -= cost
    return chosen


def _rendered(chosen: Sequence[_Chosen], beside: Sequence[_Chosen], form: Form, spans: Spans) -> str:
    parts = [_fenced(chosen, form, spans)] if chosen else []
    if beside:
        parts.append(f"{_HEADING}\n{_fenced(beside, form, spans)}")
    if form.references:
        named = dict.fromkeys(reference(each.hit) for each in (*chosen, *beside))
        parts.append(f"{_LAST_LINE} {', '.join(f'@{each}' for each in named)}")
    return "\n\n".join(parts)


def _fenced(chosen: Sequence[_Chosen], form: Form, spans: Spans) -> str:
    groups: dict[tuple[str, str], list[_Chosen]] = {}
    for each in chosen:
        groups.setdefault((each.hit.kind, each.hit.owner_id), []).append(each)
    return fence([_item(group, form, spans) for group in groups.values()])


def _item(group: Sequence[_Chosen], form: Form, spans: Spans) -> Recalled:
    """Return what is chosen of one owner, best first, as one text in reading order."""
    read = sorted(group, key=lambda each: (each.hit.lines or (0, 0), spans.get(each.hit.id, (0, 0))))
    pieces = [Piece(each.text, each.hit.lines, spans.get(each.hit.id), each.is_cut) for each in read]
    names = list(dict.fromkeys(reference(each.hit) for each in read))
    path = group[0].hit.path
    others = (name.removeprefix(path).removeprefix(":") if path else name for name in names[1:])
    return Recalled(
        ", ".join((names[0], *others)), together(pieces), _described(group[0].hit, [each.hit for each in read], form)
    )


def _cost(hit: Hit, text: str, count: CountTokens, form: Form) -> int:
    """Return the tokens of one passage, at most: as if nothing else stood with it."""
    item = fence([Recalled(reference(hit), text, _described(hit, [hit], form))])
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
