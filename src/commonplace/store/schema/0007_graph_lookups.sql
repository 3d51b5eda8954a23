-- Look-ups that cost what they find, however many facts an entity has. docs/formats/store.md explains it.

DROP INDEX relations_by_source;
DROP INDEX relations_by_target;
DROP INDEX relations_by_time;

ALTER TABLE relations RENAME COLUMN is_past TO stage;
UPDATE relations SET stage = CASE WHEN stage = 1 THEN 2 ELSE 1 END WHERE stage = 1 OR valid_to IS NOT NULL;

-- What it takes to follow a fact stands in the indexes: to fetch each row costs four times as much as to read these.
CREATE INDEX relations_by_source ON relations (
    namespace, source, stage, created_at DESC, id, target, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
CREATE INDEX relations_by_target ON relations (
    namespace, target, stage, created_at DESC, id, source, type, confidence, dispute, "group", valid_from, valid_to,
    stated_to, expired_at, is_retracted
);
CREATE INDEX relations_by_time ON relations (namespace, stage, created_at DESC, id, type);
CREATE INDEX relations_by_fact ON relations (namespace, source, type, target);

-- Of what has an end, that which holds after a time. A text is greater than all numbers: no end comes last.
CREATE INDEX relations_ending_by_source ON relations (namespace, source, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending_by_target ON relations (namespace, target, ifnull(valid_to, '')) WHERE stage > 0;
CREATE INDEX relations_ending ON relations (namespace, ifnull(valid_to, '')) WHERE stage > 0;
