-- pending
-- A passage with a vector of the next embedder is not pending: it waits for the switch.
FROM passage_vectors v INDEXED BY passage_vectors_pending
WHERE length(v.vector) = 0
    AND NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.namespace = v.namespace AND x.number = v.number);

-- count_pending
SELECT count(*) {pending};

-- pending_entries
SELECT {entry}, v.token_ids, v.vector
FROM (SELECT v.namespace, v.number, v.token_ids, v.vector {pending} ORDER BY 1, 2 LIMIT :limit) v
    CROSS JOIN passages p ON p.namespace = v.namespace AND p.number = v.number
    CROSS JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    CROSS JOIN namespaces n ON n.number = p.namespace
ORDER BY p.number;

-- pending_of
SELECT v.number, v.owner, v.is_past {pending}
    AND v.namespace = :space AND v.number IN (SELECT j.value FROM json_each(:numbers) j);

-- names
SELECT name, number FROM namespaces WHERE number IN (SELECT j.value FROM json_each(:numbers) j);

-- set_vector
UPDATE passage_vectors SET vector = :vector WHERE namespace = :space AND number = :number;

-- stamp
-- Few owners are listed: without an index by namespace, SQLite finds them by their numbers.
UPDATE owners NOT INDEXED SET change = :change
WHERE namespace = :space AND number IN (SELECT j.value FROM json_each(:owners) j) AND expired_at IS NULL;

-- of_owners
namespace = :space AND number IN (
    SELECT number FROM passages WHERE namespace = :space AND owner IN (SELECT j.value FROM json_each(:owners) j)
);

-- unembedded
SELECT {entry}, v.token_ids, v.vector
FROM passages p NOT INDEXED {entry_joins}
WHERE p.namespace = :space AND p.number > :after AND p.number < :end
    AND NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.namespace = p.namespace AND x.number = p.number)
ORDER BY p.number
LIMIT :limit;

-- spaces
SELECT number FROM namespaces WHERE number >= :space ORDER BY number;

-- there
SELECT number FROM passages NOT INDEXED
WHERE namespace = :space AND number IN (SELECT j.value FROM json_each(:numbers) j);

-- is_any_missing
SELECT EXISTS (
    SELECT 1 FROM passage_vectors v
    WHERE NOT EXISTS (SELECT 1 FROM next_vectors x WHERE x.namespace = v.namespace AND x.number = v.number)
);

-- move
UPDATE passage_vectors SET vector = (
    SELECT x.vector FROM next_vectors x
    WHERE x.namespace = passage_vectors.namespace AND x.number = passage_vectors.number
);

-- rename_recipes
UPDATE file_stamps SET recipe = replace(recipe, :old, :new) WHERE instr(recipe, :old) > 0;

-- rename_stamps
UPDATE knowledge_items SET embedder = :new WHERE embedder = :old;
