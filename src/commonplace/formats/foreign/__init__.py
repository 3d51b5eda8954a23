"""Readers of other systems' memory files, all into one neutral form."""
