"""Say whether a fact that is called off never came about, and what goes on without it. It knows no store."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commonplace.graph.contradicting import LEAST_SURE

if TYPE_CHECKING:
    from commonplace.graph.evidence import Evidence
    from commonplace.graph.facts import Fact

_MOVE: Final = re.compile(
    r"\b(?:mov(?:e|es|ed|ing)|relocat\w+|switch\w*|migrat\w+|settl(?:e|es|ed|ing)|join(?:s|ed|ing)?|start(?:s|ed|ing)?|hire[sd]?|hiring)\b",
    re.IGNORECASE,
)


def is_move(fact: str) -> bool:
    """Tell whether a sentence says how a fact began: only what began can be called off."""
    return _MOVE.search(fact) is not None


def why_not_taken_back(fact: Fact, evidence: Evidence) -> str:
    """Return why it is not clear that a fact never came about as a source says, "" where it is."""
    if evidence.confidence < LEAST_SURE:
        return "that it never came about is hardly said"
    if evidence.trust < fact.trust:
        return "the source that says it never came about is trusted less"
    if not is_move(fact.text):
        return "it is said never to have come about, and was not said to be a move"
    if any(each is not None and each > evidence.told for each in (fact.still, fact.told)):
        return "it was still said after it is said never to have come about"
    return ""


def was_ended_by(other: Fact, fact: Fact) -> bool:
    """Tell whether a fact was learnt to have ended where another one began."""
    has_ended = other.expired_at is not None and not other.is_retracted and other.id != fact.id
    return has_ended and other.valid_to is not None and other.valid_to == fact.valid_from


def gone_on(ended: Fact, by: Fact, evidence: Evidence, id_: str) -> Fact:
    """Return the fact that an ended one goes on as where what had ended it never came about, as we learn now."""
    return replace(
        ended,
        id=id_,
        created_at=evidence.at,
        valid_from=by.valid_from,
        valid_to=ended.stated_to,
        stated_to=ended.stated_to,
        expired_at=None,
        dispute="",
        disputed_at=None,
        rivals=set(),
        is_doubted=False,
        order=evidence.order,
        born=evidence.order,
    )
