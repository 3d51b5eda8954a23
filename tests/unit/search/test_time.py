"""Dates in a question lead to the memories of that time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import numpy as np
import pytest
from tests.contract.stores import BACKENDS
from tests.unit.search.notebook import NAMESPACE, Notebook, notebook

from commonplace.search.request import Request
from commonplace.search.time import AskedTime, DatedOwners, asked_times, fit
from commonplace.types import Document, Filter

DAY = 86_400.0


def at(text: str) -> float:
    """Return a time in UTC as seconds since the epoch."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-03-11T09:00")  # A Wednesday.


@pytest.fixture(params=sorted(BACKENDS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Notebook]]:
    """Give a maker of notebooks over every store in turn."""
    made: list[Notebook] = []

    def create() -> Notebook:
        made.append(notebook(request.param, tmp_path / str(len(made))))
        return made[-1]

    yield create
    for book in made:
        book.close()


@pytest.fixture
def book(make: Callable[[], Notebook]) -> Notebook:
    """Give a notebook with two weeks in it."""
    book = make()
    for day in range(1, 11):
        book.remember(f"standup {day}", f"Standup number {day}: nothing blocks us.", at=at(f"2026-03-{day:02}T10:00"))
    book.remember("fence", "Anna mended the fence behind the house.", at=at("2026-03-03T15:00"))
    book.remember("roof", "Anna mended the roof of the shed.", at=at("2026-02-10T15:00"))
    book.remember(
        "trip",
        "We will hike to the lake on 1 May.",
        at=at("2026-03-05T12:00"),
        dates=[(at("2026-05-01"), at("2026-05-02"))],
    )
    book.remember(
        "year", "This year all rents go up.", at=at("2025-12-30"), dates=[(at("2026-01-01"), at("2027-01-01"))]
    )
    return book


def asked(query: str, *, method: str = "two-stage", now: float | None = NOW, wanted: Filter | None = None) -> Request:
    return Request(query, NAMESPACE, 10, method, wanted or Filter(), 0.3, 100, now=now)  # type: ignore[arg-type]


class TestAskedTimes:
    def test_a_date_is_resolved_against_the_time_of_asking(self) -> None:
        """`Last Tuesday` means another day every week."""
        [time] = asked_times(asked("what did Anna do last Tuesday")).times
        assert (time.text, time.since, time.until) == ("last Tuesday", at("2026-03-10"), at("2026-03-11"))
        then = asked("what did Anna do yesterday", wanted=Filter(as_of=at("2026-01-02T08:00")))
        assert asked_times(then).times[0].since == at("2026-01-01")

    @pytest.mark.parametrize(
        "request_",
        [
            asked("which database does billing use"),
            asked("what did Anna do last Tuesday", now=None),
            asked("what did Anna do last Tuesday", method="bm25"),
            asked("what did Anna do last Tuesday" + " and then?" * 200),
            asked("what did Anna do last Tuesday", wanted=Filter(kinds=("artifact",))),
        ],
    )
    def test_no_time_is_asked_for_where_none_is_named_or_none_can_be_used(self, request_: Request) -> None:
        """Without a clock a date is just words, and files have no times."""
        assert asked_times(request_).times == ()

    def test_each_time_counts_once_and_only_the_first_ones_count(self) -> None:
        """A question names few times, and each costs a look into the store."""
        assert [time.text for time in asked_times(asked("on 1 March or on 2 March or on 1 March")).times] == [
            "on 1 March",
            "on 2 March",
        ]
        many = "; ".join(f"on {day} February" for day in range(1, 21))
        assert len(asked_times(asked(many)).times) == 8

    @pytest.mark.parametrize(
        ("query", "is_all"),
        [
            ("what happened last Tuesday", True),
            ("what did we do on 1 March", True),
            ("2026-03-01", True),
            ("Tell me everything that was said yesterday, please!", True),
            ("what did Anna do last Tuesday", False),
            ("database migrations of last week", False),
            ("what happens on 1 May 2026", True),
            ("everything of last week", True),
            ("what's new this week", True),
            ("last Tuesday", True),
            ("what did we do at Easter", True),
            ("do you remember anything from last winter", True),
        ],
    )
    def test_a_question_may_ask_for_all_of_a_time(self, query: str, is_all: bool) -> None:
        """Then nothing but the time tells what is wanted."""
        assert asked_times(asked(query)).is_all is is_all

    @pytest.mark.parametrize(
        "query",
        [
            "where am I in May",
            "where do we go in winter",
            "what is on Monday",
            "what is on today",
            "what's on today",
            "what should I do tomorrow",
            "tell me what we do at Easter",
            "what happens at Christmas",
            "Monday",
            "in winter",
            "where did we go last summer",
            "Who will look after everything once I'm gone in summer?",
        ],
    )
    def test_a_question_about_a_habit_a_plan_or_a_detail_does_not(self, query: str) -> None:
        """Its answer was told at any time; what happened to be stored then seldom is one."""
        found = asked_times(asked(query))
        assert found.times
        assert (found.is_all, found.is_alone) == (False, True)


class TestFit:
    @pytest.mark.parametrize(
        ("since", "until", "expected"),
        [
            (at("2026-03-05"), at("2026-03-06"), 1.0),
            (at("2026-03-05"), at("2026-03-05"), 1.0),
            (at("2026-02-01"), at("2026-05-02"), 31 / 90),
            (at("2026-01-01"), at("2027-01-01"), 31 / 365),
            (at("2026-01-01"), inf, 31 / 3652.5),
            (-inf, inf, 31 / 3652.5),
            (-inf, at("2026-03-02"), 1 / 3652.5),
        ],
    )
    def test_it_is_the_share_of_the_memorys_time_that_is_asked_for(
        self, since: float, until: float, expected: float
    ) -> None:
        """A day in an asked month fits wholly, a year around it hardly."""
        march = AskedTime("in March", at("2026-03-01"), at("2026-04-01"))
        assert fit(np.array([(1, since, until)]), march).tolist() == pytest.approx([expected], rel=1e-5)

    def test_what_lies_in_the_margin_of_an_asked_time_fits_by_half(self) -> None:
        """Asked for 1 March give or take half a day: that day, the one before, half of it near, and an older one."""
        asked = AskedTime("10 days ago", at("2026-03-01"), at("2026-03-02"), margin=DAY / 2)
        begins = [at("2026-03-01"), at("2026-02-28"), at("2026-02-26")]
        dates = np.array([(1, begin, begin + DAY) for begin in begins])
        moment = np.array([(2, at("2026-02-28T13:00"), at("2026-02-28T13:00"))])
        assert fit(dates, asked).tolist() == [1.0, 0.25, 0.0]
        assert fit(moment, asked).tolist() == [0.5]

    @pytest.mark.parametrize(
        ("query", "margin"),
        [
            ("what did I plant 10 days ago", 0.1 * 9 * DAY + 0.1 * 9 * 3600),
            ("what did I plant four weeks ago", 0.1 * (24 * DAY + 9 * 3600)),
            ("what did I plant 3 days ago", 0.0),
            ("what did I plant on 1 February", 0.0),
            ("what happened 10 days ago", 0.0),
        ],
    )
    def test_who_says_ago_may_be_wrong_by_a_tenth(self, query: str, margin: float) -> None:
        """People count days no farther than a week; who asks for all of a day wants that day."""
        [asked] = asked_times(Request(query, "n", 10, "two-stage", Filter(), 0.0, 100, now=NOW)).times
        assert asked.margin == pytest.approx(margin)

    def test_open_ends_of_both_sides_fit(self) -> None:
        """What is so since 2015 is so since 2020."""
        since_2020 = AskedTime("since 2020", at("2020-01-01"), inf)
        dates = np.array([(1, at("2015-01-01"), inf), (2, at("2035-01-01"), at("2035-01-02"))])
        assert fit(dates, since_2020).tolist() == [1.0, 1.0]

    def test_owners_are_ordered_by_fit_then_by_age(self) -> None:
        """The best 200 are recalled."""
        dated = DatedOwners(
            np.array([3, 5, 8, 9]), np.array([0.5, 1.0, 1.0, 1.0], dtype=np.float32), np.array([3, 1, 0, 2])
        )
        assert dated.best() == [9, 5, 8, 3]
        assert dated.fits_of(np.array([9, 1, 3, 99])).tolist() == [1.0, 0.0, 0.5, 0.0]
        assert dated.newness_of(np.array([8, 3, 8])).tolist() == pytest.approx([0.0, 1 / 3, 0.0])


class TestQuestionsOfATimeAlone:
    def test_all_of_a_day_is_found_newest_first(self, book: Notebook) -> None:
        """There is nothing else to tell what is wanted."""
        result = book.search("what happened on 3 March", now=NOW)
        assert [hit.owner_id for hit in result.hits] == ["fence", "standup 3"]
        assert all(hit.score > 0.9 for hit in result.hits)
        assert [hit.signals["time"] for hit in result.hits] == [1.0, 1.0]
        assert [time.text for time in result.trace.times] == ["on 3 March"]

    def test_the_best_overlap_comes_first(self, book: Notebook) -> None:
        """A memory of the week is of the asked day in part, one of the whole year hardly at all."""
        week = (at("2026-03-02"), at("2026-03-09"))
        book.remember("week", "In that week the office was painted.", at=at("2026-03-20"), dates=[week])
        found = book.search("what did we do on 3 March", now=NOW, min_score=0.0)
        assert [hit.owner_id for hit in found.hits] == ["fence", "standup 3", "week", "year"]
        assert found.hits[2].signals["time"] == pytest.approx(1 / 7)

    def test_what_a_text_speaks_of_counts_as_what_happened_then(self, book: Notebook) -> None:
        """The hike was planned in March and takes place in May."""
        assert book.found("what happens on 1 May 2026", now=NOW) == ["trip"]

    @pytest.mark.parametrize("query", ["what happened last Christmas", "2019-05-05", "what was said 90 years ago"])
    def test_nothing_is_found_where_there_is_nothing(self, book: Notebook, query: str) -> None:
        """An agent must be told that it has no memory of that time."""
        assert book.found(query, now=NOW) == []

    def test_a_date_in_digits_is_found_where_it_is_written(self, book: Notebook) -> None:
        """A document may name a day; it is of no time itself, so it follows what is."""
        book.index_documents(Document("changelog", "Version 7 was released on 2026-03-03."))
        assert book.found("2026-03-03", now=NOW) == ["fence", "standup 3", "changelog"]
        assert book.found("2026-03-03", now=NOW, wanted=Filter(kinds=("artifact",))) == ["changelog"]

    def test_filters_hold(self, book: Notebook) -> None:
        """What a filter leaves out is not recalled for its time either."""
        book.remember("tagged", "The cellar was dry.", at=at("2026-03-03T09:00"), tags=("house",))
        assert book.found("what happened on 3 March", now=NOW, wanted=Filter(tags=("house",))) == ["tagged"]

    def test_archived_memories_are_not_recalled(self, book: Notebook) -> None:
        """Their dates are kept for questions about the past."""
        then = book.clock
        book.archive("fence")
        assert book.found("what happened on 3 March", now=NOW) == ["standup 3"]
        past = Filter(as_of=then)
        assert book.found("what happened on 3 March 2026", now=NOW, wanted=past) == ["fence", "standup 3"]
        assert book.found("what happened on 3 March 2026", now=NOW, wanted=Filter(as_of=3.0)) == ["standup 3"]


class TestHabitsAndPlans:
    @pytest.fixture
    def habits(self, make: Callable[[], Notebook]) -> Notebook:
        """Give a notebook of habits that were told in autumn, and of something from each time that is asked for."""
        book = make()
        book.remember("austria", "In winter we go to Austria.", at=at("2025-10-15"))
        book.remember("spain", "We go to Spain every summer.", at=at("2025-10-15"))
        book.remember("church", "We go to church at Easter.", at=at("2025-10-15"))
        book.remember("gym", "Monday is gym day.", at=at("2025-10-15"))
        book.remember("pizza", "On Fridays we go out for pizza.", at=at("2025-10-15"))
        book.remember("rome", "In May I am in Rome.", at=at("2025-10-15"))
        days = ("2026-01-10", "2025-07-10", "2025-04-20", "2026-03-09", "2026-03-06", "2025-05-03")
        for day in days:
            book.remember(day, f"Mended the lamp number {days.index(day)}.", at=at(day))
        return book

    @pytest.mark.parametrize(
        ("query", "first", "stored_then"),
        [
            ("where do we go in winter", "austria", "2026-01-10"),
            ("where do we go in summer", "spain", "2025-07-10"),
            ("where do we go at Easter", "church", "2025-04-20"),
            ("what is on Monday", "gym", "2026-03-09"),
            ("where do we go on Friday", "pizza", "2026-03-06"),
            ("where am I in May", "rome", "2025-05-03"),
            ("Monday", "gym", "2026-03-09"),
        ],
    )
    def test_what_names_the_time_comes_first_and_what_was_stored_then_is_weak(
        self, habits: Notebook, query: str, first: str, stored_then: str
    ) -> None:
        """A habit is told at any time of the year, and a time alone is no answer."""
        hits = {hit.owner_id: hit.confidence for hit in habits.search(query, now=NOW).hits}
        assert next(iter(hits)) == first
        assert (hits[first], hits[stored_then]) == ("sure", "weak")

    def test_who_asks_what_was_is_told_that_alone(self, habits: Notebook) -> None:
        """The same time, but all of it is asked for."""
        [hit] = habits.search("what did we do at Easter", now=NOW).hits
        assert (hit.owner_id, hit.confidence) == ("2025-04-20", "sure")


class TestTimeBesideWords:
    def test_a_date_decides_between_what_is_alike(self, book: Notebook) -> None:
        """Anna mended two things, at different times."""
        assert book.found("what did Anna mend in March", now=NOW)[0] == "fence"
        assert book.found("what did Anna mend in February", now=NOW)[0] == "roof"

    def test_another_date_does_not_hide_a_hit(self, book: Notebook) -> None:
        """People misremember dates, and memories were told later than they happened."""
        assert "fence" in book.found("when did Anna mend the fence behind the house, in February?", now=NOW)

    def test_a_memory_is_recalled_for_its_time_where_its_words_would_not_do(self, make: Callable[[], Notebook]) -> None:
        """Of a thousand like it the first stage brings a few; the date brings the one that is meant."""
        book = make()
        for number in range(40):
            moment = at("2026-01-01") + number * DAY
            book.remember(f"day {number}", "Anna wrote about the garden.", at=moment)
        assert "day 30" not in book.found("what did Anna write about the garden", now=NOW, stage1_limit=5, limit=5)
        found = book.search("what did Anna write about the garden on 31 January", now=NOW, stage1_limit=5, limit=5)
        assert found.hits[0].owner_id == "day 30"
        assert [stage.candidates for stage in found.stages if stage.name == "time"] == [1]

    def test_a_date_raises_the_score_of_what_fits_it(self, book: Notebook) -> None:
        """That it happened when it was asked for is evidence."""
        plain, dated = (book.search("Anna mended something in March", now=now, min_score=0.0) for now in (None, NOW))
        assert plain.hits[0].owner_id == dated.hits[0].owner_id == "fence"
        assert dated.hits[0].score > plain.hits[0].score
        assert "time" not in plain.hits[0].signals
        assert dated.trace.candidates[0].signals["time"].weight > 0.0
        assert dated.trace.candidates[0].signals["time"].standardised > 0.0

    def test_indexed_and_unindexed_memories_are_found_alike(self, book: Notebook) -> None:
        """Whether the index has caught up changes nothing about time."""
        queries = ("what happened on 3 March", "what did Anna mend in February")
        before = [book.found(query, now=NOW) for query in queries]
        book.project()
        assert [book.found(query, now=NOW) for query in queries] == before

    def test_more_than_is_recalled_for_a_time_keeps_the_newest(self, make: Callable[[], Notebook]) -> None:
        """A wide time holds more than can be ranked."""
        book = make()
        for number in range(230):
            book.remember(f"m{number}", f"Ticket {number} was closed.", at=at("2026-03-01") + number)
        book.project()
        found = book.found("what happened on 1 March", now=NOW, limit=200, stage1_limit=10)
        assert found == [f"m{number}" for number in range(229, 29, -1)]


def test_the_same_words_at_another_time_are_another_question(book: Notebook) -> None:
    """A kept ranking must not answer for yesterday's `yesterday`; without a date the time of asking changes nothing."""
    assert book.found("what happened yesterday", now=at("2026-03-04T09:00")) == ["fence", "standup 3"]
    assert book.found("what happened yesterday", now=at("2026-03-05T09:00")) == ["standup 4"]
    first = book.search("standup number 4", now=at("2026-03-05T09:00"))
    again = book.search("standup number 4", now=at("2026-03-06T09:00"))
    assert [stage.name for stage in first.stages] != ["hits"]
    assert [stage.name for stage in again.stages] == ["hits"]
