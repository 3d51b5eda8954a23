"""Who may use the server: tokens, their namespaces and scopes, hosts and origins."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serving import DATABASES, new_store, serving
from tests.surfaces.test_http import problem

import commonplace
from commonplace.server.operations import OPERATIONS

SECRET = "the quartz password of the second tenant"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module", params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    with new_store(request.param, tmp_path_factory.mktemp("http")) as place:
        with commonplace.open(place, "two", embedder="hashing") as book:
            book.remember(SECRET, id="theirs")
            book.graph.add_episode("Quartz depends on Basalt", uuid="episode-of-two")
        yield place


@pytest.fixture(scope="module")
def tokens(store: Path | str) -> dict[str, str]:
    with commonplace.open(store) as book:
        made = {
            "one": book.tokens.create(["one"], ["read", "write"]).secret,
            "two": book.tokens.create(["two"], ["read"]).secret,
            "all": book.tokens.create(["one", "two"], ["read", "write", "forget", "admin"]).secret,
            "expired": "",
        }
    with commonplace.open(store, clock=lambda: 1_000_000_000.0) as book:
        made["expired"] = book.tokens.create(["one"], expires=1_000_000_060.0).secret
    return made


@pytest.fixture(scope="module")
def client(store: Path | str, tokens: dict[str, str]) -> Iterator[httpx.Client]:
    with serving(store) as client:
        yield client


def test_without_a_token_nothing_is_answered_where_the_store_has_one(client: httpx.Client) -> None:
    response = client.post("/v1/recall", json={"query": "x"})
    problem(response, 401, "no-token")
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["/v1/import", "/v1/memories", "/mcp"])
def test_without_a_token_no_body_is_waited_for(client: httpx.Client, path: str) -> None:
    """Or anybody could fill the memory, or the disk, of a server that others use."""
    host, port = client.base_url.host, client.base_url.port
    kind = "application/x-ndjson" if path == "/v1/import" else "application/json"
    with socket.create_connection((host, port), timeout=60) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: {kind}\r\nContent-Length: 1000000\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(1_000).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("text", ["cp_x_y", "Bearer", "cp_" + "a" * 5_000])
def test_what_is_no_token_is_refused(client: httpx.Client, text: str) -> None:
    response = client.post("/v1/recall", json={"query": "x"}, headers=bearer(text))
    assert problem(response, 401, "unknown-token")["detail"]


def test_an_expired_token_is_refused(client: httpx.Client, tokens: dict[str, str]) -> None:
    response = client.post("/v1/recall", json={"query": "x"}, headers=bearer(tokens["expired"]))
    assert "2001-09-09" in problem(response, 401, "expired-token")["detail"]


def test_a_revoked_token_is_refused_at_once(store: Path | str, client: httpx.Client) -> None:
    with commonplace.open(store) as book:
        made = book.tokens.create(["one"])
        ask = lambda: client.post("/v1/recall", json={"query": "x"}, headers=bearer(made.secret))  # noqa: E731
        assert ask().status_code == 200
        book.tokens.revoke(made.token.id)
    problem(ask(), 401, "unknown-token")


@pytest.mark.parametrize(
    ("token", "verb", "path"),
    [
        ("two", "POST", "/v1/memories"),
        ("one", "DELETE", "/v1/memories/x"),
        ("one", "POST", "/v1/forget"),
        ("one", "POST", "/v1/index"),
        ("one", "DELETE", "/v1/namespaces/one?confirm=one"),
    ],
)
def test_a_token_does_what_its_scopes_say(
    client: httpx.Client, tokens: dict[str, str], token: str, verb: str, path: str
) -> None:
    """`write` does not include `forget`, nor anything `admin`."""
    response = client.request(verb, path, json={"content": "x"}, headers=bearer(tokens[token]))
    assert problem(response, 403, "missing-scope")["detail"]


def test_a_token_is_in_its_first_namespace_unless_it_names_another(
    client: httpx.Client, tokens: dict[str, str]
) -> None:
    def names(token: str, **params: str) -> Any:
        return client.get("/v1/memories", params=params, headers=bearer(tokens[token])).json().get("memories")

    assert names("all") == []
    assert [memory["id"] for memory in names("all", namespace="two")] == ["theirs"]
    assert [memory["id"] for memory in names("two")] == ["theirs"]
    assert names("one", namespace="two") is None


def test_a_token_is_told_of_its_own_namespaces_alone(client: httpx.Client, tokens: dict[str, str]) -> None:
    assert client.get("/v1/namespaces", headers=bearer(tokens["one"])).json() == {"namespaces": ["one"]}
    response = client.get("/v1/export", params={"namespace": "two"}, headers=bearer(tokens["one"]))
    problem(response, 403, "forbidden-namespace")


_words = st.sampled_from(["theirs", "episode-of-two", "quartz", "Quartz", "two", "*", "quartz password tenant"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(data=st.data())
def test_no_call_of_one_tenant_shows_anything_of_another(
    client: httpx.Client, tokens: dict[str, str], data: st.DataObject
) -> None:
    operation = data.draw(st.sampled_from([each for each in OPERATIONS.values() if each.scope in ("read", "write")]))
    path, query, body = operation.path, {}, {}
    for each in operation.parameters:
        kinds = each.schema["type"]
        word = data.draw(_words) if "string" in kinds else [data.draw(_words)] if "array" in kinds else None
        if each.place == "path":
            path = path.replace(f"{{{each.name}}}", str(word))
        elif word is not None and (each.is_required or data.draw(st.booleans())):
            (query if each.place == "query" else body)[each.name] = word
    space = data.draw(st.sampled_from([None, "one", "two"]))
    path = path.replace("{namespace}", space or "one")
    query |= {"namespace": space} if space else {}
    headers = bearer(tokens["one"])
    response = client.request(operation.verb, f"/v1{path}", params=query, json=body, headers=headers)
    assert response.status_code < 500, response.text
    if space == "two":
        assert response.status_code == 403
    text = response.text.replace(str(body), "").lower()
    assert SECRET not in text
    assert "basalt" not in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:1", ""])
def test_a_foreign_host_is_refused(client: httpx.Client, host: str) -> None:
    """A page of another site whose name leads here must not reach the store of whoever looks at it."""
    assert problem(client.get("/healthz", headers={"Host": host}), 421, "foreign-host")["detail"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://localhost:1"])
def test_a_foreign_origin_is_refused(client: httpx.Client, tokens: dict[str, str], origin: str) -> None:
    headers = {**bearer(tokens["one"]), "Origin": origin}
    assert problem(client.post("/v1/recall", json={"query": "x"}, headers=headers), 403, "foreign-origin")["detail"]


def test_the_own_origin_is_answered_but_no_page_may_read_the_answer(
    client: httpx.Client, tokens: dict[str, str]
) -> None:
    own = str(client.base_url).rstrip("/")
    response = client.post("/v1/recall", json={"query": "x"}, headers={**bearer(tokens["one"]), "Origin": own})
    assert response.status_code == 200
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_a_store_without_tokens_is_open_to_this_machine_alone(tmp_path: Path) -> None:
    with serving(tmp_path / "local") as client:
        assert client.post("/v1/recall", json={"query": "x"}).status_code == 200
    with serving(tmp_path / "shared", is_local=False) as client:
        problem(client.post("/v1/recall", json={"query": "x"}), 401, "no-token")


def test_a_token_may_send_so_many_requests_a_minute(store: Path | str, tokens: dict[str, str]) -> None:
    with serving(store, per_minute=3) as client:
        ask = lambda name: client.get("/v1/memories", headers=bearer(tokens[name]))  # noqa: E731
        answers = [ask("one") for _ in range(7)]  # a minute may begin meanwhile
        refused = next(each for each in answers if each.status_code != 200)
        problem(refused, 429, "too-many-requests")
        assert refused.headers["retry-after"]
        assert ask("two").status_code == 200
