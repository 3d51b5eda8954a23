"""What tools, resources and prompts answer, and what a model or a client is told when they cannot."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.unit.mcp.conversation import INFO, Talk, prompt, resource, talking, tool

from commonplace.errors import NotFoundError, StoreBusyError, UsageError
from commonplace.formats.jsonrpc import MAX_MESSAGE_LENGTH
from commonplace.mcp.protocol import CallContext, Offer, Registry, ToolResult

READS = {"readOnlyHint": True, "openWorldHint": False}
ADDING = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "description": "the other"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def add(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    return ToolResult({"sum": arguments["a"] + arguments["b"]})


def fail(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    match arguments.get("how"):
        case "busy":
            raise StoreBusyError("the store is busy", remedy="try again")
        case "defect":
            raise KeyError("secret")
        case "long":
            raise StoreBusyError("x" * 1_000_000, remedy="try again")
        case "unwritable":
            return ToolResult({"when": object()})
    return ToolResult(text="there is no such memory; search for it", is_error=True)


def read(uri: str, context: CallContext) -> str:
    match uri.removeprefix("toy://"):
        case "never":
            raise NotFoundError("there is no day 'never'")
        case "wrong":
            raise UsageError("a day is written 2026-05-04")
        case "busy":
            raise StoreBusyError("the store is busy")
        case "defect":
            raise KeyError("secret")
    return f"read from {uri}"


def guide(arguments: Mapping[str, str], context: CallContext) -> str:
    if arguments["topic"] == "busy":
        raise StoreBusyError("the store is busy")
    return f"About {arguments['topic']}"


TOOLS = (
    tool("add", "Add", "Add two numbers", ADDING, add, outputSchema=SUM, annotations=READS),
    tool("fail", "Fail", "Fail", {"type": "object"}, fail),
)
RESOURCES = (
    resource("toy://a b", "a", "A", "The letter", read, "text/plain"),
    *(resource(f"toy://{name}", name, "Day", "A day", read) for name in ("never", "wrong", "busy", "defect")),
)
PROMPTS = (prompt("guide", "Guide", "Explain", guide, ("topic", "What of", True), ("tone", "How", False)),)
REGISTRY = Registry(*INFO, TOOLS, lambda: RESOURCES, PROMPTS)


@pytest.fixture
def talk() -> Iterator[Talk]:
    with talking(REGISTRY) as opened:
        assert opened.greet()["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
        yield opened


def call(talk: Talk, name: str, arguments: Any) -> Any:
    return talk.ask("tools/call", {"name": name, "arguments": arguments})


def test_tools_are_listed_in_order_with_all_that_is_said_of_them(talk: Talk) -> None:
    assert talk.ask("tools/list")["result"] == {
        "tools": [
            {
                "name": "add",
                "title": "Add",
                "description": "Add two numbers",
                "inputSchema": ADDING,
                "outputSchema": SUM,
                "annotations": {"readOnlyHint": True, "openWorldHint": False},
            },
            {"name": "fail", "title": "Fail", "description": "Fail", "inputSchema": {"type": "object"}},
        ]
    }


def test_result_of_a_tool_is_given_as_an_object_and_as_text(talk: Talk) -> None:
    """Clients and versions that know no structured results read the text."""
    assert call(talk, "add", {"a": 1, "b": 2.0})["result"] == {
        "content": [{"type": "text", "text": '{"sum":3}'}],
        "structuredContent": {"sum": 3},
    }


def test_arguments_that_do_not_fit_are_told_to_the_model(talk: Talk) -> None:
    """A protocol error would reach only the client, and the model would not learn what to mend."""
    assert call(talk, "add", {"a": "1", "c": 3})["result"] == {
        "content": [
            {
                "type": "text",
                "text": "add was not run:\n- b is missing (the other)\n"
                '- a is "1"; give an integer\n- c is not known here; there are a, b\nCorrect this and call it again.',
            }
        ],
        "isError": True,
    }


def test_no_more_than_five_problems_are_told(talk: Talk) -> None:
    text = call(talk, "add", {f"x{number}": 0 for number in range(50)})["result"]["content"][0]["text"]
    assert text.count("\n- ") == 5


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("told", "there is no such memory; search for it"),
        ("busy", "the store is busy; try again"),
        ("defect", "fail failed unexpectedly (KeyError); other arguments or a later call may work"),
    ],
)
def test_tool_that_fails_tells_the_model_what_to_do(
    talk: Talk, how: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A defect of ours is told by its kind alone and logged in full: its message may hold what is stored."""
    with caplog.at_level(logging.ERROR):
        result = call(talk, "fail", {"how": how})["result"]
    assert result == {"content": [{"type": "text", "text": text}], "isError": True}
    assert [record.exc_info is not None for record in caplog.records] == [True] * (how == "defect")


@pytest.mark.parametrize(
    ("method", "params", "end"),
    [
        ("tools/call", {"name": "add", "arguments": {"x" * 1_000_000: 1}}, "Correct this and call it again."),
        ("tools/call", {"name": "fail", "arguments": {"how": "long"}}, "; try again"),
        ("tools/call", {"name": "x" * 1_000_000}, "; there are add, fail"),
        ("resources/read", {"uri": "x" * 1_000_000}, "xxx"),
        ("prompts/get", {"name": "x" * 1_000_000}, "; there are guide"),
        ("x" * 1_000_000, {}, "xxx"),
    ],
)
def test_message_that_repeats_something_huge_is_cut_in_its_middle(
    talk: Talk, method: str, params: Any, end: str
) -> None:
    """A model reads it all, and the remedy stands at its end."""
    answer = talk.ask(method, params)
    told = answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]
    assert len(told) <= MAX_MESSAGE_LENGTH
    assert "…" in told
    assert told.endswith(end)


def test_result_that_is_no_json_is_an_internal_error(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = call(talk, "fail", {"how": "unwritable"})["error"]
    assert error == {"code": -32603, "message": "tools/call failed unexpectedly (TypeError)"}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, "Unknown tool: None; there are add, fail"),
        ({"name": "sub"}, "Unknown tool: sub; there are add, fail"),
        ({"name": ["add"]}, "Unknown tool: ['add']; there are add, fail"),
        ({"name": "add", "arguments": [1, 2]}, "the arguments of a tool are an object"),
        ({"name": "add", "arguments": "{}"}, "the arguments of a tool are an object"),
    ],
)
def test_call_that_is_none_is_a_protocol_error(talk: Talk, params: Any, told: str) -> None:
    assert talk.ask("tools/call", params)["error"] == {"code": -32602, "message": told}


@pytest.mark.parametrize("params", [{"name": "fail"}, {"name": "fail", "arguments": None}])
def test_arguments_may_be_left_out(talk: Talk, params: Any) -> None:
    assert "no such memory" in talk.ask("tools/call", params)["result"]["content"][0]["text"]


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
def test_cursor_that_we_never_gave_out_is_invalid(talk: Talk, method: str) -> None:
    for cursor in ("", "2", 2):
        assert talk.ask(method, {"cursor": cursor})["error"]["code"] == -32602
    assert "nextCursor" not in talk.ask(method, {"cursor": None})["result"]


def test_resources_are_listed_and_read(talk: Talk) -> None:
    listed = talk.ask("resources/list")["result"]["resources"]
    assert listed[0] == {
        "uri": "toy://a b",
        "name": "a",
        "title": "A",
        "description": "The letter",
        "mimeType": "text/plain",
    }
    assert len(listed) == len(RESOURCES)
    assert talk.ask("resources/read", {"uri": "toy://a b"})["result"] == {
        "contents": [{"uri": "toy://a b", "mimeType": "text/plain", "text": "read from toy://a b"}]
    }


def test_there_are_no_templates_of_resources(talk: Talk) -> None:
    assert talk.ask("resources/templates/list")["result"] == {"resourceTemplates": []}


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("toy://b", -32002),
        ("toy://never", -32002),
        ("toy://wrong", -32602),
        ("toy://busy", -32603),
        (None, -32602),
        (["toy://a b"], -32602),
    ],
)
def test_resource_that_cannot_be_read_is_an_error_of_its_kind(talk: Talk, uri: Any, code: int) -> None:
    assert talk.ask("resources/read", {"uri": uri})["error"]["code"] == code


def test_defect_in_a_resource_is_told_by_its_kind_alone(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = talk.ask("resources/read", {"uri": "toy://defect"})["error"]
    assert error == {"code": -32603, "message": "resources/read failed unexpectedly (KeyError)"}
    assert caplog.records[0].exc_info is not None


def test_resources_are_asked_for_anew_each_time() -> None:
    """A note of today is there today without a restart."""
    there: list[Offer] = []
    with talking(Registry(*INFO, resources=lambda: there)) as talk:
        talk.greet()
        assert talk.ask("resources/list")["result"]["resources"] == []
        there.append(RESOURCES[0])
        assert len(talk.ask("resources/list")["result"]["resources"]) == 1


def test_resources_that_cannot_be_listed_now_are_told_why() -> None:
    def busy() -> list[Offer]:
        raise StoreBusyError("the store is busy", remedy="try again")

    with talking(Registry(*INFO, resources=busy)) as talk:
        talk.greet()
        assert talk.ask("resources/list")["error"] == {"code": -32603, "message": "the store is busy; try again"}


def test_prompts_are_listed_and_filled_in(talk: Talk) -> None:
    assert talk.ask("prompts/list")["result"]["prompts"] == [
        {
            "name": "guide",
            "title": "Guide",
            "description": "Explain",
            "arguments": [
                {"name": "topic", "description": "What of", "required": True},
                {"name": "tone", "description": "How", "required": False},
            ],
        }
    ]
    assert talk.ask("prompts/get", {"name": "guide", "arguments": {"topic": "tea"}})["result"] == {
        "description": "Explain",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "About tea"}},
        ],
    }


@pytest.mark.parametrize(
    ("params", "code", "told"),
    [
        ({"name": "x"}, -32602, "Unknown prompt: x; there are guide"),
        ({}, -32602, "Unknown prompt: None; there are guide"),
        ({"name": "guide"}, -32602, "the prompt guide needs topic"),
        ({"name": "guide", "arguments": {"topic": 1}}, -32602, "the arguments of a prompt are an object of strings"),
        ({"name": "guide", "arguments": ["tea"]}, -32602, "the arguments of a prompt are an object of strings"),
        ({"name": "guide", "arguments": {"topic": "busy"}}, -32603, "the store is busy"),
    ],
)
def test_prompt_that_cannot_be_filled_in_is_told_why(talk: Talk, params: Any, code: int, told: str) -> None:
    assert talk.ask("prompts/get", params)["error"] == {"code": code, "message": told}
