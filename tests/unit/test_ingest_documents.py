"""Texts under the caller's own ids."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from commonplace.errors import UsageError
from commonplace.ingest.documents import index_documents
from commonplace.ingest.passages import Destination, Limits
from commonplace.models.hashing import HashingEmbedder
from commonplace.store.memory import MemoryStore
from commonplace.types import Document, IndexReport


def tokenize(text: str) -> NDArray[np.uint16]:
    return np.array([len(word) for word in text.split()], np.uint16)


def index(store: MemoryStore, *documents: Document, limits: Limits | None = None) -> IndexReport:
    store.set_embedding(HashingEmbedder().stamp)
    return index_documents(Destination(store, HashingEmbedder(), tokenize, "n", limits or Limits()), documents)


def test_a_document_keeps_its_id_and_what_was_said_of_it() -> None:
    """Labelled sets name their documents; so do callers."""
    store = MemoryStore()
    report = index(store, Document("MED-1", "Some\r\ntext.", "A  title", "knowledge", ("x",), at=5.0))
    assert (report.added, report.changed, report.passages) == (1, 0, 1)
    (entry,) = store.entries_since(0, report.change)
    owner = store.owners("n", [entry.owner_number])[entry.owner_number]
    assert (owner.id, owner.kind, owner.title, owner.tags, owner.at) == ("MED-1", "knowledge", "A title", ("x",), 5.0)
    assert entry.text == "Some\ntext."


def test_a_document_given_again_is_replaced() -> None:
    """The same id is the same document."""
    store = MemoryStore()
    index(store, Document("a", "old"))
    report = index(store, Document("a", "new"), Document("b", "other"))
    assert (report.added, report.changed) == (1, 1)
    assert sorted(entry.text for entry in store.entries_since(0, report.change)) == ["new", "other"]


def test_documents_of_a_session_are_neighbours_in_the_order_they_came() -> None:
    """In a conversation each turn lends score to the next."""
    store = MemoryStore()
    documents = [Document("1", "a", session="s"), Document("2", "b", session="t"), Document("3", "c", session="s")]
    change = index(store, *documents, Document("4", "d")).change
    numbers = {entry.text: entry.number for entry in store.entries_since(0, change)}
    assert store.neighbours("n", list(numbers.values())) == [
        (numbers["a"], numbers["c"]),
        (numbers["c"], numbers["a"]),
    ]


def test_a_long_document_is_cut() -> None:
    """Documents have the limits of files."""
    assert index(MemoryStore(), Document("a", "word " * 100), limits=Limits(40, 4)).passages > 2


def test_a_document_without_id_is_refused() -> None:
    """Nobody could name it afterwards."""
    with pytest.raises(UsageError, match="document 1 has no id"):
        index(MemoryStore(), Document("", "text"))


def test_no_documents_are_no_change() -> None:
    """An empty set is a set."""
    assert index(MemoryStore()).added == 0
