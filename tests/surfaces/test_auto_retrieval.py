"""What a document for auto-retrieval asks for is what runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import commonplace
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program


def configured(program: Program, **parts: Any) -> Any:
    """Build the index by a document with these parts."""
    document = {"version": "1.0.0", "artifact_index": {}, "retrieval_pipeline": {}, "agent_integration": {}, **parts}
    Path("retrieval.json").write_text(json.dumps(document))
    return program.json("index", "build", "--config", "retrieval.json")


def test_words_are_sought_in_the_fields_that_a_document_names(program: Program) -> None:
    """A word of the text alone is no word of the title; unindexed memories are read in the same way."""
    program.run("remember", "The archive has invoices in boxes.")
    found = program.json("search", "invoices", "--method", "bm25", "--min-score", "0")["artifacts"]
    assert {each["path"] for each in found} > {"docs/storage.md"}
    configured(program, retrieval_pipeline={"stage_1_keyword": {"fields": ["title", "tags"]}})
    asked = "--method", "bm25", "--min-score", "0"
    assert program.json("search", "invoices", *asked)["artifacts"] == []
    (found,) = program.json("search", "storage", *asked)["artifacts"]
    assert found["path"] == "docs/storage.md"


def test_a_question_is_remembered_as_often_and_as_long_as_a_document_says(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured with another number of remembered questions must not run with ours."""

    def again(*between: str) -> list[str]:
        with commonplace.open() as book:
            for query in ("session expires", *between):
                book.search(query)
            return [stage.name for stage in book.search("session expires").stages]

    assert "lexical" not in again("invoices", "password")
    configured(program, retrieval_pipeline={"caching": {"candidate_cache": {"max_size": 2}}})
    assert "lexical" not in again("invoices")
    assert "lexical" in again("invoices", "password")
    monkeypatch.setenv("COMMONPLACE_SEARCH_CANDIDATE_CACHE", "1000")
    monkeypatch.setenv("COMMONPLACE_SEARCH_CACHE_BYTES", "0")
    assert "lexical" in again()


def test_a_disabled_index_takes_no_file_and_finds_those_there_are_only_if_asked_to(program: Program) -> None:
    """It is switched off and on by the document alone, and switching it off deletes nothing."""
    Path("docs/new.md").write_text("# New\n\nThe session of the choir is on Monday.\n")
    report = configured(program, artifact_index={"enabled": False})
    (root,) = report["roots"].values()
    assert (root["added"], root["removed"]) == (0, 0)
    assert root["notices"] == [
        "index.enabled is off (retrieval.json): no file is indexed, and what was indexed stays as it is"
    ]
    program.run("remember", "A session of the choir lasts two hours.")
    assert {hit["kind"] for hit in program.json("search", "session")["hits"]} == {"memory"}
    assert program.json("search", "session", "--kind", "artifact")["hits"]
    with commonplace.open() as book, pytest.raises(UsageError, match="nothing to watch"):
        book.index(watch=True)
    program.run("index", "build", "--no-config")
    assert {hit["path"] for hit in program.json("search", "choir session", "--kind", "artifact")["hits"]} >= {
        "docs/new.md"
    }


def test_a_disabled_pipeline_searches_by_words_unless_the_call_says_otherwise(program: Program) -> None:
    """Without two stages the first of them is left."""
    configured(program, retrieval_pipeline={"enabled": False})
    assert program.json("search", "session expires")["method"] == "bm25"
    assert program.json("search", "session expires", "--method", "two-stage")["method"] == "two-stage"
