"""Offer, through our protocol core, the tools, resources and prompts that the official conformance suite calls."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from commonplace.errors import UsageError
from commonplace.mcp.protocol import CallContext, Offer, Registry, ToolResult
from commonplace.mcp.server import serve

NOTHING = {"type": "object", "properties": {}}


def tool(name: str, title: str, description: str, schema: Mapping[str, Any], handler: Any) -> Offer:
    form = {"name": name, "title": title, "description": description, "inputSchema": schema}
    return Offer(form, handler)


def prompt(name: str, title: str, description: str, handler: Any, *arguments: tuple[str, str, bool]) -> Offer:
    listed = [dict(zip(("name", "description", "required"), each, strict=True)) for each in arguments]
    return Offer({"name": name, "title": title, "description": description, "arguments": listed}, handler)


def simple(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    return ToolResult(text="This is a simple text response for testing.")


def failing(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    raise UsageError("This tool intentionally returns an error for testing")


def progressing(arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
    for done in (0, 50, 100):
        context.progress(done, 100, f"Completed step {done} of 100")
    return ToolResult(text="done")


def text(uri: str, context: CallContext) -> str:
    return "This is the content of the static text resource."


def plain(arguments: Mapping[str, str], context: CallContext) -> str:
    return "This is a simple prompt for testing."


def filled(arguments: Mapping[str, str], context: CallContext) -> str:
    return f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"


REGISTRY = Registry(
    *("fixtures", "0", "Fixtures", ""),
    (
        tool("test_simple_text", "Text", "Answer a text", NOTHING, simple),
        tool("test_error_handling", "Error", "Fail", NOTHING, failing),
        tool("test_tool_with_progress", "Progress", "Tell of progress", NOTHING, progressing),
    ),
    lambda: (Offer({"uri": "test://static-text", "name": "text", "title": "Text", "mimeType": "text/plain"}, text),),
    (
        prompt("test_simple_prompt", "Plain", "A plain prompt", plain),
        prompt(
            "test_prompt_with_arguments",
            "Filled",
            "A prompt with arguments",
            filled,
            ("arg1", "first", True),
            ("arg2", "second", True),
        ),
    ),
)

if __name__ == "__main__":
    sys.exit(serve(REGISTRY))
