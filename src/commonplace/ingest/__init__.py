"""Indexing: discover files, cut them into passages, embed them and update the index."""
