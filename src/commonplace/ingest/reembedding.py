"""Embed all that a store holds by another embedder, beside the old vectors; it knows no index and never switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from commonplace.errors import ProviderError
from commonplace.ingest.passages import passage_text
from commonplace.models.contract import TokenizedText
from commonplace.models.mixed import by_space
from commonplace.ranking.quantise import quantise

if TYPE_CHECKING:
    from commonplace.models.contract import Embedder
    from commonplace.store.contract import Store
    from commonplace.types import Embedding, IndexEntry, Progress

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
        vectors = _vectors(entries, embedder, store.embedding())
        store.put_reembedded(
            embedder.stamp, [(entry.number, vector) for entry, vector in zip(entries, vectors, strict=True)]
        )
        made += len(entries)
        if progress is not None and (now := store.reembedding()) is not None:
            progress("embedding passages", now.done, now.total)
    return Reembedded(made, resumed)


def _vectors(entries: list[IndexEntry], embedder: Embedder, held: Embedding | None) -> list[bytes]:
    """Return a vector for each passage: the old one where its kind keeps its embedder.

    One that the old embedder gave zeros has zeros: it is found by words alone.
    """
    vectors: dict[int, bytes] = {}
    wanted = []
    for entry in entries:
        own = embedder.stamp.of(entry.kind)
        stays = held is not None and held.of(entry.kind) == own
        vectors[entry.number] = entry.vector if stays else bytes(own.dimensions)
        if not entry.vector or (not stays and any(entry.vector)):
            wanted.append(entry)
    vectors |= made_vectors(wanted, embedder)
    return [vectors[entry.number] for entry in entries]


def made_vectors(entries: Sequence[IndexEntry], embedder: Embedder) -> dict[int, bytes]:
    """Return a new vector for each passage, by number; those of one embedder are made at once.

    Raises:
        ProviderError: an embedder returned something else.
    """
    made: dict[int, bytes] = {}
    for own in by_space(embedder):
        some = [entry for entry in entries if embedder.stamp.of(entry.kind) == own.stamp]
        made |= zip((entry.number for entry in some), _embedded(some, own), strict=True)
    return made


def _embedded(entries: Sequence[IndexEntry], embedder: Embedder) -> list[bytes]:
    if not entries:
        return []
    found = np.asarray(embedder.embed([_tokenized(entry) for entry in entries]))
    if found.shape != (len(entries), embedder.stamp.dimensions) or not np.isfinite(found).all():
        raise ProviderError(
            f"the embedder {embedder.stamp} returned something other than a vector for each of {len(entries)} texts"
        )
    return [row.tobytes() for row in quantise(found)]


def _tokenized(entry: IndexEntry) -> TokenizedText:
    text = passage_text(entry.title, entry.heading, entry.text)
    return TokenizedText(text, np.frombuffer(entry.token_ids, "<u2"))
