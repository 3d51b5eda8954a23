"""The store: the source of truth, in SQLite."""
