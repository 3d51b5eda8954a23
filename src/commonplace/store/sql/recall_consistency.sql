-- passages that recall lacks
SELECT count(*) FROM passage_vectors v
    LEFT JOIN passage_terms t ON t.namespace = v.namespace AND t.number = v.number
    LEFT JOIN passage_signs s ON s.namespace = v.namespace AND s.number = v.number
WHERE v.is_past = 0 AND (t.number IS NULL OR s.number IS NULL);

-- passages in recall that are gone
SELECT count(*) FROM (SELECT namespace, number FROM passage_terms UNION SELECT namespace, number FROM passage_signs) r
WHERE NOT EXISTS (
    SELECT 1 FROM passage_vectors v WHERE v.namespace = r.namespace AND v.number = r.number AND v.is_past = 0
);

-- passages that recall has with the signs of another vector
SELECT count(*) FROM passage_signs s JOIN passage_vectors v ON v.namespace = s.namespace AND v.number = s.number
WHERE s.signs != signs_of(v.vector);

-- segments of another number of passages than they say
SELECT count(*) FROM segments s
WHERE s.passages != (
    SELECT count(*) FROM passage_terms t
    WHERE t.namespace = s.namespace AND t.number BETWEEN s.start AND s.upto
);
