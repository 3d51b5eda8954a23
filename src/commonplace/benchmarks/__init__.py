"""Reproducible benchmarks: retrieval quality, conversations, recall of personal memories, latency.

A wrong file, option or directory raises `UsageError`; a measured process that fails raises `CommonplaceError`.
"""
