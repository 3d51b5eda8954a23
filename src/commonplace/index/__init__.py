"""The search index: derived from the store and rebuildable at any time."""
