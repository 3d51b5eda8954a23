"""One range, one reading and one form of times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import commonplace
from commonplace.dates.time import EARLIEST, LATEST, iso, moment_in_words, moment_of, parse, seconds_of
from commonplace.errors import UsageError

NOON_OF_THE_LAST_DAY = datetime(9999, 12, 31, 12, tzinfo=UTC)


def test_a_memory_of_the_last_day_has_the_same_time_in_every_answer(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        kept = book.remember("The lease of the harbour ends.", at="9999-12-31T12:00:00Z").to_dict()
        [hit] = book.recall("harbour lease", min_score=0).to_dict()["hits"]
    assert hit["at"] == kept["at"]
    assert datetime.fromisoformat(kept["at"]) == NOON_OF_THE_LAST_DAY


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (0.0, datetime(1970, 1, 1, tzinfo=UTC)),
        (253_402_257_600.0, NOON_OF_THE_LAST_DAY),
        (float("inf"), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (float("-inf"), datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_outside_the_calendar_is_shown_as_its_nearer_end(at: float, shown: datetime) -> None:
    assert moment_of(at) == shown


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse("2026-03-01T09:30") == parse("2026-03-01T09:30:00Z") == parse("2026-03-01T10:30+01:00")
    assert seconds_of(datetime(2026, 3, 1)) == 1_772_323_200.0  # noqa: DTZ001 - what a caller may give


def test_the_ends_of_the_calendar_are_read_in_every_zone() -> None:
    assert parse("0001-01-01") == EARLIEST
    assert parse("9999-12-31T23:59:59") == LATEST
    assert seconds_of(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))) == EARLIEST - 14 * 3600


def test_json_has_utc_with_z_and_microseconds_only_where_they_exist() -> None:
    assert (
        iso(1_772_323_200.0)
        == iso(datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=1))))
        == "2026-03-01T00:00:00Z"
    )
    assert iso(1_772_323_200.25) == "2026-03-01T00:00:00.250000Z"
    assert iso(None) is None


def test_no_time_of_a_receipt_or_a_memory_is_a_number(tmp_path: Path) -> None:
    """A program that reads one form of time needs no second."""
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=lambda: 1_772_323_200.0) as book:
        kept = book.remember("The harbour is closed.").to_dict()
        gone = book.forget(kept["id"])
        again = book.receipts()[0]
    assert kept["created_at"] == gone.to_dict()["at"] == again.to_dict()["at"] == "2026-03-01T00:00:00Z"
    assert again == gone


def test_a_period_in_words_is_its_last_moment_or_now_where_that_comes_first() -> None:
    """What is known as of March includes all of March and nothing of the first of April."""
    now = parse("2026-05-10T12:00:00Z")
    assert moment_in_words("as_of", "2026-03", now) == pytest.approx(parse("2026-04-01T00:00:00Z") - 0.001, abs=1e-6)
    assert moment_in_words("as_of", "2026-03-05", now) == parse("2026-03-05T23:59:59.999Z")
    assert moment_in_words("as_of", "2026-05", now) == moment_in_words("as_of", "2026-05-10", now) == now
    assert moment_in_words("since", "2026-03", now, is_start=True) == parse("2026-03-01T00:00:00Z")


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ("yesterday at 5 pm", "2026-03-14T17:00:00Z"),
        ("yesterday 10:30", "2026-03-14T10:30:00Z"),
        ("last Monday at 12 am", "2026-03-09T00:00:00Z"),
        ("3 March, at 9:05 PM", "2026-03-03T21:05:00Z"),
        ("about two hours ago", "2026-03-15T10:00:00Z"),
    ],
)
def test_a_time_of_day_behind_a_day_is_that_moment(words: str, at: str) -> None:
    """What is remembered `--at "yesterday at 5 pm"` must not be refused, nor be of the whole day."""
    now = parse("2026-03-15T12:00:00Z")
    assert moment_in_words("at", words, now) == moment_in_words("at", words, now, is_start=True) == parse(at)


@pytest.mark.parametrize("words", ["yesterday at 25:00", "yesterday at 13 pm", "March at 5 pm", "yesterday at 5"])
def test_what_is_no_time_of_a_day_is_refused(words: str) -> None:
    with pytest.raises(UsageError):
        moment_in_words("at", words, parse("2026-03-15T12:00:00Z"))


@pytest.mark.parametrize(
    ("words", "at", "start"),
    [
        ("2026-03-05", "2026-03-06T04:59:59.999Z", "2026-03-05T05:00:00Z"),
        ("2026-02", "2026-03-01T04:59:59.999Z", "2026-02-01T05:00:00Z"),
        ("yesterday", "2026-03-15T03:59:59.999Z", "2026-03-14T04:00:00Z"),
        ("2026-03-05T10:00", "2026-03-05T15:00:00Z", "2026-03-05T15:00:00Z"),
        ("2026-03-05T10:00Z", "2026-03-05T10:00:00Z", "2026-03-05T10:00:00Z"),
    ],
)
def test_a_day_is_that_of_the_zone_in_digits_and_in_words(words: str, at: str, start: str) -> None:
    now, zone = parse("2026-03-15T12:00:00Z"), ZoneInfo("America/New_York")
    assert moment_in_words("as_of", words, now, zone=zone) == parse(at)
    assert moment_in_words("at", words, now, zone=zone, is_start=True) == parse(start)


def test_a_time_of_day_is_that_of_the_zone() -> None:
    now = parse("2026-03-15T12:00:00Z")
    assert moment_in_words("at", "yesterday at 5 pm", now, zone=ZoneInfo("Europe/Oslo")) == parse(
        "2026-03-14T16:00:00Z"
    )
