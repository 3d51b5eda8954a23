"""The ledger: what consolidation did or proposes, as issues that anyone may read, claim, close and undo."""
