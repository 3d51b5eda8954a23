"""Where a forgetting takes place: the store's directory with all that keeps copies. It does nothing itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from commonplace.graph.ground import Ground
    from commonplace.index.directory import Index
    from commonplace.store.contract import Store
    from commonplace.store.memory_contract import MemoryChange
    from commonplace.types import Progress

LOGS = "logs"


class Pages(Protocol):
    """The Markdown of the memories."""

    def forget(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the blocks of these memories from every page, and the conflict copies that name one of them.

        What else stands on a page stays. Ids without a block are passed over. A namespace that the store no longer has
        is not made again by it.

        Returns:
            How many blocks and copies went.
        """
        ...

    def drop_all(self, namespace: str) -> int:
        """Remove every page and conflict copy of a namespace; return how many files went."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A store with all that keeps copies of what it holds.

    Attributes:
        pages: None where the store has no Markdown.
        untell: takes note, in the transaction, that an outside graph is to delete an episode of a group too; None where
            there is none.
        leave: takes a namespace, of which so many episodes may have been told, away from an outside graph, or only says
            that it would (True); returns what went there and what is left; None where there is none.
        follow: brings the graph, in the transaction, to what memories say now; None where it takes none of it.
        ground: what a graph is changed with; None where nobody forgets parts of one.
        forget_caches: lets this process drop what it keeps of questions and texts.
        clock: seconds since the epoch.
    """

    directory: Path
    store: Store
    index: Index
    clock: Callable[[], float] = time.time
    pages: Pages | None = None
    forget_caches: Callable[[], None] = lambda: None
    progress: Progress | None = None
    follow: Callable[[MemoryChange, Sequence[str]], None] | None = None
    ground: Callable[[], Ground] | None = None
    untell: Callable[[MemoryChange, str, str], None] | None = None
    leave: Callable[[str, int, bool], tuple[Sequence[str], Sequence[str]]] | None = None

    def forget_blocks(self, namespace: str, ids: Sequence[str]) -> int:
        """Remove the Markdown of memories; return how many blocks and conflict copies went."""
        return 0 if self.pages is None else self.pages.forget(namespace, ids)

    def drop_pages(self, namespace: str) -> int:
        """Remove all the Markdown of a namespace; return how many files went."""
        return 0 if self.pages is None else self.pages.drop_all(namespace)
