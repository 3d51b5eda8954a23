"""The words that the files of a store hold whatever is remembered in it. It knows no store but one that it makes.

The index of every store has an entry `generation`: a tag of that name, found there, betrays nothing.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commonplace.errors import StoreError
from commonplace.forgetting.pending import Pending
from commonplace.forgetting.receipt import ELSEWHERE, LEFT, STORE_SPACE, UNPROVED, ForgetReceipt
from commonplace.forgetting.steps import STEPS
from commonplace.formats.journal import LONG_TERM_PAGE
from commonplace.formats.journal_entry import Entry
from commonplace.formats.journal_merging import conflict_copy
from commonplace.formats.long_term import SECTIONS
from commonplace.index.directory import Index
from commonplace.ingest.projection import bring_up_to_date
from commonplace.settings import Settings
from commonplace.store.sqlite import SqliteStore
from commonplace.types import Chunk, Embedding, NewPassage, Owner, OwnerWrite

_NOTHING: Final = "0"
"""What is remembered in the store that is made here."""
_EMBEDDING: Final = Embedding(_NOTHING, _NOTHING, 64)


def own_words() -> bytes:
    """Return what a store's files hold of themselves: names of tables, entries, headings, the sentences of receipts.

    Where the disk has no room to make a store it is less: a word of it is then said to be left somewhere, and is not.
    """
    said = [*_on_pages(), json.dumps(asdict(Settings()))]
    try:
        with tempfile.TemporaryDirectory(prefix="commonplace-") as place:
            files = _files_of_a_store(Path(place))
    except (StoreError, OSError):
        files = []
    return b"\0\0".join([*(text.encode() for text in said), *files])


def _on_pages() -> list[str]:
    copy = conflict_copy(LONG_TERM_PAGE, Entry(_NOTHING, None, "", ""), None, datetime.fromtimestamp(0, UTC))
    return [LONG_TERM_PAGE, *SECTIONS, copy.text]


def _files_of_a_store(directory: Path) -> list[bytes]:
    """Return the files of a store with one passage that has no word, and with the notes of a forgetting."""
    store = SqliteStore.create(directory / "store.db")
    try:
        store.set_embedding(_EMBEDDING)
        chunk = Chunk(_NOTHING, 1, 1)
        passage = NewPassage(_NOTHING, chunk, bytes(2), bytes(range(_EMBEDDING.dimensions)))
        store.put_owners(_NOTHING, [OwnerWrite(Owner(_NOTHING, "memory"), (passage,))])
        with store.change_memories(STORE_SPACE) as change:
            receipt = ForgetReceipt(_NOTHING, 0.0, _NOTHING, outside=(ELSEWHERE,), notices=(LEFT, UNPROVED))
            change.put_note(receipt.note())
            change.put_note(Pending(_NOTHING, 0.0, _NOTHING, STEPS).note())
        index = Index(directory / "index", store_id=store.id, embedding=_EMBEDDING)
        bring_up_to_date(store, index)
        index.close()
    finally:
        store.close()
    return [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
