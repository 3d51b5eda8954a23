-- What SQLite has other indexes of than PostgreSQL.
CREATE INDEX passage_vectors_by_namespace ON passage_vectors (namespace) WHERE is_past = 0;

-- A list is read in its order from any place on; what other orders, counts and the usual filters need stands here too.
CREATE INDEX memories_by_time ON memories (
    namespace, at DESC, id, status, tier, use_count, last_used, born_at
) WHERE is_latest = 1;
CREATE INDEX memories_by_digest ON memories (namespace, digest) WHERE is_latest = 1 AND digest != '';

-- The newest few relations of an entity that has half a million are read in the order of these indexes. What it takes to
-- follow a fact stands in them: to fetch each row costs four times as much.
CREATE INDEX relations_by_source ON relations (
    namespace, source, stage, created_at DESC, id, target, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
CREATE INDEX relations_by_target ON relations (
    namespace, target, stage, created_at DESC, id, source, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
-- Of what has an end, that which holds after a time. A text is greater than all numbers: no end comes last.
CREATE INDEX relations_ending_by_source ON relations (namespace, source, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending_by_target ON relations (namespace, target, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending ON relations (namespace, ifnull(valid_to, '')) WHERE stage > 0;
