"""Times that a query mentions, and how well memories match them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from math import inf

import numpy as np
from numpy.typing import NDArray

from commonplace.dataclasses import dataclass
from commonplace.dates import mentions, without
from commonplace.dates.time import moment_of
from commonplace.dates.vocabulary import NAMES, PREPOSITIONS
from commonplace.ranking.arrays import distinct, within
from commonplace.search.request import Request
from commonplace.store.store import Store
from commonplace.text.languages import STOP_WORDS

OPEN_S = 10 * 365.25 * 86_400.0
"""Seconds that a time with an open end lasts, ten years: what holds since 2015 says little about a day in 2021."""
MAX_CHARACTERS = 2_000
"""Length in characters above which a query is a pasted page."""
MAX_TIMES = 8
"""Maximum number of times of a question that are looked up: the first ones."""
MAX_OWNERS = 200
"""Maximum number of memories recalled for their time alone: those that fit best, of these the newest."""
MAX_PASSAGES = 400
"""Approximate maximum of passages recalled for their time alone: longer memories are found by their words."""
_WORD = re.compile(r"\w+")
_AGO = re.compile(r"\bago\b", re.IGNORECASE)
_RECORD_WORDS = frozenset(
    """did was were had been happened occurred took taken went came said talked spoke spoken mentioned discussed worked
    made new knew known learned learnt wrote written remember remembered memory memories note notes noted record
    recorded stored saved entry entries log anything stuff event events news""".split()
)
"""Words around a date in a question that asks for everything of that time."""
_OPEN_WORDS = frozenset(
    """us let please tell show give list find get got look recall happen happens happening occur occurs take takes place
    go goes going gone come say says talk talks talking speak mention discuss work works working make thing things
    something everything everyone anyone know learn write exactly""".split()
)
"""Words that name no subject, besides stop words and `_RECORD_WORDS`."""
_PLAN_WORDS, _DETAIL_WORDS = frozenset("am m is s are re do does will ll should".split()), {"where", "who", "why"}
"""Words that ask for a habit or plan if there is no word of record (`what do we do in winter`), or for a detail."""
_RECURRENT = NAMES | PREPOSITIONS.keys() | {"the"}
"""Words of a recurrent time: `on Monday`, but not `last Monday`."""
WEEK_S = 7 * 86_400.0
ROUGHLY, NEAR = 0.1, 0.5
"""Margin of "ten days ago" or "four weeks ago", as a share of that distance, and the fit of what lies within it. Round
guesses. For less than a week people know the day."""


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time that a question names, as it was understood. `text`: its words. `margin`: seconds it may be wrong by."""

    text: str
    since: float
    until: float
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class AskedTimes:
    """The times that a question asks for.

    Attributes:
        is_all: the question asks for everything of that time.
        is_alone: its other words name no subject.
        is_written: it names a time in digits, as a text might.
    """

    times: tuple[AskedTime, ...] = ()
    is_all: bool = False
    is_alone: bool = False
    is_written: bool = False


NO_TIMES = AskedTimes()


def asked_times(request: Request) -> AskedTimes:
    """Return the times that the first phrasing to name any names, resolved against the request's `as_of` or `now`.

    There are none without `as_of` and `now`, for a method of one stage, if no memory is wanted (files have only a time
    of last change), and in a pasted page, which names dates in passing. Several phrasings ask for more than a time.
    """
    now = request.now if request.wanted.as_of is None else request.wanted.as_of
    kinds = request.wanted.kinds
    if now is None or request.method != "two-stage" or (kinds and "memory" not in kinds):
        return NO_TIMES
    for query in (request.query, *request.also):
        matches = mentions(query, now=moment_of(now)) if len(query) <= MAX_CHARACTERS else []
        if not matches:
            continue
        words = set(_WORD.findall(without(query, matches).lower()))
        texts: dict[tuple[float, float], str] = {}
        for mention in matches:
            texts.setdefault((mention.since, mention.until), mention.text)
        is_alone = words <= STOP_WORDS | _OPEN_WORDS | _RECORD_WORDS
        is_recurrent = _RECURRENT.issuperset(_WORD.findall(" ".join(texts.values()).lower()))
        is_plan = (is_recurrent or words & _PLAN_WORDS) and not words & _RECORD_WORDS
        is_all = is_alone and not is_plan and not words & _DETAIL_WORDS
        times = []
        for (since, until), text in texts.items():
            is_rough = not is_all and _AGO.search(text) and WEEK_S <= now - until < inf
            times.append(AskedTime(text, since, until, ROUGHLY * (now - until) if is_rough else 0.0))
        return AskedTimes(
            times=tuple(times[:MAX_TIMES]),
            is_all=is_all and not request.also,
            is_alone=is_alone,
            is_written=any(character.isdigit() for mention in matches for character in mention.text),
        )
    return NO_TIMES


_ONSET = re.compile(r"\b(?:from|starting|beginning|effective|as of)\b", re.IGNORECASE)
_ONSET_CHARACTERS = 14


@lru_cache(maxsize=2_000)
def begins_at(text: str, said_at: float) -> float | None:
    """Return when a statement begins if it names a later date, as `from January we live in Oslo` does, else None."""
    for mention in mentions(text, now=moment_of(said_at), prefer="future") if _ONSET.search(text) else ():
        if mention.since > said_at and _ONSET.search(text, max(0, mention.start - _ONSET_CHARACTERS), mention.end):
            return mention.since
    return None


@dataclass(frozen=True, slots=True)
class DatedOwners:
    """Memories that speak of an asked time or happened in it.

    Attributes:
        owners: their numbers, ascending; int64, shape (n,).
        fits: how well each fits, 0–1, above 0; float32, shape (n,).
        ages: rank of each from the oldest to the newest, by the start of its latest matching time, ties by number;
            int64, shape (n,).
    """

    owners: NDArray[np.int64]
    fits: NDArray[np.float32]
    ages: NDArray[np.int64]

    def best(self) -> list[int]:
        """Return the owners, the best fitting first, of these the newest."""
        numbers: list[int] = self.owners[np.lexsort((-self.ages, -self.fits))].tolist()
        return numbers

    def fits_of(self, owners: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return how well each owner fits, float32, the shape of `owners`, 0 for one that is not here."""
        fits = np.zeros(len(owners), dtype=np.float32)
        is_member = within(owners, self.owners)
        fits[is_member] = self.fits[np.searchsorted(self.owners, owners[is_member])]
        return fits

    def newness_of(self, owners: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the share of the given owners that are older than each, float32, their shape; all must be here."""
        ages = self.ages[np.searchsorted(self.owners, owners)]
        return (np.searchsorted(distinct(ages), ages) / max(1, len(ages))).astype(np.float32)


def dated_owners(store: Store, request: Request, asked: AskedTimes, in_scope: NDArray[np.int64] | None) -> DatedOwners:
    """Return the memories of a time; `in_scope` are ascending numbers of the owners that may be found, None all."""
    namespace, as_of = request.namespace, request.wanted.as_of
    dates, fits = [], []
    for time in asked.times:
        rows = store.dated(namespace, time.since - time.margin, time.until + time.margin, as_of=as_of)
        # A question about a year may match every memory, so no list of lists is built.
        dates.append(np.fromiter(chain.from_iterable(rows), np.float64, 3 * len(rows)).reshape(-1, 3))
        fits.append(fit(dates[-1], time))
    numbers, begins, _ = np.concatenate(dates).T
    numbers = numbers.astype(np.int64)
    keep = np.ones(len(numbers), dtype=np.bool_) if in_scope is None else within(numbers, in_scope)
    numbers, begins, row_fits = numbers[keep], begins[keep], np.concatenate(fits)[keep]
    owners = distinct(numbers)
    positions = np.searchsorted(owners, numbers)
    best, latest = np.zeros(len(owners), dtype=np.float32), np.full(len(owners), -np.inf)
    np.maximum.at(best, positions, row_fits)
    np.maximum.at(latest, positions, begins)
    ages = np.empty(len(owners), dtype=np.int64)
    ages[np.lexsort((owners, latest))] = np.arange(len(owners))
    return DatedOwners(owners, best, ages)


def passages_worth_recalling(store: Store, namespace: str, dated: DatedOwners) -> NDArray[np.int64]:
    """Return the passages of the memories that fit best, ascending; int64, shape (n,)."""
    best = dated.best()[:MAX_OWNERS]
    numbers = store.passages_of(namespace, best)
    if len(numbers) > MAX_PASSAGES:
        numbers = store.passages_of(namespace, best[: len(best) * MAX_PASSAGES // len(numbers)])
    return np.array(numbers, dtype=np.int64)


def fit(dates: NDArray[np.float64], asked: AskedTime) -> NDArray[np.float32]:
    """Return the share of each interval that lies in the asked one; float32, shape (n,).

    It is the chance that a moment picked from the memory's time is one that is asked for: 1 for a day in an asked
    month, 1/31 for a month around an asked day, 1 for a moment. An interval with an open end is taken to last `OPEN_S`.
    For one that lies only in the margin, `NEAR` of its share counts.

    Args:
        dates: owner number, since, until, which overlap the asked time or its margin; float64, shape (n, 3).
    """
    share = _share(dates, asked.since, asked.until)
    if asked.margin:
        near = _share(dates, asked.since - asked.margin, asked.until + asked.margin)
        share = np.maximum(share, np.float32(NEAR) * near)
    return np.asarray(share, dtype=np.float32)


def _share(dates: NDArray[np.float64], begin: float, end: float) -> NDArray[np.float32]:
    _, since, until = dates.T
    shared = np.minimum(np.minimum(until, end) - np.maximum(since, begin), OPEN_S)
    length = until - since
    length[np.isinf(length)] = OPEN_S
    is_here = (since < end) & ((until > begin) | ((length <= 0) & (since >= begin)))
    share = np.divide(shared, length, out=is_here.astype(np.float64), where=is_here & (length > 0))
    return np.asarray(np.minimum(share, 1.0), dtype=np.float32)
