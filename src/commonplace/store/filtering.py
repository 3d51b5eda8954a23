"""Which owners of a SQLite store pass a filter. It knows SQL and path globs, no scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from commonplace.store import knowledge_queries, memory_queries, queries
from commonplace.store.globs import path_matcher
from commonplace.store.memory_rows import hex_json
from commonplace.store.rows import pack_id, pack_text, unpack
from commonplace.types import Filter


def matching_owners(db: sqlite3.Connection, namespace: str, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    name = pack_text(namespace)
    values = {
        "namespace": name,
        "kinds": " ".join(wanted.kinds) or None,
        "types": hex_json(map(pack_text, wanted.types)),
        "phases": hex_json(map(pack_text, wanted.phases)),
        "as_of": wanted.as_of,
        "valid_at": wanted.valid_at,
    }
    numbers = _numbers(db, queries.MATCHING, values)
    if wanted.as_of is not None:
        numbers |= _numbers(db, queries.MATCHING_PAST, values)
    if wanted.valid_at is not None:
        numbers = (numbers & _numbers(db, memory_queries.HAPPENED, values)) | _earlier(db, wanted, values)
    if wanted.paths:
        is_wanted = path_matcher(wanted.paths)
        numbers &= {n for n, path in db.execute(queries.PATHS, {"namespace": name}) if is_wanted(unpack(path))}
    if wanted.tags:
        tagged: set[int] = set()
        for tag in wanted.tags:
            tagged |= _numbers(db, queries.TAGGED, {"namespace": name, "tag": pack_text(tag)})
        numbers &= tagged
    if wanted.tiers or wanted.sessions or wanted.sources:
        numbers &= _numbers(
            db,
            memory_queries.MATCHING,
            {
                "namespace": name,
                "tiers": hex_json(wanted.tiers),
                "sessions": hex_json(map(pack_id, wanted.sessions)),
                "sources": hex_json(map(pack_text, wanted.sources)),
            },
        )
    if wanted.agents:
        known: set[int] = set()
        for agent in wanted.agents:
            known |= _numbers(db, knowledge_queries.MATCHING, {"namespace": name, "agent": pack_text(agent)})
        numbers &= known
    if wanted.min_trust:
        numbers -= _numbers(db, memory_queries.DISTRUSTED, {"namespace": name, "min_trust": wanted.min_trust})
    return sorted(numbers)


def _earlier(db: sqlite3.Connection, wanted: Filter, values: Mapping[str, str | bytes | float | None]) -> set[int]:
    is_memory_wanted = not wanted.types and (not wanted.kinds or "memory" in wanted.kinds)
    return _numbers(db, memory_queries.EARLIER, values) if is_memory_wanted else set()


def _numbers(db: sqlite3.Connection, sql: str, values: Mapping[str, str | bytes | float | None]) -> set[int]:
    return {number for (number,) in db.execute(sql, values)}
