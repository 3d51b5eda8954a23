"""A server that offers toys, for clients of the protocol to try; started as a script, never collected."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from commonplace.errors import NotFoundError
from commonplace.mcp.protocol import CallContext, Offer, Registry, ToolResult
from commonplace.mcp.server import serve

LIMIT_S = 20
NOTHING = {"type": "object", "additionalProperties": False}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

cancelled = threading.Event()


def tool(
    name: str, title: str, description: str, schema: Mapping[str, Any], handler: Any, **more: Mapping[str, Any]
) -> Offer:
    form = {"name": name, "title": title, "description": description, "inputSchema": schema, **more}
    return Offer(form, handler)


def echo(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    return ToolResult({"text": arguments["text"], "version": context.terms.version})


def count(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    for number in range(arguments["to"]):
        context.progress(number + 1, arguments["to"], f"at {number + 1}")
    return ToolResult({"counted": arguments["to"]})


def wait(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    context.progress(1)
    if context.cancellation.wait(LIMIT_S):
        cancelled.set()
    return ToolResult({})


def was_cancelled(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    return ToolResult({"was_cancelled": cancelled.wait(LIMIT_S)})


def babble(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    """Print by every way there is."""
    print("printed")
    sys.stdout.write('{"jsonrpc": "2.0", "method": "written"}\n')
    os.write(1, b"from below\n")
    subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    read = sys.stdin.read(), subprocess.run(["cat"], capture_output=True, check=True).stdout.decode()
    return ToolResult({"read": list(read)})


def fail(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    raise NotFoundError("there is no toy 'x'", remedy="make one first")


def crash(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    raise ZeroDivisionError("secret")


def toys() -> list[Offer]:
    bear = {"uri": "toy://bear", "name": "bear", "title": "Bear", "description": "A bear", "mimeType": "text/plain"}
    return [Offer(bear, lambda *_: "brown")]


def play(arguments: Mapping[str, str], context: CallContext) -> str:
    return f"Play with {arguments['toy']}"


READS = {"readOnlyHint": True, "openWorldHint": False}
COUNTING = {
    "type": "object",
    "properties": {"to": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["to"],
    "additionalProperties": False,
}
TOY = {"name": "toy", "description": "Which toy", "required": True}
PLAY = {"name": "play", "title": "Play", "description": "Start a game", "arguments": [TOY]}
REGISTRY = Registry(
    *("toys", "0.1", "Toys", "Play gently."),
    (
        tool("echo", "Echo", "Say it again", TEXT, echo, outputSchema=TEXT, annotations=READS),
        tool("count", "Count", "Count up", COUNTING, count),
        tool("wait", "Wait", "Wait until it is cancelled", NOTHING, wait),
        tool("was_cancelled", "Was cancelled", "Tell whether waiting was cancelled", NOTHING, was_cancelled),
        tool("babble", "Babble", "Print", NOTHING, babble),
        tool("fail", "Fail", "Fail as foreseen", NOTHING, fail),
        tool("crash", "Crash", "Fail as not foreseen", NOTHING, crash),
    ),
    toys,
    (Offer(PLAY, play),),
)

if __name__ == "__main__":
    sys.exit(serve(REGISTRY))
