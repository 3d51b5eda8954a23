"""Benchmarks for those who work on Commonplace; see README.md."""
