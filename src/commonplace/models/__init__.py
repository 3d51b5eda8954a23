"""Embedders, re-rankers and language models."""
