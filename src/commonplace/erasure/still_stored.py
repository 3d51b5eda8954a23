"""Find patterns that also occur in data that stays, so that the scan does not report them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from commonplace.erasure.receipt import BACKUP, ELSEWHERE, LEFT, RECEIPT, STORE_SPACE, UNPROVED, ForgetReceipt
from commonplace.erasure.scan import LABEL, Needles, forms, packed
from commonplace.erasure.select import held_arrays, held_texts
from commonplace.erasure.select import held_graph_texts as texts_of_graph
from commonplace.erasure.steps import FORGETTING, STEPS, Pending
from commonplace.errors import StoreError
from commonplace.formats.journal import LONG_TERM_PAGE, SECTIONS, Entry
from commonplace.formats.journal_edit import conflict_copy
from commonplace.graph.graphiti.outbox import GROUPS, WAITING
from commonplace.index.generations import Index
from commonplace.ingest.projection import bring_up_to_date
from commonplace.ledger.erase import held_texts as texts_of_ledger
from commonplace.settings import Settings
from commonplace.store.contract import Store
from commonplace.store.store import SqliteStore
from commonplace.text.escaping import strings
from commonplace.text.similarity import digest
from commonplace.types import Chunk, Embedding, Filter, NewPassage, Owner, OwnerWrite, Selection, StoredMemory

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


_BATCH_BYTES = 1 << 22
_NUMBERS_AT_ONCE = 500


def still_stored(store: Store, needles: Needles) -> set[bytes]:
    """Return the needles that stand in a text, vector or list of token ids that any namespace still holds.

    Or in the files of any store whatever it holds, or in the name of a namespace that a receipt is of. Names also where
    the store tells of itself: a tag may be the same word as the id, page or path that a receipt gives.
    """
    found: set[bytes] = set()
    for batch in _batches(_held(store)):
        found |= needles.found(batch)
        if len(found) == len(needles):
            break
    if len(found) < len(needles):
        found |= needles.found(own_words())
        found |= needles.found(b"\0\0".join(_namespaces_of_receipts(store)))
        found |= needles.of_kinds(LABEL).found(b"\0\0".join(_noted(store)))
    return found


def texts_of(memory: StoredMemory) -> Iterator[str]:
    """Yield every text of one version of a memory but its content and id."""
    record, owner = memory.record, memory.owner
    yield from (record.source, record.category, owner.title, owner.summary, owner.session)
    yield from (*owner.tags, *record.entities)
    yield from strings(json.loads(record.metadata))


def _held(store: Store) -> Iterator[bytes]:
    for entry in store.entries_since(0, store.change()):
        yield from (entry.token_ids, entry.vector)
        yield from _forms((entry.title, entry.path, entry.heading, entry.summary, entry.text, *entry.tags))
    for namespace in store.namespaces(with_texts=True):
        yield from _forms((namespace,))
        numbers = store.matching_owners(namespace, Filter())
        for begin in range(0, len(numbers), _NUMBERS_AT_ONCE):
            owners = store.owners(namespace, numbers[begin : begin + _NUMBERS_AT_ONCE])
            yield from _forms(text for owner in owners.values() for text in _names(owner))
        for memory in store.memories(namespace, Selection(order="id")):
            yield from _memory(store, namespace, memory)
        yield from _forms(link.type for link in store.links(namespace))
        yield from _forms(held_texts(store, namespace))
        yield from held_arrays(store, namespace)
        yield from _forms(texts_of_graph(store.graph(namespace)))
        yield from _forms(texts_of_ledger(store.ledger(namespace)))


def _namespaces_of_receipts(store: Store) -> Iterator[bytes]:
    for kind in (RECEIPT, FORGETTING):
        yield from _forms(str(json.loads(note.body).get("namespace", "")) for note in store.notes(None, kind))


def _noted(store: Store) -> Iterator[bytes]:
    """Yield what the store has of itself: receipts, what is pending, copies elsewhere, pages."""
    for kind in (RECEIPT, FORGETTING, BACKUP, WAITING, GROUPS):
        yield from (f"{note.id} {note.body}".encode("utf-8", "surrogatepass") for note in store.notes(None, kind))
    for namespace in store.namespaces():
        yield from _forms(page.page for page in store.pages(namespace))


def _memory(store: Store, namespace: str, latest: StoredMemory) -> Iterator[bytes]:
    """Yield what all versions of a memory hold; the passages of past ones are in no list of the index."""
    one_is_past = latest.record.version > 1 or latest.expired_at is not None
    for memory in store.versions(namespace, latest.owner.id) if one_is_past else [latest]:
        record = memory.record
        yield from _forms((memory.owner.id, record.content, record.metadata, record.vault_path, *record.derived_from))
        yield from _forms((digest(record.content), record.tier, record.status, record.origin))
        yield from _forms(texts_of(memory))
        if memory.expired_at is not None:
            numbers = store.passages_of(namespace, [memory.number])
            for tokens in store.tokens(namespace, numbers).values():
                yield from (tokens.token_ids, tokens.vector)
            for passage in store.passages(namespace, numbers).values():
                yield from _forms((passage.chunk.text, passage.chunk.heading))


def _names(owner: Owner) -> Iterator[str]:
    yield from (owner.id, owner.path, owner.root, owner.session, owner.title, owner.summary)
    yield from (owner.kind, owner.type, owner.phase, owner.stamp.recipe if owner.stamp else "")
    yield from (*owner.tags, *owner.references)


def _forms(texts: Iterable[str]) -> Iterator[bytes]:
    for text in texts:
        if text:
            yield from forms(text)
            short = packed(text)
            if short is not None:
                yield short


def _batches(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what is to be looked through in large blocks; no needle reaches over a border, for it holds no NUL run."""
    batch, size = [], 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece)
        if size >= _BATCH_BYTES:
            yield b"\0\0".join(batch)
            batch, size = [], 0
    yield b"\0\0".join(batch)
