"""What the real process `commonplace mcp` answers to bytes that no well-behaved client sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.surfaces.mcp_process import OPENING, Wire, call, store_held, structured
from tests.unit.mcp.conversation import request, stateless

import commonplace

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

NOTE = "Ada decided that refunds above a hundred euros need a second pair of eyes."


@pytest.fixture
def wire(bare: Program) -> Iterator[Wire]:
    bare.run("init")
    opened = Wire(bare.project)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"hello", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', -32700),
        (b"\xff\xfe{}", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32601),
        (b"[" * 100_000, -32700),
        (b"7", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params":{"name":"memory_get","arguments":[]}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "memory/dream"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "server/restart", "params": {}}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "debug"}}', -32601),
    ],
)  # fmt: skip
def test_line_that_is_no_request_is_told_and_the_next_is_served(wire: Wire, line: bytes, code: int) -> None:
    wire.greet()
    wire.send(line)
    assert wire.hear()["error"]["code"] == code
    assert wire.ask(request("ping"))["result"] == {}
    assert wire.end() == []


def test_text_with_half_an_emoji_is_kept_with_a_replacement_character(wire: Wire) -> None:
    """Clients in JavaScript cut a text between the halves of a surrogate pair; its author must not lose the rest."""
    wire.greet()
    stored = structured(wire.ask(call("memory_store", "s", content="Ship it on Friday \ud83d", tags=["a\udc00"])))
    wire.send(
        rb'{"jsonrpc":"2.0","id":"whole","method":"tools/call","params":{"name":"memory_store","arguments":'
        rb'{"content":"Whole: \ud83d\ude00"}}}'
    )
    whole = wire.hear()
    assert whole["id"] == "whole"
    read = [
        structured(wire.ask(call("memory_get", path=f"memory:{id_}")))["text"]
        for id_ in (stored["id"], structured(whole)["id"])
    ]
    assert read == ["Ship it on Friday \ufffd", "Whole: \U0001f600"]
    assert wire.end() == []


def test_request_whose_id_is_half_a_character_is_refused_without_it(wire: Wire) -> None:
    """The answer could not repeat the id, and with another one it would be nobody's."""
    wire.greet()
    wire.send(rb'{"jsonrpc": "2.0", "id": "a\ud800", "method": "ping"}')
    answer = wire.hear()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "half of a surrogate pair" in answer["error"]["message"]
    assert wire.end() == []


def test_what_asks_for_no_answer_gets_none(wire: Wire) -> None:
    """Blank lines, notifications known and unknown, and answers to what we never asked."""
    wire.greet()
    wire.send(b"", b"  \r")
    wire.say(
        {"jsonrpc": "2.0", "method": "notifications/dreamt"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 6, "error": {"code": 1, "message": "no"}},
    )
    assert wire.ask(request("ping", call_id="last"))["id"] == "last"
    assert wire.end() == []


def test_method_that_the_stateless_era_does_not_have_is_unknown_there(wire: Wire) -> None:
    for method in ("ping", "memory/dream", "resources/subscribe"):
        assert wire.ask(request(method, stateless()))["error"]["code"] == -32601
    refused = wire.ask(request("tools/list", stateless(version="2031-01-01")))["error"]
    assert (refused["code"], refused["data"]["supported"]) == (-32022, ["2026-07-28"])
    assert wire.ask(request("tools/list"))["error"]["code"] == -32602
    assert len(wire.ask(request("tools/list", stateless()))["result"]["tools"]) == 8
    assert wire.end() == []


def test_batch_is_answered_in_one_line_in_the_version_that_has_them(wire: Wire) -> None:
    wire.greet("2025-03-26")
    batch = [
        call("memory_store", "store", content=NOTE),
        {"jsonrpc": "2.0", "method": "notifications/dreamt"},
        request("tools/list", call_id="list"),
        request("initialize", OPENING, "again"),
        7,
    ]
    told = wire.ask(batch)
    by_id = {answer["id"]: answer for answer in told}
    assert set(by_id) == {"store", "list", "again", None}
    assert structured(by_id["store"])["outcome"] == "added"
    assert len(by_id["list"]["result"]["tools"]) == 8
    assert by_id["again"]["error"]["code"] == by_id[None]["error"]["code"] == -32600
    wire.say([{"jsonrpc": "2.0", "method": "notifications/dreamt"}])
    assert wire.ask([])["error"]["code"] == -32600
    assert wire.end() == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_batch_is_refused_as_a_whole_in_every_other_version(wire: Wire, version: str) -> None:
    wire.greet(version)
    refused = wire.ask([call("memory_store", content=NOTE)])
    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert structured(wire.ask(call("memory_search", query="refunds", minScore=0)))["results"] == []
    assert wire.end() == []


def test_call_that_waits_for_the_store_is_cancelled_and_others_are_served_meanwhile(wire: Wire, bare: Program) -> None:
    wire.greet()
    assert structured(wire.ask(call("memory_search", query="refunds")))["results"] == []
    with store_held(bare.project):
        wire.say(call("memory_store", "slow", content=NOTE))
        assert len(wire.ask(request("tools/list"))["result"]["tools"]) == 8
        assert structured(wire.ask(call("memory_search", query="refunds", minScore=0)))["results"] == []
        assert wire.ask(call("memory_store", "slow", content="x"))["error"]["code"] == -32600
        wire.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
        assert wire.ask(request("ping", call_id="after"))["id"] == "after"
    assert structured(wire.ask(call("memory_store", "slow", content="The id of a cancelled call is free.")))
    assert wire.end() == []


def test_call_that_runs_when_the_input_ends_is_answered_and_its_memory_kept(wire: Wire, bare: Program) -> None:
    wire.greet()
    assert structured(wire.ask(call("memory_search", query="refunds")))["results"] == []
    assert wire.process.stdin is not None
    with store_held(bare.project):
        wire.say(call("memory_store", "last", content=NOTE))
        wire.send(b'{"jsonrpc": "2.0", "id": 2, "meth')
        wire.process.stdin.close()
        assert wire.hear()["error"]["code"] == -32700
    wire.process.stdin = None
    [answer] = wire.end()
    assert answer["id"] == "last"
    with commonplace.open() as book:
        assert book.get(structured(answer)["id"]).content == NOTE


def test_input_that_ends_in_mid_request_ends_the_process_well(wire: Wire) -> None:
    """A message that only lacks its newline is served."""
    assert wire.process.stdin is not None
    wire.greet()
    wire.process.stdin.write(json.dumps(call("memory_store", content=NOTE)).encode())
    [answer] = wire.end()
    assert structured(answer)["outcome"] == "added"


def test_input_that_ends_at_once_makes_no_store(bare: Program) -> None:
    wire = Wire(bare.project)
    assert wire.end() == []
    wire.close()
    assert not (bare.project / ".commonplace").exists()
