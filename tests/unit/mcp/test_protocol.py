"""A client gets the era and the version that it asks for, and both eras on one connection if it likes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.mcp.conversation import INFO, Talk, answers, line, request, resource, stateless, talking, tool

from commonplace.mcp.protocol import CallContext, Registry, ToolResult

SERVER = {"name": "toy", "title": "A toy", "version": "1.2.3"}
WHO = {"name": "who", "arguments": {}}


def who(arguments: Any, context: CallContext) -> ToolResult:
    return ToolResult({"version": context.terms.version, "client": context.terms.client})


REGISTRY = Registry(*INFO, (tool("who", "Who", "Tell who asks", {"type": "object"}, who),))


def told_of(answer: Any) -> Any:
    return answer["result"]["structuredContent"]


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2030-01-01", "2025-11-25"),
        ("1.0", "2025-11-25"),
    ],
)
def test_handshake_agrees_on_the_version_asked_for_or_on_our_newest(asked: str, spoken: str) -> None:
    """The stateless version has no handshake, so that asking for it here gets the newest that has one."""
    with talking(REGISTRY) as talk:
        assert talk.greet(asked) == {
            "protocolVersion": spoken,
            "capabilities": {"tools": {}},
            "serverInfo": SERVER,
            "instructions": "Ask the toy.",
        }
        assert told_of(talk.ask("tools/call", WHO)) == {"version": spoken, "client": "test"}


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 20250618}, {"protocolVersion": None}])
def test_handshake_without_a_version_is_invalid(params: Any) -> None:
    (answer,) = answers(REGISTRY, line("initialize", params))
    assert answer["error"]["code"] == -32602
    assert "protocolVersion" in answer["error"]["message"]


@pytest.mark.parametrize("told", [None, "me", {}, {"name": 1, "version": "2"}])
def test_client_need_not_say_who_it_is(told: Any) -> None:
    opening = line("initialize", {"protocolVersion": "2025-06-18", "clientInfo": told})
    assert told_of(answers(REGISTRY, opening, line("tools/call", WHO))[1])["client"] == ""


def test_second_handshake_opens_the_session_anew() -> None:
    with talking(REGISTRY) as talk:
        talk.greet("2024-11-05")
        talk.greet("2025-06-18")
        assert told_of(talk.ask("tools/call", WHO))["version"] == "2025-06-18"


def test_requests_before_the_handshake_are_refused_but_for_pings() -> None:
    """A method that does not exist is told as such: clients probe with one."""
    pong, refused, unknown = answers(REGISTRY, line("ping"), line("tools/list"), line("no/such"))
    assert pong["result"] == {}
    assert refused["error"]["code"] == -32602
    assert "send initialize first" in refused["error"]["message"]
    assert unknown["error"]["code"] == -32601


def test_requests_right_behind_the_handshake_are_served() -> None:
    """Clients may send on without waiting; the session is open from the handshake's answer on."""
    opening = line("initialize", {"protocolVersion": "2025-11-25"}, "a")
    assert [answer["id"] for answer in answers(REGISTRY, opening, line("tools/list", {}, "b"))] == ["a", "b"]


@pytest.mark.parametrize(
    "method",
    [
        "no/such",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "resources/subscribe",
        "logging/setLevel",
        "completion/complete",
        "tasks/list",
    ],
)
def test_what_is_not_offered_is_not_found_in_either_era(method: str) -> None:
    """Only what is declared may be used, and nothing but tools is."""
    with talking(REGISTRY) as talk:
        talk.greet()
        for params in ({}, stateless()):
            error = talk.ask(method, params)["error"]
            assert error == {"code": -32601, "message": f"Method not found: {method}"}


def test_discovery_tells_what_a_handshake_would() -> None:
    with talking(REGISTRY) as talk:
        assert talk.ask("server/discover", stateless())["result"] == {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "instructions": "Ask the toy.",
            "resultType": "complete",
            "ttlMs": 300_000,
            "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
        }


def test_stateless_request_needs_nothing_before_it_and_says_who_asks() -> None:
    with talking(REGISTRY) as talk:
        result = talk.ask("tools/call", stateless(WHO))["result"]
    assert result["structuredContent"] == {"version": "2026-07-28", "client": "test"}
    assert result["resultType"] == "complete"
    assert result["_meta"] == {"io.modelcontextprotocol/serverInfo": SERVER}
    assert "ttlMs" not in result


def test_nothing_is_inferred_from_an_earlier_request() -> None:
    """A second client on the same connection may leave out who it is."""
    nameless = stateless(WHO)
    del nameless["_meta"]["io.modelcontextprotocol/clientInfo"]
    with talking(REGISTRY) as talk:
        talk.ask("tools/call", stateless(WHO))
        assert told_of(talk.ask("tools/call", nameless))["client"] == ""


def test_both_eras_are_served_side_by_side() -> None:
    """A client whose probe timed out falls back to the handshake, and the late answer harms nothing."""
    with talking(REGISTRY) as talk:
        assert told_of(talk.ask("tools/call", stateless(WHO)))["version"] == "2026-07-28"
        talk.greet("2025-06-18")
        assert told_of(talk.ask("tools/call", WHO))["version"] == "2025-06-18"
        assert told_of(talk.ask("tools/call", stateless(WHO)))["version"] == "2026-07-28"


@pytest.mark.parametrize("version", ["2025-11-25", "1900-01-01", "2027-01-01"])
def test_version_without_requests_of_its_own_is_refused_with_those_that_have(version: str) -> None:
    with talking(REGISTRY) as talk:
        assert talk.ask("tools/list", stateless(version=version))["error"] == {
            "code": -32022,
            "message": "Unsupported protocol version",
            "data": {"supported": ["2026-07-28"], "requested": version},
        }


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"clientCapabilities": None}, "clientCapabilities is an object"),
        ({"protocolVersion": 2026}, "protocolVersion is a string"),
        ({"protocolVersion": None}, "protocolVersion is a string"),
    ],
)
def test_malformed_field_of_a_stateless_request_is_invalid(changed: dict[str, Any], told: str) -> None:
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in changed.items()}
    with talking(REGISTRY) as talk:
        error = talk.ask("tools/list", stateless(**meta))["error"]
    assert error["code"] == -32602
    assert told in error["message"]


def test_stateless_request_that_lacks_a_required_field_is_told_which() -> None:
    halved = stateless()
    del halved["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    with talking(REGISTRY) as talk:
        error = talk.ask("tools/list", halved)["error"]
        assert error["code"] == -32602
        assert error["message"] == "params._meta lacks io.modelcontextprotocol/clientCapabilities"
        for bare in ({}, {"_meta": {}}, {"_meta": 3}):
            error = talk.ask("server/discover", bare)["error"]
            assert error["code"] == -32602
            assert "protocolVersion and io.modelcontextprotocol/clientCapabilities" in error["message"]


def test_ping_belongs_to_sessions_alone() -> None:
    with talking(REGISTRY) as talk:
        assert talk.ask("ping", stateless())["error"]["code"] == -32601


def test_handshake_opens_a_session_even_with_stateless_fields() -> None:
    """There is no handshake in the stateless era that it could be meant as."""
    opening = stateless({"protocolVersion": "2025-06-18"})
    with talking(REGISTRY) as talk:
        assert talk.ask("initialize", opening)["result"]["protocolVersion"] == "2025-06-18"


def test_server_without_instructions_says_none() -> None:
    with talking(Registry("toy", "1", "Toy")) as talk:
        assert "instructions" not in talk.greet()
        assert talk.ask("server/discover", stateless())["result"]["capabilities"] == {}


def batch(talk: Talk, *values: Any) -> Any:
    talk.say(list(values))
    return talk.hear()


def test_batch_is_answered_as_a_batch_where_the_version_has_them() -> None:
    """Requests in any order, errors among them, notifications not at all."""
    with talking(REGISTRY) as talk:
        talk.greet("2025-03-26")
        told = batch(
            talk,
            request("tools/call", WHO, "slow"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            request("ping", call_id="quick"),
            request("no/such", call_id="wrong"),
            "nonsense",
        )
        by_id = {one["id"]: one for one in told}
        assert len(told) == len(by_id) == 4
        assert told_of(by_id["slow"])["version"] == "2025-03-26"
        assert by_id["quick"]["result"] == {}
        assert by_id["wrong"]["error"]["code"] == -32601
        assert by_id[None]["error"]["code"] == -32600


def test_batch_of_nothing_to_answer_is_not_answered() -> None:
    with talking(REGISTRY) as talk:
        talk.greet("2025-03-26")
        talk.say([{"jsonrpc": "2.0", "method": "notifications/initialized"}] * 2)
        assert talk.ask("ping")["result"] == {}


def test_empty_batch_is_one_invalid_request() -> None:
    with talking(REGISTRY) as talk:
        talk.greet("2025-03-26")
        assert batch(talk)["error"]["code"] == -32600


@pytest.mark.parametrize(
    "value", [request("initialize", {"protocolVersion": "2025-03-26"}), request("tools/list", stateless())]
)
def test_handshake_and_stateless_requests_cannot_be_part_of_a_batch(value: Any) -> None:
    with talking(REGISTRY) as talk:
        talk.greet("2025-03-26")
        refused, pong = batch(talk, value, request("ping", call_id=2))
        assert refused["error"]["code"] == -32600
        assert pong["result"] == {}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_batch_is_one_invalid_request_in_every_other_version(version: str) -> None:
    with talking(REGISTRY) as talk:
        talk.greet(version)
        error = batch(talk, request("ping"))
        assert (error["error"]["code"], error["id"]) == (-32600, None)
        assert "send one message a line" in error["error"]["message"]


@pytest.mark.parametrize(("params", "code"), [({}, -32002), (stateless(), -32602)])
def test_resource_that_is_not_there_has_the_code_of_its_era(params: dict[str, Any], code: int) -> None:
    """The old code must never reach a stateless client, and session clients look for it."""

    def read(*_: Any) -> str:
        raise AssertionError

    there = resource("toy://a", "a", "A", "The letter", read)
    with talking(Registry(*INFO, resources=lambda: (there,))) as talk:
        talk.greet()
        error = talk.ask("resources/read", {**params, "uri": "toy://b"})["error"]
        assert error == {"code": code, "message": "Resource not found: there is no toy://b", "data": {"uri": "toy://b"}}


def test_lists_may_be_kept_for_a_while_and_contents_not() -> None:
    there = resource("toy://a", "a", "A", "The letter", lambda uri, context: "x")
    registry = Registry(*INFO, REGISTRY.tools, resources=lambda: (there,))
    kept = {}
    with talking(registry) as talk:
        for method in ("tools/list", "resources/list", "resources/templates/list", "resources/read"):
            result = talk.ask(method, stateless({"uri": "toy://a"}))["result"]
            kept[method] = (result["ttlMs"], result["cacheScope"])
    assert kept == {
        "tools/list": (300_000, "public"),
        "resources/templates/list": (300_000, "public"),
        "resources/list": (0, "private"),
        "resources/read": (0, "private"),
    }
