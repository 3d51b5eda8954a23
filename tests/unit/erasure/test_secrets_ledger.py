"""`doctor --secrets` reaches the ledger: what others wrote there is no safer than a memory."""

from __future__ import annotations

import json
from pathlib import Path

import commonplace
from commonplace.engine import Engine
from commonplace.types.ledger import Issue, IssueEvent, Reversal

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
PLACEHOLDER = "[redacted: github token]"


def holding(book: Engine) -> list[str]:
    return [path.name for path in book.directory.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


def test_secrets_in_issues_and_their_history_are_replaced(tmp_path: Path) -> None:
    """The JSON in the notes stays JSON, and all that is no secret stays as it is."""
    notes = json.dumps({"memory_ids": ["a"], "seen": {"token": KEY}}) + f"\n2026-01-01 blocked: {KEY}"
    issue = Issue(
        "commonplace-00000001",
        f"Look at {KEY}",
        "merge",
        ("a",),
        notes=notes,
        labels=("consolidation:merge", f"x {KEY}"),
        comments=json.dumps([{"text": KEY}]),
        rest=json.dumps({"design": KEY}),
        close_reason=f"by {KEY}",
    )
    plain = Issue("commonplace-00000002", "Merge", "merge", ("a",), notes='{"memory_ids":  ["a"]}')
    undo = Reversal(issue.id, "run", 1.0, ("a",), "[]")
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        with book._runtime.store.change_memories("default") as change:
            for each in (issue, plain):
                change.ledger.put_issue(each)
            change.ledger.add_event(IssueEvent(issue.id, 1.0, "me", "created", "plain"))
            change.ledger.add_event(IssueEvent(issue.id, 2.0, "me", "closed", f"by {KEY}"))
            change.ledger.put_reversal(undo)
            change.ledger.add_event(IssueEvent("bd-1", 2.0, "me", "applied", f"by {KEY}"))
        found, elsewhere = book.doctor(mend=False, secrets=True).findings
        assert "issue 'bd-1'" in elsewhere.problem
        assert "issue 'commonplace-00000001'" in found.problem and "github token" in found.problem
        assert KEY not in str(found)
        assert holding(book) != []
        assert [each.mended for each in book.doctor(secrets=True).findings] == [True, True]
        assert holding(book) == []
        cleaned = book.ledger.get(issue.id)
        assert (cleaned.title, cleaned.close_reason) == (f"Look at {PLACEHOLDER}", f"by {PLACEHOLDER}")
        assert cleaned.labels == ("consolidation:merge", f"x {PLACEHOLDER}")
        told = book.ledger.show(issue.id)
        assert told["notes"] == {"memory_ids": ["a"], "seen": {"token": PLACEHOLDER}}
        assert told["log"] == [f"2026-01-01 blocked: {PLACEHOLDER}"]
        assert [event.why for event in book.ledger.history(issue.id)] == ["plain", f"by {PLACEHOLDER}"]
        assert [event.why for event in book._runtime.store.ledger("default").events("bd-1")] == [f"by {PLACEHOLDER}"]
        assert book.ledger.get(plain.id) == plain
        assert [each.issue for each in book._runtime.store.ledger("default").reversals()] == [issue.id]
        assert book.doctor(secrets=True).findings == ()
