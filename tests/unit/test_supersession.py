"""The newer of two memories about the same subject stands first: exact orders and values, worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.stores import BACKENDS
from tests.unit.searching import Notebook, model, notebook

from commonplace.engine.search_api import explain
from commonplace.search.rank import (
    MAX_CHANGE_LENGTH,
    Dated,
    Placed,
    change_tokens,
    competitors,
    count_changes,
    placed,
    scaled_cosines,
)


def test_newer_competitors_come_right_before_the_first_that_they_overtake() -> None:
    """Of 3 both 5 and 1 are newer, 5 the newest; 1 is newer than 0 too, but has its place already."""
    assert placed([3, 0, 2, 1, 5], {3: (5, 1), 0: (1,)}) == [
        Placed(5, 3),
        Placed(1, 3),
        Placed(3, None),
        Placed(0, None),
        Placed(2, None),
    ]


def test_what_stands_first_already_is_not_moved() -> None:
    assert placed([1, 0], {0: (1,)}) == [Placed(1, None), Placed(0, None)]
    assert placed([0], {0: (7,)}) == [Placed(0, None)], "one that is no candidate has no place"


@given(st.permutations(range(8)), st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 9), unique=True)))
def test_every_candidate_is_placed_once(order: list[int], newer: dict[int, list[int]]) -> None:
    """Nothing is hidden and nothing is doubled, whatever competes with what."""
    others = {place: [each for each in found if each != place] for place, found in newer.items()}
    assert sorted(each.place for each in placed(order, others)) == sorted(order)


def unit(degrees: float) -> list[float]:
    """Return a vector of unit length in that direction."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def test_a_cosine_is_scaled_by_what_is_near_anyway() -> None:
    """Strangers of .1 replace missing neighbours: at 0° and 60° the nearest five have the mean (.5 + 4 · .1) / 5."""
    found = scaled_cosines(np.array([unit(0), unit(60), unit(180)], np.float32))
    assert found[0, 1] == pytest.approx(2 * 0.5 - 0.18 - 0.18, abs=1e-6)
    assert found[0, 2] == pytest.approx(-2 - 0.18 - 0.1, abs=1e-6)


def dated(
    *,
    times: list[float],
    sessions: list[str] | None = None,
    dense: list[float] | None = None,
    holds: list[bool] | None = None,
) -> Dated:
    """Return three memories, of which the first two are about the same."""
    return Dated(
        places=np.array([4, 7, 9]),
        times=np.array(times),
        sessions=sessions or ["", "", ""],
        vectors=np.array([unit(0), unit(10), unit(90)], np.float32),
        dense=np.array(dense or [0.5, 0.5, 0.5], np.float32),
        holds=np.array(holds or [False] * 3),
        changes=np.zeros(3, np.int64),
    )


def test_what_holds_the_number_that_is_asked_for_is_not_overtaken_by_another() -> None:
    """Order 20418 was placed, 20419 later: about the first only the first tells."""
    assert competitors(dated(times=[1.0, 2.0, 3.0], holds=[True, False, False])) == {}
    assert competitors(dated(times=[1.0, 2.0, 3.0], holds=[True, True, False])) == {4: (7,)}


def test_the_newer_of_two_about_the_same_competes_with_the_older_alone() -> None:
    assert competitors(dated(times=[1.0, 2.0, 3.0])) == {4: (7,)}
    assert competitors(dated(times=[2.0, 1.0, 3.0])) == {7: (4,)}
    assert competitors(dated(times=[1.0, 1.0, 1.0])) == {}, "none is newer"


def test_turns_of_one_session_do_not_compete() -> None:
    assert competitors(dated(times=[1.0, 2.0, 3.0], sessions=["a", "a", ""])) == {}
    assert competitors(dated(times=[1.0, 2.0, 3.0], sessions=["a", "b", ""])) == {4: (7,)}


def test_a_newer_one_that_has_little_to_do_with_the_question_does_not_compete() -> None:
    """Both are about the same person, but only the older answers."""
    assert competitors(dated(times=[1.0, 2.0, 3.0], dense=[0.9, -0.6, 0.0])) == {}


def test_words_of_change_count_in_short_texts() -> None:
    words = change_tokens(model().tokenize)
    assert count_changes(model().tokenize("From tomorrow it is 75, no longer 50"), words) == 4
    assert count_changes(model().tokenize("I take 50 every morning"), words) == 0
    assert count_changes(model().tokenize("now " * (MAX_CHANGE_LENGTH + 1)), words) == 0


@pytest.fixture(params=sorted(BACKENDS))
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    """Give a notebook of things about several subjects, of which one changed, over every store in turn."""
    made = notebook(request.param, tmp_path / "store")
    made.remember("dose", "The dose of the blood pressure tablet is ten milligrams.", at=1_000.0)
    made.remember("cat", "Our cat is called Moth and sleeps on the radiator.", at=1_500.0)
    made.remember("later", "The dose of the blood pressure tablet is now twenty milligrams.", at=2_000.0)
    made.remember("bike", "My bike stands in the locked cage behind the station.", at=2_500.0)
    made.remember("rent", "Rent is due on the first of the month.", at=3_000.0)
    yield made
    made.close()


@pytest.mark.parametrize("also", [(), ("how much of the blood pressure tablet to take",)], ids=["once", "in two ways"])
@pytest.mark.parametrize("is_indexed", [False, True])
def test_the_newer_fact_stands_first_and_the_older_is_marked(
    book: Notebook, is_indexed: bool, also: tuple[str, ...]
) -> None:
    """Nothing is hidden: the older one follows, and names the newer."""
    if is_indexed:
        book.project()
    result = book.search("what is the dose of the ten milligrams tablet", also=also)
    assert [hit.owner_id for hit in result.hits[:2]] == ["later", "dose"]
    newer, older = result.hits[:2]
    assert (newer.superseded_by, older.superseded_by) == (None, "later")
    assert result.trace.moved == {newer.id: older.id}
    assert older.score >= newer.score, "no score is lifted or lowered for it"
    assert 'older: later is newer"' in result.to_text()
    told = explain(book.store, result, newer.id), explain(book.store, result, older.id)
    assert [(each.stands_before, each.superseded_by) for each in told] == [(older.id, None), ("", "later")]


def test_a_newer_fact_below_the_floor_comes_along(book: Notebook) -> None:
    everything = book.search("what is the dose of the ten milligrams tablet", min_score=0.0).hits
    scores = {hit.owner_id: hit.score for hit in everything}
    assert scores["dose"] > scores["later"]
    between = (scores["dose"] + scores["later"]) / 2
    assert book.found("what is the dose of the ten milligrams tablet", min_score=between) == ["later", "dose"]


def test_who_asks_for_a_time_is_not_told_of_another(book: Notebook) -> None:
    """What was so in January is not overtaken by what was so in March."""
    asked = book.search("what was the dose of the tablet on 1 January 1970", now=1e6)
    assert [hit.superseded_by for hit in asked.hits] == [None] * len(asked.hits)


def test_a_memory_without_a_date_of_its_own_competes_with_none(book: Notebook) -> None:
    book.remember("undated", "The dose of the blood pressure tablet is thirty milligrams now.")
    found = book.search("what is the dose of the ten milligrams tablet")
    assert "undated" not in {hit.superseded_by for hit in found.hits}
