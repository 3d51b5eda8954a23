"""Versions, uses, tiers, links and the archive, through the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.clock import START, Clock

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError, VersionConflictError
from commonplace.search.result import SearchResult
from commonplace.types import Link


def texts(found: SearchResult) -> list[str]:
    return [hit.text for hit in found.hits]


class TestVersions:
    def test_an_update_is_the_next_version_and_the_old_one_stays_readable(self, book: Engine, clock: Clock) -> None:
        first = book.remember("The office is in Madrid", tags=["place"], source="Ada")
        clock.move(days=1)
        second = book.update(first.id, "The office is in Lisbon")
        assert (second.version, second.outcome, second.tags, second.source) == (2, "updated", ("place",), "Ada")
        assert (second.created_at, second.at) == (START, START)
        assert book.get(first.id).content == "The office is in Lisbon"
        assert book.get(first.id, as_of=START).content == "The office is in Madrid"
        versions = book.versions(first.id)
        assert [(each.version, each.expired_at) for each in versions] == [(1, second.updated_at), (2, None)]

    def test_finding_as_of_a_time_sees_what_was_known_then(self, book: Engine, clock: Clock) -> None:
        first = book.remember("The office is in Madrid")
        clock.move(days=1)
        book.update(first.id, "The office is in Lisbon")
        book.remember("The office has a garden")
        then = book.recall("where is the office", as_of=START, min_score=0)
        assert texts(then) == ["The office is in Madrid"]
        assert sorted(texts(book.recall("where is the office", min_score=0))) == [
            "The office has a garden",
            "The office is in Lisbon",
        ]

    def test_before_a_memory_there_was_none(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid")
        with pytest.raises(NotFoundError, match="was not known at 2026-03-01T23:59:59Z"):
            book.get(memory.id, as_of="2026-03-01")

    def test_a_clock_set_back_never_turns_versions_round(self, book: Engine, clock: Clock) -> None:
        """Machines correct their clocks; a version that ended before it began would never be found."""
        first = book.remember("The office is in Madrid")
        clock.move(days=-3)
        second = book.update(first.id, "The office is in Lisbon")
        assert second.updated_at >= first.updated_at
        assert book.get(first.id).content == "The office is in Lisbon"
        assert book.get(first.id).retention == 1.0

    def test_an_update_keeps_what_the_memory_went_through(self, book: Engine, clock: Clock) -> None:
        first = book.remember("The office is in Madrid")
        book.touch(first.id, reinforce=True)
        clock.move(days=1)
        second = book.update(first.id, metadata={"checked": True})
        assert (second.use_count, second.strength, second.metadata) == (1, 1.1, {"checked": True})

    def test_a_version_that_has_not_come_yet_is_refused_like_one_that_is_gone(self, book: Engine) -> None:
        """Whoever saw version 3 before a backup with version 1 was restored has not seen what they would overwrite."""
        memory = book.remember("The office is in Madrid")
        with pytest.raises(VersionConflictError, match="has version 1, not 3") as caught:
            book.update(memory.id, "The office is in Lisbon", if_version=3)
        assert caught.value.version == 1
        assert [each.content for each in book.versions(memory.id)] == ["The office is in Madrid"]

    def test_an_update_without_a_change_and_one_of_nothing_are_refused(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid")
        with pytest.raises(UsageError, match=r"nothing of memory .* is to be changed"):
            book.update(memory.id)
        with pytest.raises(NotFoundError, match="there is no memory 'nobody' in this namespace"):
            book.update("nobody", "text")
        with pytest.raises(NotFoundError, match="there is no memory 'nobody'"):
            book.update("nobody")


class TestUse:
    def test_three_uses_in_seven_days_carry_a_memory_up_and_three_more_to_the_top(
        self, book: Engine, clock: Clock
    ) -> None:
        memory = book.remember("The office is in Madrid")
        tiers = []
        for _ in range(7):
            clock.move(days=1)
            tiers.append(book.touch(memory.id).tier)
        assert tiers == ["short", "short", "medium", "medium", "medium", "long", "long"]
        assert book.get(memory.id).use_count == 7

    def test_a_review_counts_as_one_and_as_a_use(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid")
        assert memory.review_count == 0
        book.review(memory.id)
        again = book.review(memory.id)
        assert (again.outcome, again.review_count, again.use_count, again.version) == ("reviewed", 2, 2, 1)
        assert book.update(memory.id, "The office is in Lisbon").review_count == 2
        book.archive(memory.id)
        with pytest.raises(NotFoundError):
            book.review(memory.id)

    def test_uses_of_more_than_seven_days_ago_do_not_count(self, book: Engine, clock: Clock) -> None:
        memory = book.remember("The office is in Madrid")
        for _ in range(5):
            clock.move(days=4)
            assert book.touch(memory.id).tier == "short"

    def test_what_is_not_trusted_never_rises(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid", origin="web")
        assert [book.touch(memory.id).tier for _ in range(4)] == ["short"] * 4

    def test_retention_fades_by_the_half_life_of_the_category(self, book: Engine, clock: Clock) -> None:
        """One half-life leaves one half; a decision has seven days, a fact one."""
        decision = book.remember("We decided to move", category="decision")
        fact = book.remember("The office is in Madrid", category="fact")
        clock.move(days=7)
        assert book.get(decision.id).retention == pytest.approx(0.5, abs=1e-9)
        assert book.get(fact.id).retention == pytest.approx((1 + 7 * (2 ** (1 / 1.1) - 1)) ** -1.1, abs=1e-9)

    def test_a_recall_counts_its_best_hits_once_an_hour(self, book: Engine, clock: Clock) -> None:
        """Asking the same thing thrice must not carry a memory up a tier."""
        memory = book.remember("The office is in Madrid, near the river")
        for _ in range(3):
            assert book.recall("The office is in Madrid, near the river").hits
        book.remember("Something else entirely happened on the way")
        assert book.get(memory.id).use_count == 1
        clock.move(days=0.5)
        book.recall("The office is in Madrid, near the river")
        book.close()
        with commonplace.open(book.directory, clock=clock) as again:
            assert again.get(memory.id).use_count == 2

    def test_several_processes_that_recall_it_within_an_hour_used_it_once(self, book: Engine, clock: Clock) -> None:
        """A command line is a process for each question: asking six times must not make a memory a long one."""
        memory = book.remember("The office is in Madrid, near the river")
        for _ in range(6):
            with commonplace.open(book.directory, clock=clock) as other:
                assert other.recall("The office is in Madrid, near the river").hits
        assert book.get(memory.id).use_count == 1
        clock.move(days=0.5)
        with commonplace.open(book.directory, clock=clock) as other:
            other.recall("The office is in Madrid, near the river")
        assert (book.get(memory.id).use_count, book.get(memory.id).tier) == (2, "short")

    def test_a_search_counts_nothing(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid, near the river")
        book.search("The office is in Madrid, near the river")
        book.remember("Something else entirely happened on the way")
        assert book.get(memory.id).use_count == 0


class TestArchive:
    def test_what_is_archived_is_not_found_until_it_is_restored(self, book: Engine, clock: Clock) -> None:
        memory = book.remember("The office is in Madrid")
        clock.move(days=1)
        archived = book.archive(memory.id)
        assert (archived.status, archived.outcome) == ("archived", "archived")
        assert texts(book.recall("office Madrid", min_score=0)) == []
        assert book.list() == []
        assert [each.id for each in book.list(statuses=["archived"])] == [memory.id]
        assert texts(book.recall("office Madrid", as_of=START, min_score=0)) == ["The office is in Madrid"]
        assert book.archive(memory.id).outcome == "unchanged"
        clock.move(days=1)
        restored = book.restore_memory(memory.id)
        assert (restored.status, restored.outcome, restored.version) == ("active", "restored", 2)
        assert texts(book.recall("office Madrid", min_score=0)) == ["The office is in Madrid"]

    def test_an_archived_memory_cannot_be_touched_or_updated(self, book: Engine) -> None:
        memory = book.remember("The office is in Madrid")
        book.archive(memory.id)
        for act in (book.touch, lambda id_: book.update(id_, "text")):
            with pytest.raises(NotFoundError, match="is archived or not there; bring it back"):
                act(memory.id)


class TestLinks:
    def test_links_are_made_replaced_listed_and_removed(self, book: Engine) -> None:
        one, two = book.remember("The office is in Madrid"), book.remember("Madrid is in Spain")
        book.link(one.id, two.id, "because", 0.5)
        book.link(one.id, two.id, "because", 0.75)
        book.link(two.id, one.id)
        at = START.timestamp()
        links = {Link(one.id, two.id, "because", 0.75, at), Link(two.id, one.id, "related", 1.0, at)}
        assert set(book.links(one.id)) == set(book.links()) == links
        assert book.unlink(one.id, two.id) == 1
        assert len(book.links()) == 1

    def test_a_link_needs_two_memories_that_exist(self, book: Engine) -> None:
        one = book.remember("The office is in Madrid")
        with pytest.raises(UsageError, match="cannot be linked to itself"):
            book.link(one.id, one.id)
        with pytest.raises(NotFoundError, match="there is no memory 'nobody'"):
            book.link(one.id, "nobody")


class TestUltra:
    def test_it_is_found_in_this_process_and_nowhere_else(self, tmp_path: Path) -> None:
        with commonplace.open(tmp_path / "store", embedder="hashing") as book:
            scratch = book.remember("The scratch colour is turquoise", tier="ultra")
            assert texts(book.recall("scratch colour turquoise", min_score=0)) == ["The scratch colour is turquoise"]
            assert book.get(scratch.id).tier == "ultra"
            result = book.recall("scratch colour turquoise", min_score=0)
            assert book.why(result, result.hits[0].id).rank == 1
            with commonplace.open(tmp_path / "store", embedder="hashing") as other:
                assert texts(other.recall("scratch colour turquoise", min_score=0)) == []
        held = [path for path in tmp_path.rglob("*") if path.is_file() and b"turquoise" in path.read_bytes()]
        assert held == []

    @pytest.mark.parametrize("text", ["word " * 1000, "word" * 1000])
    def test_the_oldest_leave_when_there_are_too_many(self, book: Engine, clock: Clock, text: str) -> None:
        """Also of words that the tokenizer does not know, which would else have no bound."""
        for number in range(12):
            clock.move(days=0.01)
            book.remember(f"number {number} {text}", tier="ultra")
        left = [memory.content.split(" ", 2)[1] for memory in book.list(tiers=["ultra"])]
        assert left == ["11", "10", "9", "8", "7", "6", "5"]

    def test_use_carries_it_into_the_store(self, book: Engine, tmp_path: Path) -> None:
        memory = book.remember("The scratch colour is turquoise", tier="ultra")
        assert [book.touch(memory.id).tier for _ in range(3)] == ["ultra", "ultra", "short"]
        with commonplace.open(tmp_path / "store") as other:
            assert other.get(memory.id).content == "The scratch colour is turquoise"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300, None])
def test_a_clock_that_says_no_time_is_refused_by_every_call(tmp_path: Path, value: object) -> None:
    """A time that cannot be stored would come out later, as a defect of a call that did nothing wrong."""
    with commonplace.open(tmp_path / "s", clock=lambda: value) as book:  # type: ignore[arg-type, return-value]
        calls = (
            lambda: book.remember("We chose Postgres"),
            lambda: book.recall("Postgres"),
            lambda: book.context("Postgres"),
            book.gc,
            lambda: book.graph.add_episode("Ann works for Acme."),
        )
        for call in calls:
            with pytest.raises(UsageError, match="the clock's time is"):
                call()
    with commonplace.open(tmp_path / "s") as book:
        assert book.list() == []


# How far links lead: nearest first, each memory once, never beyond depth and limit.


RING = (("a", "b", 0.5), ("b", "c", 1.0), ("c", "a", 0.9), ("c", "d", 0.2), ("d", "e", 1.0))


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "ring") as book:
        for name in "abcdex":
            book.remember(f"Memory {name}.", id=name, force=True)
        for source, target, strength in RING:
            book.link(source, target, strength=strength)
        yield book


def reached(book: Engine, start: str, *, depth: int, limit: int = 10) -> str:
    return "".join(each.id for each in book.neighbourhood(start, depth=depth, limit=limit).memories)


def test_the_nearest_come_first_and_of_these_the_strongest(ring: Engine) -> None:
    assert [reached(ring, "a", depth=depth) for depth in (1, 2, 3)] == ["acb", "acbd", "acbde"]
    assert reached(ring, "e", depth=2) == "edc"


def test_the_limit_cuts_off_the_weakest(ring: Engine) -> None:
    assert reached(ring, "a", depth=4, limit=2) == "ac"
    assert reached(ring, "a", depth=4, limit=1) == "a"


def test_links_are_those_among_what_was_reached_the_strongest_first(ring: Engine) -> None:
    links = [[each.source + each.target for each in ring.neighbourhood("a", depth=depth).links] for depth in (1, 2)]
    assert links == [["ca", "ab"], ["bc", "ca", "ab", "cd"]]


def test_a_memory_without_links_is_alone(ring: Engine) -> None:
    assert reached(ring, "x", depth=3) == "x"
    assert ring.neighbourhood("x").links == ()


def test_an_archived_memory_leads_nowhere(ring: Engine) -> None:
    ring.archive("c")
    assert reached(ring, "a", depth=4) == "ab"


def test_archived_neighbours_do_not_use_up_the_limit(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        for name in ("one", "two", "three", "four", "five"):
            book.remember(f"Memory {name}.", id=name)
        for name, strength in (("two", 1.0), ("three", 0.9), ("four", 0.5)):
            book.link("one", name, strength=strength)
        book.link("two", "five")
        book.archive("two")
        book.archive("three")
        around = book.neighbourhood("one", limit=2)
        assert [memory.id for memory in around.memories] == ["one", "four"]
        assert [link.target for link in around.links] == ["four"]
        assert [memory.id for memory in book.neighbourhood("one", depth=4).memories] == ["one", "four"]


def test_the_engine_leaves_out_what_is_archived(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        one, two, three = (book.remember(f"Memory {name}.", id=name) for name in ("one", "two", "three"))
        book.link("one", "two", "because", 0.7)
        book.link("three", "two", "after")
        around = book.neighbourhood("one")
        assert [memory.id for memory in around.memories] == [one.id, two.id, three.id]
        assert [(link.source, link.target, link.type) for link in around.links] == [
            ("three", "two", "after"),
            ("one", "two", "because"),
        ]
        book.archive("three")
        assert [memory.id for memory in book.neighbourhood("one").memories] == ["one", "two"]
        assert len(book.neighbourhood("one").links) == 1


def test_the_engine_refuses_what_is_not_there_and_what_is_out_of_range(tmp_path: Path) -> None:
    with commonplace.open(tmp_path) as book:
        book.remember("Memory one.", id="one")
        with pytest.raises(NotFoundError, match="no memory 'two'"):
            book.neighbourhood("two")
        for values in ({"depth": 0}, {"depth": 5}, {"limit": 0}, {"limit": 501}, {"depth": True}):
            with pytest.raises(UsageError, match="give a whole number"):
                book.neighbourhood("one", **values)
