-- Memories with their versions, links and dates, and what Markdown holds of them. docs/formats/store.md explains it.

-- A version that is past keeps its rows, but leaves the lists of owners, the counts, and the index.
ALTER TABLE owners ADD COLUMN created_at REAL NOT NULL DEFAULT 0;
ALTER TABLE owners ADD COLUMN expired_at REAL;

DROP INDEX owners_by_id;
DROP INDEX owners_by_path;
DROP INDEX owners_by_session;
DROP INDEX owners_by_filter;
CREATE UNIQUE INDEX owners_by_id ON owners (namespace, kind, id) WHERE expired_at IS NULL;
CREATE UNIQUE INDEX owners_by_path ON owners (namespace, kind, path) WHERE path != '' AND expired_at IS NULL;
CREATE INDEX owners_by_session ON owners (namespace, session, position) WHERE session != '' AND expired_at IS NULL;
CREATE INDEX owners_by_filter ON owners (namespace, kind, type, phase) WHERE expired_at IS NULL;
CREATE INDEX owners_by_time ON owners (namespace, at) WHERE kind = 'memory' AND expired_at IS NULL;
CREATE INDEX owners_past ON owners (namespace, expired_at, created_at) WHERE expired_at IS NOT NULL;

ALTER TABLE passage_vectors ADD COLUMN is_past INTEGER NOT NULL DEFAULT 0;

DROP INDEX passage_vectors_by_namespace;
CREATE INDEX passage_vectors_by_namespace ON passage_vectors (namespace) WHERE is_past = 0;

CREATE TABLE memories (
    owner INTEGER PRIMARY KEY REFERENCES owners (number),
    namespace INTEGER NOT NULL,
    id TEXT NOT NULL,
    is_latest INTEGER NOT NULL,
    digest TEXT NOT NULL,
    content TEXT NOT NULL,
    tier TEXT NOT NULL,
    status TEXT NOT NULL,
    category TEXT NOT NULL,
    entities TEXT NOT NULL,
    source TEXT NOT NULL,
    origin TEXT NOT NULL,
    trust REAL NOT NULL,
    metadata TEXT NOT NULL,
    version INTEGER NOT NULL,
    born_at REAL NOT NULL,
    last_used REAL NOT NULL,
    use_count INTEGER NOT NULL,
    strength REAL NOT NULL,
    uses TEXT NOT NULL,
    review_count INTEGER NOT NULL,
    derived_from TEXT NOT NULL,
    is_forced INTEGER NOT NULL,
    promoted_at REAL,
    vault_path TEXT NOT NULL
);

CREATE INDEX memories_by_id ON memories (namespace, id);
CREATE INDEX memories_by_digest ON memories (namespace, digest) WHERE is_latest = 1 AND digest != '';

CREATE TABLE memory_bands (
    namespace INTEGER NOT NULL,
    band INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    PRIMARY KEY (namespace, band, owner)
) WITHOUT ROWID;

CREATE INDEX memory_bands_by_owner ON memory_bands (owner);

CREATE TABLE memory_dates (
    namespace INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    since REAL NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (namespace, since, until, owner)
) WITHOUT ROWID;

CREATE INDEX memory_dates_by_owner ON memory_dates (owner);

CREATE TABLE links (
    namespace INTEGER NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    type TEXT NOT NULL,
    strength REAL NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (namespace, source, target, type)
) WITHOUT ROWID;

CREATE INDEX links_by_target ON links (namespace, target);

CREATE TABLE mirror_due (
    namespace INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

CREATE TABLE mirror_blocks (
    namespace INTEGER NOT NULL,
    id TEXT NOT NULL,
    page TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

CREATE TABLE mirror_pages (
    namespace INTEGER NOT NULL,
    page TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (namespace, page)
) WITHOUT ROWID;

CREATE TABLE notes (
    namespace INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (namespace, kind, id)
) WITHOUT ROWID;
