"""Requests that no client should send: the server answers each with its own id or not at all, and lives on."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.mcp_process import Wire, call, structured
from tests.unit.mcp.conversation import request

import commonplace

LIMIT_S = 1_800
AT_ONCE = 20
ODD: list[Any] = [None, True, -1, 2**70, 1e308, "", "\ud800", "\0", "é\u202e", "x" * 100_000]
ODD += [[], [[]], {}, {"a": {"b": []}}, ["x"] * 500]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("COMMONPLACE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with commonplace.open(tmp_path / ".commonplace") as book:
        book.remember("Invoices are kept in Postgres", id="known")
    return tmp_path


def requests() -> list[dict[str, Any]]:
    return [
        request("tools/list"),
        request("resources/list"),
        request("resources/read", {"uri": "commonplace://memory/MEMORY.md"}),
        request("prompts/get", {"name": "use-memory", "arguments": {"task": "invoices"}}),
        call("memory_search", query="where are the invoices", maxResults=3, minScore=0.1, tiers=["short"]),
        call("memory_get", path="memory:known"),
        call("memory_context", task="pay an invoice", maxTokens=500),
        call("memory_store", content="A note", tags=["a"], tier="short", metadata={"a": 1}),
        call("memory_why", query="invoices", id="known"),
        call("memory_graph", id="known", depth=2),
    ]


def changed(value: Any, chance: random.Random) -> Any:
    """Return JSON with one of its parts replaced, dropped or doubled, at any depth."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        rest = dict(value)
        if chance.random() < 0.15:
            del rest[key]
        elif chance.random() < 0.1:
            rest[chance.choice(["", "\ud800", "extra", key * 2])] = rest[key]
        else:
            rest[key] = changed(rest[key], chance)
        return rest
    if isinstance(value, list) and value and chance.random() < 0.5:
        return [*value[1:], changed(value[0], chance)]
    return chance.choice(ODD)


def damaged(line: bytes, chance: random.Random) -> bytes:
    """Return a line with bytes cut off, changed or put in, none of them the end of a line."""
    at = chance.randrange(len(line))
    put = bytes(chance.randbytes(chance.randrange(9)).replace(b"\n", b"").replace(b"\r", b""))
    return chance.choice([line[:at], line[:at] + put + line[at:], line[:at] + put + line[at + len(put) :]])


@pytest.mark.parametrize(
    "rounds", [pytest.param(15, id="short"), pytest.param(1_000, id="long", marks=pytest.mark.soak)]
)
def test_whatever_is_sent_is_answered_by_its_id_and_the_server_lives_on(project: Path, rounds: int) -> None:
    """A client that cuts an emoji in half, or a broken one, must not end what all others share."""
    chance = random.Random(20261122)
    with closing(Wire(project, LIMIT_S)) as wire:
        wire.greet()
        for number in range(rounds):
            lines, ids = [], set()
            for place in range(AT_ONCE):
                id_ = f"{number}.{place}"
                whole = chance.choice(requests())
                odd = changed(whole, chance)
                odd = {**(odd if isinstance(odd, dict) else {**whole, "params": odd}), "jsonrpc": "2.0", "id": id_}
                line = json.dumps(odd).encode()
                if chance.random() < 0.3:
                    line = damaged(line, chance)
                elif isinstance(odd.get("method"), str):
                    ids.add(id_)
                lines.append(line)
            wire.send(*lines)
            wire.say(request("ping", call_id=f"{number}.end"))
            waiting = ids | {f"{number}.end"}
            while waiting:
                answer = wire.hear()
                assert answer["jsonrpc"] == "2.0"
                assert ("result" in answer) != ("error" in answer)
                assert isinstance(answer.get("error", {"code": 0})["code"], int)
                waiting.discard(answer["id"] if isinstance(answer["id"], str) else "")
        assert structured(wire.ask(call("memory_get", "last", path="memory:known")))
        wire.end()
