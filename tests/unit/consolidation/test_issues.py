"""Agents whose issues are kept by beads: filed there, applied here, closed there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation.decay import DecayAnalyzer
from commonplace.consolidation.promote import LTMPromoter
from commonplace.consolidation.relations import RelationshipDiscovery
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.retention import DAY_S
from commonplace.settings import load

from .conftest import Clock, dump

STUB = Path(__file__).parents[2] / "stubs" / "bd.py"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the program that stands in for bd is a script")


@pytest.fixture
def kept_in_beads(tmp_path: Path, clock: Clock) -> Iterator[Engine]:
    (tmp_path / ".beads").mkdir()
    program = tmp_path / "bin" / "bd"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -S -E '{STUB}' \"$@\"\n")
    program.chmod(0o755)
    store = tmp_path / ".commonplace"
    settings = load({"store.path": str(store), "ledger.backend": "bd", "ledger.bd": str(program)})
    with commonplace.open(store, embedder="hashing", clock=clock, settings=settings) as book:
        clock.now -= 61 * DAY_S
        book.remember("The harbour of Aegina froze over", id="harbour")
        clock.now += 40 * DAY_S
        book.remember("Ravens nest in the old lighthouse", id="ravens")
        clock.now += 21 * DAY_S
        yield book


def test_what_an_agent_does_is_filed_and_closed_there_and_undone_here(kept_in_beads: Engine) -> None:
    book, before = kept_in_beads, dump(kept_in_beads)
    report = book.consolidate(["decay"])
    assert (report.applied, report.errors) == (1, ())
    issues = {tuple(issue["memory_ids"]): issue for issue in book.ledger.query(status=None)}
    assert {ids: issue["status"] for ids, issue in issues.items()} == {("harbour",): "closed", ("ravens",): "open"}
    assert book._runtime.store.ledger(book.namespace).counts() == {}
    assert book.consolidation_status().total_pending == 1
    assert book.health().pending == {"decay": 1}
    book.undo_consolidation(issues["harbour",]["id"])
    assert dump(book) == before


def test_a_proposal_is_made_once_and_processed_by_its_issue(kept_in_beads: Engine) -> None:
    book = kept_in_beads
    book.consolidate(["decay"])
    assert book.consolidate(["decay"]).results["decay"] == ()
    (waiting,) = book.ledger.query()
    book.process_issue(waiting["id"])
    assert book.get("ravens").use_count == 1
    assert book.ledger.query() == []


def test_where_beads_fails_nothing_is_changed(kept_in_beads: Engine, tmp_path: Path) -> None:
    before = dump(kept_in_beads)
    (tmp_path / "bin" / "bd").write_text("#!/bin/sh\necho 'the database is locked' >&2\nexit 1\n")
    (failure,) = kept_in_beads.consolidate(["decay"]).errors
    assert "the database is locked" in failure.error
    assert dump(kept_in_beads) == before


def test_what_somebody_closed_there_is_not_proposed_again(kept_in_beads: Engine) -> None:
    book = kept_in_beads
    book.consolidate(["decay"])
    (waiting,) = book.ledger.query()
    book.ledger.close(waiting["id"], "no")
    assert [each.beads_issue_id for each in book.consolidate(["decay"]).results["decay"]] == [None]
    assert book.ledger.query() == []


def test_no_claim_outlives_a_failure(kept_in_beads: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    book, before = kept_in_beads, dump(kept_in_beads)

    def fail(*_: object) -> None:
        raise UsageError("the disk is full of eels")

    monkeypatch.setattr("commonplace.consolidation.base.ChangeRecorder.archive", fail)
    (failure,) = book.consolidate(["decay"]).errors
    assert failure.item == "harbour"
    (blocked,) = book.ledger.query(status="blocked")
    assert "full of eels" in blocked["log"][0]
    assert (book.ledger.query(status="in_progress"), dump(book)) == ([], before)


def test_what_is_gone_meanwhile_is_closed_and_not_blocked(
    kept_in_beads: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = kept_in_beads

    def lose(*_: object) -> None:
        raise NotFoundError("the memory is gone", remedy="leave it")

    monkeypatch.setattr("commonplace.consolidation.base.ChangeRecorder.archive", lose)
    report = book.consolidate(["decay"])
    assert (report.errors, report.skipped, report.applied) == ((), 1, 0)
    assert [issue["memory_ids"] for issue in book.ledger.query(status="closed")] == [["harbour"]]
    monkeypatch.undo()
    assert book.consolidate(["decay"]).applied == 1


def test_what_others_claimed_there_is_left_to_them(kept_in_beads: Engine) -> None:
    book, agent = kept_in_beads, DecayAnalyzer(book=kept_in_beads)
    claimed = book.ledger.create("decay", ["harbour"], "gc")
    assert book.ledger.claim(claimed)
    with pytest.raises(NotFoundError, match=r"somebody works on it; .*does not lapse"):
        agent.process_item("harbour")
    assert book._runtime.store.ledger(book.namespace).reversals() == []
    assert book.get("harbour").status == "active"


def test_memories_that_an_issue_there_holds_are_left_alone(kept_in_beads: Engine) -> None:
    book = kept_in_beads
    for id_ in ("a", "b"):
        book.remember(f"Crane {id_}", id=id_, entities=["Ada", "Postgres", "billing"], force=True)
        for _ in range(5):
            book.touch(id_)
    assert LTMPromoter(book=book).scan() == ["a", "b"]
    assert RelationshipDiscovery(book=book).scan() == ["a:b"]
    book.ledger.block(book.ledger.create("promote", ["a"], "promote"), "no")
    book.ledger.create("merge", ["a", "b"], "merge")
    assert LTMPromoter(book=book).scan() == ["b"]
    assert RelationshipDiscovery(book=book).scan() == []


def test_what_was_proposed_there_for_a_memory_that_was_archived_is_closed_there(kept_in_beads: Engine) -> None:
    book = kept_in_beads
    book.ledger.create("relations", ["harbour", "ravens"], "link")
    assert book.consolidate(["decay"]).applied == 1
    assert [issue["memory_ids"] for issue in book.ledger.query()] == [["ravens"]]
