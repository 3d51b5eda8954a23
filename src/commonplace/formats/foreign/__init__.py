"""Readers of the memory files of other systems, all into one neutral form."""
