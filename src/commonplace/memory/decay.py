"""Lower the scores of unused memories in one tier and archive those below the threshold.

Retention is a function of use and time; the store holds its value at the last run. A score counts as lowered when it is
lower, in the two decimals shown, than at the last run or use.
"""

from __future__ import annotations

from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import UsageError
from commonplace.graph.episodes import MemoryFeed
from commonplace.retention import ARCHIVE_AFTER_S, RetentionPolicy, age, may_archive
from commonplace.store.store import Store
from commonplace.types import MemoryRecord, Note, Selection, Tier

DECAY: Final = "decay"
"""The kind of the notes that keep, by tier, when scores were last lowered."""
FADING_TIERS: Final[tuple[Tier, ...]] = tuple(ARCHIVE_AFTER_S)
_SHOWN_DECIMALS: Final = 2
_READ_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class DecayReport:
    """The result of `decay`.

    Attributes:
        lowered: how many scores are lower now, those of archived memories included.
        archived: the ids of the memories that went, sorted.
    """

    tier: Tier
    threshold: float
    lowered: int = 0
    archived: tuple[str, ...] = ()


def decay(
    store: Store,
    namespace: str,
    policy: RetentionPolicy,
    now: float,
    *,
    tier: str,
    threshold: float,
    feed: MemoryFeed | None = None,
) -> DecayReport:
    """Lower the scores of a tier's active memories, and archive those below a threshold that are old enough for it.

    It is one transaction. A memory that was used meanwhile stays.

    Args:
        feed: lets the graph follow.

    Raises:
        UsageError: the tier does not fade.
    """
    if tier not in FADING_TIERS:
        raise UsageError(
            f"memories of the tier {tier!r:.80} do not fade by decay", remedy=f"give one of {', '.join(FADING_TIERS)}"
        )
    last = max((note.at for note in store.notes(namespace, DECAY) if note.id == tier), default=0.0)
    lowered, falling, is_empty = 0, list[str](), True
    selection = Selection(tiers=(tier,), statuses=("active",), order="id", limit=_READ_AT_ONCE)
    with store.snapshot():
        while some := store.memories(namespace, selection):
            for record, id_ in ((each.record, each.owner.id) for each in some if each.expired_at is None):
                is_empty = False
                before = _shown(policy, record, min(now, max(last, record.last_used)))
                lowered += _shown(policy, record, now) < before
                falling += [id_] if _falls(policy, record, now, threshold) else []
            selection = replace(selection, offset=selection.offset + _READ_AT_ONCE)
    if is_empty:
        return DecayReport(tier, threshold)
    archived: list[str] = []
    with store.change_memories(namespace) as change:
        for id_ in falling:
            known = change.find(id_)
            is_active = known is not None and known.expired_at is None and known.record.status == "active"
            if known is not None and is_active and _falls(policy, known.record, now, threshold):
                change.expire(known.number, replace(known.record, status="archived"), max(now, known.created_at))
                archived.append(id_)
        if feed is not None:
            feed.follow(change, archived)
        change.put(Note(DECAY, tier, now, "{}"))
    return DecayReport(tier, threshold, lowered, tuple(sorted(archived)))


def _falls(policy: RetentionPolicy, record: MemoryRecord, now: float, threshold: float) -> bool:
    return (
        record.tier in FADING_TIERS
        and may_archive(record.tier, age(record.last_used, now))
        and policy.raw(record, now) < threshold
    )


def _shown(policy: RetentionPolicy, record: MemoryRecord, at: float) -> float:
    return round(policy.retention(record, at), _SHOWN_DECIMALS)
