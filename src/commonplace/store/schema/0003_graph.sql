-- The graph: episodes, entities, relations, and what is known of each. docs/formats/store.md explains it.

CREATE TABLE episodes (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces (number),
    id TEXT NOT NULL,
    content TEXT NOT NULL,
    reference_time REAL NOT NULL,
    created_at REAL NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    source_description TEXT NOT NULL,
    origin TEXT NOT NULL,
    trust REAL NOT NULL,
    "group" TEXT NOT NULL,
    memory TEXT NOT NULL,
    version INTEGER NOT NULL
);

CREATE UNIQUE INDEX episodes_by_id ON episodes (namespace, id);
CREATE INDEX episodes_by_time ON episodes (namespace, reference_time DESC, id);
CREATE INDEX episodes_by_memory ON episodes (namespace, memory, version, id) WHERE memory != '';

CREATE TABLE entities (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces (number),
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at REAL NOT NULL,
    summary TEXT NOT NULL,
    attributes TEXT NOT NULL,
    trust REAL NOT NULL,
    "group" TEXT NOT NULL,
    valid_from REAL,
    valid_to REAL,
    expired_at REAL,
    merged_into TEXT NOT NULL
);

CREATE UNIQUE INDEX entities_by_id ON entities (namespace, id);
CREATE INDEX entities_by_name ON entities (namespace, name, id);
CREATE INDEX entities_past ON entities (namespace) WHERE expired_at IS NOT NULL;

CREATE TABLE aliases (
    namespace INTEGER NOT NULL,
    normal TEXT NOT NULL,
    entity TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at REAL NOT NULL,
    episode TEXT NOT NULL,
    PRIMARY KEY (namespace, normal, entity)
) WITHOUT ROWID;

CREATE INDEX aliases_by_entity ON aliases (namespace, entity);

CREATE TABLE relations (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces (number),
    id TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    type TEXT NOT NULL,
    fact TEXT NOT NULL,
    created_at REAL NOT NULL,
    valid_from REAL,
    valid_to REAL,
    stated_to REAL,
    expired_at REAL,
    is_retracted INTEGER NOT NULL,
    dispute TEXT NOT NULL,
    disputed_at REAL,
    confidence REAL NOT NULL,
    trust REAL NOT NULL,
    "group" TEXT NOT NULL,
    attributes TEXT NOT NULL,
    is_past INTEGER NOT NULL
);

-- The newest few relations of an entity that has half a million are read in the order of these indexes.
CREATE UNIQUE INDEX relations_by_id ON relations (namespace, id);
CREATE INDEX relations_by_source ON relations (namespace, source, is_past, created_at DESC, id, type);
CREATE INDEX relations_by_target ON relations (namespace, target, is_past, created_at DESC, id, type);
CREATE INDEX relations_by_time ON relations (namespace, is_past, created_at DESC, id, type);
CREATE INDEX relations_by_dispute ON relations (namespace, dispute) WHERE dispute != '';

CREATE TABLE mentions (
    namespace INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    episode TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (namespace, kind, subject, episode, start, "end", name)
) WITHOUT ROWID;

CREATE INDEX mentions_by_episode ON mentions (namespace, episode);

CREATE TABLE happenings (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    at REAL NOT NULL,
    what TEXT NOT NULL,
    reason TEXT NOT NULL,
    episode TEXT NOT NULL,
    detail TEXT NOT NULL
);

CREATE INDEX happenings_by_subject ON happenings (namespace, kind, subject);
