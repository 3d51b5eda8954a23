"""Who may use the server: tokens, their namespaces and scopes, hosts and origins."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.serving import DATABASES, new_store, serving
from tests.surfaces.test_http import problem

import commonplace
from commonplace.cli.app import cli
from commonplace.errors import UsageError
from commonplace.server import access, run
from commonplace.server.routes import OPERATIONS
from commonplace.types import SCOPES

SECRET = "the quartz password of the second tenant"
ELSEWHERE = "aquamarine"
"""Sorts before the others: of long lists the beginning is shown."""


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module", params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | str]:
    with new_store(request.param, tmp_path_factory.mktemp("http")) as place:
        with commonplace.open(place, "two", embedder="hashing") as book:
            book.remember(SECRET, id="theirs")
            book.graph.add_episode("Quartz depends on Basalt", uuid="episode-of-two")
            with book.in_namespace(ELSEWHERE) as other:
                other.remember(SECRET)
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
        if each.kind == "path":
            path = path.replace(f"{{{each.name}}}", str(word))
        elif word is not None and (each.is_required or data.draw(st.booleans())):
            (query if each.kind == "query" else body)[each.name] = word
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


def _arguments(data: st.DataObject, schemas: dict[str, Any], required: Collection[str], words: Any) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, schema in schemas.items():
        kinds = schema.get("type", ())
        if ("string" in kinds or "array" in kinds) and (name in required or data.draw(st.booleans())):
            given[name] = data.draw(words) if "string" in kinds else [data.draw(words)]
    return given


def test_no_answer_to_who_has_an_empty_namespace_names_another(
    client: httpx.Client, store: Path | str, tmp_path: Path
) -> None:
    """All routes and tools, with what is drawn, each in a namespace that nothing was stored in."""

    def message(method: str, **params: Any) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    @settings(suppress_health_check=list(HealthCheck), deadline=None, max_examples=4, phases=[Phase.generate])
    @given(data=st.data())
    def call(name: str, spaces: Iterator[str], data: st.DataObject) -> None:
        space = next(spaces)
        words = st.sampled_from([space, "quartz", "*", "tag", "memory:quartz"])
        verb, path = "POST", "/mcp"
        query: dict[str, Any] = {"namespace": space}
        if name in tools:
            arguments = _arguments(data, tools[name]["properties"], tools[name].get("required", ()), words)
            body = message("tools/call", name=name, arguments=arguments)
        else:
            operation, body = OPERATIONS[name], {}
            verb, path = operation.verb, f"/v1{operation.path.replace('{namespace}', space)}"
            schemas = {each.name: each.schema for each in operation.parameters}
            required = {each.name for each in operation.parameters if each.is_required or each.kind == "path"}
            given = _arguments(data, schemas, required, words)
            for each in operation.parameters:
                if each.kind == "path" and each.name in given:
                    path = path.replace(f"{{{each.name}}}", given[each.name])
                elif each.name in given:
                    (query if each.kind == "query" else body)[each.name] = given[each.name]
        response = client.request(verb, path, params=query, json=body, headers=headers)
        assert response.status_code < 500, response.text
        assert ELSEWHERE not in response.text, (name, response.text)

    tools: dict[str, Any] = {}
    with commonplace.open(store) as book, contextlib.chdir(tmp_path):  # one of the calls indexes where it is
        headers = bearer(book.tokens.create(["nowhere"], SCOPES).secret)
        listed = client.post("/mcp", json=message("tools/list"), headers=headers).json()["result"]["tools"]
        tools |= {tool["name"]: tool["inputSchema"] for tool in listed}
        for name in (*OPERATIONS, *tools):
            spaces = [f"nowhere-{name}-{number}" for number in range(9)]
            headers = bearer(book.tokens.create(spaces, SCOPES).secret)
            call(name, iter(spaces))


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


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ("in 30 days", "2026-03-31T00:00:00Z"),
        ("next month", "2026-04-01T00:00:00Z"),
        ("2027-01", "2027-01-01T00:00:00Z"),
        ("2027-01-01", "2027-01-01T00:00:00Z"),
    ],
)
def test_a_token_expires_when_what_is_said_begins(tmp_path: Path, said: str, ends: str) -> None:
    now = datetime(2026, 3, 1, 9, 30, tzinfo=UTC).timestamp()
    with commonplace.open(tmp_path / "store", embedder="hashing", clock=lambda: now) as book:
        assert book.tokens.create(["one"], expires=said).token.to_dict()["expires_at"] == ends
        with pytest.raises(UsageError, match="which is past"):
            book.tokens.create(["one"], expires="yesterday")


def test_a_new_token_stands_alone_on_standard_output(tmp_path: Path) -> None:
    """So that a script can take it: what is said of it goes to standard error."""
    made = CliRunner().invoke(cli, ["token", "create", "--store", str(tmp_path / "store")])
    assert (made.exit_code, made.stdout.count("\n"), made.stdout[:3]) == (0, 1, "cp_")
    assert "Shown once" in made.stderr


def test_scopes_are_given_with_commas_or_one_by_one(tmp_path: Path) -> None:
    create = ["token", "create", "--json", "--store", str(tmp_path / "store"), "--scope", "read,write", "--scope"]
    made = CliRunner().invoke(cli, [*create, "forget"])
    assert json.loads(made.output)["scopes"] == ["read", "write", "forget"]
    refused = CliRunner().invoke(cli, [*create, "wirte"])
    assert (refused.exit_code, "no scope 'wirte'" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "Only this machine is answered, without a token until the store has one"),
        (["--host", "0.0.0.0"], "Every machine is answered that sends a token of the store"),
    ],
)
def test_a_server_says_whom_it_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    def served(*_: object, serving: Callable[..., contextlib.AbstractContextManager[None]], **__: object) -> None:
        with serving("http://h:1", None):
            pass

    monkeypatch.setattr(run, "run", served)
    told = CliRunner().invoke(cli, ["serve", "--store", str(tmp_path), *options], catch_exceptions=False)
    assert "http://h:1" in told.output
    assert said in " ".join(told.output.split())


def test_a_place_that_is_taken_or_unknown_is_answered_with_the_option_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remedy(address: run.ListenAddress) -> str:
        with pytest.raises(UsageError) as caught:
            run._listen(address)
        return caught.value.remedy

    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    taken = Path("taken")
    with run._listen(run.ListenAddress("127.0.0.1", 0)) as first, run._listen(run.ListenAddress("", 0, taken)):
        assert "--port" in remedy(run.ListenAddress("127.0.0.1", first.getsockname()[1]))
        assert "--socket" in remedy(run.ListenAddress("", 0, taken))
    monkeypatch.setattr(socket.socket, "bind", unknown)
    assert "--host" in remedy(run.ListenAddress("nosuch.invalid", 0))


def test_a_token_may_send_so_many_requests_a_minute(
    store: Path | str, tokens: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, and none more until the next minute begins."""
    clock = SimpleNamespace(monotonic=lambda: 59.0)
    monkeypatch.setattr(access, "time", clock)
    with serving(store, per_minute=3) as client:
        ask = lambda name: client.get("/v1/memories", headers=bearer(tokens[name]))  # noqa: E731
        answers = [ask("one") for _ in range(5)]
        assert [each.status_code for each in answers] == [200, 200, 200, 429, 429]
        problem(answers[-1], 429, "too-many-requests")
        assert answers[-1].headers["retry-after"]
        assert ask("two").status_code == 200
        clock.monotonic = lambda: 60.0
        assert ask("one").status_code == 200
