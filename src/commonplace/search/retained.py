"""How well the memories among the candidates are retained. It knows the store and the formula, not what it weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from commonplace.ranking.arrays import distinct
from commonplace.retention import age, retention

if TYPE_CHECKING:
    from commonplace.search.request import FadingRule
    from commonplace.store.contract import Store
    from commonplace.types import MemoryRecord


def retentions(
    store: Store, namespace: str, owners: NDArray[np.int64], rule: FadingRule, now: float
) -> NDArray[np.float32]:
    """Return the retention of each candidate's owner, 0–1, float32, the shape of `owners`.

    What is no memory does not fade and is neither favoured nor held back: it gets the mean of the memories.
    """
    memories = store.memory_records(namespace, distinct(owners).tolist())
    half_lives = dict(rule.half_lives)
    known = {number: _retention(memory.record, rule, half_lives, now) for number, memory in memories.items()}
    mean = sum(known.values()) / max(1, len(known))
    return np.array([known.get(number, mean) for number in owners.tolist()], dtype=np.float32)


def _retention(record: MemoryRecord, rule: FadingRule, half_lives: dict[str, float], now: float) -> float:
    if record.tier == "long":
        return 1.0
    half_life = half_lives.get(record.category)
    return retention(record.use_count, age(record.last_used, now), record.strength, rule.curve, half_life)
