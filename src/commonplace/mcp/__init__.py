"""Serve the Model Context Protocol on standard input and output, without its SDK.

`jsonrpc`, `framing` and `eras` know the wire, `registry` what can be offered, `methods` what is answered, `serving`
when. None of them knows memories, and none imports more of the package than its errors.
"""

from commonplace.mcp.eras import ClientInfo
from commonplace.mcp.registry import (
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
from commonplace.mcp.serving import Limits, serve

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
