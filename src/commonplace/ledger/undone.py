"""Memories that an undo removed."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commonplace.store.graph_contract import LedgerReading

ERASE: Final = "erase"
"""The step of a reversal that takes away the memory that its change had made."""


def taken_away(ledger: LedgerReading, ids: Collection[str]) -> set[str]:
    """Return those of some ids whose memory a change had made that was undone."""
    return {
        step["id"]
        for reversal in ledger.reversals(memory_ids=sorted(ids))
        if reversal.undone_at is not None
        for step in json.loads(reversal.steps)
        if step["do"] == ERASE and step["id"] in ids
    }
