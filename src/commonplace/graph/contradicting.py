"""Tell what two facts of which one only can hold mean for each other. It knows times and trust, no names and no store.

The rule: the newer of two facts ends the older one only in the clear case, where both hold at some moment and the older
one began before the newer one. It is not clear, and both are disputed, where somebody still said the older one after
the newer one is to have begun, where the newer one is trusted less or hardly said, where it ends before the older one
does, where both began at once, and where nobody knows when one began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from commonplace.graph.timelines import Span, overlap

LEAST_SURE: Final = 0.5
"""What is said with less confidence ends nothing."""

Ruling = Literal["apart", "closes", "disputed"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What counts of a fact when it meets another. Times are seconds since the epoch.

    Attributes:
        is_dated: its sources say since when it holds; else `valid_from` is when the first of them said so.
        still: the last time that a source said that it holds just then.
        told: the last time that a source said it at all.
    """

    valid_from: float | None
    valid_to: float | None = None
    is_dated: bool = False
    still: float | None = None
    told: float | None = None
    trust: float = 1.0
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What two facts mean for each other.

    Attributes:
        is_first_older: where the ruling is `closes`: it is the first of the two that ends, else the second.
        at: when it ends; None for other rulings.
        reason: a clause for people, that says nothing of what the facts say.
    """

    ruling: Ruling
    is_first_older: bool = False
    at: float | None = None
    reason: str = ""


def judge(first: Standing, second: Standing) -> Verdict:
    """Return what becomes of two facts of one source and a single-valued type whose targets differ.

    Which of them came first into the graph does not matter, only when they hold and what their sources said.
    """
    if overlap(Span(first.valid_from, first.valid_to), Span(second.valid_from, second.valid_to)) is None:
        return Verdict("apart")
    if first.valid_from is None or second.valid_from is None:
        return Verdict("disputed", reason="nobody said since when one of them holds")
    if first.valid_from == second.valid_from:
        return Verdict("disputed", reason="both are said to hold from the same moment on")
    is_first_older = first.valid_from < second.valid_from
    older, newer = (first, second) if is_first_older else (second, first)
    assert newer.valid_from is not None
    doubt = _doubt(older, newer, newer.valid_from)
    if doubt:
        return Verdict("disputed", reason=doubt)
    return Verdict("closes", is_first_older, newer.valid_from, "a newer fact began then, and only one of them can hold")


def _doubt(older: Standing, newer: Standing, began: float) -> str:
    """Return why it is not clear that the newer fact ends the older one, "" where it is."""
    if newer.valid_to is not None and (older.valid_to is None or newer.valid_to < older.valid_to):
        return "the newer one ends before the older one"
    if older.still is not None and older.still > began:
        return "the older one was still said after the newer one is to have begun"
    if not newer.is_dated and older.told is not None and older.told > began:
        return "what is older in the world was said later"
    if newer.trust < older.trust:
        return "the source of the newer one is trusted less"
    if newer.confidence < LEAST_SURE:
        return "the newer one is hardly said"
    return ""
