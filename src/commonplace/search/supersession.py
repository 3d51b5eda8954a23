"""Judge which of some memories overtakes which, without a model: the later of two that say the same of the same thing.

It knows texts, times and vectors, no store, and judges the same in whatever order they came. The weights are rounded
from regressions on either half of the people of everyday memories; the manual tells how often the order is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.text.languages import STOP_WORDS

NEAREST: Final = 5
"""A text's surroundings are the mean of so many of its nearest."""
CHANGE: Final = 0.11
"""A value is the locally scaled cosine (2 · cosine − the surroundings of either: "csls", Conneau et al. 2018), so much
for each word of change in the later text, up to `MAX_CHANGES`, …"""
MAX_CHANGES: Final = 2
MAX_CHANGE_LENGTH: Final = 64
"""Any longer text, in tokens, has such words by chance, and they do not count."""
SHARED: Final = 0.8
"""… so much for the share of the earlier text's words, by rarity, that the later one has (not of two turns of
conversations: talk comes back to the same words), …"""
RANK: Final = 0.1
"""… less so much for each e-fold of the place that either has among the nearest of the other."""
MIN_SIMILARITY: Final = 0.2
"""Texts with a smaller cosine are about different things, however few others there are to scale it by."""
MIN_SIMILARITY_OF_FEW: Final = 0.5
"""The same where there are not `NEAREST` others, and strangers, with `STRANGER`, stand for the rest."""
MIN_GAP_S: Final = 1.0
"""What was stored sooner after another came with it, as a list does, and tells nothing newer by its place in it."""
_ALL: Final = np.float32(1 - 1e-6)
STRANGER: Final = np.float32(0.1)

WORDS_OF_CHANGE: Final = (
    "again anymore back became becomes broke cancelled change changed changes closed cut died ended ends extended "
    "finally finished former formerly from gone got increased instead left longer lost lowered merged moved moving new "
    "newly no now old over postponed previously promoted raised reduced renamed replaced replaces resigned retired "
    "since sold split started starting starts stepped stopped switched switching today tomorrow tonight took traded "
    "until upgraded went yet"
)
"""They tell that something is no longer as it was, or is from now on. In English, as the texts to choose on are."""


@dataclass(frozen=True, slots=True)
class Statements:
    """n memories that may overtake each other.

    Attributes:
        times: of those with a date of their own, seconds since the epoch, else NaN; float64, shape (n,).
        stored: when each was stored, float64, shape (n,); tells which of two is later where not both have a date.
        sessions: "" where there is none; two of one session do not compete, for one follows from the other.
        vectors: of embedders whose cosines are known; float32, shape (n, d), rows of unit length or zero.
        terms: the tokens of each text that tell what it is about, without function words.
        changes: how many different words of change each has, int64, shape (n,), 0 in long texts.
    """

    times: NDArray[np.float64]
    stored: NDArray[np.float64]
    sessions: Sequence[str]
    vectors: NDArray[np.float32]
    terms: Sequence[frozenset[int]]
    changes: NDArray[np.int64]


def change_tokens(tokenize: Callable[[str], NDArray[np.uint16]]) -> frozenset[int]:
    """Return the tokens that are words of change; words of several tokens are left out."""
    found = (tokenize(word).tolist() for word in WORDS_OF_CHANGE.split())
    return frozenset(ids[0] for ids in found if len(ids) == 1)


def function_tokens(tokenize: Callable[[str], NDArray[np.uint16]]) -> frozenset[int]:
    """Return the tokens of English function words, which tell nothing of what a text is about."""
    return frozenset(token for word in STOP_WORDS for token in tokenize(word).tolist())


def count_changes(token_ids: NDArray[np.uint16], words: frozenset[int]) -> int:
    """Return how many different words of change a text has, 0 in a long one."""
    return 0 if len(token_ids) > MAX_CHANGE_LENGTH else len(words.intersection(token_ids.tolist()))


def judge(said: Statements) -> NDArray[np.float32]:
    """Return how much tells that a column's memory overtakes a row's, −inf where it cannot; float32, shape (n, n)."""
    count = len(said.times)
    cosines = said.vectors @ said.vectors.T
    np.fill_diagonal(cosines, -1.0)
    ranks = np.log1p(np.argsort(np.argsort(-cosines, axis=1, kind="stable"), axis=1).astype(np.float32))
    is_turn = np.array([bool(name) for name in said.sessions])
    same = shares(said.terms)
    shared = np.where(is_turn & is_turn[:, np.newaxis], np.float32(0), same)
    values = scaled(cosines) + SHARED * shared - RANK * (ranks + ranks.T)
    values += np.float32(CHANGE) * np.minimum(said.changes, MAX_CHANGES)
    sessions = np.array([hash(name) if name else index for index, name in enumerate(said.sessions)])
    least = MIN_SIMILARITY if count > NEAREST else MIN_SIMILARITY_OF_FEW
    gaps = said.times - said.times[:, np.newaxis]
    stored = said.stored - said.stored[:, np.newaxis]
    gaps = np.where(np.isnan(gaps), np.where(stored >= MIN_GAP_S, stored, 0), gaps)
    is_later = (
        (gaps > 0) & (sessions != sessions[:, np.newaxis]) & (np.minimum(same, same.T) < _ALL)
    )  # something differs
    return np.where(is_later & (cosines >= least), values, -np.inf).astype(np.float32)


def scaled(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2 · cosine − the mean cosine of either with its `NEAREST` nearest others, float32, shape (n, n)."""
    padded = np.hstack([cosines, np.full((len(cosines), NEAREST), STRANGER if len(cosines) <= NEAREST else -1.0)])
    around = -np.sort(-padded, axis=1)[:, :NEAREST].mean(axis=1).astype(np.float32)
    return np.asarray(2 * cosines - around[:, np.newaxis] - around, dtype=np.float32)


def shares(terms: Sequence[frozenset[int]]) -> NDArray[np.float32]:
    """Return the share of a row's terms, by their rarity among all, that a column has; float32, shape (n, n)."""
    places: dict[int, int] = {}
    held = [places.setdefault(term, len(places)) for each in terms for term in each]
    holds = np.zeros((len(terms), len(places)), dtype=np.float32)
    holds[np.repeat(np.arange(len(terms)), [len(each) for each in terms]), held] = 1.0
    weighed = holds * np.log1p(len(terms) / holds.sum(axis=0, dtype=np.float32))
    return np.asarray(weighed @ holds.T / np.maximum(weighed.sum(axis=1), 1e-9)[:, np.newaxis], dtype=np.float32)
