"""Benchmarks that anyone can run again: retrieval quality, conversations, latency."""
