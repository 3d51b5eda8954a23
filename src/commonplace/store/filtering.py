"""Which owners of a SQLite store pass a filter. It knows SQL and path globs, no scores."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from commonplace.store import queries
from commonplace.store.globs import path_matcher
from commonplace.store.rows import pack_text, unpack
from commonplace.types import Filter


def matching_owners(db: sqlite3.Connection, namespace: str, wanted: Filter) -> list[int]:
    """Return the numbers of the owners of a namespace that pass the filter, ascending."""
    name = pack_text(namespace)
    values = {"kinds": _hex_json(wanted.kinds), "types": _hex_json(wanted.types), "phases": _hex_json(wanted.phases)}
    numbers = {number for (number,) in db.execute(queries.MATCHING, {"namespace": name, **values})}
    if wanted.paths:
        is_wanted = path_matcher(wanted.paths)
        numbers &= {n for n, path in db.execute(queries.PATHS, {"namespace": name}) if is_wanted(unpack(path))}
    if wanted.tags:
        tagged: set[int] = set()
        for tag in wanted.tags:
            tagged.update(owner for (owner,) in db.execute(queries.TAGGED, {"namespace": name, "tag": pack_text(tag)}))
        numbers &= tagged
    return sorted(numbers)


def _hex_json(values: Sequence[str]) -> str | None:
    if not values:
        return None
    packed = map(pack_text, values)
    return json.dumps([(value.encode() if isinstance(value, str) else value).hex().upper() for value in packed])
