"""What is forgotten is named and quoted nowhere in the ledger, and cannot be brought back by an undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import Clock

import commonplace
from commonplace.engine import Engine
from commonplace.types.ledger import IssueEvent, IssueSelection, Reversal

SECRET = "The merger with Quillfeather closes on the ninth."
MARK = b"Quillfeather"
ID = "3b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", clock=Clock(), embedder="hashing") as book:
        book.remember(SECRET, id=ID)
        for id_ in ("a", "b"):
            book.remember(f"Kettle {id_} boils", id=id_)
        yield book


def holding(book: Engine, mark: bytes) -> list[str]:
    files = [path for path in book.directory.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if mark in path.read_bytes())


def reversal(book: Engine, issue: str, *memory_ids: str) -> None:
    with book._runtime.store.change_memories("default") as change:
        change.ledger.put_reversal(
            Reversal(issue, "run", book._runtime.now(), memory_ids, json.dumps([["x", *memory_ids]]))
        )


def test_no_issue_and_no_event_holds_it_afterwards(book: Engine) -> None:
    """An error may have quoted it, a person may have written it into a reason: nothing of that stays."""
    ledger = book.ledger
    merge = ledger.create("merge", [ID, "a"], "merge", "high", {"words": [SECRET], ID: 1})
    assert ledger.claim(merge)
    ledger.block(merge, f"no room for {SECRET}")
    closed = ledger.create("decay", [ID], "gc")
    ledger.close(closed, f"done with {SECRET}")
    kept = ledger.create("merge", ["a", "b"], "merge", extra_data={"words": "Kettle a"})
    assert holding(book, MARK) != []

    receipt = book.forget(ID)

    assert (receipt.verified, receipt.found) == (True, ())
    assert (receipt.counts["issues"], receipt.counts["reversals"]) == (2, 0)
    assert holding(book, MARK) == holding(book, bytes.fromhex(ID.replace("-", ""))) == []
    cleaned = ledger.show(merge)
    assert (cleaned["status"], cleaned["close_reason"]) == ("closed", "a memory of it was forgotten")
    assert (cleaned["title"], cleaned["memory_ids"], cleaned["log"]) == ("Merge 2 memories", ["a"], [])
    assert cleaned["notes"] == {"memory_ids": ["a"], "agent": "merge", "action": "merge"}
    assert (cleaned["labels"], cleaned["urgency"]) == (["consolidation:merge", "urgency:high"], "high")
    acts = [(event.act, event.why) for event in ledger.history(merge)]
    forgotten = ("forgotten", "a memory of it was forgotten")
    assert acts == [("created", ""), ("claimed", ""), ("blocked", ""), forgotten]
    assert (ledger.show(closed)["status"], ledger.show(closed)["close_reason"]) == ("closed", "")
    assert ledger.history(closed)[-1].act == "forgotten"
    assert ledger.show(kept)["notes"]["words"] == "Kettle a"
    assert [event.act for event in ledger.history(kept)] == ["created"]


def test_what_would_bring_it_back_is_gone(book: Engine) -> None:
    """An undo of a change to it would make it anew."""
    ledger = book.ledger
    one, other = ledger.create("merge", [ID, "a"], "merge"), ledger.create("merge", ["a", "b"], "merge")
    reversal(book, one, ID, "a")
    reversal(book, other, "a", "b")
    assert book.forget(ID).counts["reversals"] == 1
    held = book._runtime.store.ledger("default")
    assert (held.reversal(one), [each.issue for each in held.reversals()]) == (None, [other])
    assert book.doctor(mend=False).findings == ()


def test_an_issue_that_names_it_only_in_its_notes_is_cleaned_too(book: Engine, tmp_path: Path) -> None:
    """Beads knows no memories: people write their ids wherever they like."""
    line = {"id": "bd-1", "title": SECRET, "notes": f'{{"about": "{ID}"}}', "created_at": "2026-01-01", "owner": "me"}
    (tmp_path / "issues.jsonl").write_text(json.dumps(line))
    book.ledger.import_(tmp_path / "issues.jsonl")
    assert book.forget(ID).counts["issues"] == 1
    found = book._runtime.store.ledger("default").issues(IssueSelection())[0]
    assert (found.title, found.notes, found.rest) == ("Look at 0 memories", '{"memory_ids": [], "agent": ""}', "{}")
    assert found.status == "closed"
    assert holding(book, MARK) == []


def test_what_another_program_keeps_the_issue_of_goes_too(book: Engine) -> None:
    """With beads, only what was done and what undoes it stands here."""
    reversal(book, "bd-1", ID, "a")
    with book._runtime.store.change_memories("default") as change:
        change.ledger.add_event(IssueEvent("bd-1", 1.0, "me", "applied", f"for {SECRET}"))
    assert book.forget(ID).verified
    held = book._runtime.store.ledger("default")
    assert [(each.act, each.why) for each in held.events("bd-1")] == [("applied", ""), ("forgotten", "")]
    assert (held.reversals(), held.issue("bd-1")) == ([], None)
    assert holding(book, MARK) == []


def test_a_dry_run_says_what_would_be_cleaned(book: Engine) -> None:
    """And changes nothing."""
    issue = book.ledger.create("merge", [ID, "a"], "merge")
    reversal(book, issue, ID)
    counts = book.forget(ID, dry_run=True).counts
    assert (counts["issues"], counts["reversals"]) == (1, 1)
    assert book.ledger.show(issue)["memory_ids"] == [ID, "a"]


def test_what_issues_still_say_betrays_nothing(book: Engine) -> None:
    """The same words stand in an issue about other memories: a file that holds them is no leak."""
    book.ledger.create("merge", ["a", "b"], "merge", extra_data={"words": SECRET})
    receipt = book.forget(ID)
    assert (receipt.verified, receipt.found) == (True, ())
    assert receipt.excluded_needles > 0


def test_a_namespace_goes_with_its_issues(tmp_path: Path) -> None:
    """And the receipt counts them."""
    with commonplace.open(tmp_path / "store", namespace="tenant", embedder="hashing") as book:
        book.remember("Kettle a boils", id="a")
        book.ledger.create("merge", ["a"], "merge", extra_data={"words": SECRET})
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        receipt = book.forget_namespace("tenant", confirm="tenant")
        assert (receipt.verified, receipt.counts["issues"]) == (True, 1)
        assert holding(book, MARK) == []
        assert book._runtime.store.ledger("tenant").issues(IssueSelection()) == []
