"""What every store does with a batch of writes before it writes: refuse what cannot be kept, drop what is overwritten.

It knows no backend.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from commonplace.errors import StoreError, UsageError
from commonplace.types import Embedding, OwnerWrite

_INT64 = 2**63


def settle(writes: Sequence[OwnerWrite], embedding: Embedding | None) -> list[OwnerWrite]:
    """Return the writes that are to happen, in the order given.

    Of writes with the same kind and id, or the same kind and non-empty path, the last one counts.

    Args:
        embedding: the stamp of the store; with it, each vector must have one byte a dimension.

    Raises:
        UsageError: a number does not fit a store (a time that is not a number, an integer beyond 64 bits).
        StoreError: a vector is not of the store's embedder.
    """
    seen: set[tuple[str, str, str]] = set()
    kept: list[OwnerWrite] = []
    for write in reversed(writes):
        owner = write.owner
        keys = {("id", owner.kind, owner.id)} | ({("path", owner.kind, owner.path)} if owner.path else set())
        if seen.isdisjoint(keys):
            seen |= keys
            _refuse_unfit_numbers(write)
            _refuse_foreign_vectors(write, embedding)
            kept.append(write)
    kept.reverse()
    return kept


def refuse_reembedding(held: Embedding | None, wanted: Embedding, passages: int) -> None:
    """Refuse to stamp a store with an embedder that did not make its vectors.

    Raises:
        StoreError: the store holds passages, and `held` is not `wanted`.
    """
    if passages and held != wanted:
        maker = f"made by {held}" if held else "of an unknown embedder"
        raise StoreError(
            f"the store holds {passages} passages {maker}, not by {wanted}",
            remedy="open it with the embedder it was built with, or index into a new store",
        )


def new_token() -> bytes:
    """Return eight random bytes that tell a change from any other one with its number."""
    return os.urandom(8)


def snapshot_is_written() -> StoreError:
    """Return the error for a write inside a snapshot of the same thread: nobody could say which state it would see."""
    return StoreError("a thread that reads from a snapshot cannot write", remedy="write after the snapshot's block")


def _refuse_unfit_numbers(write: OwnerWrite) -> None:
    owner = write.owner
    if owner.at is not None and math.isnan(owner.at):
        raise UsageError(f"the time of {owner.kind} {owner.id!r} is not a number", remedy="give seconds or None")
    integers = [owner.position]
    if owner.stamp:
        integers += [owner.stamp.size, owner.stamp.mtime_ns]
    for passage in write.passages:
        integers += [passage.chunk.start_line, passage.chunk.end_line]
    for integer in integers:
        if not -_INT64 <= integer < _INT64:
            raise UsageError(f"{integer} in {owner.kind} {owner.id!r} needs more than 64 bits; the limit is 2^63 - 1")


def _refuse_foreign_vectors(write: OwnerWrite, embedding: Embedding | None) -> None:
    if embedding is None:
        return
    for passage in write.passages:
        if len(passage.vector) != embedding.dimensions:
            raise StoreError(
                f"the vector of passage {passage.id!r} has {len(passage.vector)} dimensions, the store's embedder"
                f" {embedding.name} has {embedding.dimensions}",
                remedy="embed with the embedder of the store",
            )
