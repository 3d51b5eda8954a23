"""Dates in English texts become exact stretches of time; each was worked out by hand on a calendar.

Now is Wednesday, 14 May 2025, 15:30 UTC. Its week began on Monday the 12th, its quarter on 1 April.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf
from zoneinfo import ZoneInfo

import pytest

from commonplace.dataclasses import replace
from commonplace.dates import Mention, Prefer, mentions, moment_ago

NOW = datetime(2025, 5, 14, 15, 30, 42, tzinfo=UTC)


def at(text: str) -> float:
    """Return the epoch seconds of a UTC time, `..` for an open end."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def span(text: str) -> tuple[float, float]:
    since, _, until = text.partition(" ")
    return (-inf if since == ".." else at(since)), (inf if until == ".." else at(until))


WRITTEN = [
    # ISO 8601 and digits
    ("released 2025-03-04.", "2025-03-04", "2025-03-04 2025-03-05"),
    ("since 2026-05, we", "since 2026-05", "2026-05-01 .."),
    ("at 2025-03-04T10:30:15Z ok", "at 2025-03-04T10:30:15Z", "2025-03-04T10:30 2025-03-04T10:31"),
    ("2025-03-04 10:30 start", "2025-03-04 10:30", "2025-03-04T10:30 2025-03-04T10:31"),
    ("2025-03-04T10:30+02:00", "2025-03-04T10:30+02:00", "2025-03-04T08:30 2025-03-04T08:31"),
    ("due 13/5/2024", "13/5/2024", "2024-05-13 2024-05-14"),
    ("due 5/13/2024", "5/13/2024", "2024-05-13 2024-05-14"),
    ("due 3.4.2024", "3.4.2024", "2024-04-03 2024-04-04"),
    ("due 2024/04/03", "2024/04/03", "2024-04-03 2024-04-04"),
    # Days
    ("we met on 1 March", "on 1 March", "2025-03-01 2025-03-02"),
    ("we met on 1 June", "on 1 June", "2024-06-01 2024-06-02"),
    ("March 1st, 2025 was cold", "March 1st, 2025", "2025-03-01 2025-03-02"),
    ("on December 1,2023 taken", "on December 1,2023", "2023-12-01 2023-12-02"),
    ("on the 3rd of May", "on the 3rd of May", "2025-05-03 2025-05-04"),
    ("the third of May", "the third of May", "2025-05-03 2025-05-04"),
    ("on Feb. 3, 2024 we", "on Feb. 3, 2024", "2024-02-03 2024-02-04"),
    ("by 7 November, 2022", "by 7 November, 2022", "2022-11-07 2022-11-08"),
    ("10 Jun 94", "10 Jun 94", "1994-06-10 1994-06-11"),
    ("on 29 February", "on 29 February", "2024-02-29 2024-03-01"),
    ("29 Feb 2024", "29 Feb 2024", "2024-02-29 2024-03-01"),
    ("Monday, 5 May 2025", "Monday, 5 May 2025", "2025-05-05 2025-05-06"),
    ("Mon 5 May", "Mon 5 May", "2025-05-05 2025-05-06"),
    ("25 December last year", "25 December last year", "2024-12-25 2024-12-26"),
    ("the last day of February 2024", "the last day of February 2024", "2024-02-29 2024-03-01"),
    # Months, quarters, seasons, years
    ("May 2025 numbers", "May 2025", "2025-05-01 2025-06-01"),
    ("in May of 1992", "in May of 1992", "1992-05-01 1992-06-01"),
    ("in May", "in May", "2025-05-01 2025-06-01"),
    ("in june we", "in june", "2024-06-01 2024-07-01"),
    ("in may we", "in may", "2025-05-01 2025-06-01"),
    ("January was hard", "January", "2025-01-01 2025-02-01"),
    ("It began August last year", "August last year", "2024-08-01 2024-09-01"),
    ("in Dec", "in Dec", "2024-12-01 2025-01-01"),
    ("Q3 2025", "Q3 2025", "2025-07-01 2025-10-01"),
    ("in Q4", "in Q4", "2024-10-01 2025-01-01"),
    ("Q3/2025", "Q3/2025", "2025-07-01 2025-10-01"),
    ("the third quarter of 2024", "the third quarter of 2024", "2024-07-01 2024-10-01"),
    ("the second half of 2024", "the second half of 2024", "2024-07-01 2025-01-01"),
    ("summer 2024", "summer 2024", "2024-06-01 2024-09-01"),
    ("in the fall of 2024", "in the fall of 2024", "2024-09-01 2024-12-01"),
    ("winter 2023", "winter 2023", "2023-12-01 2024-03-01"),
    ("in 2021 we", "in 2021", "2021-01-01 2022-01-01"),
    ("the year 2023 was", "the year 2023", "2023-01-01 2024-01-01"),
    ("as of August 2011", "as of August 2011", "2011-08-01 2011-09-01"),
    # Holidays
    ("Christmas 2023", "Christmas 2023", "2023-12-24 2023-12-27"),
    ("on New Year's Eve 2023", "on New Year's Eve 2023", "2023-12-31 2024-01-01"),
    ("at Easter 2024", "at Easter 2024", "2024-03-29 2024-04-02"),
    ("on Thanksgiving", "on Thanksgiving", "2024-11-28 2024-11-29"),
    ("last Halloween", "last Halloween", "2024-10-31 2024-11-01"),
    # Parts of a stretch
    ("at the beginning of May", "at the beginning of May", "2025-05-01 2025-05-11"),
    ("mid-May", "mid-May", "2025-05-11 2025-05-21"),
    ("by the end of February 2024", "by the end of February 2024", "2024-02-21 2024-03-01"),
    ("early 2024", "early 2024", "2024-01-01 2024-05-01"),
    ("late last year", "late last year", "2024-09-01 2025-01-01"),
    ("the end of the month", "the end of the month", "2025-05-21 2025-06-01"),
    ("the first week of April", "the first week of April", "2025-04-01 2025-04-08"),
    ("the last week of October 2023", "the last week of October 2023", "2023-10-25 2023-11-01"),
    ("last Friday of the month", "last Friday of the month", "2025-05-30 2025-05-31"),
    ("first weekend in June", "first weekend in June", "2024-06-01 2024-06-03"),
    ("the week of 5 June", "the week of 5 June", "2024-06-03 2024-06-10"),
    ("the week beginning 5 June", "the week beginning 5 June", "2024-06-05 2024-06-12"),
    # Ranges and open ends
    ("between March and May 2024", "between March and May 2024", "2024-03-01 2024-06-01"),
    ("from 3 to 5 May", "from 3 to 5 May", "2025-05-03 2025-05-06"),
    ("3–5 May 2024", "3–5 May 2024", "2024-05-03 2024-05-06"),
    ("May 3-5, 2024", "May 3-5, 2024", "2024-05-03 2024-05-06"),
    ("from Monday to Friday we", "from Monday to Friday", "2025-05-12 2025-05-17"),
    ("from November to February", "from November to February", "2024-11-01 2025-03-01"),
    ("March 2023 to May 2024", "March 2023 to May 2024", "2023-03-01 2024-06-01"),
    ("between 2019 and 2021", "between 2019 and 2021", "2019-01-01 2022-01-01"),
    ("since Tuesday", "since Tuesday", "2025-05-13 .."),
    ("before 2024", "before 2024", ".. 2024-01-01"),
    ("after 2024", "after 2024", "2025-01-01 .."),
    ("until 2024", "until 2024", ".. 2025-01-01"),
    ("starting 3 May 2024", "starting 3 May 2024", "2024-05-03 .."),
    ("From June we", "From June", "2024-06-01 2024-07-01"),
    ("April 2026 onwards", "April 2026 onwards", "2026-04-01 .."),
]

TOLD_FROM_NOW = [
    ("today", "today", "2025-05-14 2025-05-15"),
    ("yesterday's standup", "yesterday's", "2025-05-13 2025-05-14"),
    ("tomorrow", "tomorrow", "2025-05-15 2025-05-16"),
    ("the day before yesterday", "the day before yesterday", "2025-05-12 2025-05-13"),
    ("this week", "this week", "2025-05-12 2025-05-19"),
    ("last month", "last month", "2025-04-01 2025-05-01"),
    ("next year", "next year", "2026-01-01 2027-01-01"),
    ("this quarter", "this quarter", "2025-04-01 2025-07-01"),
    ("last weekend", "last weekend", "2025-05-10 2025-05-12"),
    ("next weekend", "next weekend", "2025-05-24 2025-05-26"),
    ("over the weekend", "over the weekend", "2025-05-10 2025-05-12"),
    ("the week before last", "the week before last", "2025-04-28 2025-05-05"),
    ("all prior to 2024 is", "prior to 2024", ".. 2024-01-01"),
    ("ever since March 2025 it", "ever since March 2025", "2025-03-01 .."),
    ("all up to 2023 is", "up to 2023", ".. 2024-01-01"),
    ("last May", "last May", "2024-05-01 2024-06-01"),
    ("last April", "last April", "2025-04-01 2025-05-01"),
    ("next May", "next May", "2026-05-01 2026-06-01"),
    ("last fall", "last fall", "2024-09-01 2024-12-01"),
    ("this summer", "this summer", "2025-06-01 2025-09-01"),
    ("on Monday", "on Monday", "2025-05-12 2025-05-13"),
    ("on Wednesday", "on Wednesday", "2025-05-14 2025-05-15"),
    ("on Friday", "on Friday", "2025-05-09 2025-05-10"),
    ("last Wednesday", "last Wednesday", "2025-05-07 2025-05-08"),
    ("next Friday", "next Friday", "2025-05-16 2025-05-17"),
    ("this Friday", "this Friday", "2025-05-16 2025-05-17"),
    ("Monday last week", "Monday last week", "2025-05-05 2025-05-06"),
    ("this past Monday", "this past Monday", "2025-05-12 2025-05-13"),
    ("last week on Tuesday", "last week on Tuesday", "2025-05-06 2025-05-07"),
    ("three days ago", "three days ago", "2025-05-11 2025-05-12"),
    ("a couple of weeks ago", "a couple of weeks ago", "2025-04-27 2025-05-04"),
    ("two months ago", "two months ago", "2025-03-01 2025-04-01"),
    ("five years ago", "five years ago", "2020-01-01 2021-01-01"),
    ("a few days ago", "a few days ago", "2025-05-09 2025-05-13"),
    ("2-3 weeks ago", "2-3 weeks ago", "2025-04-20 2025-05-04"),
    ("2 years and 3 months ago", "2 years and 3 months ago", "2023-02-01 2023-03-01"),
    ("half a year ago", "half a year ago", "2024-11-01 2024-12-01"),
    ("2007 Jun 28", "2007 Jun 28", "2007-06-28 2007-06-29"),
    ("a year ago today", "a year ago today", "2024-05-14 2024-05-15"),
    ("a year and a half ago", "a year and a half ago", "2023-11-01 2023-12-01"),
    ("two and a half years ago", "two and a half years ago", "2022-11-01 2022-12-01"),
    ("16 hours ago", "16 hours ago", "2025-05-13 2025-05-14"),
    ("in two weeks", "in two weeks", "2025-05-25 2025-06-01"),
    ("in 3 days' time", "in 3 days' time", "2025-05-17 2025-05-18"),
    ("two weeks from now", "two weeks from now", "2025-05-25 2025-06-01"),
    ("the past three months", "the past three months", "2025-02-14 2025-05-15"),
    ("in the last few days", "in the last few days", "2025-05-09 2025-05-15"),
    ("over the last week", "over the last week", "2025-05-07 2025-05-15"),
    ("the next two weeks", "the next two weeks", "2025-05-14 2025-05-29"),
    ("two days before Christmas 2023", "two days before Christmas 2023", "2023-12-22 2023-12-23"),
    ("the Monday before July 24, 2023", "the Monday before July 24, 2023", "2023-07-17 2023-07-18"),
    # Times of day: the day stands for them
    ("yesterday evening", "yesterday evening", "2025-05-13 2025-05-14"),
    ("this morning", "this morning", "2025-05-14 2025-05-15"),
    ("last night", "last night", "2025-05-13 2025-05-14"),
    ("tonight", "tonight", "2025-05-14 2025-05-15"),
    ("tomorrow at 5 pm", "tomorrow", "2025-05-15 2025-05-16"),
    ("Friday at 9:30am", "Friday", "2025-05-09 2025-05-10"),
    ("at 10:30 on 3 May", "on 3 May", "2025-05-03 2025-05-04"),
    ("the morning of 3 May", "of 3 May", "2025-05-03 2025-05-04"),
]


@pytest.mark.parametrize(("text", "found", "when"), WRITTEN + TOLD_FROM_NOW)
def test_a_date_is_found_and_resolved(text: str, found: str, when: str) -> None:
    start = text.index(found)
    assert [replace(mention, moment=None) for mention in mentions(text, now=NOW)] == [
        Mention(found, start, start + len(found), *span(when))
    ]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("two weeks ago", "2025-04-30"),
        ("a few days ago", "2025-05-11"),
        ("a month ago", "2025-04-14"),
        ("about a year ago", "2024-05-14"),
        ("since two weeks ago", "2025-04-30"),
        ("in two weeks", "2025-05-28"),
    ],
)
def test_an_amount_of_time_counts_to_a_day_within_its_tolerance(text: str, day: str) -> None:
    [mention] = mentions(text, now=NOW)
    assert mention.moment == at(day)
    assert mention.since <= mention.moment < mention.until


@pytest.mark.parametrize("text", ["last month", "in May", "the past two weeks", "yesterday"])
def test_a_period_counts_to_no_day(text: str) -> None:
    assert [mention.moment for mention in mentions(text, now=NOW)] == [None]


def test_several_dates_come_in_their_order() -> None:
    text = "We met on 1 March and last May, not (in 2019)."
    assert [mention.text for mention in mentions(text, now=NOW)] == ["on 1 March", "last May", "in 2019"]


@pytest.mark.parametrize(
    ("text", "prefer", "when"),
    [
        ("in March", "past", "2025-03-01 2025-04-01"),
        ("in March", "future", "2026-03-01 2026-04-01"),
        ("in May", "future", "2025-05-01 2025-06-01"),
        ("on Friday", "future", "2025-05-16 2025-05-17"),
        ("on Tuesday", "future", "2025-05-20 2025-05-21"),
        ("on 29 February", "future", "2028-02-29 2028-03-01"),
    ],
)
def test_the_preferred_side_decides_what_nothing_tells(text: str, prefer: Prefer, when: str) -> None:
    (mention,) = mentions(text, now=NOW, prefer=prefer)
    assert (mention.since, mention.until) == span(when)


def test_the_calendar_is_that_of_the_timezone_of_now() -> None:
    """At 20:00 UTC it is already tomorrow in Tokyo."""
    (mention,) = mentions("today", now=datetime(2025, 5, 15, 5, tzinfo=ZoneInfo("Asia/Tokyo")))
    assert (mention.since, mention.until) == span("2025-05-14T15:00 2025-05-15T15:00")


def test_a_day_of_changing_clocks_has_its_real_length() -> None:
    now = datetime(2025, 4, 2, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    (spring,) = mentions("on 30 March 2025", now=now)
    (autumn,) = mentions("on 26 October 2025", now=now)
    assert (spring.until - spring.since, autumn.until - autumn.since) == (23 * 3600, 25 * 3600)


def test_hours_ago_are_elapsed_hours_across_a_change_of_clocks() -> None:
    """At 04:30 summer time on the night of the change, two hours ago was 01:30 winter time."""
    now = datetime(2025, 3, 30, 4, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert moment_ago("2 hours ago", now=now) == at("2025-03-30T00:30")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("an hour ago", 3600),
        ("Two hours ago.", 7200),
        ("half an hour ago", 1800),
        ("10 minutes ago", 600),
        ("thirty seconds ago", 30),
        ("forty-five minutes ago", 2700),
        ("ninety five minutes ago", 5700),
        ("2 hours and 10 minutes ago", 7800),
        ("a day and an hour ago", 90_000),
        ("an hour and a half ago", 5400),
        ("about an hour ago", 3600),
        ("two and a half hours ago", 9000),
        ("5-10 minutes ago", 300),
    ],
)
def test_hours_and_minutes_ago_are_a_moment(text: str, seconds: int) -> None:
    """Of a range the latest moment, as of a day its end."""
    assert moment_ago(text, now=NOW) == NOW.timestamp() - seconds


@pytest.mark.parametrize(
    "text", ["three days ago", "an hour", "about three days ago", "an hour ago today", "ago", "", "999999999 hours ago"]
)
def test_what_says_anything_else_is_no_moment(text: str) -> None:
    assert moment_ago(text, now=NOW) is None


def test_a_moment_before_the_calendar_is_none() -> None:
    assert moment_ago("9999 years and an hour ago", now=NOW) is None


def test_a_month_before_its_last_day_is_the_month_before() -> None:
    (mention,) = mentions("a month ago", now=datetime(2025, 3, 31, tzinfo=UTC))
    assert (mention.since, mention.until) == span("2025-02-01 2025-03-01")


@pytest.mark.parametrize("text", ["5000 years ago", "31 April 2024", "30 February", "on 2025-02-30", "in 9000 years"])
def test_what_the_calendar_does_not_have_is_no_date(text: str) -> None:
    assert mentions(text, now=NOW) == ()


def test_the_first_and_the_last_year_are_within_reach() -> None:
    (last,) = mentions("on 9999-12-31", now=NOW)
    assert last.until - last.since == 86_400
    (first,) = mentions("on 0001-01-01", now=datetime(1970, 1, 1, tzinfo=timezone(timedelta(hours=14))))
    assert first.until - first.since == 86_400
    (year,) = mentions("this year", now=datetime(9999, 6, 1, tzinfo=UTC))
    assert year.until - year.since == 365 * 86_400
    assert mentions("next year", now=datetime(9999, 6, 1, tzinfo=UTC)) == ()
