-- passages without vectors
SELECT count(*) FROM passages WHERE number NOT IN (SELECT number FROM passage_vectors);

-- passages that name another owner than their vectors do
SELECT count(*) FROM passages p JOIN passage_vectors v ON v.number = p.number
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
SELECT count(*) FROM passage_vectors WHERE is_past = 0 AND number IN (SELECT number FROM deletions);

-- passages that are past where their owner is not, or the other way round
SELECT count(*) FROM passage_vectors v JOIN owners o ON o.number = v.owner
WHERE (v.is_past = 1) != (o.expired_at IS NOT NULL);

-- memories that name another id or namespace than their owner does
SELECT count(*) FROM memories m JOIN owners o ON o.number = m.owner
WHERE m.id != o.id OR m.namespace != o.namespace OR o.kind != 'memory';

-- memories with another time than they are of
SELECT count(*) FROM memories m JOIN owners o ON o.number = m.owner WHERE m.at != coalesce(o.at, m.born_at);

-- memories without exactly one latest version
SELECT count(*) FROM (
    SELECT 1 FROM memories GROUP BY namespace, id HAVING sum(is_latest) != 1
        OR max(owner) != max(owner) FILTER (WHERE is_latest = 1)
) wrong;

-- versions that are live though a later one exists
SELECT count(*) FROM memories m JOIN owners o ON o.number = m.owner
WHERE o.expired_at IS NULL AND m.is_latest = 0;

-- bands of memories that are past
SELECT count(*) FROM memory_bands b JOIN owners o ON o.number = b.owner WHERE o.expired_at IS NOT NULL;

-- passage numbers above the last one given
SELECT count(*) FROM passages WHERE number >= (SELECT next_passage FROM sequences);

-- owner numbers above the last one given
SELECT count(*) FROM owners WHERE number >= (SELECT next_owner FROM sequences);

-- changes out of order
SELECT count(*) FROM changes c LEFT JOIN changes b ON b.namespace = c.namespace AND b.number = c.number - 1
WHERE c.number != 1 AND (b.number IS NULL OR b.next_passage > c.next_passage);

-- namespaces whose last change is another one than they say
SELECT count(*) FROM namespaces n LEFT JOIN changes c ON c.namespace = n.number AND c.number = n.change
WHERE (n.change > 0 AND (c.token IS NULL OR c.token != n.token))
    OR EXISTS (SELECT 1 FROM changes x WHERE x.namespace = n.number AND x.number > n.change);

-- changes without a token of eight bytes
SELECT count(*) FROM changes WHERE typeof(token) != 'blob' OR length(token) != 8;

-- owners that are past and have no record
SELECT count(*) FROM owners
WHERE expired_at IS NOT NULL AND number NOT IN (SELECT owner FROM memories)
    AND number NOT IN (SELECT owner FROM knowledge_items);

-- knowledge items whose owner is of another kind
SELECT count(*) FROM knowledge_items k JOIN owners o ON o.number = k.owner WHERE o.kind != 'knowledge';

-- relations whose stage does not fit them
SELECT count(*) FROM relations
WHERE stage != CASE WHEN expired_at IS NOT NULL OR is_retracted = 1 THEN 2
    WHEN valid_to IS NOT NULL THEN 1 ELSE 0 END;
