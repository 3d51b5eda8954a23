"""Parse relative dates and amounts: yesterday, last May, three weeks ago, in two days, the past few months."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from commonplace.dates.absolute import Read, is_loose, read_named
from commonplace.dates.calendar import (
    Cycle,
    Period,
    Scene,
    Unit,
    current,
    days,
    epoch,
    floor,
    following,
    hours,
    moved,
    of_unit,
    previous,
    stretch,
    wall,
    weekly,
)
from commonplace.dates.vocabulary import (
    AHEAD,
    BACK,
    CALENDAR_UNITS,
    DAYPARTS,
    DAYS,
    DEICTICS,
    NUMBERS,
    PAST_PARTICIPLES,
    UNITS,
    VAGUE,
    WEEKDAYS,
    Words,
)

SECONDS = {"second": 1, "minute": 60, "hour": 3600}
BEFORE_ROLLING = frozenset(
    {"", "the", "these", "in", "over", "during", "for", "within", "from", "of", "this", "our", ",", "(", '"'}
)
"""What stands before `last two weeks` where it is a date: after other words `last` is a verb."""
WEEKEND_FROM, WEEKEND_DAYS = 5, 2
FINEST = ("second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade")


class Amount(NamedTuple):
    """So many of a unit, at least and at most."""

    least: int
    most: int
    unit: str


HALVES = {"year": Amount(6, 6, "month"), "hour": Amount(30, 30, "minute"), "decade": Amount(5, 5, "year")}
"""Half of a unit, where people say so and there is a smaller one."""


def read_relative(words: Words, at: int, scene: Scene) -> Read | None:
    """Read a date that is told from now."""
    lower = words[at].lower
    if lower in DAYS and not words.is_in_name(at):
        shift = DAYS[lower]
        period = days(moved(scene.today, "day", shift), 1, "day")
        return Read(hours(period, 18, 30, "part") or period if lower == "tonight" else period, at + 1)
    if lower in DEICTICS:
        return _deictic(words, at, scene)
    if lower == "weekend":
        return Read(weekly(WEEKEND_FROM, WEEKEND_DAYS, "weekend"), at + 1, "day")
    if lower in ("day", "week", "month", "year", "weekend") or lower in WEEKDAYS:
        return _before_last(words, at, scene)
    return None


def _before_last(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `day before yesterday`, `week before last`, `weekend after next`."""
    lower, side, anchor = words[at].lower, words[at + 1].lower, words[at + 2].lower
    if lower == "day" and (side, anchor) in (("before", "yesterday"), ("after", "tomorrow")):
        return Read(days(moved(scene.today, "day", -2 if side == "before" else 2), 1, "day"), at + 3)
    if (side, anchor) not in (("before", "last"), ("after", "next")) or lower == "day":
        return None
    if words[at + 3].text.isalpha() and words[at + 3].lower in (*CALENDAR_UNITS, "weekend", *WEEKDAYS):
        return None
    shift = -1 if side == "before" else 1
    if lower in ("weekend", *WEEKDAYS):
        cycle = (
            weekly(WEEKDAYS[lower], 1, "day") if lower in WEEKDAYS else weekly(WEEKEND_FROM, WEEKEND_DAYS, "weekend")
        )
        near = previous(cycle, scene) if shift < 0 else following(cycle, scene)
        if near is None or near.since is None:
            return None
        return Read(days(moved(near.since, "week", shift), (1 if lower in WEEKDAYS else 2), cycle.unit), at + 3)
    return Read(_unit_from_now(scene, lower, 2 * shift), at + 3)


def _unit_from_now(scene: Scene, unit: str, shift: int) -> Period:
    """Return the calendar unit so many before or after that of now."""
    return of_unit(moved(floor(scene.now, unit), unit, shift), unit)


def _deictic(words: Words, at: int, scene: Scene) -> Read | None:
    """Read what follows `last`, `this`, `next` and their like."""
    start, how = at, words[at].lower
    if how == "this" and words[at + 1].lower in ("past", "coming", "last", "next"):
        at, how = at + 1, words[at + 1].lower
    rolling = _rolling(words, start, at, scene)
    if rolling is not None:
        return rolling
    lower = words[at + 1].lower
    side = -1 if how in BACK else 1 if how in AHEAD else 0
    if how in ("past", "previous", "coming", "upcoming", "current") and lower not in (
        *CALENDAR_UNITS,
        "weekend",
        *WEEKDAYS,
    ):
        return None
    if lower in CALENDAR_UNITS:
        return _unit(words, at + 2, scene, lower, side)
    if lower == "weekend":
        weekend = weekly(WEEKEND_FROM, WEEKEND_DAYS, "weekend")
        period = weekend.occurrence(weekend.number(scene.now) + side)
        return Read(period, at + 2) if period is not None and words[at + 2].lower != "of" else None
    if lower in DAYPARTS:
        return _part(words, at, scene, side)
    return _occurrence(words, at + 1, scene, side)


def _unit(words: Words, end: int, scene: Scene, unit: str, side: int) -> Read | None:
    """Return `last week` and, if one follows, the weekday of it."""
    if words[end].lower in ("of", "in") and side:
        return None if words[end].lower == "of" else Read(_unit_from_now(scene, unit, side), end)
    period = _unit_from_now(scene, unit, side)
    day_at = end + 1 if words[end].lower == "on" else end
    weekday = WEEKDAYS.get(words[day_at].lower)
    if unit == "week" and weekday is not None and period.since is not None:
        return Read(days(moved(period.since, "day", weekday), 1, "day"), day_at + 1)
    return Read(period, end)


def _part(words: Words, at: int, scene: Scene, side: int) -> Read | None:
    """Read `last night`, `this morning`; no other part of a day is told so."""
    part = words[at + 1].lower
    if (side < 0 and part not in ("night", "evening")) or side > 0 or (side == 0 and part == "night"):
        return None
    first, last = DAYPARTS[part]
    period = hours(days(moved(scene.today, "day", side), 1, "day"), first, last, "part")
    return Read(period, at + 2) if period is not None else None


def _occurrence(words: Words, at: int, scene: Scene, side: int) -> Read | None:
    """Read `last May`, `next Christmas`, `this Friday`: the nearest that is over, to come, or of this year or week."""
    found = read_named(words, at, scene)
    if found is None or found.doubt == "never" or not isinstance(found.value, Cycle):
        return None
    if words[at].text[:1].isdigit():
        return None
    if side == 0 and words[at].lower == "may" and words[at].text.islower() and words[found.end].text.isalpha():
        return None
    choose = {-1: previous, 0: current, 1: following}[side]
    period = choose(found.value, scene)
    return Read(period, found.end) if period is not None else None


def _rolling(words: Words, start: int, at: int, scene: Scene) -> Read | None:
    """Read `the past three months`, `last few days`, `the last week`: up to now or on from it, by whole days."""
    how, before = words[at].lower, words[start - 1].lower
    if how not in ("last", "past", "next", "coming", "previous") or before not in BEFORE_ROLLING:
        return None
    amount = _amount(words, at + 1, allow_one=False)
    if amount is None:
        unit = words[at + 1].lower
        by_article = before == "the" and how in ("last", "next") and unit in ("week", "month", "year", "hour")
        if not (
            by_article or (how in ("past", "coming") and unit in ("week", "month", "year", "hour", "quarter", "decade"))
        ):
            return None
        amount = Amount(1, 1, unit), at + 2
    (_, most, unit), end = amount
    if words[end].lower == "of":
        return None
    back = how in BACK
    if unit in SECONDS:
        instant = epoch(scene.now, scene.zone, 0.0)
        length = most * SECONDS[unit]
        since, until = (instant - length, instant) if back else (instant, instant + length)
        return Read(Period(wall(since, scene.zone), wall(until, scene.zone), "span"), end)
    tomorrow = stretch(scene.today, "day")
    if back:
        return Read(Period(moved(scene.today, unit, -most), tomorrow, "span"), end)
    return Read(Period(scene.today, stretch(tomorrow, unit, most), "span"), end)


def _amount(words: Words, at: int, *, allow_one: bool = True) -> tuple[Amount, int] | None:
    """Read `three weeks`, `a couple of days`, `2-3 months`, `an hour`, `half a year`; give it and the word behind."""
    lower = words[at].lower
    if lower == "half":
        return _half(words, at)
    if lower == "a" and words[at + 1].lower in ("couple", "few"):
        at, lower = at + 1, words[at + 1].lower
    if lower == "couple":
        end = at + 2 if words[at + 1].lower == "of" else at + 1
        least = most = 2
    elif lower in VAGUE:
        (least, most), end = VAGUE[lower], at + 1
    elif lower in ("a", "an") and allow_one:
        least, most, end = 1, 1, at + 1
    else:
        count = _count(words, at)
        if count is None:
            return None
        least, most, end = count
    unit = UNITS.get(words[end].lower)
    if unit is None or most < 1:
        return None
    name, factor = unit
    return Amount(least * factor, most * factor, name), end + 1


def _half(words: Words, at: int) -> tuple[Amount, int] | None:
    found = HALVES.get(words[at + 2].lower) if words[at + 1].lower in ("a", "an") else None
    return (found, at + 3) if found is not None else None


def _and_a_half(words: Words, at: int) -> bool:
    return (words[at].lower, words[at + 1].lower, words[at + 2].lower) == ("and", "a", "half")


def _count(words: Words, at: int) -> tuple[int, int, int] | None:
    """Read one number or two, `2-3`, `two or three`: least, most, the word behind."""
    first = _value(words, at)
    if first is None:
        return None
    number, end = first
    if words[end].lower in ("-", "to", "or"):
        last = _value(words, end + 1, joined=True)
        if last is not None and last[0] > number:
            return number, *last
    return number, number, end


def _value(words: Words, at: int, *, joined: bool = False) -> tuple[int, int] | None:
    """Read `45`, `five`, `forty-five`; give it and the word behind."""
    word = words[at]
    if word.is_number:
        return (int(word.text), at + 1) if joined or is_loose(words, at) else None
    number = NUMBERS.get(word.lower)
    if number is None:
        return None
    ones_at = at + 2 if words[at + 1].lower == "-" else at + 1
    ones = NUMBERS.get(words[ones_at].lower, 0)
    return (number + ones, ones_at + 1) if number in range(20, 100, 10) and 0 < ones < 10 else (number, at + 1)


def read_amounts(words: Words, at: int) -> tuple[list[Amount], int] | None:
    """Read amounts of time that add up: `2 years and 3 months`, `an hour and a half`, `two and a half hours`."""
    count = _count(words, at)
    if count is not None and _and_a_half(words, count[2]):
        name, _ = UNITS.get(words[count[2] + 3].lower, ("", 1))
        return ([Amount(count[0], count[1], name), HALVES[name]], count[2] + 4) if name in HALVES else None
    amounts: list[Amount] = []
    end = at
    while True:
        following_at = end + 1 if amounts and words[end].lower in ("and", ",") else end
        found = _amount(words, following_at)
        if found is None or len(amounts) > 3:
            break
        amounts.append(found[0])
        end = found[1]
    if amounts and amounts[-1].unit in HALVES and _and_a_half(words, end):
        amounts.append(HALVES[amounts[-1].unit])
        end += 3
    return (amounts, end) if amounts else None


def read_moment_ago(words: Words, scene: Scene) -> datetime | None:
    """Read a text that is nothing but how many hours, minutes or seconds ago; the latest moment that it may mean."""
    found = read_amounts(words, 0)
    if found is None:
        return None
    amounts, end = found
    is_all = words[end].lower == "ago" and not words.text[words[end].end :].strip(" \t\n.")
    is_exact = any(amount.unit in SECONDS for amount in amounts)
    return _point(scene, amounts, -1, most=False) if is_all and is_exact else None


def read_ago(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `three days ago`, `a year ago today`, `two weeks from now`, `10 minutes ago`."""
    found = read_amounts(words, at)
    if found is None:
        return None
    amounts, end = found
    lower = words[end].lower
    if lower == "ago":
        if words[end + 1].lower == "today" and amounts[-1].unit not in SECONDS:
            return Read(of_unit(_point(scene, amounts, -1, most=True), "day"), end + 2)
        return Read(_around(scene, amounts, -1), end + 1)
    if lower == "from" and words[end + 1].lower in ("now", "today"):
        return Read(_around(scene, amounts, 1), end + 2)
    return None


def read_ahead(words: Words, at: int, scene: Scene) -> Read | None:
    """Read what follows `in`: `two weeks`, `an hour`, `3 days' time`; not how long something took.

    Seconds and minutes are always taken for a duration.
    """
    found = read_amounts(words, at)
    if found is None:
        return None
    amounts, end = found
    before = words[at - 2].lower
    if any(amount.unit in ("second", "minute") for amount in amounts) or words[end].lower in ("of", "ago", "or", "old"):
        return None
    if before.endswith("ed") or before in PAST_PARTICIPLES:
        return None
    if words[end].lower == "'":
        end += 2 if words[end + 1].lower == "s" else 1
    if words[end].lower == "time":
        end += 1
    return Read(_around(scene, amounts, 1), end)


def _around(scene: Scene, amounts: list[Amount], sign: int) -> Period:
    """Return what is meant by so long ago: the calendar unit reached, for weeks the seven days around the day."""
    unit = min((amount.unit for amount in amounts), key=FINEST.index)
    near, far = (_reached(_point(scene, amounts, sign, most=most), unit, scene) for most in (False, True))
    first, last = (far, near) if sign < 0 else (near, far)
    return Period(first.since, last.until, near.unit if near == far else "span")


def _reached(moment: datetime, unit: str, scene: Scene) -> Period:
    if unit in ("second", "minute", "hour"):
        finest: Unit = "hour" if unit == "hour" else "minute"
        start = floor(moment, finest)
        end = epoch(start, scene.zone, 0.0) + SECONDS[finest]
        return Period(start, wall(end, scene.zone), finest)
    if unit == "week":
        return days(floor(moment, "day") - timedelta(days=3), 7, "week")
    return of_unit(moment, unit)


def _point(scene: Scene, amounts: list[Amount], sign: int, *, most: bool) -> datetime:
    """Return the moment so far from now: calendar units on the wall clock, hours and less in elapsed time."""
    moment, elapsed = scene.now, 0
    for amount in amounts:
        count = sign * (amount.most if most else amount.least)
        if amount.unit in SECONDS:
            elapsed += count * SECONDS[amount.unit]
        else:
            moment = moved(moment, amount.unit, count)
    return wall(epoch(moment, scene.zone, 0.0) + elapsed, scene.zone) if elapsed else moment
