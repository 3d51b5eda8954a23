"""Memories: add, update, use, archive, link."""
