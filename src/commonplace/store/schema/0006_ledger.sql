-- The ledger of consolidation: issues, what was done on them, what undoes it, and the rate. docs/formats/store.md tells.

CREATE TABLE issues (
    namespace INTEGER NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    agent TEXT NOT NULL,
    memory_ids TEXT NOT NULL,
    description TEXT NOT NULL,
    notes TEXT NOT NULL,
    status TEXT NOT NULL,
    priority INTEGER NOT NULL,
    issue_type TEXT NOT NULL,
    labels TEXT NOT NULL,
    dependencies TEXT NOT NULL,
    comments TEXT NOT NULL,
    rest TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    closed_at REAL,
    close_reason TEXT NOT NULL,
    retries INTEGER NOT NULL,
    retry_at REAL,
    claimed_by TEXT NOT NULL,
    claimed_at REAL,
    escalated_at REAL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;

-- Closed issues pile up: what is left to do is found without looking at them.
CREATE INDEX issues_by_status ON issues (namespace, status, agent);

CREATE TABLE issue_memories (
    namespace INTEGER NOT NULL,
    memory TEXT NOT NULL,
    issue TEXT NOT NULL,
    PRIMARY KEY (namespace, memory, issue)
) WITHOUT ROWID;

CREATE INDEX issue_memories_by_issue ON issue_memories (namespace, issue);

CREATE TABLE issue_events (
    number INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    issue TEXT NOT NULL,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    act TEXT NOT NULL,
    why TEXT NOT NULL
);

CREATE INDEX issue_events_by_issue ON issue_events (namespace, issue);

CREATE TABLE reversals (
    namespace INTEGER NOT NULL,
    number INTEGER NOT NULL,
    issue TEXT NOT NULL,
    run TEXT NOT NULL,
    at REAL NOT NULL,
    memory_ids TEXT NOT NULL,
    steps TEXT NOT NULL,
    undone_at REAL,
    PRIMARY KEY (namespace, number)
) WITHOUT ROWID;

CREATE UNIQUE INDEX reversals_by_issue ON reversals (namespace, issue);
CREATE INDEX reversals_by_run ON reversals (namespace, run);

CREATE TABLE reversal_memories (
    namespace INTEGER NOT NULL,
    memory TEXT NOT NULL,
    issue TEXT NOT NULL,
    PRIMARY KEY (namespace, memory, issue)
) WITHOUT ROWID;

CREATE INDEX reversal_memories_by_issue ON reversal_memories (namespace, issue);

-- Of no namespace: the rate is that of all work on the store.
CREATE TABLE operations (
    at REAL PRIMARY KEY,
    count INTEGER NOT NULL
) WITHOUT ROWID;
