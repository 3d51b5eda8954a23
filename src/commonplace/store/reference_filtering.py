"""Which owners of the in-memory store pass a filter. It knows fields and path globs, no scores."""

from __future__ import annotations

from collections.abc import Callable

from commonplace.store.globs import path_matcher
from commonplace.store.reference_state import Row, Space
from commonplace.types import Filter, Owner


def matching_owners(space: Space, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    is_wanted_path = path_matcher(wanted.paths) if wanted.paths else None
    return sorted(
        number
        for number, row in space.rows.items()
        if row.counts(wanted.as_of)
        and _passes(row.owner, wanted, is_wanted_path)
        and _passes_as_memory(row, wanted)
        and (not wanted.agents or (row.knowledge is not None and row.knowledge.record.agent in wanted.agents))
    )


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
