"""Words that only look like dates are none, and what is cut out leaves a text to search for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType

import pytest

from commonplace.dates import mentions

NOW = datetime(2025, 5, 14, 15, 30, tzinfo=UTC)

NO_DATES = """
May I ask
It may be wrong
this may fail
Step 3 may fail
3 may be enough
May the force be with you
a letter from May
From April Smith in accounting
June said hello
April is my sister
in June's house
march forward
we march on
the march of progress
an august body
mar the surface
jan 5 times
dec 10
second thoughts
second of all
wait 5 seconds
in a second
in a minute
the second half
version 3.11
openclaw 2026.3.22
3/4/2024
31/31/2024
2025-13-40
1999 files
in 2000 files
in 2000 ms
a limit of 2000
at 1080
in 1920x1080
port 2024
room 2024
$2024
2024%
x2024
+1 555 2024
in 2004.jpg
10.0.2024.1
192.168.1.10
CVE-2026-05
RFC-2025-05-01-x
logs/2026-05-01.md
version 2024.05.01.2
from 2000 to 3000
between 1900 and 2000 users
the sun
Sun workstations
sat on the mat
the fall
in the fall he broke his arm
in Spring Boot
a spring
every Monday
on Mondays
each year
every two weeks
per day
Black Friday
open Monday to Friday
finished in two weeks
for the first time in two years
took 3 days
for two weeks
two days
The outage may last two weeks
1.5 hours ago
10,000 years ago
99999 years ago
last time
last resort
last minute
the last week of school
the first day of work
next to
the next day
the other day
two weeks later
3 days earlier
half past
quarter past five
a half hour
in his nineties
in her late forties
in the 20s
90s
Q3
q1 results
10:30
5 pm
the end of the world
early bird
before the meeting
since we
until done
one day
now
date.today()
today = 1
test_monday
""".strip().splitlines()


@pytest.mark.parametrize("text", NO_DATES)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    """A wrong date filters out what was looked for, a missed one only leaves the words to find it by."""
    assert mentions(text, now=NOW) == ()


def test_an_empty_line_parts_a_date() -> None:
    assert [mention.text for mention in mentions("1\n\nMay 2024", now=NOW)] == ["May 2024"]
    assert [mention.text for mention in mentions("1\nMay 2024", now=NOW)] == ["1\nMay 2024"]


def test_a_date_stops_where_the_text_is_parted() -> None:
    (mention,) = mentions("at 2016-03-18T11:08:23      \n\n x = 1", now=NOW)
    assert mention.text == "at 2016-03-18T11:08:23"


@pytest.mark.parametrize(
    "text",
    [
        "in " + "a" * 1_000_000 + " in May 2024",
        "x" * 1_000_000 + " in May 2024",
        "in May 2024" + " " * 1_000_000 + "x",
        "lorem ipsum dolor sit amet " * 8_000 + "in May 2024",
    ],
    ids=["long word within", "long word first", "long gap", "many words"],
)
def test_a_huge_text_or_word_hides_no_date(text: str) -> None:
    assert [mention.text for mention in mentions(text, now=NOW)] == ["in May 2024"]


def calls(work: Callable[[], object]) -> int:
    """Count the function calls that some work makes: a measure of time that no machine changes."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "piece",
    [
        "may ",
        "the ",
        "end of ",
        "2 years and ",
        "from May to ",
        "1-2 ",
        "every last ",
        "2024-05-",
        "in two or ",
        "on 3 May ",
    ],
)
def test_twice_the_text_takes_twice_the_work(piece: str) -> None:
    """Nothing that was read is read again for each word before it, whatever the words."""
    mentions(piece + "2024", now=NOW)
    once, twice = (calls(lambda text=piece * n + "2024": mentions(text, now=NOW)) for n in (500, 1000))  # type: ignore[misc]
    assert twice <= 2.1 * once
