"""Lower the scores of unused memories in one tier and archive those below the threshold.

Retention is a function of use and time; the store keeps the time of the last run. A score counts as lowered if it is
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
"""Kind of the notes that record, by tier, when scores were last lowered."""
FADING_TIERS: Final[tuple[Tier, ...]] = tuple(ARCHIVE_AFTER_S)
_SHOWN_DECIMALS: Final = 2
_READ_BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class DecayReport:
    """The result of `decay`.

    Attributes:
        lowered: how many scores are lower now, including those of archived memories.
        archived: the ids of the archived memories, sorted.
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
    """Lower the scores of a tier's active memories, and archive those below a threshold that are old enough.

    All is written in one transaction. A memory that was used meanwhile stays.

    Args:
        feed: updates the graph.

    Raises:
        UsageError: the tier does not fade.
    """
    if tier not in FADING_TIERS:
        raise UsageError(
            f"memories of the tier {tier!r:.80} do not fade by decay", remedy=f"give one of {', '.join(FADING_TIERS)}"
        )
    last = max((note.at for note in store.notes(namespace, DECAY) if note.id == tier), default=0.0)
    lowered, due_ids, is_empty = 0, list[str](), True
    selection = Selection(tiers=(tier,), statuses=("active",), order="id", limit=_READ_BATCH)
    with store.snapshot():
        while batch := store.memories(namespace, selection):
            for record, id_ in ((memory.record, memory.owner.id) for memory in batch if memory.expired_at is None):
                is_empty = False
                before = _rounded(policy, record, min(now, max(last, record.last_used)))
                lowered += _rounded(policy, record, now) < before
                due_ids += [id_] if _is_due(policy, record, now, threshold) else []
            selection = replace(selection, offset=selection.offset + _READ_BATCH)
    if is_empty:
        return DecayReport(tier, threshold)
    archived: list[str] = []
    with store.change_memories(namespace) as change:
        for id_ in due_ids:
            current = change.find(id_)
            is_active = current is not None and current.expired_at is None and current.record.status == "active"
            if current is not None and is_active and _is_due(policy, current.record, now, threshold):
                change.expire(current.number, replace(current.record, status="archived"), max(now, current.created_at))
                archived.append(id_)
        if feed is not None:
            feed.follow(change, archived)
        change.put(Note(DECAY, tier, now, "{}"))
    return DecayReport(tier, threshold, lowered, tuple(sorted(archived)))


def _is_due(policy: RetentionPolicy, record: MemoryRecord, now: float, threshold: float) -> bool:
    return (
        record.tier in FADING_TIERS
        and may_archive(record.tier, age(record.last_used, now))
        and policy.raw(record, now) < threshold
    )


def _rounded(policy: RetentionPolicy, record: MemoryRecord, time: float) -> float:
    return round(policy.retention(record, time), _SHOWN_DECIMALS)
