"""Serve the Model Context Protocol on standard input and output, without its SDK.

`eras` knows the wire, with `formats.jsonrpc` and `formats.framing`, `registry` what can be offered, `methods` what is
answered, `serving` when. None of them knows memories, and none imports more of the package than those and its errors.
"""

from commonplace.mcp.registry import (
    ClientInfo,
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
    ToolAnnotations,
    ToolResult,
)
from commonplace.mcp.server import Limits, serve

__all__ = [
    "ClientInfo",
    "Contents",
    "Context",
    "Limits",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "Registry",
    "Resource",
    "ResourceTemplate",
    "ServerInfo",
    "Tool",
    "ToolAnnotations",
    "ToolResult",
    "serve",
]
