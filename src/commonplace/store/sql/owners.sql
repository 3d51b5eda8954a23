-- owners
SELECT o.number, {owners:o}, {stamp}
FROM json_each(:numbers) j
    CROSS JOIN owners o ON o.number = j.value
    LEFT JOIN file_stamps s ON s.namespace = o.namespace AND s.owner = o.number
WHERE o.namespace = {space};

-- artifacts
SELECT o.number, {owners:o}, {stamp}
FROM owners o INDEXED BY owners_by_filter
    LEFT JOIN file_stamps s ON s.namespace = o.namespace AND s.owner = o.number
WHERE o.namespace = {space}
    AND o.kind = 'artifact' AND o.path != '' AND o.expired_at IS NULL;

-- passages
SELECT {passage} FROM json_each(:numbers) j CROSS JOIN passages p ON p.number = j.value
WHERE p.namespace = {space};

-- passages_of
SELECT p.number FROM json_each(:numbers) j CROSS JOIN passages p ON p.owner = j.value
WHERE p.namespace = {space};

-- repeated_headings
SELECT p.number
FROM json_each(:numbers) j
    CROSS JOIN passages p ON p.number = j.value
WHERE p.namespace = {space} AND p.heading != ''
    AND (
        SELECT coalesce(nullif(count(*) FILTER (WHERE instr({text:q}, q.heading) > 0), 0), count(*))
        FROM passages q
        WHERE q.namespace = p.namespace AND q.owner = p.owner AND q.heading = p.heading
    ) > 1;

-- tokens_of
    CROSS JOIN passage_vectors v ON v.number = j.value
    CROSS JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
WHERE v.namespace = {space};

-- tokens
SELECT {token} FROM json_each(:numbers) j {tokens_of};

-- vectors
SELECT v.number, v.vector
FROM json_each(:numbers) j CROSS JOIN passage_vectors v ON v.number = j.value
WHERE v.namespace = {space};

-- head
SELECT number, token FROM changes WHERE namespace = {space} ORDER BY number DESC LIMIT 1;

-- first
-- The lower bound (inclusive) of the numbers of passages written after a change of a namespace.
coalesce((
    SELECT next_passage FROM changes WHERE namespace = {space} AND number <= :change ORDER BY number DESC LIMIT 1
), 0);

-- tail
SELECT {token}
FROM passage_vectors v CROSS JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
WHERE v.number >= {first} AND v.namespace = {space} AND v.is_past = 0
ORDER BY v.number;

-- entries
SELECT {entry}, v.token_ids, v.vector
FROM json_each(:numbers) j CROSS JOIN passages p ON p.number = j.value {entry_joins}
WHERE n.name = :namespace;

-- bounds
-- The bounds [first, last) of the numbers of passages written by the changes (:change, :upto].
SELECT {first}, coalesce((
    SELECT next_passage FROM changes WHERE namespace = {space} AND number <= :upto ORDER BY number DESC LIMIT 1
), 0);

-- entries_between
SELECT {entry}, v.token_ids, v.vector
FROM passages p NOT INDEXED {entry_joins}
WHERE p.namespace = {space} AND p.number >= :first AND p.number < :last AND v.is_past = 0
ORDER BY p.number
LIMIT :limit;

-- written
(
    SELECT count(*) FROM passage_vectors v
    WHERE v.namespace = {space} AND v.is_past = 0 AND v.number >= {first}
);

-- deletions
(SELECT count(*) FROM deletions WHERE namespace = {space} AND change > :change);

-- pending
SELECT {written}, {deletions};

-- hop
-- Join passages with those of the owners at the nearest lower and higher position in the same session.
    CROSS JOIN passages p ON p.number = j.value
    CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    CROSS JOIN owners n
        ON n.namespace = o.namespace AND n.session = o.session AND n.session != '' AND n.expired_at IS NULL
            AND n.position IN (
                (
                    SELECT max(b.position) FROM owners b
                    WHERE b.namespace = o.namespace AND b.session = o.session AND b.session != ''
                        AND b.expired_at IS NULL AND b.position < o.position
                ), (
                    SELECT min(b.position) FROM owners b
                    WHERE b.namespace = o.namespace AND b.session = o.session AND b.session != ''
                        AND b.expired_at IS NULL AND b.position > o.position
                )
            )
    CROSS JOIN passages q ON q.namespace = n.namespace AND q.owner = n.number
WHERE o.namespace = {space} AND o.session != '' AND o.expired_at IS NULL;

-- beside
-- Pairs of neighbours: the requested passages with their neighbours, and those with their own.
WITH talk AS (
    SELECT 1 WHERE EXISTS (
        SELECT 1 FROM owners WHERE namespace = {space} AND session != '' AND expired_at IS NULL
    )
),
near AS (SELECT DISTINCT p.number, q.number AS neighbour FROM talk CROSS JOIN json_each(:numbers) j {hop}),
others AS (
    SELECT DISTINCT neighbour AS value FROM near WHERE neighbour NOT IN (SELECT j.value FROM json_each(:numbers) j)
),
far AS (SELECT DISTINCT p.number, q.number AS neighbour FROM others j {hop}),
pairs AS (SELECT number, neighbour FROM near UNION SELECT number, neighbour FROM far);

-- neighbours
{beside} SELECT number, neighbour FROM pairs ORDER BY 1, 2;

-- tokens_beside
-- The rows of `tokens` for passages and their neighbours, and the pairs of `neighbours`.
{beside}, asked AS (SELECT value FROM json_each(:numbers) j UNION SELECT neighbour FROM near)
SELECT {token} FROM asked j {tokens_of}
UNION ALL
SELECT number, neighbour, NULL, NULL, NULL, NULL, NULL FROM pairs;

-- paths
SELECT number, path
FROM owners INDEXED BY owners_by_path
WHERE namespace = {space} AND kind = 'artifact' AND path != ''
    AND expired_at IS NULL;

-- live
SELECT id, number, session, position FROM owners
WHERE namespace = {space} AND kind = :kind
    AND id IN (SELECT value FROM json_each(:ids)) AND expired_at IS NULL;

-- last_position
SELECT max(position) FROM owners
WHERE namespace = {space} AND session = :session AND session != ''
    AND expired_at IS NULL;

-- counts
SELECT coalesce(sum(owners), 0), coalesce(sum(passages), 0), coalesce(sum(text_bytes), 0),
    coalesce(sum(owners) FILTER (WHERE kind = 'artifact'), 0),
    coalesce(sum(owners) FILTER (WHERE kind = 'memory'), 0),
    coalesce(sum(owners) FILTER (WHERE kind = 'knowledge'), 0)
FROM counts
WHERE :namespace IS NULL OR namespace = {space};

-- state_upto_date
-- The state of a namespace that every search reads first, if recall lacks no change.
SELECT 'meta' AS what, key AS one, value AS two, 0 AS three, 0 AS four, 0.0 AS five FROM meta
UNION ALL SELECT 'head', '', token, number, 0, 0.0 FROM ({head}) h
UNION ALL SELECT 'token', '', token, 0, 0, 0.0 FROM changes
    WHERE namespace = {space} AND number = :change
UNION ALL SELECT 'session', '', '', 1, 0, 0.0 WHERE EXISTS (
    SELECT 1 FROM owners WHERE namespace = {space} AND session != '' AND expired_at IS NULL
)
UNION ALL SELECT 'count', kind, '', owners, passages, text_bytes FROM counts WHERE namespace = {space}
UNION ALL SELECT 'note', id, body, 0, 0, at FROM notes WHERE kind = :notes AND namespace = {space};

-- state
{state_upto_date} UNION ALL SELECT 'pending', '', '', {written}, {deletions}, 0.0;

-- heads
SELECT n.name, c.number, c.token
FROM namespaces n CROSS JOIN changes c ON c.namespace = n.number
    AND c.number = (SELECT max(x.number) FROM changes x WHERE x.namespace = n.number);

-- token
SELECT c.token FROM namespaces n JOIN changes c ON c.namespace = n.number
WHERE n.name = :namespace AND c.number = :change;

-- of_paths
SELECT path, number, namespace FROM owners
WHERE namespace = {space} AND kind = 'artifact' AND path IN (SELECT value FROM json_each(:paths))
    AND path != '' AND expired_at IS NULL;

-- artifact_types
SELECT o.type, max(CASE WHEN o.tags != '' THEN 1 ELSE 0 END)
FROM owners o INDEXED BY owners_by_filter
WHERE o.namespace = {space} AND o.kind = 'artifact' AND o.expired_at IS NULL
GROUP BY o.type;

-- deleted_between
SELECT number FROM deletions
WHERE namespace = {space} AND change > :change AND change <= :upto ORDER BY number;
