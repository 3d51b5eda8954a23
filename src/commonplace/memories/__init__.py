"""Memories: how they are taken in, changed, used and put away. It knows the store and the write path, no Markdown."""
