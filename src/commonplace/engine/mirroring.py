"""The call of an engine that brings Markdown and memories together. How that is done is in `mirror`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commonplace.engine.workings import Workings

if TYPE_CHECKING:
    from commonplace.mirror.report import SyncReport


class Mirroring(Workings):
    """The part of `Engine` that is about Markdown."""

    def sync(self, *, accept: str | Path | None = None) -> SyncReport:
        """Bring the Markdown of this namespace and its memories together now, in both directions.

        Short memories stand in `memory/YYYY-MM-DD.md`, long ones in `MEMORY.md`. What people changed there is taken in:
        an edit is a new version, a new note a new memory, a removed block archives its memory. What both sides changed
        is kept on both: the store's words on the page, the others in a file beside it. With the setting memory.mirror
        this happens by itself, at the next call and soon after a write; pages that somebody has just saved wait then.

        A page that looks damaged, because it holds NUL characters, breaks off, or lacks many entries at once, archives
        nothing: it is written again from the store, and what stood there is kept in a file beside it.

        Args:
            accept: a page that was changed so on purpose, or the file in which it was kept, relative to the store or
                to the working directory: it is taken in as it is.

        Raises:
            NotFoundError: `accept` names neither a page nor a damaged one that was kept.
            UsageError: the file that it names holds NUL characters.
            StoreBusyError: another process was at it for longer than a minute.
            StoreError: the store cannot be written.
        """
        return self._mirror.sync(accept)
