"""Recognise text that is a passage of the store already: what a search returned must not come back as a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.search.request import MAX_QUERY_CHARACTERS, Request
from commonplace.search.result import reference
from commonplace.text.alike import contained_share
from commonplace.types import Filter

if TYPE_CHECKING:
    from commonplace.search.pipeline import Searcher
    from commonplace.store.contract import Store

FEWEST_WORDS = 8
"""A shorter text may well stand in a file by chance."""
LEAST_SHARE = 0.9
_PASSAGES = 5
_QUERY_CHARACTERS = 2_000


class Recogniser:
    """Finds the artifact or knowledge that a text was taken from. It only reads."""

    def __init__(self, store: Store, searcher: Searcher, namespace: str) -> None:
        self._store = store
        self._searcher = searcher
        self._namespace = namespace

    def source_of(self, text: str) -> str:
        """Return the reference of the stored passage that holds at least nine tenths of a text, "" where none does."""
        if len(text.split(maxsplit=FEWEST_WORDS)) < FEWEST_WORDS or len(text) > MAX_QUERY_CHARACTERS:
            return ""
        counts = self._store.counts(self._namespace)
        if not counts["artifacts"] and not counts["knowledge"]:
            return ""
        request = Request(
            query=text[:_QUERY_CHARACTERS],
            namespace=self._namespace,
            limit=_PASSAGES,
            method="bm25",
            wanted=Filter(kinds=("artifact", "knowledge")),
            min_score=0.0,
            stage1_limit=_PASSAGES,
            per_owner=_PASSAGES,
        )
        hits = self._searcher.search(request).hits
        for hit in hits:
            if contained_share(text, hit.text) >= LEAST_SHARE:
                return reference(hit)
        # A recalled text may be several passages, one after the other.
        together = "\n".join(hit.text for hit in hits)
        return reference(hits[0]) if hits and contained_share(text, together) >= LEAST_SHARE else ""
