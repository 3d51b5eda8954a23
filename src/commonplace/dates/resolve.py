"""Read one date: in digits, by calendar name, or relative to now; 2024-05-06, 5 May, Christmas, last week, 3 days ago.

A date without a year (or week) is a cycle. A name that is also another word is marked doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from commonplace.dates import calendar, vocabulary
from commonplace.dates.calendar import Cycle, Period, Scene
from commonplace.dates.vocabulary import Word, Words
from commonplace.lazy_regex import lazy_pattern


class Read(NamedTuple):
    """A date that was read: its value, the number of the next word, and its kind of doubt.

    Attributes:
        doubt: "" if it is certainly a date, else the kind that a preposition or `last`, `this`, `next` must confirm.
    """

    value: Period | Cycle
    end: int
    doubt: str = ""

    def changed(self, change: Callable[[Period], Period | None], unit: str) -> Read | None:
        """Return the date with its period, or each period of its cycle, changed."""
        return read_as(calendar.mapped(self.value, change, unit), self.end)


def read_as(value: Period | Cycle | None, end: int) -> Read | None:
    """Return a value read up to a word, or None if there is no value."""
    return Read(value, end) if value is not None else None


# Dates and times in digits.

ISO = lazy_pattern(
    r"(\d{4})-(\d{2})(?:-(\d{2})(?:(?:T|[ ])(\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?"
    r"(Z|[+-]\d{2}:?\d{2})?)?)?(?![\w-]|[.:/]\w)",
    re.ASCII,
)
YEAR_FIRST = lazy_pattern(r"(\d{4})/(\d{1,2})/(\d{1,2})(?![\w-]|[./:]\w)", re.ASCII)
DAY_MONTH_YEAR = lazy_pattern(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\w-]|[./:]\w)", re.ASCII)
OPENING = frozenset("([\"'“‘*_;|~<>")
"""Marks after which a number may begin without a space."""
MONTH_YEARS = range(1900, 2200)
"""Years in which `2026-05` is a month; with any other number it is not a date."""


def read_numeric(words: Words, index: int, scene: Scene) -> Read | None:
    """Read a date in digits that begins at a word, never inside a longer number or path."""
    text, start = words.text, words[index].start
    value: Period | None
    if match := ISO.match(text, start):
        year, month = int(match[1]), int(match[2])
        if match[3] is None:
            value = calendar.months(year, month, 1, "month") if year in MONTH_YEARS else None
        elif match[4] is None:
            value = calendar.day(year, month, int(match[3]))
        else:
            moment = datetime(year, month, int(match[3]), int(match[4]), int(match[5]), tzinfo=scene.zone)
            if match[7] is not None:
                written = f"{match[0][:10]}T{match[4]}:{match[5]}{match[7]}"
                moment = datetime.fromisoformat(written).astimezone(scene.zone)
            since = moment.replace(tzinfo=None)
            value = Period(since, since + timedelta(minutes=1), "span")
    elif match := YEAR_FIRST.match(text, start):
        value = calendar.day(int(match[1]), int(match[2]), int(match[3]))
    elif match := DAY_MONTH_YEAR.match(text, start):
        # 13/5/2024 either way round, 3.4.2024 as Europe writes it, and 3/4/2024 not at all
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        if match[2] == "." or first > 12 or first == second:
            value = calendar.day(year, second, first)
        else:
            value = calendar.day(year, first, second) if second > 12 else None
    else:
        return None
    return read_as(value, words.after(match.end(), index))


# What a number is.


def is_loose(words: Words, index: int) -> bool:
    """Return whether a number does not continue a decimal, path, price or identifier before it."""
    before = words[index - 1].lower
    if before == ",":
        return not words[index].glued or not words[index - 2].text[-1:].isdigit()
    return not words[index].glued or before in OPENING


def _goes_on(words: Words, index: int, marks: str) -> bool:
    """Return whether a number continues after one of the marks: a decimal, a time, a path."""
    mark, behind = words[index], words[index + 1]
    return mark.glued and mark.lower in marks and behind.glued and behind.text[:1].isdigit()


def _is_count_of(words: Words, index: int) -> bool:
    """Return whether a word makes the number before it a count: `files`, `ms`, `%`."""
    word = words[index]
    if word.lower in vocabulary.MEASURES or word.lower in vocabulary.COUNTED or _goes_on(words, index, ".,:/-"):
        return True
    return (
        word.text.isalpha()
        and word.text.islower()
        and word.lower.endswith("s")
        and word.lower not in vocabulary.NOT_COUNTED
    )


# Dates by calendar name.

ORDINAL_DAY = lazy_pattern(r"(0?[1-9]|[12]\d|3[01])(st|nd|rd|th)?", re.ASCII)
QUARTER = lazy_pattern(r"[Qq]([1-4])", re.ASCII)
FIXED_HOLIDAYS = {
    "christmas eve": (12, 24, 1),
    "christmas day": (12, 25, 1),
    "christmas": (12, 24, 3),
    "xmas": (12, 24, 3),
    "boxing day": (12, 26, 1),
    "new year's eve": (12, 31, 1),
    "new year's day": (1, 1, 1),
    "halloween": (10, 31, 1),
    "valentine's day": (2, 14, 1),
}
"""Month, day and length in days of each holiday."""
EASTER_DAYS = {"easter sunday": (0, 1), "easter monday": (1, 1), "easter": (-2, 4), "good friday": (-2, 1)}
"""First day, relative to Easter Sunday, and length in days."""
HOLIDAY = lazy_pattern(
    f"({'|'.join((*FIXED_HOLIDAYS, *EASTER_DAYS, 'thanksgiving'))})(?!\\w)".replace("'", "['’]"), re.IGNORECASE
)
NEAR_YEARS = range(1900, 2101)
YEARS = range(1000, 3000)
SHIFTS = {"last": -1, "this": 0, "next": 1}


def read_named(words: Words, index: int, scene: Scene) -> Read | None:
    """Read a date that begins with a calendar name or a day of a month."""
    word = words[index]
    if word.text[:1].isdigit():
        return (
            (_day_before_month(words, index, scene) or _year_before_month(words, index, scene))
            if is_loose(words, index)
            else None
        )
    if word.lower not in vocabulary.NAMES:
        return None
    if date := _weekday(words, index, scene) or _month_first(words, index, scene) or _holiday(words, index, scene):
        return date
    if (month := vocabulary.SEASONS.get(word.lower)) is not None:
        doubt = "fall" if word.lower == "fall" or (word.is_capitalised and word.lower == "spring") else "season"
        date = _yearly(words, index + 1, scene, "season", lambda year: calendar.months(year, month, 3, "season"), doubt)
        return None if date.doubt and words[index + 1].lower == "of" else date
    if (quarter := QUARTER.fullmatch(word.text)) is None:
        return None
    # `Q3 2025`, `Q3`; `Q3/2025`, which nothing but a year may follow
    has_mark = words[index + 1].lower in ("/", "-") and words[index + 1].glued
    first, end = int(quarter[1]) * 3 - 2, index + 2 if has_mark else index + 1
    date = _yearly(words, end, scene, "quarter", lambda year: calendar.months(year, first, 3, "quarter"), "month")
    return date if isinstance(date.value, Period) or not has_mark else None


def _is_near_year(word: Word) -> bool:
    return word.is_number and len(word.text) == 4 and int(word.text) in NEAR_YEARS


def _read_year(words: Words, index: int, scene: Scene) -> tuple[int, int] | None:
    """Read the year of a named date, `2024`, `, 2024`, `of 2024`, `last year`; return it and the next word's number."""
    index = words.skip(index, ",", "of", "in")
    shift = SHIFTS.get(words[index].lower)
    if shift is not None and words[index + 1].lower == "year":
        return scene.now.year + shift, index + 2
    word = words[index]
    if not word.is_number or (word.glued and words[index - 1].lower not in (",", "/")):
        return None
    year = int(word.text)
    if len(word.text) == 2 and year > 31:
        return (1900 + year, index + 1) if not _is_count_of(words, index + 1) else None
    if len(word.text) != 4 or year not in YEARS:
        return None
    if _goes_on(words, index + 1, ":.,") or (year not in NEAR_YEARS and _is_count_of(words, index + 1)):
        return None
    return year, index + 1


def read_bare_year(words: Words, index: int) -> Read | None:
    """Read `2023` if it counts nothing, which needs a preposition to be a year, or `year 2023`, which does not."""
    doubt, index = ("", index + 1) if words[index].lower == "year" else ("year", index)
    word, behind = words[index], words[index + 1]
    if not _is_near_year(word) or word.glued or _is_count_of(words, index + 1):
        return None
    if behind.lower == "by" or words.is_in_name(index):
        return None
    has_other = behind.lower in ("to", "and", "or", "-", "through") and words[index + 2].text[:1].isdigit()
    if has_other and (not _is_near_year(words[index + 2]) or _is_count_of(words, index + 3)):
        return None
    return Read(calendar.months(int(word.text), 1, 12, "year"), index + 1, doubt)


def _yearly(
    words: Words, end: int, scene: Scene, unit: str, make: Callable[[int], Period | None], doubt: str = ""
) -> Read:
    """Return the cycle, or its one occurrence if a year follows."""
    year = _read_year(words, end, scene)
    if year is None:
        return Read(Cycle("year", unit, make), end, doubt)
    number, end = year
    period = Cycle("year", unit, make).occurrence(number)
    return Read(period if period is not None else Cycle("year", unit, lambda _: None), end)


def _month(words: Words, index: int) -> tuple[int, int] | None:
    word = words[index]
    number = vocabulary.MONTHS.get(word.lower)
    if number is None:
        return None
    if len(word.text) <= 4 and word.lower not in ("may", "june", "july"):
        stop = words[index + 1]
        if stop.lower == "." and stop.glued and words[index + 2].text[:1].isdigit():
            return number, index + 2
    return number, index + 1


class _Days(NamedTuple):
    """One or two days of a month, whether they are ordinals, and the number of the next word."""

    first: int
    last: int
    is_ordinal: bool
    end: int

    @property
    def unit(self) -> str:
        return "day" if self.first == self.last else "span"

    def of_month(self, month: int) -> Callable[[int], Period | None]:
        return lambda year: Period(
            calendar.day(year, month, self.first).since, calendar.day(year, month, self.last).until, self.unit
        )


def _day_range(words: Words, index: int) -> _Days | None:
    """Read one day of a month, or two joined by a dash, `to` or `and`."""
    first = ORDINAL_DAY.fullmatch(words[index].lower)
    if first is None:
        return None
    number, is_ordinal = int(first[1]), first[2] is not None
    if words[index + 1].lower in ("-", "to", "and", "until", "through", "or"):
        last_at = words.skip(index + 2, "the")
        last = ORDINAL_DAY.fullmatch(words[last_at].lower)
        if last is not None and number < int(last[1]):
            return _Days(number, int(last[1]), is_ordinal or last[2] is not None, last_at + 1)
    return _Days(number, number, is_ordinal, index + 1)


def _day_before_month(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `1 March`, `1st of March 2025`, `3-5 May`."""
    span = _day_range(words, index)
    if span is None:
        return None
    end = words.skip(span.end, "of")
    is_ordinal = span.is_ordinal or end > span.end
    month = _month(words, end)
    if month is None:
        return None
    name, (number, behind) = words[end], month
    make = span.of_month(number)
    is_verb = name.text.islower() and name.lower in ("may", "march")
    if is_verb and not is_ordinal and words[behind].lower not in vocabulary.LOOSE_FOLLOWERS:
        found = _yearly(words, behind, scene, "day", make)
        return found if isinstance(found.value, Period) else None
    return _yearly(words, behind, scene, span.unit, make, "" if is_ordinal or _is_name(name) else "day")


def _year_before_month(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `2024 May 5`, which would be another day without its year."""
    is_date = _is_near_year(words[index]) and words[index + 1].is_capitalised
    found = _month_first(words, index + 1, scene) if is_date else None
    if found is None or not isinstance(found.value, Cycle):
        return None
    return read_as(found.value.occurrence(int(words[index].text)), found.end)


def _month_first(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `March 1st, 2025`, `May 3-5`, `May 2025`, `May`."""
    word, month = words[index], _month(words, index)
    if month is None:
        return None
    if word.glued and words[index - 1].lower in vocabulary.GLUE and words[index - 2].lower not in vocabulary.EDGES:
        return None
    number, end = month
    span = _day_range(words, words.skip(end, "the")) if not words[end].glued else None
    is_part = span is not None and (
        _goes_on(words, span.end, ":./")
        or (_goes_on(words, span.end, ",") and _read_year(words, span.end, scene) is None)
    )
    if span is not None and not is_part:
        found = _yearly(words, span.end, scene, span.unit, span.of_month(number))
        is_day = _is_name(word) and not _is_count_of(words, span.end)
        if isinstance(found.value, Period) or span.is_ordinal or is_day:
            return found
    doubt = _doubt(words, index, end)
    return _yearly(words, end, scene, "month", lambda year: calendar.months(year, number, 1, "month"), doubt)


def _is_name(word: Word) -> bool:
    """Return whether a month's name beside a day is certainly a month."""
    return word.is_capitalised or word.lower not in vocabulary.VERB_MONTHS


def _doubt(words: Words, index: int, end: int) -> str:
    """Return the kind of doubt of a month's name without day and year."""
    word, behind = words[index], words[end]
    if word.lower in vocabulary.PLAIN_MONTHS:
        return ""
    possessive = behind.lower == "'" and behind.glued and words[end + 1].lower == "s"
    if possessive or (behind.glued and behind.lower in ("-", "_", "/", ".") and words[end + 1].glued):
        return "never"
    if word.lower in ("may", "march"):
        if word.text.islower() and words[index - 1].lower == "the":
            return "never"
        return "month" if word.is_capitalised or behind.lower in vocabulary.LOOSE_FOLLOWERS else "never"
    return "month" if _is_name(word) else "never"


def _weekday(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `Monday`, `Monday, 5 May`, `Monday of last week`; a short name only with a date or a preposition."""
    word = words[index]
    is_short = word.lower not in vocabulary.WEEKDAYS
    weekday = (vocabulary.WEEKDAY_SHORT if is_short and word.is_capitalised else vocabulary.WEEKDAYS).get(word.lower)
    if weekday is None or words[index - 1].lower in vocabulary.NOT_BEFORE_WEEKDAY or words.is_in_name(index):
        return None
    end = index + 1
    if is_short and words[end].lower == "." and words[end].glued:
        end += 1
    # A date after a weekday may belong to it: `, 5 May`, ` the 5th of May`.
    behind = words.skip(words.skip(end, ",", "the"), "the")
    dated = _day_before_month(words, behind, scene) or _month_first(words, behind, scene)
    if dated is not None and not dated.doubt and dated.value.unit in ("day", "span"):
        return dated
    cycle = calendar.weekly(vocabulary.WEEKDAY_NAMES[weekday])
    week = words.skip(end, "of")
    shift = SHIFTS.get(words[week].lower)
    if shift is not None and words[week + 1].lower == "week":
        return read_as(cycle.occurrence(cycle.number(scene.now) + shift), week + 2)
    if is_short:
        return Read(cycle, index + 1, "never" if word.lower in ("sun", "sat") else "day")
    return Read(cycle, end)


def _holiday(words: Words, index: int, scene: Scene) -> Read | None:
    match = HOLIDAY.match(words.text, words[index].start)
    if match is None:
        return None
    name = match[1].lower().replace("’", "'")

    def make(year: int) -> Period:
        count = 1
        if name == "thanksgiving":
            first = datetime(year, 11, 1)  # noqa: DTZ001
            first += timedelta(days=(3 - first.weekday()) % 7 + 21)
        elif name in EASTER_DAYS:
            from dateutil.easter import easter

            shift, count = EASTER_DAYS[name]
            first = datetime.combine(easter(year), datetime.min.time()) + timedelta(days=shift)
        else:
            month, number, count = FIXED_HOLIDAYS[name]
            first = datetime(year, month, number)  # noqa: DTZ001
        return calendar.days(first, count, "day" if count == 1 else "span")

    return _yearly(words, words.after(match.end(), index), scene, "day", make, "day")


# Dates and amounts relative to now.

ELAPSED = frozenset({"second", "minute", "hour"})
"""Units counted in elapsed time; all others are counted on the calendar."""
BEFORE_ROLLING = frozenset(
    {"", "the", "these", "in", "over", "during", "for", "within", "from", "of", "this", "our", ",", "(", '"'}
)
"""Words that may precede `last two weeks` as a date; after other words `last` is a verb."""
FINEST = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")


class Amount(NamedTuple):
    """A range of numbers, `least` to `most`, of a unit."""

    least: int
    most: int
    unit: str


HALVES = {"year": Amount(6, 6, "month"), "hour": Amount(30, 30, "minute")}
"""Half of each unit for which that is usual."""


def _day_from_now(scene: Scene, shift: int) -> Period:
    return calendar.days(calendar.moved(calendar.floor(scene.now, "day"), "day", shift), 1, "day")


def _unit_from_now(scene: Scene, unit: str, shift: int) -> Period:
    return calendar.of_unit(calendar.moved(calendar.floor(scene.now, unit), unit, shift), unit)


def read_relative(words: Words, index: int, scene: Scene) -> Read | None:
    """Read a date relative to now: `yesterday`, `last week`, `day before yesterday`, `week before last`."""
    lower, side, anchor = words[index].lower, words[index + 1].lower, words[index + 2].lower
    if lower in vocabulary.DAYS and not words.is_in_name(index):
        return Read(_day_from_now(scene, vocabulary.DAYS[lower]), index + 1)
    if lower in vocabulary.DEICTICS:
        return _deictic(words, index, scene)
    if lower == "weekend":
        return Read(calendar.weekly(lower), index + 1, "day")
    shift = -2 if side == "before" else 2
    if lower == "day" and (side, anchor) in (("before", "yesterday"), ("after", "tomorrow")):
        return Read(_day_from_now(scene, shift), index + 3)
    if lower in ("week", "month", "year") and (side, anchor) in (("before", "last"), ("after", "next")):
        # `the week before last Christmas` is another week.
        behind = words[index + 3].lower
        is_whole = behind not in (*vocabulary.CALENDAR_UNITS, "weekend", *vocabulary.WEEKDAYS)
        return Read(_unit_from_now(scene, lower, shift), index + 3) if is_whole else None
    return None


def _deictic(words: Words, index: int, scene: Scene) -> Read | None:
    """Read a date that begins with `last`, `this`, `next` or a synonym."""
    start, how = index, words[index].lower
    if how == "this" and words[index + 1].lower in ("past", "coming", "last", "next"):
        index, how = index + 1, words[index + 1].lower
    if (rolling := _rolling(words, start, index, scene)) is not None:
        return rolling
    index, side = index + 1, -1 if how in vocabulary.BACK else 1 if how in vocabulary.AHEAD else 0
    lower, behind = words[index].lower, words[index + 1].lower
    is_plain = lower in (*vocabulary.CALENDAR_UNITS, "weekend", *vocabulary.WEEKDAYS)
    if how in ("past", "previous", "coming", "upcoming", "current") and not is_plain:
        return None
    if lower in vocabulary.CALENDAR_UNITS:
        period = _unit_from_now(scene, lower, side)
        if behind == "of" and side:
            return None
        day_at = words.skip(index + 1, "on")
        weekday = vocabulary.WEEKDAYS.get(words[day_at].lower) if lower == "week" else None
        if weekday is None:
            return Read(period, index + 1)
        return Read(calendar.days(calendar.moved(period.since, "day", weekday), 1, "day"), day_at + 1)
    if lower == "weekend":
        weekend = calendar.weekly(lower)
        number = weekend.number(scene.now) + side
        return read_as(weekend.occurrence(number) if behind != "of" else None, index + 1)
    if lower in vocabulary.DAYPARTS:
        # `last night`, `this morning`; no other part of a day is used like this.
        is_used = lower in ("night", "evening") if side < 0 else not side and lower != "night"
        return Read(_day_from_now(scene, side), index + 1) if is_used else None
    return _occurrence(words, index, scene, side)


def _occurrence(words: Words, index: int, scene: Scene, side: int) -> Read | None:
    """Read `last May`, `next Christmas`, `this Friday`: the nearest that is over, to come, or of this year or week."""
    found = read_named(words, index, scene) if not words[index].text[:1].isdigit() else None
    if found is None or found.doubt == "never" or not isinstance(found.value, Cycle):
        return None
    is_may = side == 0 and words[index].lower == "may" and words[index].text.islower()
    if is_may and words[found.end].text.isalpha():
        return None
    return read_as(calendar.occurrence(found.value, scene, side), found.end)


def _rolling(words: Words, start: int, index: int, scene: Scene) -> Read | None:
    """Read `the past three months`, `last few days`, `the last week`: up to now or on from it, by whole days."""
    how, before = words[index].lower, words[start - 1].lower
    if how not in ("last", "past", "next", "coming", "previous") or before not in BEFORE_ROLLING:
        return None
    amount = _amount(words, index + 1, allow_one=False)
    if amount is None:
        unit = words[index + 1].lower
        usual = unit in ("week", "month", "year", "hour")
        by_article = before == "the" and how in ("last", "next") and usual
        if not by_article and not (how in ("past", "coming") and (usual or unit in ("quarter", "decade"))):
            return None
        name, count = vocabulary.UNITS[unit]
        amount = Amount(count, count, name), index + 2
    length, end = amount
    if words[end].lower == "of":
        return None
    sign = -1 if how in vocabulary.BACK else 1
    reached = _point(scene, [length], sign, most=True)
    first, last = sorted((calendar.floor(scene.now, "day"), calendar.floor(reached, "day")))
    return Read(Period(first, calendar.stretch(last, "day"), "span"), end)


def _amount(words: Words, index: int, *, allow_one: bool = True) -> tuple[Amount, int] | None:
    """Read `three weeks`, `a couple of days`, `2-3 months`, `an hour`, `half a year`; return it and the next word."""
    lower = words[index].lower
    if lower == "half":
        found = HALVES.get(words[index + 2].lower) if words[index + 1].lower in ("a", "an") else None
        return (found, index + 3) if found is not None else None
    if lower == "a" and words[index + 1].lower in ("couple", "few"):
        index, lower = index + 1, words[index + 1].lower
    if lower == "couple":
        least, most, end = 2, 2, words.skip(index + 1, "of")
    elif lower in vocabulary.VAGUE:
        (least, most), end = vocabulary.VAGUE[lower], index + 1
    elif lower in ("a", "an") and allow_one:
        least, most, end = 1, 1, index + 1
    else:
        count = _count(words, index)
        if count is None:
            return None
        least, most, end = count
    unit = vocabulary.UNITS.get(words[end].lower)
    if unit is None or most < 1:
        return None
    name, factor = unit
    return Amount(least * factor, most * factor, name), end + 1


def _count(words: Words, index: int) -> tuple[int, int, int] | None:
    """Read one or two numbers, `2-3`, `two or three`; return least, most and the next word."""
    first = _value(words, index)
    if first is None:
        return None
    number, end = first
    if words[end].lower in ("-", "to", "or"):
        last = _value(words, end + 1, joined=True)
        if last is not None and last[0] > number:
            return number, *last
    return number, number, end


def _value(words: Words, index: int, *, joined: bool = False) -> tuple[int, int] | None:
    """Read `45`, `five`, `forty-five`; return it and the next word."""
    word = words[index]
    if word.is_number:
        return (int(word.text), index + 1) if joined or is_loose(words, index) else None
    number = vocabulary.NUMBERS.get(word.lower)
    if number is None:
        return None
    ones_at = words.skip(index + 1, "-")
    ones = vocabulary.NUMBERS.get(words[ones_at].lower, 0)
    return (number + ones, ones_at + 1) if number in range(20, 100, 10) and 0 < ones < 10 else (number, index + 1)


def read_amounts(words: Words, index: int) -> tuple[list[Amount], int] | None:
    """Read amounts of time that add up: `2 years and 3 months`, `a year and a half`, `two and a half years`."""
    count = _count(words, index)
    if count is not None and _says_half(words, count[2]):
        name, _ = vocabulary.UNITS.get(words[count[2] + 3].lower, ("", 1))
        return ([Amount(count[0], count[1], name), HALVES[name]], count[2] + 4) if name in HALVES else None
    amounts: list[Amount] = []
    end = index
    while len(amounts) <= 3:
        found = _amount(words, words.skip(end, "and", ",") if amounts else end)
        if found is None:
            break
        amounts.append(found[0])
        end = found[1]
    if amounts and amounts[-1].unit in HALVES and _says_half(words, end):
        amounts.append(HALVES[amounts[-1].unit])
        end += 3
    return (amounts, end) if amounts else None


def _says_half(words: Words, index: int) -> bool:
    return [words[number].lower for number in range(index, index + 3)] == ["and", "a", "half"]


def read_moment_ago(text: str, scene: Scene) -> datetime | None:
    """Read a text that is only hours, minutes or seconds ago; return the latest moment that it may mean."""
    words = Words(text)
    amounts, end = read_amounts(words, words.skip(0, "about", "around", "roughly")) or ([], 0)
    is_all = words[end].lower == "ago" and not text[words[end].end :].strip(" \t\n.")
    is_exact = any(amount.unit in ELAPSED for amount in amounts)
    return _point(scene, amounts, -1, most=False) if is_all and is_exact else None


def read_ago(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `three days ago`, `a year ago today`, `two weeks from now`, `10 minutes ago`."""
    found = read_amounts(words, index)
    if found is None:
        return None
    amounts, end = found
    if words[end].lower == "ago":
        if words[end + 1].lower == "today" and amounts[-1].unit not in ELAPSED:
            return Read(calendar.of_unit(_point(scene, amounts, -1, most=True), "day"), end + 2)
        return Read(_around(scene, amounts, -1), end + 1)
    if words[end].lower == "from" and words[end + 1].lower in ("now", "today"):
        return Read(_around(scene, amounts, 1), end + 2)
    return None


def read_ahead(words: Words, index: int, scene: Scene) -> Read | None:
    """Read a date after `in`: `two weeks`, `an hour`, `3 days' time`; not the duration of something.

    Seconds and minutes always count as a duration.
    """
    found = read_amounts(words, index)
    if found is None:
        return None
    amounts, end = found
    before = words[index - 2].lower
    if any(amount.unit in ("second", "minute") for amount in amounts) or words[end].lower in ("of", "ago", "or", "old"):
        return None
    if before.endswith("ed") or before in vocabulary.PAST_PARTICIPLES:
        return None
    if words[end].lower == "'":
        end = words.skip(end + 1, "s")
    return Read(_around(scene, amounts, 1), words.skip(end, "time"))


def _around(scene: Scene, amounts: list[Amount], sign: int) -> Period:
    """Return the period of `three weeks ago`: the calendar unit reached, or for weeks the seven days around it."""
    unit = min((amount.unit for amount in amounts), key=FINEST.index)
    reached = []
    ends = [_point(scene, amounts, sign, most=most) for most in (False, True)]
    for moment in ends:
        if unit == "week":
            reached.append(calendar.days(calendar.floor(moment, "day") - timedelta(days=3), 7, "week"))
        else:
            reached.append(calendar.of_unit(moment, "day" if unit in ELAPSED else unit))
    near, far = reached
    first, last = (far, near) if sign < 0 else (near, far)
    likely = calendar.floor(ends[0] + (ends[1] - ends[0]) / 2, "day")
    return Period(first.since, last.until, near.unit if near == far else "span", likely)


def _point(scene: Scene, amounts: list[Amount], sign: int, *, most: bool) -> datetime:
    """Return the moment at a distance from now: calendar units on the wall clock, hours and less in elapsed time."""
    moment, elapsed = scene.now, timedelta()
    for amount in amounts:
        count = sign * (amount.most if most else amount.least)
        if amount.unit in ELAPSED:
            elapsed += timedelta(**{f"{amount.unit}s": count})
        else:
            moment = calendar.moved(moment, amount.unit, count)
    if not elapsed:
        return moment
    return (moment.replace(tzinfo=scene.zone).astimezone(UTC) + elapsed).astimezone(scene.zone).replace(tzinfo=None)
