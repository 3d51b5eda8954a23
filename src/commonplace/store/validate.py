"""Validate owners, passages and memories before they are written; read and write the stamps of embedders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from commonplace.dataclasses import replace
from commonplace.errors import EmbedderMismatchError, StoreError, UsageError
from commonplace.store.dialect import Database
from commonplace.store.rows import check_times, checked, insert_rows, refuse_unstorable, refuse_wide
from commonplace.store.schema import SCHEMA
from commonplace.types import Embedding, Kind, MemoryWrite, OwnerWrite
from commonplace.types.knowledge import KnowledgeWrite


def settle(writes: Sequence[OwnerWrite], embedding: Embedding | None) -> list[OwnerWrite]:
    """Return the checked writes to perform, in the order of the input.

    Of writes with the same kind and id, or the same kind and non-empty path, only the last one remains.

    Args:
        embedding: the stamp of the store; if given, each vector must have one byte per dimension.
    """
    seen: set[tuple[str, str, str]] = set()
    settled: list[OwnerWrite] = []
    for write in reversed(writes):
        owner = write.owner
        names = names_of_owner(owner.kind, owner.id, owner.path)
        if seen.isdisjoint(names):
            seen |= names
            settled.append(check_write(write, embedding))
    settled.reverse()
    return settled


def names_of_owner(kind: str, id_: str, path: str) -> set[tuple[str, str, str]]:
    """Return the names of a live owner that are unique in its namespace."""
    return {("id", kind, id_)} | ({("path", kind, path)} if path else set())


def upgrade_command(name: str) -> str:
    """Return the command that changes a store's embedder, for messages."""
    return f"`commonplace index upgrade --embedder {name}`"


def refuse_other_maker(stored: Embedding | None, made_by: Embedding | None) -> None:
    """Refuse vectors whose embedder differs from that of the stored ones; accept them if either is None."""
    if stored is not None and made_by is not None and stored != made_by:
        raise EmbedderMismatchError(
            f"the store changed its embedder from {made_by} to {stored} meanwhile, and nothing was written",
            remedy="try again",
        )


def refuse_other_reembedding(under_way: Embedding | None, embedding: Embedding) -> None:
    """Refuse a change of embedder other than the one that is under way."""
    if under_way != embedding:
        status = f"is under way to {under_way}" if under_way else "is over"
        raise StoreError(f"a change of the store's embedder {status}, not to {embedding}", remedy="begin it again")


def refuse_unfit_vectors(embedding: Embedding, vectors: Sequence[bytes]) -> None:
    """Refuse vectors whose length no vector of the embedder has."""
    for vector in vectors:
        if len(vector) not in {space.dimensions for space in embedding.spaces}:
            raise StoreError(
                f"a vector has {len(vector)} dimensions, those of {embedding.name} have {embedding.dimensions}"
            )


def refuse_write(*, in_snapshot: bool, in_change: bool) -> None:
    """Refuse to write inside a snapshot or a change of memories of the same thread.

    The state that the snapshot sees would be undefined, and the change would wait for itself.
    """
    if in_snapshot:
        raise StoreError("a thread that reads from a snapshot cannot write", remedy="write after the snapshot's block")
    if in_change:
        remedy = "write after the change's block"
        raise StoreError("a thread that changes memories cannot write in another way", remedy=remedy)


Recorded = TypeVar("Recorded", MemoryWrite, KnowledgeWrite)


def check_recorded(
    write: Recorded, kind: Kind, label: str, embedding: Embedding | None, *times: float | None
) -> Recorded:
    """Check a version of a memory or an item of knowledge; return it as it is stored."""
    owner = write.owner
    if owner.kind != kind or owner.path or owner.stamp:
        origin = f"of the file {owner.path!r}" if owner.kind == kind else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {origin}, not {label}", remedy="put it as an owner")
    stored = check_write(OwnerWrite(owner, write.passages), embedding)
    name = f"{kind} {owner.id!r}"
    check_times(name, *times)
    if isinstance(write, MemoryWrite):
        refuse_wide(name, *write.bands)
        check_times(name, *(end for date in write.dates for end in date))
    return replace(write, owner=stored.owner, passages=stored.passages, record=checked(write.record, name))


def check_write(write: OwnerWrite, embedding: Embedding | None) -> OwnerWrite:
    """Check an owner with its passages; return it as it is stored. An empty vector stands for one to be made later."""
    owner = write.owner
    name = f"{owner.kind} {owner.id!r}"
    stored = checked(owner, name)
    if owner.stamp:
        checked(owner.stamp, name)
    embedder = embedding.of(owner.kind) if embedding else None
    for passage in write.passages:
        refuse_unstorable("the id of passage", passage.id)
        if embedder and passage.vector and len(passage.vector) != embedder.dimensions:
            raise StoreError(
                f"the vector of passage {passage.id!r} has {len(passage.vector)} dimensions, the store's embedder"
                f" {embedder.name} has {embedder.dimensions}",
                remedy="embed with the embedder of the store",
            )
    chunks = [checked(passage.chunk, name) for passage in write.passages]
    if all(chunk is passage.chunk for chunk, passage in zip(chunks, write.passages, strict=True)):
        return write if stored is owner else replace(write, owner=stored)
    passages = [replace(passage, chunk=chunk) for chunk, passage in zip(chunks, write.passages, strict=True)]
    return OwnerWrite(stored, tuple(passages))


STAMP_KEYS: Final = ("embedder", "embedder_version", "dimensions", "embedders_of_kinds")
META: Final = "SELECT key, value FROM meta"
NEXT: Final = "next_"
"""Prefix of the keys in `meta` that hold the stamp of the next embedder during a change of embedder."""


def read_embedding(db: Database, which: str = "") -> Embedding | None:
    """Return the stamp of the stored vectors, or with `NEXT` of those that will replace them."""
    return embedding_of(dict(db.execute(META)), which)


def embedding_of(values: Mapping[str, str], which: str = "") -> Embedding | None:
    """Return the stamp in rows of `meta`; see `read_embedding`."""
    if f"{which}embedder" not in values:
        return None
    name, version, dimensions = (values[f"{which}{key}"] for key in STAMP_KEYS[:3])
    others = json.loads(values.get(f"{which}{STAMP_KEYS[3]}", "[]"))
    return Embedding(name, version, int(dimensions), tuple((kind, Embedding(*stamp)) for kind, stamp in others))


def set_embedding(db: Database, embedding: Embedding, which: str = "") -> None:
    """Write the stamp of the stored vectors, or with `NEXT` of those that will replace them."""
    others = [(kind, (other.name, other.version, other.dimensions)) for kind, other in embedding.others]
    values = (embedding.name, embedding.version, str(embedding.dimensions), json.dumps(others))
    for key, value in zip(STAMP_KEYS, values, strict=True):
        refuse_unstorable("the embedder", value)
        insert_rows(db, SCHEMA["meta"], [{"key": f"{which}{key}", "value": value}], "replace")
