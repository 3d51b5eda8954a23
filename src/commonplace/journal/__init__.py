"""The memories as Markdown: kept in step with the store in both directions.

The store is the truth. A page is a projection of it that people may edit: what they change is taken in before
anything is written, and what only one side changed is taken from that side.
"""
