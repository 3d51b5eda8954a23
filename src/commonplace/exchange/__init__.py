"""Backup and restore, export and import of whole namespaces."""
