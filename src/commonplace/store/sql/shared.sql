-- stamp
s.sha256, s.size, s.mtime_ns, s.recipe;

-- passage
p.number, p.id, p.owner, p.ordinal, {passages:p};

-- token
v.number, v.owner, v.token_ids, v.vector, o.kind, o.at, o.session;

-- entry
p.number, p.owner, n.name, o.kind, o.type, o.phase, o.tags, o.title, o.path, p.heading, o.summary, {text:p};

-- entry_joins
CROSS JOIN passage_vectors v ON v.namespace = p.namespace AND v.number = p.number
    CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    CROSS JOIN namespaces n ON n.number = p.namespace;

-- memory
-- The columns of a version of a memory with owner `o` and record `m`.
o.number, o.created_at, o.expired_at, {memories:m}, {owners:o};

-- earlier
-- The version before the current one, if it is valid at :valid_at and the current one is about a later time.
SELECT m.namespace, m.owner
FROM memories n
    CROSS JOIN owners c ON c.namespace = n.namespace AND c.number = n.owner
    CROSS JOIN memories m ON m.namespace = n.namespace AND m.id = n.id AND m.owner < n.owner
WHERE n.namespace = {space} AND n.at > :valid_at AND m.at <= :valid_at
    AND CASE WHEN :as_of IS NULL THEN c.expired_at IS NULL
        ELSE c.created_at <= :as_of AND (c.expired_at IS NULL OR c.expired_at > :as_of) END
    AND NOT EXISTS (
        SELECT 1 FROM memories l
        WHERE l.namespace = n.namespace AND l.id = n.id AND l.owner > m.owner AND l.owner < n.owner
            AND l.at <= :valid_at
    );
