"""What every store promises of memories that are read: their versions, times, links, dates, and what Markdown lacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from tests.contract.memories import FULL_MEMORY_OWNER, FULL_RECORD, add, everything, expire, latest, update, written
from tests.contract.stores import FULL_OWNER, NOTHING, UUID, memory, passage

from commonplace.store.store import Store
from commonplace.types import (
    Filter,
    JournalBlock,
    JournalPage,
    Link,
    MemoryRecord,
    MemoryWrite,
    Note,
    Owner,
    OwnerWrite,
    Selection,
    StoredMemory,
)

HOSTILE = (
    "",
    "a\x01b",
    "\x01",
    "\ue000",
    "S\ue080",
    "\U0001f600",
    "'; DROP TABLE memories; --",
    '"},{"',
    "%_*?[a]",
    "İıſß\u202eabc",
    UUID,
    "ab" * 32,
)


class TestRoundTrip:
    def test_a_memory_comes_back_with_every_field(self, store: Store) -> None:
        """Nothing that was given may be lost or normalised."""
        write = MemoryWrite(FULL_MEMORY_OWNER, (passage("one"),), FULL_RECORD, is_placed=True)
        assert add(store, write, at=10.5) == [1]
        stored = StoredMemory(1, FULL_MEMORY_OWNER, FULL_RECORD, 10.5)
        assert store.memory("n", UUID) == stored
        assert store.memories("n", Selection()) == store.versions("n", UUID) == [stored]
        assert store.memory_records("n", [1]) == {1: stored}
        assert store.owners("n", [1]) == {1: FULL_MEMORY_OWNER}
        assert store.passages("n", [1])[1].chunk == passage("one").chunk

    def test_a_memory_of_defaults_comes_back(self, store: Store) -> None:
        """No time is not time zero."""
        add(store, written("a"))
        assert latest(store, "a") == StoredMemory(1, Owner("a", "memory"), MemoryRecord(""), 10.0)

    def test_the_digests_of_the_latest_versions_come_back_as_they_were_written(self, store: Store) -> None:
        """By them an examination finds a text that was changed where it is stored."""
        sums = ("ab" * 32, "", "cd" * 32)
        for id_, digest in zip(("a", UUID, "b"), sums, strict=True):
            add(store, MemoryWrite(Owner(id_, "memory"), (passage(id_),), MemoryRecord(id_), digest))
        with store.change_memories("n") as change:
            old = change.find("a")
            assert old is not None
            change.expire(old.number, old.record, 20.0)
            change.add(MemoryWrite(old.owner, (), replace(old.record, version=2), "ef" * 32), created_at=20.0)
        assert store.memory_digests("n") == [(2, UUID, ""), (3, "b", sums[2]), (4, "a", "ef" * 32)]
        assert store.memory_digests("other") == []

    def test_bands_are_told_that_some_live_memories_share_but_not_too_many(self, store: Store) -> None:
        for id_, bands in (("a", (1, 2, 3)), ("b", (2, 3, 3)), ("c", (3, 4)), ("d", (4,))):
            add(store, written(id_, bands=bands))
        assert store.shared_bands("n", 2) == [(2, 1), (2, 2), (4, 3), (4, 4)]
        assert store.shared_bands("n", 3) == [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 3), (4, 4)]
        with store.change_memories("n") as change:
            old = change.find("d")
            assert old is not None
            change.expire(old.number, old.record, 20.0)
        assert store.shared_bands("n", 2) == [(2, 1), (2, 2)]
        assert store.shared_bands("other", 2) == []

    def test_what_each_version_was_made_from_comes_back(self, store: Store) -> None:
        """Whoever forgets a memory forgets what any version of another took from it."""
        for id_, sources in (("a", ()), ("b", ("a", UUID)), ("c", ("b",))):
            add(store, MemoryWrite(Owner(id_, "memory"), (passage(id_),), MemoryRecord(id_, derived_from=sources)))
        with store.change_memories("n") as change:
            old = change.find("b")
            assert old is not None
            change.expire(old.number, old.record, 20.0)
            change.add(MemoryWrite(old.owner, (), MemoryRecord("b", version=2), ""), created_at=20.0)
        assert store.derivations("n") == [("b", ("a", UUID)), ("c", ("b",))]
        assert store.derivations("other") == []

    @pytest.mark.parametrize("text", HOSTILE, ids=ascii)
    def test_any_text_comes_back_from_every_column(self, store: Store, text: str) -> None:
        """Memories hold what was said and pasted, and callers choose ids."""
        texts: dict[str, Any] = dict.fromkeys(("content", "category", "source", "metadata", "vault_path"), text)
        record = MemoryRecord(**texts, entities=(text, "x"), derived_from=(text,))
        names: dict[str, Any] = dict.fromkeys(("title", "summary", "type", "phase", "root", "session"), text)
        owner = Owner(text, "memory", tags=(text,), references=(text,), **names)
        page, block, note = JournalPage(text, 1, 2, text), JournalBlock(text, text, text), Note(text, text, 1.0, text)
        link = Link(text, text, text)
        with store.change_memories(text) as change:
            change.add(MemoryWrite(owner, (passage(text),), record, text or "0", is_placed=True), created_at=1.0)
            change.link(link)
            change.put(page)
            change.put(block)
            change.put(note)
            assert [found.number for found in change.alike(text or "0", ())] == [1]
        stored = StoredMemory(1, owner, record, 1.0)
        chosen = Selection(
            ids=(text,), tags=(text,), sources=(text,), sessions=(text,), categories=(text,), tiers=("short",)
        )
        assert store.memory(text, text) == stored
        assert store.memories(text, chosen) == store.versions(text, text) == [stored]
        assert store.count_memories(text, chosen) == 1
        assert store.matching_owners(text, Filter(tags=(text,), sessions=(text,), sources=(text,))) == [1]
        assert store.links(text) == store.links(text, [text]) == [link]
        assert store.pages(text) == [page]
        assert store.blocks(text) == [block]
        assert store.notes(text, text) == store.notes(None, text) == [note]
        assert store.due(text) == [text]
        assert store.check() == []
        with store.change_memories(text) as change:
            assert change.unlink(text, text, text) == 1
            change.drop(JournalPage, page=text)
            change.drop(Note, kind=text, id=text)
            assert change.erase([text]) == 1
        assert store.pages(text) == store.notes(text, text) == store.blocks(text) == store.due(text) == []
        assert store.memories(text, Selection()) == []

    def test_times_from_1970_to_9999_and_endless_ones_come_back(self, store: Store) -> None:
        """Nobody knows which calendar a foreign system used."""
        last = 253_402_300_799.999
        dates = ((-inf, 0.0), (last, inf), (-1e18, 1e18))
        record = MemoryRecord("", born_at=-inf, last_used=inf, uses=(-inf, 0.1, inf), promoted_at=-1e18, strength=inf)
        add(store, replace(written("a", at=last, dates=dates), record=record), at=-inf)
        add(store, written("b", at=0.0), at=last, until=inf)
        assert latest(store, "a").record == record
        assert (latest(store, "a").owner.at, latest(store, "a").created_at) == (last, -inf)
        assert (latest(store, "b").created_at, latest(store, "b").expired_at) == (last, inf)
        assert store.dated("n", -inf, inf) == sorted((1, *date) for date in (*dates, (last, last)))

    def test_extreme_integers_come_back(self, store: Store) -> None:
        """Counters of foreign systems are ordinary data."""
        most, least = 2**63 - 1, -(2**63)
        record = MemoryRecord("", version=most, use_count=least, review_count=most)
        add(store, replace(written("a", position=least, bands=(most, least)), record=record))
        with store.change_memories("n") as change:
            assert [found.record for found in change.alike("", [most])] == [record]
            assert [found.record for found in change.alike("", [least])] == [record]


class TestVersions:
    def test_a_replaced_version_stays_readable_by_number_and_time(self, store: Store) -> None:
        """What was known last week is a question too."""
        add(store, written("a", "old"), at=10.0)
        assert update(store, written("a", "new", version=2), at=20.0) == 2
        old, new = store.versions("n", "a")
        assert (old.number, old.created_at, old.expired_at) == (1, 10.0, 20.0)
        assert (new.number, new.created_at, new.expired_at) == (2, 20.0, None)
        assert latest(store, "a") == new
        assert store.memory_records("n", [1, 2, 3]) == {1: old, 2: new}
        assert store.owners("n", [1, 2]) == {1: old.owner, 2: new.owner}
        assert {n: p.chunk.text for n, p in store.passages("n", [1, 2]).items()} == {1: "old", 2: "new"}
        assert {n: entry.text for n, entry in store.entries("n", [1, 2]).items()} == {1: "old", 2: "new"}
        assert list(store.tokens("n", [1, 2])) == [1, 2]

    def test_a_past_version_is_in_no_list(self, store: Store) -> None:
        """Else old text would answer a question about today."""
        add(store, written("a", "one", session="s", tags=("t",), at=5.0, dates=((1.0, 2.0),)))
        add(store, written("b", "two", session="s"), written("c", "three", session="s"))
        expire(store, "c", 20.0)
        expire(store, "a", 20.0)
        assert store.places("n", "memory", ["a", "b", "c"]) == {"b": ("s", 1)}
        assert store.last_position("n", "s") == 1
        assert store.neighbours("n", [1, 2, 3]) == []
        assert store.matching_owners("n", Filter()) == [2]
        assert (
            store.matching_owners("n", Filter(tags=("t",))) == store.matching_owners("n", Filter(tiers=("long",))) == []
        )
        assert store.counts("n") == NOTHING | {"owners": 1, "passages": 1, "text_bytes": 3, "memories": 1}
        assert store.counts() == store.counts("n")
        assert [entry.number for entry in store.entries_since("n", 0, 99)] == [2]
        assert [entry.number for entry in store.tail("n", 0)] == [2]
        assert store.pending("n", 0) == (1, 2)
        assert store.dated("n", -inf, inf) == []
        assert store.check() == []

    def test_an_archived_memory_is_still_the_latest_of_its_id(self, store: Store) -> None:
        """It can be looked at and restored."""
        add(store, written("a", "one"))
        with store.change_memories("n") as change:
            change.expire(1, MemoryRecord("one", status="archived"), 20.0)
        found = latest(store, "a")
        assert (found.number, found.expired_at, found.record.status) == (1, 20.0, "archived")
        assert store.memories("n", Selection(statuses=("archived",))) == [found]

    def test_what_was_live_then_is_half_open(self, store: Store) -> None:
        """At each moment one version of a memory was what we knew, never two and never none between them."""
        add(store, written("a", "1", "2"), at=10.0)
        update(store, written("a", "3"), at=20.0)
        expire(store, "a", 30.0)
        at = (9.9, 10.0, 19.9, 20.0, 29.9, 30.0)
        assert [[e.number for e in store.past("n", time)] for time in at] == [[], [1, 2], [1, 2], [3], [3], []]
        assert [store.matching_owners("n", Filter(as_of=time)) for time in at] == [[], [1], [1], [2], [2], []]
        assert store.past("n", 10.0) == list(store.tokens("n", [1, 2]).values())

    def test_what_was_true_then_is_told_by_the_version_of_then(self, store: Store) -> None:
        """A version tells from its own time on, until one that tells of later; what is known of it may come late."""
        add(store, written("a", "1", "2", at=1.0), at=10.0)
        update(store, written("a", "3", at=5.0), at=20.0)
        update(store, written("a", "4", at=5.0), at=30.0)
        add(store, written("b", "5", at=2.0), at=10.0)
        expire(store, "b", 40.0)
        store.put_owners("n", [OwnerWrite(Owner("1", "artifact", at=0.0), ())])

        def found(valid_at: float, as_of: float | None = None) -> list[int]:
            return store.matching_owners("n", Filter(valid_at=valid_at, as_of=as_of))

        assert [found(time) for time in (0.9, 1.0, 4.9, 5.0, inf)] == [[], [1], [1], [3], [3]]
        assert [found(time, 25.0) for time in (0.9, 1.0, 2.0, 5.0)] == [[], [1], [1, 4], [2, 4]]
        assert (found(9.0, 9.9), found(9.0, 10.0)) == ([], [1, 4])
        assert store.matching_owners("n", Filter(valid_at=2.0, kinds=("artifact", "knowledge"))) == []
        assert [entry.number for entry in store.past("n", None, 2.0)] == [1, 2]
        assert [entry.number for entry in store.past("n", 25.0, 2.0)] == [1, 2, 3, 5]
        assert store.past("n", None, 5.0) == store.past("n", None) == []

    def test_a_version_may_be_past_from_the_start(self, store: Store) -> None:
        """A history that is imported was never live here."""
        assert add(store, written("a", "old", tags=("t",)), at=1.0, until=5.0) == [1]
        assert add(store, written("a", "new"), at=5.0) == [2]
        assert store.counts("n")["passages"] == 1
        assert store.deleted_since("n", 0, 99) == []
        assert [entry.number for entry in store.entries_since("n", 0, 99)] == [2]
        assert [entry.number for entry in store.past("n", 4.9)] == [1]
        assert store.matching_owners("n", Filter(tags=("t",), as_of=3.0)) == [1]
        assert store.check() == []

    def test_the_version_that_was_added_last_is_the_latest(self, store: Store) -> None:
        """Whatever its times say: clocks are set back, and histories are imported in the order they have."""
        add(store, written("a", "one"), at=30.0, until=40.0)
        add(store, written("a", "two"), at=1.0, until=2.0)
        assert (latest(store, "a").number, [found.number for found in store.versions("n", "a")]) == (2, [1, 2])
        assert [found.number for found in store.memories("n", Selection())] == [2]
        assert store.check() == []

    def test_what_is_no_memory_has_no_record(self, store: Store) -> None:
        """Documents may be of the kind memory and were never remembered."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, ()), memory("a", "one")])
        assert store.memory_records("n", [1, 2, 3, -1, 2**70]) == {}
        assert store.memory("n", "a") is None
        assert store.versions("n", "a") == store.memories("n", Selection()) == store.dated("n", -inf, inf) == []


class TestFiltering:
    @pytest.fixture(autouse=True)
    def fill(self, store: Store) -> None:
        store.put_owners("n", [OwnerWrite(Owner("1", "artifact", tags=("t",), session="s"), ())], at=10.0)
        store.put_owners("n", [OwnerWrite(Owner("2", "knowledge"), ()), memory("3", session="s")], at=20.0)
        add(store, written("4", tier="long", source="x", session="s", trust=0.9, tags=("t",)), at=10.0)
        add(store, written("5", tier="short", source="y", session="t", trust=0.5), at=20.0)
        add(store, written("6", tier="long", source="y", trust=0.1, tags=("t",)), at=10.0, until=20.0)
        add(store, written("4", tier="long"), name="other")

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            (Filter(tiers=("long",)), [4]),
            (Filter(tiers=("long", "short", "ultra")), [4, 5]),
            (Filter(sources=("y",)), [5]),
            (Filter(sources=("Y",)), []),
            (Filter(sessions=("s",)), [4]),
            (Filter(sessions=("s", "t")), [4, 5]),
            (Filter(sessions=("s",), tiers=("short",)), []),
            (Filter(min_trust=0.5), [1, 2, 3, 4, 5]),
            (Filter(min_trust=0.51), [1, 2, 3, 4]),
            (Filter(min_trust=1.0, kinds=("memory",)), [3]),
            (Filter(as_of=9.9), []),
            (Filter(as_of=10.0), [1, 4, 6]),
            (Filter(as_of=19.9), [1, 4, 6]),
            (Filter(as_of=20.0), [1, 2, 3, 4, 5]),
            (Filter(as_of=inf), [1, 2, 3, 4, 5]),
            (Filter(as_of=-inf), []),
            (Filter(as_of=10.0, min_trust=0.5), [1, 4]),
            (Filter(as_of=10.0, tiers=("long",), sources=("y",)), [6]),
            (Filter(as_of=10.0, tags=("t",), kinds=("memory",)), [4, 6]),
            (Filter(as_of=10.0, paths=("**",)), []),
        ],
        ids=repr,
    )
    def test_a_filter_lets_pass(self, store: Store, wanted: Filter, numbers: list[int]) -> None:
        """Tiers, sources and sessions are of memories; trust leaves out memories only; a time asks for that time."""
        assert store.matching_owners("n", wanted) == numbers

    def test_an_owner_that_is_written_again_counts_from_then_on(self, store: Store) -> None:
        """Its old text is gone, so nobody can say what it said before."""
        store.put_owners("n", [OwnerWrite(Owner("1", "artifact"), ())], at=30.0)
        assert store.matching_owners("n", Filter(kinds=("artifact",), as_of=29.9)) == []
        assert store.matching_owners("n", Filter(kinds=("artifact",), as_of=30.0)) == [1]
        store.put_owners("n", [OwnerWrite(Owner("1", "artifact"), ())])
        assert store.matching_owners("n", Filter(kinds=("artifact",), as_of=0.0)) == [1]


class TestSelections:
    @pytest.fixture(autouse=True)
    def fill(self, store: Store) -> None:
        add(store, written("B", at=30.0, tier="long", category="fact", tags=("t", "u"), source="x", born_at=1.0))
        add(store, written("a", born_at=20.0, session="s", tags=("u",)), written("é", born_at=20.0, source="y"))
        add(store, written("c", at=10.0, born_at=99.0, tier="medium", session="t", category="decision", source="x"))
        expire(store, "c", 40.0)
        update(store, written("a", born_at=20.0, session="t", tags=("v",), version=2), 50.0)
        add(store, written("z"), name="other")

    @pytest.mark.parametrize(
        ("wanted", "ids"),
        [
            (Selection(), "B a é c"),
            (Selection(order="id"), "B a c é"),
            (Selection(ids=("c", "B", "z", "unknown")), "B c"),
            (Selection(tiers=("long", "medium")), "B c"),
            (Selection(statuses=("active",)), "B a é c"),
            (Selection(statuses=("archived", "promoted")), ""),
            (Selection(tags=("u", "v")), "B a"),
            (Selection(tags=("U",)), ""),
            (Selection(sources=("x",)), "B c"),
            (Selection(sessions=("t",)), "a c"),
            (Selection(sessions=("s",)), ""),
            (Selection(categories=("fact", "decision")), "B c"),
            (Selection(sources=("x",), sessions=("t",)), "c"),
            (Selection(since=20.0), "B a é"),
            (Selection(until=20.0), "c"),
            (Selection(since=10.0, until=30.0), "a é c"),
            (Selection(since=-inf, until=inf), "B a é c"),
            (Selection(limit=2), "B a"),
            (Selection(limit=2, offset=1), "a é"),
            (Selection(offset=3), "c"),
            (Selection(limit=0), ""),
            (Selection(limit=9, offset=9), ""),
            (Selection(order="id", limit=1, offset=2), "c"),
            (Selection(order="used"), "B a c é"),
            (Selection(order="idle", limit=2), "B a"),
            (Selection(order="stored"), "B a é c"),
            (Selection(order="changed"), "a c é B"),
            (Selection(min_trust=2.0), ""),
        ],
        ids=repr,
    )
    def test_a_selection_chooses_latest_versions_in_order(self, store: Store, wanted: Selection, ids: str) -> None:
        """Alternatives within a field, all fields together; newest by their own time or birth, ties by id."""
        assert [found.owner.id for found in store.memories("n", wanted)] == ids.split()
        unlimited = replace(wanted, limit=None, offset=0)
        every = store.memories("n", unlimited)
        assert store.count_memories("n", wanted) == len(every)
        kinds = Counter((each.record.tier, each.record.status) for each in store.memories("n", Selection()))
        assert store.count_tiers("n") == kinds
        facets = store.memory_facets("n", wanted)
        assert sum(facets["session"].values()) == len(every)
        assert facets["tag"] == dict(sorted(Counter(tag for each in every for tag in each.owner.tags).items()))

    def test_a_page_after_another_misses_and_repeats_nothing(self, store: Store) -> None:
        """Lists are turned page by page."""
        pages = [store.memories("n", Selection(limit=1, offset=offset)) for offset in range(5)]
        assert [found for page in pages for found in page] == store.memories("n", Selection())


class TestLinks:
    def test_links_are_found_from_both_ends_and_sorted(self, store: Store) -> None:
        """A memory is shown with what it leads to and what led to it."""
        links = [Link("b", "a"), Link("a", "b", "x", 0.5, 9.0), Link("a", "b"), Link(UUID, "c"), Link("é", "d")]
        with store.change_memories("n") as change:
            for link in links:
                change.link(link)
        by_ends = sorted(links, key=lambda link: (link.source, link.target, link.type))
        assert store.links("n") == by_ends
        assert store.links("n", ["a"]) == by_ends[1:4]
        assert store.links("n", ["c", "d", "unknown"]) == [by_ends[0], by_ends[4]]
        assert store.links("n", []) == store.links("other") == store.links("other", ["a"]) == []

    def test_a_link_replaces_the_one_with_its_ends_and_type(self, store: Store) -> None:
        """Two strengths of one relation would contradict each other."""
        with store.change_memories("n") as change:
            change.link(Link("a", "b", "x", 0.5))
            change.link(Link("a", "b", "x", 0.75, 3.0))
        assert store.links("n") == [Link("a", "b", "x", 0.75, 3.0)]

    def test_links_go_one_by_one_or_all_of_a_direction(self, store: Store) -> None:
        """The other direction is another link."""
        with store.change_memories("n") as change:
            for type_ in ("x", "y", "z"):
                change.link(Link("a", "b", type_))
                change.link(Link("b", "a", type_))
            assert change.unlink("a", "b", "y") == 1
            assert change.unlink("a", "b", "y") == 0
            assert change.unlink("a", "b") == 2
        assert [link.type for link in store.links("n")] == ["x", "y", "z"]


class TestDates:
    def test_dates_are_found_by_overlap(self, store: Store) -> None:
        """An interval that ends where the question begins does not touch it, and a moment lies in one day only."""
        add(store, written("a", at=20.0, dates=((10.0, 20.0), (40.0, inf))), written("b", dates=((-inf, 15.0),)))
        add(store, written("c", dates=((0.0, 99.0),)), name="other")
        assert store.dated("n", 20.0, 30.0) == [(1, 20.0, 20.0)]
        assert store.dated("n", 19.0, 20.0) == [(1, 10.0, 20.0)]
        assert store.dated("n", 10.0, 40.0) == [(1, 10.0, 20.0), (1, 20.0, 20.0), (2, -inf, 15.0)]
        assert store.dated("n", 50.0, inf) == [(1, 40.0, inf)]
        assert store.dated("n", -inf, 10.0) == [(2, -inf, 15.0)]
        assert store.dated("unknown", -inf, inf) == []

    def test_a_date_that_is_given_twice_is_one(self, store: Store) -> None:
        """A text may name a day again."""
        add(store, written("a", dates=((1.0, 2.0), (1.0, 2.0))))
        assert store.dated("n", 0.0, 9.0) == [(1, 1.0, 2.0)]


class TestKeptBeside:
    def test_pages_and_blocks_are_replaced_and_forgotten(self, store: Store) -> None:
        """They say what both sides last agreed on."""
        with store.change_memories("n") as change:
            for name in ("b.md", "a.md"):
                change.put(JournalPage(name, 1, 2, "ab" * 32))
                change.put(JournalBlock(name, "p", "d"))
            change.put(JournalPage("b.md", 2**62, -1, ""))
            change.put(JournalBlock("b.md", "q", "e"))
        assert store.pages("n") == [JournalPage("a.md", 1, 2, "ab" * 32), JournalPage("b.md", 2**62, -1, "")]
        assert store.blocks("n") == [JournalBlock("a.md", "p", "d"), JournalBlock("b.md", "q", "e")]
        assert store.blocks("n", ["b.md", "none", "b.md"]) == [JournalBlock("b.md", "q", "e")]
        assert store.blocks("n", []) == store.blocks("other", ["b.md"]) == []
        with store.change_memories("n") as change:
            change.drop(JournalPage, page="b.md")
            change.drop(JournalBlock, id="a.md")
        assert [page.page for page in store.pages("n")] == ["a.md"]
        assert [block.id for block in store.blocks("n")] == ["b.md"]

    def test_notes_come_by_time_of_one_namespace_or_all(self, store: Store) -> None:
        """`doctor` looks for what waits, whoever it belongs to."""
        for name, note in (
            ("n", Note("receipt", "b", 2.0, "{}")),
            ("n", Note("receipt", "a", 2.0, "{}")),
            ("m", Note("receipt", "a", -1.0, '{"m":1}')),
            ("n", Note("receipt", "c", 1.0, "old")),
            ("n", Note("receipt", "c", 3.0, "new")),
            ("n", Note("backup", "a", 0.0, "{}")),
        ):
            with store.change_memories(name) as change:
                change.put(note)
        assert [(note.id, note.at) for note in store.notes("n", "receipt")] == [("a", 2.0), ("b", 2.0), ("c", 3.0)]
        assert [note.body for note in store.notes(None, "receipt")] == ['{"m":1}', "{}", "{}", "new"]
        assert [note.body for note in store.notes(None, "receipt", "a")] == ['{"m":1}', "{}"]
        assert [note.id for note in store.notes("n", "receipt", "c")] == ["c"]
        assert (
            store.notes("unknown", "receipt") == store.notes("n", "unknown") == store.notes("m", "receipt", "b") == []
        )
        with store.change_memories("n") as change:
            change.drop(Note, kind="receipt", id="a")
        assert [note.id for note in store.notes(None, "receipt")] == ["a", "b", "c"]
        with store.change_memories("n") as change:
            change.drop(Note, kind="receipt")
        assert [note.body for note in store.notes(None, "receipt")] == ['{"m":1}']
        assert [note.id for note in store.notes("n", "backup")] == ["a"]


def test_a_backup_holds_all_that_is_known_of_memories(store: Store, tmp_path: Path) -> None:
    """Versions, marks and notes are not derived from anything: what a backup lacks is lost."""
    add(store, written("a", "one", session="s", dates=((1.0, 2.0),), digest="d", bands=(1,), tags=("t",)))
    update(store, MemoryWrite(replace(FULL_MEMORY_OWNER, id="a"), (passage("two"),), FULL_RECORD, "d", (1,)), 20.0)
    add(store, written(UUID, "three", session="s"), at=1.0, until=5.0)
    add(store, written("b", "four", session="s", dates=((3.0, inf),), digest="e", bands=(2,)))
    store.put_owners("n", [memory("c", "five")], at=15.0)
    with store.change_memories("n") as change:
        change.link(Link("a", "b", "x", 0.5, 9.0))
        change.put(JournalPage("a.md", 1, 2, "ab" * 32))
        change.put(JournalBlock("a", "a.md", "cd" * 32))
        change.put(Note("receipt", "r", 1.0, "{}"))
        change.settle_due(["b"])
    store.backup(tmp_path / "copy.db")
    copy = Store.open(tmp_path / "copy.db", create=False)
    ids = ["a", "b", "c", UUID]
    assert everything(copy, "n", ids, ["s"]) == everything(store, "n", ids, ["s"])
    assert copy.notes("n", "receipt") == store.notes("n", "receipt")
    assert (copy.change(), copy.check()) == (store.change(), [])
    with copy.change_memories("n") as change:
        assert [found.number for found in change.alike("d", ())] == [2]
        assert [found.number for found in change.alike("", (1, 2))] == [2, 4]
    assert add(copy, written("d", "six")) == add(store, written("d", "six")) == [6]
    copy.close()


def test_nothing_of_a_namespace_is_seen_from_another(store: Store) -> None:
    """The promise of isolation, kept where the rows are."""
    with store.change_memories("n") as change:
        change.add(
            written("a", "one", session="s", at=5.0, dates=((1.0, 2.0),), digest="d", bands=(1,)), created_at=1.0
        )
        change.add(written("b", "two"), created_at=1.0, expired_at=30.0)
        change.link(Link("a", "b"))
        change.put(JournalPage("a.md", 1, 2, ""))
        change.put(JournalBlock("a", "a.md", ""))
        change.put(Note("receipt", "a", 1.0, "{}"))
    nothing = everything(store, "unknown", ["a", "b"], ["s"])
    before = everything(store, "n", ["a", "b"], ["s"])
    for name in ("m", "N", "", "n\x01", "n "):
        assert everything(store, name, ["a", "b"], ["s"]) == nothing
        assert store.notes(name, "receipt") == []
        with store.change_memories(name) as change:
            assert change.find("a") is None
            assert change.alike("d", [1]) == []
            change.revise(1, FULL_RECORD)
            change.expire(1, FULL_RECORD, 9.0)
            assert change.erase(["a", "b"]) == change.unlink("a", "b") == 0
            change.drop(JournalPage, page="a.md")
            change.drop(JournalBlock, id="a")
            change.drop(Note, kind="receipt", id="a")
            change.settle_due(["a"])
        assert store.namespaces() == ["n"]
        assert store.erase_namespace(name) == 0
    assert everything(store, "n", ["a", "b"], ["s"]) == before
    assert len(store.notes("n", "receipt")) == store.change() == 1
