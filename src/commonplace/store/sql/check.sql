-- counted
WITH owned AS (
    SELECT namespace, kind, count(*) AS owners FROM owners WHERE expired_at IS NULL GROUP BY 1, 2
),
written AS (
    SELECT o.namespace, o.kind, count(*) AS passages,
        sum(length(CAST(p.text AS BLOB))) AS text_bytes
    FROM (SELECT p.namespace, p.owner, {text:p} AS text FROM passages p) p
        JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    WHERE o.expired_at IS NULL GROUP BY 1, 2
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
);

-- stray_texts
-- The name of a reserved namespace is U+001F, the kind, U+001F and the namespace that the texts belong to.
SELECT count(*) FROM owners o
    JOIN namespaces t ON t.number = o.namespace
    LEFT JOIN namespaces n ON n.name = substr(t.name, length(o.kind) + 3)
WHERE o.kind IN ('entity', 'relation') AND NOT EXISTS (
    SELECT 1 FROM entities WHERE o.kind = 'entity' AND namespace = n.number AND id = o.id
    UNION ALL
    SELECT 1 FROM relations WHERE o.kind = 'relation' AND namespace = n.number AND id = o.id
);

-- lengths
SELECT o.kind, length(v.vector), count(*)
FROM passage_vectors v JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner GROUP BY 1, 2;

-- next_lengths
SELECT o.kind, length(x.vector), count(*)
FROM next_vectors x
    JOIN passage_vectors v ON v.namespace = x.namespace AND v.number = x.number
    JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
GROUP BY 1, 2;
