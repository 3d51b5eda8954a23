"""Whatever the numbers, retention stays in its bounds and time does not run backwards."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from commonplace.retention import CURVES, RECENT_S, RECENT_USES, Curve, RetentionPolicy, fading, touched
from commonplace.types import MemoryRecord

curves = st.sampled_from(CURVES)
ages = st.floats(-1e12, 1e12)
half_lives = st.none() | st.floats(1.0, 1e10)
counts = st.integers(0, 2**63 - 1)
strengths = st.floats(1.0, 2.0)


@given(counts, ages, strengths, curves, half_lives)
def test_retention_is_the_raw_score_between_0_and_1(
    count: int, age_s: float, strength: float, curve: Curve, half_life: float | None
) -> None:
    policy = RetentionPolicy(curve, {} if half_life is None else {"own": half_life})
    record = MemoryRecord("x", category="own", use_count=count, strength=strength)
    value = policy.retention(record, age_s)
    assert 0.0 <= value <= 1.0
    assert value == min(1.0, policy.raw(record, age_s))


@given(curves, ages, ages, half_lives)
def test_more_time_never_leaves_more(curve: Curve, first: float, second: float, half_life: float | None) -> None:
    early, late = sorted((first, second))
    assert fading(curve, early, half_life_s=half_life) >= fading(curve, late, half_life_s=half_life)


@given(st.lists(st.tuples(st.floats(0, 1e10), st.booleans()), max_size=40))
def test_any_order_of_touches_leaves_a_sound_state(touches: list[tuple[float, bool]]) -> None:
    """Several processes touch one memory, each with its own idea of the time."""
    use = MemoryRecord("x")
    for now, reinforce in touches:
        use = touched(use, now, reinforce=reinforce)
    assert use.use_count == len(touches)
    assert use.last_used == max((now for now, _ in touches), default=0.0)
    assert 1.0 <= use.strength <= 2.0
    assert list(use.uses) == sorted(use.uses)
    assert len(use.uses) <= RECENT_USES
    assert all(use.last_used - RECENT_S <= access <= use.last_used for access in use.uses)
