"""The health report: findings and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from commonplace.dataclasses import asdict, dataclass
from commonplace.health.golden import GoldenAnswer

Kind = Literal["duplicate", "contradiction", "overtaken", "stale", "orphan", "junk"]
KINDS: tuple[Kind, ...] = ("duplicate", "contradiction", "overtaken", "stale", "orphan", "junk")

_COMMANDS: Final[Mapping[Kind, str]] = {
    "duplicate": "commonplace memory archive {}",
    "contradiction": "commonplace review",
    "overtaken": "commonplace review",
    "junk": "commonplace memory archive {}",
}

BANDS: tuple[float, ...] = (0.05, 0.10, 0.25, 0.35, 0.65, 1.0)
"""Upper ends of the bands in which retention is counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a person may want to look at.

    Attributes:
        ids: of memories; of a contradiction, of facts of the graph.
        why: one sentence.
        command: a command line that settles it, "" where that takes more than a choice.
    """

    kind: Kind
    ids: tuple[str, ...]
    why: str

    @property
    def command(self) -> str:
        """What settles it."""
        return _COMMANDS.get(self.kind, "").format(self.ids[-1])


@dataclass(frozen=True, slots=True)
class Health:
    """How healthy the memories of a namespace are.

    Attributes:
        tiers, statuses: how many memories there are of each; archived ones count in `statuses` alone.
        retention: how many active memories have a retention up to each upper end, and above the one before.
        findings: by kind, then by id.
        golden: what golden queries find, where any were asked.
    """

    namespace: str
    memories: int
    tiers: Mapping[str, int]
    statuses: Mapping[str, int]
    retention: Mapping[str, int]
    pending: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    golden: tuple[GoldenAnswer, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each kind."""
        return {kind: sum(each.kind == kind for each in self.findings) for kind in KINDS}

    @property
    def failed(self) -> tuple[GoldenAnswer, ...]:
        """The golden queries that do not find all that they must, or show what they must not."""
        return tuple(answer for answer in self.golden if not answer.is_whole)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "namespace": self.namespace,
            "memories": self.memories,
            "tiers": dict(self.tiers),
            "statuses": dict(self.statuses),
            "retention": dict(self.retention),
            "pending": dict(self.pending),
            "counts": self.counts,
            "findings": [{**asdict(each), "ids": list(each.ids), "command": each.command} for each in self.findings],
            "golden": [
                {**answer.golden.to_dict(), "found": list(answer.found), "shown": list(answer.shown)}
                for answer in self.golden
            ],
        }
