-- What PostgreSQL has other indexes of than SQLite: an entry has to be shorter than a third of a page.
CREATE INDEX memories_by_time ON memories (namespace, at DESC, id) WHERE is_latest = 1;
-- A part of a digest tells nearly all apart, and takes a quarter of the room.
CREATE INDEX memories_by_digest ON memories (namespace, substr(digest, 1, 16)) WHERE is_latest = 1 AND digest != '';

CREATE INDEX relations_by_source ON relations (namespace, source, stage, created_at DESC, id);
CREATE INDEX relations_by_target ON relations (namespace, target, stage, created_at DESC, id);
-- What has no end comes last, after the end of time: NaN is the greatest number.
CREATE INDEX relations_ending_by_source ON relations (namespace, source, coalesce(valid_to, 'NaN')) WHERE stage > 0;
CREATE INDEX relations_ending_by_target ON relations (namespace, target, coalesce(valid_to, 'NaN')) WHERE stage > 0;
CREATE INDEX relations_ending ON relations (namespace, coalesce(valid_to, 'NaN')) WHERE stage > 0;
