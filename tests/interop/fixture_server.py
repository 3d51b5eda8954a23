"""Offer, through our protocol core, the tools, resources and prompts that the official conformance suite calls."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.errors import UsageError
from commonplace.mcp import (
    Contents,
    Context,
    Prompt,
    PromptArgument,
    PromptMessage,
    Registry,
    Resource,
    ResourceTemplate,
    ServerInfo,
    Tool,
    ToolResult,
    serve,
)

NOTHING = {"type": "object", "properties": {}}


def simple(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    return ToolResult(text="This is a simple text response for testing.")


def failing(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    raise UsageError("This tool intentionally returns an error for testing")


def progressing(arguments: Mapping[str, Any], context: Context) -> ToolResult:
    for done in (0, 50, 100):
        context.progress(done, 100, f"Completed step {done} of 100")
    return ToolResult(text="done")


def text(uri: str, variables: Mapping[str, str], context: Context) -> Contents:
    return Contents("This is the content of the static text resource.", "text/plain")


def binary(uri: str, variables: Mapping[str, str], context: Context) -> Contents:
    return Contents(b"\x89PNG\r\n\x1a\n", "image/png")


def templated(uri: str, variables: Mapping[str, str], context: Context) -> Contents:
    return Contents(f'{{"id": "{variables["id"]}", "templateTest": true}}', "application/json")


def plain(arguments: Mapping[str, str], context: Context) -> Sequence[PromptMessage]:
    return [PromptMessage("This is a simple prompt for testing.")]


def filled(arguments: Mapping[str, str], context: Context) -> Sequence[PromptMessage]:
    told = f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'"
    return [PromptMessage(told)]


REGISTRY = Registry(
    ServerInfo("fixtures", "0", "Fixtures"),
    (
        Tool("test_simple_text", "Text", "Answer a text", NOTHING, simple),
        Tool("test_error_handling", "Error", "Fail", NOTHING, failing),
        Tool("test_tool_with_progress", "Progress", "Tell of progress", NOTHING, progressing),
    ),
    lambda: (
        Resource("test://static-text", "text", "Text", "A text", text, "text/plain"),
        Resource("test://static-binary", "binary", "Binary", "An image", binary, "image/png"),
    ),
    (ResourceTemplate("test://template/{id}/data", "template", "Template", "Data", templated, "application/json"),),
    (
        Prompt("test_simple_prompt", "Plain", "A plain prompt", plain),
        Prompt(
            "test_prompt_with_arguments",
            "Filled",
            "A prompt with arguments",
            filled,
            (PromptArgument("arg1", "first", True), PromptArgument("arg2", "second", True)),
        ),
    ),
)

if __name__ == "__main__":
    sys.exit(serve(REGISTRY))
