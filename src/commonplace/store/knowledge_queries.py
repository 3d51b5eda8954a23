"""The SQL about agents' knowledge of the SQLite store. The orders of columns are those that `knowledge_rows` unpacks.

`:space` is the number of a namespace.
"""

from commonplace.store.queries import LIVE_STAMP

_COLUMNS = f"""
    o.number, o.created_at, k.updated_at, o.expired_at,
    k.agent, k.content, k.metadata, k.digest, {LIVE_STAMP}, k.vector,
    o.id, o.kind, o.title, o.summary, o.tags, o.type, o.phase, o."references", o.path, o.root, o.session, o.position,
    o.at
"""

OF_AGENT = f"""
    SELECT {_COLUMNS}
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space AND k.agent = :agent AND (o.expired_at IS NOT NULL) = :deleted
    ORDER BY o.number
"""

OF_ALL = f"""
    SELECT {_COLUMNS}
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space AND (o.expired_at IS NOT NULL) = :deleted
    ORDER BY o.number
"""

OF_NUMBERS = f"""
    SELECT {_COLUMNS}
    FROM json_each(:numbers) j
        CROSS JOIN knowledge_items k ON k.owner = j.value
        CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space
"""

AGENTS = """
    SELECT k.agent, sum(o.expired_at IS NULL), sum(o.expired_at IS NOT NULL)
    FROM knowledge_items k INDEXED BY knowledge_items_by_agent CROSS JOIN owners o ON o.number = k.owner
    WHERE k.namespace = :space
    GROUP BY k.agent
"""

MATCHING = """
    SELECT k.owner FROM knowledge_items k INDEXED BY knowledge_items_by_agent
    WHERE k.namespace = (SELECT number FROM namespaces WHERE name = :namespace) AND k.agent = :agent
"""

ADD = "INSERT INTO knowledge_items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

CONTEXT = "SELECT name, last_cursor, metadata, updated_at FROM agent_contexts WHERE namespace = :space AND name = :name"

CONTEXTS = "SELECT name, last_cursor, metadata, updated_at FROM agent_contexts WHERE namespace = :space"

PUT_CONTEXT = "INSERT OR REPLACE INTO agent_contexts VALUES (?, ?, ?, ?, ?)"

DROP_CONTEXT = "DELETE FROM agent_contexts WHERE namespace = ? AND name = ?"
