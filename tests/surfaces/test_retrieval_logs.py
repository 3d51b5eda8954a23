"""The log of retrievals: who writes to it, what it says in sum, and what it never holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import commonplace
from commonplace.errors import StoreError, UsageError
from commonplace.logs import query_hash

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ASKED = "how does a session expire"


def lines(program: Program) -> list[dict[str, Any]]:
    log = program.project / ".commonplace" / "logs" / "retrieval" / "retrieval.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_search_leaves_a_line_with_what_it_did_and_found(program: Program) -> None:
    result = program.json("search", ASKED, "--agent", "integrator")
    (line,) = lines(program)
    assert line.pop("at").endswith("Z")
    assert set(line.pop("stages")) == {stage["name"] for stage in result["stages"]}
    assert line == {
        "query_hash": query_hash(ASKED),
        "namespace": "default",
        "call": "search",
        "agent": "integrator",
        "method": "two-stage",
        "hits": 1,
        "best": result["hits"][0]["score"],
        "latency_ms": result["latency_ms"],
        "degraded": False,
        "found": ["docs/auth.md"],
    }


def test_memories_are_named_in_the_log_by_nothing_that_tells_of_them(program: Program) -> None:
    """An id may be a word of the user's; only whether the same one was used later is of interest."""
    program.run("remember", "The staging cluster is rebuilt on Sunday.", "--id", "harbour")
    program.run("recall", "staging cluster")
    program.run("touch", "harbour")
    program.run("get", "harbour")
    recalled, touched, got = lines(program)
    assert recalled["found"] == [f"memory:{query_hash('harbour')}"]
    assert (recalled["call"], touched["used"], got["used"]) == ("recall", recalled["found"][0], recalled["found"][0])
    assert "harbour" not in json.dumps(lines(program))


def test_the_summary_tells_latencies_vain_searches_and_uses(program: Program) -> None:
    program.run("remember", "The staging cluster is rebuilt on Sunday.", "--id", "m")
    program.run("search", ASKED, "--min-score", "0.6")  # what is weak is not found
    program.run("search", "the migration of arctic terns", "--min-score", "0.95")
    program.run("search", "staging cluster", "--method", "bm25")
    program.run("context", ASKED, "--agent", "integrator")
    program.run("touch", "m")
    told = program.json("store", "logs")
    assert (told["searches"], told["nothing"], told["agents"]) == (4, 0.25, {"integrator": 1})
    assert {name: each["searches"] for name, each in told["methods"].items()} == {"bm25": 1, "two-stage": 3}
    assert told["most_found"][0] == {"path": "docs/auth.md", "searches": 2}
    assert (told["uses"], told["followed"]) == (1, 0.3333)
    text = program.run("store", "logs").stdout
    assert text.startswith("4 searches from ")
    assert "Found nothing: 25%, degraded: 0%" in text
    assert "Then opened or touched: 1 use, after 33% of the searches that found something" in text
    assert "   2  docs/auth.md" in text
    assert program.json("store", "logs", "--since", "2200-01-01")["searches"] == 0
    assert program.run("store", "logs", "--since", "2200").stdout == "No search is logged.\n"
    assert program.json("store", "logs", "--since", "2020")["searches"] == 4
    assert program.error("store", "logs", "--since", "the other day", code=2)["remedy"]


def test_what_is_asked_in_the_text_protocol_is_logged_as_on_the_command_line(program: Program) -> None:
    program.run("remember", "The staging cluster is rebuilt on Sunday.", "--id", "harbour")
    program.run("csp", "TASK REQ:recall staging cluster IN:MEM OUT:X")
    program.run("csp", "TASK REQ:temporal_query staging cluster IN:MEM OUT:X", 'PARAMS {"as_of": "2200-01-01"}')
    program.run("csp", "TASK REQ:get mem:harbour IN:MEM OUT:X")
    recalled, then, got = lines(program)
    assert {recalled["call"], then["call"]} == {"recall"}
    assert recalled["query_hash"] == then["query_hash"] == query_hash("staging cluster")
    assert recalled["found"] == then["found"] == [got["used"]] == [f"memory:{query_hash('harbour')}"]


def test_a_namespace_sees_its_own_searches_alone(program: Program) -> None:
    program.run("search", ASKED)
    assert program.json("store", "logs", "--namespace", "other")["searches"] == 0
    assert program.json("store", "logs")["searches"] == 1


def test_the_setting_says_whether_a_query_is_logged_by_text_or_at_all(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_LOG_QUERIES", "off")
    program.run("search", ASKED)
    program.run("get", program.json("remember", "Tea is at four.")["id"])
    assert lines(program) == []
    monkeypatch.setenv("COMMONPLACE_LOG_QUERIES", "text")
    program.run("search", ASKED)
    assert [line["query"] for line in lines(program)] == [ASKED]


def test_logs_that_were_put_aside_are_summed_up_too(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.logs.MAX_BYTES", 4096)
    with commonplace.open(program.project / ".commonplace") as book:
        result = book.search(ASKED)
        for _ in range(30):
            book.log_retrieval(result)
        assert book.retrievals().searches == 30
    assert (program.project / ".commonplace" / "logs" / "retrieval" / "retrieval.jsonl.1").exists()


def test_what_is_forgotten_is_in_no_line(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_LOG_QUERIES", "text")
    program.run("remember", "Quillfeather pays in guineas.", "--id", "m")
    program.run("search", "what does Quillfeather pay")
    program.run("search", ASKED)
    program.run("forget", "--yes", "m")
    assert "Quillfeather" not in json.dumps(lines(program))
    assert program.json("store", "logs")["searches"] == 1


def test_a_log_that_cannot_be_read_is_told_and_a_name_is_a_text(program: Program) -> None:
    program.run("search", ASKED)
    log = program.project / ".commonplace" / "logs" / "retrieval" / "retrieval.jsonl"
    with commonplace.open(program.project / ".commonplace") as book:
        with pytest.raises(UsageError, match="name is"):
            book.log_use("")
        log.write_bytes(b'\xff\n[1]\n{"at": 3}\n' + b"[" * 10_000 + b"\n")
        assert book.retrievals().searches == 0
        with pytest.MonkeyPatch.context() as patched, pytest.raises(StoreError, match="cannot be read"):
            patched.setattr(Path, "read_bytes", _refuse)
            book.retrievals()


def _refuse(path: Path) -> bytes:
    raise PermissionError(13, "Permission denied", str(path))


def test_a_context_without_a_task_is_no_search(program: Program) -> None:
    program.run("context")
    assert lines(program) == []
