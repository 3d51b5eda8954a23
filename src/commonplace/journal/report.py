"""The report of a sync of the journal, and its counters."""

from __future__ import annotations

from collections import Counter
from typing import Any

from commonplace.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The result of `sync`.

    Attributes:
        pages_written, pages_read: pages that were replaced, and pages that somebody else had changed.
        added: notes that became memories.
        updated: memories that an edit changed; `archived` ones were removed from their page, `restored` ones put back.
        moved: blocks that went to another page, on either side.
        conflicts: the files, relative to the store, that keep what lost against the store.
        notices: one sentence each, for people.
    """

    pages_written: int = 0
    pages_read: int = 0
    added: int = 0
    updated: int = 0
    archived: int = 0
    restored: int = 0
    moved: int = 0
    conflicts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class Tally:
    """A report in the making.

    Attributes:
        counts: by the fields of a `SyncReport`, those that are numbers.
        read: the pages that somebody else had changed.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.read: set[str] = set()
        self.conflicts: dict[str, None] = {}
        self._notices: dict[str, None] = {}

    @property
    def changes(self) -> int:
        """How often the store was changed."""
        return sum(self.counts[name] for name in ("added", "updated", "archived", "restored"))

    def notice(self, text: str) -> None:
        """Take a sentence for people; the same one counts once."""
        self._notices[text] = None

    def report(self) -> SyncReport:
        """Return what was counted."""
        counts: dict[str, Any] = {**self.counts, "pages_read": len(self.read)}
        return SyncReport(**counts, conflicts=tuple(self.conflicts), notices=tuple(self._notices))
