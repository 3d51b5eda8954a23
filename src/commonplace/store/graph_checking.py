"""Where an id in a stored graph leads nowhere, told in sentences. It mends nothing.

Nothing keeps whoever changes a graph from it; every store tells it in the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.store.graph_contract import namespace_of
from commonplace.store.rows import unpack

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

ENDS = "relations with an end that is no entity"
NAMES = "names of entities that are gone"
MERGED = "entities merged into one that is gone"
EPISODES = "mentions in episodes that are gone"
MENTIONED = "mentions of entities or relations that are gone"
HAPPENED = "happenings of entities or relations that are gone"
TEXTS = "texts of entities or relations that are gone"

LOOSE_ENDS = (NAMES, EPISODES, MENTIONED, HAPPENED, TEXTS)
"""What `GraphChange.drop_loose_ends` mends, as it is called in the sentences."""

_NO_SUBJECT = """
    NOT EXISTS (SELECT 1 FROM entities WHERE s.kind = 'entity' AND namespace = s.namespace AND id = s.subject)
    AND NOT EXISTS (SELECT 1 FROM relations WHERE s.kind = 'relation' AND namespace = s.namespace AND id = s.subject)
"""

_CLAIMS = (
    (
        ENDS,
        """
        SELECT count(*) FROM relations r
        WHERE NOT EXISTS (SELECT 1 FROM entities WHERE namespace = r.namespace AND id = r.source)
            OR NOT EXISTS (SELECT 1 FROM entities WHERE namespace = r.namespace AND id = r.target)
        """,
    ),
    (
        NAMES,
        """
        SELECT count(*) FROM aliases a
        WHERE NOT EXISTS (SELECT 1 FROM entities WHERE namespace = a.namespace AND id = a.entity)
        """,
    ),
    (
        MERGED,
        """
        SELECT count(*) FROM entities m
        WHERE m.merged_into != ''
            AND NOT EXISTS (SELECT 1 FROM entities WHERE namespace = m.namespace AND id = m.merged_into)
        """,
    ),
    (
        EPISODES,
        """
        SELECT count(*) FROM mentions m
        WHERE NOT EXISTS (SELECT 1 FROM episodes WHERE namespace = m.namespace AND id = m.episode)
        """,
    ),
    (MENTIONED, f"SELECT count(*) FROM mentions s WHERE {_NO_SUBJECT}"),  # noqa: S608 - a constant
    (HAPPENED, f"SELECT count(*) FROM happenings s WHERE {_NO_SUBJECT}"),  # noqa: S608 - a constant
    (
        "relations whose stage does not fit them",
        """
        SELECT count(*) FROM relations
        WHERE stage != CASE WHEN expired_at IS NOT NULL OR is_retracted = 1 THEN 2 ELSE valid_to IS NOT NULL END
        """,
    ),
)

_STRAY_TEXTS = """
    SELECT count(*) FROM owners o
    WHERE o.namespace = :texts AND NOT EXISTS (
        SELECT 1 FROM entities WHERE o.kind = 'entity' AND namespace = :space AND id = o.id
        UNION ALL
        SELECT 1 FROM relations WHERE o.kind = 'relation' AND namespace = :space AND id = o.id
    )
"""


def graph_problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence for each thing that is wrong with the graphs of a SQLite store."""
    counts = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in _CLAIMS]
    spaces = {unpack(name): number for name, number in db.execute("SELECT name, number FROM namespaces")}
    stray = 0
    for name, number in spaces.items():
        home = namespace_of(name)
        if home != name:
            stray += db.execute(_STRAY_TEXTS, {"texts": number, "space": spaces.get(home)}).fetchone()[0]
    return sentences([*counts, (TEXTS, stray)])


def sentences(counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return one sentence for each claim that counts anything."""
    return [f"There are {claim}: {count}." for claim, count in counts if count]
