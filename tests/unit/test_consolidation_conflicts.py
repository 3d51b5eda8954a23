"""Which sentences contradict each other, and which only say it otherwise, or more."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commonplace.consolidation.text_merge import Conflict, conflict, read_statement

FRIDAY = datetime(2026, 5, 8, 12, tzinfo=UTC)
SATURDAY = datetime(2026, 5, 9, 12, tzinfo=UTC)


def _found(one: str, other: str, at: datetime = FRIDAY, later: datetime = FRIDAY) -> Conflict | None:
    first, second = read_statement(one, at), read_statement(other, later)
    assert conflict(first, second) == conflict(second, first)
    return conflict(first, second)


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("Anna likes green tea.", "Anna does not like green tea.", "negation"),
        ("Anna likes green tea.", "Anna doesn't like green tea.", "negation"),
        ("The cache is cleared without a restart.", "The cache is cleared with a restart.", "negation"),
        ("The cook eats meat.", "The cook never eats meat.", "negation"),
        ("Anna smokes at parties", "Anna stopped smoking at parties", "negation"),
        ("The API key rotates every 30 days.", "The API key rotates every 90 days.", "number"),
        ("The database runs on PostgreSQL 15.", "The database runs on PostgreSQL 16.", "number"),
        ("Retries are capped at five.", "Retries are capped at 3.", "number"),
        ("The meeting is at 10:30.", "The meeting is at 11:30.", "number"),
        ("The deploy is on Monday.", "The deploy is on Friday.", "time"),
        ("Melanie painted a lake in 2021.", "Melanie painted a lake in 2022.", "time"),
        ("The user lives in Berlin.", "The user lives in Munich.", "name"),
        ("Anna likes green tea.", "Bob likes green tea.", "word"),
        ("The meeting is in the blue room.", "The meeting is in the red room.", "word"),
        ("Lint before the tests run.", "Lint after the tests run.", "word"),
        ("A man is carrying a canoe with a dog.", "A dog is carrying a man in a canoe.", "order"),
        ("Anna trusts Bob blindly.", "Bob trusts Anna blindly.", "order"),
        ("The import runs on staging-2.", "The import runs on staging-3.", "number"),
        ("the worker queue lives on host db-a", "the worker queue lives on host db-b", "name"),
        ("Backups are kept for thirty days.", "Backups are kept for ninety days.", "number"),
        ("Her desk is on the second floor.", "Her desk is on the third floor.", "number"),
        ("The team meets on Thursdays.", "The team meets on Fridays.", "name"),
        ("Service A depends on service B.", "Service B depends on service A.", "order"),
        ("We moved from Redis to Memcached.", "We moved from Memcached to Redis.", "order"),
    ],
)
def test_other_values_in_otherwise_the_same_sentence_contradict(one: str, other: str, kind: Conflict) -> None:
    assert _found(one, other) == kind


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers dark mode in the editor", "The user prefers dark mode for their editor"),
        ("The API key rotates every 30 days.", "API keys are rotated every 30 days."),
        ("Retries are capped at five with exponential backoff.", "Retries use exponential backoff, capped at 5."),
        ("Tom's birthday is on 3 March.", "Tom has his birthday on March 3rd."),
        ("On Monday the release is cut.", "The release is cut on Monday."),
        ("Use ruff for linting and mypy for types.", "Linting is done with ruff; type checks with mypy."),
        ("The build fails when the cache is stale.", "The build fails if the cache is stale."),
        ("A boy is at school taking a test.", "The boy is taking a test at school."),
        ("We moved from Redis to Memcached.", "We moved to Memcached from Redis."),
        ("The desk of Ada is in Berlin.", "Ada's desk is in Berlin."),
    ],
)
def test_saying_it_otherwise_contradicts_nothing(one: str, other: str) -> None:
    assert _found(one, other) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user lives in Berlin and works at Siemens.", "The user lives in Berlin."),
        ("The release is cut every Tuesday by Maria.", "The release is cut every Tuesday."),
        ("The meeting is in May 2026.", "The meeting is on 7 May 2026."),
        ("The server has 16 cores and 64 GB.", "The server has 16 cores."),
    ],
)
def test_saying_more_or_more_exactly_contradicts_nothing(one: str, other: str) -> None:
    assert _found(one, other) is None


def test_sentences_about_different_things_contradict_nothing() -> None:
    assert _found("Anna lives in Berlin.", "The database does not run on Friday.") is None


def test_a_day_told_by_its_own_date_is_another_day_later() -> None:
    assert _found("Anna went running yesterday.", "Anna went running yesterday.", FRIDAY, SATURDAY) == "time"


def test_the_same_day_told_in_two_ways_is_one_day() -> None:
    assert _found("Anna went running today.", "Anna went running yesterday.", FRIDAY, SATURDAY) is None
    assert _found("Anna went running on 7 May 2026.", "Anna went running yesterday.") is None


@pytest.mark.parametrize("text", ["", " ", "…", "💥", "\ud800", "12", "not", "Monday"])
def test_a_sentence_of_next_to_nothing_does_not_contradict_itself(text: str) -> None:
    assert _found(text, text) is None
