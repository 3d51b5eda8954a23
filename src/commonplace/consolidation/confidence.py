"""When an agent acts by itself: by how sure it is. It knows numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from commonplace.errors import UsageError

Decision = Literal["auto", "log", "wait"]


@dataclass(frozen=True, slots=True)
class ConfidenceConfig:
    """Thresholds on confidence, 0–1.

    Attributes:
        auto_threshold: from here on an agent acts.
        log_threshold: from here on it acts and records the details; below, it files an issue and waits.

    Raises:
        UsageError: they are no numbers from 0 to 1, or out of order.
    """

    auto_threshold: float = 0.9
    log_threshold: float = 0.7

    def __post_init__(self) -> None:
        for name, value in (("auto_threshold", self.auto_threshold), ("log_threshold", self.log_threshold)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
                raise UsageError(f"{name} is {value!r:.80}", remedy="give a number from 0 to 1", parameters=(name,))
        if self.log_threshold > self.auto_threshold:
            raise UsageError(
                f"log_threshold is {self.log_threshold}, above auto_threshold, {self.auto_threshold}",
                remedy="give a log_threshold that is not above auto_threshold",
                parameters=("log_threshold", "auto_threshold"),
            )

    def decide(self, confidence: float) -> Decision:
        """Return what to do at a confidence."""
        if confidence >= self.auto_threshold:
            return "auto"
        return "log" if confidence >= self.log_threshold else "wait"
