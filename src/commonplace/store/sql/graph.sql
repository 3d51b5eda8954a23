-- episodes
SELECT {episodes:e} FROM episodes e
WHERE e.namespace = {space} AND e.created_at <= :known_at
    AND (:groups IS NULL OR e."group" IN (SELECT value FROM json_each(:groups)))
ORDER BY e.reference_time DESC, e.id
LIMIT :limit OFFSET :offset;

-- named
SELECT a.normal, {entities:x}
FROM aliases a CROSS JOIN entities x ON x.namespace = a.namespace AND x.id = a.entity
WHERE a.namespace = {space} AND a.normal = :normal AND x.expired_at IS NULL
ORDER BY a.entity
LIMIT :limit;

-- entities
SELECT {entities:x} FROM entities x
WHERE x.namespace = {space}
    AND (:is_all OR (x.created_at <= :known_at AND (x.expired_at IS NULL OR x.expired_at > :known_at)))
    AND (:types IS NULL OR x.type IN (SELECT value FROM json_each(:types)))
    AND (
        :groups IS NULL
        OR x."group" IN (SELECT value FROM json_each(:groups))
        OR EXISTS (
            SELECT 1
            FROM mentions m CROSS JOIN episodes e ON e.namespace = m.namespace AND e.id = m.episode
            WHERE m.namespace = x.namespace AND m.kind = 'entity' AND m.subject = x.id
                AND e."group" IN (SELECT value FROM json_each(:groups))
        )
    )
ORDER BY x.name, x.id
LIMIT :limit OFFSET :offset;
