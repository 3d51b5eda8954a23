"""Consolidation: five agents that let memories fade, merge, rise and find each other, and leave an issue of each act."""
