"""What the contract demands of SemanticMerge, a test for each MUST, and what is decided about merges."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.consolidation.cluster import ClusterDetector
from commonplace.consolidation.merge import SemanticMerge
from commonplace.consolidation.results import MergeResult
from commonplace.consolidation.runtime import ConfidenceConfig
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, StoreBusyError, UsageError
from commonplace.ledger.ledger import Ledger
from commonplace.retention import DAY_S
from commonplace.text.sentences import say_the_same
from commonplace.types import RULE, Link, MemoryRecord, MemoryWrite, Owner, Selection, StoredMemory
from commonplace.types.ledger import Issue, IssueSelection

from .conftest import NOW, Clock

LONG = "The release is cut on Fridays by Maria. Ruff lints the code."
SHORT = "Ruff lints the code. Mypy checks the types."


def ask(book: Engine, *ids: str, confidence: float = 0.95, **extra: object) -> str:
    told = {"cohesion": 0.9, "confidence": confidence, **extra}
    return book.consolidation_runtime().issues.create("merge", ids, "merge", extra_data=told)


def keep_two(book: Engine) -> str:
    """Remember two memories that are to be merged, and return the issue that says so."""
    book.remember(LONG, id="long", tags=["release", "code"], entities=["Maria", "Ruff"], force=True)
    book.remember(SHORT, id="short", tags=["code", "types"], entities=["Ruff", "mypy"], force=True)
    return ask(book, "long", "short")


def merge(book: Engine, issue: str, **given: Any) -> MergeResult:
    return SemanticMerge(book=book, **given).process_item(issue)


def stored(book: Engine, id_: str) -> StoredMemory:
    found = book._runtime.store.memory(book.namespace, id_)
    assert found is not None
    return found


def issue_of(book: Engine, id_: str) -> Issue:
    (found,) = book._runtime.store.ledger(book.namespace).issues(IssueSelection(ids=(id_,)))
    return found


def state(book: Engine) -> object:
    store, ledger = book._runtime.store, book._runtime.store.ledger(book.namespace)
    memories = store.memories(book.namespace, Selection())
    return store.change(), memories, store.links(book.namespace), ledger.issues(IssueSelection()), ledger.events()


def test_scan_must_only_process_from_issues(book: Engine) -> None:
    """Memories that say the same are none of its business until an issue names them."""
    book.remember(LONG, id="one", force=True)
    book.remember(LONG, id="two", force=True)
    assert SemanticMerge(book=book).scan() == []
    issue = ask(book, "one", "two")
    assert SemanticMerge(book=book).scan() == [issue]


def test_scan_must_filter_for_the_label_of_merges(book: Engine) -> None:
    issue = keep_two(book)
    issues = book.consolidation_runtime().issues
    issues.create("cluster", ["long", "short"], "merge")
    assert SemanticMerge(book=book).scan() == [issue]


def test_scan_returns_the_most_cohesive_group_first(book: Engine) -> None:
    for id_ in "abcd":
        book.remember(f"{id_} {LONG}", id=id_, force=True)
    loose, close = ask(book, "a", "b", cohesion=0.8), ask(book, "c", "d", cohesion=0.99)
    assert SemanticMerge(book=book).scan() == [close, loose]


def test_an_issue_of_another_agent_is_refused(book: Engine) -> None:
    keep_two(book)
    other = book.consolidation_runtime().issues.create("cluster", ["long", "short"], "link")
    with pytest.raises(UsageError, match="is not labelled consolidation:merge"):
        merge(book, other)


def test_process_must_preserve_all_unique_entities(book: Engine) -> None:
    result = merge(book, keep_two(book))
    assert stored(book, result.new_memory_id).record.entities == ("Maria", "Ruff", "mypy")
    assert result.entities_preserved == 3


def test_process_must_preserve_all_unique_content(book: Engine) -> None:
    result = merge(book, keep_two(book))
    assert stored(book, result.new_memory_id).record.content == f"{LONG}\n\nMypy checks the types."


def test_process_must_create_consolidated_from_relations(book: Engine) -> None:
    result = merge(book, keep_two(book))
    links = book._runtime.store.links(book.namespace)
    assert [(link.source, link.target, link.type, link.strength) for link in links] == [
        (result.new_memory_id, "long", "consolidated_from", 1.0),
        (result.new_memory_id, "short", "consolidated_from", 1.0),
    ]
    assert len(set(result.relation_ids)) == 2


def test_process_must_archive_and_not_delete_originals(book: Engine) -> None:
    merge(book, keep_two(book))
    sources = [stored(book, id_) for id_ in ("long", "short")]
    assert [(memory.record.status, memory.record.content) for memory in sources] == [
        ("archived", LONG),
        ("archived", SHORT),
    ]


def test_process_must_close_the_issue_on_success(book: Engine) -> None:
    issue = keep_two(book)
    result = merge(book, issue)
    assert (result.success, result.beads_issue_id) == (True, issue)
    assert issue_of(book, issue).status == "closed"


def test_a_failure_blocks_the_issue_and_leaves_the_memories_as_they_were(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    issue = keep_two(book)

    def fail(*_: object) -> None:
        raise UsageError("the disk is full of eels")

    monkeypatch.setattr("commonplace.consolidation.base.ChangeRecorder.archive", fail)
    with pytest.raises(UsageError, match="full of eels"):
        merge(book, issue)
    blocked = issue_of(book, issue)
    assert blocked.status == "blocked"
    assert "full of eels" in blocked.notes
    assert json.loads(blocked.notes.splitlines()[0])["memory_ids"] == ["long", "short"]
    assert [stored(book, id_).record.status for id_ in ("long", "short")] == ["active", "active"]
    assert book._runtime.store.links(book.namespace) == []


def test_a_dry_run_must_not_modify_any_data(book: Engine) -> None:
    keep_two(book)
    before = state(book)
    (result,) = SemanticMerge(dry_run=True, book=book).run()
    assert state(book) == before
    assert (result.success, result.source_ids) == (True, ["long", "short"])


def test_a_merge_that_is_not_sure_waits_and_leaves_everything_as_it_is(book: Engine) -> None:
    keep_two(book)
    issue = ask(book, "long", "short")
    before = state(book)
    cautious = ConfidenceConfig(auto_threshold=1.0, log_threshold=0.96)
    result = merge(book, issue, confidence_config=cautious)
    assert (result.success, result.beads_issue_id) == (False, issue)
    assert state(book) == before


def test_processing_an_issue_merges_however_sure_it_is(book: Engine) -> None:
    book.remember(LONG, id="long", force=True)
    book.remember(SHORT, id="short", force=True)
    issue = ask(book, "long", "short", confidence=0.1)
    assert SemanticMerge(book=book).process_issue(issue).success is True
    assert issue_of(book, issue).status == "closed"


def test_times_uses_and_strength_are_those_of_all_sources(book: Engine, clock: Clock) -> None:
    """created_at = min, at = last_used = max, use_count = sum, strength = max + min(0.5, cohesion·n·0.1).

    What is said again counts from then on, also in other words.
    """
    clock.now = NOW - 3 * DAY_S
    book.remember(LONG, id="long", force=True)
    clock.now = NOW - DAY_S
    book.remember(SHORT, id="short", force=True)
    for id_ in ("long", "long"):
        book.touch(id_)
    clock.now = NOW - DAY_S / 2
    book.touch("short")
    clock.now = NOW
    result = merge(book, ask(book, "long", "short"))
    owner, record = stored(book, result.new_memory_id).owner, stored(book, result.new_memory_id).record
    assert (record.born_at, owner.at, record.last_used) == (NOW - 3 * DAY_S, NOW - DAY_S, NOW - DAY_S / 2)
    assert record.use_count == 3
    assert record.strength == pytest.approx(1.0 + 0.9 * 2 * 0.1)
    assert record.derived_from == ("long", "short")
    assert owner.tags == ()


def test_a_merged_memory_has_the_least_trust_of_its_sources(book: Engine) -> None:
    book.remember(LONG, id="long", origin="user", force=True)
    book.remember(SHORT, id="short", origin="tool", force=True)
    record = stored(book, merge(book, ask(book, "long", "short")).new_memory_id).record
    assert (record.trust, record.origin) == (0.6, "tool")


def test_what_is_not_trusted_merges_with_what_is_only_when_a_person_says_so(book: Engine) -> None:
    """Else whatever the web says like a memory would take the memory's trust away."""
    book.remember(LONG, id="long", origin="user", force=True)
    book.remember(SHORT, id="short", origin="web", force=True)
    issue = ask(book, "long", "short", confidence=1.0)
    assert merge(book, issue).success is False
    assert SemanticMerge(book=book).process_issue(issue).success is True


def test_the_longest_is_kept_where_it_contains_the_others(book: Engine) -> None:
    book.remember(LONG, id="long", force=True)
    book.remember("Ruff lints the code", id="short", force=True)
    result = merge(book, ask(book, "long", "short"))
    assert stored(book, result.new_memory_id).record.content == LONG


def test_the_diff_is_unified_and_shows_what_becomes_of_the_words(book: Engine) -> None:
    result = merge(book, keep_two(book))
    assert result.content_diff.splitlines() == [
        "--- long, short",
        f"+++ {result.new_memory_id}",
        "@@ -1,2 +1,3 @@",
        f" {LONG}",
        f"-{SHORT}",
        "+",
        "+Mypy checks the types.",
    ]


def test_conflicting_values_are_both_kept_with_their_dates_and_flagged(book: Engine, clock: Clock) -> None:
    book.remember("The backup of the billing database runs at 3 in Frankfurt.", id="a", force=True)
    clock.now = NOW + 2 * DAY_S
    book.remember("The backup of the billing database runs at 5 in Frankfurt.", id="b", force=True)
    issue = ask(book, "a", "b", confidence=0.99)
    assert merge(book, issue).success is False
    result = SemanticMerge(book=book).process_issue(issue)
    assert stored(book, result.new_memory_id).record.content == (
        "The backup of the billing database runs at 3 in Frankfurt. (2025-06-15)\n\n"
        "The backup of the billing database runs at 5 in Frankfurt. (2025-06-17)"
    )


def test_what_an_issue_says_of_memories_that_changed_since_is_worth_nothing(book: Engine, clock: Clock) -> None:
    issue = keep_two(book)
    clock.now = NOW + 60
    book.update("short", content="Something quite different about gardens and tulips")
    assert merge(book, issue).success is False


def test_an_issue_whose_memory_is_gone_is_closed_by_a_run(book: Engine) -> None:
    issue = keep_two(book)
    book.archive("short")
    with pytest.raises(NotFoundError, match="archived"):
        merge(book, issue)
    agent = SemanticMerge(book=book)
    assert (agent.run(), agent.skipped) == ([], 1)
    assert issue_of(book, issue).close_reason == "nothing is left to do: memory short is not active any more"
    closed = book.ledger.history(issue)[-1]
    assert (closed.act, closed.actor.partition("@")[0]) == ("closed", "merge")


def test_an_issue_that_others_close_meanwhile_stops_no_run(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    issue = keep_two(book)
    book.archive("short")
    agent = SemanticMerge(book=book)
    select = Ledger.selected

    def look(ledger: Ledger, wanted: IssueSelection) -> list[Issue]:
        found = select(ledger, wanted)
        if wanted.memory_ids:
            ledger.close(issue, "somebody was faster")
        return found

    monkeypatch.setattr(Ledger, "selected", look)
    assert (agent.run(), agent.failures) == ([], [])
    assert issue_of(book, issue).close_reason == "somebody was faster"


def test_what_was_closed_for_lack_of_a_memory_is_proposed_again_once_that_is_back(book: Engine) -> None:
    for id_, text in {"a": "The office in Lyon opens at eight.", "b": "At eight the office in Lyon opens."}.items():
        book.remember(text, id=id_, force=True)
    book.consolidate(["cluster"])
    book.archive("a")
    book.consolidate(["merge"])
    assert book.ledger.query() == []
    book.restore_memory("a")
    book.consolidate(["cluster"])
    assert [issue["memory_ids"] for issue in book.ledger.query("merge")] == [["a", "b"]]


def test_unmerging_restores_the_sources_exactly(book: Engine) -> None:
    issue = keep_two(book)
    before = [replace(stored(book, id_), number=0) for id_ in ("long", "short")]
    result = merge(book, issue)
    book.unmerge(result.new_memory_id)
    assert [replace(stored(book, id_), number=0) for id_ in ("long", "short")] == before
    assert book._runtime.store.memory(book.namespace, result.new_memory_id) is None
    assert book._runtime.store.links(book.namespace) == []


def test_what_a_source_told_by_its_own_date_keeps_that_date(book: Engine, clock: Clock) -> None:
    """ "Yesterday" is the day before the source, not the day before the merge, nor that before the oldest source."""
    clock.now = NOW - 20 * DAY_S
    book.remember("The tulips were watered.", id="old", force=True)
    clock.now = NOW - 10 * DAY_S
    book.remember("The tulips were watered yesterday by Maria.", id="new", force=True)
    clock.now = NOW
    number = stored(book, merge(book, ask(book, "new", "old")).new_memory_id).number
    day = NOW - 11 * DAY_S
    dated = [each for each in book._runtime.store.dated(book.namespace, day, day) if each[0] == number]
    assert len(dated) == 1
    assert dated[0][1] <= day < dated[0][2]


def test_a_merge_that_a_later_change_rests_on_is_undone_after_that(book: Engine) -> None:
    made = merge(book, keep_two(book)).new_memory_id
    for _ in range(5):
        book.touch(made)
    promotion = book.consolidate(["promote"]).results["promote"][0].beads_issue_id
    assert promotion is not None
    with pytest.raises(UsageError, match=f"issue {promotion} changed the same memories later"):
        book.unmerge(made)
    assert (stored(book, made).record.status, stored(book, "long").record.status) == ("promoted", "archived")
    book.undo_consolidation(promotion)
    book.unmerge(made)
    assert [memory.id for memory in book.list()] == ["long", "short"]


def test_unmerging_tells_of_the_links_that_others_made(book: Engine) -> None:
    made = merge(book, keep_two(book)).new_memory_id
    book.remember("The tulips want water.", id="tulips")
    book.link("tulips", made, "because", 0.5)
    with book._runtime.store.change_memories(book.namespace) as change:
        change.link(Link("tulips", made, "conflicts", 0.5, NOW, origin=RULE))  # nobody made it
    assert book.unmerge(made).notices == (f"the link because from tulips to {made} went with its memory",)
    assert book.links() == []


def test_a_merged_memory_is_found_by_the_words_of_each_source(book: Engine) -> None:
    result = merge(book, keep_two(book))
    for query in ("who cuts the release", "what checks the types"):
        assert book.search(query, method="bm25", limit=1).hits[0].owner_id == result.new_memory_id


def test_the_same_sources_give_the_same_id_and_a_taken_one_is_passed_over(book: Engine) -> None:
    issue = keep_two(book)
    foreseen = SemanticMerge(dry_run=True, book=book).process_item(issue).new_memory_id
    book.remember("Somebody took this id before", id=foreseen, force=True)
    assert merge(book, issue).new_memory_id != foreseen


def test_a_dry_run_of_both_agents_tells_what_they_would_do(book: Engine) -> None:
    book.remember(LONG, id="one", force=True)
    book.remember(LONG, id="two", force=True)
    report = book.consolidate(["cluster", "merge"], dry_run=True)
    (cluster,), (merged,) = report.results["cluster"], report.results["merge"]
    done = book.consolidate(["cluster", "merge"])
    assert cluster.model_dump() | {"beads_issue_id": ...} == done.results["cluster"][0].model_dump() | {
        "beads_issue_id": ...
    }
    assert merged.model_dump() | {"beads_issue_id": ...} == done.results["merge"][0].model_dump() | {
        "beads_issue_id": ...
    }


def test_clusters_are_proposed_and_merged_in_one_run_of_both(book: Engine) -> None:
    book.remember(LONG, id="one", force=True)
    book.remember(LONG, id="two", force=True)
    ClusterDetector(book=book).run()
    (result,) = SemanticMerge(book=book).run()
    assert (result.success, stored(book, result.new_memory_id).record.content) == (True, LONG)


def test_what_would_be_too_long_for_a_memory_is_refused_and_blocks_the_issue(book: Engine) -> None:
    """What is longer than the settings allow could be neither changed nor imported again."""
    issue, runtime = keep_two(book), book.consolidation_runtime()
    assert runtime.max_bytes == 1_048_576
    short = replace(runtime, max_bytes=80)
    dry = SemanticMerge(dry_run=True, book=short)
    assert (dry.run(), len(dry.failures), issue_of(book, issue).status) == ([], 1, "open")
    with pytest.raises(UsageError, match="the limit is 80"):
        SemanticMerge(book=short).process_item(issue)
    assert issue_of(book, issue).status == "blocked"
    book.ledger.reopen(issue)
    with pytest.raises(UsageError, match="the limit is 80"):
        SemanticMerge(book=short).process_issue(issue)
    assert issue_of(book, issue).status == "blocked"


@pytest.mark.parametrize("type_", ["supersedes", "holds beside"])
def test_memories_of_which_is_known_which_holds_merge_only_when_a_person_says_so(book: Engine, type_: str) -> None:
    issue = keep_two(book)
    book.link("short", "long", type_)
    assert [done.success for done in SemanticMerge(book=book).run()] == [False]
    assert issue_of(book, issue).status == "open"
    assert sorted(each.id for each in book.list()) == ["long", "short"]


def test_the_vectors_are_made_before_the_transaction_begins(book: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model behind an API may take a minute to answer: nobody who writes waits for it."""
    issue = keep_two(book)
    agent, seen = SemanticMerge(book=book), list[str]()
    ground = agent._runtime

    def write_of(owner: Owner, record: MemoryRecord) -> MemoryWrite:
        book.remember("Somebody else writes meanwhile", force=True)
        seen.append(owner.id)
        return ground.write_of(owner, record)

    agent._runtime = replace(ground, write_of=write_of)
    assert agent.process_item(issue).new_memory_id in seen


def test_what_was_merged_is_told_where_closing_what_is_moot_fails(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the report would count a change and not show it. The next issue is closed all the same."""
    keep_two(book)
    for id_ in ("a", "b", "c"):
        book.remember(f"The {id_} dam is watched", id=id_, force=True)
    first, second = ask(book, "a", "b"), ask(book, "b", "c")
    book.archive("b")
    close = SemanticMerge._close

    def fail_once(agent: SemanticMerge, issue: str, why: str, **given: bool) -> None:
        if issue == first:
            raise StoreBusyError("another process writes", remedy="wait")
        close(agent, issue, why, **given)

    monkeypatch.setattr(SemanticMerge, "_close", fail_once)
    report = book.consolidate(["merge"])
    assert (len(report.results["merge"]), report.applied) == (1, 1)
    assert [(each.item, "another process writes" in each.error) for each in report.errors] == [(first, True)]
    assert [issue_of(book, id_).status for id_ in (first, second)] == ["open", "closed"]


def test_what_was_done_is_told_where_nothing_moot_can_be_looked_for(
    book: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_two(book)

    def fail(_: SemanticMerge) -> None:
        raise ZeroDivisionError("no ledger")

    monkeypatch.setattr(SemanticMerge, "finish", fail)
    report = book.consolidate(["merge"])
    assert (len(report.results["merge"]), report.applied) == (1, 1)
    assert [(each.item, each.error) for each in report.errors] == [("", "ZeroDivisionError: no ledger")]


@pytest.mark.parametrize("tiers", [("short", "short"), ("long", "long"), ("short", "long"), ("medium", "long")])
@pytest.mark.parametrize("days", [0, 1])
def test_undoing_a_merge_leaves_the_pages_as_they_were(
    tmp_path: Path, clock: Clock, tiers: tuple[str, str], days: int
) -> None:
    """People read the pages: the merged memory goes at once, and its sources stand where they stood."""

    def open_() -> Engine:
        return commonplace.open(tmp_path / "store", embedder="hashing", clock=clock)

    def pages() -> dict[str, str]:
        return {path.name: path.read_text() for path in (tmp_path / "store").rglob("*.md")}

    for number, tier in enumerate(tiers):
        for id_, category in (("source", "decision"), ("other", "preference")):
            with open_() as book:
                text = f"The {id_} harbour froze, number {number}"
                book.remember(text, id=f"{id_}{number}", tier=tier, category=category, force=True)
            clock.now += days * DAY_S + 1
    before = pages()
    with open_() as book:
        issue = book.ledger.create("merge", ["source0", "source1"], "merge")
        (merged,) = book.process_issue(issue).results["merge"]
        merged_id = merged.new_memory_id  # type: ignore[attr-defined]
    assert any(merged_id in page for page in pages().values())
    assert not any("memory: source" in page for page in pages().values())
    with open_() as book:
        book.undo_consolidation(issue)
    assert pages() == before


@pytest.mark.parametrize(
    ("plain", "wordy"),
    [
        (
            "The staging database is rebuilt every night at two.",
            "The staging database is rebuilt every night at two, as was mentioned before.",
        ),
        ("Deploys to production need two approvals.", "Deploys to production, as I already said, need two approvals."),
        ("The printer on the third floor is broken.", "By the way, the printer on the third floor is broken."),
        ("Max is allergic to peanuts.", "Max is allergic to peanuts (as noted above)."),
        ("Das Büro in Graz öffnet um acht.", "Das Büro in Graz öffnet um acht, wie schon erwähnt."),
        ("Le bureau de Lyon ouvre à huit heures.", "Comme je l'ai dit, le bureau de Lyon ouvre à huit heures."),
        ("La oficina de Lugo abre a las ocho.", "La oficina de Lugo abre a las ocho, como ya dije antes."),
    ],
)
def test_texts_that_differ_in_an_aside_alone_are_merged(book: Engine, plain: str, wordy: str) -> None:
    """That something was said before says nothing of it, and vectors take it for a part of what is said."""
    kept = [book.remember(text, force=True) for text in (plain, wordy)]
    report = book.consolidate(["cluster", "merge"])
    assert [(each.cohesion, each.action) for each in report.results["cluster"]] == [(1.0, "merge")]  # type: ignore[attr-defined]
    assert report.applied == 1
    assert {book.get(each.id).status for each in kept} == {"archived"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Max is allergic to peanuts", "Max is allergic to peanuts, as was not mentioned before"),
        ("Deploys need two approvals", "Deploys need two approvals, as was agreed with Lena"),
        ("The invoice was paid", "The invoice was paid, as Lena said"),
        ("The bill is the same", "The bill is the same as mentioned before"),
        ("Ann signs", "Ann, as mentioned before"),
        ("As mentioned before", "By the way"),
    ],
)
def test_an_aside_that_tells_something_keeps_texts_apart(one: str, other: str) -> None:
    """A denial, a source and an agreement are no asides, nor is what no comma sets off."""
    assert not say_the_same(one, other)
