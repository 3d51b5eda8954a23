"""Forgetting: what goes, where its traces may be, and the proof that none is left.

A run chooses what goes, collects needles (bytes that would betray it), erases in one transaction, lets everything
that is derived be made anew, and then looks for the needles in every file of the store.
"""
