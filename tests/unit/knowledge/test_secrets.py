"""Secrets in knowledge that was stored before they were replaced on the way in: `doctor --secrets` finds them."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.unit.knowledge.travel import SEOUL, OwnEmbedder

from commonplace.engine import Engine
from commonplace.ingest.passages import PassageMaker
from commonplace.knowledge.config import MemoryConfig
from commonplace.types.knowledge import ContextRecord, KnowledgeWrite, StoredKnowledge

MIXED = "Zk3Qw9Rt5Yb1Nc7Vx2Mp8Ls4Hd6Jf0GgTuEaXoKi"
TOKEN = "ghp" + "_" + MIXED[:36]


def spoil(book: Engine) -> None:
    """Put a token into every map and its passages, past all redaction, and into a context."""
    maker = PassageMaker(book._runtime.destination())
    with book._runtime.store.change_memories(book.namespace) as change:
        for item in (*change.knowledge.items(), *change.knowledge.items(deleted=True)):
            text = f"{item.record.content} {TOKEN}"
            record = replace(item.record, content=text, metadata=json.dumps({"note": text}))
            (made,) = maker.complete([maker.prepare(item.owner, text, "text")])
            if item.deleted_at is not None:
                change.knowledge.erase([item.number])
            change.knowledge.put(
                KnowledgeWrite(item.owner, made.passages, record),
                created_at=item.created_at,
                updated_at=item.updated_at,
                deleted_at=item.deleted_at,
            )
        change.knowledge.put_context(ContextRecord("a", 3, json.dumps({"token": TOKEN}), 5.0))


def holding(book: Engine) -> list[str]:
    files = {path: path.read_bytes() for path in book.directory.rglob("*") if path.is_file()}
    return sorted(path.name for path, data in files.items() if TOKEN.encode() in data)


def test_doctor_replaces_them_and_no_file_holds_them(book: Engine) -> None:
    """Live and deleted items and contexts; ids and times stay, own vectors are made anew later."""
    own = book.knowledge_service(embedder=OwnEmbedder())
    own.index_knowledge("a", [SEOUL, {"text": "gone"}])
    own.index_knowledge("a", [SEOUL])
    before = {item.owner.id: (item.created_at, item.deleted_at) for item in _items(book)}
    spoil(book)
    assert holding(book) != []
    report = book.doctor(secrets=True)
    assert [finding.problem for finding in report.findings] == [
        f"{what} of agent 'a' of namespace 'default' holds a secret of the kind github token"
        for what in (*(f"knowledge {item.owner.id!r}" for item in _items(book)), "the context")
    ]
    assert report.is_healthy
    assert holding(book) == []
    assert {item.owner.id: (item.created_at, item.deleted_at) for item in _items(book)} == before
    assert {(item.record.embedder, item.record.vector) for item in _items(book)} == {("minilm@2/384", b"")}
    assert all("[redacted: github token]" in item.record.metadata for item in _items(book))
    assert book.knowledge.get_context("a").to_dict() == {  # type: ignore[union-attr]
        "name": "a",
        "last_cursor": 3,
        "metadata": {"token": "[redacted: github token]"},
    }
    assert book.doctor(secrets=True).findings == ()
    assert book.search("Seoul", kinds=["knowledge"]).hits[0].agent == "a"


def test_what_was_to_have_no_vectors_gets_none(book: Engine) -> None:
    """Where vectorEnabled is false no text goes to an embedder, which may be somebody else's."""
    book.knowledge_service(MemoryConfig(vector_enabled=False)).index_knowledge("a", [SEOUL])
    spoil(book)
    assert book.doctor(secrets=True).is_healthy
    [item] = _items(book)
    assert (item.record.embedder, "[redacted: github token]" in item.record.content) == ("", True)
    store = book._runtime.store
    [entry] = store.tokens("default", store.passages_of("default", [item.number])).values()
    assert set(entry.vector) == {0}


def test_without_mending_they_are_only_told(book: Engine) -> None:
    book.knowledge.index_knowledge("a", [SEOUL])
    spoil(book)
    told = book.doctor(mend=False, secrets=True).findings
    assert [each.part for each in told].count("secrets") == 2
    assert holding(book) != []


def test_an_agent_that_is_called_by_a_secret_is_told(book: Engine) -> None:
    """A name is never replaced: with another one it would be another agent."""
    book.knowledge.index_knowledge(TOKEN, [SEOUL])
    (finding,) = book.doctor(secrets=True).findings
    assert "of agent '[redacted: github token]' of namespace 'default' holds a secret" in finding.problem
    assert not finding.mended


def _items(book: Engine) -> list[StoredKnowledge]:
    knowledge = book._runtime.store.knowledge(book.namespace)
    return [*knowledge.items(), *knowledge.items(deleted=True)]
