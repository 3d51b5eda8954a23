-- stamp
INSERT INTO meta VALUES ('recall', :version) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- gone
WITH gone AS (
    SELECT d.namespace, d.number
    FROM unnest(:spaces::bigint[]) s (number)
        JOIN deletions d ON d.namespace = s.number
            AND d.change = (SELECT max(c.number) FROM changes c WHERE c.namespace = s.number)
), signs AS (
    DELETE FROM passage_signs s USING gone g WHERE s.namespace = g.namespace AND s.number = g.number
)
DELETE FROM passage_terms t USING gone g WHERE t.namespace = g.namespace AND t.number = g.number
RETURNING t.namespace, t.number, t.terms;

-- fresh
-- Numbers ascend in a namespace: a live passage above all numbers in this table is new. Namespaces and limit are
-- parameters, so that the planner knows how few rows to expect.
SELECT p.namespace, {entry}, v.token_ids, v.vector
FROM unnest(:spaces::bigint[]) s (number)
    CROSS JOIN LATERAL (
        SELECT namespace, number, token_ids, vector FROM passage_vectors
        WHERE namespace = s.number AND is_past = 0
            AND number > (SELECT coalesce(max(t.number), 0) FROM passage_terms t WHERE t.namespace = s.number)
        ORDER BY number LIMIT :limit
    ) v
    JOIN passages p ON p.namespace = v.namespace AND p.number = v.number
    JOIN owners o ON o.namespace = p.namespace AND o.number = p.owner
    JOIN namespaces n ON n.number = p.namespace
ORDER BY v.number;

-- segments
SELECT start, upto, passages, lengths FROM segments WHERE namespace = :space ORDER BY start;

-- add_terms
INSERT INTO passage_terms (namespace, number, language, terms)
SELECT * FROM unnest(:spaces::bigint[], :numbers::bigint[], :languages::text[], :terms::bytea[]);

-- add_signs
INSERT INTO passage_signs (namespace, number, owner, kind, signs)
SELECT * FROM unnest(
    :spaces::bigint[], :numbers::bigint[], :owners::bigint[], :kinds::text[], :signs::text[]::bit varying[]
);

-- tails
SELECT s.space, (
    SELECT count(*) FROM passage_terms
    WHERE namespace = s.space AND number > (SELECT coalesce(max(upto), 0) FROM segments WHERE namespace = s.space)
) FROM unnest(:spaces::bigint[]) s (space);

-- unpacked
SELECT number, terms FROM passage_terms
WHERE namespace = :space
    AND number > (SELECT coalesce(max(upto), 0) FROM segments WHERE namespace = :space)
ORDER BY number LIMIT :limit;

-- add_postings
INSERT INTO postings (namespace, segment, term, units)
SELECT :space, :segment, * FROM unnest(:terms::integer[], :units::bytea[]);

-- merge_postings
INSERT INTO postings (namespace, segment, term, units)
SELECT namespace, :segment, term, string_agg(units, '' ORDER BY segment) FROM postings
WHERE namespace = :space AND segment > :segment GROUP BY namespace, term
ON CONFLICT (namespace, term, segment) DO UPDATE SET units = postings.units || excluded.units;

-- drop_merged_postings
DELETE FROM postings WHERE namespace = :space AND segment > :segment;

-- drop_merged_segments
DELETE FROM segments WHERE namespace = :space AND start > :segment;

-- put_segment
INSERT INTO segments (namespace, start, upto, passages, lengths)
VALUES (:space, :segment, :upto, :passages, :lengths::bigint[])
ON CONFLICT (namespace, start)
    DO UPDATE SET upto = excluded.upto, passages = excluded.passages, lengths = excluded.lengths;

-- postings
SELECT term, units FROM postings
WHERE namespace = :space AND segment = :segment AND term = ANY(:terms::integer[]);

-- set_postings
UPDATE postings p SET units = u.units FROM unnest(:terms::integer[], :units::bytea[]) u (term, units)
WHERE p.namespace = :space AND p.segment = :segment AND p.term = u.term;

-- drop_postings
DELETE FROM postings WHERE namespace = :space AND segment = :segment AND term = ANY(:terms::integer[]);

-- languages
SELECT l FROM unnest(:languages::text[]) l
WHERE EXISTS (SELECT 1 FROM passage_terms WHERE namespace = {space} AND language = l AND language != 'english');

-- of_terms
SELECT p.term, p.segment, 0::bigint, p.units, NULL::bigint[] FROM postings p
WHERE p.namespace = {space} AND p.term = ANY(:terms::integer[]);

-- all_of_terms
-- The first call also reads the segments and the passages of the tail.
SELECT NULL::integer, s.start, s.passages, NULL::bytea, s.lengths FROM segments s WHERE s.namespace = {space}
UNION ALL
SELECT NULL::integer, t.number, 0, t.terms, NULL::bigint[] FROM passage_terms t
WHERE t.namespace = {space}
    AND t.number > (SELECT coalesce(max(upto), 0) FROM segments WHERE namespace = {space})
UNION ALL
{of_terms};

-- in_scope
FROM passage_signs s
WHERE s.namespace = {space} AND length(s.signs) = length(:signs::bit varying)
    AND (:kinds::text[] IS NULL OR s.kind = ANY(:kinds::text[]))
    AND (:owners::bigint[] IS NULL OR s.owner = ANY(:owners::bigint[]))
    AND (:passed_over::bigint[] IS NULL OR s.owner != ALL(:passed_over::bigint[]));

-- how_many
SELECT count(*) FROM (SELECT 1 {in_scope} LIMIT :exact + 1) s;

-- nearest
SELECT s.number, s.owner {in_scope}
ORDER BY bit_count(s.signs # :signs::bit varying), s.number LIMIT :limit;

-- vectors
SELECT x.number, x.owner, v.vector FROM ({nearest}) x
    JOIN passage_vectors v ON v.namespace = {space} AND v.number = x.number;

-- entries
SELECT t.terms, v.number, v.owner, v.token_ids, v.vector, o.kind, o.at, o.session
FROM passage_vectors v JOIN owners o ON o.namespace = v.namespace AND o.number = v.owner
    LEFT JOIN passage_terms t ON t.namespace = v.namespace AND t.number = v.number
WHERE v.number = ANY(:numbers::bigint[]) AND v.namespace = {space};

-- owners
SELECT number, owner FROM passage_signs WHERE namespace = {space} AND number = ANY(:numbers::bigint[]);

-- of_owners
-- This uses the index of passages, because that of the signs does not contain owners.
SELECT s.number FROM passages p JOIN passage_signs s ON s.namespace = p.namespace AND s.number = p.number
WHERE p.namespace = {space} AND p.owner = ANY(:owners::bigint[]);

-- newest
SELECT number FROM passage_signs WHERE namespace = {space} ORDER BY number DESC LIMIT :limit;

-- has_pgvector
SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'vector');

-- halfvec_of
CREATE OR REPLACE FUNCTION halfvec_of(bytes bytea) RETURNS halfvec LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (
    SELECT array_agg((get_byte(bytes, place) + 128) % 256 - 128 ORDER BY place)
    FROM generate_series(0, length(bytes) - 1) place
)::vector::halfvec;

-- large
-- The namespaces with at least $1 passages, their dimensions, and their table, which may be a partition.
SELECT v.namespace, length(v.vector), min(v.tableoid::regclass::text) FROM passage_vectors v
WHERE v.is_past = 0 AND length(v.vector) > 0
    AND v.namespace IN (SELECT namespace FROM counts GROUP BY namespace HAVING sum(passages) >= $1)
GROUP BY 1, 2 HAVING count(*) >= $1;

-- is_broken
SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1);

-- vector_index
-- The search continues past rows that it skips, such as deleted ones before VACUUM.
SELECT n.number, set_config('hnsw.ef_search', :searched, true),
    set_config('hnsw.iterative_scan', 'strict_order', true)
FROM namespaces n JOIN pg_index i ON i.indexrelid = to_regclass('vectors_' || n.number || '_' || :dimensions)
WHERE n.name = :namespace AND i.indisvalid;

-- nearest_of_index
SELECT v.number, v.owner, v.vector FROM passage_vectors v
WHERE v.namespace = {{number}} AND v.is_past = 0 AND length(v.vector) = {{dimensions}}
ORDER BY halfvec_of(v.vector)::halfvec({{dimensions}}) <=> :vector::halfvec LIMIT :limit;
