"""The SQL about the ledger of the SQLite store. The orders of columns are those that `ledger_rows` unpacks.

`:space` is the number of a namespace.
"""

_ISSUE = """
    SELECT id, title, agent, memory_ids, description, notes, status, priority, issue_type, labels, dependencies,
        comments, rest, created_at, updated_at, closed_at, close_reason, retries, retry_at, claimed_by, claimed_at,
        escalated_at
    FROM issues
"""

ISSUES = f"{_ISSUE} WHERE namespace = :space"

ISSUE = f"{ISSUES} AND id = :id"

OF_STATUS = f"{_ISSUE} INDEXED BY issues_by_status WHERE namespace = :space AND status = :status"

OF_MEMORY = "SELECT issue FROM issue_memories WHERE namespace = :space AND memory = :memory"

OF_AGENT = f"{OF_STATUS} AND agent = :agent"

NAMED = """
    SELECT m.memory FROM issues AS i INDEXED BY issues_by_status
        JOIN issue_memories AS m INDEXED BY issue_memories_by_issue ON m.namespace = i.namespace AND m.issue = i.id
    WHERE i.namespace = :space AND i.status = :status AND i.agent = :agent
"""

BODIES = "SELECT id, notes, dependencies, comments, rest FROM issues WHERE namespace = :space"

COUNTS = "SELECT agent, status, count(*) FROM issues WHERE namespace = :space GROUP BY agent, status"

PUT_ISSUE = """
    INSERT OR REPLACE INTO issues VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

DROP_ISSUE = "DELETE FROM issues WHERE namespace = ? AND id = ?"

CLEAR_ISSUE_MEMORIES = "DELETE FROM issue_memories WHERE namespace = ? AND issue = ?"

ADD_ISSUE_MEMORY = "INSERT INTO issue_memories VALUES (?, ?, ?)"

EVENTS = "SELECT issue, at, actor, act, why FROM issue_events WHERE namespace = :space ORDER BY number"

EVENTS_OF = """
    SELECT issue, at, actor, act, why FROM issue_events WHERE namespace = :space AND issue = :issue ORDER BY number
"""

ADD_EVENT = "INSERT INTO issue_events (namespace, issue, at, actor, act, why) VALUES (?, ?, ?, ?, ?, ?)"

DROP_EVENTS = "DELETE FROM issue_events WHERE namespace = ? AND issue = ?"

_REVERSAL = "SELECT issue, run, at, memory_ids, steps, number, undone_at FROM reversals"

REVERSALS = f"{_REVERSAL} WHERE namespace = :space AND number > :after"

REVERSALS_OF_RUN = (
    f"{_REVERSAL} INDEXED BY reversals_by_run WHERE namespace = :space AND run = :run AND number > :after"
)

RUNS = "SELECT run, min(at), count(*), count(undone_at) FROM reversals WHERE namespace = :space GROUP BY run"

REVERSAL = f"{_REVERSAL} WHERE namespace = :space AND issue = :issue"

REVERSALS_OF_MEMORY = "SELECT issue FROM reversal_memories WHERE namespace = :space AND memory = :memory"

LAST_REVERSAL = "SELECT coalesce(max(number), 0) FROM reversals WHERE namespace = :space"

HOLDER = "SELECT issue FROM reversals WHERE namespace = :space AND number = :number"

ADD_REVERSAL = "INSERT INTO reversals VALUES (?, ?, ?, ?, ?, ?, ?, ?)"

DROP_REVERSAL = "DELETE FROM reversals WHERE namespace = ? AND issue = ?"

CLEAR_REVERSAL_MEMORIES = "DELETE FROM reversal_memories WHERE namespace = ? AND issue = ?"

ADD_REVERSAL_MEMORY = "INSERT INTO reversal_memories VALUES (?, ?, ?)"

OPERATIONS = "SELECT at, count FROM operations WHERE at >= ? ORDER BY at"

ADD_OPERATIONS = "INSERT INTO operations VALUES (?, ?) ON CONFLICT (at) DO UPDATE SET count = count + excluded.count"

DROP_OPERATIONS = "DELETE FROM operations WHERE at < ?"
