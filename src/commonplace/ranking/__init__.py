"""Ranking formulas: pure functions over arrays, each with its source."""
