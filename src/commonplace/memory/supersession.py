"""Judge which memories a newer one supersedes, without a language model, once their vectors exist; keep it as links.

Of two memories that state the same about the same thing, the later one supersedes the other, in whatever order they
came. Words and vectors select the pairs; a cross-encoder reads them. The weights are rounded from regressions on either
half of the people of everyday memories; the manual says how often the order is right.

Searches follow links of the types `SUPERSEDES` and `CONFLICTS`, but for doubtful ones (strength `DOUBT`); a `CONFLICTS`
link is also a question for a person. Judged links have the origin `RULE`. What people link decides, and is not judged.
"""

from __future__ import annotations

import json
import logging
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass, field, replace
from commonplace.dates.vocabulary import MONTH_NAMES, WEEKDAY_NAMES
from commonplace.errors import CommonplaceError, ModelError
from commonplace.extract.modality import is_hedged, is_recurring
from commonplace.extract.model import SENSITIVE
from commonplace.extract.words import PATTERNS
from commonplace.models.cross_encoder import CrossEncoder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import ONE_BLAS_THREAD, distinct, ranked, restore, units, within
from commonplace.redaction import without_placeholders
from commonplace.search.retrieve import Searcher
from commonplace.search.time import begins_at
from commonplace.store.memories import MemoryChange
from commonplace.store.store import Store
from commonplace.text.languages import STOP_WORDS
from commonplace.text.similarity import is_near_duplicate
from commonplace.text.tokens import without_unspaced
from commonplace.text.words import word_lists
from commonplace.types import (
    CONFLICTS,
    DOUBT,
    HOLDS_BESIDE,
    RULE,
    SUPERSEDES,
    Head,
    Link,
    Note,
    Selection,
    StoredMemory,
    TokenEntry,
)

SURROUNDINGS: Final = 5
"""Number of nearest texts whose mean cosine is a text's surroundings."""
CHANGE: Final = 0.12
"""Added to a pair's value for each word of change in the later text, up to `MAX_CHANGES`. The value starts as the
locally scaled cosine: 2 · cosine − the surroundings of either ("csls", Conneau et al. 2018)."""
MAX_CHANGES: Final = 2
MAX_CHANGE_LENGTH: Final = 64
"""Length in tokens above which words of change do not count: a longer text has them by chance."""
SHARED: Final = 0.8
"""Weight in a pair's value of the share, by rarity, of the earlier text's words that the later one has; it does not
count for two turns of conversations, because talk comes back to the same words."""
RANK: Final = 0.1
"""Taken from a pair's value for each e-fold of the rank that either text has among the nearest of the other."""
MIN_SIMILARITY: Final = 0.2
"""Cosine below which two of more than `FEW` texts are about different things, and are never linked."""
FEW: Final = 12
MIN_SIMILARITY_UNREAD: Final = 0.5
"""Cosine below which two of at most `FEW` texts are never linked if none is read: the nearest of few may not be near. A
reading needs no such bound: it recognises other subjects, even for what a long message says in passing."""
MIN_GAP_S: Final = 1.0
"""Seconds within which undated memories count as stored together, as a list is, so that neither is the newer one."""
_ALL: Final = np.float32(1 - 1e-6)
STRANGER: Final = np.float32(0.1)
OURS: Final = -1
SPEAKER: Final = -2
PERSON: Final = 1 << 20
"""Added to the token of an owner that is in the list of people."""
_TOKEN_BITS: Final = 16
READING: Final = 0.1
"""Added to a pair's value for each unit of the cross-encoder's log-odds, clipped to `MIN_ODDS`–`MAX_ODDS`."""
MIN_ODDS: Final = -4.0
MAX_ODDS: Final = 1.0
"""Upper bound of the log-odds that count, as `MIN_ODDS` is the lower one: a reading denies more than it affirms."""
OF_FEW: Final = (0.2, 0.5, 0.3)
"""The value of a pair among at most `FEW` texts, where words and vectors say little: a constant, the share of the value
that is kept, and what is added for each unit of the log-odds."""
TERSE: Final = 12
"""Length in tokens up to which two texts of one topic are not under `OF_FEW`: "Ana moved to Braga", then to Faro."""
DENIED: Final = -2.0
IGNORED: Final = -3.5
"""Log-odds below which a pair is not linked, and below `DENIED` at most asked about, however alike the two are."""
DOUBTED: Final = -1.0
"""Log-odds of doubt above which a pair is always asked about, and never settled."""
UNREAD: Final = 0.12
"""Taken from every value if no cross-encoder reads."""
MAX_READ: Final = 2
"""Maximum number of pairs read for each memory: each takes some 15 milliseconds, and more change nothing."""
COMPETING: Final = 0.2
"""Least value at which a newer memory ranks before an older one, and a person is asked."""
SETTLING: Final = 0.48
"""Least value at which nobody need be asked: of 17 such pairs of everyday memories, 16 are right."""
_WORDS: Final = word_lists(Path(__file__).with_suffix(".txt"))
TALK: Final = 0.25
"""Taken from a pair's value for each word of talk in either text, up to `MAX_TALK` in each."""
MAX_TALK: Final = 2
TOPICS: Final = [name for name in _WORDS if name.startswith("one ")]
TOPIC: Final = 0.25
"""Added to a pair's value if the later text has a word of change, and a word of the same topic as the earlier one."""
MIN_SIMILARITY_OF_TOPIC: Final = 0.1
"""Least cosine of a pair to which `TOPIC` is added, in place of `MIN_SIMILARITY`: such news is told in many words."""
LENGTH: Final = 0.2
"""Taken from a pair's value for each e-fold by which the earlier text is longer than `PLAIN_LENGTH` tokens: a text that
says several things is seldom superseded as a whole."""
PLAIN_LENGTH: Final = 16
_OURS: Final = ("my", "our")
_WE: Final = ("i", "we", "us", "me", "our")
_HEAD: Final = 12
"""Number of first tokens of a text that tell whose statement it is, or which title it has."""
FORM: Final = 0.6
"""Least share of each other's words that two texts of one form have."""
MAX_OF_FORM: Final = 6
"""Number of texts of one form above which they are entries of a log ("Worker 1 saw parcel 29"), and each stays."""


LogOdds = Callable[[Sequence[tuple[NDArray[np.uint16], NDArray[np.uint16]]]], NDArray[np.float32]]
"""Returns log-odds that the second text of each pair supersedes the first, and of doubt; see `CrossEncoder`."""


class ReadingResult(NamedTuple):
    """The result of a reading, in arrays of shape (n, n): a column's memory may supersede a row's.

    Attributes:
        values: evidence that it does, −inf where it does not; float32.
        is_news: whether the pair reads as news; bool.
        is_doubted: whether the column's memory is hearsay, or may not be meant as news; bool.
    """

    values: NDArray[np.float32]
    is_news: NDArray[np.bool_]
    is_doubted: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StatementBatch:
    """n memories that may supersede each other.

    Attributes:
        times: a memory's own date, seconds since the epoch, NaN without one; float64, shape (n,).
        stored: when each was stored, float64, shape (n,); decides which of two is later unless both have a date.
        sessions: "" without one; two of one session do not compete, because one follows from the other.
        vectors: of embedders whose cosines are known; float32, shape (n, d), rows of unit length or zero.
        terms: a text's index · 2¹⁶ + a token that tells what it is about; int64, each once, ascending.
        changes: number of distinct words of change, 0 in long texts; int64, shape (n,).
        owners: the token of the person of whose things it tells, `OURS` or `SPEAKER` for the speaker, else 0; int64,
            shape (n,).
        titles: the same number for entries of one log, 0 for other texts; int64, shape (n,).
        is_open: whether a word of doubt comes before any word of change, so nothing has changed; bool, shape (n,).
        is_refusal: whether a word of refusal comes before any word of change: it ends only an offer; bool, shape (n,).
        is_offer: whether it has a word of offers; bool, shape (n,).
        topics: a bit for each of `TOPICS` of which it has a word; int64, shape (n,).
        talk: number of distinct words of talk; int64, shape (n,).
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
    """Derives statements from texts given as token ids, one text after the other, uint16, and lengths, int64, (n,)."""

    def __init__(self, tokens: StaticEmbedder) -> None:
        tokenize = tokens.tokenize

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
        self._is_ours, self._is_we = mask(_OURS), mask(_WE)
        self._is_inside = tokens.inside_words()
        self._i, self._colon, self._s, *self._quotes = (int(tokenize(sign)[-1]) for sign in ("i", ":", "'s", "'", "’"))

    def statements(
        self,
        token_ids: NDArray[np.uint16],
        lengths: NDArray[np.int64],
        *,
        times: NDArray[np.float64],
        stored: NDArray[np.float64],
        sessions: Sequence[str],
        vectors: NDArray[np.float32],
    ) -> StatementBatch:
        """Return the statements of texts: what is given, and what their tokens tell."""

        ends = np.cumsum(lengths)
        following = np.append(token_ids[1:], 0).astype(np.int64)
        following[ends - 1] = 0
        pairs = token_ids.astype(np.int64) << _TOKEN_BITS | following
        is_word = ~self._is_inside[following]  # the `back` of "backend" is none
        has = {name: words[token_ids] & is_word | within(pairs, known) for name, (words, known) in self._lists.items()}
        texts = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)

        def counts(name: str) -> NDArray[np.int64]:
            return np.bincount(_terms(token_ids, texts, has[name]) >> _TOKEN_BITS, minlength=len(lengths))

        def first(name: str) -> NDArray[np.int64]:
            """Return the place of the first such word in each text, `_HEAD` if there is none."""
            found = np.flatnonzero(has[name])
            owners, at = np.unique(texts[found], return_index=True)
            places = np.full(len(lengths), _HEAD)
            places[owners] = found[at] - (ends - lengths)[owners]
            return places

        heads = [token_ids[end - length : end][:_HEAD].tolist() for end, length in zip(ends, lengths, strict=True)]
        changed = np.minimum(first("change"), _HEAD)
        return StatementBatch(
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
        """Return the token of whose things a text tells, after the label of a speaker; 0 if it cannot be told.

        It is the one before the first `'s` ("Grandpa's house"), the person of a leading `my daughter` in a text without
        `I` or `we`, `OURS` for a leading `my` or `our`, or `SPEAKER` for `I`.
        """
        is_person, head = self._lists["person"][0], head[2:] if head[1:2] == [self._colon] else head
        for position in range(1, min(len(head) - 1, 5)):
            if head[position] in self._quotes and head[position + 1] == self._s:
                return head[position - 1] | PERSON * int(is_person[head[position - 1]])
        if head and self._is_ours[head[0]]:
            if not is_person[head[1:2]].any():
                return OURS
            return 0 if self._is_we[head].any() else head[1] | PERSON
        return SPEAKER if head[:1] == [self._i] else 0

    def _title(self, head: list[int]) -> int:
        """Return a number for the title of a log's entry, the words before its date or colon; 0 if it is none."""
        if self._colon not in head:
            return 0
        is_dated, is_number = self._is_date[head] | self._is_number[head], self._is_number[head]
        end = 0
        for position, token in enumerate(head):
            # The colon of a time of day does not end a title.
            if token == self._colon and not (is_number[position - 1] and is_number[position + 1 : position + 2].any()):
                end = position
                break
        dates = np.flatnonzero(is_dated[:end]).tolist()
        is_log = bool(dates) or bool(self._lists["log"][0][head[:end]].any())
        return hash(tuple(head[: min([*dates, end])])) | 1 if is_log else 0


def _terms(token_ids: NDArray[np.uint16], texts: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    return distinct(texts[chosen] << _TOKEN_BITS | token_ids[chosen])


def judge(batch: StatementBatch, *, is_read: bool = False) -> NDArray[np.float32]:
    """Return the evidence that a column's memory supersedes a row's, −inf where it cannot; float32, shape (n, n).

    Args:
        is_read: whether `read` follows.
    """
    count = len(batch.times)
    cosines = batch.vectors @ batch.vectors.T
    np.fill_diagonal(cosines, -1.0)
    # Equal cosines have one rank, so that the result does not depend on the order of the rows.
    ranks = np.log1p([np.searchsorted(np.sort(row), row) for row in -cosines]).astype(np.float32)
    is_turn = np.array([bool(name) for name in batch.sessions])
    same = shares(batch.terms, count)
    shared = np.where(is_turn & is_turn[:, np.newaxis], np.float32(0), same)
    values = scaled(cosines) + SHARED * shared - RANK * (ranks + ranks.T)
    values += np.float32(CHANGE) * np.minimum(batch.changes, MAX_CHANGES)
    one_topic = _is_one_topic(batch)
    talk = np.minimum(batch.talk, MAX_TALK)
    values += np.float32(TOPIC) * one_topic - np.float32(TALK) * (talk + talk[:, np.newaxis])
    values -= np.float32(LENGTH) * np.log(np.maximum(batch.lengths / PLAIN_LENGTH, 1))[:, np.newaxis].astype(np.float32)
    sessions = np.array([hash(name) if name else index for index, name in enumerate(batch.sessions)])
    of_few = -1.0 if is_read else MIN_SIMILARITY_UNREAD
    least = MIN_SIMILARITY if count > FEW else of_few
    gaps = batch.times - batch.times[:, np.newaxis]
    stored = batch.stored - batch.stored[:, np.newaxis]
    gaps = np.where(np.isnan(gaps), np.where(stored >= MIN_GAP_S, stored, 0), gaps)
    is_later = (
        (gaps > 0) & (sessions != sessions[:, np.newaxis]) & (np.minimum(same, same.T) < _ALL)
    )  # something differs
    is_later &= np.minimum(batch.lengths, batch.lengths[:, np.newaxis]) > 1  # "hi" states nothing
    is_later &= ~_is_apart(batch) & (~batch.is_refusal | batch.is_offer[:, np.newaxis])
    if not is_read:
        is_later &= ~batch.is_open
    is_near = cosines >= np.where(one_topic, min(least, MIN_SIMILARITY_OF_TOPIC), least)
    return np.where(is_later & is_near, values, -np.inf).astype(np.float32)


def read(
    batch: StatementBatch, values: NDArray[np.float32], texts: Sequence[NDArray[np.uint16]], log_odds: LogOdds | None
) -> ReadingResult:
    """Return the values of `judge` after a reading.

    For each memory, the `MAX_READ` likeliest of those that it may supersede are read; others that could reach
    `COMPETING` get −inf.

    Args:
        texts: the token ids of each.
        log_odds: None reads nothing and takes `UNREAD` from all values.
    """
    is_news, is_doubted = np.zeros((2, *values.shape), dtype=np.bool_)
    is_doubted |= batch.is_open
    if log_odds is None:
        return ReadingResult(values - np.float32(UNREAD), is_news, is_doubted)
    is_terse = batch.lengths <= TERSE
    is_few = (len(values) <= FEW) & ~(_is_one_topic(batch) & is_terse & is_terse[:, np.newaxis])
    base, share, weight = (
        np.where(is_few, few, many).astype(np.float32) for few, many in zip(OF_FEW, (0, 1, READING), strict=True)
    )
    is_candidate = base + share * values + weight * MAX_ODDS >= COMPETING
    likeliest = np.argsort(np.where(is_candidate, -values, np.inf), axis=0, kind="stable")[:MAX_READ]
    is_read = np.zeros_like(is_candidate)
    np.put_along_axis(is_read, likeliest, True, axis=0)
    at = older, newer = np.nonzero(is_read & is_candidate)
    pairs = zip(older.tolist(), newer.tolist(), strict=True)
    odds, doubts = log_odds([(texts[first], texts[second]) for first, second in pairs]).T
    found = base[at] + share[at] * values[at] + weight[at] * np.clip(odds, MIN_ODDS, MAX_ODDS)
    found = np.where(odds < IGNORED, np.float32(-np.inf), found)
    found = np.where(doubts > DOUBTED, np.maximum(found, COMPETING), found)
    is_doubted[at] |= doubts > DOUBTED
    is_asked = (odds < DENIED) | is_doubted[at]
    after = np.where(is_candidate, np.float32(-np.inf), values)
    after[at] = np.where(is_asked, np.minimum(found, SETTLING - 0.01), found)
    is_news[at] = odds > 0
    return ReadingResult(after, is_news, is_doubted)


def _is_unsure(batch: StatementBatch, text: str, older: int, newer: int) -> bool:
    """Return whether the newer text is hearsay or hedged, or only denies something else than the older one states."""
    if not PATTERNS["bare denial"].search(text.strip()):
        return is_hedged(text) or PATTERNS["hearsay"].search(text) is not None
    terms = [batch.terms[batch.terms >> _TOKEN_BITS == row] - (row << _TOKEN_BITS) for row in (older, newer)]
    return not within(*terms).all()


def _is_one_topic(batch: StatementBatch) -> NDArray[np.bool_]:
    """Return whether a column has a word of change and one of the same topic as a row, bool, shape (n, n)."""
    return np.asarray((batch.topics & batch.topics[:, np.newaxis] != 0) & (batch.changes > 0))


def confidence(value: float) -> float:
    """Return the confidence of a value, 0–1: a logistic regression on pairs of everyday memories and held-out stores.

    Of the pairs just above `SETTLING` about half are right; of all above it, most.
    """
    return 1 / (1 + math.exp(3.0 * (0.5 - value)))


def scaled(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 2 · cosine − the mean cosine of each with its `SURROUNDINGS` nearest others, float32, shape (n, n)."""
    # In a small store the nearest others may be farther than a stranger, and tell nothing of what is near.
    padded = np.hstack([np.maximum(cosines, STRANGER), np.full((len(cosines), SURROUNDINGS), STRANGER)])
    around = -np.sort(-padded, axis=1)[:, :SURROUNDINGS].mean(axis=1).astype(np.float32)
    return np.asarray(2 * cosines - around[:, np.newaxis] - around, dtype=np.float32)


def shares(terms: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Return the share of a row's terms, weighted by rarity, that a column has; float32, shape (n, n)."""
    _, places = ranked(terms & (1 << _TOKEN_BITS) - 1)
    rows, holders = terms >> _TOKEN_BITS, np.bincount(places)
    weights = np.log1p(count / holders).astype(np.float32)
    all_of = np.bincount(rows, weights=weights[places], minlength=count)
    is_shared = holders[places] > 1  # most terms are in one text only
    columns = np.cumsum(holders > 1) - 1
    holds = np.zeros((count, np.count_nonzero(holders > 1)), dtype=np.float32)
    holds[rows[is_shared], columns[places[is_shared]]] = 1.0
    found = holds * weights[holders > 1] @ holds.T / np.maximum(all_of, 1e-9)[:, np.newaxis]
    np.fill_diagonal(found, all_of > 0)
    return np.asarray(found, dtype=np.float32)


def _is_apart(batch: StatementBatch) -> NDArray[np.bool_]:
    """Return which pairs are about different people's things, or entries of one log; bool, shape (n, n)."""
    apart = (batch.titles != 0) & (batch.titles == batch.titles[:, np.newaxis])
    # Texts of a form that more than `MAX_OF_FORM` of them have are the entries of a log.
    _, places = ranked(batch.terms & (1 << _TOKEN_BITS) - 1)
    holds = np.zeros((len(batch.times), places.max(initial=-1) + 1), dtype=np.float32)
    holds[batch.terms >> _TOKEN_BITS, places] = 1.0
    sizes = holds.sum(axis=1)
    alike = holds @ holds.T >= np.float32(FORM) * np.maximum(sizes, sizes[:, np.newaxis])
    is_common = alike.sum(axis=1) > MAX_OF_FORM
    apart |= alike & is_common & is_common[:, np.newaxis]
    rows = np.flatnonzero(batch.owners)
    owners = batch.owners[rows]
    # `My manager's office` and `my office` are two; what names the other's owner may be about the same, and of an `I`
    # only people are others: "milk's run out" owns nothing.
    named = within(rows[:, np.newaxis] << _TOKEN_BITS | owners & (1 << _TOKEN_BITS) - 1, batch.terms)
    may_be_one = named | (owners == SPEAKER) & (owners < PERSON)[:, np.newaxis]
    apart[np.ix_(rows, rows)] |= (owners != owners[:, np.newaxis]) & ~(may_be_one | may_be_one.T)
    return np.asarray(apart)


_IDENTIFIER: Final = re.compile(r"(?:\w+: )?(?:the )?([a-z]\w*(?:[-_.]\w+)+)\b", re.IGNORECASE)


def _are_of_two(first: str, second: str) -> bool:
    """Return whether two texts begin with identifiers, as "auth-db runs on …", and neither names that of the other."""
    names = [found[1].lower() for text in (first, second) if (found := _IDENTIFIER.match(text))]
    return len(names) == 2 and names[1] not in first.lower() and names[0] not in second.lower()


def _is_beside(batch: StatementBatch, contents: Mapping[int, str], owners: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where only the column's text, a terse one, names a time that comes again ("in winter"), (n, n)."""
    recurs = np.array([is_recurring(contents[number], is_event=False) for number in owners.tolist()], dtype=np.bool_)
    return np.asarray(recurs & (batch.lengths <= TERSE) & (batch.changes == 0) & ~recurs[:, np.newaxis])


NEAREST: Final = 50
"""Number of nearest memories among which a memory is judged."""
MIN_COSINE: Final = 0.4
"""Cosine below which a person is asked, however high the value is."""
AT_ONCE: Final = 32
"""Number of memories judged between two transactions."""
NOTED_EVERY: Final = 64
"""Number of judged changes after which progress is noted; what a killed process has not noted is judged again."""
_JUDGED: Final = "judged"
_log = logging.getLogger(__name__)
Pair = frozenset[str]


class Verdict(NamedTuple):
    """The numbers of the versions of two memories that were compared, and the link that is due, if any."""

    versions: frozenset[int]
    link: Link | None = None


class Overtaken(NamedTuple):
    """A memory and a newer one that supersedes it, or may; with the ids of disputed facts that ask the same."""

    older: StoredMemory
    newer: StoredMemory
    is_sure: bool
    disputes: frozenset[str] = frozenset()


def disputes_of(store: Store, namespace: str) -> dict[str, dict[str, set[str]]]:
    """Return the ids of disputed facts by dispute and by the memories that speak of them."""
    graph = store.graph(namespace)
    facts = {fact.id: fact.dispute for fact in graph.disputed()}
    mentions = [mention for group in graph.mentions("relation", [*facts]).values() for mention in group]
    episodes = graph.episodes([*{fact.episode for fact in mentions}])
    memories_of: dict[str, dict[str, set[str]]] = {}
    for fact in mentions:
        memory = episodes[fact.episode].memory if fact.episode in episodes else ""
        if memory:
            memories_of.setdefault(facts[fact.subject], {}).setdefault(memory, set()).add(fact.subject)
    return memories_of


def overtaken(store: Store, namespace: str) -> list[Overtaken]:
    """Return each live memory that a newer one may supersede, with the likeliest newer one; the surest pair first.

    Turns of conversations, near duplicates, and what a person or the graph has settled are left out.
    """
    with store.snapshot():
        links = [link for link in store.links(namespace) if link.origin == RULE or link.type == CONFLICTS]
        ids = tuple({id_ for link in links for id_ in (link.source, link.target)})
        chosen = Selection(ids=ids, statuses=("active", "promoted"), sessions=("",))
        live = {each.owner.id: each for each in store.memories(namespace, chosen)} if ids else {}
        stored = store.statements(namespace, [each.number for each in live.values()])
        disputes = disputes_of(store, namespace)
    found: dict[str, Overtaken] = {}
    for link in sorted(links, key=lambda link: (-link.strength, link.target, link.source)):
        older, newer = live.get(link.target), live.get(link.source)
        if older is None or newer is None or link.target in found:
            continue
        if not stored[older.number].overtaken_by and not is_near_duplicate(older.record.content, newer.record.content):
            between = frozenset(id_ for id_, said in disputes.items() if {link.source, link.target} <= said.keys())
            found[link.target] = Overtaken(older, newer, link.type == SUPERSEDES, between)
    return list(found.values())


def expire_judged(change: MemoryChange, now: float, id_: str, other: str = "") -> None:
    """Expire a memory's links that a rule made; with `other`, those between the two, and whoever asked about them."""
    for link in change.links([id_]):
        is_answered = other != "" and link.type == CONFLICTS
        if (link.origin == RULE or is_answered) and other in ("", link.source, link.target):
            change.link(replace(link, expired_at=now))


@dataclass(eq=False)
class SupersessionRule:
    """Judges the memories of a namespace, each once its vector exists. Safe for threads.

    Args:
        reader: returns the cross-encoder, or None if memories are embedded without a transformer: reading would take
            longer than all else.
    """

    _store: Store
    _searcher: Callable[[], Searcher]
    _namespace: str
    _tokens: StaticEmbedder
    _now: Callable[[], float]
    _reader: Callable[[], CrossEncoder | None] = lambda: None
    _done: int | None = None
    _seen: Head = Head()
    _noted: Head = Head()
    _judged: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(self, limit: int | None = None, is_stopped: Callable[[], bool] = lambda: False) -> bool:
        """Judge the memories written since the last call, by any process, in order of time.

        Args:
            limit: do nothing, and return False, if there are more passages, or another thread is judging.
            is_stopped: returns whether to leave the rest to a later call.
        """
        store, namespace = self._store, self._namespace
        if not self._lock.acquire(blocking=limit is None):
            return False
        try:
            if self._done is None:
                notes = store.notes(namespace, _JUDGED)
                note = json.loads(notes[-1].body) if notes else {}
                self._done, self._seen = note.get("change", 0), Head(*note.get("seen", ()))
                self._noted = self._seen
                self._judged.update(note.get("judged", ()))
            head = store.head(namespace)
            if head == self._seen and head.change == self._done:
                return True
            if store.token(namespace, self._seen.change) != self._seen.token:
                self._done, self._noted = 0, Head()  # the namespace was forgotten, or restored from a backup
                self._judged.clear()
            if limit is not None and store.pending(namespace, self._done)[0] > limit:
                return False
            self._seen = head
            entries = [each for each in store.tail(namespace, self._done) if each.kind == "memory"]
            passages = Counter(each.owner_number for each in entries)
            entries = [each for each in entries if each.vector and passages[each.owner_number] == 1]
            entries = [each for each in entries if each.number not in self._judged]
            # The last to be judged has the most to compare with: in order of time, the order of arrival cannot matter.
            entries.sort(key=lambda each: (each.at is None, each.at or 0.0, each.number))
            try:
                for start in range(0, len(entries), AT_ONCE):
                    verdicts: dict[Pair, Verdict] = {}
                    some = entries[start : start + AT_ONCE]
                    for each in some:
                        verdicts |= self._verdicts(each)
                    self._keep(verdicts)
                    self._judged.update(each.number for each in some)
                    if is_stopped():
                        return False
            except (CommonplaceError, OSError) as error:  # what was written is written; the next call tries again
                _log.warning("memories wait to be compared with older ones: %s", error)
                return True
            self._done = head.change
            self._judged.clear()
            if head.change - self._noted.change >= NOTED_EVERY:
                self.close()
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Note what was judged, unless the namespace was forgotten since: a note would create it again."""
        seen = self._seen
        is_noted = self._noted == seen and not self._judged
        if not is_noted and seen.change and self._store.token(self._namespace, seen.change) == seen.token:
            self._noted = seen
            with suppress(CommonplaceError), self._store.change_memories(self._namespace) as change:
                body = json.dumps({"change": self._done, "seen": seen, "judged": sorted(self._judged)})
                change.put(Note(_JUDGED, "", self._now(), body))

    def _verdicts(self, entry: TokenEntry) -> dict[Pair, Verdict]:
        """Return the verdicts between a memory and its nearest, and between any of these that a rule has linked.

        Those are judged again because the memory changes what similarities among its nearest mean.
        """
        vector = restore([entry.vector])[0]
        rows = self._searcher().near(self._namespace, vector, NEAREST + 1)
        vectors = units(rows.vectors[:, : len(vector)].astype(np.float32))
        found = self._store.memory_records(self._namespace, rows.owners.tolist())
        contents, passages = {n: each.record.content for n, each in found.items()}, Counter(rows.owners.tolist())
        order = np.lexsort((rows.numbers, -(vectors @ vector), rows.numbers != entry.number))
        # One of several passages tells too little, and the vectors know no script without spaces.
        whole = {n: text.strip() for n, text in contents.items() if passages[n] == 1 and not without_unspaced(text)[1]}
        fit = sorted(n for n, text in whole.items() if not PATTERNS["bare question"].search(text))
        order = order[within(rows.owners[order], np.array(fit, dtype=np.int64))]
        rows, vectors = rows.take(order), vectors[order]
        if rows.numbers[:1].tolist() != [entry.number]:
            return {}
        kept = [found[owner] for owner in rows.owners.tolist()]
        # What is announced for a day is later than what is said before that day.
        begins = np.array([begins_at(each.record.content, each.at) or -np.inf for each in kept])
        batch = self._wordings.statements(
            rows.token_ids,
            rows.lengths,
            times=np.maximum(rows.times, begins),
            stored=np.maximum([each.record.born_at for each in kept], begins),
            sessions=rows.sessions.tolist(),
            vectors=vectors,
        )
        ids = [each.owner.id for each in kept]
        place = {id_: number for number, id_ in enumerate(ids)}
        judged = {frozenset((ids[0], other)) for other in ids[1:]} | {
            pair
            for link in self._store.links(self._namespace, ids)
            if link.origin == RULE and (pair := frozenset((link.source, link.target))) <= place.keys()
        }
        verdicts = {pair: Verdict(frozenset(kept[place[id_]].number for id_ in pair)) for pair in judged}
        is_judged = np.zeros((len(ids), len(ids)), dtype=np.bool_)
        for row, column in ((place[first], place[second]) for first, second in judged):
            is_judged[[row, column], [column, row]] = not _are_of_two(
                kept[row].record.content, kept[column].record.content
            )
        is_judged &= ~_is_beside(batch, contents, rows.owners)
        texts = np.split(rows.token_ids, np.cumsum(rows.lengths)[:-1])
        for row, memory in enumerate(kept):  # a reader would take "[redacted: password]" for the news
            if (text := without_placeholders(memory.record.content)) != memory.record.content:
                texts[row] = self._tokens.tokenize(text)

        def judged_by(log_odds: LogOdds | None) -> ReadingResult:
            with ONE_BLAS_THREAD:
                values = np.where(is_judged, judge(batch, is_read=log_odds is not None), np.float32(-np.inf))
            return read(batch, values, texts, log_odds)

        try:
            reader = self._reader()
            values, is_news, is_doubted = judged_by(None if reader is None else reader.log_odds)
        except ModelError as error:
            _log.warning("memories are compared by their words and vectors alone: %s", error)
            self._reader = lambda: None
            values, is_news, is_doubted = judged_by(None)
        for older, newer in np.argwhere(values >= COMPETING).tolist():
            cosine, value = float(vectors[older] @ vectors[newer]), float(values[older, newer])
            # The first reason speaks for the link, the others against settling it by a rule.
            does = ["has words of change"] * bool(batch.changes[newer])
            does += ["reads as news of the older one"] * bool(is_news[older, newer])
            why = [f"they are alike ({cosine:.2f})" + (f", and the newer one {' and '.join(does)}" if does else "")]
            if any(PATTERNS["sensitive"].search(kept[place].record.content) for place in (older, newer)):
                why.append(SENSITIVE)
            is_unsure = bool(is_doubted[older, newer]) or _is_unsure(batch, kept[newer].record.content, older, newer)
            why += ["the newer one is not sure"] * is_unsure
            why += ["the newer one is trusted less"] * (kept[newer].record.trust < kept[older].record.trust)
            is_sure = value >= SETTLING and cosine >= MIN_COSINE and len(why) == 1
            type_ = SUPERSEDES if is_sure and (len(kept) > FEW or batch.changes[newer]) else CONFLICTS
            strength = DOUBT if is_unsure else round(confidence(value), 3)
            pair = frozenset((ids[older], ids[newer]))
            verdicts[pair] = Verdict(
                verdicts[pair].versions,
                Link(ids[newer], ids[older], type_, strength, self._now(), RULE, "; ".join(why)),
            )
        return verdicts

    def _keep(self, verdicts: Mapping[Pair, Verdict]) -> None:
        """Bring the links between memories to the verdicts; what a person linked stays as it is.

        Verdicts on a version that was replaced meanwhile are passed over: the next one is judged by itself.
        """
        due = {pair: verdict.link for pair, verdict in verdicts.items() if verdict.link is not None}
        ids = sorted({id_ for pair in verdicts for id_ in pair})
        if not due and not any(link.origin == RULE for link in self._store.links(self._namespace, ids)):
            return
        with self._store.change_memories(self._namespace) as change:

            def is_current(pair: Pair) -> bool:
                return verdicts[pair].versions == {memory.number for id_ in pair if (memory := change.find(id_))}

            for link in change.links(ids):
                pair = frozenset((link.source, link.target))
                new = due.get(pair)
                is_due = new is not None and (new.source, new.type) == (link.source, link.type)
                if is_due or (link.origin != RULE and link.type in (SUPERSEDES, HOLDS_BESIDE)):
                    due.pop(pair, None)
                elif link.origin == RULE and pair in verdicts and is_current(pair):
                    change.link(replace(link, expired_at=self._now()))
            for pair, link in due.items():
                if is_current(pair):
                    change.link(link)

    @cached_property
    def _wordings(self) -> Wordings:
        return Wordings(self._tokens)
