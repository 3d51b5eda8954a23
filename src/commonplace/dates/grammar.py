"""Combine dates into longer expressions: first week of June, two days before Christmas, from 3 to 5 pm."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from commonplace.dates import calendar, resolve, vocabulary
from commonplace.dates.calendar import Cycle, Period, Scene
from commonplace.dates.resolve import Read
from commonplace.dates.vocabulary import Words

NOTHING: frozenset[str] = frozenset()
ORDINAL = {**vocabulary.ORDINALS, "last": -1}
PIECES = frozenset({"day", "week", "weekend", "half", "quarter", *vocabulary.WEEKDAYS})
WHOLE = ("month", "quarter", "season", "half", "year")


def read_date(words: Words, at: int, scene: Scene, vouched: frozenset[str] = NOTHING) -> Read | None:
    """Read a date and the part of the day that may follow it.

    Args:
        vouched: the kinds of doubtful dates that the words before make certain.
    """
    start = words.skip(at, "the")
    if words[start].lower == "'" and words[start + 1].glued:
        start += 1
    if words[start].lower not in vocabulary.STARTS and not words[start].text[:1].isdigit():
        return None
    for read in (_edge, _ordinal, _week_of, _offset):
        found = read(words, start, scene)
        if found is not None:
            return found
    found = _core(words, start, scene) or _year(words, start)
    if found is None or (found.doubt and found.doubt not in vouched):
        return None
    # Parts of a day are read as the whole day: `yesterday evening`, `on Monday morning`.
    return found._replace(end=words.skip(found.end, *vocabulary.DAYPARTS)) if found.value.unit == "day" else found


def _core(words: Words, at: int, scene: Scene) -> Read | None:
    if (
        words[at].text[:1].isdigit()
        and resolve.is_loose(words, at)
        and (found := resolve.read_numeric(words, at, scene))
    ):
        return found
    return (
        resolve.read_named(words, at, scene)
        or resolve.read_ago(words, at, scene)
        or resolve.read_relative(words, at, scene)
    )


def _year(words: Words, at: int) -> Read | None:
    """Read `2023`, which needs a preposition, or `year 2023`, which needs none."""
    if words[at].lower != "year":
        return resolve.read_bare_year(words, at)
    found = resolve.read_bare_year(words, at + 1)
    return found._replace(doubt="") if found is not None else None


def _enclosing(words: Words, at: int, scene: Scene) -> Read | None:
    """Read the date that a part is taken of: `the month` is this one."""
    if words[at].lower in ("the", "this") and words[at + 1].lower in vocabulary.CALENDAR_UNITS:
        unit = words[at + 1].lower
        return Read(calendar.of_unit(scene.now, unit), at + 2) if words[at + 2].lower not in ("of", "before") else None
    at = words.skip(at, "the", "'")
    found = _core(words, at, scene) or _year(words, at)
    return found if found is not None and found.doubt not in ("never", "fall") else None


def _edge(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `end of May`, `early 2024`, `mid-June`, `late last year`."""
    at = words.skip(at, "very", "exact")
    edge = words[at].lower
    which = vocabulary.EDGES.get(edge)
    if which is None or (edge in vocabulary.EDGE_NOUNS and words[at + 1].lower != "of"):
        return None
    inner = words.skip(at + 1, "of") if edge in vocabulary.EDGE_NOUNS else words.skip(at + 1, "-", "in")
    found = _enclosing(words, inner, scene)
    return found.changed(lambda period: calendar.third(period, which), "span") if found is not None else None


def _ordinal(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `first week of May`, `last Friday of the month`, `second half of 2024`, `third of May`."""
    number = ORDINAL.get(words[at].lower)
    if number is None:
        return None
    piece, inner = words[at + 1].lower, at + 3
    if piece == "of" and number > 0 and words[at + 2].lower in vocabulary.MONTHS and words[at + 2].is_capitalised:
        piece, inner = "day", at + 2
    elif words[at + 2].lower not in ("of", "in") or piece not in PIECES:
        return None
    found = _enclosing(words, inner, scene)
    if found is None or found.value.unit not in WHOLE:
        return None
    return found.changed(lambda period: _nth(period, piece, number), "day")


def _nth(period: Period, piece: str, number: int) -> Period | None:
    """Return the nth day, week (of seven days from the first), weekday, weekend, half or quarter of a period."""
    since, until = calendar.bounds(period)
    if piece in ("half", "quarter"):
        return _fraction(period, 2 if piece == "half" else 4, number)
    if piece in ("day", "week"):
        length = 1 if piece == "day" else 7
        start = since + timedelta(days=length * (number - 1)) if number > 0 else until - timedelta(days=length)
        return calendar.days(start, length, "day" if piece == "day" else "week") if start < until else None
    weekday, length = (5, 2) if piece == "weekend" else (vocabulary.WEEKDAYS[piece], 1)
    if number > 0:
        start = since + timedelta(days=(weekday - since.weekday()) % 7 + 7 * (number - 1))
    else:
        last = until - timedelta(days=1)
        start = last - timedelta(days=(last.weekday() - weekday) % 7)
    return calendar.days(start, length, "weekend" if length == 2 else "day") if start < until else None


def _fraction(period: Period, parts: int, number: int) -> Period | None:
    since, until = calendar.bounds(period)
    place = parts if number == -1 else number
    if period.unit == "month" and parts == 2:
        cuts = [since, since + timedelta(days=15), until]
    elif period.unit == "year":
        cuts = [*(calendar.moved(since, "month", 12 // parts * count) for count in range(parts)), until]
    else:
        return None
    return Period(cuts[place - 1], cuts[place], "span") if place <= parts else None


def _week_of(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `week of 5 June`, `weekend of 5 June`: that of the calendar week; `week beginning 5 June`: seven days on."""
    piece, joint = words[at].lower, words[at + 1].lower
    if piece not in ("week", "weekend") or joint not in ("of", "beginning", "commencing", "starting", "ending"):
        return None
    found = _core(words, words.skip(at + 2, "on", "the"), scene)
    if found is None or found.doubt == "never" or found.value.unit != "day":
        return None

    def week(period: Period) -> Period:
        first = calendar.bounds(period)[0]
        if joint == "ending":
            first -= timedelta(days=6)
        elif joint == "of":
            first = calendar.floor(first, "week") + timedelta(days=5 if piece == "weekend" else 0)
        return calendar.days(first, 2 if piece == "weekend" else 7, "span")

    return found.changed(week, "week")


def _offset(words: Words, at: int, scene: Scene) -> Read | None:
    """Read `two days before Christmas`, `a week after 3 May`, `Monday before 24 July`, `weekend after Easter`."""
    name, amounts = words[at].lower, resolve.read_amounts(words, at)
    if name in ("day", "week", "weekend", *vocabulary.WEEKDAYS):
        count, unit, end = 1, name, at + 1
    elif amounts is not None and len(amounts[0]) == 1 and amounts[0][0].least == amounts[0][0].most:
        ((count, _, unit),), end = amounts
    else:
        return None
    side = words[end].lower
    found = _core(words, end + 1, scene) if side in ("before", "after", "from") else None
    if found is None or found.doubt not in ("", "day") or found.value.unit not in ("day", "span"):
        return None
    anchor = calendar.chosen(found.value, scene)
    return resolve.read_as(_beside(anchor, count, unit, side, is_week=name == "week"), found.end) if anchor else None


def _beside(anchor: Period, count: int, unit: str, side: str, *, is_week: bool) -> Period | None:
    """Return the time at a distance before or after a period; `the week before` it are the seven days up to it."""
    since, until = calendar.bounds(anchor)
    if unit == "weekend" or unit in vocabulary.WEEKDAYS:
        near = resolve.recurring(unit).near(since)
        if side == "before":
            return next((each for each in reversed(near) if calendar.bounds(each)[1] <= since), None)
        return next((each for each in near if calendar.bounds(each)[0] >= until), None)
    if unit not in ("day", "week", "month", "year"):
        return None
    first = calendar.moved(since, unit, -count) if side == "before" else until
    if is_week:
        return calendar.days(first, 7, "week")
    if side != "before":
        first = calendar.moved(until - timedelta(days=1), unit, count)
    return calendar.days(first, 1, "day")


class Found(NamedTuple):
    """What begins at a word: a period, or None for words that only look like one; and the word behind."""

    period: Period | None
    end: int


def read(words: Words, at: int, scene: Scene) -> Found | None:
    """Read the date expression that begins at a word, with its preposition."""
    try:
        for reader in (_every, _between, _bound, _preposition):
            if (found := reader(words, at, scene)) is not None:
                return found
        return _range_or_date(words, at, scene, frozenset())
    except (OverflowError, ValueError):  # The words name a date that the calendar does not have.
        return None


def _settled(value: Period | Cycle, end: int, scene: Scene) -> Found:
    """Return the occurrence that is meant; days that do not exist are skipped."""
    return Found(calendar.chosen(value, scene), end)


def _every(words: Words, at: int, scene: Scene) -> Found | None:
    """Pass over `every Monday`, `each year`, `every two weeks`: they name no one date."""
    if words[at].lower not in vocabulary.EVERY:
        return None
    inner = words.skip(at + 1, "other", "single", "second", "last", "first")
    if words[inner].lower in vocabulary.UNITS:
        return Found(None, inner + 1)
    found = read_date(words, inner, scene, vocabulary.ALL)
    return Found(None, found.end) if found is not None else None


def _between(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `between March and May 2024`, `from 3 to 5 May`, `from Monday on`."""
    opening = words[at].lower
    if opening not in ("between", "from"):
        return None
    first = read_date(words, at + 1, scene, vocabulary.ALL)
    if first is None:
        return None
    joints = ("and", "&") if opening == "between" else vocabulary.THROUGH
    if words[first.end].lower in joints:
        last = read_date(words, first.end + 1, scene, vocabulary.ALL)
        value = calendar.joined(first.value, last.value) if last is not None else None
        if last is not None and value is not None:
            return _settled(value, last.end, scene)
    if opening == "between":
        return _settled(first.value, first.end, scene) if first.value.unit == "span" else None
    if words[first.end].lower in ("on", "onward", "onwards"):
        return _opened(first, first.end + 1, scene, "since")
    return None


def _bound(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `since Tuesday`, `until the end of May`, `before 2024`, `up to 2024`."""
    for length in (2, 1):
        which = vocabulary.BOUNDS.get(" ".join(words[at + place].lower for place in range(length)))
        found = read_date(words, at + length, scene, vocabulary.ALL) if which else None
        if which and found is not None:
            return _opened(found, found.end, scene, which)
    return None


def _opened(found: Read, end: int, scene: Scene, which: str) -> Found | None:
    """Return the time since, before, after or until a date; `since` and `until` include the date."""
    period = calendar.chosen(found.value, scene)
    if period is None:
        return None
    edge = period.since if which in ("since", "before") else period.until
    return Found(Period(edge, None, "span") if which in ("since", "after") else Period(None, edge, "span"), end)


def _preposition(words: Words, at: int, scene: Scene) -> Found | None:
    """Read `in May`, `on the 3rd of May`, `in two weeks`, `over the past month`."""
    if words[at].lower == "as" and words[at + 1].lower == "of":
        return _range_or_date(words, at + 2, scene, vocabulary.ALL)
    vouched = vocabulary.PREPOSITIONS.get(words[at].lower)
    if vouched is None:
        return None
    if words[at].lower == "in" and (ahead := resolve.read_ahead(words, at + 1, scene)):
        return _settled(ahead.value, ahead.end, scene)
    return _range_or_date(words, at + 1, scene, vouched)


def _range_or_date(words: Words, at: int, scene: Scene, vouched: frozenset[str]) -> Found | None:
    """Read a date, or two with `to` or a dash if the second has its year or both are days."""
    loose = read_date(words, at, scene, vocabulary.ALL)
    first = loose if loose is not None and (not loose.doubt or loose.doubt in vouched) else None
    if loose is not None and words[loose.end].lower in vocabulary.THROUGH:
        last = read_date(words, loose.end + 1, scene, vocabulary.ALL)
        if last is not None and _is_range(loose, last, certain=first is not None):
            value = calendar.joined(loose.value, last.value)
            if value is not None:
                return _settled(value, last.end, scene)
        if (
            last is not None
            and words[at].lower in vocabulary.WEEKDAYS
            and words[loose.end + 1].lower in vocabulary.WEEKDAYS
        ):
            return Found(None, last.end)
    if first is None:
        return None
    if words[first.end].lower in ("onward", "onwards"):
        return _opened(first, first.end + 1, scene, "since")
    return _settled(first.value, first.end, scene)


def _is_range(first: Read, last: Read, *, certain: bool) -> bool:
    if isinstance(last.value, Period):
        return certain or last.value.unit in ("month", "day", "span", "quarter", "season")
    both_yearly = isinstance(first.value, Cycle) and first.value.every == last.value.every == "year"
    return certain and both_yearly and first.value.unit == last.value.unit
