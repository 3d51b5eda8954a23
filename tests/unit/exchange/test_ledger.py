"""The ledger leaves and comes back with the rest of a namespace: issues, their history, and what undoes them."""

from __future__ import annotations

import io
import json
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import UsageError
from commonplace.types.ledger import Issue, IssueEvent, IssueSelection, Reversal

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
ISSUE = Issue(
    "commonplace-00000001",
    "Merge 2 memories \ue000",
    "merge",
    ("a\x01", "b"),
    notes='{"memory_ids": ["a", "b"]}\nblocked: no',
    status="closed",
    labels=("consolidation:merge",),
    dependencies='[{"x": 1}]',
    rest='{"owner": "me"}',
    created_at=1.5,
    updated_at=2.5,
    closed_at=3.5,
    close_reason="done",
    retries=1,
    claimed_by="merge@host:1",
    escalated_at=4.5,
)
EVENTS = [IssueEvent(ISSUE.id, 1.5, "me", "created"), IssueEvent(ISSUE.id, 3.5, "you", "closed", "done")]
UNDO = Reversal(ISSUE.id, "run", 3.5, ("a", "b", "c"), '[{"do": "page", "path": "vault/a.md"}]', 7, 9.5)


def put(book: Engine, *issues: Issue, reversals: tuple[Reversal, ...] = ()) -> None:
    with book._runtime.store.change_memories(book.namespace) as change:
        for issue in issues:
            change.ledger.put_issue(issue)
        for event in EVENTS:
            if event.issue in {issue.id for issue in issues}:
                change.ledger.add_event(event)
        for reversal in reversals:
            change.ledger.put_reversal(reversal)


def held(book: Engine) -> tuple[list[Issue], list[IssueEvent], list[Reversal]]:
    ledger = book._runtime.store.ledger(book.namespace)
    return ledger.issues(IssueSelection()), ledger.events(), ledger.reversals()


def text_of(book: Engine, *kinds: str) -> str:
    stream = io.StringIO()
    book.export(stream, kinds=kinds or None)
    return stream.getvalue()


def taken_in(directory: Path, text: str, **options: Any) -> Engine:
    file = directory / "export.jsonl"
    file.write_text(text)
    other = commonplace.open(directory / "other", embedder="hashing")
    other.import_(file, **options)
    return other


def test_all_comes_back_as_it_was(book: Engine, tmp_path: Path) -> None:
    """And exported again it is the same, byte for byte."""
    put(book, ISSUE, Issue("x", "plain"), reversals=(UNDO, replace(UNDO, issue="bd-1", number=2)))
    text = text_of(book)
    other = taken_in(tmp_path, text)
    assert held(other) == held(book)
    assert text_of(other) == text
    again = other.import_(tmp_path / "export.jsonl")
    assert asdict(again.issues) == {"added": 0, "replaced": 0, "unchanged": 3, "skipped": 0}
    assert held(other) == held(book)
    other.close()


def test_an_export_may_be_of_the_ledger_alone(book: Engine) -> None:
    """Or of anything else."""
    put(book, ISSUE)
    book.remember("the kettle boils", id="a")
    lines = [json.loads(line) for line in text_of(book, "ledger").splitlines()]
    assert [line.get("type") for line in lines] == [None, "issue", "end"]
    assert (lines[0]["kinds"], lines[0]["counts"]["issues"]) == (["ledger"], 1)
    assert '"issue"' not in text_of(book, "memory")


def test_another_issue_of_that_id_is_a_conflict(book: Engine, tmp_path: Path) -> None:
    """Nothing is imported until somebody says which one is right."""
    put(book, ISSUE)
    other = taken_in(tmp_path, text_of(book))
    put(other, replace(ISSUE, title="mine"), reversals=(UNDO,))
    with pytest.raises(UsageError, match="issue 'commonplace-00000001'"):
        other.import_(tmp_path / "export.jsonl")
    assert other.import_(tmp_path / "export.jsonl", on_conflict="skip").issues.skipped == 1
    assert held(other)[0][0].title == "mine"
    assert other.import_(tmp_path / "export.jsonl", on_conflict="replace").issues.replaced == 1
    assert held(other) == held(book)
    other.close()


def test_what_undoes_keeps_its_order_where_its_numbers_are_taken(book: Engine, tmp_path: Path) -> None:
    """Two ledgers come together: what was here before stays before."""
    second = replace(ISSUE, id="commonplace-00000002")
    put(book, ISSUE, second, reversals=(UNDO, replace(UNDO, issue=second.id, number=3)))
    text = text_of(book)
    with commonplace.open(tmp_path / "other", embedder="hashing") as here:
        put(here, replace(ISSUE, id="mine"), reversals=(replace(UNDO, issue="mine", number=3),))
    other = taken_in(tmp_path, text)
    numbered = [(each.issue, each.number) for each in held(other)[2]]
    assert numbered == [("mine", 3), (second.id, 4), (ISSUE.id, 5)]
    other.close()


def test_secrets_are_replaced_on_the_way_in(book: Engine, tmp_path: Path) -> None:
    """A file of somebody else's may hold anything."""
    put(book, replace(ISSUE, notes=json.dumps({"memory_ids": ["a"], "x": KEY}), close_reason=KEY))
    other = taken_in(tmp_path, text_of(book))
    assert KEY not in str(held(other))
    assert json.loads(held(other)[0][0].notes)["x"] == "[redacted: github token]"
    other.close()


@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ('"priority":2', '"priority":9', "priority is 9"),
        ('"retries":1', '"retries":-1', "retries is -1"),
        ('"rest":"{', '"rest":"[{', "rest is"),
        ('"comments":"[]"', '"comments":"{}"', "comments is"),
        ('"created_at":1.5', '"created_at":"inf"', "created_at"),
        ("vault/a.md", "../a.md", r"a step has the path '\.\./a\.md'"),
        ("vault/a.md", "vault/../../a.md", "a step has the path"),
        ('"actor":"me"', '"actor":5', "actor is 5"),
        ('"id":"commonplace-00000001"', '"id":"commonplace-00000002"', "holds issue"),
        ('"id":"commonplace-00000001"', '"id":" "', "the id is ' '"),
    ],
)
def test_what_no_ledger_holds_is_refused(book: Engine, tmp_path: Path, was: str, becomes: str, told: str) -> None:
    """Steps that undo are taken one day: none may reach beyond the vault."""
    put(book, ISSUE, reversals=(UNDO,))
    head, line, _ = text_of(book).splitlines()
    assert was in line
    body = f"{head}\n{line.replace(was, becomes, 1)}\n"
    end = {"type": "end", "lines": 2, "sha256": sha256(body.encode()).hexdigest()}
    with pytest.raises(UsageError, match=told):
        taken_in(tmp_path, f"{body}{json.dumps(end)}\n")


def test_a_restored_backup_has_the_ledger(book: Engine, tmp_path: Path) -> None:
    """It is a part of the store like any other."""
    put(book, ISSUE, reversals=(UNDO,))
    expected = held(book)
    book.backup(tmp_path / "backup")
    commonplace.restore(tmp_path / "backup", tmp_path / "restored")
    with commonplace.open(tmp_path / "restored") as restored:
        assert held(restored) == expected
