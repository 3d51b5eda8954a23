"""Formulas of ranking: pure functions over arrays, each with its source."""
