"""The calls of an engine that the memory specialist needs beside all others, and the specialist itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from commonplace.engine.erasure_api import Forgetting
from commonplace.engine.memory_api import Remembering
from commonplace.engine.search_api import Finding
from commonplace.errors import UsageError
from commonplace.memory.validate import fraction, one_of
from commonplace.memory.view import MIN_TRUST_TO_PROMOTE, Memory
from commonplace.retention import NEXT_TIER
from commonplace.types import STATUSES, TIERS, Selection, Tier

if TYPE_CHECKING:
    from commonplace.memory.decay import DecayReport
    from commonplace.specialist import Specialist
    from commonplace.specialist.calls import Book

_LIVE = tuple(status for status in STATUSES if status != "archived")


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How many memories a namespace holds: live ones by tier, the archived ones, and links."""

    ultra: int
    short: int
    medium: int
    long: int
    archived: int
    links: int


class Specialising(Finding, Remembering, Forgetting):
    """The part of `Engine` that answers the text protocol CSP/1."""

    @cached_property
    def specialist(self) -> Specialist:
        """The memory specialist, which answers requests in the text protocol CSP/1."""
        from commonplace.specialist import Specialist

        return Specialist(cast("Book", self))  # as a part of an engine, it has a graph

    def decay(self, tier: str = "short", threshold: float = 0.3) -> DecayReport:
        """Lower the scores of one tier to what is left of them now, and archive what fell below a threshold.

        A memory goes only when it was unused for as long as its tier keeps it: short for 7 days, medium for 90. Long
        ones never do. `restore_memory` brings one back for 30 days.

        Args:
            tier: "short" or "medium".
            threshold: 0–1.

        Raises:
            UsageError: the tier does not fade, or the threshold is out of its range. Nothing was changed.
        """
        from commonplace.memory.decay import decay

        floor = fraction("threshold", threshold)
        self._before()
        report = decay(
            self._store, self.namespace, self._fading, self._now(), tier=tier, threshold=floor, feed=self._feed
        )
        self._after()
        return report

    def raise_tier(self, id: str, tier: str | None = None) -> Memory:  # noqa: A002 - the name of the field
        """Move a live memory to a higher tier: the next one, or the one that is named.

        Raises:
            NotFoundError: there is no live memory of that id.
            UsageError: the tier is no higher one, or the memory is trusted less than 0.5.
        """
        memory = self.get(id, touch=False)
        wanted = NEXT_TIER.get(memory.tier) if tier is None else one_of("tier", tier, TIERS)
        if wanted is None or TIERS.index(wanted) <= TIERS.index(memory.tier):
            raise UsageError(
                f"memory {id!r:.80} is {memory.tier} already"
                if wanted in (None, memory.tier)
                else f"memory {id!r:.80} is {memory.tier}, which is above {wanted}",
                remedy=f"tiers are, from low to high, {', '.join(TIERS)}; use `update` to lower one",
            )
        if memory.trust < MIN_TRUST_TO_PROMOTE:
            raise UsageError(
                f"memory {id!r:.80} is trusted {memory.trust:.2f}, and one below {MIN_TRUST_TO_PROMOTE} is not raised",
                remedy="let a person confirm it with `update`",
            )
        chosen: Tier = wanted  # type: ignore[assignment] # one of them
        return self._risen(replace(memory, tier=chosen)) if memory.tier == "ultra" else self.update(id, tier=chosen)

    def memory_counts(self) -> MemoryCounts:
        """Count the memories of this namespace."""
        self._before()
        live = {
            tier: self._store.count_memories(self.namespace, Selection(tiers=(tier,), statuses=_LIVE))
            for tier in TIERS[1:]
        }
        archived = self._store.count_memories(self.namespace, Selection(statuses=("archived",)))
        ultra = len(self._ultra.all(Selection(statuses=_LIVE))) if self._has_ultra else 0
        return MemoryCounts(ultra, live["short"], live["medium"], live["long"], archived, len(self.links()))

    def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has, as every budget here counts them."""
        if not isinstance(text, str):
            raise UsageError(f"text is {text!r:.80}", remedy="give a text, decoded")
        return self._tokens.count_tokens(text)
