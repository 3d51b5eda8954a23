"""Whatever the text, the moment and the timezone, mentions are sound and depend only on what is near."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from commonplace.dates import Prefer, mentions, without

NOW = datetime(2025, 5, 14, 15, 30, tzinfo=UTC)
WORDS = (
    "in on at the of from to until since before after between and last next this past every day week weekend "
    "month year years quarter decade hours ago today yesterday tomorrow tonight morning night May may March "
    "June Monday Sun first second end early mid a an couple few two three 1 3 3rd 31 29 February 2024 1999 9999 "
    "0001 2025-05-01 5 pm 10:30 Q3 summer fall Christmas Easter half now week commencing nineties 1990s , . - ( "
    ") ' s \n 13/5/2024 x"
).split(" ")

texts = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=8).map("".join),
)
zones = st.sampled_from([UTC, *map(ZoneInfo, ("Europe/Berlin", "America/Sao_Paulo", "Asia/Tokyo", "Pacific/Apia"))])
moments = st.datetimes(timezones=zones)
sides: st.SearchStrategy[Prefer] = st.sampled_from(["past", "future"])


@given(texts, moments, sides)
def test_mentions_lie_in_the_text_in_order_and_are_never_empty(text: str, now: datetime, prefer: Prefer) -> None:
    end = 0
    for mention in mentions(text, now=now, prefer=prefer):
        assert end <= mention.start < mention.end <= len(text)
        assert text[mention.start : mention.end] == mention.text
        assert mention.since < mention.until
        end = mention.end


@given(texts, st.text(max_size=30), sides)
def test_what_stands_before_an_empty_line_changes_nothing(text: str, before: str, prefer: Prefer) -> None:
    """A date is read from the words around it, so it is the same in a longer text."""
    alone = mentions(text, now=NOW, prefer=prefer)
    shift = len(before) + 2
    longer = mentions(before + "\n\n" + text, now=NOW, prefer=prefer)
    shifted = [(found.start - shift, found.end - shift, found.since, found.until) for found in longer]
    assert [found for found in shifted if found[0] >= 0] == [
        (found.start, found.end, found.since, found.until) for found in alone
    ]


@given(texts)
def test_cutting_out_the_dates_keeps_every_other_word(text: str) -> None:
    found = mentions(text, now=NOW)
    kept = [character for place, character in enumerate(text) if not any(m.start <= place < m.end for m in found)]
    rest = without(text, found)
    assert [c for c in rest if c.isalnum()] == [c for c in kept if c.isalnum()]
    if not found:
        assert rest == text


@given(st.dates(), moments)
def test_a_written_day_is_that_day_whatever_now_is(date: datetime, now: datetime) -> None:
    expected = datetime(date.year, date.month, date.day, tzinfo=UTC).timestamp()
    at_utc = now.replace(tzinfo=UTC)
    written = [date.isoformat()]
    if date.year >= 1000:
        written += [f"{date.day} {date:%B} {date.year}", f"{date:%B} {date.day}, {date.year}"]
    for text in written:
        if "-" not in text and not 1000 <= date.year < 3000:
            continue
        (mention,) = mentions(text, now=at_utc)
        assert (mention.text, mention.since, mention.until) == (text, expected, expected + 86_400)


@given(st.integers(1, 3000), st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_days_ago_and_days_ahead_are_counted_from_today(count: int, now: datetime) -> None:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    (back,) = mentions(f"{count} days ago", now=now)
    (ahead,) = mentions(f"{count} days from now", now=now)
    assert back.since == (midnight - timedelta(days=count)).timestamp()
    assert ahead.since == (midnight + timedelta(days=count)).timestamp()
    assert back.until - back.since == ahead.until - ahead.since == 86_400


@given(st.integers(1900, 2100), moments)
def test_before_since_and_until_meet_at_the_year(year: int, now: datetime) -> None:
    before, since, until, after = (
        mentions(f"{word} {year}", now=now)[0] for word in ("before", "since", "until", "after")
    )
    assert (before.since, since.until, until.since, after.until) == (-inf, inf, -inf, inf)
    assert before.until == since.since < until.until == after.since
