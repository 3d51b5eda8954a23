"""Turns around the turns that were found. It knows who stands next to whom in a session, and who spoke."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

USER, ASSISTANT = 1, 2
SPEAKERS: Final[Mapping[str, int]] = {
    "user": USER,
    "human": USER,
    "assistant": ASSISTANT,
    "ai": ASSISTANT,
    "agent": ASSISTANT,
    "bot": ASSISTANT,
}
"""Who speaks, by the word before the colon that a turn begins with."""

_OF_USER = re.compile(r"\b(?:i|i'm|i've|i'd|me|my|mine|myself|we|our|us)\b", re.IGNORECASE)
_OF_ASSISTANT = re.compile(
    r"\byou(?:'d|'ve| had| have)? (?:also |just |once |previously |earlier )?(?:said|told|mentioned|suggested|gave"
    r"|given|recommended|wrote|written|explained|listed|described|provided|proposed|advised|shared|showed|shown)\b"
    r"|\bdid you (?:say|tell|mention|suggest|give|recommend|write|explain|list|describe|provide|propose|advise)\b",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(r"\byour?\b", re.IGNORECASE)

if TYPE_CHECKING:
    from commonplace.store.contract import Store


def speaker_asked_for(question: str) -> int:
    """Return whose words a question is about: what the assistant said, what the user told of themselves, 0 for neither.

    Of a question with both "I" and "you" nobody knows, unless it says that the assistant said something.
    """
    if _OF_ASSISTANT.search(question):
        return ASSISTANT
    return USER if _OF_USER.search(question) and not _TO_ASSISTANT.search(question) else 0


def next_to(store: Store, namespace: str, numbers: Sequence[int]) -> dict[int, set[int]]:
    """Return for each passage in a session the passages next to it, as far as they follow from asking for `numbers`."""
    beside: dict[int, set[int]] = defaultdict(set)
    for number, neighbour in store.neighbours(namespace, numbers):
        beside[number].add(neighbour)
        beside[neighbour].add(number)
    return beside


def steps(beside: dict[int, set[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs that are one step apart and those that are two, int64, shape (n, 2), each in both directions."""
    one = [(number, other) for number, others in beside.items() for other in others]
    two = {
        (number, far)
        for number, others in beside.items()
        for other in others
        for far in beside[other]
        if far != number and far not in others
    }
    return _pairs(sorted(one)), _pairs(sorted(two))


def answers(beside: dict[int, set[int]], asking: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the pairs of a passage and one of `asking` right before it; int64, shape (n, 2)."""
    return _pairs(
        sorted((other, number) for number in asking.tolist() for other in beside.get(number, ()) if other > number)
    )


def _pairs(values: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64).reshape(-1, 2)
