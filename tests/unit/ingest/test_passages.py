"""What of a passage is tokenized and embedded: the names that it stands under, and its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference_store.store import MemoryStore

import commonplace
from commonplace.errors import UsageError
from commonplace.ingest.embeddings import reembed
from commonplace.ingest.passages import (
    MAX_NAME_LENGTH,
    Destination,
    Limits,
    PassageMaker,
    index_documents,
    passage_text,
)
from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import quantise
from commonplace.types import Document, IndexReport, Owner


@pytest.fixture(scope="module")
def model() -> StaticEmbedder:
    return StaticEmbedder.load()


@pytest.mark.parametrize(
    ("title", "heading", "text", "embedded"),
    [
        ("Dogs", "Food", "They eat meat.", "Dogs\nFood\nThey eat meat."),
        ("Dogs", "Food", "## Food\nDogs eat meat.", "Dogs\n## Food\nDogs eat meat."),
        ("Dogs", "Dogs", "They eat meat.", "Dogs\nThey eat meat."),
        ("", "", "They eat meat.", "They eat meat."),
        ("Art", "Go", "Going to the party", "Art\nGo\nGoing to the party"),
        ("Art", "Go", "A party of Art, to (Go)", "A party of Art, to (Go)"),
        ("Login.check", "", "def check(login):", "Login.check\ndef check(login):"),
    ],
)
def test_a_passage_is_embedded_under_its_names_each_of_them_once(
    title: str, heading: str, text: str, embedded: str
) -> None:
    assert passage_text(title, heading, text) == embedded


def test_a_name_of_any_length_leaves_the_passage_its_place() -> None:
    """Whoever gives a page as its title would have all its passages told by nothing else, and each of them as long."""
    embedded = passage_text("of dogs " * 1000, "", "They eat meat.")
    assert embedded == ("of dogs " * 1000)[:MAX_NAME_LENGTH] + "\nThey eat meat."
    page = "about dogs " * 50
    assert passage_text(page, "", page) == page


def test_tokens_and_vector_are_those_of_the_text_with_its_names(model: StaticEmbedder) -> None:
    """They are put together from lines that were tokenized one by one."""
    store = MemoryStore()
    store.set_embedding(model.stamp)
    maker = PassageMaker(Destination(store, model, model.tokenize, "n"))
    owner = Owner(id="d", kind="artifact", title="Keeping dogs")
    (written,) = maker.complete([maker.prepare(owner, "They eat meat.\n", "markdown")])
    expected = model.tokenize("Keeping dogs\nThey eat meat.")
    (passage,) = written.passages
    assert passage.token_ids == expected.tobytes()
    assert passage.vector == quantise(model.embed([TokenizedText("", expected)]))[0].tobytes()


def test_another_embedder_reads_the_names_too(model: StaticEmbedder) -> None:
    """Else what is indexed after a change of embedder would be found by other things than what was before it."""
    store = MemoryStore()
    store.set_embedding(model.stamp)
    maker = PassageMaker(Destination(store, model, model.tokenize, "n"))
    owner = Owner(id="d", kind="artifact", title="Keeping dogs")
    store.put_owners("n", maker.complete([maker.prepare(owner, "They eat meat.", "markdown")]), at=0.0)
    read: list[str] = []

    class Other:
        stamp = replace(model.stamp, name="other")

        def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
            read.extend(text.text for text in texts)
            return np.ones((len(texts), self.stamp.dimensions), np.float32)

    reembed(store, Other())
    assert read == ["Keeping dogs\nThey eat meat."]


def test_a_passage_is_found_by_what_its_title_means(tmp_path: Path) -> None:
    """No word of the question stands in it, and of two texts that are alike only the title tells which one it is."""
    with commonplace.open(tmp_path / "store") as book:
        book.index_documents(
            [
                Document(id="physician", title="Physicians", text="They work long hours for good pay."),
                Document(id="sailor", title="Sailors", text="They work long hours for good pay."),
            ]
        )
        assert book.search("doctor", method="semantic", min_score=0.0).hits[0].owner_id == "physician"
        assert book.search("ship crew", min_score=0.0).hits[0].owner_id == "sailor"


# Texts under the caller's own ids.


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
    (entry,) = store.entries_since("n", 0, store.change("n"))
    owner = store.owners("n", [entry.owner_number])[entry.owner_number]
    assert (owner.id, owner.kind, owner.title, owner.tags, owner.at) == ("MED-1", "knowledge", "A title", ("x",), 5.0)
    assert entry.text == "Some\ntext."


def test_a_document_given_again_is_replaced() -> None:
    """The same id is the same document."""
    store = MemoryStore()
    index(store, Document("a", "old"))
    report = index(store, Document("a", "new"), Document("b", "other"))
    assert (report.added, report.changed) == (1, 1)
    assert sorted(entry.text for entry in store.entries_since("n", 0, store.change("n"))) == [
        "new",
        "other",
    ]


def test_documents_of_a_session_are_neighbours_in_the_order_they_came() -> None:
    """In a conversation each turn lends score to the next."""
    store = MemoryStore()
    documents = [Document("1", "a", session="s"), Document("2", "b", session="t"), Document("3", "c", session="s")]
    index(store, *documents, Document("4", "d"))
    numbers = {entry.text: entry.number for entry in store.entries_since("n", 0, store.change("n"))}
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
