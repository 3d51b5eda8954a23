"""What the graph knows ends when a person says that the memory that states it is overtaken, and holds again without."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.types import CONFLICTS, HOLDS_BESIDE, RULE, SUPERSEDES

MOVED = "The removal van has left and the new kitchen smells of paint."
"""Names neither place: the extractor finds nothing in it."""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=Clock()) as engine:
        engine.remember("We live in Boston.", id="home", at="2026-01-01")
        engine.remember(MOVED, id="moved", at="2026-02-01")
        yield engine


def homes(book: Engine) -> list[tuple[str, datetime | None]]:
    return [(each.target_name, each.valid_to) for each in book.graph.search_edges("Boston", 5, include_past=True)]


def test_a_fact_ends_with_the_memory_that_states_it(book: Engine) -> None:
    """Recall and graph must not tell two stories."""
    assert homes(book) == [("Boston", None)]
    book.link("moved", "home", SUPERSEDES)
    assert homes(book) == [("Boston", datetime(2026, 2, 1, tzinfo=UTC))]
    assert list(book.graph.search_edges("Boston", 5)) == []
    [fact] = book.graph.search_edges("Boston", 5, include_past=True)
    assert "somebody linked the memory that states it as overtaken" in str(book.graph.history(fact.uuid))


def test_it_holds_again_when_the_link_goes(book: Engine) -> None:
    book.link("moved", "home", SUPERSEDES)
    book.unlink("moved", "home", SUPERSEDES)
    assert homes(book) == [("Boston", None)]


@pytest.mark.parametrize("id_", ["moved", "home"])
def test_forgetting_takes_the_end_along(book: Engine, id_: str) -> None:
    """What is left says what the rest says, as if the forgotten memory had never been."""
    book.link("moved", "home", SUPERSEDES)
    book.forget([id_])
    assert homes(book) == ([("Boston", None)] if id_ == "moved" else [])


@pytest.mark.parametrize(("id_", "text"), [("moved", "The removal van has left."), ("home", "We live in Boston!")])
def test_what_a_person_linked_counts_after_either_is_edited(book: Engine, id_: str, text: str) -> None:
    """Who mends a slip of the pen does not take back a decision."""
    book.link("moved", "home", SUPERSEDES)
    book.update(id_, content=text)
    assert homes(book) == [("Boston", datetime(2026, 2, 1, tzinfo=UTC))]


def test_of_a_memory_that_states_several_things_none_ends(book: Engine) -> None:
    """Nobody knows which of them is meant."""
    book.remember("Ana lives in Porto and works for Globex.", id="both", at="2026-01-01")
    book.remember("Ana has handed in her badge.", id="badge", at="2026-02-01")
    book.link("badge", "both", SUPERSEDES)
    assert {each.valid_to for each in book.graph.search_edges("Ana Porto Globex", 5)} == {None}


def test_what_the_newer_one_states_as_well_goes_on(book: Engine) -> None:
    book.remember("We live in Boston, on the third floor now.", id="floor", at="2026-02-02")
    book.link("floor", "home", SUPERSEDES)
    assert [end for name, end in homes(book) if name == "Boston"] == [None]


def test_what_holds_beside_ends_nothing(book: Engine) -> None:
    book.link("moved", "home", HOLDS_BESIDE)
    assert homes(book) == [("Boston", None)]


def test_an_archived_memory_ends_nothing(book: Engine) -> None:
    book.link("moved", "home", SUPERSEDES)
    book.archive("moved")
    assert homes(book) == [("Boston", None)]


def test_what_a_person_answers_in_a_review_ends_it(tmp_path: Path) -> None:
    """A question is settled in one place, for recall and graph."""
    with commonplace.open(tmp_path / "other", clock=Clock()) as book:
        book.remember("My sister lives in Lisbon.", id="sister", at="2026-01-01")
        book.remember("Boxes, keys and a view of the harbour.", id="boxes", at="2026-02-01")
        book.link("boxes", "sister", CONFLICTS)
        [question] = book.questions()
        book.answer(question.id, "right")
        [fact] = book.graph.search_edges("Lisbon", 5, include_past=True)
        assert fact.valid_to == datetime(2026, 2, 1, tzinfo=UTC)


def test_what_a_rule_linked_ends_nothing(tmp_path: Path) -> None:
    """The rule is wrong too often for a silent end: a quiet door is no new home."""
    with commonplace.open(tmp_path / "other", clock=Clock()) as book:
        book.remember("I live in Tampere, top floor, and the wind sings through the balcony door.", at="2026-01-01")
        book.remember("The balcony door in Oulu is quiet, and I no longer miss the old one.", at="2026-02-01")
        assert [(link.type, link.origin) for link in book.links()] == [(SUPERSEDES, RULE)]
        [fact] = [each for each in book.graph.search_edges("Tampere", 5) if each.target_name == "Tampere"]
        assert fact.valid_to is None


@pytest.mark.parametrize(
    ("older", "origin"), [("My dose of levothyroxine is 50 micrograms.", "user"), ("I live in Tampere.", "web")]
)
def test_an_answer_raises_no_other_question(tmp_path: Path, older: str, origin: str) -> None:
    """What a link may not end on its word, as of health or of somebody trusted more, stays and is not asked again."""
    with commonplace.open(tmp_path / "other", clock=Clock()) as book:
        book.remember(older, id="older", at="2026-01-01", origin="user")
        book.remember("Boxes, keys and a view of the harbour.", id="newer", at="2026-02-01", origin=origin)
        book.link("newer", "older", CONFLICTS)
        book.answer("older:newer", "right")
        [fact] = book.graph.search_edges(older, 5, include_past=True)
        assert (fact.valid_to, fact.disputed) == (None, False)
        assert book.questions() == []


def test_an_answer_for_the_older_one_invents_no_past(tmp_path: Path) -> None:
    """What is refuted did not hold before it was said either."""
    with commonplace.open(tmp_path / "other", clock=Clock()) as book:
        book.remember("My shoe size is 42.", at="2026-01-10")
        book.remember("My shoe size is 43.", at="2026-06-10")
        book.answer(book.questions()[0].id, "left")
        facts = book.graph.search_edges("shoe size", include_past=True)
        assert [(each.target_name, each.valid_to, each.retracted) for each in facts] == [
            ("42", None, False),
            ("43", None, True),
        ]


def test_an_answer_that_something_goes_on_disputes_nothing_else(tmp_path: Path) -> None:
    """What began later cannot have ended with what was said before."""
    with commonplace.open(tmp_path / "other", clock=Clock()) as book:
        book.remember("CI runs on CircleCI.", at="2026-01-10")
        book.remember("CI runs on GitHub Actions, CircleCI is gone.", at="2026-06-10")
        [question] = book.questions()
        assert question.kind == "ending"
        book.answer(question.id, "left")
        facts = book.graph.search_edges("CI runs on", include_past=True)
        assert {each.target_name: (each.valid_to, each.disputed) for each in facts} == {
            "CircleCI": (None, False),
            "GitHub Actions": (None, False),
        }
        assert book.questions() == []


MOVES = {"boston": ("I live in Boston", "2026-01-10"), "seattle": ("We moved to Seattle", "2026-02-01")}


def marks(book: Engine, **times: str) -> list[tuple[str, str | None, bool]]:
    hits = book.recall("where do I live", **times).hits  # type: ignore[arg-type] # times alone
    return [(hit.owner_id, hit.superseded_by, hit.is_superseded) for hit in hits if hit.owner_id in MOVES | {"oslo": 0}]


@pytest.fixture
def moves(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "moves", clock=Clock()) as engine:
        for id_, (text, at) in MOVES.items():
            engine.remember(text, id=id_, at=at)
        yield engine


def test_what_the_graph_ended_is_marked_from_that_time_on(moves: Engine) -> None:
    assert marks(moves) == [("seattle", None, False), ("boston", "seattle", True)]
    assert marks(moves, valid_at="2026-01-20") == [("boston", None, False)]


def test_a_move_dated_in_the_future_supersedes_on_its_day(moves: Engine) -> None:
    moves.remember("We moved to Oslo", id="oslo", at="2027-02-01")
    assert [hit for hit in marks(moves) if hit[1:] == (None, False)] == [
        ("seattle", None, False),
        ("oslo", None, False),
    ]


def test_an_announcement_does_not_hide_what_has_changed_before(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "managers", clock=(clock := Clock())) as book:
        book.remember("My manager is Dana", id="dana", at="2026-01-10")
        book.remember("Raj took over from Dana as my manager", id="raj", at="2026-02-01")
        clock.move(days=1)
        book.remember("From June my manager is Lee", id="lee")
        hits = [(hit.owner_id, hit.superseded_by) for hit in book.recall("who is my manager").hits]
        assert hits == [("raj", None), ("dana", "raj"), ("lee", None)]


@pytest.mark.parametrize(
    ("source", "target", "type_"), [("boston", "seattle", SUPERSEDES), ("seattle", "boston", HOLDS_BESIDE)]
)
def test_what_a_person_links_counts_more_than_what_the_graph_ended(
    moves: Engine, source: str, target: str, type_: str
) -> None:
    moves.link(source, target, type_)
    expected = {("boston", None), ("seattle", "boston" if type_ == SUPERSEDES else None)}
    assert {hit[:2] for hit in marks(moves)} == expected


def test_what_a_person_linked_hides_no_other_link_once_it_is_archived(book: Engine) -> None:
    book.remember("We live in Denver.", id="denver", at="2026-01-20")
    book.link("moved", "home", SUPERSEDES)

    def successor() -> str | None:
        return next(hit.superseded_by for hit in book.recall("where do we live").hits if hit.owner_id == "home")

    assert successor() == "moved"
    book.archive("moved")
    assert successor() == "denver"
