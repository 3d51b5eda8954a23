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
from commonplace.ingest.embeddings import reembed
from commonplace.ingest.passages import MAX_NAME_LENGTH, Destination, PassageMaker, passage_text
from commonplace.models.contract import TokenizedText
from commonplace.models.static import StaticEmbedder
from commonplace.ranking.arrays import quantise
from commonplace.types import Document, Owner


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
