"""What of agents' knowledge no store can keep, and so refuses before it writes anything. It knows no backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.store.batches import check_times, check_write, refuse_wide
from commonplace.types import OwnerWrite

if TYPE_CHECKING:
    from commonplace.types import Embedding
    from commonplace.types.knowledge import ContextRecord, KnowledgeWrite


def check_item(write: KnowledgeWrite, embedding: Embedding | None, *times: float | None) -> OwnerWrite:
    """Refuse an item that a store cannot keep, and return its owner as it is to be written.

    Raises:
        UsageError: its owner is of another kind or of a file, or a number does not fit a store.
        StoreError: a vector is not of the store's embedder.
    """
    owner = write.owner
    if owner.kind != "knowledge" or owner.path or owner.stamp:
        what = f"of the file {owner.path!r}" if owner.kind == "knowledge" else f"of the kind {owner.kind!r}"
        raise UsageError(f"{owner.id!r} is {what}, not a knowledge item", remedy="put it as an owner")
    owned = OwnerWrite(owner, write.passages)
    check_write(owned, embedding)
    check_times(f"knowledge {owner.id!r}", *times)
    return owned


def check_context(context: ContextRecord) -> None:
    """Refuse a context with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"the context of agent {context.name!r}"
    refuse_wide(name, context.last_cursor)
    check_times(name, context.updated_at)
