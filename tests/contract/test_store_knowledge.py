"""What every store promises about agents' knowledge."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.knowledge import FULL, contents, item, put
from tests.contract.stores import NOTHING, STAMP, UUID, memory

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
from commonplace.types import Embedding, Filter, Owner
from commonplace.types.knowledge import AgentCounts, ContextRecord, KnowledgeWrite, StoredKnowledge


class TestItems:
    def test_an_item_comes_back_with_every_field(self, store: Store) -> None:
        """The map is the agent's own: nothing of it may be lost."""
        write = replace(item(), record=FULL)
        with store.change_memories("n") as change:
            number = change.knowledge.put(write, created_at=1.5, updated_at=2.5)
        stored = StoredKnowledge(number, write.owner, FULL, 1.5, 2.5, None)
        assert store.knowledge("n").items() == [stored]
        assert store.knowledge("n").of_numbers([number, 99]) == {number: stored}
        assert store.owners("n", [number]) == {number: write.owner}
        assert store.counts("n") == NOTHING | {"owners": 1, "passages": 1, "text_bytes": 4, "knowledge": 1}

    def test_texts_with_lone_surrogates_come_back(self, store: Store) -> None:
        """They come from other programs, and nobody knows how."""
        record = replace(FULL, agent="a\ue000", content="b\uf8ff", metadata='{"\ue000":1}', digest="no sum")
        put(store, replace(item(), record=record))
        assert [each.record for each in store.knowledge("n").items("a\ue000")] == [record]

    def test_an_item_takes_the_place_of_the_one_with_its_id(self, store: Store) -> None:
        """Embedded anew it is the same item, with the same number and new passages."""
        (number,) = put(store, item(content="one"))
        with store.change_memories("n") as change:
            again = change.knowledge.put(item(content="two", agent="b"), created_at=10.0, updated_at=20.0)
        (stored,) = store.knowledge("n").items()
        assert (again, stored.record.content, stored.record.agent) == (number, "two", "b")
        assert (stored.created_at, stored.updated_at) == (10.0, 20.0)
        assert store.passages_of("n", [number]) == [2]

    def test_items_are_in_the_order_in_which_they_were_put(self, store: Store) -> None:
        """An agent's list keeps its order."""
        put(store, *(item(f"{n}", content=text) for n, text in enumerate("cab")))
        put(store, item("x", agent="b", content="other"))
        assert contents(store, "a") == ["c", "a", "b"]
        assert contents(store) == ["c", "a", "b", "other"]
        assert store.knowledge("n").agents() == [AgentCounts("a", 3, 0), AgentCounts("b", 1, 0)]

    def test_a_document_of_that_kind_is_no_item(self, store: Store) -> None:
        """It has no agent, and nobody's search for knowledge finds it; put under an item's id it takes its place."""
        put(store, item("k"))
        store.put_owners("n", [replace(memory("d", "text"), owner=Owner("d", "knowledge"))])
        assert [each.owner.id for each in store.knowledge("n").items()] == ["k"]
        store.put_owners("n", [replace(memory("k", "text"), owner=Owner("k", "knowledge"))])
        assert store.knowledge("n").items() == []
        assert store.counts("n")["knowledge"] == 2
        assert store.check() == []

    def test_an_item_can_be_deleted_as_an_owner(self, store: Store) -> None:
        """Forgetting knows owners alone."""
        numbers = put(store, item("k"), item("l"))
        store.delete_owners("n", numbers[:1])
        assert [each.number for each in store.knowledge("n").items()] == numbers[1:]


class TestDeletion:
    def test_a_deleted_item_is_kept_aside(self, store: Store) -> None:
        """Softly deleted, it is found by nothing but its number and its time."""
        kept, gone = put(store, item("k"), item("g", content="gone"))
        with store.change_memories("n") as change:
            assert change.knowledge.expire([gone, 99], 20.0) == 1
            assert change.knowledge.expire([gone], 30.0) == 0
        assert (contents(store), contents(store, "a", deleted=True)) == (["text"], ["gone"])
        assert store.knowledge("n").of_numbers([gone])[gone].deleted_at == 20.0
        assert store.knowledge("n").agents() == [AgentCounts("a", 1, 1)]
        assert store.counts("n")["knowledge"] == 1
        assert store.matching_owners("n", Filter()) == [kept]
        assert store.matching_owners("n", Filter(as_of=15.0)) == [kept, gone]
        assert store.deleted_since("n", 1, 2) == [2]
        assert [entry.number for entry in store.past("n", 15.0)] == [2]

    def test_an_item_may_come_again_after_its_deletion(self, store: Store) -> None:
        """Under the same id it is another row, and the old one stays aside."""
        (first,) = put(store, item("k"))
        with store.change_memories("n") as change:
            change.knowledge.expire([first], 20.0)
        (second,) = put(store, item("k", content="again"))
        assert first != second
        assert (contents(store), contents(store, deleted=True)) == (["again"], ["text"])

    def test_an_item_may_be_past_from_the_start(self, store: Store) -> None:
        """An import brings what was deleted elsewhere, beside what is live here."""
        put(store, item("k", content="live"))
        put(store, item("k", content="past"), at=1.0, until=5.0)
        assert (contents(store), contents(store, deleted=True)) == (["live"], ["past"])

    def test_erasing_leaves_nothing(self, store: Store) -> None:
        """Live or deleted: afterwards nothing speaks of it."""
        live, past = put(store, item("k"), item("p"))
        with store.change_memories("n") as change:
            change.knowledge.expire([past], 20.0)
        with store.change_memories("n") as change:
            assert change.knowledge.erase([live, past, 99]) == 2
        assert store.knowledge("n").of_numbers([live, past]) == {}
        assert store.knowledge("n").agents() == []
        assert store.passages_of("n", [live, past]) == []

    def test_a_namespace_goes_with_its_knowledge(self, store: Store) -> None:
        """The other namespace keeps its own."""
        for name in ("n", "m"):
            put(store, item(), name=name)
            with store.change_memories(name) as change:
                change.knowledge.put_context(ContextRecord("a", 1))
        assert store.erase_namespace("n") == 1
        assert (store.knowledge("n").agents(), store.knowledge("n").contexts()) == ([], [])
        assert (contents(store, name="m"), len(store.knowledge("m").contexts())) == (["text"], 1)
        assert store.check() == []


class TestChanges:
    def test_a_change_reads_what_it_wrote_and_others_do_not(self, store: Store) -> None:
        """What is replaced is compared inside the transaction that replaces it."""
        with store.change_memories("n") as change:
            number = change.knowledge.put(item(), created_at=1.0, updated_at=1.0)
            assert [each.number for each in change.knowledge.items("a")] == [number]
            change.knowledge.expire([number], 2.0)
            assert change.knowledge.items("a") == []
            assert [each.deleted_at for each in change.knowledge.items(deleted=True)] == [2.0]

    def test_a_change_that_fails_leaves_everything_as_it_was(self, store: Store) -> None:
        """Replacing knowledge is one transaction."""
        (number,) = put(store, item("k"))
        with pytest.raises(KeyError), store.change_memories("n") as change:
            change.knowledge.expire([number], 20.0)
            change.knowledge.put(item("l"), created_at=1.0, updated_at=1.0)
            change.knowledge.put_context(ContextRecord("a"))
            raise KeyError
        assert [each.owner.id for each in store.knowledge("n").items()] == ["k"]
        assert (store.knowledge("n").contexts(), store.change()) == ([], 1)

    def test_items_take_a_change_number_and_contexts_none(self, store: Store) -> None:
        """The index follows what is found, and nothing else."""
        numbers = put(store, item("k"))
        with store.change_memories("n") as change:
            change.knowledge.put_context(ContextRecord("a"))
            change.knowledge.expire([99], 1.0)
            change.knowledge.erase([99])
        assert store.change() == 1
        with store.change_memories("n") as change:
            change.knowledge.expire(numbers, 20.0)
        assert store.change() == 2
        with store.change_memories("n") as change:
            change.knowledge.erase(numbers)
        assert store.change() == 3

    @pytest.mark.parametrize(
        "owner", [Owner("x", "memory"), Owner("x", "knowledge", path="a.md"), Owner("x", "knowledge", stamp=STAMP)]
    )
    def test_what_is_no_item_is_refused(self, store: Store, owner: Owner) -> None:
        """Files and memories have rules of their own."""
        with pytest.raises(UsageError, match="not a knowledge item"):
            put(store, KnowledgeWrite(owner, (), item().record))
        assert store.counts()["owners"] == 0

    def test_what_does_not_fit_is_refused(self, store: Store) -> None:
        """Times are numbers, cursors have 64 bits, vectors are the embedder's."""
        store.set_embedding(Embedding("e", "1", 8))
        with pytest.raises(StoreError, match="has 4 dimensions"):
            put(store, item())
        with pytest.raises(UsageError, match="is not a number"):
            put(store, replace(item(), passages=()), at=math.nan)
        with store.change_memories("n") as change, pytest.raises(UsageError, match="64 bits"):
            change.knowledge.put_context(ContextRecord("a", 2**63))
        with store.change_memories("n") as change, pytest.raises(UsageError, match="is not a number"):
            change.knowledge.expire([1], math.nan)
        assert store.change() == 0

    def test_a_change_is_over_when_its_block_ends(self, store: Store) -> None:
        """It would belong to no transaction."""
        with store.change_memories("n") as change:
            knowledge = change.knowledge
        for call in (lambda: knowledge.put(item(), created_at=0.0, updated_at=0.0), lambda: knowledge.items("a")):
            with pytest.raises(StoreError, match="is over"):
                call()


class TestFinding:
    def test_a_filter_by_agent_lets_only_its_items_pass(self, store: Store) -> None:
        """Two agents of one namespace never see each other's knowledge."""
        mine, theirs = put(store, item("k"), item("l", agent="b"))
        store.put_owners("n", [memory("m", "text")])
        put(store, item("o"), name="other")
        assert store.matching_owners("n", Filter(agents=("a",))) == [mine]
        assert store.matching_owners("n", Filter(agents=("a", "b"))) == [mine, theirs]
        assert store.matching_owners("n", Filter(agents=("A",))) == []
        assert store.matching_owners("n", Filter(agents=("a",), kinds=("memory",))) == []

    def test_namespaces_know_nothing_of_each_other(self, store: Store) -> None:
        """Not by name, not by number."""
        (number,) = put(store, item())
        other = store.knowledge("other")
        assert (other.items("a"), other.of_numbers([number]), other.agents()) == ([], {}, [])
        with store.change_memories("other") as change:
            assert change.knowledge.expire([number], 1.0) == change.knowledge.erase([number]) == 0
        assert contents(store) == ["text"]


class TestContexts:
    def test_a_context_comes_back_and_is_replaced(self, store: Store) -> None:
        """The name is the key."""
        first, second = ContextRecord("a", 3, '{"x":1}', 1.5), ContextRecord("b\ue000", 0, "{}", 0.0)
        with store.change_memories("n") as change:
            change.knowledge.put_context(second)
            change.knowledge.put_context(replace(first, last_cursor=2))
            change.knowledge.put_context(first)
            assert change.knowledge.context("a") == first
        assert store.knowledge("n").context("a") == first
        assert store.knowledge("n").contexts() == [first, second]
        assert store.knowledge("n").context("A") is None
        assert store.knowledge("other").contexts() == []

    def test_a_context_can_be_dropped(self, store: Store) -> None:
        """And only once."""
        with store.change_memories("n") as change:
            assert not change.knowledge.drop_context("a")
            change.knowledge.put_context(ContextRecord("a"))
            assert change.knowledge.drop_context("a")
            assert not change.knowledge.drop_context("a")
        assert store.knowledge("n").contexts() == []


def test_a_backup_holds_items_and_contexts(store: Store, tmp_path: Path) -> None:
    """Live and deleted ones, with their numbers."""
    write = KnowledgeWrite(Owner(UUID, "knowledge"), item().passages, FULL)
    put(store, write, item("p", agent="b"))
    with store.change_memories("n") as change:
        change.knowledge.expire([2], 20.0)
        change.knowledge.put_context(ContextRecord("a", 7, '{"x":1}', 1.0))
    store.backup(tmp_path / "copy.db")
    copy = Store.open(tmp_path / "copy.db", create=False)
    for deleted in (False, True):
        assert copy.knowledge("n").items(deleted=deleted) == store.knowledge("n").items(deleted=deleted)
    assert copy.knowledge("n").contexts() == store.knowledge("n").contexts()
    assert (copy.change(), copy.check()) == (store.change(), [])
    copy.close()
