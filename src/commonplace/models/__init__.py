"""Embedders, re-rankers and generators: text in, numbers or text out."""
