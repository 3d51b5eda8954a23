"""What the server offers of a store: eight tools, the pages of notes, and a prompt. It holds no rule about memory."""

from commonplace.mcp.memory.offering import Host, registry_of

__all__ = ["Host", "registry_of"]
