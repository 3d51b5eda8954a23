"""Indexes of the vectors of large namespaces in PostgreSQL: HNSW, where the database has pgvector.

An index is of one namespace and one number of dimensions, so that no write elsewhere pays for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import psycopg
from numpy.typing import NDArray

from commonplace.store import rights
from commonplace.store.connection import EVERY

LEAST: Final = 50_000
"""A namespace of so many passages gets one; in a smaller one the signs are searched as fast."""
_SEARCHED: Final = 200
"""So many vectors are kept in view on the way to the nearest."""

_CAN_BE: Final = "SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector')"
_HALFVEC_OF: Final = """
    CREATE OR REPLACE FUNCTION halfvec_of(bytes bytea) RETURNS halfvec LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (
        SELECT array_agg((get_byte(bytes, place) + 128) % 256 - 128 ORDER BY place)
        FROM generate_series(0, length(bytes) - 1) place
    )::vector::halfvec
"""
_LARGE: Final = """
    SELECT v.namespace, length(v.vector), min(v.tableoid::regclass::text) FROM passage_vectors v
    WHERE v.is_past = 0 AND length(v.vector) > 0
        AND v.namespace IN (SELECT namespace FROM counts GROUP BY namespace HAVING sum(passages) >= $1)
    GROUP BY 1, 2 HAVING count(*) >= $1
"""
_IS_BROKEN: Final = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)"
# Where rows are passed over, as deleted ones are until VACUUM, the search goes on.
_FIND: Final = """
    SELECT n.number, set_config('hnsw.ef_search', :searched, true),
        set_config('hnsw.iterative_scan', 'strict_order', true)
    FROM namespaces n JOIN pg_index i ON i.indexrelid = to_regclass('vectors_' || n.number || '_' || :dimensions)
    WHERE n.name = :namespace AND i.indisvalid
"""
_NEAREST: Final = """
    SELECT v.number, v.owner, v.vector FROM passage_vectors v
    WHERE v.namespace = {space} AND v.is_past = 0 AND length(v.vector) = {dimensions}
    ORDER BY halfvec_of(v.vector)::halfvec({dimensions}) <=> :vector::halfvec LIMIT :limit
"""


def make(connection: psycopg.Connection[Any]) -> None:
    """Make the indexes that large namespaces lack; nobody who writes waits for it.

    Args:
        connection: of the owner of the tables, outside a transaction.
    """
    if connection.execute(_CAN_BE).fetchall() == [(False,)]:
        return
    connection.execute(_HALFVEC_OF)
    with connection.transaction():
        connection.execute(rights.ENTER, [rights.scope_of(EVERY)])
        large = connection.execute(_LARGE, [LEAST]).fetchall()
    for space, dimensions, table in large:  # where tables have partitions, it is in one
        name = f"vectors_{space}_{dimensions}"
        if connection.execute(_IS_BROKEN, [name]).fetchall() == [(True,)]:  # one that was begun, and cut off
            connection.execute(f"DROP INDEX {name}")
        connection.execute(
            f"""
            CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table}
            USING hnsw ((halfvec_of(vector)::halfvec({dimensions})) halfvec_cosine_ops)
            WHERE namespace = {space} AND is_past = 0 AND length(vector) = {dimensions}
            """
        )


def nearest(
    rows: Callable[[str, Mapping[str, Any]], list[Any]], namespace: str, vector: NDArray[np.float32], limit: int
) -> list[tuple[int, int, bytes]] | None:
    """Return number, owner and vector of the nearest passages by an index; None where there is none.

    Args:
        rows: runs a statement, in the transaction of the search.
    """
    values = {
        "namespace": namespace,
        "dimensions": str(len(vector)),
        "searched": str(max(_SEARCHED, min(limit, 1_000))),
    }
    for space, *_ in rows(_FIND, values):
        sql = _NEAREST.format(space=int(space), dimensions=len(vector))
        return rows(sql, {"namespace": namespace, "vector": str(vector.tolist()), "limit": limit})
    return None
