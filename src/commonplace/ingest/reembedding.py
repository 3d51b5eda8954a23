"""Embed all that a store holds by another embedder, beside the old vectors; it knows no index and never switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from commonplace.errors import ProviderError
from commonplace.ingest.passages import passage_text
from commonplace.models.contract import TokenizedText
from commonplace.ranking.quantise import quantise

if TYPE_CHECKING:
    from commonplace.models.contract import Embedder
    from commonplace.store.contract import Store
    from commonplace.types import IndexEntry, Progress

BATCH: Final = 256
"""So many passages are embedded between two transactions; a process that is killed loses no more."""


@dataclass(frozen=True, slots=True)
class Reembedded:
    """What was done: passages that got their vector now, and those that had it from a run before."""

    made: int
    resumed: int


def reembed(store: Store, embedder: Embedder, progress: Progress | None = None) -> Reembedded:
    """Give every passage that lacks one a vector of the next embedder, until none does at that moment.

    Raises:
        ModelError: the data of the embedder are missing or damaged.
        ProviderError: a remote embedder did not answer; what was made is kept.
        StoreError: the store cannot be written, or another process changes it to another embedder.
    """
    store.begin_reembedding(embedder.stamp)
    begun = store.reembedding()
    resumed = begun.done if begun else 0
    made = 0
    while entries := store.unembedded(BATCH):
        vectors = _vectors(entries, embedder)
        store.put_reembedded(
            embedder.stamp, [(entry.number, vector) for entry, vector in zip(entries, vectors, strict=True)]
        )
        made += len(entries)
        if progress is not None and (now := store.reembedding()) is not None:
            progress("embedding passages", now.done, now.total)
    return Reembedded(made, resumed)


def _vectors(entries: list[IndexEntry], embedder: Embedder) -> list[bytes]:
    """Return a vector for each passage; zeros for one that the old embedder gave zeros: it is found by words alone."""
    vectors = np.zeros((len(entries), embedder.stamp.dimensions), np.int8)
    places = [place for place, entry in enumerate(entries) if any(entry.vector)]
    if places:
        texts = [_tokenized(entries[place]) for place in places]
        found = np.asarray(embedder.embed(texts))
        if found.shape != (len(texts), embedder.stamp.dimensions) or not np.isfinite(found).all():
            raise ProviderError(
                f"the embedder {embedder.stamp} returned something other than a vector for each of {len(texts)} texts"
            )
        vectors[places] = quantise(found)
    return [row.tobytes() for row in vectors]


def _tokenized(entry: IndexEntry) -> TokenizedText:
    text = passage_text(entry.title, entry.heading, entry.text)
    return TokenizedText(text, np.frombuffer(entry.token_ids, "<u2"))
