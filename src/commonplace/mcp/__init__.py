"""The MCP server: the Model Context Protocol on standard input and output, without its SDK."""

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
