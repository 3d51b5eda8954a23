"""Graphiti's MCP server as an external backend of the graph: client, outbox, delivery and queries."""
