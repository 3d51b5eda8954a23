-- Owners and their passages along one change sequence. docs/formats/store.md explains every table.

PRAGMA application_id = 1131245680; -- "Cmnp"

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE TABLE changes (
    number INTEGER PRIMARY KEY,
    next_owner INTEGER NOT NULL,
    next_passage INTEGER NOT NULL,
    token BLOB NOT NULL
);

INSERT INTO changes (number, next_owner, next_passage, token) VALUES (0, 1, 1, x'');

CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE counts (
    namespace INTEGER NOT NULL REFERENCES namespaces (number),
    kind TEXT NOT NULL,
    owners INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    text_bytes INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind)
) WITHOUT ROWID;

CREATE TABLE owners (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL REFERENCES namespaces (number),
    kind TEXT NOT NULL,
    change INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    phase TEXT NOT NULL,
    path TEXT NOT NULL,
    root TEXT NOT NULL,
    session TEXT NOT NULL,
    position INTEGER NOT NULL,
    at REAL,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    "references" TEXT NOT NULL,
    summary TEXT NOT NULL
);

CREATE UNIQUE INDEX owners_by_id ON owners (namespace, kind, id);
CREATE UNIQUE INDEX owners_by_path ON owners (namespace, kind, path) WHERE path != '';
CREATE INDEX owners_by_session ON owners (namespace, session, position) WHERE session != '';
CREATE INDEX owners_by_filter ON owners (namespace, kind, type, phase);

CREATE TABLE file_stamps (
    owner INTEGER PRIMARY KEY REFERENCES owners (number),
    sha256 TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    recipe TEXT NOT NULL
);

CREATE TABLE owner_tags (
    namespace INTEGER NOT NULL,
    tag TEXT NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (namespace, tag, owner)
) WITHOUT ROWID;

CREATE TABLE passages (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    owner INTEGER NOT NULL REFERENCES owners (number),
    ordinal INTEGER NOT NULL,
    id TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL
);

CREATE INDEX passages_by_owner ON passages (owner);

CREATE TABLE passage_vectors (
    number INTEGER PRIMARY KEY REFERENCES passages (number),
    namespace INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    token_ids BLOB NOT NULL,
    vector BLOB NOT NULL
);

CREATE INDEX passage_vectors_by_namespace ON passage_vectors (namespace);

CREATE TABLE deletions (
    change INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (change, number)
) WITHOUT ROWID;
