"""What of a graph no store can keep, and so refuses before it writes anything. It knows no backend."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commonplace.errors import UsageError
from commonplace.store.batches import check_times, check_write, refuse_wide
from commonplace.store.graph_rules import text_owner
from commonplace.types import OwnerWrite
from commonplace.types.graph import Entity, Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.types import Embedding, NewPassage
    from commonplace.types.graph import Alias, Episode, GraphFilter, Happening, Mention


def check_filter(wanted: GraphFilter) -> None:
    """Refuse a filter with a time that is not a number.

    Raises:
        UsageError: one is NaN.
    """
    check_times("the filter of a graph", wanted.valid_at, wanted.open_at, wanted.known_at)


def check_episode(episode: Episode) -> None:
    """Refuse an episode with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    name = f"episode {episode.id!r}"
    check_times(name, episode.reference_time, episode.created_at)
    _check_shares(name, trust=episode.trust)
    refuse_wide(name, episode.version)


def check_subject(
    what: Entity | Relation, passages: Sequence[NewPassage] | None, embedding: Embedding | None
) -> OwnerWrite | None:
    """Refuse an entity or relation that a store cannot keep, and return how its texts are to be written.

    Returns:
        None where the texts that are there are to stay.

    Raises:
        UsageError: a number is none, or needs more than 64 bits.
        StoreError: a vector is not of the store's embedder.
    """
    name = f"{'entity' if isinstance(what, Entity) else 'relation'} {what.id!r}"
    check_times(name, what.created_at, what.valid_from, what.valid_to, what.expired_at)
    _check_shares(name, trust=what.trust)
    if isinstance(what, Relation):
        check_times(name, what.stated_to, what.disputed_at)
        _check_shares(name, confidence=what.confidence)
    if passages is None:
        return None
    write = OwnerWrite(text_owner(what), tuple(passages))
    check_write(write, embedding)
    return write


def check_remark(remark: Alias | Mention | Happening) -> None:
    """Refuse a name, mention or happening with a number that does not fit a store.

    Raises:
        UsageError: one is not a number, or needs more than 64 bits.
    """
    at = getattr(remark, "created_at", getattr(remark, "at", None))
    check_times(remark, at)
    refuse_wide(remark, getattr(remark, "start", 0), getattr(remark, "end", 0))


def _check_shares(name: str, **shares: float) -> None:
    for field, share in shares.items():
        if math.isnan(share):
            raise UsageError(f"the {field} of {name} is not a number", remedy="give a number")
