"""What the contract demands of the DecayAnalyzer, a test for each MUST, and the rule of what is done with a memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation import DecayAnalyzer
from commonplace.consolidation.results import DecayResult
from commonplace.engine import Engine
from commonplace.errors import NotFoundError
from commonplace.retention import DAY_S
from commonplace.settings import load
from commonplace.types.ledger import Issue, IssueSelection

from .conftest import NOW, Clock


def keep(book: Engine, clock: Clock, id_: str, days: float, text: str = "", **record: object) -> None:
    """Remember something that was last used so many days before the clock's now."""
    now, clock.now = clock.now, clock.now - days * DAY_S
    book.remember(text or f"{id_} {id_}{id_} stands alone", id=id_, force=True)
    clock.now = now
    if record:
        with book._runtime.store.change_memories(book.namespace) as change:
            known = change.find(id_)
            assert known is not None
            change.revise(known.number, replace(known.record, **record))  # type: ignore[arg-type]


def issues(book: Engine) -> list[Issue]:
    return book._runtime.store.ledger(book.namespace).issues(IssueSelection())


def analyse(book: Engine, id_: str) -> DecayResult:
    return DecayAnalyzer(dry_run=True, book=book).process_item(id_)


def test_scan_must_find_memories_with_score_below_the_danger_zone(book: Engine, clock: Clock) -> None:
    for id_, days in (("fresh", 0.0), ("half", 3.0), ("edge", 5.4), ("below", 5.6), ("faded", 30.0)):
        keep(book, clock, id_, days)
    assert DecayAnalyzer(book=book).scan() == ["faded", "below"]


def test_scan_must_prioritize_by_urgency_ties_by_the_oldest_use_then_by_id(
    book: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for id_ in ("b", "a"):
        keep(book, clock, id_, 14.0)
    keep(book, clock, "urgent", 61.0)
    keep(book, clock, "low", 7.0)
    assert DecayAnalyzer(book=book).scan() == ["urgent", "a", "b", "low"]
    monkeypatch.setattr(DecayAnalyzer, "_score", lambda *_: 0.2)
    keep(book, clock, "0", 1.0)
    assert DecayAnalyzer(book=book).scan() == ["urgent", "a", "b", "low", "0"]


def test_scan_must_not_return_memories_already_being_processed(book: Engine, clock: Clock) -> None:
    for id_ in ("open", "claimed", "blocked", "closed", "other"):
        keep(book, clock, id_, 14.0)
    ledger = book.ledger
    ids = {id_: ledger.create("decay", [id_], "reinforce") for id_ in ("open", "claimed", "blocked", "closed")}
    ledger.create("promote", ["other"], "promote")
    ledger.claim(ids["claimed"])
    ledger.block(ids["blocked"], "no")
    ledger.close(ids["closed"], "done")
    assert DecayAnalyzer(book=book).scan() == ["closed", "other"]


@pytest.mark.parametrize(
    "record", [{"status": "promoted"}, {"tier": "long"}, {"status": "archived"}], ids=["promoted", "long", "archived"]
)
def test_scan_finds_only_active_memories_of_tiers_that_fade(
    book: Engine, clock: Clock, record: dict[str, object]
) -> None:
    keep(book, clock, "a", 61.0, **record)
    assert DecayAnalyzer(book=book).scan() == []


def test_scan_must_not_modify_any_data(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 61.0)
    before = book._runtime.store.change(), book.get("a", touch=False), issues(book)
    DecayAnalyzer(book=book).scan()
    assert (book._runtime.store.change(), book.get("a", touch=False), issues(book)) == before


@pytest.mark.parametrize(
    ("days", "score", "urgency"),
    [(7.0, 0.293, "low"), (14.0, 0.167, "medium"), (30.0, 0.0814, "high"), (60.0, 0.0402, "high")],
)
def test_process_must_calculate_the_score_and_determine_the_urgency(
    book: Engine, clock: Clock, days: float, score: float, urgency: str
) -> None:
    keep(book, clock, "a", days)
    result = analyse(book, "a")
    assert result.score == pytest.approx(score, rel=0.002)
    assert result.urgency == urgency


@pytest.mark.parametrize(
    ("days", "record", "action"),
    [
        (61.0, {}, "gc"),
        (61.0 * 8, {"use_count": 4}, "gc"),
        (61.0 * 8, {"use_count": 5}, "reinforce"),
        (30.0, {}, "gc"),
        (80.0, {"use_count": 2}, "gc"),
        (100.0, {"use_count": 3}, "reinforce"),
        (14.0, {}, "reinforce"),
        (16.0, {"strength": 1.6}, "promote"),
        (7.0, {"strength": 1.5}, "promote"),
        (7.0, {"strength": 1.49}, "reinforce"),
        (7.0, {"strength": 1.1}, "reinforce"),
    ],
)
def test_process_must_recommend_an_action(
    book: Engine, clock: Clock, days: float, record: dict[str, object], action: str
) -> None:
    keep(book, clock, "a", days, **record)
    assert analyse(book, "a").action == action


def test_what_another_memory_nearly_says_is_to_be_consolidated(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 14.0, "the office in Lyon opens at eight")
    keep(book, clock, "b", 0.0, "the office in Lyon opens at nine")
    assert analyse(book, "a").action == "consolidate"
    book.archive("b")
    assert analyse(book, "a").action == "reinforce"


def test_process_must_create_an_issue_for_urgent_items(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 30.0)
    keep(book, clock, "b", 61.0 * 8, use_count=5)
    results = DecayAnalyzer(book=book).run()
    assert [(each.memory_id, each.urgency) for each in results] == [("b", "high"), ("a", "high")]
    named = {issue.id: issue for issue in issues(book)}
    assert {named[str(each.beads_issue_id)].memory_ids for each in results} == {("a",), ("b",)}
    assert all("urgency:high" in issue.labels for issue in named.values())


def test_a_gc_archives_and_never_deletes(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 61.0, "the ferry to Aegina was late")
    DecayAnalyzer(book=book).run()
    archived = book._runtime.store.memory(book.namespace, "a")
    assert archived is not None
    assert (archived.record.status, archived.record.content) == ("archived", "the ferry to Aegina was late")
    assert book.restore_memory("a").status == "active"


@pytest.mark.parametrize(
    ("days", "record", "agent", "action"),
    [
        (14.0, {}, "decay", "reinforce"),
        (14.0, {"strength": 1.3}, "decay", "reinforce"),
        (16.0, {"strength": 1.6}, "promote", "promote"),
    ],
)
def test_all_but_gc_is_proposed_to_the_agent_that_does_it(
    book: Engine, clock: Clock, days: float, record: dict[str, object], agent: str, action: str
) -> None:
    keep(book, clock, "a", days, **record)
    before = book.get("a", touch=False)
    DecayAnalyzer(book=book).run()
    (issue,) = issues(book)
    assert (issue.agent, issue.status) == (agent, "open")
    assert book.ledger.query(agent)[0]["notes"]["action"] == action
    assert book.get("a", touch=False) == before


def test_a_memory_to_be_consolidated_is_proposed_to_the_cluster_agent(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 14.0, "the office in Lyon opens at eight")
    keep(book, clock, "b", 0.0, "the office in Lyon opens at nine")
    DecayAnalyzer(book=book).run()
    assert [(issue.agent, issue.memory_ids) for issue in issues(book)] == [("cluster", ("a",))]


def test_to_process_a_proposal_reinforces_the_memory(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 14.0)
    (result,) = DecayAnalyzer(book=book).run()
    DecayAnalyzer(book=book).process_issue(str(result.beads_issue_id))
    memory = book.get("a", touch=False)
    assert (memory.use_count, memory.strength, memory.retention) == (1, 1.1, 1.0)


@pytest.mark.parametrize(("action", "days", "status"), [("reinforce", 90.0, "active"), ("gc", 0.0, "archived")])
def test_to_process_an_issue_does_what_it_asks_for_whatever_would_be_proposed_by_now(
    book: Engine, clock: Clock, action: str, days: float, status: str
) -> None:
    """Who reads "Reinforce 1 memory" and says yes must not find it archived."""
    keep(book, clock, "a", days)
    issue = book.ledger.create("decay", ["a"], action)
    assert DecayAnalyzer(dry_run=True, book=book).process_issue(issue).action == action
    assert DecayAnalyzer(book=book).process_issue(issue).action == action
    assert book.get("a", touch=False).status == status


def test_undone_what_was_changed_again_since_stays_as_it_is_now(book: Engine, clock: Clock) -> None:
    keep(book, clock, "a", 14.0)
    issue = DecayAnalyzer(book=book).process_item("a").beads_issue_id
    assert issue is not None
    DecayAnalyzer(book=book).process_issue(issue)
    clock.now += 60
    book.touch("a")
    undone = book.undo_consolidation(issue)
    now = book.get("a", touch=False)
    assert (now.use_count, now.last_used.timestamp(), now.strength) == (2, NOW + 60, 1.0)
    assert [notice.partition(" ")[0] for notice in undone.notices] == ["last_used", "use_count", "uses"]


def test_a_tier_keeps_a_memory_for_its_time_and_then_what_waited_is_archived(book: Engine, clock: Clock) -> None:
    """Medium is kept for 90 days; its retention is below 0.05 after 50."""
    keep(book, clock, "a", 61.0, tier="medium")
    (first,) = DecayAnalyzer(book=book).run()
    assert (first.action, issues(book)[0].status) == ("gc", "open")
    assert DecayAnalyzer(book=book).run() == []
    clock.now += 30 * DAY_S
    (second,) = DecayAnalyzer(book=book).run()
    assert second.beads_issue_id == first.beads_issue_id
    assert [issue.status for issue in issues(book)] == ["closed"]
    with pytest.raises(NotFoundError, match="archived"):
        DecayAnalyzer(book=book).process_item("a")


def test_the_chosen_curve_is_the_one_that_runs(tmp_path: Path, clock: Clock) -> None:
    settings = load({"memory.curve": "exponential", "store.path": str(tmp_path / "other")})
    with commonplace.open(tmp_path / "other", embedder="hashing", clock=clock, settings=settings) as book:
        keep(book, clock, "a", 14.0)
        assert analyse(book, "a").score == pytest.approx(0.0394, rel=0.002)


@pytest.mark.parametrize("id_", ["nothing", ""])
def test_what_is_no_memory_is_refused(book: Engine, id_: str) -> None:
    with pytest.raises(NotFoundError, match="there is no memory"):
        analyse(book, id_)


def test_a_turn_of_a_conversation_is_archived_only_by_somebody_who_says_so(book: Engine, clock: Clock) -> None:
    """A transcript stays what was said, however long nobody asked about it."""
    clock.now -= 200 * DAY_S
    book.remember("Ann: the ferry to Aegina was late", id="turn", session="talk")
    clock.now += 200 * DAY_S
    (result,) = DecayAnalyzer(book=book).run()
    assert (result.action, [issue.status for issue in issues(book)]) == ("gc", ["open"])
    DecayAnalyzer(book=book).run()
    assert book.get("turn").status == "active"
    DecayAnalyzer(book=book).process_issue(str(result.beads_issue_id))
    assert [memory.id for memory in book.list()] == []
