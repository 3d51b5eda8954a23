"""How the memories of one store fade, by the curve and half-lives of the settings; the formulas are in `retention`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from commonplace.retention import DEFAULT_HALF_LIVES, Curve, Use, age, climbed, next_tier, raw_score, touched
from commonplace.types import MemoryRecord

LEAST_TRUST_TO_RISE = 0.5
"""What is trusted less is never promoted by use."""


@dataclass(frozen=True, slots=True)
class Fading:
    """How memories fade and rise.

    Attributes:
        half_lives: seconds by category; a category that is not named has the curve's own half-life.
        rises: whether use moves a memory to the next tier.
    """

    curve: Curve = "power_law"
    half_lives: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_HALF_LIVES))
    rises: bool = True

    def raw(self, record: MemoryRecord, now: float) -> float:
        """Return the unclamped retention of a memory at a time."""
        half_life = self.half_lives.get(record.category)
        return raw_score(record.use_count, age(record.last_used, now), record.strength, self.curve, half_life)

    def used(self, record: MemoryRecord, now: float, *, reinforce: bool = False) -> MemoryRecord:
        """Return the record after one more access, in the next tier where that earns it."""
        use = touched(Use(record.use_count, record.strength, record.last_used, record.uses), now, reinforce=reinforce)
        tier = next_tier(record.tier, use.uses, use.last_used)
        if tier is not None and self.rises and record.trust >= LEAST_TRUST_TO_RISE:
            record, use = replace(record, tier=tier), climbed(use)
        return replace(record, use_count=use.use_count, strength=use.strength, last_used=use.last_used, uses=use.uses)
