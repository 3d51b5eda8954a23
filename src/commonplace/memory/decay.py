"""Lower the scores of unused memories in one tier and archive those below the threshold.

Retention is a function of use and time; the store holds its value at the last run. A score counts as lowered when it is
lower, in the two decimals shown, than at the last run or use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from commonplace.dataclasses import dataclass, replace
from commonplace.errors import UsageError
from commonplace.graph.episodes import MemoryFeed
from commonplace.memory.view import RetentionPolicy
from commonplace.retention import ARCHIVE_AFTER_S, age, may_archive
from commonplace.store.store import Store
from commonplace.types import MemoryRecord, Note, Selection, StoredMemory, Tier

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
    chosen = next((each for each in FADING_TIERS if each == tier), None)
    if chosen is None:
        raise UsageError(
            f"memories of the tier {tier!r:.80} do not fade by decay", remedy=f"give one of {', '.join(FADING_TIERS)}"
        )
    last = max((note.at for note in store.notes(namespace, DECAY) if note.id == chosen), default=0.0)
    lowered, falling, is_empty = 0, list[str](), True
    for stored in _active(store, namespace, chosen):
        is_empty = False
        record = stored.record
        before = _shown(policy, record, min(now, max(last, record.last_used)))
        lowered += _shown(policy, record, now) < before
        if _falls(policy, record, now, threshold):
            falling.append(stored.owner.id)
    if is_empty:
        return DecayReport(chosen, threshold)
    archived: list[str] = []
    with store.change_memories(namespace) as change:
        for id_ in falling:
            known = change.find(id_)
            is_active = known is not None and known.expired_at is None and known.record.status == "active"
            if known is None or not is_active or not _falls(policy, known.record, now, threshold):
                continue
            record = replace(known.record, status="archived")
            change.expire(known.number, record, max(now, known.created_at))
            archived.append(id_)
        if feed is not None:
            feed.follow(change, archived)
        change.put_note(Note(DECAY, chosen, now, "{}"))
    return DecayReport(chosen, threshold, lowered, tuple(sorted(archived)))


def _active(store: Store, namespace: str, tier: Tier) -> Iterator[StoredMemory]:
    with store.snapshot():
        selection = Selection(tiers=(tier,), statuses=("active",), order="id", limit=_READ_AT_ONCE)
        while found := store.memories(namespace, selection):
            yield from (each for each in found if each.expired_at is None)
            selection = replace(selection, offset=selection.offset + _READ_AT_ONCE)


def _falls(policy: RetentionPolicy, record: MemoryRecord, now: float, threshold: float) -> bool:
    return (
        record.tier in FADING_TIERS
        and may_archive(record.tier, age(record.last_used, now))
        and policy.raw(record, now) < threshold
    )


def _shown(policy: RetentionPolicy, record: MemoryRecord, at: float) -> float:
    return round(min(1.0, policy.raw(record, at)), _SHOWN_DECIMALS)
