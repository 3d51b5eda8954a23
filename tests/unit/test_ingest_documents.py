"""Texts under the caller's own ids."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference_store.store import MemoryStore

from commonplace.errors import UsageError
from commonplace.ingest.passages import Destination, Limits, index_documents
from commonplace.models.hashing import HashingEmbedder
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


def sessions(store: MemoryStore) -> dict[str, tuple[str, int]]:
    return store.places("n", "artifact", "abcdef")


def test_a_session_goes_on_where_it_ended() -> None:
    """An agent adds turns as they are spoken."""
    store = MemoryStore()
    index(store, Document("a", "1", session="s"), Document("b", "2", session="s"))
    index(store, Document("c", "3", session="s"), Document("d", "4", session="t"))
    assert sessions(store) == {"a": ("s", 0), "b": ("s", 1), "c": ("s", 2), "d": ("t", 0)}


def test_documents_of_a_session_that_come_again_keep_their_places() -> None:
    """Whoever sends the whole conversation each time must find it in its order, and one corrected turn in its place."""
    store = MemoryStore()
    turns = [Document("a", "1", session="s"), Document("b", "2", session="s"), Document("c", "3", session="s")]
    for documents in (turns, turns, [*turns, Document("d", "4", session="s")], turns[1:2], turns[::-1]):
        index(store, *documents)
    assert sessions(store) == {"a": ("s", 0), "b": ("s", 1), "c": ("s", 2), "d": ("s", 3)}


@pytest.mark.parametrize("batch_owners", [1, 256])
def test_a_document_given_twice_at_once_takes_one_place(batch_owners: int) -> None:
    """Whether the first one is written already or waits in the batch is nobody's business."""
    store = MemoryStore()
    turns = [Document(id_, "text", session="s") for id_ in "abab"]
    index(store, *turns, Document("c", "text", session="s"), limits=Limits(batch_owners=batch_owners))
    assert sessions(store) == {"a": ("s", 0), "b": ("s", 1), "c": ("s", 2)}


def test_a_document_that_changes_its_session_comes_last_in_the_new_one() -> None:
    """Its place in the old one says nothing there."""
    store = MemoryStore()
    index(store, *(Document(id_, "text", session="s") for id_ in "ab"), Document("c", "text", session="t"))
    index(store, Document("a", "text", session="t"), Document("b", "text"))
    assert sessions(store) == {"a": ("t", 1), "b": ("", 0), "c": ("t", 0)}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            Document("a", "text", kind="note"),
            "has the kind 'note'; give one of artifact, knowledge; memories are stored with `remember`",
        ),
        (Document("a", b"text"), "the text of document 1 is bytes, not str; give texts, decoded"),
        (Document("a", None), "the text of document 1 is NoneType, not str"),
        (Document(5, "text"), "the id of document 1 is int, not str"),
        (Document("a", "text", title=5), "the title of document 1 is int"),
        (Document("a", "text", session=5), "the session of document 1 is int"),
        (Document("a", "text", tags="b"), "the tags of document 'a' are 'b'; give a tuple of texts"),
        (Document("a", "text", tags=(5,)), "the tags of document 'a' are"),
    ],
)
def test_a_document_of_wrong_values_is_refused_by_name(document: Document, message: str) -> None:
    """They come from the caller's own records, which no type checker has seen."""
    store = MemoryStore()
    with pytest.raises(UsageError, match=message):
        index(store, document)
    assert store.change() == 0


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
