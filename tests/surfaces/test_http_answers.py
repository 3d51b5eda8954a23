"""What each route answers is what the OpenAPI document says: `serving` compares every answer with it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.responses import operation_of
from tests.serving import DATABASES, new_store, serving

from commonplace.server.openapi import document
from commonplace.server.routes import OPERATIONS


class _Session:
    """Sends requests that must succeed, and notes which operations they were of."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.done: set[str] = set()

    def __call__(self, request: str, body: Any = None, **query: str) -> Any:
        verb, _, path = request.partition(" ")
        lines = (
            {"content": body, "headers": {"Content-Type": "application/x-ndjson"}} if isinstance(body, bytes) else None
        )
        content = lines or ({"json": body or {}} if verb in ("POST", "PATCH") else {})
        response = self._client.request(verb, f"/v1{path}", params=query, **content)
        assert response.is_success, (request, response.text)
        operation = operation_of(response.request)
        assert operation is not None
        self.done.add(operation.id)
        return response.json() if response.headers["content-type"] == "application/json" else response.content

    def remember(self, content: str, **more: Any) -> str:
        id_: str = self("POST /memories", {"content": content, **more})["id"]
        return id_


@pytest.fixture(params=DATABASES)
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    (tmp_path / "notes.md").write_text("# Notes\n\nThe kettle is red.\n", encoding="utf-8")
    with new_store(request.param, tmp_path / "place") as store, contextlib.chdir(tmp_path), serving(store) as client:
        yield _Session(client)


def test_each_route_answers_as_documented(session: _Session) -> None:
    memories(session)
    finding(session)
    graph(session)
    knowledge(session)
    consolidation(session)
    whole_store(session)
    assert session.done == OPERATIONS.keys()


def memories(send: _Session) -> None:
    ada = send.remember(
        "Ada lives in Porto and works at Acme", at="2026-01-05", metadata={"kind": {"of": 1}}, tags=["a"]
    )
    send("POST /memories/bulk", {"items": [{"content": "Ravens nest in the lighthouse", "id": "ravens"}]})
    send("GET /memories")
    send("GET /facets")
    send("PATCH /memories/ravens", {"tags": ["birds"], "source": "walk"})
    for part in ("", "/versions", "/fading", "/facts", "/links", "/neighbourhood", "/uses", "/place"):
        send(f"GET /memories/{ada}{part}")
    for act in ("touch", "review", "archive", "restore", "tier"):
        send(f"POST /memories/ravens/{act}")
    send("POST /memories/ravens/links", {"target": ada})
    assert send("GET /memories/ravens/neighbourhood")["memories"]
    assert send("GET /memories/ravens/links")["links"]
    send(f"DELETE /memories/ravens/links/{ada}")
    send.remember("A boat for one day", id="boat")
    send("DELETE /memories/boat")


def finding(send: _Session) -> None:
    send("POST /index", {"root": "."})
    asked = "who lives in Porto"
    for route, argument in (("recall", "query"), ("search", "query"), ("context", "task"), ("injection", "prompt")):
        assert send(f"POST /{route}", {argument: asked})["hits"]
    query = "which kettle is red"
    hit = send("POST /search", {"query": query})["hits"][0]
    assert send("POST /why", {"query": query, "hit_id": hit["id"]})["signals"]
    send("GET /read", path=hit["path"])
    assert send("POST /vector_stores/default/search", {"query": query})["data"]
    send("GET /retrievals")


def graph(send: _Session) -> None:
    for month, town in enumerate(("Heidelberg", "Freiburg"), 1):
        send("POST /graph/episodes", {"content": f"Greta studies in {town}.", "reference_time": f"2026-0{month}-10"})
    send("POST /graph/episodes", {"content": "auth.ts depends on token.ts", "uuid": "seen"})
    first = send("POST /graph/facts", {"source": "Ada", "relation_type": "WORKS_FOR", "target": "Globex"})
    send("POST /graph/facts", {"source": "token.ts", "relation_type": "PART_OF", "target": "Ada"})
    send("GET /graph/episodes")
    send("GET /graph/episodes/seen")
    fact = first["relations"][0]["uuid"]
    send(f"GET /graph/facts/{fact}")
    send("POST /graph/facts/search", {"query": "where does Ada work"})
    send("POST /graph/entities/search", {"query": "Ada"})
    for route in ("entities/Ada", "entities/Ada/timeline", "entities/Ada/neighbourhood", f"history/{fact}"):
        send(f"GET /graph/{route}")
    send("GET /graph/communities")
    [dispute] = send("GET /graph/disputes")["items"]
    send(f"POST /graph/facts/{dispute['relations'][0]['uuid']}/settle")
    assert send("GET /graph/path", source="auth.ts", target="Ada")["relations"]
    send("POST /graph/context", {"entity_names": ["auth.ts"]})
    send("POST /graph/entities/Globex/merge", {"other": "Acme"})
    send("POST /graph/entities/Acme/split")
    send("DELETE /graph/episodes/seen")


def knowledge(send: _Session) -> None:
    send("POST /knowledge/TravelAgent", {"knowledge": [{"cityName": "Seoul", "country": "Korea"}]})
    assert send("POST /knowledge/TravelAgent/retrieve", {"query": "Seoul in Korea"})["hits"]
    send("GET /knowledge")
    send("GET /knowledge/TravelAgent/context")
    send("DELETE /knowledge/TravelAgent")


def consolidation(send: _Session) -> None:
    for number in ("4", "4.", "7", "7."):
        day = "Monday mornings" if "4" in number else "Friday, in the attic of the old mill"
        send.remember(f"Team {day[:3]} meets in room {number} on {day}", force=True)
    send.remember("The office has a piano on the second floor", id="one")
    send.remember("On the second floor of the office stands a piano", id="two", force=True)
    assert send("POST /consolidation/runs", {"dry_run": True})["results"]
    run = send("POST /consolidation/runs")
    send("GET /consolidation/runs")
    changes = send(f"GET /consolidation/runs/{run['run']}")["items"]
    send("GET /consolidation/status")
    first, second = (each["new_memory_id"] for each in run["results"]["merge"])
    send(f"POST /memories/{first}/unmerge")
    [left] = [each["issue"] for each in changes if second in each["memory_ids"]]
    send(f"POST /consolidation/undo/{left}")
    issues = send("GET /ledger/issues")["issues"]
    issue = issues[0]["id"]
    send(f"GET /ledger/issues/{issue}")
    send(f"POST /ledger/issues/{issue}/close", {"reason": "seen"})
    send(f"POST /ledger/issues/{issue}/reopen", {})
    send(f"GET /ledger/issues/{issue}/history")
    send("GET /health")
    send.remember("Greta studies in Ghent.", at="2026-03-10")
    question = send("GET /questions")["questions"][0]
    send(f"POST /questions/{question['id']}/answer", {"answer": question["answers"][0]})
    send(f"POST /ledger/issues/{issue}/process")
    send("GET /ledger/links")
    send("GET /injections")
    send("POST /golden", {"query": "who nests there", "id": "ravens"})
    assert send("GET /golden")["golden"]


def whole_store(send: _Session) -> None:
    lines = send("GET /export")
    send("POST /import", lines, namespace="elsewhere", dry_run="true")
    send("GET /namespaces")
    send("GET /index")
    send("POST /forget", {"tag": "birds"})
    assert send("GET /receipts")["items"]
    send("POST /gc")
    send("DELETE /namespaces/default", confirm="default")


def test_every_error_of_a_route_is_a_problem_of_the_document() -> None:
    """A client that is generated from the document can read whatever it is refused with."""
    reference = {"$ref": "#/components/responses/Problem"}
    for path in document()["paths"].values():
        for operation in path.values():
            refusals = {status: each for status, each in operation["responses"].items() if status >= "4"}
            assert set(map(str, refusals.values())) == {str(reference)}
            assert {"400", "401", "403", "404", "429", "500", "503"} <= refusals.keys()
