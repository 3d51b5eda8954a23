"""The ledger: changes and proposals of consolidation as issues that can be claimed, closed and undone."""
