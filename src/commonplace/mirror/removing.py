"""Remove memories from pages for good. It knows files alone, not whether the store still has what goes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from commonplace.errors import StoreBusyError
from commonplace.formats.journal import parse_page, split_lines
from commonplace.formats.journal_editing import with_changes
from commonplace.formats.journal_marks import id_in
from commonplace.mirror.folder import Folder
from commonplace.mirror.projection import kind_of, title_of

_ATTEMPTS: Final = 5


def forget(folder: Folder, ids: Sequence[str]) -> int:
    """Remove every block of these memories, copies of it too, and the files beside the pages; return how many went.

    A conflict copy goes that names one of them; a damaged page that was kept, also where its page names one: what it
    has of a memory may have lost its mark.

    Raises:
        OSError: a page cannot be written.
        StoreBusyError: somebody goes on changing a page.
    """
    if not ids or folder.fault():
        return 0
    folder.drop_drafts()
    wanted = set(ids)
    named = {name: _forget_on(folder, name, wanted) for name in sorted(folder.stamps())}
    gone, page_of = sum(named.values()), folder.damaged_copies()
    for name in folder.copies():
        if named.get(page_of.get(name, "")) or _ids_in(folder.read(name).text) & wanted:
            gone += folder.drop(name)
    if gone:
        folder.settle()
    return gone


def drop_all(folder: Folder) -> int:
    """Remove every page and conflict copy, and the directory where nothing else is in it; return how many files."""
    if folder.fault():
        return 0
    folder.drop_drafts()
    gone = sum(folder.drop(name) for name in [*sorted(folder.stamps()), *folder.copies()])
    folder.drop_directory()
    return gone


def _forget_on(folder: Folder, name: str, wanted: set[str]) -> int:
    for _ in range(_ATTEMPTS):
        file = folder.read(name)
        text, gone = _without(file.text, name, wanted)
        if not gone:
            return 0
        is_empty = text.strip() in ("", f"# {title_of(name)}")
        if folder.remove(file) if is_empty else folder.replace(file, text):
            return gone
    raise StoreBusyError(f"{folder.shown(name)} is being changed all the time", remedy="close it, and try again")


def _without(text: str, name: str, wanted: Collection[str]) -> tuple[str, int]:
    """Return a page without some memories, and how many blocks went. Of an id that stands twice, one goes at a time."""
    gone = 0
    while True:
        found = {block.entry.id for block in parse_page(text, kind_of(name)).blocks} & set(wanted)
        if not found:
            return text, gone
        gone += len(found)
        text = with_changes(text, dict.fromkeys(found), title=title_of(name), kind=kind_of(name))


def _ids_in(text: str) -> set[str]:
    return {id_ for line in split_lines(text) if (id_ := id_in(line.rstrip("\r\n")))}
