"""Which owners of the in-memory store pass a filter. It knows fields and path globs, no scores."""

from __future__ import annotations

import math
from collections.abc import Callable

from commonplace.store.globs import path_matcher
from commonplace.store.reference_state import Row, Space
from commonplace.types import Filter, Owner


def matching_owners(space: Space, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    is_wanted_path = path_matcher(wanted.paths) if wanted.paths else None
    valid_at = wanted.valid_at
    earlier = () if valid_at is None else earlier_versions(space, wanted.as_of, valid_at)
    return sorted(
        number
        for number, row in space.rows.items()
        if (number in earlier or (row.counts(wanted.as_of) and (valid_at is None or happened_at(row) <= valid_at)))
        and _passes(row.owner, wanted, is_wanted_path)
        and _passes_as_memory(row, wanted)
        and (not wanted.agents or (row.knowledge is not None and row.knowledge.record.agent in wanted.agents))
    )


def happened_at(row: Row) -> float:
    """Return when what a memory tells of happened; what is no memory tells of no time."""
    if row.memory is None:
        return math.nan
    return row.memory.record.born_at if row.owner.at is None else row.owner.at


def earlier_versions(space: Space, as_of: float | None, valid_at: float) -> set[int]:
    """Return for each known version that tells of later the latest one before it that tells of what had happened."""
    found, latest = set(), {}
    for number, row in sorted(space.rows.items()):
        if row.memory is None:
            continue
        if happened_at(row) <= valid_at:
            latest[row.owner.id] = number
        elif row.counts(as_of) and row.owner.id in latest:
            found.add(latest[row.owner.id])
    return found


def _passes(owner: Owner, wanted: Filter, is_wanted_path: Callable[[str], bool] | None) -> bool:
    return bool(
        (not wanted.kinds or owner.kind in wanted.kinds)
        and (not wanted.types or owner.type in wanted.types)
        and (not wanted.phases or not owner.phase or owner.phase in wanted.phases)
        and (not wanted.tags or not set(owner.tags).isdisjoint(wanted.tags))
        and (is_wanted_path is None or (owner.kind == "artifact" and owner.path and is_wanted_path(owner.path)))
    )


def _passes_as_memory(row: Row, wanted: Filter) -> bool:
    if row.memory is None:
        return not (wanted.tiers or wanted.sessions or wanted.sources)
    record = row.memory.record
    return (
        (not wanted.tiers or record.tier in wanted.tiers)
        and (not wanted.sessions or row.owner.session in wanted.sessions)
        and (not wanted.sources or record.source in wanted.sources)
        and (not wanted.min_trust or record.trust >= wanted.min_trust)
    )
