"""What one source says of a fact, and how that is written down so that the fact can be reckoned again. Plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from commonplace.types.graph import Happening

EVIDENCE: Final = "evidence"
"""The key of a happening's detail under which it stands."""

Saying = Literal["said", "denied", "once", "settled", "cancelled"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says of a fact. Times are seconds since the epoch.

    Attributes:
        home: the id of the fact that it was said of first; a fact that it makes gets that id.
        source, target: ids of entities, as the names were understood at first; they may be others' now.
        saying: it holds, it holds no longer, it held once, a person decided that it and not its rivals hold, or it
            never came about.
        text: a sentence that says it.
        at: when we learnt it; `told` is when it was said.
        order: its place among what was said of facts that it may contradict.
        valid_from, valid_to: as it was stated; None is unstated.
        episode: an id, "" where somebody gave the fact as such; `start`, `end`: where it stands there.
    """

    home: str
    source: str
    target: str
    saying: Saying
    text: str
    at: float
    told: float
    order: int = 0
    valid_from: float | None = None
    valid_to: float | None = None
    trust: float = 1.0
    confidence: float = 1.0
    group: str = ""
    episode: str = ""
    start: int = 0
    end: int = 0
    reason: str = ""
    attributes: str = "{}"

    @property
    def begins(self) -> float | None:
        """Since when the fact holds by this: as stated, else when it was said; None where it was past by then."""
        if self.valid_from is not None:
            return self.valid_from
        return None if self.valid_to is not None and self.valid_to <= self.told else self.told

    @property
    def sentence(self) -> str:
        """What two facts share that one sentence says; "" for a fact that was given as such."""
        return f"{self.episode} {self.start} {self.end}" if self.episode else ""


def happening(what: str, relation: str, evidence: Evidence, reason: str) -> Happening:
    """Return what happened to a relation, and why, when something was said of it."""
    values = ((name, getattr(evidence, name)) for name in Evidence.__slots__)
    detail = {name: value for name, value in values if value != _DEFAULTS.get(name)}
    return Happening(
        "relation",
        relation,
        evidence.at,
        what,
        reason,
        evidence.episode,
        json.dumps({EVIDENCE: detail}, sort_keys=True),
    )


def evidence_of(found: Happening) -> Evidence | None:
    """Return what was said of a relation where a happening tells it, else None."""
    detail: Mapping[str, Any] = json.loads(found.detail).get(EVIDENCE) or {}
    return Evidence(**detail) if detail else None


_DEFAULTS: Final[Mapping[str, Any]] = {
    name: Evidence.__dataclass_fields__[name].default
    for name in (
        "order",
        "valid_from",
        "valid_to",
        "trust",
        "confidence",
        "group",
        "episode",
        "start",
        "end",
        "reason",
        "attributes",
    )
}
