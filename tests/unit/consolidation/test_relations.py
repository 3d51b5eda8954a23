"""What the contract demands of RelationshipDiscovery, a test for each MUST, and what linking does besides."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

import commonplace
from commonplace.consolidation import ConfidenceConfig, RelationshipDiscovery
from commonplace.consolidation.relations import item_of_pair, pair_of, relation_id
from commonplace.consolidation.results import RelationResult
from commonplace.consolidation.runtime import ConsolidationRuntime
from commonplace.engine import Engine
from commonplace.errors import NoRelation, NotFoundError, UsageError
from commonplace.types import RULE, Link
from commonplace.types.ledger import IssueSelection

NOTHING_ALIKE = (
    "yellow umbrellas dry slowly",
    "ferry cancelled again",
    "nobody waters those ferns",
    "seven spoons missing",
    "quarterly numbers look fine",
    "bring old bicycles downstairs",
    "her violin needs strings",
)


class Unlike:
    """A book in which no two memories are alike."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def consolidation_runtime(self) -> ConsolidationRuntime:
        return replace(self.engine.consolidation_runtime(), calibrated=lambda cosines: cosines * 0)


def keep(book: Engine, id_: str, entities: str = "", tags: str = "", text: str = "", session: str = "") -> None:
    words = text or NOTHING_ALIKE[len(book.list(statuses=())) % len(NOTHING_ALIKE)]
    given = {"entities": entities.split(), "tags": tags.split(), "session": session}
    book.remember(words, id=id_, force=True, **given)  # type: ignore[arg-type]


def agent(book: Engine, *, dry_run: bool = False, acts_from: float = 0.7) -> RelationshipDiscovery:
    return RelationshipDiscovery(dry_run, 0, ConfidenceConfig(max(0.9, acts_from), acts_from), book=book)


# -- the contract -----------------------------------------------------------------------------------------------


def test_scan_must_find_memories_with_potential_connections(book: Engine) -> None:
    keep(book, "a", "Ada Postgres")
    keep(book, "b", "ada postgres billing")
    keep(book, "c", "billing")
    keep(book, "d", text="the heron stands by the northern pond")
    keep(book, "e", text="the heron stands by a northern pond")
    assert sorted(agent(book).scan()) == ["a:b", "b:c", "d:e"]


def test_scan_must_not_return_already_related_pairs(book: Engine) -> None:
    for id_ in "abcd":
        keep(book, id_, "Ada Postgres billing")
    book.link("a", "b", "because")
    book.link("c", "a", "related")
    keep(book, "e", "Ada Postgres billing")
    keep(book, "f", "other")
    book.ledger.create("relations", ["b", "c"], "link")
    book.ledger.create("merge", ["b", "d", "e"], "merge")
    assert sorted(agent(book).scan()) == ["a:d", "a:e", "c:d", "c:e"]


def test_what_was_made_of_another_memory_is_related_to_it_already(book: Engine) -> None:
    keep(book, "a", "Ada Postgres billing")
    book.remember("A digest", id="b", entities=["Ada", "Postgres", "billing"], derived_from=["a"], force=True)
    assert agent(book).scan() == []


def test_process_must_calculate_relation_strength(book: Engine) -> None:
    keep(book, "a", "Ada Postgres", "x")
    keep(book, "b", "Ada Postgres billing", "x y")
    result = agent(book).process_item("a:b")
    assert result.strength == pytest.approx(0.7 * 2 / 3 + 0.3 / 2)
    assert result.confidence == pytest.approx(0.6)


def test_process_must_provide_reasoning_for_relation(book: Engine) -> None:
    keep(book, "a", "Ada Postgres", "x")
    keep(book, "b", "Ada Postgres", "X y")
    result = agent(book).process_item("a:b")
    assert result.reasoning == "Both name Ada, Postgres; both are tagged x; their texts are similar by 0.00."
    assert result.shared_entities == ["Ada", "Postgres"]


def test_process_must_respect_confidence_threshold(book: Engine) -> None:
    keep(book, "a", "Ada")
    keep(book, "b", "Ada")
    runner = agent(book)
    assert runner.scan() == ["a:b"]
    with pytest.raises(NoRelation, match=r"'a' and 'b' are related with a confidence of 0.20, the minimum is 0.3"):
        runner.process_item("a:b")
    assert (runner.run(), runner.skipped, runner.failures) == ([], 1, [])
    assert book.links() == []
    assert book._runtime.store.ledger("default").issues(IssueSelection()) == []


def test_process_must_not_create_spurious_relations(book: Engine) -> None:
    """How precise it is on labelled pairs, the benchmark tells; here is what must never be linked."""
    for number in range(30):
        keep(book, f"hub{number:02}", f"Caroline Melanie unique{number}", "chat", NOTHING_ALIKE[0])
    keep(book, "t1", text="Thanks, I definitely will!", session="s")
    keep(book, "t2", text="Thanks! I definitely will", session="s")
    runner = RelationshipDiscovery(False, 0, ConfidenceConfig(0.9, 0.3), book=Unlike(book))
    assert runner.run() == []
    assert book.links() == []


def test_turns_that_only_address_each_other_are_not_related(book: Engine) -> None:
    """Whoever speaks in a conversation is named in every second turn, by a short name too."""
    keep(book, "t0", text="Melanie: So good to hear from you.", session="s")
    keep(book, "t1", text="Melanie: Where are you now?", session="s")
    keep(book, "t2", "Mel", text="Thanks, Mel! Your kind words mean very much.", session="s")
    keep(book, "t3", "Mel", text="Thanks so much, Mel! Your kind words mean a lot.", session="s")
    keep(book, "t4", "Mel Toronto", text="Thanks, Mel! Seen from Toronto your kind words mean a lot.", session="s")
    keep(book, "t5", "Mel Toronto", text="Thanks, Mel! Here in Toronto your kind words mean very much.", session="s")
    results = agent(book).run()
    assert [(each.from_memory_id, each.to_memory_id, each.shared_entities) for each in results] == [
        ("t4", "t5", ["Toronto"])
    ]


# -- how sure it is -------------------------------------------------------------------------------------------------


def test_what_is_sure_is_linked_and_what_is_less_sure_waits(book: Engine) -> None:
    keep(book, "a", "Ada Postgres billing", "x")
    keep(book, "b", "Ada Postgres billing", "x")
    keep(book, "c", "Kafka Redis")
    keep(book, "d", "Kafka Redis")
    results = agent(book).run()
    assert [(each.from_memory_id, each.to_memory_id, round(each.confidence, 9)) for each in results] == [
        ("a", "b", 0.8),
        ("c", "d", 0.4),
    ]
    assert [(link.source, link.target, link.type, link.strength) for link in book.links()] == [
        ("a", "b", "related", 1.0)
    ]
    assert {issue.status for issue in book._runtime.store.ledger("default").issues(IssueSelection())} == {
        "open",
        "closed",
    }
    [waiting] = book._runtime.store.ledger("default").issues(IssueSelection(statuses=("open",)))
    assert waiting.memory_ids == ("c", "d")
    agent(book).process_issue(waiting.id)
    assert len(book.links()) == 2


def test_where_five_proposals_with_a_memory_wait_no_more_are_made(book: Engine) -> None:
    """Else each run would add as many, until all is proposed with all, and nobody looks at any."""
    for number in range(9):
        keep(book, f"m{number}", f"Ada Postgres own{number}")
    asks = RelationshipDiscovery(False, 0, ConfidenceConfig(1.0, 1.0), book=Unlike(book))
    asks.run()
    first = book.ledger.query("relations")
    counts = Counter(id_ for issue in first for id_ in issue["memory_ids"])
    assert max(counts.values()) == 5
    assert asks.run() == [] and book.ledger.query("relations") == first
    acts = RelationshipDiscovery(False, 0, ConfidenceConfig(0.35, 0.35), book=Unlike(book))
    assert len(acts.run()) > 0  # what need not wait is not held up


def test_names_in_the_words_count_as_those_that_were_given(book: Engine) -> None:
    keep(book, "a", text="Mira Solberg moved the invoices to Postgres in Oslo.")
    keep(book, "b", "Oslo", text="Postgres was chosen by Mira Solberg.")
    result = agent(book).process_item("a:b")
    assert result.shared_entities == ["Mira Solberg", "Oslo", "Postgres"]


def test_a_name_within_a_name_is_no_second_one(book: Engine) -> None:
    """Else a scan would offer in every run what is then not written, in the place of what would be."""
    for id_, names in (("a", ["Terraform", "Terraform state"]), ("b", ["Terraform state", "terraform"])):
        book.remember(NOTHING_ALIKE[len(id_)], id=id_, entities=names, force=True)
    keep(book, "c", "Kafka Redis")
    keep(book, "d", "Kafka Redis")
    runner = RelationshipDiscovery(False, 0, ConfidenceConfig(0.9, 0.3), book=Unlike(book))
    assert runner.scan() == ["c:d", "a:b"]
    assert [each.shared_entities for each in runner.run()] == [["Kafka", "Redis"]]
    assert runner.skipped == 1


def test_names_are_the_same_with_and_without_a_graph(tmp_path: Path) -> None:
    texts = {"a": "Mira Solberg moved the invoices to Postgres.", "b": "Postgres was chosen by Mira Solberg."}
    found = []
    for kept in ("on", "off"):
        settings = replace(commonplace.settings.load(), graph=replace(commonplace.settings.load().graph, remember=kept))
        with commonplace.open(tmp_path / kept, embedder="hashing", settings=settings) as engine:
            for id_, text in texts.items():
                engine.remember(text, id=id_)
            found.append(agent(engine).process_item("a:b").shared_entities)
    assert found[0] == found[1] == ["Mira Solberg", "Postgres"]


def test_what_is_alike_alone_is_linked_by_nine_tenths_of_it(book: Engine) -> None:
    keep(book, "a", text="the heron stands by the northern pond")
    keep(book, "b", text="the heron stands by the northern pond")
    assert agent(book).process_item("a:b").confidence == pytest.approx(0.9, abs=0.01)


# -- items ----------------------------------------------------------------------------------------------------------


def test_an_item_is_a_sorted_pair_and_json_where_an_id_holds_a_colon(book: Engine) -> None:
    for id_ in ("x:1", "a"):
        keep(book, id_, "Ada Postgres billing")
    assert agent(book).scan() == ['["a", "x:1"]']
    [result] = agent(book).run()
    assert (result.from_memory_id, result.to_memory_id) == ("a", "x:1")


@pytest.mark.parametrize(
    ("one", "other"),
    [("a", "b"), ("b", "a"), ("a:b", "c"), ("[a", "b"), ('["a"', '"b"]'), (":", "a"), ('["a","b', 'c"]')],
)
def test_an_item_names_the_pair_that_it_was_made_of(one: str, other: str) -> None:
    assert pair_of(item_of_pair(one, other)) == tuple(sorted((one, other)))


@pytest.mark.parametrize("item", ["", "a", "a:a", "a:b:c", '["a"]', '["a", "b", "c"]', '["a", 1]', "a:", "{}"])
def test_what_is_no_pair_is_refused(book: Engine, item: str) -> None:
    with pytest.raises(UsageError, match="the pair is"):
        agent(book).process_item(item)


def test_a_pair_has_the_same_relation_id_in_every_run() -> None:
    assert relation_id("a", "b") == relation_id("b", "a")
    assert relation_id("a", "b") != relation_id("a", "c")
    assert relation_id("a\nb", "c") != relation_id("a", "b\nc")
    assert UUID(relation_id("a", "b")).version == 5


def test_what_is_not_there_or_not_active_is_no_part_of_a_pair(book: Engine) -> None:
    keep(book, "a", "Ada Postgres billing")
    keep(book, "b", "Ada Postgres billing")
    book.archive("b")
    for item in ("a:b", "a:nobody"):
        with pytest.raises(NotFoundError):
            agent(book).process_item(item)
    assert agent(book).scan() == []


# -- acting ---------------------------------------------------------------------------------------------------------


def test_undone_the_link_is_gone(book: Engine) -> None:
    for id_ in "ab":
        keep(book, id_, "Ada Postgres billing", "x")
    [result] = agent(book).run()
    assert result.beads_issue_id is not None
    book.undo_consolidation(result.beads_issue_id)
    assert book.links() == []


def test_a_dry_run_links_nothing(book: Engine) -> None:
    for id_ in "ab":
        keep(book, id_, "Ada Postgres billing", "x")
    change = book._runtime.store.change()
    [result] = agent(book, dry_run=True).run()
    assert (result.beads_issue_id, book.links(), book._runtime.store.change()) == (None, [], change)


def test_a_link_that_was_made_meanwhile_stays_as_it_is(book: Engine) -> None:
    for id_ in "ab":
        keep(book, id_, "Ada Postgres", "")
    issue = agent(book).process_item("a:b").beads_issue_id
    assert issue is not None
    book.link("b", "a", "because", 0.5)
    with pytest.raises(NoRelation, match="linked already"):
        agent(book).process_issue(issue)
    assert [(link.type, link.strength) for link in book.links()] == [("because", 0.5)]


def test_two_at_once_link_a_pair_once(book: Engine) -> None:
    for id_ in "ab":
        keep(book, id_, "Ada Postgres billing", "x")
    one, other = agent(book), agent(book)
    plan = other.plan("a:b")
    one.process_item("a:b")
    with pytest.raises(NoRelation, match="others linked"):
        other._apply(plan, None)
    [issue] = book._runtime.store.ledger("default").issues(IssueSelection())
    book.undo_consolidation(issue.id)
    assert book.links() == []


def test_the_issue_holds_no_words_of_the_memories(book: Engine) -> None:
    for id_ in "ab":
        keep(book, id_, "Ada Postgres billing", "wire")
    agent(book).run()
    [issue] = book._runtime.store.ledger("default").issues(IssueSelection())
    assert not any(word in issue.notes + issue.title + issue.close_reason for word in ("Ada", "Postgres", "wire"))
    assert json.loads(issue.notes)["names"] == 3


def test_namespaces_are_never_linked(book: Engine) -> None:
    keep(book, "a", "Ada Postgres billing", "x")
    with commonplace.open(book.directory, namespace="other", embedder="hashing") as other:
        keep(other, "b", "Ada Postgres billing", "x")
        assert agent(other).scan() == []
    assert agent(book).scan() == []


def test_what_is_related_by_its_words_alone_says_so_and_is_linked_by_its_similarity(tmp_path: Path) -> None:
    """A strength of 0.00 tells nothing of why two memories are proposed, and a link of 0.00 would come last of all."""
    with commonplace.open(tmp_path / "store") as book:
        for id_, text in (
            ("a", "Retry webhooks with exponential backoff."),
            ("b", "Failed webhooks are tried again after longer and longer pauses."),
        ):
            book.remember(text, id=id_, at="2026-01-01")  # neither may overtake the other
        (result,) = book.consolidate(["relations"], confidence=ConfidenceConfig(0.3, 0.3)).results["relations"]
        assert isinstance(result, RelationResult)
        assert (result.strength, result.shared_entities) == (0.0, [])
        found = re.fullmatch(r"Their texts are similar by (0\.\d\d)\.", result.reasoning)
        assert found is not None
        reason = book.ledger.get(str(result.beads_issue_id)).close_reason
        assert reason == f"shared names: 0, shared tags: 0, similarity: {found[1]}"
        (link,) = (each for each in book.links() if each.origin != RULE)
        assert f"{link.strength:.2f}" == found[1]


@pytest.mark.parametrize(("type_", "is_proposed"), [("supersedes", False), ("conflicts", True)])
def test_what_the_rule_found_overtaken_is_no_pair_to_link(book: Engine, type_: str, is_proposed: bool) -> None:
    """Whoever knows that one replaced the other need not be asked whether the two are related."""
    for id_ in "ab":
        keep(book, id_, "Ada Postgres billing", "wire")
    with book._runtime.store.change_memories("default") as change:
        change.link(Link("b", "a", type_, 0.9, 0.0, origin=RULE))
    assert agent(book).scan() == (["a:b"] if is_proposed else [])
