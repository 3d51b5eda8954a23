"""The SQL about memories of the SQLite store. The orders of columns are those that `memory_rows` unpacks."""

from commonplace.store.queries import LIVE_VECTOR

_SPACE = "(SELECT number FROM namespaces WHERE name = :namespace)"

_COLUMNS = """
    o.number, o.created_at, o.expired_at,
    m.content, m.tier, m.status, m.category, m.entities, m.source, m.origin, m.trust, m.metadata, m.version, m.born_at,
    m.last_used, m.use_count, m.strength, m.uses, m.review_count, m.derived_from, m.is_forced, m.promoted_at,
    m.vault_path,
    o.id, o.kind, o.title, o.summary, o.tags, o.type, o.phase, o."references", o.path, o.root, o.session, o.position,
    o.at
"""

LATEST = f"""
    SELECT {_COLUMNS}
    FROM memories m CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE} AND m.id = :id AND m.is_latest = 1
"""

VERSIONS = f"""
    SELECT {_COLUMNS}
    FROM memories m CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE} AND m.id = :id
    ORDER BY o.number
"""

OF_NUMBERS = f"""
    SELECT {_COLUMNS}
    FROM json_each(:numbers) j
        CROSS JOIN memories m ON m.owner = j.value
        CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE}
"""

DIGESTS = f"""
    SELECT owner, id, digest FROM memories WHERE namespace = {_SPACE} AND is_latest = 1 ORDER BY owner
"""

ALIKE = f"""
    SELECT {_COLUMNS}
    FROM (
        SELECT owner FROM memories
        WHERE namespace = {_SPACE} AND digest = :digest AND digest != '' AND is_latest = 1
        UNION
        SELECT owner FROM memory_bands
        WHERE namespace = {_SPACE} AND band IN (SELECT value FROM json_each(:bands))
    ) found
        CROSS JOIN memories m ON m.owner = found.owner
        CROSS JOIN owners o ON o.number = m.owner
    WHERE o.expired_at IS NULL
    ORDER BY o.number
"""

SELECTED = f"""
    SELECT m.owner, m.id, coalesce(o.at, m.born_at)
    FROM memories m CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE} AND m.is_latest = 1
        AND (:ids IS NULL OR hex(CAST(m.id AS BLOB)) IN (SELECT value FROM json_each(:ids)))
        AND (:tiers IS NULL OR hex(CAST(m.tier AS BLOB)) IN (SELECT value FROM json_each(:tiers)))
        AND (:statuses IS NULL OR hex(CAST(m.status AS BLOB)) IN (SELECT value FROM json_each(:statuses)))
        AND (:sources IS NULL OR hex(CAST(m.source AS BLOB)) IN (SELECT value FROM json_each(:sources)))
        AND (:sessions IS NULL OR hex(CAST(o.session AS BLOB)) IN (SELECT value FROM json_each(:sessions)))
        AND (:categories IS NULL OR hex(CAST(m.category AS BLOB)) IN (SELECT value FROM json_each(:categories)))
        AND (:tags IS NULL OR m.owner IN (
            SELECT owner FROM owner_tags
            WHERE namespace = {_SPACE} AND hex(CAST(tag AS BLOB)) IN (SELECT value FROM json_each(:tags))
        ))
        AND (:since IS NULL OR coalesce(o.at, m.born_at) >= :since)
        AND (:until IS NULL OR coalesce(o.at, m.born_at) < :until)
"""
"""Wanted values come as JSON lists of hexadecimal digits, like those of `queries.MATCHING`."""

MATCHING = f"""
    SELECT m.owner
    FROM memories m CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE}
        AND (:tiers IS NULL OR hex(CAST(m.tier AS BLOB)) IN (SELECT value FROM json_each(:tiers)))
        AND (:sources IS NULL OR hex(CAST(m.source AS BLOB)) IN (SELECT value FROM json_each(:sources)))
        AND (:sessions IS NULL OR hex(CAST(o.session AS BLOB)) IN (SELECT value FROM json_each(:sessions)))
"""

DISTRUSTED = f"SELECT owner FROM memories WHERE namespace = {_SPACE} AND trust < :min_trust"

DATED = f"""
    SELECT d.owner, d.since, d.until
    FROM memory_dates d CROSS JOIN owners o ON o.number = d.owner
    WHERE d.namespace = {_SPACE} AND d.since < :until AND d.until > :since AND o.expired_at IS NULL
        AND (:as_of IS NULL OR o.created_at <= :as_of)
    UNION
    SELECT o.number, o.at, o.at
    FROM owners o
    WHERE o.namespace = {_SPACE} AND o.kind = 'memory' AND o.expired_at IS NULL AND o.at >= :since AND o.at < :until
        AND (:as_of IS NULL OR o.created_at <= :as_of)
    ORDER BY 1, 2, 3
"""

DATED_PAST = f"""
    SELECT d.owner, d.since, d.until
    FROM owners o INDEXED BY owners_past CROSS JOIN memory_dates d ON d.owner = o.number
    WHERE o.namespace = {_SPACE} AND o.expired_at > :as_of AND o.created_at <= :as_of
        AND d.since < :until AND d.until > :since
    UNION
    SELECT o.number, o.at, o.at
    FROM owners o INDEXED BY owners_past
    WHERE o.namespace = {_SPACE} AND o.expired_at > :as_of AND o.created_at <= :as_of
        AND o.kind = 'memory' AND o.at >= :since AND o.at < :until
"""

PAST = f"""
    SELECT v.number, v.owner, v.token_ids, {LIVE_VECTOR}, o.kind
    FROM owners o INDEXED BY owners_past
        CROSS JOIN passages p ON p.owner = o.number
        CROSS JOIN passage_vectors v ON v.number = p.number
    WHERE o.namespace = {_SPACE} AND o.expired_at > :as_of AND o.created_at <= :as_of
    ORDER BY v.number
"""

HAPPENED = f"""
    SELECT m.owner
    FROM memories m CROSS JOIN owners o ON o.number = m.owner
    WHERE m.namespace = {_SPACE} AND coalesce(o.at, m.born_at) <= :valid_at
"""

EARLIER = f"""
    SELECT m.owner
    FROM memories n
        CROSS JOIN owners c ON c.number = n.owner
        CROSS JOIN memories m ON m.namespace = n.namespace AND m.id = n.id AND m.owner < n.owner
        CROSS JOIN owners o ON o.number = m.owner
    WHERE n.namespace = {_SPACE} AND coalesce(c.at, n.born_at) > :valid_at AND coalesce(o.at, m.born_at) <= :valid_at
        AND CASE WHEN :as_of IS NULL THEN c.expired_at IS NULL
            ELSE c.created_at <= :as_of AND (c.expired_at IS NULL OR c.expired_at > :as_of) END
        AND NOT EXISTS (
            SELECT 1
            FROM memories l CROSS JOIN owners p ON p.number = l.owner
            WHERE l.namespace = n.namespace AND l.id = n.id AND l.owner > m.owner AND l.owner < n.owner
                AND coalesce(p.at, l.born_at) <= :valid_at
        )
"""
"""The version before the known one that tells of what had happened by then, where the known one tells of later."""

PAST_EARLIER = f"""
    SELECT v.number, v.owner, v.token_ids, {LIVE_VECTOR}, 'memory'
    FROM ({EARLIER}) e
        CROSS JOIN passages p ON p.owner = e.owner
        CROSS JOIN passage_vectors v ON v.number = p.number
"""

LINKS = f"""
    SELECT source, target, type, strength, created_at FROM links
    WHERE namespace = {_SPACE} AND (
        :ids IS NULL
        OR hex(CAST(source AS BLOB)) IN (SELECT value FROM json_each(:ids))
        OR hex(CAST(target AS BLOB)) IN (SELECT value FROM json_each(:ids))
    )
"""

LINKS_OF = """
    SELECT source, target, type, strength, created_at FROM links
    WHERE namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND (source = :id OR target = :id)
"""

DUE = f"SELECT id FROM mirror_due WHERE namespace = {_SPACE}"

BLOCKS = f"SELECT id, page, digest FROM mirror_blocks WHERE namespace = {_SPACE}"

BLOCK = f"{BLOCKS} AND id = :id"

PAGES = f"SELECT page, size, mtime_ns, sha256 FROM mirror_pages WHERE namespace = {_SPACE}"

NOTES = f"""
    SELECT kind, id, at, body FROM notes
    WHERE kind = :kind AND (:namespace IS NULL OR namespace = {_SPACE})
"""

WRITTEN = """
    SELECT p.id, p.text, p.start_line, p.end_line, p.heading, v.token_ids, v.vector
    FROM passages p JOIN passage_vectors v ON v.number = p.number
    WHERE p.owner = ?
    ORDER BY p.ordinal
"""

ADD = """
    INSERT INTO memories (
        owner, namespace, id, is_latest, digest, content, tier, status, category, entities, source, origin, trust,
        metadata, version, born_at, last_used, use_count, strength, uses, review_count, derived_from, is_forced,
        promoted_at, vault_path
    )
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

OUTDATE = "UPDATE memories SET is_latest = 0 WHERE namespace = ? AND id = ? AND is_latest = 1"

REVISE = """
    UPDATE memories SET
        content = ?, tier = ?, status = ?, category = ?, entities = ?, source = ?, origin = ?, trust = ?, metadata = ?,
        version = ?, born_at = ?, last_used = ?, use_count = ?, strength = ?, uses = ?, review_count = ?,
        derived_from = ?, is_forced = ?, promoted_at = ?, vault_path = ?
    WHERE owner = ?
"""
