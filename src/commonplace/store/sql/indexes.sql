-- Past rows are in no list of owners, count or index.
CREATE UNIQUE INDEX owners_by_id ON owners (namespace, kind, id) WHERE expired_at IS NULL;
CREATE UNIQUE INDEX owners_by_path ON owners (namespace, kind, path) WHERE path != '' AND expired_at IS NULL;
CREATE INDEX owners_by_session ON owners (namespace, session, position) WHERE session != '' AND expired_at IS NULL;
CREATE INDEX owners_by_filter ON owners (namespace, kind, type, phase) WHERE expired_at IS NULL;
CREATE INDEX owners_by_time ON owners (namespace, at) WHERE kind = 'memory' AND expired_at IS NULL;
CREATE INDEX owners_past ON owners (namespace, expired_at, created_at) WHERE expired_at IS NOT NULL;

CREATE UNIQUE INDEX namespaces_by_name ON namespaces (name);
CREATE INDEX passages_by_owner ON passages (namespace, owner);
-- Passages without a vector yet have an empty one.
CREATE INDEX passage_vectors_pending ON passage_vectors (namespace) WHERE length(vector) = 0;

CREATE INDEX memories_by_id ON memories (namespace, id);
CREATE INDEX memory_bands_by_owner ON memory_bands (namespace, owner);
CREATE INDEX memory_dates_by_owner ON memory_dates (namespace, owner);
CREATE INDEX links_by_target ON links (namespace, target);

CREATE UNIQUE INDEX episodes_by_id ON episodes (namespace, id);
CREATE INDEX episodes_by_time ON episodes (namespace, reference_time DESC, id);
CREATE INDEX episodes_by_memory ON episodes (namespace, memory, version, id) WHERE memory != '';

CREATE UNIQUE INDEX entities_by_id ON entities (namespace, id);
CREATE INDEX entities_by_name ON entities (namespace, name, id);
CREATE INDEX entities_past ON entities (namespace) WHERE expired_at IS NOT NULL;
CREATE INDEX aliases_by_entity ON aliases (namespace, entity);

CREATE UNIQUE INDEX relations_by_id ON relations (namespace, id);
CREATE INDEX relations_by_time ON relations (namespace, stage, created_at DESC, id, type);
CREATE INDEX relations_by_fact ON relations (namespace, source, type, target);
CREATE INDEX relations_by_dispute ON relations (namespace, dispute) WHERE dispute != '';

CREATE INDEX mentions_by_episode ON mentions (namespace, episode);
CREATE INDEX happenings_by_subject ON happenings (namespace, kind, subject);

CREATE INDEX knowledge_items_by_agent ON knowledge_items (namespace, agent);

-- Closed issues accumulate: this index finds the unfinished ones without reading them.
CREATE INDEX issues_by_status ON issues (namespace, status, agent);
CREATE INDEX issue_memories_by_issue ON issue_memories (namespace, issue);
CREATE INDEX issue_events_by_issue ON issue_events (namespace, issue);
CREATE UNIQUE INDEX reversals_by_issue ON reversals (namespace, issue);
CREATE INDEX reversals_by_run ON reversals (namespace, run);
CREATE INDEX reversal_memories_by_issue ON reversal_memories (namespace, issue);
