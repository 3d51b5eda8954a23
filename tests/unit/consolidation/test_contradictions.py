"""What nearly says the same, but for a name, a number, a day or a negation, is a question to a person."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.consolidation import ConfidenceConfig

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
        assert "contradict each other" in book.ledger.query()[0]["notes"]["why"]


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
