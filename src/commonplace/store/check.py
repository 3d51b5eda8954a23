"""Check the integrity of a SQLite store's data."""

from __future__ import annotations

import sqlite3

from commonplace.store.graph_rules import graph_problems
from commonplace.store.knowledge import knowledge_problems
from commonplace.store.ledger import ledger_problems
from commonplace.store.owners import LIVE_VECTOR
from commonplace.store.rows import unlisted
from commonplace.store.writes import NEXT, read_embedding

_MAX_PROBLEMS = 20

# One query per claim: it counts the rows for which the claim fails.
_CLAIMS = (
    (
        "passages without vectors",
        "SELECT count(*) FROM passages WHERE number NOT IN (SELECT number FROM passage_vectors)",
    ),
    (
        "vectors without a passage",
        "SELECT count(*) FROM passage_vectors WHERE number NOT IN (SELECT number FROM passages)",
    ),
    (
        "passages that name another owner or namespace than their vectors do",
        """
        SELECT count(*) FROM passages p JOIN passage_vectors v ON v.number = p.number
        WHERE p.owner != v.owner OR p.namespace != v.namespace
        """,
    ),
    (
        "passages in another namespace than their owner",
        "SELECT count(*) FROM passages p JOIN owners o ON o.number = p.owner WHERE p.namespace != o.namespace",
    ),
    ("passages with half a token id", "SELECT count(*) FROM passage_vectors WHERE length(token_ids) % 2 != 0"),
    (
        "owners stamped with a change that was never made",
        "SELECT count(*) FROM owners WHERE change NOT IN (SELECT number FROM changes)",
    ),
    (
        "deletions stamped with a change that was never made",
        "SELECT count(*) FROM deletions WHERE change NOT IN (SELECT number FROM changes)",
    ),
    (
        "passages that are recorded as deleted",
        "SELECT count(*) FROM passage_vectors WHERE is_past = 0 AND number IN (SELECT number FROM deletions)",
    ),
    (
        "passages that are past where their owner is not, or the other way round",
        """
        SELECT count(*) FROM passage_vectors v JOIN owners o ON o.number = v.owner
        WHERE v.is_past != (o.expired_at IS NOT NULL)
        """,
    ),
    (
        "memories that name another id or namespace than their owner does",
        """
        SELECT count(*) FROM memories m JOIN owners o ON o.number = m.owner
        WHERE m.id != o.id OR m.namespace != o.namespace OR o.kind != 'memory'
        """,
    ),
    (
        "memories without exactly one latest version",
        """
        SELECT count(*) FROM (
            SELECT 1 FROM memories GROUP BY namespace, id HAVING sum(is_latest) != 1
                OR max(owner) != max(owner) FILTER (WHERE is_latest = 1)
        )
        """,
    ),
    (
        "versions that are live though a later one exists",
        """
        SELECT count(*) FROM memories m JOIN owners o ON o.number = m.owner
        WHERE o.expired_at IS NULL AND m.is_latest = 0
        """,
    ),
    (
        "bands of memories that are past or gone",
        """
        SELECT count(*) FROM memory_bands b LEFT JOIN owners o ON o.number = b.owner
        WHERE o.number IS NULL OR o.expired_at IS NOT NULL
        """,
    ),
    (
        "dates of memories that are gone",
        "SELECT count(*) FROM memory_dates WHERE owner NOT IN (SELECT owner FROM memories)",
    ),
    (
        "passage numbers above the last one given",
        "SELECT count(*) FROM passages WHERE number >= (SELECT max(next_passage) FROM changes)",
    ),
    (
        "owner numbers above the last one given",
        "SELECT count(*) FROM owners WHERE number >= (SELECT max(next_owner) FROM changes)",
    ),
    (
        "changes out of order",
        """
        SELECT count(*) FROM changes c LEFT JOIN changes b ON b.number = c.number - 1
        WHERE c.number > 0 AND (b.number IS NULL OR b.next_passage > c.next_passage OR b.next_owner > c.next_owner)
        """,
    ),
    (
        "changes without a token of eight bytes",
        "SELECT count(*) FROM changes WHERE number > 0 AND (typeof(token) != 'blob' OR length(token) != 8)",
    ),
    (
        "counts that do not fit the rows",
        """
        WITH owned AS (
            SELECT namespace, kind, count(*) AS owners FROM owners WHERE expired_at IS NULL GROUP BY 1, 2
        ),
        written AS (
            SELECT o.namespace, o.kind, count(*) AS passages,
                sum(length(CAST(p.text AS BLOB))) AS text_bytes
            FROM passages p JOIN owners o ON o.number = p.owner WHERE o.expired_at IS NULL GROUP BY 1, 2
        )
        SELECT (
            SELECT count(*) FROM counts c
                LEFT JOIN owned o ON o.namespace = c.namespace AND o.kind = c.kind
                LEFT JOIN written w ON w.namespace = c.namespace AND w.kind = c.kind
            WHERE c.owners != coalesce(o.owners, 0) OR c.passages != coalesce(w.passages, 0)
                OR c.text_bytes != coalesce(w.text_bytes, 0)
        ) + (
            SELECT count(*) FROM owned o LEFT JOIN counts c ON c.namespace = o.namespace AND c.kind = o.kind
            WHERE c.kind IS NULL
        )
        """,
    ),
)


def problems(db: sqlite3.Connection) -> list[str]:
    """Return one sentence for each thing that is wrong; where the file itself is damaged, nothing more is asked."""
    try:
        broken = [text for (text,) in db.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})") if text != "ok"]
        if broken:
            return [f"The database is damaged: {text}." for text in broken]
        return _loose_ends(db)
    except sqlite3.DatabaseError as error:
        return [f"The database is damaged: {error}."]


def _loose_ends(db: sqlite3.Connection) -> list[str]:
    found = [
        f"Table {table} names a row of {parent} that is not there."
        for table, parent in sorted({(table, parent) for table, _, parent, _ in db.execute("PRAGMA foreign_key_check")})
    ]
    for claim, sql in _CLAIMS:
        count = db.execute(sql).fetchone()[0]
        if count:
            found.append(f"There are {claim}: {count}.")
    return (
        found
        + _vector_problems(db)
        + _tag_problems(db)
        + graph_problems(db)
        + knowledge_problems(db)
        + ledger_problems(db)
    )


_LENGTHS = f"""
    SELECT o.kind, length({LIVE_VECTOR}), count(*)
    FROM passage_vectors v JOIN owners o ON o.number = v.owner GROUP BY 1, 2
"""  # noqa: S608 - SQL of ours
_NEXT_LENGTHS = """
    SELECT o.kind, length(x.vector), count(*)
    FROM next_vectors x JOIN passage_vectors v ON v.number = x.number JOIN owners o ON o.number = v.owner GROUP BY 1, 2
"""


def _vector_problems(db: sqlite3.Connection) -> list[str]:
    """Say which vectors do not have the length of their kind's embedder; an empty one is made later."""
    is_switched = db.execute("SELECT 1 FROM meta WHERE key = 'switched_from'").fetchone()
    own, coming = read_embedding(db), read_embedding(db, "" if is_switched else NEXT)
    claims = (
        ("vectors of another length than the embedder's", _LENGTHS, own, True),
        ("new vectors without an embedder, or of another length than its", _NEXT_LENGTHS, coming, False),
    )
    found = []
    for claim, lengths, embedding, may_wait in claims:
        wrong = sum(
            count
            for kind, length, count in db.execute(lengths)
            if not (may_wait and (length == 0 or embedding is None))
            and (embedding is None or embedding.of(kind).dimensions != length)
        )
        if wrong:
            found.append(f"There are {claim}: {wrong}.")
    return found


def _tag_problems(db: sqlite3.Connection) -> list[str]:
    listed = set(db.execute("SELECT namespace, tag, owner FROM owner_tags"))
    owned = {
        (space, tag, number)
        for number, space, tags in db.execute("SELECT number, namespace, tags FROM owners WHERE tags != ''")
        for tag in unlisted(tags)
    }
    wrong = len(listed ^ owned)
    return [f"There are tags that do not fit their owners: {wrong}."] if wrong else []
