"""Stores: the truth, kept in SQLite or, for reference and tests, in memory."""
