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
    is_wanted_path = path_matcher(wanted.paths) if wanted.paths else None
    name = pack_text(namespace)
    found = db.execute(
        queries.MATCHING,
        {
            "namespace": name,
            "kinds": _hex_json(wanted.kinds),
            "types": _hex_json(wanted.types),
            "phases": _hex_json(wanted.phases),
        },
    )
    if is_wanted_path:
        numbers = {number for number, path in found if is_wanted_path(unpack(path))}
    else:
        numbers = {number for number, _ in found}
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
