"""Erasure: select what to delete, erase it and its copies, and verify that nothing is left."""
