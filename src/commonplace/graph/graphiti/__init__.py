"""Graphiti's MCP server as an outside backend of the graph: a client of ours, its tools, and what waits to be sent."""
