"""Which of some memories about the same subject is the newer, and the order in which that puts them.

It knows arrays and times, no store. Nothing is hidden, and no score changes: a newer memory is placed before the first
one that it may have overtaken. The constants are chosen on everyday memories, so that talk is hardly touched; the
manual tells how often that is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

POOL: Final = 100
"""So many of the best candidates are compared with each other."""
NEAREST: Final = 5
"""A text's surroundings are the mean of so many of its nearest among them."""
COMPETING: Final = 0.25
"""From this sum on, of what follows, two memories compete: the locally scaled cosine (2 · cosine − the surroundings of
either: "csls", Conneau et al. 2018), …"""
CHANGE: Final = 0.08
"""… so much for each word of change in the newer one, up to `MOST_CHANGES`, …"""
MOST_CHANGES: Final = 2
LONGEST_CHANGE: Final = 64
"""Any longer text, in tokens, has such words by chance, and they do not count."""
LEAST_ALIKE: Final = 0.35
"""Texts with a smaller cosine are about different things, however few others there are to scale it by."""
LEAST_ALIKE_OF_FEW: Final = 0.5
"""The same where there are not `NEAREST` others, and strangers, with `STRANGER`, stand for the rest."""
STRANGER: Final = np.float32(0.1)
LEAST_RELATED: Final = 0.3
"""… less what the newer one's cosine with the query is lower by than this."""

WORDS_OF_CHANGE: Final = (
    "again anymore back became becomes broke cancelled change changed changes closed cut died ended ends extended "
    "finally finished former formerly from gone got increased instead left longer lost lowered merged moved moving new "
    "newly no now old over postponed previously promoted raised reduced renamed replaced replaces resigned retired "
    "since sold split started starting starts stepped stopped switched switching today tomorrow tonight took traded "
    "until upgraded went yet"
)
"""They tell that something is no longer as it was, or is from now on. In English, as the texts to choose on are."""


class Placed(NamedTuple):
    """A candidate in its place.

    Attributes:
        place: its index among the candidates.
        before: the index of the older candidate that it was moved before; None of one that was not moved.
    """

    place: int
    before: int | None


@dataclass(frozen=True, slots=True)
class Dated:
    """n memories with a date of their own, of one search.

    Attributes:
        places: their indices among the candidates, int64, shape (n,).
        times: seconds since the epoch, float64, shape (n,).
        sessions: "" where there is none; two of one session do not compete, for one follows from the other.
        vectors: float32, shape (n, d), rows of unit length or zero.
        dense: cosines with the query, float32, shape (n,).
        holds: whether it holds all numbers that the query names, bool, shape (n,); False where it names none.
        changes: how many different words of change each has, int64, shape (n,), 0 in long texts.
    """

    places: NDArray[np.int64]
    times: NDArray[np.float64]
    sessions: Sequence[str]
    vectors: NDArray[np.float32]
    dense: NDArray[np.float32]
    holds: NDArray[np.bool_]
    changes: NDArray[np.int64]


def change_tokens(tokenize: Callable[[str], NDArray[np.uint16]]) -> frozenset[int]:
    """Return the tokens that are words of change; words of several tokens are left out."""
    found = (tokenize(word).tolist() for word in WORDS_OF_CHANGE.split())
    return frozenset(ids[0] for ids in found if len(ids) == 1)


def count_changes(token_ids: NDArray[np.uint16], words: frozenset[int]) -> int:
    """Return how many different words of change a text has, 0 in a long one."""
    return 0 if len(token_ids) > LONGEST_CHANGE else len(words.intersection(token_ids.tolist()))


def scaled_cosines(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2 · cosine − the mean cosine of either with its `NEAREST` nearest others, float32, shape (n, n)."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    padded = np.hstack([cosines, np.full((len(cosines), NEAREST), STRANGER if len(cosines) <= NEAREST else -1.0)])
    around = -np.sort(-padded, axis=1)[:, :NEAREST].mean(axis=1).astype(np.float32)
    return np.asarray(2 * cosines - around[:, np.newaxis] - around, dtype=np.float32)


def competitors(dated: Dated) -> dict[int, tuple[int, ...]]:
    """Return for each candidate that newer ones compete with these, newest first, ties by place."""
    if len(dated.places) < 2:
        return {}
    changes = np.minimum(dated.changes, MOST_CHANGES)
    # Rows are the older, columns the newer ones.
    unrelated = np.minimum(dated.dense - dated.dense[:, np.newaxis] + np.float32(LEAST_RELATED), 0)
    values = scaled_cosines(dated.vectors) + CHANGE * changes + unrelated
    least = LEAST_ALIKE if len(dated.places) > NEAREST else LEAST_ALIKE_OF_FEW
    alike = dated.vectors @ dated.vectors.T >= least
    # What holds the number that is asked for is not overtaken by what holds another one.
    alike &= dated.holds | ~dated.holds[:, np.newaxis]
    sessions = np.array([hash(name) if name else index for index, name in enumerate(dated.sessions)])
    is_newer = (dated.times > dated.times[:, np.newaxis]) & (sessions != sessions[:, np.newaxis])
    found: dict[int, list[int]] = {}
    for older, newer in np.argwhere(is_newer & alike & (values >= COMPETING)).tolist():
        found.setdefault(older, []).append(newer)
    return {
        int(dated.places[older]): tuple(
            int(dated.places[each]) for each in sorted(newer, key=lambda each: (-dated.times[each], dated.places[each]))
        )
        for older, newer in found.items()
    }


def placed(order: Sequence[int], newer: Mapping[int, Sequence[int]]) -> list[Placed]:
    """Return the candidates of an order, each after what is newer than it and was not placed before.

    Args:
        order: indices of candidates, best first.
        newer: of some of them, the indices of their newer competitors, newest first.
    """
    known, done = set(order), set()
    result: list[Placed] = []
    for place in order:
        if place in done:
            continue
        for other in newer.get(place, ()):
            if other in known and other not in done:
                done.add(other)
                result.append(Placed(other, place))
        done.add(place)
        result.append(Placed(place, None))
    return result
