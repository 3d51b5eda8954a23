"""Which vectors form a group, and what follows from how alike its members are."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from commonplace.consolidation import pairs as clustering
from commonplace.consolidation.pairs import (
    CLUSTER_IDS,
    MAX_PAIRS,
    MAX_PER_ROW,
    action_of,
    cluster_id,
    cohesion,
    confidence,
    groups,
    hubs,
    jaccard,
    min_cosine,
    pairs,
    similarities,
    size_factor,
    strength,
    strongest_forest,
)
from commonplace.consolidation.runtime import BY_EMBEDDER, scale_of

PLAIN = scale_of("hashing")


def _vectors(cosines: dict[tuple[int, int], float], count: int) -> NDArray[np.float32]:
    """Return vectors of unit length with these cosines, all others 0."""
    matrix = np.eye(count)
    for (one, other), cosine in cosines.items():
        matrix[one, other] = matrix[other, one] = cosine
    values, axes = np.linalg.eigh(matrix)
    assert values.min() > -1e-9, "no vectors have these cosines"
    return np.asarray(axes * np.sqrt(np.maximum(values, 0)), np.float32)


def _chain(count: int, *, weakest: Sequence[int] = ()) -> NDArray[np.float32]:
    """Return vectors of which each is like the next one: by 0.48, or by 0.45 behind the weakest."""
    links = {(place, place + 1): 0.45 if place in weakest else 0.48 for place in range(count - 1)}
    return _vectors(links, count)


@pytest.mark.parametrize(
    ("size", "factor"),
    [(2, 0.8), (3, 1.0), (4, 1.0), (5, 1.0), (6, 0.9), (7, 0.9), (8, 0.9), (9, 0.7), (10, 0.7)],
)
def test_the_size_of_a_group_makes_it_surer_or_less_sure(size: int, factor: float) -> None:
    assert size_factor(size) == factor


@pytest.mark.parametrize(
    ("mean", "action"), [(1.0, "merge"), (0.75, "merge"), (0.7499, "link"), (0.4, "link"), (0.3999, "ignore")]
)
def test_cohesion_decides_what_is_to_be_done(mean: float, action: str) -> None:
    assert action_of(mean) == action


def test_cohesion_is_the_mean_similarity_of_all_pairs() -> None:
    vectors = _vectors({(0, 1): 0.9, (0, 2): 0.6, (1, 2): 0.6}, 3)
    assert cohesion(similarities(vectors, PLAIN)) == pytest.approx(0.7, abs=1e-6)


def test_cohesion_is_that_of_calibrated_similarities() -> None:
    """At a cosine of 0.9 the static embedder's sentences are alike by 0.707."""
    vectors = _vectors({(0, 1): 0.9}, 2)
    assert cohesion(similarities(vectors, scale_of("static"))) == pytest.approx(0.707, abs=1e-4)


def test_pairs_at_the_threshold_are_joined_and_pairs_below_it_are_not() -> None:
    assert groups(_vectors({(0, 1): 0.401, (2, 3): 0.399}, 4), PLAIN) == [(0, 1)]


def test_single_linkage_joins_what_only_a_third_one_is_like() -> None:
    assert groups(_chain(3), PLAIN) == [(0, 1, 2)]


def test_ten_are_one_group() -> None:
    assert groups(_chain(10), PLAIN) == [tuple(range(10))]


def test_an_oversized_group_is_split_at_its_weakest_link() -> None:
    assert groups(_chain(12, weakest=[4]), PLAIN) == [tuple(range(5)), tuple(range(5, 12))]


def test_parts_are_split_again_until_they_fit_and_none_is_cut_short() -> None:
    assert groups(_chain(25, weakest=[9, 18]), PLAIN) == [
        tuple(range(10)),
        tuple(range(10, 19)),
        tuple(range(19, 25)),
    ]


def test_what_a_split_leaves_alone_falls_away() -> None:
    assert groups(_chain(11, weakest=[0]), PLAIN) == [tuple(range(1, 11))]


def test_nothing_and_one_alone_form_no_group() -> None:
    assert groups(np.zeros((0, 4), np.float32), PLAIN) == []
    assert groups(np.ones((1, 1), np.float32), PLAIN) == []


def test_vectors_of_nothing_are_like_nothing() -> None:
    assert groups(np.zeros((5, 4), np.float32), PLAIN) == []


def test_groups_do_not_depend_on_how_many_rows_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(7)
    vectors = chance.normal(size=(120, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = groups(vectors, scale_of("static"))
    monkeypatch.setattr(clustering, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(clustering, "_MAX_PAIRS", 10)
    assert groups(vectors, scale_of("static")) == whole
    assert len(whole) > 3


def test_thousands_of_equal_vectors_are_split_into_groups_that_fit() -> None:
    found = groups(np.tile(np.array([[1.0, 0.0]], np.float32), (3_000, 1)), PLAIN)
    assert {len(group) for group in found} == {10}


def test_the_strongest_forest_holds_no_ring_and_the_strongest_pairs() -> None:
    codes = np.array([5 * one + other for one, other in [(0, 1), (0, 2), (1, 2), (3, 4)]])
    forest, _ = strongest_forest(codes, np.array([0.5, 0.9, 0.7, 0.6], np.float32), 5)
    assert [divmod(code, 5) for code in forest.tolist()] == [(0, 2), (1, 2), (3, 4)]


@pytest.mark.parametrize("name", sorted(BY_EMBEDDER))
def test_the_least_cosine_of_a_similarity_is_where_the_scale_reaches_it(name: str) -> None:
    least = min_cosine(scale_of(name), 0.4)
    below, at = scale_of(name)(np.array([least - 1e-4, least + 1e-6], np.float32))
    assert below < 0.4 <= at + 1e-6


def test_a_scale_that_never_reaches_a_similarity_joins_nothing() -> None:
    def never(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.zeros_like(cosines)

    assert min_cosine(never, 0.4) > 1
    assert groups(np.ones((3, 1), np.float32), never) == []


def test_a_scale_that_is_always_above_a_similarity_joins_everything() -> None:
    assert min_cosine(np.ones_like, 0.4) == -1.0


def test_the_id_of_a_group_is_the_uuid_of_its_sorted_members() -> None:
    expected = str(uuid.uuid5(CLUSTER_IDS, '["a", "b", "c"]'))
    assert [cluster_id(each) for each in (["a", "b", "c"], ["c", "a", "b"])] == [expected, expected]


def test_ids_that_read_alike_when_joined_give_different_groups() -> None:
    ids = [cluster_id(each) for each in (["a", "b"], ["a, b"], ["ab"], ['a", "b'], ["\ud800", "b"])]
    assert all(one != other for one, other in combinations(ids, 2))


# Which rows are related, in exact numbers, and that no scan returns the square of what there is.


def same(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.clip(cosines, 0.0, 1.0).astype(np.float32)


def apart(count: int) -> NDArray[np.float32]:
    """Return vectors of which no two are alike."""
    return np.eye(count, dtype=np.float32)


@pytest.mark.parametrize(
    ("shared", "sure"),
    [
        ((0, 0, 0.0), 0.0),
        ((1, 0, 0.0), 0.2),
        ((1, 1, 0.0), 0.4),
        ((2, 0, 0.0), 0.4),
        ((3, 0, 0.0), 0.6),
        ((9, 0, 0.0), 0.6),
        ((0, 2, 0.0), 0.4),
        ((3, 2, 0.0), 1.0),
        ((0, 0, 0.5), 0.45),
        ((1, 0, 0.5), 0.45),
        ((3, 2, 0.5), 1.0),
        ((0, 0, 1.0), 0.9),
    ],
)
def test_confidence_is_the_better_of_words_and_likeness(shared: tuple[int, int, float], sure: float) -> None:
    assert confidence(*shared) == pytest.approx(sure)


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
    found = pairs(names, [set()] * 5, apart(5), same, excluded=[(0, 2), (3, 4)])
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
