"""Find dates in a text and resolve them to half-open UTC intervals.

Dates without a year and relative dates are resolved against a given moment. Precision is preferred to recall: `may`,
`march`, `second` or `1999 files` count as dates only where the context says so.

A day is from midnight to midnight, a week from Monday, a season of three whole months on the northern half of the
Earth. A part of a day, or hours ago, means the whole day. `three days ago` is that day, `two weeks ago` the seven days
around that day, `two months ago` that calendar month; `the past two weeks` runs to the end of today. `since` and
`until` include what they name, `before` and `after` do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from commonplace.dataclasses import dataclass
from commonplace.dates.calendar import Prefer, Scene
from commonplace.dates.vocabulary import STARTS, TELLING, Words

__all__ = ["Mention", "Prefer", "mentions", "moment_ago", "without"]


WORD = re.compile(r"[a-z]+")
DIGITS = re.compile(r"\d{4}|q[1-4]")


@dataclass(frozen=True, slots=True)
class Mention:
    """A date in a text.

    Attributes:
        text: the words as written, with the preposition before them.
        start, end: character offsets in the text, half-open.
        since, until: seconds since the epoch, half-open; -inf and inf for open ends.
        moment: what `two weeks ago` counts to, seconds since the epoch; None if the words count to no moment.
    """

    text: str
    start: int
    end: int
    since: float
    until: float
    moment: float | None = None


def mentions(text: str, *, now: datetime, prefer: Prefer = "past") -> tuple[Mention, ...]:
    """Return the dates in a text, in order, without overlaps.

    Args:
        now: the aware time to resolve against, in the timezone of the calendar: when a memory was made or a question
            asked.
        prefer: which `May` or `Monday` is meant if the text does not say: the last that has begun, or the first that
            is not over. With "near" it is the first, but the last `May` if that began in the last three months.
    """
    assert now.tzinfo is not None
    # Every date has one of these words or digits, which most texts lack.
    lower = text.lower()
    if DIGITS.search(lower) is None and TELLING.isdisjoint(map(re.Match.group, WORD.finditer(lower))):
        return ()
    from commonplace.dates.grammar import read

    scene = Scene(now.replace(tzinfo=None), now.tzinfo, prefer)
    dates, words, index = [], Words(text), 0
    while words.has(index):
        words.forget(index)
        word = words[index]
        date = read(words, index, scene) if word.lower in STARTS or word.text[:1].isdigit() else None
        if date is None:
            index += 1
            continue
        if date.interval is not None:
            end, (since, until) = date.end, date.interval
            # A possessive `'s` after a date belongs to it.
            if words[end].lower == "'" and words[end].glued and words[end + 1].lower == "s" and words[end + 1].glued:
                end += 2
            start, stop = word.start, words[end - 1].end
            if since < until:
                dates.append(Mention(text[start:stop], start, stop, since, until, date.moment))
        index = date.end
    return tuple(dates)


def moment_ago(text: str, *, now: datetime) -> float | None:
    """Return the moment of a text such as `two hours ago`, in seconds since the epoch.

    Only hours, minutes and seconds count; None for any other text: `three days ago` is a day, which `mentions` finds.

    Args:
        now: the aware time to count from.
    """
    from commonplace.dates.resolve import read_moment_ago

    assert now.tzinfo is not None
    try:
        moment = read_moment_ago(text, Scene(now.replace(tzinfo=None), now.tzinfo, "past"))
    except OverflowError:
        return None
    return moment.replace(tzinfo=now.tzinfo).timestamp() if moment is not None else None


def without(text: str, dates: Sequence[Mention]) -> str:
    """Return a text without its mentions; the remaining parts are joined by spaces."""
    starts, ends = [mention.start for mention in dates], [mention.end for mention in dates]
    return " ".join(text[start:end] for start, end in zip([0, *ends], [*starts, len(text)], strict=True))
