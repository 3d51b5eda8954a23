"""Benchmarks that anyone can run again: retrieval quality, conversations, latency.

A file, an option or a directory that is wrong is a `UsageError`; a measured process that failed a `CommonplaceError`.
"""
