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

-- chosen
-- The condition for a row `r` of relations that a filter selects by times, types and groups; see `graph.py`.
r.created_at <= :known_at AND (
    :is_all OR (
        (r.is_retracted = 0 OR r.expired_at > :known_at)
        AND CASE
            WHEN :after IS NULL THEN r.expired_at IS NULL OR r.expired_at > :known_at
            ELSE (:valid_at IS NULL OR r.valid_from IS NULL OR r.valid_from <= :valid_at)
                AND coalesce(
                    CASE WHEN r.expired_at > :known_at THEN r.stated_to ELSE r.valid_to END > :after, true
                )
        END
    )
)
AND (:types IS NULL OR r.type IN (SELECT value FROM json_each(:types)))
AND (:groups IS NULL OR r."group" IN (SELECT value FROM json_each(:groups)));

-- pairs
SELECT r.number, r.id, r.source, r.target FROM relations r NOT INDEXED
WHERE r.number > coalesce(:last, ({space} - 1) << 32) AND r.number < {space} << 32
    AND r.namespace = {space} AND r.stage < :stages AND {chosen}
ORDER BY r.number
LIMIT :limit;

-- reference_times
-- Without a hint SQLite scans the times of all episodes in another index.
SELECT id, reference_time FROM episodes INDEXED BY episodes_by_id
WHERE namespace = {space} AND id IN (SELECT value FROM json_each(:ids));

-- counts
SELECT
    (SELECT count(*) FROM episodes WHERE namespace = {space}),
    (SELECT count(*) FROM entities INDEXED BY entities_by_id WHERE namespace = {space})
        - (
            SELECT count(*) FROM entities INDEXED BY entities_past
            WHERE namespace = {space} AND expired_at IS NOT NULL
        ),
    (SELECT count(*) FROM relations WHERE namespace = {space}),
    (SELECT count(*) FROM relations WHERE namespace = {space} AND dispute != '');
