"""The HTTP API answers as the engine does, and says what is wrong with what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serving import DATABASES, everything_in, new_store, serving

import commonplace
from commonplace.formats.json_values import plain
from commonplace.server.app import Limits
from commonplace.server.problems import TYPE_PREFIX
from commonplace.server.routes import place_of_memory

OFFICE = "The Porto office moves to the fourth floor in May"
BILLING = "We chose Postgres for billing"


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path | str]:
    with new_store(request.param, tmp_path) as place:
        yield place


@pytest.fixture
def client(store: Path | str) -> Iterator[httpx.Client]:
    with serving(store) as client:
        yield client


def remembered(client: httpx.Client, *texts: str, **more: Any) -> list[str]:
    return [client.post("/v1/memories", json={"content": text, **more}).json()["id"] for text in texts]


def problem(response: httpx.Response, status: int, name: str) -> dict[str, Any]:
    body: dict[str, Any] = response.json()
    assert (response.status_code, body["type"]) == (status, f"{TYPE_PREFIX}{name}"), body
    assert response.headers["content-type"] == "application/problem+json"
    assert body["status"] == status
    return body


def test_the_server_finds_what_the_engine_finds(store: Path | str, client: httpx.Client) -> None:
    """The same request gives the same hits, scores and order through every door."""
    remembered(client, OFFICE, BILLING)
    answer = client.post("/v1/recall", json={"query": "where is the Porto office", "touch": False}).json()
    with commonplace.open(store) as book:
        own = plain(book.recall("where is the Porto office", touch=False))
    assert answer["hits"]
    for each in (answer, own):
        del each["latency_ms"], each["stages"]
    assert answer == json.loads(json.dumps(own))


def test_a_memory_is_made_read_changed_and_forgotten(client: httpx.Client) -> None:
    made = client.post("/v1/memories", json={"content": OFFICE, "tags": ["move"]})
    assert (made.status_code, made.headers["etag"]) == (201, '"1"')
    path = f"/v1/memories/{made.json()['id']}"
    changed = client.patch(path, json={"content": f"{OFFICE} 2026"}, headers={"If-Match": made.headers["etag"]})
    assert (changed.json()["version"], changed.headers["etag"]) == (2, '"2"')
    assert client.get(path).json()["content"] == f"{OFFICE} 2026"
    assert [each["version"] for each in client.get(f"{path}/versions").json()["versions"]] == [1, 2]
    plan = client.delete(path, params={"dry_run": "true"}).json()
    assert plan["dry_run"]
    receipt = client.delete(path).json()
    assert receipt["verified"]
    problem(client.get(path), 404, "not-found")


def test_of_two_writers_that_saw_one_version_the_second_is_refused(client: httpx.Client) -> None:
    [id_] = remembered(client, OFFICE)
    first, second = (
        client.patch(f"/v1/memories/{id_}", json={"content": f"{OFFICE} {each}"}, headers={"If-Match": '"1"'})
        for each in ("a", "b")
    )
    assert first.status_code == 200
    problem(second, 412, "version-conflict")
    problem(
        client.patch(f"/v1/memories/{id_}", json={"content": "x"}, headers={"If-Match": "W/x"}), 400, "invalid-request"
    )


def test_pages_of_a_list_neither_repeat_nor_lose_a_memory_that_was_there(client: httpx.Client) -> None:
    """A memory that comes while the pages are read stands on a page that was read before."""
    at = "2026-03-01T10:00:00Z"
    known = remembered(client, *(f"Note number {number} about boats" for number in range(4)), at=at)
    known += remembered(client, "Older note about kites", at="2026-02-01")
    read: list[str] = []
    cursor = None
    while True:
        page = client.get("/v1/memories", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        read += [memory["id"] for memory in page["memories"]]
        remembered(client, f"Newer note after {len(read)} of them")
        if (cursor := page["next_cursor"]) is None:
            break
    assert sorted(read) == sorted(known)
    problem(client.get("/v1/memories", params={"cursor": "x"}), 400, "invalid-request")
    first = client.get("/v1/memories", params={"limit": 2}).json()["next_cursor"]
    problem(client.get("/v1/memories", params={"cursor": first, "tags": "a"}), 400, "invalid-request")


def test_a_write_that_is_sent_again_is_done_once(client: httpx.Client) -> None:
    headers = {"Idempotency-Key": "k"}
    body = {"source": "Ada", "relation_type": "USES", "target": "tea"}
    first, again = (client.post("/v1/graph/facts", json=body, headers=headers) for _ in range(2))
    assert again.json() == first.json()
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    other = client.post("/v1/graph/facts", json={**body, "target": "coffee"}, headers=headers)
    problem(other, 422, "idempotency-key-reused")
    problem(client.post("/v1/graph/facts", json=body, headers={"Idempotency-Key": "k" * 201}), 400, "invalid-request")


def test_forgetting_leaves_no_answer_that_holds_the_words(store: Path | str) -> None:
    """The answer that is kept for a key has the words of the memory."""
    with serving(store) as client:
        made = client.post("/v1/memories", json={"content": "zanzibarite lamp"}, headers={"Idempotency-Key": "k"})
        assert client.delete(f"/v1/memories/{made.json()['id']}").json()["verified"]
    assert "zanzibarite" not in everything_in(store)


def test_what_is_not_there_is_answered_with_what_is(client: httpx.Client) -> None:
    wrong = {"/v1/nothing": "openapi.json", "/v1/memories/none": "commonplace list"}
    assert all(remedy in client.get(path).json()["remedy"] for path, remedy in wrong.items())
    assert client.put("/v1/recall", json={"query": "x"}).json()["remedy"] == "send POST"


def test_an_id_may_hold_what_addresses_hold(client: httpx.Client) -> None:
    body = {"content": OFFICE, "id": "a/b?c#d é%2F"}
    made = client.post("/v1/memories", json=body).json()
    assert made["id"] == body["id"]
    assert client.get("/v1/memories/a%2Fb%3Fc%23d%20%C3%A9%252F").json()["content"] == OFFICE


@pytest.mark.parametrize(
    ("request_", "status", "name", "words"),
    [
        (("POST", "/v1/recall", {"query": "x", "lmit": 3}), 400, "invalid-request", "lmit is not known here"),
        (("POST", "/v1/recall", {}), 400, "invalid-request", "query is missing"),
        (("POST", "/v1/recall", {"query": 7}), 400, "invalid-request", "query is 7; give a string"),
        (("POST", "/v1/recall", {"query": "x", "limit": 0}), 400, "invalid-request", "limit"),
        (("GET", "/v1/memories?limit=many", None), 400, "invalid-request", "limit is"),
        (("GET", "/v1/memories?limit=0", None), 400, "invalid-request", "limit is 0"),
        (("GET", "/v1/memories?colour=red", None), 400, "invalid-request", "colour is not known"),
        (("GET", "/v1/nothing", None), 404, "unknown-path", "nothing at this path"),
        (("PUT", "/v1/recall", {"query": "x"}), 405, "wrong-method", "PUT is not for this path"),
        (("GET", "/v1/memories/none", None), 404, "not-found", "no memory 'none'"),
        (("POST", "/v1/recall?namespace=a%0Ab", {"query": "x"}), 400, "invalid-request", "namespace"),
        (("DELETE", "/v1/namespaces/a?confirm=b", None), 400, "invalid-request", "b"),
        (("POST", "/v1/consolidation/undo/none", {}), 404, "not-found", "none"),
        (
            ("POST", "/v1/vector_stores/default/search", {"query": "x", "max_num_results": 51}),
            400,
            "invalid-request",
            "51",
        ),
    ],
)
def test_what_is_refused_is_named(
    client: httpx.Client, request_: tuple[str, str, Any], status: int, name: str, words: str
) -> None:
    verb, path, body = request_
    response = client.request(verb, path, json=body) if body is not None else client.request(verb, path)
    assert words in problem(response, status, name)["detail"]


@pytest.mark.parametrize(
    ("content", "kind", "status", "name"),
    [
        (b"{", "application/json", 400, "invalid-json"),
        (b"[]", "application/json", 400, "invalid-json"),
        (b"\xff", "application/json", 400, "invalid-json"),
        (b'{"query": ' + b"[" * 100_000, "application/json", 400, "invalid-json"),
        (b'{"metadata": ' + b'{"a":' * 70 + b"1" + b"}" * 71, "application/json", 400, "too-deep"),
        (b'{"query": "x"}', "text/plain", 415, "wrong-content-type"),
        (b'{"query": "x"}', "", 415, "wrong-content-type"),
        (b"query=x", "application/x-www-form-urlencoded", 415, "wrong-content-type"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(
    client: httpx.Client, content: bytes, kind: str, status: int, name: str
) -> None:
    headers = {"Content-Type": kind} if kind else {}
    assert problem(client.post("/v1/recall", content=content, headers=headers), status, name)["detail"]


def test_a_body_that_is_too_large_is_refused_and_the_server_goes_on(store: Path | str) -> None:
    with serving(store, limits=Limits(max_body_bytes=1_000)) as client:
        problem(client.post("/v1/recall", json={"query": "x" * 2_000}), 413, "too-large")

        def parts() -> Iterator[bytes]:  # of unknown length
            for _ in range(3):
                yield b" " * 500

        headers = {"Content-Type": "application/json"}
        problem(client.post("/v1/recall", content=parts(), headers=headers), 413, "too-large")
        assert client.post("/v1/recall", json={"query": "x"}).status_code == 200


def test_many_are_kept_at_once(client: httpx.Client) -> None:
    items = [{"content": f"Boat number {number} is {colour}"} for number, colour in enumerate(("red", "blue"))]
    made = client.post("/v1/memories/bulk", json={"items": items, "wait": True})
    assert (made.status_code, len(made.json()["memories"])) == (201, 2)
    assert client.get("/v1/memories").json()["counts"]["short"] == 2


def test_why_explains_a_hit(client: httpx.Client) -> None:
    remembered(client, OFFICE)
    [hit] = client.post("/v1/recall", json={"query": "Porto office"}).json()["hits"]
    receipt = client.post("/v1/why", json={"query": "Porto office", "hit_id": hit["id"]}).json()
    assert receipt["rank"] == 1
    problem(client.post("/v1/why", json={"query": "Porto office", "hit_id": "none"}), 404, "not-found")


def test_a_search_in_the_shape_of_openai(client: httpx.Client) -> None:
    [id_] = remembered(client, OFFICE)
    answer = client.post("/v1/vector_stores/default/search", json={"query": "Porto office"}).json()
    assert answer["object"] == "vector_store.search_results.page"
    more = {"query": ["zzz", "Porto office"], "rewrite_query": True, "ranking_options": {"score_threshold": 0.01}}
    assert client.post("/v1/vector_stores/default/search", json=more).json()["search_query"] == more["query"]
    for wrong in ({"query": []}, {"query": "x", "ranking_options": {"score_threshold": "much"}}):
        problem(client.post("/v1/vector_stores/default/search", json=wrong), 400, "invalid-request")
    assert [(each["file_id"], each["content"]) for each in answer["data"]] == [
        (id_, [{"type": "text", "text": OFFICE}])
    ]


def test_the_server_tells_of_itself(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.get("/v1/openapi.json").json()["info"]["title"] == "Commonplace"
    client.get("/v1/memories/none")
    lines = client.get("/metrics").text
    assert 'commonplace_requests_total{method="GET",operation="get_memory",status="404"} 1.0' in lines


def test_an_export_is_imported_elsewhere_without_loss(client: httpx.Client, tmp_path: Path) -> None:
    remembered(client, OFFICE, BILLING)
    exported = client.get("/v1/export")
    assert exported.headers["content-type"] == "application/x-ndjson"
    headers = {"Content-Type": "application/x-ndjson"}
    with serving(tmp_path / "other") as other:
        report = other.post("/v1/import", content=exported.content, headers=headers, params={"dry_run": "true"})
        assert report.status_code == 200, report.text
        assert not other.get("/v1/memories").json()["memories"]
        other.post("/v1/import", content=exported.content, headers=headers)
        assert len(other.get("/v1/memories").json()["memories"]) == 2
        problem(other.post("/v1/import", content=b"{", headers=headers), 400, "invalid-request")
        problem(other.post("/v1/import", content=b"{}"), 415, "wrong-content-type")
        problem(other.post("/v1/import?colour=red", content=b"{}", headers=headers), 400, "invalid-request")
    problem(client.get("/v1/export", params={"kinds": "none"}), 400, "invalid-request")
    kept = client.get("/v1/export", params={"kinds": ["memory"]}).text.splitlines()
    assert all(json.loads(line) for line in kept)


def test_namespaces_are_listed(client: httpx.Client) -> None:
    client.post("/v1/memories", json={"content": OFFICE}, params={"namespace": "team"})
    assert client.get("/v1/namespaces").json() == {"namespaces": ["team"]}


def test_the_facets_count_what_a_list_returns(client: httpx.Client) -> None:
    """And the most used, or the longest unused, can be listed first."""
    tea, boat = remembered(client, "Ada likes tea", "The boat is red", tags=["home"])
    remembered(client, "The kettle is blue", tier="long", tags=["home", "kitchen"])
    for _ in range(2):
        client.post(f"/v1/memories/{boat}/touch", json={})
    facets = client.get("/v1/facets", params={"tags": "home"}).json()
    assert facets["total"] == 3
    assert facets["counts"]["tier"] == {"long": 1, "short": 2}
    assert facets["counts"]["tag"] == {"home": 3, "kitchen": 1}
    assert client.get("/v1/facets", params={"min_trust": 1}).json()["total"] == 0

    def ids(order: str) -> list[str]:
        page = client.get("/v1/memories", params={"order": order, "limit": 2}).json()
        assert page["next_cursor"] is None
        return [memory["id"] for memory in page["memories"]]

    assert ids("used")[0] == boat
    assert ids("idle")[0] == tea
    assert ids("changed")[1] == boat
    assert ids("archived") == []
    for each in (tea, boat):
        client.post(f"/v1/memories/{each}/archive", json={})
    archived = {"order": "archived", "statuses": "archived"}
    listed = client.get("/v1/memories", params=archived).json()
    assert [memory["id"] for memory in listed["memories"]] == [boat, tea]
    problem(client.get("/v1/memories", params={"order": "none"}), 400, "invalid-request")


def test_a_list_begins_anywhere_but_behind_a_cursor(client: httpx.Client) -> None:
    remembered(client, "Ada likes tea", "The boat is red", "The kettle is blue")
    ids = [memory["id"] for memory in client.get("/v1/memories").json()["memories"]]
    [second] = client.get("/v1/memories", params={"offset": 1, "limit": 1}).json()["memories"]
    assert second["id"] == ids[1]
    cursor = client.get("/v1/memories", params={"limit": 1}).json()["next_cursor"]
    problem(client.get("/v1/memories", params={"cursor": cursor, "limit": 1, "offset": 1}), 400, "invalid-request")


def test_a_memory_says_where_it_stands_in_markdown(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as engine:
        engine.remember(OFFICE, id="office")
        engine.sync()
        place = place_of_memory(engine, "office")
        assert OFFICE in place["text"]
        assert place["path"].startswith("memory/")
        assert place_of_memory(engine, "none")["path"] == ""


def test_a_memory_says_when_it_was_used(client: httpx.Client) -> None:
    [id_] = remembered(client, OFFICE)
    for _ in range(2):
        client.post(f"/v1/memories/{id_}/touch", json={})
    uses = client.get(f"/v1/memories/{id_}/uses").json()["items"]
    assert [(each["call"], each["place"], each["query"]) for each in uses] == [("used", None, "")] * 2
    assert client.get(f"/v1/memories/{id_}/uses", params={"limit": 1}).json()["items"] == uses[:1]
    points = client.get(f"/v1/memories/{id_}/fading", params={"days": 1, "past": True}).json()["items"]
    assert len(points) == 28
    assert points[0]["at"] == client.get(f"/v1/memories/{id_}").json()["created_at"]
    problem(client.get("/v1/memories/none/uses"), 404, "not-found")


def test_a_memory_fades_from_its_last_use_on(client: httpx.Client) -> None:
    [id_] = remembered(client, OFFICE)
    points = client.get(f"/v1/memories/{id_}/fading", params={"days": 3}).json()["items"]
    assert [round(each["retention"], 2) for each in points] == [1.0, 0.75, 0.6, 0.5]
    problem(client.get("/v1/memories/none/fading"), 404, "not-found")


def test_a_memory_fades_before_a_correction_too(tmp_path: Path) -> None:
    days = 0.0
    with commonplace.open(
        tmp_path / "store", embedder="hashing", clock=lambda: 1_700_000_000.0 + days * 86_400
    ) as engine:
        engine.remember(OFFICE, id="office")
        days = 1
        engine.touch("office")
        days = 101
        engine.update("office", "The office is in Rome")
        corrected = engine.get("office", touch=False)
        points = engine.memory_fading("office", 1, past=True)
    before = [each.retention for each in points if each.at < corrected.updated_at]
    assert corrected.last_used == corrected.updated_at
    assert before[-1] < 0.1, "nobody used it for months"
    assert [each.at for each in points] == sorted(each.at for each in points)


def test_the_changes_of_a_run_are_listed_and_undone(client: httpx.Client) -> None:
    [old] = remembered(client, "The harbour of Aegina froze over", at="2020-01-01")
    client.post(f"/v1/memories/{old}/archive", json={})
    remembered(client, *(f"Team Alpha meets in room {room} on Monday mornings" for room in ("4", "4.")), force=True)
    report = client.post("/v1/consolidation/runs", json={}).json()
    changes = client.get(f"/v1/consolidation/runs/{report['run']}").json()["items"]
    [run] = client.get("/v1/consolidation/runs").json()["items"]
    assert len(changes) == run["applied"] > 0
    assert all(each["title"] and each["agent"] and each["undone_at"] is None for each in changes)
    done = [act["what"] for each in changes for act in each["acts"]]
    assert (done.count("made"), done.count("archived")) == (1, 2)
    assert {act["id"] for act in changes[0]["acts"]} <= set(changes[0]["memory_ids"])
    assert (run["before"], run["after"]["short"]) == ({"short": 2, "archived": 1, "links": 0}, 1)
    assert run["after"]["archived"] == 3
    client.post(f"/v1/consolidation/undo/{changes[0]['issue']}", json={})
    assert client.get(f"/v1/consolidation/runs/{report['run']}").json()["items"][0]["undone_at"]
    problem(client.get("/v1/consolidation/runs/none"), 404, "not-found")


def test_the_facts_of_a_memory_are_those_of_its_text(client: httpx.Client) -> None:
    first, second = remembered(client, "Mia works at Acme.", "Ada lives in Porto.")
    [fact] = client.get(f"/v1/memories/{first}/facts").json()["items"]
    assert (fact["source_name"], fact["target_name"]) == ("Mia", "Acme")
    assert client.get(f"/v1/memories/{second}/facts").json()["items"][0]["target_name"] == "Porto"
