"""An agent's knowledge is replaced as a whole: what stays, what comes, what goes, and what a failure leaves."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from tests.unit.clock import Clock
from tests.unit.knowledge.travel import CITIES, SEOUL, SEOUL_TEXT, TOKYO, TOKYO_TEXT, OwnEmbedder

from commonplace.engine import Engine
from commonplace.errors import ProviderError, UsageError
from commonplace.knowledge.config import MemoryConfig
from commonplace.knowledge.service import KnowledgeService
from commonplace.text.characters import MENDED
from commonplace.types.knowledge import StoredKnowledge


def stored(book: Engine, agent: str = "a", *, deleted: bool = False) -> list[StoredKnowledge]:
    return book._runtime.store.knowledge(book.namespace).items(agent, deleted=deleted)


def ids(book: Engine, agent: str = "a") -> dict[str, str]:
    return {item.record.content: item.owner.id for item in stored(book, agent)}


def test_maps_are_kept_with_their_texts_and_as_they_are(book: Engine, knowledge: KnowledgeService) -> None:
    report = knowledge.index_knowledge("a", CITIES)
    assert (report.agent, report.added, report.items, report.degraded) == ("a", 2, 2, False)
    assert report.embedder == "minilm@2/384"
    assert [item.record.content for item in stored(book)] == [SEOUL_TEXT, TOKYO_TEXT]
    assert [hit.metadata for hit in knowledge.retrieve("a", "Seoul", 1, rerank=False).hits] == [SEOUL]
    assert book.index_status().counts["knowledge"] == 2


def test_what_is_there_already_stays_as_it_is(book: Engine, knowledge: KnowledgeService, clock: Clock) -> None:
    """An agent is created again and again: nothing is embedded, nothing changes its id."""
    knowledge.index_knowledge("a", CITIES)
    before, change = stored(book), book._runtime.store.change()
    clock.move(days=1)
    report = knowledge.index_knowledge("a", list(CITIES))
    assert (report.added, report.unchanged, report.deleted) == (0, 2, 0)
    assert (stored(book), book._runtime.store.change()) == (before, change)


def test_what_is_not_given_any_more_is_softly_deleted(book: Engine, knowledge: KnowledgeService, clock: Clock) -> None:
    knowledge.index_knowledge("a", CITIES)
    kept = ids(book)[TOKYO_TEXT]
    clock.move(days=1)
    report = knowledge.index_knowledge("a", [TOKYO, {"cityName": "Busan"}])
    assert (report.added, report.unchanged, report.deleted) == (1, 1, 1)
    assert ids(book) == {TOKYO_TEXT: kept, "cityName: Busan": ids(book)["cityName: Busan"]}
    assert [(item.record.content, item.deleted_at) for item in stored(book, deleted=True)] == [(SEOUL_TEXT, clock.now)]
    assert "Seoul" not in str(knowledge.retrieve_relevant_knowledge("a", "Seoul"))
    assert SEOUL_TEXT not in {hit.text for hit in book.search("Seoul", kinds=["knowledge"]).hits}


def test_a_map_that_comes_back_is_a_new_one(book: Engine, knowledge: KnowledgeService) -> None:
    """What was deleted stays deleted until it is forgotten."""
    for maps in (CITIES, [], [SEOUL]):
        knowledge.index_knowledge("a", maps)
    assert [item.record.content for item in stored(book)] == [SEOUL_TEXT]
    assert len(stored(book, deleted=True)) == 2


def test_equal_maps_are_kept_apart(book: Engine, knowledge: KnowledgeService) -> None:
    """Each has an id, and as many stay as are given."""
    knowledge.index_knowledge("a", [SEOUL, SEOUL, SEOUL])
    first = [item.owner.id for item in stored(book)]
    assert len(set(first)) == 3
    report = knowledge.index_knowledge("a", [SEOUL, SEOUL])
    assert (report.unchanged, report.deleted) == (2, 1)
    assert [item.owner.id for item in stored(book)] == first[:2]


def test_agents_have_their_own_knowledge(book: Engine, knowledge: KnowledgeService) -> None:
    """The name is what it is, to the letter."""
    for agent in ("a", "A", "a "):
        knowledge.index_knowledge(agent, [SEOUL])
    knowledge.index_knowledge("a", [TOKYO])
    assert [item.record.content for item in stored(book, "A")] == [SEOUL_TEXT]
    assert [(each.agent, each.items, each.deleted) for each in knowledge.status().agents] == [
        ("A", 1, 0),
        ("a", 1, 1),
        ("a ", 1, 0),
    ]


def test_maps_without_text_are_left_out_and_told(book: Engine, knowledge: KnowledgeService) -> None:
    report = knowledge.index_knowledge("a", [SEOUL, {"count": 42}, {}])
    assert (report.added, report.skipped) == (1, 2)
    assert report.notices == ("2 of the maps hold no text, and were skipped",)


def test_a_long_text_is_one_item_however_it_is_cut(book: Engine, knowledge: KnowledgeService) -> None:
    """A retrieval gives the passage that answers, once: one manual must not fill the prompt of a whole conversation."""
    text = "\n".join(f"Line {n} of the guide to the city of Seoul and its palaces." for n in range(200))
    knowledge.index_knowledge("a", [{"content": text}, TOKYO])
    assert book.index_status().counts["passages"] > 3
    [found] = [hit for hit in knowledge.retrieve("a", "line 137 of the guide to Seoul").hits if "guide" in hit.content]
    assert len(found.content) <= 4_000
    assert found.content in text
    assert "Line 137 " in found.content
    assert found.metadata == {"content": text}


def test_secrets_are_replaced_before_anything_is_stored(book: Engine, knowledge: KnowledgeService) -> None:
    """In the text and in the map, also where only the key tells that it is one."""
    key = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cD"
    report = knowledge.index_knowledge("a", [SEOUL, {"note": f"use {key}", "login": {"password": "hunter2trust"}}])
    (item,) = stored(book)[1:]
    assert "hunter2trust" not in str(item)
    assert key not in str(item)
    assert report.notices == ("what looks like a secret was replaced: openai key, password",)
    assert stored(book)[0].record.content == SEOUL_TEXT


def test_dates_become_texts(book: Engine, knowledge: KnowledgeService) -> None:
    """YAML reads them as dates."""
    knowledge.index_knowledge("a", [{"founded": date(1394, 10, 28)}])
    assert list(ids(book)) == ["founded: 1394-10-28"]


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ("text", "the knowledge is 'text'; give a list of maps"),
        ({"a": "b"}, "give a list of maps"),
        ([SEOUL, "text"], r"knowledge\[1\] is 'text'; give a map"),
        ([{"a": {"b": [1, float("nan")]}}], r"knowledge\[0\].a.b\[1\]: nan is not a number of JSON"),
        ([{"a": object()}], r"knowledge\[0\].a: <object"),
        ([{1: "a"}], r"knowledge\[0\]: the key 1 is not text; put it in quotes"),
        ([{"a": "x" * 2**20}], "bytes of JSON, the limit is 1,048,576; split it"),
    ],
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_changed(
    book: Engine, knowledge: KnowledgeService, maps: Any, message: str
) -> None:
    knowledge.index_knowledge("a", [SEOUL])
    with pytest.raises(UsageError, match=message):
        knowledge.index_knowledge("a", maps)
    assert list(ids(book)) == [SEOUL_TEXT]


def test_deep_nesting_is_refused(knowledge: KnowledgeService) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(UsageError, match="nested too deeply"):
        knowledge.index_knowledge("a", [deep])


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 201, None, 3])
def test_an_agent_has_a_name(knowledge: KnowledgeService, name: Any) -> None:
    with pytest.raises(UsageError, match="the name of the agent is"):
        knowledge.index_knowledge(name, [])


class TestDeleting:
    def test_deleted_knowledge_is_found_no_more(self, book: Engine, knowledge: KnowledgeService, clock: Clock) -> None:
        for agent in ("a", "b"):
            knowledge.index_knowledge(agent, CITIES)
        assert knowledge.delete_agent_knowledge("a") == 2
        assert knowledge.delete_agent_knowledge("a") == knowledge.delete_agent_knowledge("nobody") == 0
        assert knowledge.retrieve_relevant_knowledge("a", "Seoul") == []
        assert len(knowledge.retrieve_relevant_knowledge("b", "Seoul")) == 2
        assert [item.deleted_at for item in stored(book, deleted=True)] == [clock.now] * 2
        assert book.index_status().counts["knowledge"] == 2


class TestEmbedding:
    def test_an_own_embedder_is_asked_for_what_is_new(self, book: Engine) -> None:
        own = OwnEmbedder()
        service = book.knowledge_service(embedder=own)
        report = service.index_knowledge("a", CITIES)
        assert (report.embedder, own.asked) == ("own", [SEOUL_TEXT, TOKYO_TEXT])
        service.index_knowledge("a", [*CITIES, {"cityName": "Busan"}])
        assert own.asked[2:] == ["cityName: Busan"]
        assert {(item.record.embedder, len(item.record.vector)) for item in stored(book)} == {("own", 8)}

    def test_a_changed_embedder_embeds_anew_at_the_next_creation(self, book: Engine, clock: Clock) -> None:
        """The items stay the same, with the times at which they came."""
        book.knowledge.index_knowledge("a", CITIES)
        before = ids(book)
        clock.move(days=1)
        for service, name in (
            (book.knowledge_service(embedder=OwnEmbedder()), "own"),
            (book.knowledge_service(embedder=OwnEmbedder(name="other")), "other"),
            (book.knowledge_service(embedder="hashing"), "hashing@1/64"),
            (book.knowledge, "minilm@2/384"),
        ):
            assert [each.stale for each in service.status().agents] == [2]
            report = service.index_knowledge("a", CITIES)
            assert (report.embedded, report.added, report.embedder) == (2, 0, name)
            assert [each.stale for each in service.status().agents] == [0]
        assert ids(book) == before
        assert {(clock.now - item.created_at, clock.now - item.updated_at) for item in stored(book)} == {(86400.0, 0.0)}

    def test_what_has_vectors_keeps_them_where_nothing_embeds(self, book: Engine) -> None:
        """They may be wanted at the next creation; only what is new has none, and gets them then."""
        book.knowledge.index_knowledge("a", [SEOUL])
        report = book.knowledge_service(MemoryConfig(vector_enabled=False)).index_knowledge("a", CITIES)
        assert (report.unchanged, report.added) == (1, 1)
        assert [item.record.embedder for item in stored(book)] == ["minilm@2/384", ""]
        report = book.knowledge.index_knowledge("a", CITIES)
        assert (report.unchanged, report.embedded) == (1, 1)

    def test_vectors_of_another_length_are_made_anew(self, book: Engine) -> None:
        """An embedder may change under its name."""
        book.knowledge_service(embedder=OwnEmbedder("abc")).index_knowledge("a", CITIES)
        service = book.knowledge_service(embedder=OwnEmbedder("abcd"))
        report = service.index_knowledge("a", [*CITIES, {"cityName": "Busan"}])
        assert (report.added, report.embedded) == (1, 2)
        assert {len(item.record.vector) for item in stored(book)} == {4}

    def test_a_failed_embedding_loses_nothing(self, book: Engine) -> None:
        """What is there stays, with its vectors, and is found."""
        own = OwnEmbedder()
        service = book.knowledge_service(embedder=own)
        service.index_knowledge("a", CITIES)
        before = stored(book)
        own.error = RuntimeError("out of order")
        with pytest.raises(
            ProviderError, match=r"not replaced, .*: the embedder own failed: RuntimeError: out of order"
        ):
            service.index_knowledge("a", [{"cityName": "Busan"}])
        own.error = None
        assert (stored(book), service.retrieve("a", "seoul", 1, rerank=False).degraded) == (before, False)

    @pytest.mark.parametrize(
        ("answer", "message"),
        [
            ([], "returned 0 vectors for 1 texts"),
            ([[1.0, 2.0], [1.0]], "returned 2 vectors for 1 texts"),
            ([[]], "returned something other than a vector"),
            ([["a"]], "returned something other than a vector"),
            ([[10**400]], "returned something other than a vector"),
            ([[[1.0]]], "returned something other than a vector"),
            ([[float("nan")]], "returned something other than a vector"),
            ([[1e300]], "returned something other than a vector"),
            ([1.0], "returned something other than a vector"),
            (None, "failed: TypeError"),
        ],
    )
    def test_an_embedder_that_answers_with_no_vectors_has_failed(self, book: Engine, answer: Any, message: str) -> None:
        class Odd:
            def embed(self, *texts: str) -> Any:
                return answer

        with pytest.raises(ProviderError, match=message):
            book.knowledge_service(embedder=Odd()).index_knowledge("a", [SEOUL])
        assert stored(book) == []

    def test_without_vectors_nothing_is_embedded(self, book: Engine) -> None:
        own = OwnEmbedder()
        service = book.knowledge_service(MemoryConfig(vector_enabled=False), embedder=own)
        report = service.index_knowledge("a", CITIES)
        assert (own.asked, report.embedder, report.degraded) == ([], "", False)
        assert report.notices == (
            "no vectors are made, for vectorEnabled is false: the knowledge is found by its words alone",
        )
        assert service.retrieve("a", "humid climate").lines == [TOKYO_TEXT]
        assert service.retrieve("a", "rain").lines == []

    def test_what_is_no_embedder_and_no_reranker_is_refused(self, book: Engine) -> None:
        for wrong in (3, "static2", object()):
            with pytest.raises(UsageError):
                book.knowledge_service(embedder=wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="the re-ranker is"):
            book.knowledge_service(reranker=object())  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="give a MemoryConfig"):
            book.knowledge_service({})  # type: ignore[arg-type]

    def test_the_stores_own_embedder_may_be_named(self, book: Engine) -> None:
        """Its vectors are those of every search, and kept once."""
        book.knowledge_service(embedder="minilm").index_knowledge("a", [SEOUL])
        assert [(item.record.embedder, item.record.vector) for item in stored(book)] == [("minilm@2/384", b"")]


def test_what_another_process_takes_away_meanwhile_is_put_back(
    book: Engine, knowledge: KnowledgeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was compared before the transaction may not hold in it."""
    knowledge.index_knowledge("a", [SEOUL])
    begin = type(book._runtime.store).change_memories
    taken = iter([True])

    def meanwhile(self: Any, namespace: str, **named: Any) -> Any:
        if next(taken, False):
            with begin(self, namespace) as change:
                change.knowledge.expire([item.number for item in change.knowledge.items("a")], 1.0)
        return begin(self, namespace, **named)

    monkeypatch.setattr(type(book._runtime.store), "change_memories", meanwhile)
    report = knowledge.index_knowledge("a", CITIES)
    assert (report.added, report.unchanged) == (2, 0)
    assert sorted(ids(book)) == [SEOUL_TEXT, TOKYO_TEXT]


def test_what_no_store_keeps_is_replaced_and_told(book: Engine, knowledge: KnowledgeService) -> None:
    """The digest is of what is stored: the same map is unchanged when it comes again, and nothing looks damaged."""
    given = [{"text": "half \ud83d of a pair"}]
    report = knowledge.index_knowledge("a", given)
    assert report.notices == (MENDED,)
    assert knowledge.index_knowledge("a", given).unchanged == 1
    assert knowledge.retrieve("a", "pair", rerank=False).hits[0].metadata == {"text": "half \ufffd of a pair"}
    assert book.doctor().findings == ()
