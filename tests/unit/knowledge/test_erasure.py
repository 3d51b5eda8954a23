"""Agents' knowledge is forgotten like everything else: with every copy, and proved; what is deleted goes in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.clock import Clock
from tests.unit.knowledge.travel import SEOUL, TOKYO, OwnEmbedder

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.knowledge.service import KnowledgeService

PALACE = {"name": "Quillfeather Palace", "opening": {"hours": "never on Abernathy day"}, "tags": ["Zwinger"]}
MARKS = (b"Quillfeather", b"quillfeather", b"Abernathy", b"Zwinger")


def holding(book: Engine) -> list[str]:
    """Return the files of a store that hold any of the marks."""
    files = {path: path.read_bytes() for path in book.directory.rglob("*") if path.is_file()}
    return sorted(path.name for path, data in files.items() if any(mark in data for mark in MARKS))


def status(book: Engine) -> list[tuple[str, int, int]]:
    return [(each.agent, each.items, each.deleted) for each in book.knowledge.status().agents]


def test_an_agents_knowledge_goes_whole(book: Engine, knowledge: KnowledgeService, clock: Clock) -> None:
    """Live and deleted items, own vectors, the context: no file holds a word of it, and the others have theirs."""
    own = book.knowledge_service(embedder=OwnEmbedder())
    for maps in ([PALACE], [{**PALACE, "more": "Abernathy"}, SEOUL]):
        own.index_knowledge("a", maps)
    own.set_context({"name": "a", "last_cursor": 3, "greeting": "Abernathy sends her regards"})
    knowledge.index_knowledge("b", [SEOUL, TOKYO])
    book.doctor()
    assert holding(book) != []
    receipt = book.forget(agent="a")
    assert holding(book) == []
    assert (receipt.verified, receipt.found) == (True, ())
    assert (receipt.counts["knowledge"], receipt.counts["contexts"], receipt.counts["passages"]) == (3, 1, 3)
    assert len(receipt.ids) == 3
    assert status(book) == [("b", 2, 0)]
    assert knowledge.get_context("a") is None
    assert len(knowledge.retrieve_relevant_knowledge("b", "Seoul")) == 2
    assert book.doctor().findings == ()


def test_a_dry_run_tells_what_would_go(book: Engine, knowledge: KnowledgeService) -> None:
    knowledge.index_knowledge("a", [PALACE, SEOUL])
    receipt = book.forget(agent="a", dry_run=True)
    assert (receipt.counts["knowledge"], receipt.dry_run, status(book)) == (2, True, [("a", 2, 0)])


def test_one_item_is_forgotten_by_its_id(book: Engine, knowledge: KnowledgeService) -> None:
    """Be it deleted or not."""
    knowledge.index_knowledge("a", [PALACE, SEOUL, TOKYO])
    ids = {hit.metadata.get("cityName"): hit.id for hit in knowledge.retrieve("a", "Seoul", rerank=False).hits}
    knowledge.index_knowledge("a", [PALACE, SEOUL])
    book.forget([ids["Tokyo"], ids[None]])
    assert holding(book) == []
    assert status(book) == [("a", 1, 0)]
    with pytest.raises(NotFoundError):
        book.forget(ids["Tokyo"])


def test_words_that_another_agent_keeps_are_no_trace(book: Engine, knowledge: KnowledgeService) -> None:
    """Also where they are kept deleted, or in a context alone."""
    knowledge.index_knowledge("b", [PALACE])
    knowledge.delete_agent_knowledge("b")
    knowledge.index_knowledge("a", [PALACE])
    assert book.forget(agent="a").verified
    knowledge.set_context({"name": "c", "palace": PALACE})
    knowledge.index_knowledge("a", [{"text": "never on Abernathy day"}])
    assert book.forget(agent="a").verified
    assert status(book) == [("b", 0, 1)]


def test_a_context_alone_is_forgotten(book: Engine, knowledge: KnowledgeService) -> None:
    knowledge.set_context({"name": "a", "note": "Quillfeather Palace closes"})
    assert holding(book) != []
    receipt = book.forget(agent="a")
    assert (receipt.verified, receipt.ids, receipt.counts["contexts"], holding(book)) == (True, (), 1, [])


@pytest.mark.parametrize("agent", ["nobody", "A"])
def test_an_agent_that_knows_nothing_is_told(book: Engine, knowledge: KnowledgeService, agent: str) -> None:
    knowledge.index_knowledge("a", [SEOUL])
    with pytest.raises(NotFoundError, match=f"nothing is known of an agent '{agent}' in this namespace"):
        book.forget(agent=agent)
    with pytest.raises(UsageError, match="exactly one of id, tag, source, session, path, agent"):
        book.forget("x", agent="a")


def test_deleted_knowledge_goes_in_time(book: Engine, knowledge: KnowledgeService, clock: Clock) -> None:
    """`gc` takes it as it takes archived memories; what is live never goes."""
    knowledge.index_knowledge("a", [PALACE, SEOUL])
    knowledge.index_knowledge("a", [SEOUL])
    clock.move(days=20)
    assert book.gc().id == ""
    knowledge.index_knowledge("a", [TOKYO])
    clock.move(days=11)
    receipt = book.gc()
    assert (receipt.verified, receipt.counts["knowledge"], holding(book)) == (True, 1, [])
    assert status(book) == [("a", 1, 1)]


def test_a_namespace_is_forgotten_with_its_knowledge(book: Engine, knowledge: KnowledgeService, tmp_path: Path) -> None:
    with commonplace.open(book.directory, namespace="other") as other:
        other.knowledge.index_knowledge("a", [PALACE])
        other.knowledge.index_knowledge("a", [SEOUL])
        other.knowledge.set_context({"name": "a", "note": "Abernathy"})
    knowledge.index_knowledge("a", [SEOUL])
    receipt = book.forget_namespace("other", confirm="other")
    assert (receipt.verified, receipt.counts["knowledge"], holding(book)) == (True, 2, [])
    assert status(book) == [("a", 1, 0)]


def test_a_service_of_this_process_forgets_too(book: Engine) -> None:
    """Vectors that it keeps are of what is there."""
    own = book.knowledge_service(embedder=OwnEmbedder())
    own.index_knowledge("a", [PALACE, SEOUL])
    assert len(own.retrieve_relevant_knowledge("a", "palace")) == 2
    book.forget(agent="a")
    assert own._rows.size_bytes == 0
    assert own.retrieve_relevant_knowledge("a", "palace") == []
