"""Readers and writers of file formats and protocols: pure functions to and from our types."""
