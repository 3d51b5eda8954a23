-- Indexes that differ in PostgreSQL, where an entry must be shorter than a third of a page.
CREATE INDEX memories_by_time ON memories (namespace, at DESC, id) WHERE is_latest = 1;
-- The first quarter of a digest distinguishes nearly all contents and takes a quarter of the space.
CREATE INDEX memories_by_digest ON memories (namespace, substr(digest, 1, 16)) WHERE is_latest = 1 AND digest != '';

CREATE INDEX relations_by_source ON relations (namespace, source, stage, created_at DESC, id);
CREATE INDEX relations_by_target ON relations (namespace, target, stage, created_at DESC, id);
-- Facts without an end sort last: NaN is the greatest number.
CREATE INDEX relations_ending_by_source ON relations (namespace, source, coalesce(valid_to, 'NaN')) WHERE stage > 0;
CREATE INDEX relations_ending_by_target ON relations (namespace, target, coalesce(valid_to, 'NaN')) WHERE stage > 0;
CREATE INDEX relations_ending ON relations (namespace, coalesce(valid_to, 'NaN')) WHERE stage > 0;
