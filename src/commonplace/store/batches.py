"""What every store does with writes before it writes: refuse what cannot be kept, drop what is overwritten.

It knows no backend.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from commonplace.errors import EmbedderMismatchError, StoreError, UsageError
from commonplace.store.memory_contract import MirroredPage, Note
from commonplace.types import Embedding, Link, MemoryRecord, MemoryWrite, NewPassage, Owner, OwnerWrite

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
            check_write(write, embedding)
            kept.append(write)
    kept.reverse()
    return kept


def check_write(write: OwnerWrite, embedding: Embedding | None) -> None:
    """Refuse a write that cannot be kept; see `settle`."""
    _check_owner(write.owner, write.passages)
    _refuse_foreign_vectors(write, embedding)


def upgrade_command(name: str) -> str:
    """Return the command that changes a store's embedder, for messages."""
    return f"`commonplace index upgrade --embedder {name}`"


def refuse_reembedding(held: Embedding | None, wanted: Embedding, passages: int) -> None:
    """Refuse to stamp a store with an embedder that did not make its vectors.

    Raises:
        StoreError: the store holds passages, and `held` is not `wanted`.
    """
    if passages and held != wanted:
        maker = f"made by {held}" if held else "of an unknown embedder"
        raise StoreError(
            f"the store holds {passages} passages {maker}, not by {wanted}",
            remedy=f"open it with the embedder it was built with, or run {upgrade_command(wanted.name)}",
        )


def refuse_other_maker(held: Embedding | None, made_by: Embedding | None) -> None:
    """Refuse vectors of another embedder than made the stored ones; without a stamp, or without vectors, refuse none.

    Raises:
        EmbedderMismatchError: the store changed its embedder after they were made.
    """
    if held is not None and made_by is not None and held != made_by:
        raise EmbedderMismatchError(
            f"the store changed its embedder from {made_by} to {held} meanwhile, and nothing was written",
            remedy="try again",
        )


def refuse_same_embedding(held: Embedding | None, wanted: Embedding) -> None:
    """Refuse to change an embedder to itself.

    Raises:
        StoreError: the store's vectors are of that embedder.
    """
    if held == wanted:
        raise StoreError(f"the vectors of the store are made by {wanted} already")


def refuse_other_reembedding(under_way: Embedding | None, wanted: Embedding) -> None:
    """Refuse vectors for a change of embedder that is not under way.

    Raises:
        StoreError: another one is, or none.
    """
    if under_way != wanted:
        found = f"is under way to {under_way}" if under_way else "is over"
        raise StoreError(f"a change of the store's embedder {found}, not to {wanted}", remedy="begin it again")


def refuse_unfit_vectors(embedding: Embedding, vectors: Sequence[bytes]) -> None:
    """Refuse vectors of another length than an embedder's.

    Raises:
        StoreError: naming the length.
    """
    for vector in vectors:
        if len(vector) not in {space.dimensions for space in embedding.spaces}:
            raise StoreError(
                f"a vector has {len(vector)} dimensions, those of {embedding.name} have {embedding.dimensions}"
            )


def new_token() -> bytes:
    """Return eight random bytes that tell a change from any other one with its number."""
    return os.urandom(8)


def snapshot_is_written() -> StoreError:
    """Return the error for a write inside a snapshot of the same thread: nobody could say which state it would see."""
    return StoreError("a thread that reads from a snapshot cannot write", remedy="write after the snapshot's block")


def change_is_under_way() -> StoreError:
    """Return the error for a write beside a change of memories of the same thread: it would wait for itself."""
    return StoreError(
        "a thread that changes memories cannot write in another way", remedy="write after the change's block"
    )


def change_is_over() -> StoreError:
    """Return the error for a use of a change of memories after its block: it would belong to no transaction."""
    return StoreError("this change of memories is over", remedy="begin another one")


def live_version_exists(id_: str) -> StoreError:
    """Return the error for a version of a memory beside a live one: nobody could say which is the truth."""
    return StoreError(f"there is a live version of memory {id_!r}", remedy="expire it first")


def not_latest(number: int) -> StoreError:
    """Return the error for the revival of what is not the latest version of a memory here."""
    return StoreError(f"version {number} is not the latest of a memory", remedy="revive the latest one")


def check_memory(write: MemoryWrite, embedding: Embedding | None, created_at: float, expired_at: float | None) -> None:
    """Refuse a version of a memory that a store cannot keep; its position must be the one that it will have.

    Raises:
        UsageError: its owner is of another kind or of a file, or a number does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    if owner.kind != "memory" or owner.path or owner.stamp:
        what = f"of the file {owner.path!r}" if owner.kind == "memory" else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {what}, not a memory", remedy="put it as an owner")
    check_write(OwnerWrite(owner, write.passages), embedding)
    check_record(owner.id, write.record)
    name = f"memory {owner.id!r}"
    refuse_wide(name, *write.bands)
    check_times(name, created_at, expired_at, *(end for date in write.dates for end in date))


def check_record(name: str, record: MemoryRecord) -> None:
    """Refuse a record with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"memory {name!r}"
    refuse_wide(name, record.version, record.use_count, record.review_count)
    check_times(name, record.born_at, record.last_used, record.promoted_at, *record.uses)
    if math.isnan(record.trust) or math.isnan(record.strength):
        raise UsageError(f"trust or strength of {name} is not a number", remedy="give numbers")


def check_entry(entry: Link | MirroredPage | Note) -> None:
    """Refuse a link, page or note with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    if isinstance(entry, MirroredPage):
        refuse_wide(f"page {entry.page!r}", entry.size, entry.mtime_ns)
    elif isinstance(entry, Note):
        check_times(f"{entry.kind} {entry.id!r}", entry.at)
    else:
        name = f"the link from {entry.source!r} to {entry.target!r}"
        check_times(name, entry.created_at)
        if math.isnan(entry.strength):
            raise UsageError(f"the strength of {name} is not a number", remedy="give a number")


def check_times(name: object, *times: float | None) -> None:
    """Refuse a time that is not a number; None and the infinities are times.

    Args:
        name: what it is of, put into words only where it is refused.

    Raises:
        UsageError: one is NaN.
    """
    if any(time is not None and math.isnan(time) for time in times):
        raise UsageError(f"a time of {name} is not a number", remedy="give seconds since the epoch")


def _check_owner(owner: Owner, passages: Sequence[NewPassage]) -> None:
    name = f"{owner.kind} {owner.id!r}"
    check_times(name, owner.at)
    refuse_wide(name, owner.position)
    if owner.stamp:
        refuse_wide(name, owner.stamp.size, owner.stamp.mtime_ns)
    for passage in passages:
        refuse_wide(name, passage.chunk.start_line, passage.chunk.end_line)


def refuse_wide(name: object, *integers: int) -> None:
    """Refuse an integer beyond 64 bits.

    Raises:
        UsageError: naming it.
    """
    for integer in integers:
        if not -_INT64 <= integer < _INT64:
            raise UsageError(f"{integer} in {name} needs more than 64 bits; the limit is 2^63 - 1")


def _refuse_foreign_vectors(write: OwnerWrite, embedding: Embedding | None) -> None:
    """Refuse a vector of another length than the embedder's; an empty one is made later."""
    if embedding is None:
        return
    own = embedding.of(write.owner.kind)
    for passage in write.passages:
        if passage.vector and len(passage.vector) != own.dimensions:
            raise StoreError(
                f"the vector of passage {passage.id!r} has {len(passage.vector)} dimensions, the store's embedder"
                f" {own.name} has {own.dimensions}",
                remedy="embed with the embedder of the store",
            )
