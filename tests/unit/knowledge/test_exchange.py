"""Agents' knowledge leaves a store and comes back: exports, imports, backups."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.clock import Clock
from tests.unit.knowledge.travel import CITIES, SEOUL, TOKYO, OwnEmbedder

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.knowledge.service import KnowledgeService


@pytest.fixture
def filled(knowledge: KnowledgeService, clock: Clock) -> KnowledgeService:
    """Two agents, one of which has deleted knowledge, and a context."""
    knowledge.index_knowledge("b", [{"text": "harbour", "rooms": 3}, {"text": "harbour", "rooms": 3}])
    knowledge.index_knowledge("a", CITIES)
    clock.move(days=1)
    knowledge.index_knowledge("a", [TOKYO, {"z": "last", "é": "\ud83d"}])
    knowledge.set_context({"name": "a", "last_cursor": 7, "note": "x"})
    return knowledge


def exported(book: Engine, **options: Any) -> str:
    text = io.StringIO()
    book.export(text, **options)
    return text.getvalue()


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "export.jsonl"
    path.write_text(text, encoding="ascii")
    return path


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def changed(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    """Return an export whose knowledge was changed, with a sum that fits."""
    import hashlib

    found = lines(text)[:-1]
    for line in found:
        if line.get("type") in ("knowledge", "context"):
            change(line)
    body = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in found)
    end = {"type": "end", "lines": len(found), "sha256": hashlib.sha256(body.encode()).hexdigest()}
    return body + json.dumps(end, separators=(",", ":")) + "\n"


def test_an_export_taken_in_elsewhere_gives_the_same_bytes(
    book: Engine, filled: KnowledgeService, tmp_path: Path, clock: Clock
) -> None:
    """Ids, times, what is deleted and what is in which order: nothing is lost."""
    text = exported(book)
    path = written(tmp_path, text)
    with commonplace.open(tmp_path / "other", embedder="hashing", clock=clock) as other:
        report = other.import_(path)
        assert (report.knowledge.added, report.contexts.added, report.owners.added) == (5, 1, 0)
        assert exported(other) == text
        again = other.import_(path)
        assert (again.knowledge.unchanged, again.contexts.unchanged, again.knowledge.added) == (5, 1, 0)
        assert other.knowledge.status().to_dict()["agents"] == [
            {"agent": "a", "items": 2, "deleted": 1, "stale": 0},
            {"agent": "b", "items": 2, "deleted": 0, "stale": 0},
        ]
        assert other.knowledge.retrieve("a", "humid", 1, rerank=False).hits[0].metadata == TOKYO
        assert other.knowledge.get_context("a") == filled.get_context("a")
        assert other.doctor().findings == ()


def test_an_export_counts_knowledge_and_can_be_of_it_alone(book: Engine, filled: KnowledgeService) -> None:
    book.remember("A kettle boils")
    found = lines(exported(book, kinds=["knowledge"]))
    assert (found[0]["counts"]["knowledge"], found[0]["counts"]["contexts"]) == (5, 1)
    assert [line["type"] for line in found[1:-1]] == ["knowledge"] * 5 + ["context"]
    assert [line["type"] for line in lines(exported(book, kinds=["memory"]))[1:-1]] == ["memory"]
    assert [line["record"]["agent"] for line in found[1:-2]] == ["a", "a", "a", "b", "b"]


def test_own_vectors_are_not_exported_and_made_anew(book: Engine, tmp_path: Path) -> None:
    """They are of whoever made them."""
    own = book.knowledge_service(embedder=OwnEmbedder())
    own.index_knowledge("a", [SEOUL])
    path = written(tmp_path, exported(book))
    with commonplace.open(tmp_path / "other") as other:
        other.import_(path)
        service = other.knowledge_service(embedder=OwnEmbedder())
        assert service.retrieve("a", "seoul").degraded
        assert service.index_knowledge("a", [SEOUL]).embedded == 1
        assert not service.retrieve("a", "seoul").degraded


@pytest.mark.parametrize(("policy", "kept"), [("skip", "mine"), ("replace", "theirs")])
def test_other_content_under_the_same_id_is_a_conflict(
    book: Engine, filled: KnowledgeService, tmp_path: Path, policy: str, kept: str
) -> None:
    def other(line: dict[str, Any]) -> None:
        if line["type"] == "context":
            line["context"]["metadata"] = {"note": "theirs"}
        else:
            line["record"]["metadata"] = {"text": "theirs"}

    path = written(tmp_path, changed(exported(book), other))
    with pytest.raises(UsageError, match=r"6 items are here with other content.* of agent 'a'"):
        book.import_(path)
    report = book.import_(path, on_conflict=policy)
    counted = report.knowledge.skipped if policy == "skip" else report.knowledge.replaced
    assert (counted, report.knowledge.added) == (5, 0)
    found = exported(book)
    assert ("theirs" in found, "Tokyo" in found) == (kept == "theirs", kept == "mine")
    assert book.doctor().findings == ()


def test_what_was_deleted_here_since_stays_deleted(book: Engine, filled: KnowledgeService, tmp_path: Path) -> None:
    """An import does not bring back what somebody has deleted."""
    path = written(tmp_path, exported(book))
    filled.delete_agent_knowledge("a")
    assert book.import_(path).knowledge.unchanged == 5
    assert filled.retrieve_relevant_knowledge("a", "Tokyo") == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"id": ""}, "the id is ''"),
        ({"deleted_at": 1.0}, "before created_at"),
        ({"created_at": "soon"}, "created_at is 'soon'"),
        ({"record": []}, "record is"),
        ({"record": {"agent": "a"}}, "the map holds no text"),
        ({"record": {"agent": "", "metadata": {}}}, "the name of the agent is ''"),
        ({"record": {"agent": "a", "metadata": {"n": 1}}}, "the map holds no text"),
        ({"record": {"agent": "a", "metadata": [1]}}, "give a JSON object"),
        ({"record": {"agent": "a", "metadata": {}, "vector": 1}}, "unknown entry 'vector'"),
        ({"more": 1}, "unknown entry 'more'"),
    ],
)
def test_a_line_that_cannot_be_kept_is_told(
    book: Engine, filled: KnowledgeService, tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    def broken(line: dict[str, Any]) -> None:
        if line["type"] == "knowledge":
            line.update(values)

    path = written(tmp_path, changed(exported(book), broken))
    with (
        commonplace.open(tmp_path / "other") as other,
        pytest.raises(UsageError, match=f"cannot be stored, nothing was imported: .*{message}"),
    ):
        other.import_(path)


def test_secrets_in_an_import_are_replaced(book: Engine, filled: KnowledgeService, tmp_path: Path) -> None:
    def secret(line: dict[str, Any]) -> None:
        if line["type"] == "context":
            line["context"]["metadata"] = {"password": "hunter2trust"}
        else:
            line["record"]["metadata"] = {"login": {"password": "hunter2trust"}}

    path = written(tmp_path, changed(exported(book), secret))
    with commonplace.open(tmp_path / "other") as other:
        report = other.import_(path)
        assert report.notices == ("what looks like a secret was replaced in 5 items: password",)
        assert "hunter2trust" not in exported(other)


def test_a_backup_restored_knows_what_it_knew(book: Engine, filled: KnowledgeService, tmp_path: Path) -> None:
    own = book.knowledge_service(embedder=OwnEmbedder())
    own.index_knowledge("own", [SEOUL])
    text = exported(book)
    book.backup(tmp_path / "copy.zip")
    commonplace.restore(tmp_path / "copy.zip", tmp_path / "restored")
    with commonplace.open(tmp_path / "restored") as restored:
        assert exported(restored) == text
        found = restored.knowledge_service(embedder=OwnEmbedder()).retrieve("own", "seoul")
        assert (len(found.lines), found.degraded) == (1, False)
