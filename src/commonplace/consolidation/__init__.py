"""Consolidation: five agents that let memories fade, merge, rise and find each other, and tell of each act."""
