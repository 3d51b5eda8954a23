"""The pages as readers see them: their names, their text, and where on them a memory stands. It changes nothing.

Nothing but pages can be read here, whatever a caller names: a name is compared with those of the pages that are there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from commonplace.errors import StoreError
from commonplace.formats.journal import LONG_TERM_PAGE, parse_page
from commonplace.mirror.folder import Folder, Stamp
from commonplace.mirror.projection import kind_of

if TYPE_CHECKING:
    from commonplace.store.contract import Store

_MOST_BYTES: Final = 512 * 1024
"""Of a page in which memories are looked for: reading a larger one takes longer than a search."""
_MOST_PAGES: Final = 64


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where a memory stands: a page, as people name it, and its lines there, from 1, both included."""

    path: str
    first_line: int
    last_line: int


class PageReader:
    """Reads the pages of one namespace. Safe for threads."""

    def __init__(self, directory: Path, namespace: str, store: Store) -> None:
        self._folder = Folder(directory, namespace)
        self._namespace = namespace
        self._store = store
        self._lock = threading.Lock()
        self._places: dict[str, tuple[Stamp, dict[str, PagePlace]]] = {}

    def names(self) -> list[str]:
        """Return the names of the pages relative to the store: the long-term page, then days, the newest first."""
        if self._folder.fault():
            return []
        found = sorted(self._stamps(), key=lambda name: (name == LONG_TERM_PAGE, name), reverse=True)
        return [self._folder.shown(name) for name in found]

    def text(self, path: str) -> str | None:
        """Return the text of a page, None where there is no page of that name.

        Raises:
            StoreError: the page cannot be read.
        """
        if path not in self.names():
            return None
        file = self._folder.read(Path(path).name)
        if file.problem:
            raise StoreError(f"{path} {file.problem}", remedy="make it a file of UTF-8 text again")
        return file.text.removeprefix("\ufeff")

    def places(self, ids: Iterable[str]) -> dict[str, PagePlace]:
        """Return where memories stand on pages; those that stand on none, or on a very large one, are absent."""
        wanted = set(ids)
        if not wanted or self._folder.fault():
            return {}
        pages = {block.id: block.page for block in self._store.blocks(self._namespace, sorted(wanted))}
        stamps = self._stamps()
        found: dict[str, PagePlace] = {}
        for page in set(pages.values()) & stamps.keys():
            standing = self._standing(page, stamps[page])
            found.update({id_: place for id_, place in standing.items() if id_ in wanted})
        return found

    def memory_at(self, path: str, line: int) -> str | None:
        """Return the id of the memory that stands on a line of a page; None where none does, or there is no page."""
        if path not in self.names():
            return None
        page = Path(path).name
        stamp = self._stamps().get(page)
        standing = self._standing(page, stamp) if stamp is not None else {}
        return next((id_ for id_, place in standing.items() if place.first_line <= line <= place.last_line), None)

    def _stamps(self) -> dict[str, Stamp]:
        """Return what pages there are; what cannot be looked at is told by the mirror, and holds none here."""
        try:
            return self._folder.stamps()
        except OSError:
            return {}

    def _standing(self, page: str, stamp: Stamp) -> dict[str, PagePlace]:
        with self._lock:
            known = self._places.get(page)
        if known is not None and known[0] == stamp:
            return known[1]
        file = self._folder.read(page)
        blocks = parse_page(file.text, kind_of(page)).blocks if len(file.data or b"") <= _MOST_BYTES else ()
        shown = self._folder.shown(page)
        standing = {block.entry.id: PagePlace(shown, block.start_line, block.end_line) for block in blocks}
        with self._lock:
            self._places.pop(page, None)
            while len(self._places) >= _MOST_PAGES:
                self._places.pop(next(iter(self._places)))  # the one that was read first
            self._places[page] = (file.stamp, standing)
        return standing
