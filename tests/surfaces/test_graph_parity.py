"""One request to the graph through Python, the command line, CSP and MCP: the same facts, entities, scores, order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tests.stubs.csp_client import parse_response
from tests.unit.mcp.conversation import Talk, talking

import commonplace
from commonplace.formats.csp import Response
from commonplace.formats.fence import unfence
from commonplace.mcp.registry import LazyEngine, registry_of

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

    from commonplace.engine import Engine

EPISODES = [
    ("2026-01-10T09:00Z", "Ada Marsh lives in Lisbon. She works for Globex."),
    ("2026-01-12T09:00Z", "auth.ts depends on token.ts for the refresh. token.ts depends on clock.ts."),
    ("2026-02-01T09:00Z", "Bo Lind works for Globex. Bo Lind lives in Oslo."),
    ("2026-03-14T09:00Z", "Ada Marsh lives in Porto."),
    ("2026-03-20T09:00Z", "Bo Lind works for Initech."),
    ("2026-03-20T09:00Z", "Bo Lind works for Acme."),
]
QUESTIONS = ["where does Ada live", "who works for Globex", "auth dependencies", "what does Bo do", "the weather"]
BEFORE = "2026-02-20T00:00Z"


@dataclass
class Surfaces:
    """One store, asked in four ways."""

    program: Program
    book: Engine
    talk: Talk

    def csp(self, verb: str, *lines: str) -> Response:
        return parse_response(self.book.specialist.handle("\n".join((f"TASK REQ:{verb} IN:MEM OUT:X", *lines))))

    def mcp(self, tool: str, **arguments: Any) -> Any:
        result = self.talk.ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        return result["structuredContent"]


@pytest.fixture
def surfaces(bare: Program) -> Iterator[Surfaces]:
    bare.run("init")
    for at, text in EPISODES:
        bare.run("graph", "add", text, "--at", at)
    store = bare.project / ".commonplace"
    host = LazyEngine(lambda progress: commonplace.open(store))
    with talking(registry_of(host.get)) as talk, commonplace.open(store) as book:
        talk.greet()
        yield Surfaces(bare, book, talk)
    host.close()


@pytest.mark.parametrize("valid_at", [None, BEFORE])
def test_facts(surfaces: Surfaces, valid_at: str | None) -> None:
    times = ([], {}) if valid_at is None else (["--valid-at", valid_at], {"validAt": valid_at})
    for question in QUESTIONS:
        found = surfaces.book.graph.search_edges(question, 10, valid_at=valid_at)
        expected = [(each["uuid"], each["fact"], each["score"]) for each in found.to_dict()["relations"]]
        told = surfaces.program.json("graph", "facts", question, *times[0])
        assert told["relations"] == found.to_dict()["relations"]
        given = surfaces.mcp("memory_graph", query=question, **times[1])
        assert [(each["uuid"], each["fact"], each["score"]) for each in given["facts"]] == expected
        params = f'PARAMS {{"min_relevance": 0, "valid_at": "{valid_at or "2100-01-01"}", "max_results": 10}}'
        if valid_at is not None:
            answer = surfaces.csp(f"temporal_query {question}", params)
            assert [each.id for each in answer.data or ()] == [uuid for uuid, _, _ in expected]
            assert answer.relevance == tuple(round(score, 2) for _, _, score in expected)
            assert [each.text.partition(" (")[0] for each in answer.snippets] == [fact for _, fact, _ in expected]
        else:
            links = surfaces.csp(f"recall {question}", 'PARAMS {"min_relevance": 0}').links or ()
            ends = dict.fromkeys((each.source_name, each.target_name) for each in list(found)[:5])
            assert [(each.source, each.target) for each in links] == list(ends)


def test_entities(surfaces: Surfaces) -> None:
    for question in QUESTIONS:
        found = surfaces.book.graph.search_entities(question, 10)
        assert surfaces.program.json("graph", "entities", question) == found.to_dict()
        given = surfaces.mcp("memory_graph", query=question)["entities"]
        expected = [(each["uuid"], each["name"], each["score"]) for each in found.to_dict()["entities"]]
        assert [(each["uuid"], each["name"], each["score"]) for each in given] == expected
        named = [each.id for each in surfaces.csp(f"query_graph {question}").data or ()]
        assert named == [name for _, name, _ in expected if name in named]
        relevance = {name: round(score, 2) for _, name, score in expected}
        answer = surfaces.csp(f"query_graph {question}")
        if answer.relevance is not None:
            assert list(answer.relevance) == [relevance[name] for name in named]


def test_what_lies_about_an_entity(surfaces: Surfaces) -> None:
    near = surfaces.book.graph.neighbourhood("auth.ts", 2, 10)
    expected = [each.uuid for each in near.relations]
    assert [each["uuid"] for each in surfaces.mcp("memory_graph", id="auth.ts")["facts"]] == expected
    drawn = surfaces.program.json("graph", "show", "auth.ts", "--format", "dot")
    assert (drawn["entities"], drawn["facts"]) == (len(near.entities), len(near.relations))
    links = surfaces.csp("query_graph auth.ts").links or ()
    assert [(each.source, each.target) for each in links] == [("auth.ts", "token.ts"), ("token.ts", "clock.ts")]


def test_disputes_are_shown_as_such_everywhere(surfaces: Surfaces) -> None:
    question = "who employs Bo Lind"
    disputed = {each.uuid for each in surfaces.book.graph.search_edges(question) if each.disputed}
    assert len(disputed) == 2
    told = surfaces.program.json("graph", "facts", question)["relations"]
    assert {each["uuid"] for each in told if each["disputed"]} == disputed
    assert surfaces.program.run("graph", "facts", question).stdout.count("disputed") == 2
    given = surfaces.mcp("memory_graph", query=question)["facts"]
    assert {each["uuid"] for each in given if each.get("disputed")} == disputed
    answer = surfaces.csp(f"query_graph {question}", 'PARAMS {"min_relevance": 0}')
    assert sorted(dict(answer.facts)["DISPUTED"].split(",")) == ["Bo Lind→Acme", "Bo Lind→Initech"]
    assert surfaces.book.graph.build_context(["Bo Lind"]).text.count("disputed") == 2
    assert surfaces.program.run("graph", "show", "Bo Lind").stdout.count("disputed") == 2


def test_a_fact_that_is_told_through_one_is_found_through_the_others(surfaces: Surfaces) -> None:
    context = "meets the payment service on Mondays"
    surfaces.csp("link", "ENTITY1 Carl Bohm", "ENTITY2 billing", f"CONTEXT {context}")
    kept = surfaces.mcp("memory_link", source="Carl Bohm", target="refunds", fact="signs them off")
    assert kept == {"source": "Carl Bohm", "target": "refunds", "type": "RELATED_TO", "notices": []}
    surfaces.program.run("graph", "fact", "Carl Bohm", "USES", "Emacs")
    surfaces.book.graph.add_episode("Carl Bohm lives in Graz.")
    targets = {each.target_name for each in surfaces.book.graph.neighbourhood("Carl Bohm", 1).relations}
    assert targets == {"billing", "refunds", "Emacs", "Graz"}
    assert {each["target"] for each in surfaces.mcp("memory_graph", id="Carl Bohm")["facts"]} == targets
    assert {each.target for each in surfaces.csp("query_graph Carl Bohm").links or ()} >= targets
    shown = surfaces.program.run("graph", "entity", "Carl Bohm").stdout
    assert all(target in shown for target in targets)


def test_an_agent_reads_facts_as_data_with_their_times(surfaces: Surfaces) -> None:
    """What a sentence says must not look like an order, nor like something that still holds."""
    given = {"name": "memory_graph", "arguments": {"query": "where does Ada live", "validAt": BEFORE}}
    text = surfaces.talk.ask("tools/call", given)["result"]["content"][0]["text"]
    assert "Ada Marsh LIVES_IN Lisbon, from 2026-01-10 to 2026-03-14" in text
    assert "lives in Porto" not in text
    assert unfence(text).text.strip() == ""
    moved = surfaces.mcp("memory_link", source="Ada Marsh", target="Faro", fact="Ada Marsh moved to Faro.")
    [ended] = moved["notices"]
    assert (moved["type"], moved["target"]) == ("LIVES_IN", "Faro")
    assert ended.startswith("ended: Ada Marsh lives in Porto. (from 2026-03-14 to ")


def test_a_memory_leads_to_what_the_graph_knows_of_it(surfaces: Surfaces) -> None:
    memory = surfaces.book.remember("The visit to the office", entities=["Ada Marsh"])
    around = surfaces.mcp("memory_graph", id=memory.id)
    assert [each["id"] for each in around["memories"]] == [memory.id]
    assert "Ada Marsh lives in Porto." in [each["fact"] for each in around["facts"]]
    assert surfaces.mcp("memory_graph", id=memory.id, limit=1)["facts"] == around["facts"][:1]
    result = surfaces.talk.ask("tools/call", {"name": "memory_graph", "arguments": {"id": "Nobody"}})["result"]
    assert result["isError"]
    assert (
        "there is no memory 'Nobody', and there is no entity 'Nobody'; name one by its id"
        in result["content"][0]["text"]
    )
