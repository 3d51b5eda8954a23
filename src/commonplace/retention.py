"""Retention of memories: scoring, decay with age, promotion between tiers and the archive threshold.

The score is (use_count + 1)^0.6 · f(age) · strength. Its three curves f are a power law (forgetting after Wixted and
Ebbesen, "On the Form of Forgetting", 1991), an exponential, and a fast and a slow exponential together.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Literal, get_args

from commonplace.dataclasses import dataclass, field, replace
from commonplace.types import MemoryRecord, Tier

Curve = Literal["power_law", "exponential", "two_component"]
CURVES: tuple[Curve, ...] = get_args(Curve)

DAY_S = 86_400.0
HALF_LIFE_S = 3 * DAY_S
"""Half-life, in seconds, that the constants of the curves stand for."""
DEFAULT_HALF_LIVES = {"preference": 14 * DAY_S, "decision": 7 * DAY_S, "context": 3 * DAY_S, "fact": DAY_S}
"""Half-life in seconds by category; a memory of another category, or of none, has `HALF_LIFE_S`."""

USE_EXPONENT = 0.6
POWER = 1.1
EXPONENTIAL_RATE = 2.673e-6
FAST_SHARE, FAST_RATE, SLOW_RATE = 0.7, 1.603e-5, 1.147e-6
"""Constants of `two_component`: the share of its fast exponential, and the rates of both, per second."""

MAX_STRENGTH, REINFORCEMENT = 2.0, 0.1

RECENT_S = 7 * DAY_S
RECENT_USES = 16
"""Maximum number of accesses that are kept: promotion, which they decide, needs `PROMOTION_USES`."""
PROMOTION_USES = 3
ARCHIVE_AFTER_S: dict[Tier, float] = {"short": 7 * DAY_S, "medium": 90 * DAY_S}
NEXT_TIER: dict[Tier, Tier] = {"ultra": "short", "short": "medium", "medium": "long"}


def age(last_used: float, now: float) -> float:
    """Return the seconds since the last use; 0 if the clock was set back to before it."""
    return max(0.0, now - last_used)


def fading(curve: Curve, age_s: float, *, half_life_s: float | None = None) -> float:
    """Return f(age): 1 at age 0, falling towards 0; a negative age counts as 0.

    `half_life_s` stretches time by half_life_s / 3 days. The power law and the exponential then reach 0.5 at exactly
    that age; `two_component`, which reaches 0.5 long before three days, keeps its shape.
    """
    elapsed = max(0.0, age_s)
    half_life = HALF_LIFE_S if half_life_s is None else half_life_s
    if curve == "power_law":
        time_scale = half_life / (2 ** (1 / POWER) - 1)
        return float((1 + elapsed / time_scale) ** -POWER)
    if curve == "exponential":
        return exp(-elapsed * (EXPONENTIAL_RATE if half_life_s is None else log(2) / half_life))
    scaled = elapsed * (HALF_LIFE_S / half_life)
    return FAST_SHARE * exp(-FAST_RATE * scaled) + (1 - FAST_SHARE) * exp(-SLOW_RATE * scaled)


def touched(record: MemoryRecord, now: float, *, reinforce: bool = False) -> MemoryRecord:
    """Return the record after one more access.

    An access while the clock is set back counts as made at the last use: with the clock's time, the memory would look
    unused for that long once the clock is right again, and be archived.
    """
    moment = max(now, record.last_used)
    recent = tuple(access for access in record.uses if access >= moment - RECENT_S)
    # Rounded, since five steps of 0.1 would otherwise miss 1.5, where promotion begins.
    strength = min(MAX_STRENGTH, round(record.strength + REINFORCEMENT, 9)) if reinforce else record.strength
    uses = (*recent, moment)[-RECENT_USES:]
    return replace(record, use_count=record.use_count + 1, strength=strength, last_used=moment, uses=uses)


def may_archive(tier: Tier, age_s: float) -> bool:
    """Return whether a memory unused for `age_s` seconds may be archived: `short` after 7 days, `medium` after 90.

    Never `long`, which does not fade, nor `ultra`, which ends with its process.
    """
    limit = ARCHIVE_AFTER_S.get(tier)
    return limit is not None and age_s >= limit


MIN_TRUST_TO_PROMOTE = 0.5
"""Trust below which use never promotes a memory."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How memories fade, and how use promotes them.

    Attributes:
        half_lives: seconds by category; a category that is not listed has the curve's own half-life.
    """

    curve: Curve = "power_law"
    half_lives: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_HALF_LIVES))

    def raw(self, record: MemoryRecord, now: float) -> float:
        """Return the unclamped retention of a memory at a time, 0 or more; ranking and promotion compare it."""
        faded = fading(self.curve, age(record.last_used, now), half_life_s=self.half_lives.get(record.category))
        return float((record.use_count + 1) ** USE_EXPONENT) * faded * record.strength

    def retention(self, record: MemoryRecord, now: float) -> float:
        """Return the retention of a memory at a time, 0–1, as it is stored and reported."""
        return min(1.0, self.raw(record, now))

    def used(self, record: MemoryRecord, now: float, *, reinforce: bool = False) -> MemoryRecord:
        """Return the record after one more use; three in seven days promote it to the next tier, at most to `long`.

        The uses that earned a tier are cleared, since they would promote the memory again.
        """
        record = touched(record, now, reinforce=reinforce)
        has_earned = len(record.uses) >= PROMOTION_USES  # all of the last seven days, see `touched`
        if has_earned and record.tier in NEXT_TIER and record.trust >= MIN_TRUST_TO_PROMOTE:
            return replace(record, tier=NEXT_TIER[record.tier], uses=())
        return record
