"""Memories: how they are taken in, changed, used and put away."""
