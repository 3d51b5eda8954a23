"""The SQL about the graph of the SQLite store. The orders of columns are those that `graph_rows` unpacks.

`:space` is the number of the namespace. Types and groups come as JSON lists of hexadecimal digits, like the values of
`queries.MATCHING`.
"""

from commonplace.store.graph_rules import MEANT

SPACE = "SELECT number FROM namespaces WHERE name = ?"

_EPISODE = """
    e.id, e.content, e.reference_time, e.created_at, e.name, e.source, e.source_description, e.origin, e.trust,
    e."group", e.memory, e.version
"""

_ENTITY = """
    x.id, x.name, x.type, x.created_at, x.summary, x.attributes, x.trust, x."group", x.valid_from, x.valid_to,
    x.expired_at, x.merged_into
"""

_RELATION = """
    r.id, r.source, r.target, r.type, r.fact, r.created_at, r.valid_from, r.valid_to, r.stated_to, r.expired_at,
    r.is_retracted, r.dispute, r.disputed_at, r.confidence, r.trust, r."group", r.attributes
"""

IDS_AT_ONCE = 32
_IDS = ", ".join(f":id{place}" for place in range(IDS_AT_ONCE))
"""So many ids a statement takes, some of them more than once where there are fewer."""

EPISODE = f"SELECT {_EPISODE} FROM episodes e WHERE e.namespace = :space AND e.id IN ({_IDS})"

EPISODES_OF_MEMORY = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.memory = :memory AND e.memory != ''
    ORDER BY e.version, e.id
"""

EPISODES = f"""
    SELECT {_EPISODE} FROM episodes e
    WHERE e.namespace = :space AND e.created_at <= :known_at
        AND (:groups IS NULL OR hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
    ORDER BY e.reference_time DESC, e.id
    LIMIT :limit OFFSET :offset
"""

ENTITY = f"SELECT {_ENTITY} FROM entities x WHERE x.namespace = :space AND x.id IN ({_IDS})"

NAMED = f"""
    SELECT {_ENTITY}
    FROM aliases a CROSS JOIN entities x ON x.namespace = a.namespace AND x.id = a.entity
    WHERE a.namespace = :space AND a.normal = :normal AND x.expired_at IS NULL
    ORDER BY x.id
"""

ENTITIES = f"""
    SELECT {_ENTITY} FROM entities x
    WHERE x.namespace = :space
        AND (:is_all OR (x.created_at <= :known_at AND (x.expired_at IS NULL OR x.expired_at > :known_at)))
        AND (:types IS NULL OR hex(CAST(x.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
        AND (
            :groups IS NULL
            OR hex(CAST(x."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            OR EXISTS (
                SELECT 1
                FROM mentions m CROSS JOIN episodes e ON e.namespace = m.namespace AND e.id = m.episode
                WHERE m.namespace = x.namespace AND m.kind = 'entity' AND m.subject = x.id
                    AND hex(CAST(e."group" AS BLOB)) IN (SELECT value FROM json_each(:groups))
            )
        )
    ORDER BY x.name, x.id
    LIMIT :limit OFFSET :offset
"""

# Without a hint SQLite takes the primary key, of which one column fits, and reads every name of the namespace.
ALIASES = f"""
    SELECT entity, name, normal, created_at, episode FROM aliases INDEXED BY aliases_by_entity
    WHERE namespace = :space AND entity IN ({_IDS})
    ORDER BY created_at, normal
"""

RELATION = f"SELECT {_RELATION} FROM relations r WHERE r.namespace = :space AND r.id IN ({_IDS})"

_CHOSEN = f"""
    r.is_past = :is_past AND {MEANT}
    AND (:types IS NULL OR hex(CAST(r.type AS BLOB)) IN (SELECT value FROM json_each(:types)))
    AND (:groups IS NULL OR hex(CAST(r."group" AS BLOB)) IN (SELECT value FROM json_each(:groups)))
"""

RELATIONS_FROM = f"""
    SELECT {_RELATION} FROM relations r INDEXED BY relations_by_source
    WHERE r.namespace = :space AND r.source = :entity AND {_CHOSEN}
    ORDER BY r.created_at DESC, r.id
    LIMIT :limit
"""

RELATIONS_TO = f"""
    SELECT {_RELATION} FROM relations r INDEXED BY relations_by_target
    WHERE r.namespace = :space AND r.target = :entity AND r.source != r.target AND {_CHOSEN}
    ORDER BY r.created_at DESC, r.id
    LIMIT :limit
"""

_EDGE = "r.id, r.source, r.target, r.created_at, r.confidence, r.dispute != ''"


def _edges(end: str, is_past: int) -> str:
    """Return a query for the newest edges at one end of them."""
    by = "r.source = :entity" if end == "source" else "r.target = :entity AND r.source != r.target"
    return f"""
        SELECT * FROM (
            SELECT {_EDGE} FROM relations r INDEXED BY relations_by_{end}
            WHERE r.namespace = :space AND {by} AND {_CHOSEN.replace(":is_past", str(is_past))}
            ORDER BY r.created_at DESC, r.id
            LIMIT :limit
        )
    """


EDGES = " UNION ALL ".join(_edges(end, 0) for end in ("source", "target"))
EDGES_EVER = " UNION ALL ".join(_edges(end, is_past) for end in ("source", "target") for is_past in (0, 1))

RELATIONS = f"""
    SELECT {_RELATION} FROM relations r INDEXED BY relations_by_time
    WHERE r.namespace = :space AND {_CHOSEN}
    ORDER BY r.created_at DESC, r.id
    LIMIT :limit
"""

PAIRS = f"""
    SELECT r.number, r.id, r.source, r.target FROM relations r NOT INDEXED
    WHERE r.number > :after AND r.namespace = :space AND {_CHOSEN}
    ORDER BY r.number
    LIMIT :limit
"""

DISPUTED = f"""
    SELECT {_RELATION} FROM relations r
    WHERE r.namespace = :space AND r.dispute != ''
    ORDER BY r.dispute, r.created_at, r.id
"""

MENTIONS = f"""
    SELECT subject, episode, kind, start, "end", name FROM mentions
    WHERE namespace = :space AND kind = :kind AND subject IN ({_IDS})
    ORDER BY subject, episode, start, "end", name
"""

MENTIONED = f"""
    SELECT episode, kind, subject, start, "end", name FROM mentions INDEXED BY mentions_by_episode
    WHERE namespace = :space AND episode IN ({_IDS})
    ORDER BY start, "end", kind, subject, name
"""

HAPPENINGS = """
    SELECT kind, subject, at, what, reason, episode, detail FROM happenings
    WHERE namespace = :space AND kind = :kind AND subject = :id
    ORDER BY number
"""

COUNTS = """
    SELECT
        (SELECT count(*) FROM episodes WHERE namespace = :space),
        (SELECT count(*) FROM entities INDEXED BY entities_by_id WHERE namespace = :space)
            - (
                SELECT count(*) FROM entities INDEXED BY entities_past
                WHERE namespace = :space AND expired_at IS NOT NULL
            ),
        (SELECT count(*) FROM relations WHERE namespace = :space),
        (SELECT count(*) FROM relations WHERE namespace = :space AND dispute != '')
"""

PUT_EPISODE = """
    INSERT INTO episodes (
        namespace, id, content, reference_time, created_at, name, source, source_description, origin, trust, "group",
        memory, version
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        content = excluded.content, reference_time = excluded.reference_time, created_at = excluded.created_at,
        name = excluded.name, source = excluded.source, source_description = excluded.source_description,
        origin = excluded.origin, trust = excluded.trust, "group" = excluded."group", memory = excluded.memory,
        version = excluded.version
"""

PUT_ENTITY = """
    INSERT INTO entities (
        namespace, id, name, type, created_at, summary, attributes, trust, "group", valid_from, valid_to, expired_at,
        merged_into
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        name = excluded.name, type = excluded.type, created_at = excluded.created_at, summary = excluded.summary,
        attributes = excluded.attributes, trust = excluded.trust, "group" = excluded."group",
        valid_from = excluded.valid_from, valid_to = excluded.valid_to, expired_at = excluded.expired_at,
        merged_into = excluded.merged_into
"""

PUT_RELATION = """
    INSERT INTO relations (
        namespace, id, source, target, type, fact, created_at, valid_from, valid_to, stated_to, expired_at,
        is_retracted, dispute, disputed_at, confidence, trust, "group", attributes, is_past
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (namespace, id) DO UPDATE SET
        source = excluded.source, target = excluded.target, type = excluded.type, fact = excluded.fact,
        created_at = excluded.created_at, valid_from = excluded.valid_from, valid_to = excluded.valid_to,
        stated_to = excluded.stated_to, expired_at = excluded.expired_at, is_retracted = excluded.is_retracted,
        dispute = excluded.dispute, disputed_at = excluded.disputed_at, confidence = excluded.confidence,
        trust = excluded.trust, "group" = excluded."group", attributes = excluded.attributes,
        is_past = excluded.is_past
"""

PUT_ALIAS = (
    "INSERT OR REPLACE INTO aliases (namespace, entity, name, normal, created_at, episode) VALUES (?, ?, ?, ?, ?, ?)"
)

PUT_MENTION = """
    INSERT OR IGNORE INTO mentions (namespace, episode, kind, subject, start, "end", name)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""

DROP_MENTION = """
    DELETE FROM mentions
    WHERE namespace = ? AND episode = ? AND kind = ? AND subject = ? AND start = ? AND "end" = ? AND name = ?
"""

PUT_HAPPENING = """
    INSERT INTO happenings (namespace, kind, subject, at, what, reason, episode, detail)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
