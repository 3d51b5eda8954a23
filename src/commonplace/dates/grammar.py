"""Combine dates into longer expressions: first week of June, two days before Christmas, from 3 to 5 pm."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf
from typing import NamedTuple

from commonplace.dates import calendar, resolve, vocabulary
from commonplace.dates.calendar import Cycle, Period, Scene
from commonplace.dates.resolve import Read
from commonplace.dates.vocabulary import Words

NOTHING: frozenset[str] = frozenset()
ORDINAL = {**vocabulary.ORDINALS, "last": -1}
PIECES = frozenset({"day", "week", "weekend", "half", "quarter", *vocabulary.WEEKDAYS})
WHOLE = ("month", "quarter", "season", "half", "year")


class DateMatch(NamedTuple):
    """The date expression at a word, and the number of the next word.

    Attributes:
        interval: seconds since the epoch, half-open, -inf and inf for open ends; None if it only looks like a date.
        moment: as in a `Period`, in seconds since the epoch.
    """

    interval: tuple[float, float] | None
    end: int
    moment: float | None = None


def read(words: Words, index: int, scene: Scene) -> DateMatch | None:
    """Read the date expression that begins at a word, with its preposition."""
    opening = words[index].lower
    try:
        if opening in vocabulary.EVERY:
            # `every Monday`, `each year`, `every two weeks` name no single date.
            inner = words.skip(index + 1, "other", "single", "second", "last", "first")
            if words[inner].lower in vocabulary.UNITS:
                return DateMatch(None, inner + 1)
            if date := read_date(words, inner, scene, vocabulary.ALL):
                return DateMatch(None, date.end)
        elif opening in ("between", "from") and (found := _between(words, index, scene)):
            return found
        # `since Tuesday`, `until the end of May`, `up to 2024`
        for length in (2, 1):
            which = vocabulary.BOUNDS.get(" ".join(words[index + position].lower for position in range(length)))
            bound = read_date(words, index + length, scene, vocabulary.ALL) if which else None
            if bound is not None and (found := _opened(bound, bound.end, scene, which or "")):
                return found
        if opening == "as" and words[index + 1].lower == "of":
            found = _range_or_date(words, index + 2, scene, vocabulary.ALL)
        elif opening == "in" and (ahead := resolve.read_ahead(words, index + 1, scene)):
            return _settled(ahead.value, ahead.end, scene)
        elif (vouched := vocabulary.PREPOSITIONS.get(opening)) is not None:
            # `From April we …` names a month, `a letter from April` and `From April Smith` perhaps a person.
            is_month = opening == "from" and words[index].is_capitalised
            is_month = is_month and words[index + 2].lower in vocabulary.LOOSE_FOLLOWERS
            found = _range_or_date(words, index + 1, scene, vouched | {"month"} if is_month else vouched)
        else:
            found = None
        return found or _range_or_date(words, index, scene, NOTHING)
    except (OverflowError, ValueError):  # The words name a date that the calendar does not have.
        return None


def _seconds(moment: datetime, scene: Scene) -> float:
    return moment.replace(tzinfo=scene.zone).timestamp()


def _settled(value: Period | Cycle, end: int, scene: Scene) -> DateMatch:
    """Return the interval of a period, or of a cycle's preferred occurrence; days that do not exist are skipped."""
    period = calendar.chosen(value, scene)
    if period is None:
        return DateMatch(None, end)
    return DateMatch((_seconds(period.since, scene), _seconds(period.until, scene)), end, _moment(period, scene))


def _moment(period: Period, scene: Scene) -> float | None:
    return None if period.moment is None else _seconds(period.moment, scene)


def _opened(date: Read, end: int, scene: Scene, which: str) -> DateMatch | None:
    """Return the time since, before, after or until a date; `since` and `until` include the date."""
    period = calendar.chosen(date.value, scene)
    if period is None:
        return None
    edge = _seconds(period.since if which in ("since", "before") else period.until, scene)
    return DateMatch((edge, inf) if which in ("since", "after") else (-inf, edge), end, _moment(period, scene))


def _between(words: Words, index: int, scene: Scene) -> DateMatch | None:
    """Read `between March and May 2024`, `from 3 to 5 May`, `from Monday on`."""
    is_from = words[index].lower == "from"
    first = read_date(words, index + 1, scene, vocabulary.ALL)
    if first is None:
        return None
    if words[first.end].lower in (vocabulary.THROUGH if is_from else ("and", "&")):
        last = read_date(words, first.end + 1, scene, vocabulary.ALL)
        value = calendar.joined(first.value, last.value) if last is not None else None
        if last is not None and value is not None:
            return _settled(value, last.end, scene)
    if not is_from:
        return _settled(first.value, first.end, scene) if first.value.unit == "span" else None
    is_open = words[first.end].lower in ("on", "onward", "onwards")
    return _opened(first, first.end + 1, scene, "since") if is_open else None


def _range_or_date(words: Words, index: int, scene: Scene, vouched: frozenset[str]) -> DateMatch | None:
    """Read a date, or two joined by `to` or a dash if they form a range."""
    loose = read_date(words, index, scene, vocabulary.ALL)
    if loose is None:
        return None
    is_certain = not loose.doubt or loose.doubt in vouched
    joint = words[loose.end].lower
    last = read_date(words, loose.end + 1, scene, vocabulary.ALL) if joint in vocabulary.THROUGH else None
    if last is not None:
        if isinstance(last.value, Period):
            is_range = is_certain or last.value.unit in ("month", "day", "span", "quarter", "season")
        else:
            both_yearly = isinstance(loose.value, Cycle) and loose.value.every == last.value.every == "year"
            is_range = is_certain and both_yearly and loose.value.unit == last.value.unit
        if is_range and (value := calendar.joined(loose.value, last.value)) is not None:
            return _settled(value, last.end, scene)
        if words[index].lower in vocabulary.WEEKDAYS and words[loose.end + 1].lower in vocabulary.WEEKDAYS:
            return DateMatch(None, last.end)
    if not is_certain:
        return None
    if joint in ("onward", "onwards"):
        return _opened(loose, loose.end + 1, scene, "since")
    return _settled(loose.value, loose.end, scene)


def read_date(words: Words, index: int, scene: Scene, vouched: frozenset[str] = NOTHING) -> Read | None:
    """Read a date and the part of the day that may follow it.

    Args:
        vouched: the kinds of doubtful dates that the preceding words confirm.
    """
    start = words.skip(index, "the")
    if words[start].lower == "'" and words[start + 1].glued:
        start += 1
    if words[start].lower not in vocabulary.STARTS and not words[start].text[:1].isdigit():
        return None
    for read_part in (_edge, _ordinal, _week_of, _offset):
        if (found := read_part(words, start, scene)) is not None:
            return found
    found = _core(words, start, scene) or resolve.read_bare_year(words, start)
    if found is None or (found.doubt and found.doubt not in vouched):
        return None
    # A part of a day means the whole day: `yesterday evening`, `on Monday morning`.
    return found._replace(end=words.skip(found.end, *vocabulary.DAYPARTS)) if found.value.unit == "day" else found


def _core(words: Words, index: int, scene: Scene) -> Read | None:
    is_number = words[index].text[:1].isdigit() and resolve.is_loose(words, index)
    return (
        (resolve.read_numeric(words, index, scene) if is_number else None)
        or resolve.read_named(words, index, scene)
        or resolve.read_ago(words, index, scene)
        or resolve.read_relative(words, index, scene)
    )


def _enclosing(words: Words, index: int, scene: Scene) -> Read | None:
    """Read the date that a part belongs to; `the month` is the current one."""
    unit = words[index + 1].lower
    if words[index].lower in ("the", "this") and unit in vocabulary.CALENDAR_UNITS:
        has_more = words[index + 2].lower in ("of", "before")
        return None if has_more else Read(calendar.of_unit(scene.now, unit), index + 2)
    index = words.skip(index, "the", "'")
    found = _core(words, index, scene) or resolve.read_bare_year(words, index)
    return found if found is not None and found.doubt not in ("never", "fall") else None


def _edge(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `end of May`, `early 2024`, `mid-June`, `late last year`."""
    index = words.skip(index, "very", "exact")
    edge = words[index].lower
    which = vocabulary.EDGES.get(edge)
    if which is None or (edge in vocabulary.EDGE_NOUNS and words[index + 1].lower != "of"):
        return None
    inner = words.skip(index + 1, "of") if edge in vocabulary.EDGE_NOUNS else words.skip(index + 1, "-", "in")
    found = _enclosing(words, inner, scene)
    return found.changed(lambda period: calendar.part(period, 3, which), "span") if found is not None else None


def _ordinal(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `first week of May`, `last Friday of the month`, `second half of 2024`, `third of May`.

    Weeks are counted in sevens from the first day of the period.
    """
    number = ORDINAL.get(words[index].lower)
    if number is None:
        return None
    piece, inner = words[index + 1].lower, index + 3
    if piece == "of" and number > 0 and words[index + 2].lower in vocabulary.MONTHS and words[index + 2].is_capitalised:
        piece, inner = "day", index + 2
    elif words[index + 2].lower not in ("of", "in") or piece not in PIECES:
        return None
    found = _enclosing(words, inner, scene)
    if found is None or found.value.unit not in WHOLE:
        return None

    def nth(period: Period) -> Period | None:
        since, until = period.since, period.until
        if piece in ("half", "quarter"):
            count = 2 if piece == "half" else 4
            return calendar.part(period, count, count - 1 if number < 0 else number - 1)
        if piece in ("day", "week"):
            length, unit = (1, "day") if piece == "day" else (7, "week")
            start = since + timedelta(days=length * (number - 1)) if number > 0 else until - timedelta(days=length)
        else:
            weekday, length, unit = (5, 2, "weekend") if piece == "weekend" else (vocabulary.WEEKDAYS[piece], 1, "day")
            last = until - timedelta(days=1)
            if number > 0:
                start = since + timedelta(days=(weekday - since.weekday()) % 7 + 7 * (number - 1))
            else:
                start = last - timedelta(days=(last.weekday() - weekday) % 7)
        return calendar.days(start, length, unit) if start < until else None

    return found.changed(nth, "day")


def _week_of(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `week of 5 June`, `weekend of 5 June`: that of the calendar week; `week beginning 5 June`: seven days on."""
    piece, joint = words[index].lower, words[index + 1].lower
    if piece not in ("week", "weekend") or joint not in ("of", "beginning", "commencing", "starting", "ending"):
        return None
    found = _core(words, words.skip(index + 2, "on", "the"), scene)
    if found is None or found.doubt == "never" or found.value.unit != "day":
        return None

    def week(period: Period) -> Period:
        first = period.since
        if joint == "ending":
            first -= timedelta(days=6)
        elif joint == "of":
            first = calendar.floor(first, "week") + timedelta(days=5 if piece == "weekend" else 0)
        return calendar.days(first, 2 if piece == "weekend" else 7, "span")

    return found.changed(week, "week")


def _offset(words: Words, index: int, scene: Scene) -> Read | None:
    """Read `two days before Christmas`, `a week after 3 May`, `Monday before 24 July`, `weekend after Easter`.

    `the week before` a date is the seven days up to it.
    """
    name, amounts = words[index].lower, resolve.read_amounts(words, index)
    if name in ("day", "week", "weekend", *vocabulary.WEEKDAYS):
        count, unit, end = 1, name, index + 1
    elif amounts is not None and len(amounts[0]) == 1 and amounts[0][0].least == amounts[0][0].most:
        ((count, _, unit),), end = amounts
    else:
        return None
    is_before = words[end].lower == "before"
    found = _core(words, end + 1, scene) if is_before or words[end].lower in ("after", "from") else None
    if found is None or found.doubt not in ("", "day") or found.value.unit not in ("day", "span"):
        return None
    anchor = calendar.chosen(found.value, scene)
    if anchor is None:
        return None
    since, until = anchor.since, anchor.until
    if unit == "weekend" or unit in vocabulary.WEEKDAYS:
        near = calendar.weekly(unit).near(since)
        if is_before:
            beside = next((occurrence for occurrence in reversed(near) if occurrence.until <= since), None)
        else:
            beside = next((occurrence for occurrence in near if occurrence.since >= until), None)
        return resolve.read_as(beside, found.end)
    if unit not in ("day", "week", "month", "year"):
        return None
    if is_before:
        first = calendar.moved(since, unit, -count)
    else:
        first = until if name == "week" else calendar.moved(until - timedelta(days=1), unit, count)
    return Read(calendar.days(first, 7, "week") if name == "week" else calendar.days(first, 1, "day"), found.end)
