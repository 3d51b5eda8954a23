"""The journal: memories as Markdown pages, synchronised with the store in both directions.

The store is the source of truth. A page is a projection that people may edit: their edits are imported before pages are
written, and a change made on only one side is applied to the other.
"""
