-- passages without vectors
SELECT count(*) FROM passages p
WHERE NOT EXISTS (SELECT 1 FROM passage_vectors v WHERE v.namespace = p.namespace AND v.number = p.number);

-- passages that name another owner than their vectors do
SELECT count(*) FROM passages p JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
WHERE p.owner != v.owner;

-- passages with half a token id
SELECT count(*) FROM passage_vectors WHERE length(token_ids) % 2 != 0;

-- owners stamped with a change that was never made
SELECT count(*) FROM owners t
WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.namespace = t.namespace AND c.number = t.change);

-- deletions stamped with a change that was never made
SELECT count(*) FROM deletions t
WHERE NOT EXISTS (SELECT 1 FROM changes c WHERE c.namespace = t.namespace AND c.number = t.change);

-- passages that are recorded as deleted
SELECT count(*) FROM passage_vectors v JOIN deletions d ON d.namespace = v.namespace AND d.number = v.number
WHERE v.is_past = 0;

-- passages that are past where their owner is not, or the other way round
SELECT count(*) FROM passage_vectors v JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
WHERE (v.is_past = 1) != (o.expired_at IS NOT NULL);

-- memories that name another id than their owner does
SELECT count(*) FROM memories m JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE m.id != o.id OR o.kind != 'memory';

-- memories with another time than they are of
SELECT count(*) FROM memories m JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE m.at != coalesce(o.at, m.born_at);

-- memories without exactly one latest version
SELECT count(*) FROM (
    SELECT 1 FROM memories GROUP BY namespace, id HAVING sum(is_latest) != 1
        OR max(owner) != max(owner) FILTER (WHERE is_latest = 1)
) wrong;

-- versions that are live though a later one exists
SELECT count(*) FROM memories m JOIN owners o ON o.namespace = m.namespace AND o.number = m.owner
WHERE o.expired_at IS NULL AND m.is_latest = 0;

-- bands of memories that are past
SELECT count(*) FROM memory_bands b JOIN owners o ON o.namespace = b.namespace AND o.number = b.owner
WHERE o.expired_at IS NOT NULL;

-- passage numbers above the last one given
SELECT count(*) FROM passages p
WHERE number >= (
    SELECT next_passage FROM changes c WHERE c.namespace = p.namespace ORDER BY c.number DESC LIMIT 1
);

-- owner numbers above the last one given
SELECT count(*) FROM owners o
WHERE number >= (
    SELECT next_owner FROM changes c WHERE c.namespace = o.namespace ORDER BY c.number DESC LIMIT 1
);

-- changes out of order
SELECT count(*) FROM changes c LEFT JOIN changes b ON b.namespace = c.namespace AND b.number = c.number - 1
WHERE c.number != 1 AND (b.number IS NULL OR b.next_passage > c.next_passage);

-- changes without a token of sixteen digits
SELECT count(*) FROM changes WHERE length(token) != 16;

-- owners that are past and have no record
SELECT count(*) FROM owners o
WHERE expired_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.namespace = o.namespace AND m.owner = o.number)
    AND NOT EXISTS (SELECT 1 FROM knowledge_items k WHERE k.namespace = o.namespace AND k.owner = o.number);

-- knowledge items whose owner is of another kind
SELECT count(*) FROM knowledge_items k JOIN owners o ON o.namespace = k.namespace AND o.number = k.owner WHERE o.kind != 'knowledge';

-- relations whose stage does not fit them
SELECT count(*) FROM relations
WHERE stage != CASE WHEN expired_at IS NOT NULL OR is_retracted = 1 THEN 2
    WHEN valid_to IS NOT NULL THEN 1 ELSE 0 END;
