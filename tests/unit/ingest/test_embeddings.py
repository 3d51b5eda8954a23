"""Texts are stored first and embedded after, where their embedder is slow; each is found by its words meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import commonplace
from commonplace.engine import Engine
from commonplace.engine.open import open_engine
from commonplace.errors import ModelError, UsageError
from commonplace.ingest.embeddings import EmbeddingBacklog
from commonplace.models.contract import TokenizedText
from commonplace.models.hashing import HashingEmbedder
from commonplace.models.registry import MixedEmbedder, by_space, for_kind
from commonplace.settings import load
from commonplace.types import Document

LONG = "The harbour master keeps a ledger of every ship. " * 12


class Slow(HashingEmbedder):
    """Counts what it embeds; it says that it is slow, as the transformer is, and fails while it is broken."""

    is_slow = True

    def __init__(self) -> None:
        super().__init__()
        self.texts = 0
        self.is_broken = False

    def embed(self, texts: Sequence[TokenizedText]) -> NDArray[np.float32]:
        if self.is_broken:
            raise ModelError("the weights are gone", remedy="bring them back")
        self.texts += len(texts)
        return super().embed(texts)


@pytest.fixture
def slow() -> Slow:
    return Slow()


def opened(path: Path, slow: Slow) -> Engine:
    return commonplace.open(path, embedder=slow)


@pytest.mark.usefixtures("embedding_thread")
class TestRemembering:
    def test_a_short_memory_is_embedded_when_the_call_returns(self, tmp_path: Path, slow: Slow) -> None:
        """Whoever remembers one thing asks for it next."""
        with opened(tmp_path, slow) as book:
            book.remember("the harbour is closed")
            assert slow.texts == 1
            assert book.index_status().unembedded == 0

    def test_a_long_memory_is_embedded_before_the_engine_is_closed(self, tmp_path: Path, slow: Slow) -> None:
        """The call returns at the commit; a process that ends in order leaves nothing waiting."""
        with opened(tmp_path, slow) as book:
            book.remember(LONG)
            assert [hit.text for hit in book.recall("harbour master", min_score=0.0).hits] == [LONG]
        assert slow.texts == 2  # the memory and the question
        with opened(tmp_path, slow) as book:
            assert book.index_status().unembedded == 0

    def test_many_memories_can_be_found_by_meaning_when_the_call_returns(self, tmp_path: Path, slow: Slow) -> None:
        """The figures of recall are taken with nothing pending."""
        with opened(tmp_path, slow) as book:
            book.remember_many([{"content": f"ship number {number}"} for number in range(40)])
            assert book.index_status().unembedded == 0
            assert slow.texts == 40
            hits = book.search("ship number 7", method="semantic", min_score=0.0).hits
            assert hits[0].text == "ship number 7"

    def test_without_waiting_they_are_durable_and_found_by_words(self, tmp_path: Path, slow: Slow) -> None:
        """A bulk of thousands takes minutes to embed."""
        slow.is_broken = True
        with opened(tmp_path, slow) as book:
            book.remember_many([{"content": f"ship number {number}"} for number in range(3)], wait=False)
            assert book.index_status().unembedded == 3
            assert book.recall("ship number 2").hits[0].text == "ship number 2"
        slow.is_broken = False
        with opened(tmp_path, slow) as book:
            report = book.doctor()
            assert report.is_healthy
            assert book.index_status().unembedded == 0

    def test_a_version_that_is_replaced_before_it_is_embedded_leaves_nothing_waiting(
        self, tmp_path: Path, slow: Slow
    ) -> None:
        """The past is searched too, with `as_of`."""
        slow.is_broken = True
        with opened(tmp_path, slow) as book:
            kept = book.remember_many([{"content": "one ship"}, {"content": "another boat"}], wait=False)
            slow.is_broken = False
            book.update(kept[0].id, content="one barge")
            book.doctor()
            assert book.index_status().unembedded == 0


class TestTheTransformer:
    def test_what_waits_for_its_vector_is_found_by_its_words(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By default, and as surely as without a transformer: its absence is no evidence against it."""
        monkeypatch.setattr(EmbeddingBacklog, "start", lambda self: None)
        with commonplace.open(tmp_path) as book:
            book.remember("The harbour is closed.")
            book.remember_many(
                [{"content": "Marek repaired the espresso machine."}, {"content": "Ines plays the cello."}], wait=False
            )
            assert book.index_status().unembedded > 1
            hit = book.recall("who repaired the espresso machine").hits[0]
            assert (hit.text, hit.confidence) == ("Marek repaired the espresso machine.", "sure")

    def test_an_identifier_is_found_surely_though_it_means_nothing(self, tmp_path: Path) -> None:
        """No cosine stands out for a number; a newer memory without it is no answer either."""
        with commonplace.open(tmp_path) as book:
            book.remember("Order NS-20418 for the landing stage was placed with Nordsteg.", at="2025-03-01")
            book.remember("The landing stage was moved to the north bank.", at="2026-03-01")
            book.remember("Ines plays the cello.", at="2026-04-01")
            hit = book.recall("NS-20418").hits[0]
            assert (hit.text[:14], hit.confidence, hit.superseded_by) == ("Order NS-20418", "sure", None)

    def test_of_two_memories_alone_the_newer_stands_first(self, tmp_path: Path) -> None:
        """It is the first thing that anybody tries."""
        with commonplace.open(tmp_path) as book:
            old = book.remember("The treasurer is Gerlinde Pfau.", at="2025-01-02")
            new = book.remember("Since the election Tom Ruiz is our treasurer.", at="2026-02-02")
            hits = book.recall("who is the treasurer").hits
            assert [(hit.owner_id, hit.superseded_by) for hit in hits] == [(new.id, None), (old.id, new.id)]


class TestKinds:
    def test_each_kind_of_thing_is_embedded_by_its_own_embedder(self, tmp_path: Path) -> None:
        """Thousands of files must be indexed in seconds; memories must be found by what they mean."""
        with commonplace.open(tmp_path) as book:
            book.index_documents([Document("d", "The reset button is behind the panel.")])
            book.remember("Oksana's role went to Benedikt.")
            assert book.index_status().embedder == "minilm@2/384 (artifacts: static@2/256)"
            found = book.search("where is the reset button", min_score=0.0).hits
            assert (found[0].owner_id, found[0].signals["dense"] > 0.3) == ("d", True)
            found = book.search("who is my boss", kinds=("memory",), min_score=0.0).hits
            assert found[0].text == "Oksana's role went to Benedikt."

    def test_artifacts_alone_can_be_given_another_embedder(self, tmp_path: Path) -> None:
        """Who has few files may have them found as memories are."""
        with commonplace.open(tmp_path) as book:
            book.index_documents([Document("d", "The reset button is behind the panel.")])
            memory = book.remember("The harbour is closed.")
            report = book.index_upgrade("minilm", ["artifacts"])
            assert (report.embedder, report.passages) == ("minilm@2/384", 2)
            assert book.search("reset button", min_score=0.0).hits[0].owner_id == "d"
            assert book.recall("harbour", min_score=0.0).hits[0].owner_id == memory.id

    def test_a_kind_that_there_is_not_is_refused(self, tmp_path: Path) -> None:
        """A misspelt one would change nothing and say that it did."""
        with commonplace.open(tmp_path, embedder="hashing") as book, pytest.raises(UsageError, match="name some of"):
            book.index_upgrade("static", ["artifact"])  # type: ignore[list-item]

    def test_a_mixed_embedder_refuses_texts_of_no_kind(self) -> None:
        """Their vectors would be of one embedder or another, and nobody could say which."""
        slow, hashing = Slow(), HashingEmbedder()
        mixed = MixedEmbedder({"memories": slow, "knowledge": slow, "graph": slow, "artifacts": hashing})
        assert for_kind(mixed, "artifact") is hashing
        assert by_space(mixed)[0].stamp == slow.stamp
        with pytest.raises(TypeError, match="kind is not named"):
            mixed.embed([])


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"embedder.name": "hashing"}, "hashing@1/64"),
        ({"embedder.name": "hashing", "embedder.memories": "static"}, "static@2/256 (artifacts: hashing@1/64"),
    ],
)
def test_a_setting_of_one_kind_goes_before_that_of_all(tmp_path: Path, values: dict[str, str], name: str) -> None:
    """Who names an embedder for memories means it, whatever the rest has."""
    settings = load({**values, "store.path": str(tmp_path)})
    with open_engine(tmp_path, "default", None, settings=settings) as book:
        book.remember("one thing")
        assert book.index_status().embedder.startswith(name)
