"""Which rows hang together, in exact numbers, and that no scan returns the square of what there is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from commonplace.consolidation import pairs as shortlist
from commonplace.consolidation.pairs import MAX_PAIRS, MAX_PER_ROW, Shared, hubs, jaccard, pairs, strength


def same(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.clip(cosines, 0.0, 1.0).astype(np.float32)


def apart(count: int) -> NDArray[np.float32]:
    """Return vectors of which no two are alike."""
    return np.eye(count, dtype=np.float32)


@pytest.mark.parametrize(
    ("shared", "confidence"),
    [
        (Shared(0, 0, 0.0), 0.0),
        (Shared(1, 0, 0.0), 0.2),
        (Shared(1, 1, 0.0), 0.4),
        (Shared(2, 0, 0.0), 0.4),
        (Shared(3, 0, 0.0), 0.6),
        (Shared(9, 0, 0.0), 0.6),
        (Shared(0, 2, 0.0), 0.4),
        (Shared(3, 2, 0.0), 1.0),
        (Shared(0, 0, 0.5), 0.45),
        (Shared(1, 0, 0.5), 0.45),
        (Shared(3, 2, 0.5), 1.0),
        (Shared(0, 0, 1.0), 0.9),
    ],
)
def test_confidence_is_the_better_of_words_and_likeness(shared: Shared, confidence: float) -> None:
    assert shared.confidence == pytest.approx(confidence)


def test_strength_is_seven_parts_names_and_three_parts_tags() -> None:
    assert strength(({"a", "b"}, {"b", "c"}), ({"x"}, {"x"})) == pytest.approx(0.7 / 3 + 0.3)
    assert strength(((), ()), ((), ())) == 0.0
    assert jaccard(["a", "a"], ["a"]) == 1.0


def test_the_surest_pairs_come_first_and_those_that_are_not_sure_enough_last() -> None:
    names = [{"a", "b", "c"}, {"a", "b", "c"}, {"d", "e"}, {"d", "e"}, {"f"}, {"f"}, set[str]()]
    assert pairs(names, [set()] * 7, apart(7), same) == [(0, 1), (2, 3), (4, 5)]


def test_a_name_and_a_tag_are_surer_than_a_name_and_a_tag_alone_is_nothing() -> None:
    names = [{"a"}, {"a"}, {"b"}, {"b"}, set[str](), set[str]()]
    tags = [set[str](), set[str](), {"x"}, {"x"}, {"y", "z"}, {"y", "z"}]
    assert pairs(names, tags, apart(6), same) == [(2, 3), (0, 1)]


def test_what_is_alike_by_two_fifths_is_a_pair_without_any_name() -> None:
    vectors = np.array([[1.0, 0.0], [0.4, 0.917], [-1.0, 0.0]], np.float32)
    assert pairs([set(), set(), set()], [set(), set(), set()], vectors, same) == [(0, 1)]
    vectors = np.array([[1.0, 0.0], [0.39, 0.921], [-1.0, 0.0]], np.float32)
    assert pairs([set(), set(), set()], [set(), set(), set()], vectors, same) == []


def test_one_name_and_a_third_of_likeness_are_enough_together() -> None:
    """Both alone are less sure than 0.3: 0.2 by the name, and what is alike by 0.36 alone is no candidate."""
    vectors = np.array([[1.0, 0.0], [0.36, 0.933], [0.0, -1.0], [-0.9, 0.1]], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    assert pairs([{"a"}, {"a"}, {"b"}, {"b"}], [set()] * 4, vectors, same)[0] == (0, 1)


def test_turns_of_conversations_that_are_alike_need_a_name_too() -> None:
    vectors = np.ones((2, 1), np.float32)
    assert pairs([set(), set()], [set(), set()], vectors, same, turns=[0, 1]) == []
    assert pairs([set(), set()], [set(), set()], vectors, same, turns=[0]) == [(0, 1)]
    assert pairs([{"a"}, {"a"}], [set(), set()], vectors, same, turns=[0, 1]) == [(0, 1)]


def test_known_pairs_are_left_out() -> None:
    names = [{"a", "b"}, {"a", "b"}, {"a", "b"}, {"c"}, {"c"}]
    found = pairs(names, [set()] * 5, apart(5), same, known=[(0, 2), (3, 4)])
    assert found == [(0, 1), (1, 2)]


def test_what_very_many_share_is_a_hub() -> None:
    rows = [
        {"all", f"own {row}", *(["some"] if row < 20 else []), *(["more"] if row < 21 else [])} for row in range(60)
    ]
    assert hubs(rows) == {"all", "more"}
    assert hubs([{"name"}] * 50 + [{"other"}] * 5_000 + [set[str]()] * 5_000) == {"other"}


@pytest.mark.parametrize("are_alike", [True, False])
def test_a_scan_returns_few_pairs_of_each_row_and_not_too_many_in_all(are_alike: bool) -> None:
    count = 3_000
    names = [{f"topic {row % 30}", f"thing {row % 30}"} for row in range(count)]
    vectors = np.ones((count, 1), np.float32) if are_alike else np.zeros((count, 1), np.float32)
    found = pairs([set()] * count if are_alike else names, [set()] * count, vectors, same)
    rows = [row for pair in found for row in pair]
    assert len(found) == MAX_PAIRS
    assert max(map(rows.count, set(rows))) == MAX_PER_ROW


def test_nothing_has_no_pairs() -> None:
    assert pairs([], [], np.zeros((0, 4), np.float32), same) == []
    assert pairs([{"a"}], [{"b"}], np.zeros((1, 4), np.float32), same) == []


def test_a_pair_that_comes_late_can_make_room_for_one_that_was_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps two others out: so twice as many are held as are wanted."""
    monkeypatch.setattr(shortlist, "HELD", 2)
    monkeypatch.setattr(shortlist, "MAX_PAIRS", 2)
    monkeypatch.setattr(shortlist, "MAX_PER_ROW", 1)
    found = shortlist.Shortlist(10)
    for rank, pairs_of_rank in ((0.2, [(1, 2), (3, 4), (5, 6), (7, 8), (8, 9)]), (0.1, [(2, 3)])):
        codes = np.array([one * 10 + other for one, other in pairs_of_rank])
        found.add(shortlist.Ranked(codes, np.full(len(codes), rank), np.zeros(len(codes), np.bool_)))
    assert found.chosen() == [(2, 3), (5, 6)]
    assert shortlist.Shortlist(0).chosen() == []
