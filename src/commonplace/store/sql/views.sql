-- SQLite has no function that reads a BLOB as numbers: each byte is decoded from its hexadecimal digits.
CREATE VIEW knowledge AS
SELECT
    k.owner AS id,
    strftime('%Y-%m-%d %H:%M:%f+00:00', o.created_at, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%f+00:00', k.updated_at, 'unixepoch') AS updated_at,
    strftime('%Y-%m-%d %H:%M:%f+00:00', o.expired_at, 'unixepoch') AS deleted_at,
    k.agent AS agent_name,
    k.content AS content,
    k.metadata AS metadata,
    CASE WHEN k.embedder != '' THEN (
        WITH RECURSIVE
            stored (vector) AS (
                SELECT CASE WHEN k.vector != x'' THEN k.vector ELSE (
                    SELECT v.vector
                    FROM passages p JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
                    WHERE p.namespace = k.namespace AND p.owner = k.owner AND p.ordinal = 0
                ) END
            ),
            digits (place, value) AS (
                SELECT 1, hex(substr(vector, 1, 1)) FROM stored WHERE length(vector) > 0
                UNION ALL
                SELECT place + 1, hex(substr(vector, place + 1, 1)) FROM digits, stored WHERE place < length(vector)
            )
        SELECT json_group_array(
            round((
                (instr('0123456789ABCDEF', substr(value, 1, 1)) - 1) * 16
                + instr('0123456789ABCDEF', substr(value, 2, 1)) - 1
                - CASE WHEN value >= '80' THEN 256 ELSE 0 END
            ) / 127.0, 4)
        ) FROM digits
    ) END AS embedding,
    n.name AS namespace
FROM knowledge_items k
    JOIN owners o ON o.namespace = k.namespace AND o.number = k.owner
    JOIN namespaces n ON n.number = k.namespace;
