"""Which memory overtakes which: values worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.unit.clock import Clock
from tests.unit.search.notebook import model

import commonplace
from commonplace.search.supersession import (
    CHANGE,
    MAX_CHANGE_LENGTH,
    RANK,
    SHARED,
    Statements,
    change_tokens,
    count_changes,
    judge,
    scaled,
    shares,
)


def unit(degrees: float) -> list[float]:
    """Return a vector of unit length in that direction."""
    return [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]


def about_two_things(
    *,
    times: list[float],
    stored: list[float] | None = None,
    sessions: list[str] | None = None,
    terms: list[str] | None = None,
    changes: list[int] | None = None,
) -> Statements:
    """Return three memories, of which the first two are about the same, in words that they do not share."""
    return Statements(
        times=np.array(times),
        stored=np.array(stored or [1.0, 2.0, 3.0]),
        sessions=sessions or ["", "", ""],
        vectors=np.array([unit(0), unit(10), unit(90)], np.float32),
        terms=[frozenset(map(ord, each.split())) for each in terms or ["a", "b", "c"]],
        changes=np.array(changes or [0, 0, 0]),
    )


def found(said: Statements) -> list[tuple[int, int]]:
    """Return who may overtake whom: (older, newer)."""
    return [(older, newer) for older, newer in np.argwhere(np.isfinite(judge(said))).tolist()]


def test_a_cosine_is_scaled_by_what_is_near_anyway() -> None:
    """Strangers of .1 replace missing neighbours: at 0° and 60° the nearest five have the mean (.5 + 4 · .1) / 5."""
    vectors = np.array([unit(0), unit(60), unit(180)], np.float32)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    assert scaled(cosines)[0, 1] == pytest.approx(2 * 0.5 - 0.18 - 0.18, abs=1e-6)
    assert scaled(cosines)[0, 2] == pytest.approx(-2 - 0.18 - 0.1, abs=1e-6)


def test_a_share_counts_rare_words_more() -> None:
    """Of three texts `a` is in two, `b` in one: ln(1 + 3 / 2) and ln(1 + 3)."""
    rarity = math.log(2.5) / (math.log(2.5) + math.log(4.0))
    assert shares([frozenset(b"ab"), frozenset(b"a"), frozenset()])[0].tolist() == pytest.approx([1.0, rarity, 0.0])
    assert shares([frozenset(), frozenset(b"a")])[0].tolist() == [0.0, 0.0], "a text without words shares none"


def test_the_later_of_two_about_the_same_overtakes_the_earlier_one() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0])) == [(0, 1)]
    assert found(about_two_things(times=[2.0, 1.0, 3.0])) == [(1, 0)]
    assert found(about_two_things(times=[1.0, 1.0, 1.0])) == [], "none is later"


def test_without_two_dates_it_counts_when_they_were_stored() -> None:
    assert found(about_two_things(times=[9.0, math.nan, 3.0], stored=[1.0, 2.0, 3.0])) == [(0, 1)]
    assert found(about_two_things(times=[1.0, math.nan, 3.0], stored=[2.0, 1.0, 3.0])) == [(1, 0)]
    assert found(about_two_things(times=[math.nan] * 3, stored=[1.0, 1.9, 3.0])) == [], "they came together"


def test_what_says_the_same_again_overtakes_nothing() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0], terms=["a b", "b a", "c"])) == []
    assert found(about_two_things(times=[1.0, 2.0, 3.0], terms=["a b", "a b d", "c"])) == [(0, 1)]


def test_turns_of_one_session_do_not_compete() -> None:
    assert found(about_two_things(times=[1.0, 2.0, 3.0], sessions=["a", "a", ""])) == []
    assert found(about_two_things(times=[1.0, 2.0, 3.0], sessions=["a", "b", ""])) == [(0, 1)]


def test_words_of_change_and_shared_words_count() -> None:
    times = [1.0, 2.0, 3.0]
    plain = judge(about_two_things(times=times))[0, 1]
    assert judge(about_two_things(times=times, changes=[0, 1, 0]))[0, 1] == pytest.approx(plain + CHANGE)
    assert judge(about_two_things(times=times, changes=[1, 0, 0]))[0, 1] == pytest.approx(plain), "of the later one"
    alike = about_two_things(times=times, terms=["a", "a b", "c"])
    assert judge(alike)[0, 1] == pytest.approx(plain + SHARED)
    turns = about_two_things(times=times, terms=["a", "a b", "c"], sessions=["x", "y", ""])
    assert judge(turns)[0, 1] == pytest.approx(plain), "talk comes back to the same words"


def test_what_has_others_nearer_is_less_likely_overtaken() -> None:
    """The third is the second nearest of the first, at 30°; the first is the second nearest of the third."""
    said = about_two_things(times=[1.0, 2.0, 3.0])
    said.vectors[2] = unit(30)
    cosines = said.vectors @ said.vectors.T
    np.fill_diagonal(cosines, -1.0)
    assert judge(said)[0, 2] == pytest.approx(scaled(cosines)[0, 2] - 2 * RANK * math.log(2.0), abs=1e-6)


def test_words_of_change_count_in_short_texts() -> None:
    words = change_tokens(model().tokenize)
    assert count_changes(model().tokenize("From tomorrow it is 75, no longer 50"), words) == 4
    assert count_changes(model().tokenize("I take 50 every morning"), words) == 0
    assert count_changes(model().tokenize("now " * (MAX_CHANGE_LENGTH + 1)), words) == 0


def test_what_the_graph_knows_to_have_ended_stands_behind_what_ended_it(tmp_path: Path) -> None:
    """In a store of two memories nothing else tells that these are about one thing."""
    with commonplace.open(tmp_path / "store", clock=Clock()) as book:
        older = book.remember("We live in Boston", at="2026-02-20T10:00:00Z").id
        newer = book.remember("user: We moved to Seattle last week. New job at Globex.", at="2026-02-20T10:01:00Z").id
        hits = book.recall("where do we live").hits
        assert [(hit.owner_id, hit.superseded_by) for hit in hits] == [(newer, None), (older, newer)]
        book.forget([newer])
        assert [(hit.owner_id, hit.superseded_by) for hit in book.recall("where do we live").hits] == [(older, None)]
