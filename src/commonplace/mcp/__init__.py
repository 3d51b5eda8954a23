"""The MCP server: the Model Context Protocol on standard input and output, without its SDK."""
