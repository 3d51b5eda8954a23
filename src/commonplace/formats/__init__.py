"""Readers and writers of file formats and protocols: pure functions from and to our types."""
