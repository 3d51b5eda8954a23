"""Put what was found together as one text for a model, within a budget of tokens. It searches nothing.

Passages of one owner stand together in the order in which they are read, and what two of them share stands once, as
does a text that several owners have. The best come first into the budget; the last that does not fit is cut at the end
of a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from commonplace.formats.fence import CLOSING, OPENING, Recalled, fence
from commonplace.search.result import hit_json, label, reference
from commonplace.types import Hit

if TYPE_CHECKING:
    from commonplace.search.result import SearchResult

_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？]|\n(?=\n)")
_GAP: Final = "\n\n[…]\n\n"
_LAST_LINE: Final = "References:"
_MOST_SHARED: Final = 4_000
"""Characters that two neighbouring passages have in common at most."""
_FEWEST_TOKENS: Final = 24
"""A piece with fewer is not worth its label."""

CountTokens = Callable[[str], int]


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
        text: fenced and labelled data, and a line that names the references; "" where nothing is relevant.
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


def context_of(result: SearchResult, *, max_tokens: int, count: CountTokens, form: Form = Form()) -> Context:
    """Return the context that the hits of a result make.

    Args:
        max_tokens: the text has at most so many.
        count: the tokens of a text; that of two texts is at most the sum of theirs.
    """
    found = distinct(result.hits)
    text, hits = assemble(found, max_tokens=max_tokens, count=count, form=form)
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
        left_out=len(found) - len(hits),
        agent=result.agent,
        found=result,
    )


def distinct(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the hits without those whose text a better one has, whatever the white space."""
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(" ".join(hit.text.split()), hit)
    return tuple(first.values())


def assemble(
    hits: Sequence[Hit], *, max_tokens: int, count: CountTokens, form: Form = Form()
) -> tuple[str, tuple[Hit, ...]]:
    """Return the text of as many hits as there is room for, best first, and these hits."""
    chosen: list[tuple[Hit, str]] = []
    room = max_tokens - count(f"{OPENING}\n{CLOSING}\n{_LAST_LINE if form.references else ''}")
    for hit in hits:
        cost = _cost(hit, hit.text, count, form)
        if cost > room:
            piece = shortened(hit.text, room - _cost(hit, "", count, form), count)
            if count(piece) >= _FEWEST_TOKENS:
                chosen.append((hit, piece))
            break
        chosen.append((hit, hit.text))
        room -= cost
    return _rendered(chosen, form) if chosen else "", tuple(hit for hit, _ in chosen)


def shortened(text: str, room: int, count: CountTokens) -> str:
    """Return the longest beginning of a text that ends with a sentence and has at most `room` tokens; perhaps ""."""
    if count(text) <= room:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    fitting = bisect_right(ends, room, key=lambda end: count(text[:end]))
    return text[: ends[fitting - 1]].rstrip() if fitting else ""


def _rendered(chosen: Sequence[tuple[Hit, str]], form: Form) -> str:
    groups: dict[str, list[tuple[Hit, str]]] = {}
    for hit, text in chosen:
        groups.setdefault(hit.owner_id, []).append((hit, text))
    items = [
        Recalled(
            ", ".join(dict.fromkeys(reference(hit) for hit, _ in group)),
            _joined([text for _, text in sorted(group, key=lambda each: each[0].lines or (0, 0))]),
            _described(group[0][0], form),
        )
        for group in groups.values()
    ]
    if not form.references:
        return fence(items)
    named = dict.fromkeys(reference(hit) for hit, _ in chosen)
    return f"{fence(items)}\n\n{_LAST_LINE} {', '.join(f'@{each}' for each in named)}"


def _cost(hit: Hit, text: str, count: CountTokens, form: Form) -> int:
    """Return the tokens of one passage, at most: as if nothing else stood with it."""
    item = fence([Recalled(reference(hit), text, _described(hit, form))]).removeprefix(OPENING).removesuffix(CLOSING)
    return count(item) + count(f"{_GAP}, , @{reference(hit)}")


def _described(hit: Hit, form: Form) -> str:
    """Return what the text's reader is told of it, "" where nothing is."""
    if not form.metadata:
        return ""
    parts = (label(hit), hit.phase and f"phase {hit.phase}", hit.tags and f"tags {' '.join(hit.tags)}")
    return ", ".join(part for part in parts if part)


def _joined(texts: Sequence[str]) -> str:
    """Return passages in their order as one text; what one ends with and the next begins with stands once."""
    whole = texts[0]
    for text in texts[1:]:
        shared = _shared(whole, text)
        whole = whole + text[shared:] if shared else f"{whole}{_GAP}{text}"
    return whole


def _shared(first: str, second: str) -> int:
    """Return the length of the longest end of one text that is the beginning of another, by whole lines."""
    most = min(len(first), len(second), _MOST_SHARED)
    starts = [0, *(match.end() for match in re.finditer("\n", second[:most])), most]
    lengths = {length for start in starts for length in (start - 1, start) if length > 0}
    return next((length for length in sorted(lengths, reverse=True) if first.endswith(second[:length])), 0)
