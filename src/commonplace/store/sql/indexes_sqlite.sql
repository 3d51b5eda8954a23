-- Indexes that differ in SQLite.
CREATE INDEX passage_vectors_by_namespace ON passage_vectors (namespace) WHERE is_past = 0;

-- Lists read their order from this index, from any offset; it also covers other orders, counts and common filters.
CREATE INDEX memories_by_time ON memories (
    namespace, at DESC, id, status, tier, use_count, last_used, born_at
) WHERE is_latest = 1;
CREATE INDEX memories_by_digest ON memories (namespace, digest) WHERE is_latest = 1 AND digest != '';

-- These indexes give the newest few relations of an entity that has half a million, in order. They contain all columns
-- needed to follow a fact: fetching each row would cost four times as much.
CREATE INDEX relations_by_source ON relations (
    namespace, source, stage, created_at DESC, id, target, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
CREATE INDEX relations_by_target ON relations (
    namespace, target, stage, created_at DESC, id, source, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
-- Facts with an end or in the past, by that end. A text is greater than all numbers: no end ('') sorts last.
CREATE INDEX relations_ending_by_source ON relations (namespace, source, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending_by_target ON relations (namespace, target, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending ON relations (namespace, ifnull(valid_to, '')) WHERE stage > 0;
