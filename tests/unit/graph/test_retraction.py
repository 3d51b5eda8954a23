"""What is called off ended nothing: what it had ended goes on where that is clear; else it is disputed, and told."""

from __future__ import annotations

import pytest
from tests.unit.clock import Clock

from commonplace.engine import Engine

JANUARY, MARCH, JUNE, JULY = "2026-01-10", "2026-03-10", "2026-06-10", "2026-07-10"


def holding(book: Engine, valid_at: str = JULY) -> list[str]:
    """Return where somebody is said to live and work at a time: targets, with `?` where they are disputed."""
    facts = book.graph.search_edges("Mira lives works Berlin Munich Acme Globex", 50, valid_at=valid_at)
    held = (fact for fact in facts if fact.relation_type in {"LIVES_IN", "WORKS_FOR"})
    return sorted(fact.target_name + "?" * fact.disputed for fact in held)


CLEAR = [
    "Mira's move to Munich was cancelled.",
    "Mira's move was called off.",
    "Mira did not move after all.",
    "Mira did not move to Munich after all.",
    "Mira decided not to move to Munich.",
    "Mira stayed in Berlin after all.",
    "Mira has called off her move.",
]

UNCLEAR = [
    "The move was cancelled.",
    "Mira did not move to Munich.",
    "Tom says that Mira did not move after all.",
    "> Mira's move to Munich was cancelled.",
]

OTHERS = [
    "Mira did not move to Paris after all.",
    "Mira stayed in Munich after all.",
    "Tom did not move after all.",
    "The move may be cancelled.",
    "Was the move cancelled?",
    "Mira did not join Acme after all.",
]


def move(book: Engine) -> None:
    book.graph.add_episode("Mira lives in Berlin.", reference_time=JANUARY)
    book.graph.add_episode("Mira moved to Munich in May.", reference_time=JUNE)
    assert holding(book) == ["Munich"]


@pytest.mark.parametrize("text", CLEAR)
def test_what_a_cancelled_move_had_ended_goes_on(book: Engine, text: str) -> None:
    move(book)
    added = book.graph.add_episode(text, reference_time=JULY)
    assert holding(book) == ["Berlin"]
    assert holding(book, JUNE) == ["Berlin"]
    assert holding(book, MARCH) == ["Berlin"]
    assert [fact.target_name for fact in added.relations if fact.relation_type == "LIVES_IN"] != []
    [notice] = added.notices
    assert "is retracted, and the facts that it had ended hold again" in notice


@pytest.mark.parametrize("text", UNCLEAR)
def test_where_it_is_not_clear_the_move_is_disputed_and_told(book: Engine, text: str) -> None:
    move(book)
    added = book.graph.add_episode(text, reference_time=JULY)
    assert holding(book) == ["Munich?"]
    assert [fact.target_name for fact in added.disputed] == ["Munich"]
    [notice] = added.notices
    assert "is disputed" in notice


@pytest.mark.parametrize("text", OTHERS)
def test_what_calls_off_nothing_known_changes_nothing(book: Engine, text: str) -> None:
    move(book)
    added = book.graph.add_episode(text, reference_time=JULY)
    assert holding(book) == ["Munich"]
    assert (added.notices, added.disputed, added.ended) == ((), (), ())


def test_who_is_trusted_less_calls_off_nothing(book: Engine) -> None:
    book.graph.add_episode("Mira moved to Munich.", reference_time=JUNE, origin="user")
    book.graph.add_episode("Mira did not move after all.", reference_time=JULY, origin="web")
    assert holding(book) == ["Munich?"]


def test_what_was_no_move_is_disputed(book: Engine) -> None:
    book.graph.add_episode("Mira lives in Munich.", reference_time=JUNE)
    book.graph.add_episode("Mira's move to Munich was cancelled.", reference_time=JULY)
    assert holding(book) == ["Munich?"]


def test_a_move_from_somewhere_that_is_called_off_reopens_that(book: Engine) -> None:
    book.graph.add_episode("Mira lives in Berlin.", reference_time=JANUARY)
    book.graph.add_episode("Mira moved from Berlin to Munich.", reference_time=JUNE)
    book.graph.add_episode("She was glad. Mira's move was cancelled.", reference_time=JULY)
    assert holding(book) == ["Berlin"]


def test_a_move_told_and_called_off_in_one_episode_leaves_nothing(book: Engine) -> None:
    book.graph.add_episode("Mira lives in Berlin.", reference_time=JANUARY)
    text = "Mira moved to Munich in May. The move was cancelled."
    book.graph.add_episode(text, reference_time=JUNE)
    assert holding(book) == ["Berlin"]


def test_a_job_that_was_not_taken_up_ends_nothing(book: Engine) -> None:
    book.graph.add_episode("Mira works for Acme.", reference_time=JANUARY)
    book.graph.add_episode("Mira joined Globex in May.", reference_time=JUNE)
    book.graph.add_episode("Mira did not join Globex after all.", reference_time=JULY)
    assert holding(book) == ["Acme"]


def test_what_was_known_before_it_was_called_off_stays_to_be_asked_for(book: Engine, clock: Clock) -> None:
    move(book)
    then = clock()
    clock.move(days=1)
    book.graph.add_episode("Mira did not move after all.", reference_time=JULY)
    facts = book.graph.search_edges("where does Mira live", 50, as_of=then, valid_at=JULY)
    assert [fact.target_name for fact in facts] == ["Munich"]


def test_without_the_episode_that_called_it_off_the_move_stands_again(book: Engine) -> None:
    move(book)
    before = holding(book, MARCH), holding(book, JULY)
    added = book.graph.add_episode("Mira did not move after all.", reference_time=JULY)
    book.graph.delete_episode(added.episode.uuid)
    assert (holding(book, MARCH), holding(book, JULY)) == before
    assert book.doctor().findings == ()


def test_a_change_of_tools_that_is_called_off_is_disputed_and_told(book: Engine) -> None:
    book.graph.add_episode("The billing service migrated from MySQL to Postgres.", reference_time=JUNE)
    added = book.graph.add_episode("The migration to Postgres was cancelled.", reference_time=JULY)
    assert [fact.target_name for fact in added.disputed] == ["Postgres"]
    [notice] = added.notices
    assert "is disputed" in notice


def test_what_is_called_off_twice_is_called_off_once(book: Engine) -> None:
    """What goes on since then was a move too, of which nobody speaks."""
    book.graph.add_episode("Mira moved to Berlin in 2020.", reference_time=JANUARY)
    book.graph.add_episode("Mira moved to Munich in May.", reference_time=JUNE)
    book.graph.add_episode("Mira did not move after all.", reference_time=JULY)
    again = book.graph.add_episode("Mira did not move after all.", reference_time="2026-07-11")
    assert (again.notices, holding(book, "2026-07-12")) == ((), ["Berlin"])
    named = book.graph.add_episode("Mira did not move to Berlin after all.", reference_time="2026-07-12")
    assert [fact.target_name for fact in named.disputed] == ["Berlin"]
