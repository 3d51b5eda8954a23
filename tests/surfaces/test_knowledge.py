"""Agents' knowledge through the command line and the manual: offline, and with a model where there is one."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.knowledge import KnowledgeOptions, run
from tests.stubs.model_server import ModelServer, good, refusal
from tests.unit.knowledge.travel import SEOUL_TEXT, TOKYO_TEXT

import commonplace
from commonplace.errors import UsageError

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ROOT = Path(__file__).resolve().parents[2]
FILE = "examples/travel_agent.yaml"
QUERY = ("knowledge", "query", "TravelAgent")


@pytest.fixture
def travel(bare: Program) -> Program:
    """A project with the examples, and no store yet."""
    shutil.copytree(ROOT / "examples", bare.project / "examples")
    return bare


def test_the_travel_agent_works_offline(travel: Program) -> None:
    indexed = travel.json("knowledge", "index", FILE)
    assert (indexed["agent"], indexed["added"], indexed["items"], indexed["is_replaced"]) == ("TravelAgent", 2, 2, True)
    assert travel.json("knowledge", "index", FILE)["unchanged"] == 2
    found = travel.json(*QUERY, "what", "is", "the", "weather", "in", "Seoul")
    assert found["knowledge"] == [SEOUL_TEXT, TOKYO_TEXT]
    assert (found["degraded"], found["hits"][0]["metadata"]["cityName"]) == (False, "Seoul")
    assert travel.json(*QUERY, "humid climate", "--limit", "1")["knowledge"] == [TOKYO_TEXT]
    (agent,) = travel.json("knowledge", "status")["agents"]
    assert agent == {"agent": "TravelAgent", "items": 2, "deleted": 0, "stale": 0}
    assert travel.json("knowledge", "delete", "TravelAgent") == {
        "agent": "TravelAgent",
        "deleted": 2,
        "notices": [],
    }
    assert travel.json(*QUERY, "Seoul")["knowledge"] == []
    assert travel.json("forget", "--yes", "--agent", "TravelAgent")["counts"]["knowledge"] == 2


def test_python_and_the_command_line_give_the_same(travel: Program) -> None:
    """Of the same store; but for the time that it took."""
    travel.run("knowledge", "index", FILE)
    told = travel.json(*QUERY, "capital of Japan")
    with commonplace.open() as book:
        found = book.knowledge.retrieve("TravelAgent", "capital of Japan").to_dict()
        assert book.knowledge.status().to_dict() == travel.json("knowledge", "status")
    assert {**found, "latency_ms": 0} == {**told, "latency_ms": 0}


def test_people_read_what_was_done_and_found(travel: Program) -> None:
    assert travel.run("knowledge", "index", FILE).stdout == (
        "TravelAgent knows 2 items of knowledge\n   2 added\n   embedder minilm@2/384\n"
    )
    shown = travel.run(*QUERY, "capital of Japan").stdout
    assert re.search(r"^TravelAgent knows:\n\n1\. [-0-9a-f]{36} · score 0\.\d\d\n   aliases: Tokyo", shown)
    assert "TravelAgent · 2 items of knowledge\n" in travel.run("knowledge", "status").stdout
    assert travel.run("knowledge", "delete", "TravelAgent").stdout == "Deleted 2 items of knowledge\n"
    assert travel.run(*QUERY, "Japan").stdout == "TravelAgent knows nothing about this.\n"
    assert "2 items of knowledge" in travel.run("forget", "--agent", "TravelAgent", "--dry-run").stdout


def test_a_misspelt_name_is_told_with_those_there_are(travel: Program) -> None:
    travel.run("knowledge", "index", FILE)
    told = "note: no agent 'travelagent' has knowledge here; those that have: 'TravelAgent'\n"
    for command in ("query", "travelagent", "Seoul"), ("delete", "travelagent"):
        assert travel.run("knowledge", *command).stderr == told
    assert travel.run("knowledge", "delete", "TravelAgent").stderr == ""


def test_an_agent_without_knowledge_has_nothing_to_delete(travel: Program) -> None:
    travel.run("knowledge", "index", FILE)
    travel.run("knowledge", "delete", "TravelAgent")
    for agent in "TravelAgent", "Nobody":
        assert travel.run("knowledge", "delete", agent).stdout == f"Nothing to delete: {agent} knows nothing.\n"


def test_without_a_key_the_order_of_the_first_stage_is_told(travel: Program) -> None:
    travel.run("knowledge", "index", FILE)
    done = travel.run(*QUERY, "Seoul", "--limit", "1")
    assert "note: in the order of the first stage, for gpt-4o-mini (batch) did not re-rank it: OPENAI" in done.stderr
    assert travel.json(*QUERY, "Seoul", "--limit", "2")["degraded"] is False


def test_the_same_commands_use_a_model_where_there_is_one(travel: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    travel.run("knowledge", "index", FILE)
    with ModelServer(rule=lambda asked: good('{"scores": [{"index": 1, "score": 0.9}]}')) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        found = travel.json(*QUERY, "weather in Seoul", "--limit", "1")
        assert (found["knowledge"], found["reranked_by"]) == ([TOKYO_TEXT], "gpt-4o-mini (batch)")
        assert (found["degraded"], found["hits"][0]["score"]) == (False, 0.9)
        assert "re-ranked by gpt-4o-mini (batch):" in travel.run(*QUERY, "weather in Seoul", "--limit", "1").stdout
        assert travel.json("knowledge", "status")["reranker"] == "gpt-4o-mini (batch)"
        asked = len(server.asked)
        monkeypatch.setenv("COMMONPLACE_KNOWLEDGE_RERANK", "off")
        assert travel.json(*QUERY, "weather in Seoul", "--limit", "1")["knowledge"] == [SEOUL_TEXT]
        assert len(server.asked) == asked
        server.rule = lambda asked: refusal(500)
        monkeypatch.setenv("COMMONPLACE_KNOWLEDGE_RERANK", "on")
        monkeypatch.setenv("COMMONPLACE_MODELS_RETRIES", "0")
        assert travel.json(*QUERY, "weather in Seoul", "--limit", "1")["degraded"] is True


def test_what_cannot_be_embedded_ends_with_1_and_changes_nothing(
    travel: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMMONPLACE_MODELS_RETRIES", "0")
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "openai:stub")
        travel.run("knowledge", "index", FILE)
        server.rule = lambda asked: refusal(500)
        Path("other.yaml").write_text("name: TravelAgent\nknowledge: [{cityName: Busan}]\n")
        done = travel.json("knowledge", "index", "other.yaml", code=1)
        assert (done["is_replaced"], done["items"]) == (False, 2)
        assert "the knowledge was not replaced" in travel.run("knowledge", "index", "other.yaml", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("knowledge", "index", "missing.yaml"), 1),
        (("knowledge", "index", "docs/storage.md"), 2),
        (("knowledge", "query", "TravelAgent"), 2),
        (("knowledge", "query", "", "x"), 2),
        (("knowledge", "query", "TravelAgent", "x", "--limit", "1001"), 2),
        (("forget", "--yes", "--agent", "nobody"), 1),
    ],
)
def test_what_is_wrong_has_its_exit_code(travel: Program, arguments: tuple[str, ...], code: int) -> None:
    travel.run("init")
    told = travel.run(*arguments, code=code)
    assert told.stdout == ""
    assert "error: " in told.stderr


def test_a_question_to_no_store_is_an_error(travel: Program) -> None:
    assert "there is no store" in travel.error(*QUERY, "x", code=1)["message"]


def test_control_characters_in_knowledge_do_not_reach_a_terminal(travel: Program) -> None:
    """A file of somebody else's may hold them."""
    Path("agent.json").write_text(json.dumps({"name": "a", "knowledge": [{"text": "red \x1b[31m alert \u202e"}]}))
    travel.run("knowledge", "index", "agent.json")
    shown = travel.run("knowledge", "query", "a", "alert").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


def test_the_manuals_agent_is_the_beginning_of_the_example() -> None:
    (yaml,) = blocks("docs/knowledge.md", "yaml")
    assert (ROOT / FILE).read_text("utf-8").startswith(yaml)


def test_the_benchmark_measures_every_step() -> None:
    """A handful of maps shows that it works; how fast is for a person to look at."""
    found = run(KnowledgeOptions(maps=20, queries=3))
    assert {name: row["embedded"] for name, row in found["indexing"].items()} == {
        "first": 20,
        "unchanged": 0,
        "one_changed": 1,
        "another_embedder": 20,
    }
    assert found["retrieval"].keys() == {"store_vectors", "own_vectors"}
    assert found["knowledge"]["maps"] == 20
    with pytest.raises(UsageError, match="maps is 0"):
        KnowledgeOptions(maps=0)
