"""Parse absolute dates: numeric and ISO dates, clock times, months, weekdays, quarters, seasons, holidays, decades.

A date without a year (or week) is a cycle. A name that is also another word is marked as doubtful.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

from commonplace.dates.calendar import (
    Cycle,
    Period,
    Scene,
    Unit,
    day,
    days,
    hours,
    mapped,
    minute,
    months,
    wall,
    weekly,
    years,
)
from commonplace.dates.vocabulary import (
    COUNTED,
    DAYPARTS,
    DECADES,
    EDGES,
    GLUE,
    LOOSE_FOLLOWERS,
    MEASURES,
    MONTHS,
    NAMES,
    NOT_BEFORE_WEEKDAY,
    NOT_COUNTED,
    PLAIN_MONTHS,
    SEASONS,
    VERB_MONTHS,
    WEEKDAY_SHORT,
    WEEKDAYS,
    Word,
    Words,
)


class Read(NamedTuple):
    """What was read: its value, the number of the word behind it, and what must stand before it to be believed.

    Attributes:
        doubt: "" when it is a date anywhere, else the kind that a preposition or `last`, `this`, `next` must vouch for.
    """

    value: Period | Cycle
    end: int
    doubt: str = ""


ISO = re.compile(
    r"(\d{4})-(\d{2})(?:-(\d{2})(?:(?:T|[ ])(\d{2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?"
    r"(Z|[+-]\d{2}:?\d{2})?)?)?(?![\w-]|[.:/]\w)",
    re.ASCII,
)
ISO_WEEK = re.compile(r"(\d{4})-W(\d{2})(?![\w-])", re.ASCII)
YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})(?![\w-]|[./:]\w)", re.ASCII)
DAY_MONTH_YEAR = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})(?![\w-]|[./:]\w)", re.ASCII)
TIME = re.compile(
    r"(\d{1,2})(?:[:.](\d{2})(?::\d{2})?)?[ ]?(am|pm|a\.m\.|p\.m\.)(?!\w)|(\d{1,2}):(\d{2})(?::\d{2})?(?![\w:]|[.-]\w)",
    re.IGNORECASE | re.ASCII,
)
OPENING = frozenset("([\"'“‘*_;|~<>")
"""Marks that a number may follow without a space and still begin there."""
MONTH_YEARS = range(1900, 2200)
"""Years for which 2026-05 is a month; with other digits it is a number of something."""


def read_numeric(words: Words, at: int, scene: Scene) -> Read | None:
    """Read a date in digits that begins with a word; it never begins within a longer number or path."""
    start = words[at].start
    for pattern, make in ((ISO, _iso), (YEAR_FIRST, _year_first), (DAY_MONTH_YEAR, _day_first), (ISO_WEEK, _iso_week)):
        match = pattern.match(words.text, start)
        if match is None:
            continue
        period = make(match, scene.zone)
        return Read(period, words.after(match.end(), at)) if period is not None else None
    return None


def _iso(match: re.Match[str], zone: tzinfo) -> Period | None:
    year, month = int(match[1]), int(match[2])
    if match[3] is None:
        return months(year, month, 1, "month") if year in MONTH_YEARS else None
    if match[4] is None:
        return day(year, month, int(match[3]))
    moment = datetime(year, month, int(match[3]), int(match[4]), int(match[5]))  # noqa: DTZ001
    if match[7] is None:
        return minute(day(year, month, moment.day), moment.hour * 60 + moment.minute)
    offset = timedelta(0)
    if match[7] != "Z":
        digits = match[7][1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if match[7][0] == "-" else 1)
    seconds = (moment - datetime(1970, 1, 1) - offset).total_seconds()  # noqa: DTZ001
    return Period(wall(seconds, zone), wall(seconds + 60, zone), "minute")


def _iso_week(match: re.Match[str], _zone: tzinfo) -> Period | None:
    monday = datetime.fromisocalendar(int(match[1]), int(match[2]), 1)
    return weekly(0, 7, "week").make((monday.toordinal() - 1) // 7)


def _year_first(match: re.Match[str], _zone: tzinfo) -> Period | None:
    return day(int(match[1]), int(match[2]), int(match[3]))


def _day_first(match: re.Match[str], _zone: tzinfo) -> Period | None:
    """Read 13/5/2024 either way round, 3.4.2024 as Europe writes it, and 3/4/2024 not at all."""
    first, second, year = int(match[1]), int(match[3]), int(match[4])
    if match[2] == "." or first > 12 or first == second:
        return day(year, second, first)
    return day(year, first, second) if second > 12 else None


class Clock(NamedTuple):
    """A time of day: what it makes of a day, and the number of the word behind it."""

    apply: Callable[[Period], Period | None]
    end: int

    def of(self, value: Period | Cycle) -> Period | Cycle | None:
        """Return that time on a day."""
        return mapped(value, self.apply, "part")


def read_time(words: Words, at: int) -> Clock | None:
    """Read 5 pm (an hour), 5:30 pm or 17:30 (a minute), noon."""
    word = words[at]
    if word.lower in ("noon", "midday"):
        return Clock(lambda period: hours(period, 12, 13, "hour"), at + 1)
    match = TIME.match(words.text, word.start) if word.text[:1].isdigit() else None
    if match is None:
        return None
    end = words.after(match.end(), at)
    hour, minutes = int(match[1] or match[4]), int(match[2] or match[5] or 0)
    if match[3] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match[3][0] in "pP" else 0)
    if hour > 23 or minutes > 59:
        return None
    if match[2] is None and match[5] is None:
        return Clock(lambda period: hours(period, hour, hour + 1, "hour"), end)
    return Clock(lambda period: minute(period, hour * 60 + minutes), end)


def read_clock(words: Words, at: int) -> Clock | None:
    """Read what may follow a day: `, at 5 pm`, `10:30`, `evening`, `in the morning`."""
    if words[at].lower == ",":
        at += 1
    part_at = at + 2 if words[at].lower == "in" and words[at + 1].lower == "the" else at
    part = DAYPARTS.get(words[part_at].lower)
    if part is not None:
        first, last = part
        return Clock(lambda period: hours(period, first, last, "part"), part_at + 1)
    if words[at].lower in ("at", "around", "@"):
        at += 1
    return read_time(words, at)


def is_loose(words: Words, at: int) -> bool:
    """Tell whether a number stands alone to its left: no decimal, path, price or identifier goes on in it."""
    before = words[at - 1].lower
    if before == ",":
        return not words[at].glued or not words[at - 2].text[-1:].isdigit()
    return not words[at].glued or before in OPENING


def goes_on(words: Words, at: int, marks: str) -> bool:
    """Tell whether a number goes on behind one of some marks: a decimal, a time, a path."""
    mark, behind = words[at], words[at + 1]
    return mark.glued and mark.lower in marks and behind.glued and behind.text[:1].isdigit()


def is_count_of(words: Words, at: int) -> bool:
    """Tell whether the word at a place makes the number before it a count: `files`, `ms`, `%`."""
    word = words[at]
    if word.lower in MEASURES or word.lower in COUNTED or goes_on(words, at, ".,:/-"):
        return True
    return word.text.isalpha() and word.text.islower() and word.lower.endswith("s") and word.lower not in NOT_COUNTED


ORDINAL_DAY = re.compile(r"(0?[1-9]|[12]\d|3[01])(st|nd|rd|th)?", re.ASCII)
DECADE = re.compile(r"(?:(\d{3})0|([6-9])0)s", re.ASCII)
QUARTER = re.compile(r"[Qq]([1-4])", re.ASCII)
HALF = re.compile(r"H([12])", re.ASCII)
HOLIDAY = re.compile(
    r"(christmas eve|christmas day|christmas|xmas|boxing day|new year['’]s eve|new year['’]s day|halloween"
    r"|valentine['’]s day|thanksgiving|easter sunday|easter monday|easter|good friday)(?!\w)",
    re.IGNORECASE,
)
NEAR_YEARS = range(1900, 2101)
YEARS = range(1000, 3000)
SHIFTS = {"last": -1, "this": 0, "next": 1}


def read_named(words: Words, at: int, scene: Scene) -> Read | None:
    """Read a date that begins with a calendar name or a day of a month."""
    word = words[at]
    if word.text[:1].isdigit():
        if not is_loose(words, at):
            return None
        return _day_before_month(words, at, scene) or _year_before_month(words, at, scene) or _decade(words, at)
    if word.lower not in NAMES:
        return None
    for read in (_weekday, _month_first, _season, _holiday, _quarter):
        found = read(words, at, scene)
        if found is not None:
            return found
    return _decade(words, at)


def read_year(words: Words, at: int, scene: Scene) -> tuple[int, int] | None:
    """Read the year of a named date, `2024`, `, 2024`, `of 2024`, `last year`; give it and the word behind."""
    if words[at].lower in (",", "of", "in"):
        at += 1
    shift = SHIFTS.get(words[at].lower)
    if shift is not None and words[at + 1].lower == "year":
        return scene.now.year + shift, at + 2
    word = words[at]
    if not word.is_number or (word.glued and words[at - 1].lower not in (",", "/")):
        return None
    year = int(word.text)
    if len(word.text) == 2 and year > 31:
        return (1900 + year, at + 1) if not is_count_of(words, at + 1) else None
    if len(word.text) != 4 or year not in YEARS:
        return None
    if goes_on(words, at + 1, ":.,") or (year not in NEAR_YEARS and is_count_of(words, at + 1)):
        return None
    return year, at + 1


def read_bare_year(words: Words, at: int) -> Read | None:
    """Read a year by itself, which only a preposition makes one, and which counts nothing."""
    word = words[at]
    if not (word.is_number and len(word.text) == 4 and int(word.text) in NEAR_YEARS and word.text != "2048"):
        return None
    if word.glued or is_count_of(words, at + 1) or words[at + 1].lower == "by" or words.is_in_name(at):
        return None
    if words[at + 1].lower in ("to", "and", "or", "-", "through") and words[at + 2].text[:1].isdigit():
        other = words[at + 2]
        if not (other.is_number and len(other.text) == 4 and int(other.text) in NEAR_YEARS):
            return None
        if is_count_of(words, at + 3):
            return None
    return Read(years(int(word.text), 1, "year"), at + 1, "year")


def _yearly(
    words: Words, end: int, scene: Scene, unit: Unit, make: Callable[[int], Period | None], doubt: str = ""
) -> Read | None:
    """Return the cycle, or the one occurrence whose year follows."""
    year = read_year(words, end, scene)
    if year is None:
        return Read(Cycle("year", unit, make), end, doubt)
    number, end = year
    period = Cycle("year", unit, make).occurrence(number)
    return Read(period if period is not None else Cycle("year", unit, lambda _: None), end)


def _month(words: Words, at: int) -> tuple[int, int] | None:
    """Read a month's name, full or short, with its full stop."""
    word = words[at]
    number = MONTHS.get(word.lower)
    if number is None:
        return None
    if len(word.text) <= 4 and word.lower not in ("may", "june", "july"):
        stop = words[at + 1]
        if stop.lower == "." and stop.glued and words[at + 2].text[:1].isdigit():
            return number, at + 2
    return number, at + 1


def _number(word: Word) -> tuple[int, bool] | None:
    """Return the day of the month that a word is, and whether it is written as an ordinal."""
    match = ORDINAL_DAY.fullmatch(word.lower)
    return (int(match[1]), match[2] is not None) if match is not None else None


def _day_range(words: Words, at: int) -> tuple[int, int, bool, int] | None:
    """Read a day of the month or two with a dash, `to` or `and`: first, last, whether ordinals, the word behind."""
    first = _number(words[at])
    if first is None:
        return None
    behind = words[at + 1]
    if behind.lower in ("-", "to", "and", "until", "through", "or"):
        skip = 3 if words[at + 2].lower == "the" else 2
        last = _number(words[at + skip])
        if last is not None and first[0] < last[0]:
            return first[0], last[0], first[1] or last[1], at + skip + 1
    return first[0], first[0], first[1], at + 1


def _of_month(first: int, last: int, month: int) -> Callable[[int], Period | None]:
    def make(year: int) -> Period | None:
        if first == last:
            return day(year, month, first)
        return Period(day(year, month, first).since, day(year, month, last).until, "span")

    return make


def _day_before_month(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `1 March`, `1st of March 2025`, `3-5 May`."""
    span = _day_range(words, at)
    if span is None:
        return None
    first, last, ordinal, end = span
    if words[end].lower == "of":
        end += 1
        ordinal = True
    if words[end].lower in ("-", ","):
        return None
    month = _month(words, end)
    if month is None:
        return None
    name = words[end]
    trusted = _is_name(name)
    if (
        name.text.islower()
        and name.lower in ("may", "march")
        and not ordinal
        and words[month[1]].lower not in LOOSE_FOLLOWERS
    ):
        return _only_with_year(_yearly(words, month[1], scene, "day", _of_month(first, last, month[0])))
    unit: Unit = "day" if first == last else "span"
    return _yearly(words, month[1], scene, unit, _of_month(first, last, month[0]), "" if trusted or ordinal else "day")


def _year_before_month(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `2024 May 5`, `2024 Q3`."""
    word = words[at]
    if not (word.is_number and len(word.text) == 4 and int(word.text) in NEAR_YEARS):
        return None
    found = _month_first(words, at + 1, scene) or _quarter(words, at + 1, scene)
    if found is None or not isinstance(found.value, Cycle) or not words[at + 1].is_capitalised:
        return None
    period = found.value.occurrence(int(word.text))
    return Read(period, found.end) if period is not None else None


def _month_first(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `March 1st, 2025`, `May 3-5`, `May 2025`, `May`."""
    month = _month(words, at)
    if month is None or (words[at].glued and words[at - 1].lower in GLUE and words[at - 2].lower not in EDGES):
        return None
    number, end = month
    span = _day_range(words, end + 1 if words[end].lower == "the" else end) if not words[end].glued else None
    if span is not None:
        found = _month_day(words, at, scene, number, span)
        if found is not None:
            return found
    return _yearly(words, end, scene, "month", lambda year: months(year, number, 1, "month"), _doubt(words, at, end))


def _month_day(words: Words, at: int, scene: Scene, month: int, span: tuple[int, int, bool, int]) -> Read | None:
    first, last, ordinal, end = span
    if goes_on(words, end, ":./") or (goes_on(words, end, ",") and read_year(words, end, scene) is None):
        return None
    unit: Unit = "day" if first == last else "span"
    found = _yearly(words, end, scene, unit, _of_month(first, last, month))
    if found is None or isinstance(found.value, Period) or ordinal:
        return found
    return found if _is_name(words[at]) and not is_count_of(words, end) else None


def _is_name(word: Word) -> bool:
    """Tell whether a month's name, with a day, can be nothing else."""
    return word.is_capitalised or word.lower not in VERB_MONTHS


def _doubt(words: Words, at: int, end: int) -> str:
    """Return how doubtful a month's name is without day and year."""
    word, behind = words[at], words[end]
    if word.lower in PLAIN_MONTHS:
        return ""
    possessive = behind.lower == "'" and behind.glued and words[end + 1].lower == "s"
    if possessive or (behind.glued and behind.lower in ("-", "_", "/", ".") and words[end + 1].glued):
        return "never"
    if word.lower in ("may", "march"):
        if word.text.islower() and words[at - 1].lower == "the":
            return "never"
        return "month" if word.is_capitalised or behind.lower in LOOSE_FOLLOWERS else "never"
    if word.lower in VERB_MONTHS:
        return "month" if word.is_capitalised else "never"
    return "month"


def _only_with_year(found: Read | None) -> Read | None:
    return found if found is not None and isinstance(found.value, Period) else None


def _weekday(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `Monday`, `Monday, 5 May`, `Monday of last week`; a short name only with a date or a preposition."""
    word = words[at]
    number = WEEKDAYS.get(word.lower)
    short = WEEKDAY_SHORT.get(word.lower) if number is None and word.is_capitalised else None
    if (number is None and short is None) or words[at - 1].lower in NOT_BEFORE_WEEKDAY or words.is_in_name(at):
        return None
    end = at + 1
    if short is not None and words[end].lower == "." and words[end].glued:
        end += 1
    dated = _dated(words, end, scene)
    if dated is not None:
        return dated
    weekday = number if number is not None else short
    assert weekday is not None
    cycle = weekly(weekday, 1, "day")
    week = end + 1 if words[end].lower == "of" else end
    shift = SHIFTS.get(words[week].lower)
    if shift is not None and words[week + 1].lower == "week":
        period = cycle.occurrence(cycle.number(scene.now) + shift)
        return Read(period, week + 2) if period is not None else None
    if short is not None:
        return Read(cycle, at + 1, "never" if word.lower in ("sun", "sat") else "day")
    return Read(cycle, end)


def _dated(words: Words, at: int, scene: Scene) -> Read | None:
    """Read the date behind a weekday, which it may belong to: `, 5 May`, ` the 5th of May`."""
    if words[at].lower in (",", "the"):
        at += 1
    if words[at].lower == "the":
        at += 1
    found = _day_before_month(words, at, scene) or _month_first(words, at, scene)
    return found if found is not None and not found.doubt and found.value.unit in ("day", "span") else None


def _season(words: Words, at: int, scene: Scene) -> Read | None:
    word = words[at]
    month = SEASONS.get(word.lower)
    if month is None:
        return None
    doubt = "fall" if word.lower == "fall" or (word.is_capitalised and word.lower == "spring") else "season"
    found = _yearly(words, at + 1, scene, "season", lambda year: months(year, month, 3, "season"), doubt)
    return None if found is not None and found.doubt and words[at + 1].lower == "of" else found


def _holiday(words: Words, at: int, scene: Scene) -> Read | None:
    match = HOLIDAY.match(words.text, words[at].start)
    if match is None:
        return None
    name = match[1].lower().replace("’", "'")
    return _yearly(words, words.after(match.end(), at), scene, "day", _holidays(name), "day")


def _holidays(name: str) -> Callable[[int], Period | None]:
    fixed = {
        "christmas eve": (12, 24),
        "christmas day": (12, 25),
        "boxing day": (12, 26),
        "new year's eve": (12, 31),
        "new year's day": (1, 1),
        "halloween": (10, 31),
        "valentine's day": (2, 14),
    }
    if name in ("christmas", "xmas"):
        return lambda year: days(datetime(year, 12, 24), 3, "span")  # noqa: DTZ001
    if name == "thanksgiving":
        return _thanksgiving
    if name not in fixed:
        return lambda year: _easter(year, name)
    month, number = fixed[name]
    return lambda year: day(year, month, number)


def _thanksgiving(year: int) -> Period:
    first = datetime(year, 11, 1)  # noqa: DTZ001
    return days(first + timedelta(days=(3 - first.weekday()) % 7 + 21), 1, "day")


def _easter(year: int, name: str) -> Period:
    from dateutil.easter import easter

    sunday = datetime.combine(easter(year), datetime.min.time())
    first, count = {"good friday": (-2, 1), "easter sunday": (0, 1), "easter monday": (1, 1)}.get(name, (-2, 4))
    return days(sunday + timedelta(days=first), count, "day" if count == 1 else "span")


def _quarter(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `Q3 2025`, `Q3`, and `H1 2025`, which needs its year."""
    word = words[at]
    end = at + 2 if words[at + 1].lower in ("/", "-") and words[at + 1].glued else at + 1
    half = HALF.fullmatch(word.text)
    if half is not None:
        first = int(half[1]) * 6 - 5
        return _only_with_year(_yearly(words, end, scene, "half", lambda year: months(year, first, 6, "half")))
    quarter = QUARTER.fullmatch(word.text)
    if quarter is None:
        return None
    start = int(quarter[1]) * 3 - 2
    found = _yearly(words, end, scene, "quarter", lambda year: months(year, start, 3, "quarter"), "month")
    return found if end == at + 1 else _only_with_year(found)


def _decade(words: Words, at: int) -> Read | None:
    """Read `1990s`; `the nineties` and `the 90s` where a preposition says that it is no temperature, `the` no age."""
    word = words[at]
    short_at = at - 1 if words[at - 1].lower == "'" else at
    if words[short_at - 1].lower == "-":
        short_at -= 1
    has_article = "the" in (words[short_at - 1].lower, words[short_at - 2].lower)
    if word.lower in DECADES and has_article:
        return Read(years(1900 + DECADES[word.lower], 10, "decade"), at + 1, "year")
    match = DECADE.fullmatch(word.lower)
    if match is None or (match[2] is not None and not has_article):
        return None
    if match[2] is not None:
        return Read(years(1900 + int(match[2]) * 10, 10, "decade"), at + 1, "year")
    first = int(match[1]) * 10
    return Read(years(first, 10, "decade"), at + 1) if 1700 <= first <= 2090 else None
