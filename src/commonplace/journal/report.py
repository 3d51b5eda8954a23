"""The report of a sync of the journal, and its counters."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What was done to bring Markdown and store together.

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


@dataclass(slots=True)
class Tally:
    """A report in the making."""

    pages_written: int = 0
    read: set[str] = field(default_factory=set)
    added: int = 0
    updated: int = 0
    archived: int = 0
    restored: int = 0
    moved: int = 0
    conflicts: dict[str, None] = field(default_factory=dict)
    notices: dict[str, None] = field(default_factory=dict)

    @property
    def changes(self) -> int:
        """How often the store was changed."""
        return self.added + self.updated + self.archived + self.restored

    def notice(self, text: str) -> None:
        """Take a sentence for people; the same one counts once."""
        self.notices[text] = None

    def report(self) -> SyncReport:
        """Return what was counted."""
        return SyncReport(
            self.pages_written,
            len(self.read),
            self.added,
            self.updated,
            self.archived,
            self.restored,
            self.moved,
            tuple(self.conflicts),
            tuple(self.notices),
        )
