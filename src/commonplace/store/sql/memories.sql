-- of_id
SELECT {memory}
FROM memories m CROSS JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE m.namespace = {space} AND m.id = :id;

-- latest
{of_id} AND m.is_latest = 1;

-- versions
{of_id} ORDER BY o.number;

-- of_numbers
SELECT {memory}
FROM json_each(:numbers) j
    CROSS JOIN memories m ON m.owner = j.value
    CROSS JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE m.namespace = {space};

-- statements
-- A memory is overtaken if a link says so, or if another memory ended the last of its facts and none of them holds any
-- more.
SELECT m.owner, m.id, m.at, l.source, l.type, l.origin, CASE WHEN :as_of IS NULL THEN (
    SELECT b.memory
    FROM episodes e
        CROSS JOIN mentions n ON n.namespace = e.namespace AND n.episode = e.id AND n.kind = 'relation'
        CROSS JOIN happenings h ON h.namespace = e.namespace AND h.kind = n.kind AND h.subject = n.subject
        CROSS JOIN episodes b ON b.namespace = e.namespace AND b.id = h.episode
    WHERE e.namespace = m.namespace AND e.memory = m.id AND e.memory != ''
        AND h.what = 'ended' AND b.memory NOT IN ('', m.id)
        AND NOT EXISTS (
            SELECT 1
            FROM episodes a
                CROSS JOIN mentions k ON k.namespace = a.namespace AND k.episode = a.id AND k.kind = 'relation'
                CROSS JOIN relations r ON r.namespace = k.namespace AND r.id = k.subject
            WHERE a.namespace = m.namespace AND a.memory = m.id AND a.memory != ''
                AND (r.valid_to IS NULL OR r.is_retracted = 1)
        )
    ORDER BY h.number DESC
    LIMIT 1
) END
FROM json_each(:numbers) j
    CROSS JOIN memories m ON m.owner = j.value
    LEFT JOIN links l INDEXED BY links_by_target
        ON l.namespace = m.namespace AND l.target = m.id AND l.created_at <= COALESCE(:as_of, l.created_at)
            AND (l.expired_at IS NULL OR l.expired_at > :as_of)
            AND (l.type IN ('supersedes', 'holds beside') OR l.type = 'conflicts'
                AND (l.origin != 'rule' OR l.strength > :doubt))
WHERE m.namespace = {space}
ORDER BY m.owner, l.type = 'holds beside', l.source;

-- announced
SELECT m.owner, min(COALESCE(r.valid_from, 0))
FROM json_each(:numbers) j
    CROSS JOIN memories m ON m.owner = j.value
    CROSS JOIN episodes e ON e.namespace = m.namespace AND e.memory = m.id
    CROSS JOIN mentions n ON n.namespace = e.namespace AND n.episode = e.id AND n.kind = 'relation'
    CROSS JOIN relations r ON r.namespace = n.namespace AND r.id = n.subject
WHERE m.namespace = {space} AND e.memory != '' AND r.is_retracted = 0
GROUP BY m.owner, m.at
HAVING min(COALESCE(r.valid_from, 0)) > m.at;

-- passages_of_hits
SELECT {passage},
    o.number, o.created_at, o.expired_at, {memories:m}, {owners:o}, {stamp}
FROM json_each(:numbers) j
    CROSS JOIN passages p ON p.number = j.value
    CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    LEFT JOIN file_stamps s ON s.namespace = o.namespace AND s.owner = o.number
    LEFT JOIN memories m ON m.namespace = o.namespace AND m.owner = o.number
WHERE o.namespace = {space};

-- alike
SELECT {memory}
FROM (
    SELECT owner FROM memories
    WHERE namespace = {space} AND substr(digest, 1, 16) = substr(:digest, 1, 16) AND digest = :digest
        AND digest != '' AND is_latest = 1
    UNION
    SELECT owner FROM memory_bands
    WHERE namespace = {space} AND band IN (SELECT j.value FROM json_each(:bands) j)
) found
    CROSS JOIN memories m ON m.owner = found.owner
    CROSS JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE m.namespace = {space} AND o.expired_at IS NULL
ORDER BY o.number;

-- chosen
WHERE m.namespace = {space} AND m.is_latest = 1
    AND (:ids IS NULL OR m.id IN (SELECT value FROM json_each(:ids)))
    AND (:tiers IS NULL OR m.tier IN (SELECT value FROM json_each(:tiers)))
    AND (:statuses IS NULL OR m.status IN (SELECT value FROM json_each(:statuses)))
    AND (:sources IS NULL OR m.source IN (SELECT value FROM json_each(:sources)))
    AND (:sessions IS NULL OR EXISTS (
        SELECT 1 FROM owners o
        WHERE o.namespace = m.namespace AND o.number = m.owner
            AND o.session IN (SELECT value FROM json_each(:sessions))
    ))
    AND (:categories IS NULL OR m.category IN (SELECT value FROM json_each(:categories)))
    AND (:tags IS NULL OR m.owner IN (
        SELECT owner FROM owner_tags
        WHERE namespace = {space} AND tag IN (SELECT value FROM json_each(:tags))
    ))
    AND (:since IS NULL OR m.at >= :since)
    AND (:until IS NULL OR m.at < :until)
    AND (:min_trust = 0.0 OR m.trust >= :min_trust);

-- selected
-- Rows are read in the order of this index, whose pages are adjacent.
FROM memories m INDEXED BY memories_by_time {chosen};

-- by_newest
SELECT m.owner {selected} ORDER BY m.at DESC, m.id LIMIT :limit OFFSET :offset;

-- by_used
SELECT m.owner {selected} ORDER BY m.use_count DESC, m.id LIMIT :limit OFFSET :offset;

-- by_idle
SELECT m.owner {selected} ORDER BY m.last_used, m.id LIMIT :limit OFFSET :offset;

-- by_stored
SELECT m.owner {selected} ORDER BY m.born_at, m.id LIMIT :limit OFFSET :offset;

-- by_changed
SELECT m.owner {selected} ORDER BY m.owner DESC LIMIT :limit OFFSET :offset;

-- by_id
SELECT m.owner FROM memories m {chosen} ORDER BY m.id LIMIT :limit OFFSET :offset;

-- by_archived
SELECT m.owner FROM owners o INDEXED BY owners_past
    CROSS JOIN memories m ON m.namespace = o.namespace AND m.owner = o.number {chosen}
    AND o.namespace = {space} AND o.expired_at IS NOT NULL
ORDER BY o.expired_at DESC, m.id LIMIT :limit OFFSET :offset;

-- count
SELECT count(*) {selected};

-- all_links
SELECT {links:} FROM links WHERE namespace = {space};

-- links
SELECT {links:} FROM links WHERE namespace = {space} AND source IN (SELECT value FROM json_each(:ids))
UNION SELECT {links:} FROM links WHERE namespace = {space} AND target IN (SELECT value FROM json_each(:ids));

-- written
SELECT p.id, {passages:p}, v.token_ids, v.vector
FROM passages p JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
WHERE p.namespace = :namespace AND p.owner = :owner
ORDER BY p.ordinal;

-- dates
SELECT since, until FROM memory_dates WHERE namespace = :namespace AND owner = :owner;

-- digest
SELECT digest FROM memories WHERE namespace = :namespace AND owner = :owner;

-- outdate
UPDATE memories SET is_latest = 0 WHERE namespace = :namespace AND id = :id AND is_latest = 1;

-- revise
UPDATE memories SET {memories:=},
    at = coalesce((SELECT o.at FROM owners o WHERE o.namespace = :namespace AND o.number = :owner), :born_at)
WHERE namespace = :namespace AND owner = :owner;

-- detach
-- Before the content of a memory changes, store in its passages the text that they took from it.
UPDATE passages SET text = {text:passages}, length = 0
WHERE namespace = :namespace AND owner = :owner AND length != 0;

-- past
SELECT {token}
FROM owners o INDEXED BY owners_past
    CROSS JOIN passages p ON p.namespace = o.namespace AND p.owner = o.number
    CROSS JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
WHERE o.namespace = {space} AND o.expired_at > :as_of AND o.created_at <= :as_of;

-- passages_of_earlier
SELECT {token}
FROM ({earlier}) e
    CROSS JOIN owners o ON o.namespace = e.namespace AND o.number = e.owner
    CROSS JOIN passages p ON p.namespace = e.namespace AND p.owner = e.owner
    CROSS JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number;

-- tiers
SELECT tier, status, count(*) FROM memories INDEXED BY memories_by_time
WHERE namespace = {space} AND is_latest = 1
GROUP BY tier, status;

-- facets
WITH chosen AS MATERIALIZED (
    SELECT m.owner, m.tier, m.status, m.category, m.source, CAST(m.trust AS TEXT) AS trust {selected}
)
SELECT 'tag' AS what, tag AS tier, '' AS status, '' AS category, '' AS source, '' AS trust, count(*)
FROM owner_tags WHERE namespace = {space} AND owner IN (SELECT owner FROM chosen) GROUP BY tag
UNION ALL
SELECT 'session', session, '', '', '', '', count(*) FROM owners
WHERE namespace = {space} AND number IN (SELECT owner FROM chosen) GROUP BY session
UNION ALL
SELECT 'memory', tier, status, category, source, trust, count(*) FROM chosen
GROUP BY tier, status, category, source, trust;

-- shared_bands
SELECT band, owner FROM memory_bands
WHERE namespace = {space} AND band IN (
    SELECT band FROM memory_bands WHERE namespace = {space} GROUP BY band HAVING count(*) BETWEEN 2 AND :most
)
ORDER BY band, owner;

-- dated
SELECT d.owner, d.since, d.until
FROM memory_dates d CROSS JOIN owners o ON o.namespace = d.namespace AND o.number = d.owner
WHERE d.namespace = {space} AND d.since < :until AND d.until > :since AND o.expired_at IS NULL
    AND (:as_of IS NULL OR o.created_at <= :as_of)
UNION
SELECT o.number, o.at, o.at
FROM owners o
WHERE o.namespace = {space} AND o.kind = 'memory' AND o.expired_at IS NULL
    AND o.at >= :since AND o.at < :until AND (:as_of IS NULL OR o.created_at <= :as_of);

-- dated_past
SELECT d.owner, d.since, d.until
FROM owners o INDEXED BY owners_past CROSS JOIN memory_dates d ON d.namespace = o.namespace AND d.owner = o.number
WHERE o.namespace = {space} AND o.expired_at > :as_of AND o.created_at <= :as_of
    AND d.since < :until AND d.until > :since
UNION
SELECT o.number, o.at, o.at
FROM owners o INDEXED BY owners_past
WHERE o.namespace = {space} AND o.expired_at > :as_of AND o.created_at <= :as_of
    AND o.kind = 'memory' AND o.at >= :since AND o.at < :until;
