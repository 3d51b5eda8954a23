"""The official client of the Model Context Protocol is served over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.serving import serving
from tests.surfaces.test_http import problem

import commonplace
from commonplace.mcp.protocol import Offer, ToolResult
from commonplace.server.mcp import _scope

LIMIT_S = 30
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def with_client(url: str, mode: str, what: Callable[[Client], Awaitable[None]], token: str = "") -> None:
    async def run() -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with Client(transport, mode=mode, read_timeout_seconds=LIMIT_S) as client:
                await what(client)

    asyncio.run(run())


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_official_client_keeps_and_finds_a_memory(tmp_path: Path, mode: str) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} >= {"memory_store", "memory_search", "memory_forget"}
        await client.call_tool("memory_store", {"content": "We chose Postgres for billing"})
        found = await client.call_tool("memory_search", {"query": "Postgres billing"})
        assert "We chose Postgres for billing" in found.content[0].text
        assert (await client.list_prompts()).prompts[0].name == "use-memory"
        await client.list_resources()

    with serving(tmp_path / "store") as http:
        with_client(str(http.base_url), mode, use)
        [kept] = http.get("/v1/memories").json()["memories"]
        assert kept["source"] == ("" if mode == "legacy" else "mcp")


def test_what_a_token_stores_and_names_no_source_for_has_the_token_as_its_source(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        made = book.tokens.create(["default"], ["read", "write"])

    async def use(client: Client) -> None:
        await client.call_tool("memory_store", {"content": "The pump is on the roof"})

    with serving(tmp_path / "store") as http:
        http.headers["Authorization"] = f"Bearer {made.secret}"
        with_client(str(http.base_url), "legacy", use, made.secret)
        http.post("/v1/memories", json={"content": "The kettle is in the attic"})
        http.post("/v1/memories/bulk", json={"items": [{"content": "Ada"}, {"content": "Bo", "source": "mail"}]})
        found = http.get("/v1/memories").json()["memories"]
    own = f"token {made.token.id}"
    sources = {"The pump is on the roof": own, "The kettle is in the attic": own, "Ada": own, "Bo": "mail"}
    assert {each["content"]: each["source"] for each in found} == sources


def test_a_tool_is_of_the_scope_that_its_hints_say() -> None:
    """The protocol takes a tool that says nothing for one that destroys."""
    hinted = [{"readOnlyHint": True}, {"destructiveHint": False}, {"idempotentHint": True}, {}]
    tools = [Offer({"annotations": hints}, lambda *_: ToolResult({}, "")) for hints in hinted]
    assert [_scope(tool) for tool in tools] == ["read", "write", "forget", "forget"]


def test_what_two_tokens_store_under_one_id_is_of_neither(tmp_path: Path) -> None:
    """Or two agents that store the same would make a version of it each time."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        tokens = [book.tokens.create(["default"], ["read", "write"]).secret for _ in range(2)]
    item = {"content": "The pump is on the roof", "id": "pump"}
    with serving(tmp_path / "store") as http:
        for token in tokens:
            http.headers["Authorization"] = f"Bearer {token}"
            http.post("/v1/memories", json=item)
            http.post("/v1/memories/bulk", json={"items": [item]})
        kept = http.get("/v1/memories/pump").json()
    assert (kept["source"], kept["version"]) == ("", 1)


def test_no_client_stores_under_the_name_of_another_token(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        made = book.tokens.create(["default"], ["read", "write"])
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "token alice", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    stored = {"name": "memory_store", "arguments": {"content": "The pump is on the roof"}, "_meta": meta}
    with serving(tmp_path / "store") as http:
        http.headers["Authorization"] = f"Bearer {made.secret}"
        answer = http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": stored}).json()
        [kept] = http.get("/v1/memories").json()["memories"]
    assert "error" not in answer
    assert kept["source"] == f"token {made.token.id}"


def test_a_token_decides_which_tools_there_are_and_where(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with commonplace.open(store, "team", embedder="hashing") as book:
        reading = book.tokens.create(["team"], ["read"]).secret
        book.remember("The kettle is in the attic")

    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert not names & {"memory_store", "memory_link", "memory_forget"}
        found = await client.call_tool("memory_search", {"query": "kettle attic"})
        assert "The kettle is in the attic" in found.content[0].text

    with serving(store) as http:
        with_client(str(http.base_url), "auto", use, reading)
        problem(http.post("/mcp", json=PING), 401, "no-token")
        headers = {"Authorization": f"Bearer {reading}"}
        problem(http.post("/mcp?namespace=other", json=PING, headers=headers), 403, "forbidden-namespace")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', 400, -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}', 200, -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "none"}}', 200, -32602),
    ],
)
def test_what_is_no_message_is_answered_as_the_protocol_says(
    tmp_path: Path, body: bytes, status: int, code: int
) -> None:
    with serving(tmp_path / "store") as http:
        response = http.post("/mcp", content=body, headers={"Content-Type": "application/json"})
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)


def test_notifications_streams_and_versions(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as http:
        told = http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (told.status_code, told.content) == (202, b"")
        for verb in ("GET", "DELETE"):
            response = http.request(verb, "/mcp")
            problem(response, 405, "wrong-method")
            assert response.headers["allow"] == "POST"
        answer = http.post("/mcp", json=PING, headers={"MCP-Protocol-Version": "2025-06-18"})
        assert answer.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        refused: httpx.Response = http.post("/mcp", json=PING, headers={"MCP-Protocol-Version": "1999-01-01"})
        problem(refused, 400, "unknown-protocol-version")
        problem(http.post("/mcp", content=b"{}", headers={"Content-Type": "text/plain"}), 415, "wrong-content-type")
