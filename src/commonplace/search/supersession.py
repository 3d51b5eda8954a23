"""Judge which of some memories overtakes which, without a model: the later of two that say the same of the same thing.

It knows texts, times and vectors, no store, and judges the same in whatever order they came. The weights are rounded
from regressions on either half of the people of everyday memories; the manual tells how often the order is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.dates.vocabulary import MONTH_NAMES, WEEKDAY_NAMES
from commonplace.ranking.arrays import distinct, ranked, within
from commonplace.text.languages import STOP_WORDS
from commonplace.text.words import word_lists

NEAREST: Final = 5
"""A text's surroundings are the mean of so many of its nearest."""
CHANGE: Final = 0.12
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
FEW: Final = 12
"""The same among no more than so many: there what is nearest is not near, and a large value says little."""
MIN_GAP_S: Final = 1.0
"""What was stored sooner after another came with it, as a list does, and tells nothing newer by its place in it."""
_ALL: Final = np.float32(1 - 1e-6)
STRANGER: Final = np.float32(0.1)
OURS: Final = -1
_TOKEN_BITS: Final = 16
COMPETING: Final = 0.34
"""From this value on (`judge`) a newer memory stands before an older one, and a person is asked; …"""
SETTLING: Final = 0.52
"""… from this one on nobody need be: of 10 such pairs of everyday memories 9 are right."""
_WORDS: Final = word_lists(Path(__file__).with_suffix(".txt"))
TALK: Final = 0.25
"""Less so much for each word that is said to somebody, up to `MAX_TALK`, in either text."""
MAX_TALK: Final = 2
TOPICS: Final = [name for name in _WORDS if name.startswith("one ")]
TOPIC: Final = 0.25
"""So much where a later text with a word of change has a word of the same topic as the earlier one, …"""
MIN_SIMILARITY_OF_TOPIC: Final = 0.1
"""… and then this is the least cosine: such news is told in many words."""
LENGTH: Final = 0.2
"""Less so much for each e-fold that the earlier text is longer than `PLAIN_LENGTH` tokens: what says several things is
seldom overtaken as a whole."""
PLAIN_LENGTH: Final = 16
_OURS: Final = ("my", "our")
_HEAD: Final = 12
"""So many tokens tell whose a statement is, or which title it has."""
FORM: Final = 0.6
"""Two texts of which each has so great a share of the other's words are of one form."""
MAX_OF_FORM: Final = 6
"""More texts of one form are the entries of a log: "Worker 1 saw parcel 29", and each stays."""


@dataclass(frozen=True, slots=True)
class Statements:
    """n memories that may overtake each other.

    Attributes:
        times: of those with a date of their own, seconds since the epoch, else NaN; float64, shape (n,).
        stored: when each was stored, float64, shape (n,); tells which of two is later where not both have a date.
        sessions: "" where there is none; two of one session do not compete, for one follows from the other.
        vectors: of embedders whose cosines are known; float32, shape (n, d), rows of unit length or zero.
        terms: each text's place · 2¹⁶ + a token that tells what it is about; int64, each once, ascending.
        changes: how many different words of change each has, int64, shape (n,), 0 in long texts.
        owners: the token of whose thing each begins with (`Grandpa's house`), `OURS` where that is `my` or `our`, 0 of
            others; int64, shape (n,).
        titles: alike of entries of one log, 0 of what is none; int64, shape (n,).
        is_open: whether nothing has changed by it; bool, shape (n,).
        is_refusal: whether nothing but an offer has; bool, shape (n,).
        is_offer: bool, shape (n,).
        topics: a bit for each of `TOPICS` that it has a word of; int64, shape (n,).
        talk: how many different words of talk it has, int64, shape (n,).
        lengths: in tokens, int64, shape (n,).
    """

    times: NDArray[np.float64]
    stored: NDArray[np.float64]
    sessions: Sequence[str]
    vectors: NDArray[np.float32]
    terms: NDArray[np.int64]
    changes: NDArray[np.int64]
    owners: NDArray[np.int64]
    titles: NDArray[np.int64]
    is_open: NDArray[np.bool_]
    is_refusal: NDArray[np.bool_]
    is_offer: NDArray[np.bool_]
    topics: NDArray[np.int64]
    talk: NDArray[np.int64]
    lengths: NDArray[np.int64]


class Wordings:
    """What tokens tell of texts, of which the ids follow each other: uint16, with their lengths, int64, shape (n,)."""

    def __init__(self, tokenize: Callable[[str], NDArray[np.uint16]]) -> None:
        def mask(words: Iterable[str]) -> NDArray[np.bool_]:
            chosen = np.zeros(1 << _TOKEN_BITS, dtype=np.bool_)
            for ids in map(tokenize, words):
                chosen[ids] |= len(ids) == 1
            return chosen

        def pairs(words: Iterable[str]) -> NDArray[np.int64]:
            ids = [tokenize(each).tolist() for each in words if " " in each]
            return np.array(sorted(first << _TOKEN_BITS | second for first, second in ids), dtype=np.int64)

        self._is_function = np.zeros(1 << _TOKEN_BITS, dtype=np.bool_)
        for word in STOP_WORDS:
            self._is_function[tokenize(word)] = True
        self._is_function[tokenize("thursdays")[1:]] = True  # the plural's "##s"
        self._lists = {name: (mask(words), pairs(words)) for name, words in _WORDS.items()}
        self._is_date = mask((*WEEKDAY_NAMES, *MONTH_NAMES))
        self._is_number = mask(map(str, range(2100)))
        self._is_ours = mask(_OURS)
        self._colon, self._s, *self._quotes = (int(tokenize(sign)[-1]) for sign in (":", "'s", "'", "’"))

    def statements(
        self,
        token_ids: NDArray[np.uint16],
        lengths: NDArray[np.int64],
        *,
        times: NDArray[np.float64],
        stored: NDArray[np.float64],
        sessions: Sequence[str],
        vectors: NDArray[np.float32],
    ) -> Statements:
        """Return what is known of texts by their tokens beside what is given."""

        ends = np.cumsum(lengths)
        following = np.append(token_ids[1:], 0).astype(np.int64)
        following[ends - 1] = 0
        pairs = token_ids.astype(np.int64) << _TOKEN_BITS | following
        has = {name: words[token_ids] | within(pairs, known) for name, (words, known) in self._lists.items()}
        texts = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)

        def counts(name: str) -> NDArray[np.int64]:
            return np.bincount(_terms(token_ids, texts, has[name]) >> _TOKEN_BITS, minlength=len(lengths))

        def first(name: str) -> NDArray[np.int64]:
            """Return the place of the first such word in each text, `_HEAD` where there is none."""
            found = np.flatnonzero(has[name])
            owners, at = np.unique(texts[found], return_index=True)
            places = np.full(len(lengths), _HEAD)
            places[owners] = found[at] - (ends - lengths)[owners]
            return places

        heads = [token_ids[end - length : end][:_HEAD].tolist() for end, length in zip(ends, lengths, strict=True)]
        changed = np.minimum(first("change"), _HEAD)
        return Statements(
            times,
            stored,
            sessions,
            vectors,
            terms=_terms(token_ids, texts, ~self._is_function[token_ids]),
            changes=np.where(lengths > MAX_CHANGE_LENGTH, 0, counts("change")),
            owners=np.array([self._owner(head) for head in heads], dtype=np.int64),
            titles=np.array([self._title(head) for head in heads], dtype=np.int64),
            is_open=first("doubt") < changed,
            is_refusal=first("refusal") < changed,
            is_offer=counts("offer") > 0,
            topics=sum(((counts(name) > 0) << bit for bit, name in enumerate(TOPICS)), np.zeros_like(lengths)),
            talk=counts("talk"),
            lengths=lengths,
        )

    def _owner(self, head: list[int]) -> int:
        """Return the token before the first `'s`, as in "Grandpa's house"."""
        for place in range(1, min(len(head) - 1, 5)):
            if head[place] in self._quotes and head[place + 1] == self._s:
                return head[place - 1]
        return OURS if head and self._is_ours[head[0]] else 0

    def _title(self, head: list[int]) -> int:
        """Return a number for how the entries of a log begin: the words before its date or colon."""
        if self._colon not in head:
            return 0
        is_dated, is_number = self._is_date[head] | self._is_number[head], self._is_number[head]
        end = 0
        for place, token in enumerate(head):
            # The colon of a time of day ends nothing.
            if token == self._colon and not (is_number[place - 1] and is_number[place + 1 : place + 2].any()):
                end = place
                break
        dates = np.flatnonzero(is_dated[:end]).tolist()
        is_log = bool(dates) or bool(self._lists["log"][0][head[:end]].any())
        return hash(tuple(head[: min([*dates, end])])) | 1 if is_log else 0


def _terms(token_ids: NDArray[np.uint16], texts: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    return distinct(texts[chosen] << _TOKEN_BITS | token_ids[chosen])


def judge(said: Statements) -> NDArray[np.float32]:
    """Return how much tells that a column's memory overtakes a row's, −inf where it cannot; float32, shape (n, n)."""
    count = len(said.times)
    cosines = said.vectors @ said.vectors.T
    np.fill_diagonal(cosines, -1.0)
    ranks = np.empty_like(cosines)
    order = np.argsort(-cosines, axis=1, kind="stable")
    np.put_along_axis(ranks, order, np.log1p(np.arange(count, dtype=np.float32))[np.newaxis], axis=1)
    is_turn = np.array([bool(name) for name in said.sessions])
    same = shares(said.terms, count)
    shared = np.where(is_turn & is_turn[:, np.newaxis], np.float32(0), same)
    values = scaled(cosines) + SHARED * shared - RANK * (ranks + ranks.T)
    values += np.float32(CHANGE) * np.minimum(said.changes, MAX_CHANGES)
    one_topic = (said.topics & said.topics[:, np.newaxis] != 0) & (said.changes > 0)
    talk = np.minimum(said.talk, MAX_TALK)
    values += np.float32(TOPIC) * one_topic - np.float32(TALK) * (talk + talk[:, np.newaxis])
    values -= np.float32(LENGTH) * np.log(np.maximum(said.lengths / PLAIN_LENGTH, 1))[:, np.newaxis].astype(np.float32)
    sessions = np.array([hash(name) if name else index for index, name in enumerate(said.sessions)])
    least = MIN_SIMILARITY if count > FEW else MIN_SIMILARITY_OF_FEW
    gaps = said.times - said.times[:, np.newaxis]
    stored = said.stored - said.stored[:, np.newaxis]
    gaps = np.where(np.isnan(gaps), np.where(stored >= MIN_GAP_S, stored, 0), gaps)
    is_later = (
        (gaps > 0) & (sessions != sessions[:, np.newaxis]) & (np.minimum(same, same.T) < _ALL)
    )  # something differs
    is_later &= ~said.is_open & ~_is_apart(said) & (~said.is_refusal | said.is_offer[:, np.newaxis])
    is_near = cosines >= np.where(one_topic, min(least, MIN_SIMILARITY_OF_TOPIC), least)
    return np.where(is_later & is_near, values, -np.inf).astype(np.float32)


def confidence(value: float) -> float:
    """Return how sure a value of `judge` is, 0–1: a logistic regression on pairs of everyday memories."""
    return 1 / (1 + math.exp(8.0 * (0.48 - value)))


def scaled(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2 · cosine − the mean cosine of either with its `NEAREST` nearest others, float32, shape (n, n)."""
    # In a small store the nearest others may be farther than a stranger, and tell nothing of what is near.
    padded = np.hstack([np.maximum(cosines, STRANGER), np.full((len(cosines), NEAREST), STRANGER)])
    around = -np.sort(-padded, axis=1)[:, :NEAREST].mean(axis=1).astype(np.float32)
    return np.asarray(2 * cosines - around[:, np.newaxis] - around, dtype=np.float32)


def shares(terms: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Return the share of a row's terms, by their rarity among all, that a column has; float32, shape (n, n)."""
    _, places = ranked(terms & (1 << _TOKEN_BITS) - 1)
    rows, holders = terms >> _TOKEN_BITS, np.bincount(places)
    weights = np.log1p(count / holders).astype(np.float32)
    all_of = np.bincount(rows, weights=weights[places], minlength=count)
    is_shared = holders[places] > 1  # most are one text's own
    columns = np.cumsum(holders > 1) - 1
    holds = np.zeros((count, np.count_nonzero(holders > 1)), dtype=np.float32)
    holds[rows[is_shared], columns[places[is_shared]]] = 1.0
    found = holds * weights[holders > 1] @ holds.T / np.maximum(all_of, 1e-9)[:, np.newaxis]
    np.fill_diagonal(found, all_of > 0)
    return np.asarray(found, dtype=np.float32)


def _is_apart(said: Statements) -> NDArray[np.bool_]:
    """Return which statements are of different people's things, or entries of one log; bool, shape (n, n)."""
    apart = (said.titles != 0) & (said.titles == said.titles[:, np.newaxis])
    # Texts of a form that more than `MAX_OF_FORM` of them have are the entries of a log.
    _, places = ranked(said.terms & (1 << _TOKEN_BITS) - 1)
    holds = np.zeros((len(said.times), places.max(initial=-1) + 1), dtype=np.float32)
    holds[said.terms >> _TOKEN_BITS, places] = 1.0
    sizes = holds.sum(axis=1)
    alike = holds @ holds.T >= np.float32(FORM) * np.maximum(sizes, sizes[:, np.newaxis])
    is_common = alike.sum(axis=1) > MAX_OF_FORM
    apart |= alike & is_common & is_common[:, np.newaxis]
    rows = np.flatnonzero(said.owners)
    owners = said.owners[rows]
    # `My manager's office` and `my office` are two; what names the other's owner may be about the same.
    named = within(rows[:, np.newaxis] << _TOKEN_BITS | owners, said.terms)
    apart[np.ix_(rows, rows)] |= (owners != owners[:, np.newaxis]) & ~(named | named.T)
    return np.asarray(apart)
