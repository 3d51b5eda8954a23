"""What the contract demands of the ClusterDetector, a test for each MUST, and what is decided about clusters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation import ConfidenceConfig
from commonplace.consolidation.base import AgentPlan
from commonplace.consolidation.cluster import ClusterDetector, doubt_text
from commonplace.consolidation.results import ClusterResult
from commonplace.consolidation.text_merge import Doubt
from commonplace.engine import Engine
from commonplace.errors import NoRelation, NotFoundError, StoreBusyError, UsageError
from commonplace.ledger.ledger import Ledger
from commonplace.types import Link
from commonplace.types.ledger import Issue, IssueSelection

from .conftest import NOW

SAME = {
    "dark-1": "The user prefers the dark theme in the editor and in the terminal",
    "dark-2": "The user prefers the dark theme in the terminal and in the editor",
}
"""The same words: the hashing embedder finds them alike by 1."""
NEAR = {
    "tea-1": "green tea is what Anna drinks before breakfast",
    "tea-2": "green tea is what Anna drinks with biscuits usually later",
}
"""Some of the same words: alike, but not the same."""
ALONE = {"alone": "Quarterly invoices went missing somewhere"}


def keep(book: Engine, texts: dict[str, str], **given: str) -> None:
    for id_, text in texts.items():
        book.remember(text, id=id_, force=True, **given)


def item(ids: Sequence[str]) -> str:
    return json.dumps(sorted(ids))


def issues(book: Engine, **wanted: tuple[str, ...]) -> list[Issue]:
    return book._runtime.store.ledger(book.namespace).issues(IssueSelection(**wanted))


def links(book: Engine) -> list[Link]:
    return book._runtime.store.links(book.namespace)


def test_scan_must_find_memories_with_potential_clusters(book: Engine) -> None:
    keep(book, {**SAME, **ALONE, **NEAR})
    assert ClusterDetector(book=book).scan() == [item(SAME), item(NEAR)]


@pytest.mark.parametrize("type_", ["supersedes", "holds beside"])
def test_memories_of_which_is_known_which_holds_are_not_alike(book: Engine, type_: str) -> None:
    keep(book, {**SAME, **NEAR})
    book.link("dark-2", "dark-1", type_)
    assert ClusterDetector(book=book).scan() == [item(NEAR)]


def test_a_group_that_would_be_too_long_is_linked(book: Engine) -> None:
    keep(book, SAME)
    ground = book.consolidation_runtime()
    actions = [
        ClusterDetector(book=replace(ground, max_bytes=limit), dry_run=True).process_item(item(SAME)).action
        for limit in (1_000, 100)
    ]
    assert actions == ["merge", "link"]


def test_scan_must_return_a_list_where_there_is_nothing(book: Engine) -> None:
    assert ClusterDetector(book=book).scan() == []


def test_scan_must_not_modify_any_data(book: Engine) -> None:
    keep(book, SAME)
    before = book._runtime.store.change()
    ClusterDetector(book=book).scan()
    assert (book._runtime.store.change(), issues(book), links(book)) == (before, [], [])


@pytest.mark.parametrize("agent", ["merge", "cluster"])
@pytest.mark.parametrize("status", ["open", "in_progress", "blocked"])
def test_scan_must_not_return_already_clustered_memories(book: Engine, agent: str, status: str) -> None:
    keep(book, SAME)
    ground = book.consolidation_runtime()
    issue = ground.issues.create(agent, ["dark-1", "dark-2"], "merge")
    if status == "in_progress":
        ground.issues.claim(issue)
    if status == "blocked":
        ground.issues.block(issue, "it failed")
    assert ClusterDetector(book=book).scan() == []


def test_an_issue_that_asks_for_the_group_of_one_memory_clusters_nothing(book: Engine) -> None:
    keep(book, SAME)
    book.consolidation_runtime().issues.create("cluster", ["dark-1"], "consolidate")
    assert ClusterDetector(book=book).scan() == [item(SAME)]


def test_scan_returns_no_archived_memory(book: Engine) -> None:
    keep(book, SAME)
    book.archive("dark-1")
    assert ClusterDetector(book=book).scan() == []


def test_process_must_calculate_the_cohesion_score(book: Engine) -> None:
    keep(book, SAME)
    result = ClusterDetector(dry_run=True, book=book).process_item(item(SAME))
    assert (result.cohesion, result.confidence) == (1.0, 0.8)


@pytest.mark.parametrize(
    ("cohesion", "action"),
    [(1.0, "merge"), (0.75, "merge"), (0.749, "link"), (0.4, "link"), (0.399, "ignore"), (0.0, "ignore")],
)
def test_process_must_determine_the_action(
    book: Engine, monkeypatch: pytest.MonkeyPatch, cohesion: float, action: str
) -> None:
    keep(book, SAME)
    monkeypatch.setattr("commonplace.consolidation.pairs.cohesion", lambda _: cohesion)
    assert ClusterDetector(dry_run=True, book=book).process_item(item(SAME)).action == action


def test_process_must_create_an_issue_of_the_agent_merge_where_memories_say_the_same(book: Engine) -> None:
    keep(book, SAME)
    result = ClusterDetector(book=book).process_item(item(SAME))
    (issue,) = issues(book)
    assert (issue.id, issue.agent, issue.status) == (result.beads_issue_id, "merge", "open")
    assert issue.memory_ids == ("dark-1", "dark-2")
    assert "consolidation:merge" in issue.labels
    told = json.loads(issue.notes)
    assert (told["cohesion"], told["confidence"], told["cluster_id"]) == (1.0, 0.8, result.cluster_id)


def test_process_must_create_an_issue_where_memories_are_to_be_linked(book: Engine) -> None:
    """A pair of such cohesion is not sure enough to be linked without a person."""
    keep(book, NEAR)
    result = ClusterDetector(book=book).process_item(item(NEAR))
    (issue,) = issues(book)
    assert 0.4 <= result.cohesion < 0.75
    assert (issue.id, issue.agent, issue.status) == (result.beads_issue_id, "cluster", "open")
    assert links(book) == []


def test_what_is_to_be_ignored_leaves_no_issue(book: Engine) -> None:
    keep(book, {**SAME, **ALONE})
    result = ClusterDetector(book=book).process_item(item(["alone", "dark-1"]))
    assert (result.action, result.beads_issue_id, issues(book)) == ("ignore", None, [])


def test_process_must_not_create_duplicate_clusters(book: Engine) -> None:
    keep(book, SAME)
    first = ClusterDetector(book=book).process_item(item(SAME))
    again = ClusterDetector(book=book).process_item(item(SAME))
    assert again == first
    assert len(issues(book)) == 1
    assert ClusterDetector(book=book).run() == []


def test_memories_that_others_merge_meanwhile_are_not_proposed_to_be_merged(book: Engine) -> None:
    keep(book, SAME)

    class Slow(ClusterDetector):
        def plan(self, item: str) -> AgentPlan[ClusterResult]:
            plan = super().plan(item)
            book.consolidate(["cluster", "merge"])
            return plan

    with pytest.raises(NotFoundError, match="archived, not active"):
        Slow(book=book).process_item(item(SAME))
    assert [(issue.agent, issue.status) for issue in issues(book)] == [("merge", "closed")]


def test_memories_that_change_over_and_over_are_not_proposed(book: Engine) -> None:
    keep(book, SAME)

    class Outrun(ClusterDetector):
        def plan(self, item: str) -> AgentPlan[ClusterResult]:
            plan = super().plan(item)
            book.touch("dark-1")
            return plan

    with pytest.raises(StoreBusyError, match="changed 5 times"):
        Outrun(book=book).process_item(item(SAME))
    assert issues(book) == []


def test_a_cluster_gives_one_result_and_not_one_for_each_member(book: Engine) -> None:
    keep(book, {**SAME, "dark-3": SAME["dark-1"] + " ."})
    results = ClusterDetector(book=book).run()
    assert [result.memory_ids for result in results] == [["dark-1", "dark-2", "dark-3"]]


def test_a_cluster_has_the_same_id_in_every_run_and_store(book: Engine, tmp_path: Path) -> None:
    keep(book, SAME)
    with commonplace.open(tmp_path / "other", embedder="hashing", clock=lambda: NOW) as other:
        keep(other, dict(reversed(SAME.items())))
        ids = [ClusterDetector(dry_run=True, book=each).run()[0].cluster_id for each in (book, other)]
    assert ids == ["e65a47b7-cd01-5184-961f-d5f7deb3441a"] * 2


def test_a_dry_run_must_not_modify_any_data(book: Engine) -> None:
    keep(book, {**SAME, **NEAR})
    before = book._runtime.store.change()
    results = ClusterDetector(dry_run=True, book=book).run()
    assert [result.action for result in results] == ["merge", "link"]
    assert [result.beads_issue_id for result in results] == [None, None]
    assert (book._runtime.store.change(), issues(book), links(book)) == (before, [], [])


def test_a_memory_stands_for_its_best_group(book: Engine) -> None:
    keep(book, {**SAME, **ALONE})
    agent = ClusterDetector(dry_run=True, book=book)
    assert agent.process_item("dark-2") == agent.process_item(item(SAME))


def test_a_memory_that_nothing_is_like_has_no_group(book: Engine) -> None:
    keep(book, {**SAME, **ALONE})
    with pytest.raises(NoRelation, match="no active memory is like 'alone'"):
        ClusterDetector(book=book).process_item("alone")


@pytest.mark.parametrize("given", ["[]", '["a", "a"]', "[1, 2]", "[not json", "[" * 10_000])
def test_what_is_no_array_of_different_ids_is_the_id_of_a_memory(book: Engine, given: str) -> None:
    with pytest.raises(NotFoundError, match=re.escape(f"there is no memory {given!r:.80}")):
        ClusterDetector(book=book).process_item(given)


def test_more_memories_than_a_group_may_have_are_refused(book: Engine) -> None:
    with pytest.raises(UsageError, match="the group has 11 memories, the limit is 10"):
        ClusterDetector(book=book).process_item(item([str(number) for number in range(11)]))


def test_a_memory_that_is_not_there_is_refused(book: Engine) -> None:
    with pytest.raises(NotFoundError, match="there is no memory 'nobody'"):
        ClusterDetector(book=book).process_item("nobody")


def test_turns_of_a_conversation_are_linked_and_never_merged(book: Engine) -> None:
    """A transcript stays what was said."""
    keep(book, SAME, session="talk")
    (result,) = ClusterDetector(book=book).run()
    assert (result.cohesion, result.action) == (1.0, "link")
    assert {(link.source, link.target, link.type) for link in links(book)} == {("dark-1", "dark-2", "related")}


def test_turns_and_memories_are_grouped_apart(book: Engine) -> None:
    keep(book, {"dark-1": SAME["dark-1"]})
    keep(book, {"dark-2": SAME["dark-2"]}, session="talk")
    assert ClusterDetector(book=book).scan() == []
    assert ClusterDetector(dry_run=True, book=book).process_item("dark-1").action == "link"


def test_processing_a_link_issue_links_what_is_alike_and_closes_it(book: Engine) -> None:
    keep(book, NEAR)
    proposed = ClusterDetector(book=book).process_item(item(NEAR))
    assert proposed.beads_issue_id is not None
    result = ClusterDetector(book=book).process_issue(proposed.beads_issue_id)
    (link,) = links(book)
    assert (link.source, link.target, link.type) == ("tea-1", "tea-2", "related")
    assert link.strength == pytest.approx(result.cohesion, abs=1e-6)
    assert [issue.status for issue in issues(book)] == ["closed"]
    assert ClusterDetector(book=book).scan() == []


def test_what_is_linked_already_leaves_no_issue(book: Engine) -> None:
    keep(book, NEAR)
    book.link("tea-2", "tea-1", "explains")
    result = ClusterDetector(book=book).process_item(item(NEAR))
    assert (result.action, result.beads_issue_id, issues(book)) == ("link", None, [])
    assert ClusterDetector(book=book).scan() == []


def test_two_detectors_at_once_link_a_group_once(book: Engine) -> None:
    """The other one links between the plan and the transaction: nothing is left to do, and no issue is filed."""
    keep(book, SAME, session="talk")
    slow, quick = ClusterDetector(book=book), ClusterDetector(book=book)
    plan = slow.plan

    def interrupted(given: str) -> AgentPlan[ClusterResult]:
        made = plan(given)
        if not issues(book):
            quick.process_item(given)
        return made

    slow.plan = interrupted  # type: ignore[method-assign]
    assert (slow.run(), slow.skipped, len(issues(book)), len(links(book))) == ([], 1, 1, 1)


def test_a_memory_merges_in_its_most_cohesive_group_only(book: Engine) -> None:
    keep(book, {**SAME, "dark-3": SAME["dark-1"]})
    ground = book.consolidation_runtime()
    ground.issues.create("merge", ["dark-1", "dark-3"], "merge", extra_data={"cohesion": 1.0})
    assert ClusterDetector(dry_run=True, book=book).process_item(item(SAME)).action == "link"


def test_memories_that_contradict_each_other_wait_for_a_person(book: Engine) -> None:
    keep(
        book,
        {
            "a": "The nightly backup of the billing database runs at 3 in Frankfurt",
            "b": "The nightly backup of the billing database runs at 5 in Frankfurt",
        },
    )
    result = ClusterDetector(book=book).process_item(item(["a", "b"]))
    (issue,) = issues(book)
    told = json.loads(issue.notes)
    assert (result.action, told["confidence"], told["conflicts"]) == ("merge", 0.5, {"number": 1})


def test_what_decay_wants_consolidated_is_taken_up_and_closed(book: Engine) -> None:
    keep(book, {**SAME, **ALONE})
    ground = book.consolidation_runtime()
    asked, in_vain = (ground.issues.create("cluster", [id_], "consolidate") for id_ in ("dark-1", "alone"))
    (result,) = ClusterDetector(book=book).run()
    assert ground.issues.get(asked).close_reason == f"issue {result.beads_issue_id} is about its group"
    assert ground.issues.get(in_vain).close_reason == "nothing else is to be done with it"


def test_processing_what_decay_wants_consolidated_proposes_the_merge(book: Engine) -> None:
    keep(book, SAME)
    asked = book.consolidation_runtime().issues.create("cluster", ["dark-1"], "consolidate")
    result = ClusterDetector(book=book).process_issue(asked)
    proposed, answered = sorted(issues(book), key=lambda issue: issue.status, reverse=True)
    assert (answered.id, answered.status) == (asked, "closed")
    assert (proposed.agent, proposed.status, list(proposed.memory_ids)) == ("merge", "open", result.memory_ids)


def test_a_list_of_one_memory_is_answered_only_where_an_issue_asks(book: Engine) -> None:
    keep(book, SAME)
    result = ClusterDetector(book=book).process_item(item(["dark-1"]))
    assert [(issue.id, issue.agent, issue.status) for issue in issues(book)] == [
        (result.beads_issue_id, "merge", "open")
    ]


def test_a_group_is_processed_without_reading_the_whole_ledger(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """With as many proposals as there are groups, a run would take the square of their number otherwise."""
    keep(book, SAME)
    asked = list[IssueSelection]()
    select = Ledger.selected

    def selected(ledger: Ledger, wanted: IssueSelection) -> list[Issue]:
        asked.append(wanted)
        return select(ledger, wanted)

    monkeypatch.setattr(Ledger, "selected", selected)
    assert ClusterDetector(book=book).process_item(item(SAME)).action == "merge"
    assert asked
    assert all(each.memory_ids for each in asked)


# What nearly says the same, but for a name, a number, a day or a negation, is a question to a person.

PAIRS = [
    ("The nightly import runs on staging-2.", "The nightly import runs on staging-3."),
    ("The team meets on Thursdays.", "The team meets on Fridays."),
    ("The invoice database is hosted in Frankfurt.", "The invoice database is hosted in Dublin."),
    ("The service listens on port 8080.", "The service listens on port 8081."),
    ("The release is planned for March 3.", "The release is planned for March 10."),
    ("The API key must never be logged.", "The API key must be logged."),
    ("We moved the cache from Redis to Memcached.", "We moved the cache from Memcached to Redis."),
    ("Feature flags are enabled in production.", "Feature flags are disabled in production."),
]
BOLD = ConfidenceConfig(auto_threshold=0.02, log_threshold=0.01)
"""Does whatever it may."""


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("agents", [["cluster", "merge", "relations"], ["relations"]], ids=len)
def test_a_near_contradiction_is_neither_merged_nor_linked(
    one: str, other: str, agents: list[str], tmp_path: Path
) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember_many([{"content": one, "entities": ["shop"]}, {"content": other, "entities": ["shop"]}])
        report = book.consolidate(agents, rate_limit=0, confidence=BOLD)
        assert report.errors == ()
        assert book.links() == []
        assert {memory.content for memory in book.list()} == {one, other}
        assert "may contradict each other" in book.ledger.query()[0]["notes"]["why"]


@pytest.mark.parametrize(
    ("conflicts", "text"),
    [
        ({}, ""),
        ({"name": 2, "negation": 1}, "; sentences may contradict each other: 2 by name, 1 by negation"),
        ({"length": 1}, "; too long to compare all sentences"),
        (
            {"length": 1, "word": 1},
            "; sentences may contradict each other: 1 by word; too long to compare all sentences",
        ),
    ],
)
def test_a_reason_says_what_speaks_against_a_merge(conflicts: dict[Doubt, int], text: str) -> None:
    """Sentences that differ need not contradict each other, and texts that were not compared may not differ at all."""
    assert doubt_text(Counter(conflicts)) == text


def test_a_person_may_say_that_contradicting_memories_are_linked(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember_many([{"content": text} for text in PAIRS[1]])
        book.consolidate(["cluster"], rate_limit=0, confidence=BOLD)
        (issue,) = book.ledger.query("cluster")
        assert issue["notes"]["conflicts"] == {"name": 1}
        book.process_issue(issue["id"])
        assert [link.type for link in book.links()] == ["related"]


def test_what_is_like_both_of_two_contradicting_memories_is_linked_with_each(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        texts = {"a": PAIRS[1][0], "b": PAIRS[1][1], "c": "When does the team meet each week, and where?"}
        book.remember_many([{"id": id_, "content": text} for id_, text in texts.items()])
        for _ in range(2):
            book.consolidate(["cluster"], rate_limit=0, confidence=BOLD)
        assert {(link.source, link.target) for link in book.links()} == {("a", "c"), ("b", "c")}
        assert [issue["memory_ids"] for issue in book.ledger.query("cluster")] == [["a", "b"]]
