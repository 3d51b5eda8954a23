"""What a service is given to work with, as people have it: any scores, any errors, embedders that change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stubs.model_server import ModelServer
from tests.unit.knowledge.travel import CITIES, SEOUL_TEXT, TOKYO_TEXT, OwnEmbedder

import commonplace
from commonplace.engine import Engine
from commonplace.errors import ModelError, ProviderError, StoreError, UsageError
from commonplace.knowledge.config import MemoryConfig
from commonplace.knowledge.service import KnowledgeService

FLAT = MemoryConfig(rerank_enabled=False)
FACTS = [{"fact": f"Fact number {word} about kettles"} for word in "one two three four five six".split()]
TEXTS = [f"fact: {each['fact']}" for each in FACTS]
SECRET = "sk-proj-4f9KzQ81mXv2Lr7Tn6Wb3Yc5Hd0Js8PaUeRgQw"


class TestScores:
    @pytest.mark.parametrize("kind", [float, np.float32, np.float64, Decimal, str])
    @pytest.mark.parametrize("most", [1.0, 12.5])
    def test_every_kind_and_scale_gives_the_order(self, book: Engine, kind: Callable[[Any], Any], most: float) -> None:
        """Cross-encoders give NumPy's numbers, and such as are beyond 0 to 1; they are told as the nearer end."""
        reranker = _Saying(lambda text: kind(str(most - 2 * most * TEXTS.index(text) / 6)))
        service = book.knowledge_service(reranker=reranker)
        service.index_knowledge("a", FACTS)
        found = service.retrieve("a", "kettles", 2)
        assert found.lines == TEXTS[:2]
        assert [hit.score for hit in found.hits] == pytest.approx([min(1.0, most), min(1.0, most * 2 / 3)])
        assert not found.degraded

    @pytest.mark.parametrize("score", [None, True, float("nan"), "high", [1], 10**400])
    def test_what_is_no_finite_number_is_none(self, book: Engine, score: Any) -> None:
        service = book.knowledge_service(reranker=_Saying(lambda text: 0.5 if text == TEXTS[3] else score))
        service.index_knowledge("a", FACTS)
        found = service.retrieve("a", "kettles", 2)
        assert (found.lines[0], [hit.score for hit in found.hits]) == (TEXTS[3], [0.5, 0.0])


class _Saying:
    def __init__(self, score: Callable[[str], Any]) -> None:
        self.score = score

    def rerank(self, query: str, candidates: Sequence[str], top_k: int) -> list[dict[str, Any]]:
        return [{"content": text, "score": self.score(text)} for text in candidates]


class TestErrors:
    @pytest.mark.parametrize(
        "error", [ModelError("its data are gone"), StoreError("gone"), UsageError("no such model")]
    )
    def test_whatever_a_re_ranker_raises_the_first_stage_stands(self, book: Engine, error: Exception) -> None:
        """One of ours too: a model that makes things better must not be what makes them fail."""

        def refuse(text: str) -> float:
            raise error

        book.knowledge_service(FLAT).index_knowledge("a", FACTS)
        found = book.knowledge_service(reranker=_Saying(refuse)).retrieve("a", "kettles", 2)
        assert (len(found.hits), found.degraded, found.reranked_by) == (2, True, "")
        assert str(error) in found.notices[0]

    def test_a_key_in_what_went_wrong_is_not_told(self, book: Engine) -> None:
        def refuse(text: str) -> float:
            raise RuntimeError(f"the key {SECRET} was refused")

        embedder = OwnEmbedder()
        service = book.knowledge_service(embedder=embedder, reranker=_Saying(refuse))
        service.index_knowledge("a", FACTS)
        told = str(service.retrieve("a", "kettles", 2).notices)
        embedder.error = RuntimeError(f"the key {SECRET} was refused")
        told += str(service.retrieve("a", "kettles", 2).notices)
        with pytest.raises(ProviderError, match="was refused") as raised:
            service.index_knowledge("a", CITIES)
        assert told.count("was refused") == 3
        assert SECRET not in told + str(raised.value)


class TestNobody:
    def test_an_agent_without_knowledge_is_told_with_those_that_have_some(self, knowledge: KnowledgeService) -> None:
        """A name may be misspelt."""
        assert knowledge.retrieve("a", "kettles").notices == ("no agent 'a' has knowledge here",)
        knowledge.index_knowledge("TravelAgent", CITIES)
        told = "no agent 'travelagent' has knowledge here; those that have: 'TravelAgent'"
        assert knowledge.retrieve("travelagent", "Seoul").notices == (told,)
        assert knowledge.retrieve("TravelAgent", "Seoul", min_score=1.0).notices == ()
        for number in range(11):
            knowledge.index_knowledge(f"agent {number:02}", CITIES)
        assert knowledge.retrieve("a", "kettles").notices[0].endswith("'agent 07', 'agent 08', …")


class TestWithoutVectors:
    def test_no_query_leaves_the_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also where the store's own embedder is behind an API."""
        with ModelServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
            with commonplace.open(tmp_path / "remote", embedder="openai:stub-embedding") as book:
                service = book.knowledge_service(MemoryConfig(vector_enabled=False, rerank_enabled=False))
                asked = len(server.asked)
                service.index_knowledge("a", CITIES)
                found = service.retrieve("a", "humid climate")
                assert (found.lines[0], found.degraded) == (TOKYO_TEXT, False)
                assert len(server.asked) == asked
                book.search("humid climate")
                assert len(server.asked) == asked + 1

    def test_the_reason_is_told_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with ModelServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
            with commonplace.open(tmp_path / "remote", embedder="openai:stub-embedding") as book:
                book.knowledge_service(FLAT).index_knowledge("a", CITIES)
            monkeypatch.delenv("OPENAI_BASE_URL")
            with commonplace.open(tmp_path / "remote") as book:
                found = book.knowledge_service(FLAT).retrieve("a", "humid climate")
        assert found.degraded
        (notice,) = found.notices
        assert notice.startswith("searched by words alone: OPENAI_API_KEY is not set")


class TestAChangedEmbedder:
    def test_knowledge_is_embedded_by_the_one_that_the_store_has_at_the_end(self, book: Engine) -> None:
        """Another process may change it between embedding and writing; nobody who indexes should have to know."""
        service = book.knowledge_service(FLAT)
        with commonplace.open(book.directory) as other:
            change_memories, once = book._runtime.store.change_memories, iter([None])

            def changing(*arguments: Any, **named: Any) -> Any:
                for _ in once:
                    other.index_upgrade("hashing")
                return change_memories(*arguments, **named)

            book.remember("Kettles boil")
            book._runtime.store.change_memories = changing  # type: ignore[method-assign]
            report = service.index_knowledge("a", CITIES)
        assert (report.added, report.embedder) == (2, "hashing@1/64")
        assert service.retrieve_relevant_knowledge("a", "humid climate")[0] == TOKYO_TEXT
        assert book.doctor().findings == ()

    def test_a_service_in_this_process_goes_on_with_its_own(self, book: Engine) -> None:
        service = book.knowledge_service(MemoryConfig(sqlite_enabled=False, rerank_enabled=False))
        service.index_knowledge("a", CITIES)
        book.remember("Kettles boil")
        book.index_upgrade("hashing")
        assert service.index_knowledge("b", CITIES).embedder == "minilm@2/384"
        assert service.retrieve_relevant_knowledge("a", "What is the weather in Seoul?")[0] == SEOUL_TEXT


@pytest.mark.parametrize("number", ["0x" + "f" * 5_000, "9" * 5_000])
@pytest.mark.parametrize("text", ["name: a\nknowledge: [{text: x, n: %s}]", "name: %s", "name: a\n? %s\n: b"])
def test_a_number_that_nobody_could_write_is_refused(knowledge: KnowledgeService, text: str, number: str) -> None:
    """Python reads it in hexadecimal digits, and cannot tell of it."""
    with pytest.raises(UsageError, match=r"a number has more than 4,300 digits"):
        knowledge.create_agent(f"{text % number}\n")


def test_such_a_number_in_a_map_is_refused_by_its_place(knowledge: KnowledgeService) -> None:
    with pytest.raises(UsageError, match=r"knowledge\[0\].n\[1\]: a number has more than 4,300 digits"):
        knowledge.index_knowledge("a", [{"n": [1, 16**5_000]}])
    assert knowledge.status().agents == ()
    assert json.loads(json.dumps(knowledge.status().to_dict()))["agents"] == []


def test_the_home_of_nobody_is_a_directory_like_any_other(
    book: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service = book.knowledge_service(MemoryConfig(sqlite_path="~nobody-of-that-name/store"))
    assert service.status().store == str(tmp_path / "~nobody-of-that-name" / "store")
