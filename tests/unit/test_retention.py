"""Memories fade by the curve that was chosen, are refreshed by use and climb the tiers."""

from __future__ import annotations

import math

import pytest

from commonplace.dataclasses import replace
from commonplace.retention import CURVES, DEFAULT_HALF_LIVES, Curve, RetentionPolicy, age, fading, may_archive, touched
from commonplace.types import MemoryRecord, Tier

DAY = 86_400.0
NOW = 1_780_000_000.0


def record(use_count: int, uses: tuple[float, ...] = ()) -> MemoryRecord:
    """A memory that was used last now."""
    return MemoryRecord("x", use_count=use_count, last_used=NOW, uses=uses)


@pytest.mark.parametrize(
    ("curve", "days", "expected", "within"),
    [
        ("power_law", 1, 0.754, 0.0005),
        ("power_law", 3, 0.500, 1e-12),
        ("power_law", 7, 0.293, 0.0005),
        ("power_law", 14, 0.167, 0.0005),
        ("power_law", 30, 0.0814, 0.00005),
        ("power_law", 60, 0.0402, 0.00005),
        ("exponential", 1, 0.794, 0.0005),
        ("exponential", 3, 0.500, 0.0005),
        ("exponential", 7, 0.199, 0.0005),
        ("exponential", 14, 0.0394, 0.00005),
        ("exponential", 30, 0.00098, 0.000005),
        ("exponential", 60, 1e-6, 1e-7),
        ("two_component", 1, 0.447, 0.0005),
        ("two_component", 3, 0.234, 0.0005),
        ("two_component", 7, 0.150, 0.0005),
        ("two_component", 14, 0.075, 0.0005),
        ("two_component", 30, 0.015, 0.0005),
        ("two_component", 60, 0.0008, 0.00005),
    ],
)
def test_each_curve_runs_as_declared(curve: Curve, days: int, expected: float, within: float) -> None:
    """Declaring one curve and running another is a mistake that others have made."""
    assert fading(curve, days * DAY) == pytest.approx(expected, abs=within)


def test_the_time_scale_of_the_power_law_is_3_4174_days() -> None:
    """At an age of t0 the law says 2^-1.1."""
    assert fading("power_law", 3.4174 * DAY) == pytest.approx(2**-1.1, abs=1e-5)


@pytest.mark.parametrize("curve", CURVES)
def test_a_memory_just_used_has_not_faded(curve: Curve) -> None:
    assert fading(curve, 0.0) == 1.0
    assert fading(curve, -5.0) == 1.0, "a clock set back"
    assert fading(curve, math.inf) == 0.0


@pytest.mark.parametrize("curve", ["power_law", "exponential"])
@pytest.mark.parametrize("half_life", sorted(DEFAULT_HALF_LIVES.values()))
def test_one_half_life_leaves_half(curve: Curve, half_life: float) -> None:
    assert fading(curve, half_life, half_life_s=half_life) == pytest.approx(0.5, abs=1e-12)


def test_another_half_life_stretches_the_two_components() -> None:
    """Six days instead of three: at twice the age it is where it was."""
    assert fading("two_component", 14 * DAY, half_life_s=6 * DAY) == pytest.approx(0.150, abs=0.0005)


def test_categories_have_their_half_lives() -> None:
    days = {category: seconds / DAY for category, seconds in DEFAULT_HALF_LIVES.items()}
    assert days == {"preference": 14, "decision": 7, "context": 3, "fact": 1}


def test_the_score_multiplies_uses_fading_and_strength() -> None:
    """(31 + 1)^0.6 = 8, half-faded, at strength 1.5."""
    used = MemoryRecord("x", category="decision", use_count=31, strength=1.5)
    assert RetentionPolicy("power_law", {}).raw(used, 3 * DAY) == pytest.approx(6.0)
    assert RetentionPolicy("power_law").raw(used, 7 * DAY) == pytest.approx(6.0), "the half-life of a decision"
    assert RetentionPolicy("exponential").raw(MemoryRecord("x"), 0.0) == 1.0


def test_retention_is_the_score_within_bounds() -> None:
    used = MemoryRecord("x", use_count=31, strength=1.5)
    assert RetentionPolicy("power_law").retention(used, 3 * DAY) == 1.0
    assert RetentionPolicy("power_law").retention(MemoryRecord("x"), 3 * DAY) == pytest.approx(0.5)
    assert RetentionPolicy("exponential").retention(MemoryRecord("x"), 1e12) == 0.0


def test_age_is_never_negative() -> None:
    assert age(NOW, NOW + 5) == 5.0
    assert age(NOW + 5, NOW) == 0.0


def test_a_touch_counts_and_moves_the_last_use() -> None:
    assert touched(record(2), NOW + 60) == replace(record(3, (NOW + 60,)), last_used=NOW + 60)


def test_only_asking_for_it_reinforces_and_never_beyond_two() -> None:
    use = record(0)
    for _ in range(5):
        use = touched(use, NOW, reinforce=True)
    assert use.strength == 1.5, "where promotion begins, exactly"
    for _ in range(10):
        use = touched(use, NOW, reinforce=True)
    assert use.strength == 2.0
    assert touched(use, NOW).strength == 2.0


def test_accesses_older_than_seven_days_are_dropped() -> None:
    use = record(3, (NOW - 8 * DAY, NOW - 7 * DAY, NOW - 1))
    assert touched(use, NOW).uses == (NOW - 7 * DAY, NOW - 1, NOW)


def test_at_most_sixteen_accesses_are_kept() -> None:
    use = record(0)
    for second in range(20):
        use = touched(use, NOW + second)
    assert use.use_count == 20
    assert use.uses == tuple(NOW + second for second in range(4, 20))


def test_a_clock_set_back_makes_no_memory_older() -> None:
    """A machine that wakes up in 1970 and touches a memory must not have it archived when its clock is right again."""
    assert touched(record(1, (NOW,)), 0.0) == record(2, (NOW, NOW))


@pytest.mark.parametrize(
    ("tier", "above"), [("ultra", "short"), ("short", "medium"), ("medium", "long"), ("long", None)]
)
def test_three_accesses_in_seven_days_earn_the_next_tier(tier: Tier, above: Tier | None) -> None:
    known = MemoryRecord("x", tier=tier, last_used=NOW - DAY, uses=(NOW - 7 * DAY, NOW - DAY))
    assert RetentionPolicy().used(known, NOW).tier == (above or tier)
    assert RetentionPolicy().used(known, NOW + 1).tier == tier, "the first of them is now older"
    assert RetentionPolicy().used(replace(known, uses=known.uses[1:]), NOW).tier == tier


def test_accesses_from_before_the_clock_was_set_back_still_count() -> None:
    assert RetentionPolicy().used(record(2, (NOW, NOW)), NOW - 3600).tier == "medium"


def test_the_accesses_that_earned_a_tier_do_not_earn_another() -> None:
    risen = RetentionPolicy().used(MemoryRecord("x", uses=(NOW, NOW)), NOW)
    assert (risen.tier, risen.uses) == ("medium", ())
    assert RetentionPolicy().used(risen, NOW).tier == "medium"


@pytest.mark.parametrize(
    ("tier", "days", "expected"),
    [
        ("short", 6.99, False),
        ("short", 7, True),
        ("medium", 89.99, False),
        ("medium", 90, True),
        ("long", 10_000, False),
        ("ultra", 10_000, False),
    ],
)
def test_tiers_may_be_archived_after_their_time(tier: Tier, days: float, expected: bool) -> None:
    assert may_archive(tier, days * DAY) is expected
