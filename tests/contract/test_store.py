"""What every store promises, run on every backend. A new backend joins by one entry in `BACKENDS`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from commonplace.errors import StoreError, UsageError
from commonplace.store.contract import Store
from commonplace.store.memory import MemoryStore
from commonplace.store.sqlite import SqliteStore
from commonplace.types import (
    Chunk,
    Embedding,
    FileStamp,
    Filter,
    IndexEntry,
    NewPassage,
    Owner,
    OwnerWrite,
    Passage,
    TokenEntry,
)

BACKENDS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda directory: MemoryStore(),
    "sqlite": lambda directory: SqliteStore.create(directory / "store.db"),
}

STAMP = FileStamp("ab" * 32, 10, 1_700_000_000_123_456_789, "1/512/50")
UUID = "0b8ff5a4-6a4d-4c5e-9d3c-0123456789ab"
NOTHING = {"owners": 0, "passages": 0, "text_bytes": 0, "artifacts": 0, "memories": 0, "knowledge": 0}


@pytest.fixture(params=sorted(BACKENDS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = BACKENDS[request.param](tmp_path)
    yield store
    store.close()


def passage(text: str, id_: str = "p") -> NewPassage:
    return NewPassage(id_, Chunk(text, 1, 2, "heading"), b"\x01\x00\x02\x00", bytes([len(text) % 256] * 4))


def memory(id_: str, *texts: str, session: str = "", position: int = 0) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "memory", session=session, position=position), tuple(map(passage, texts)))


def file(id_: str, path: str, *texts: str) -> OwnerWrite:
    return OwnerWrite(Owner(id_, "artifact", path=path, root=".", stamp=STAMP), tuple(map(passage, texts)))


FULL_OWNER = Owner(
    UUID,
    "artifact",
    title="Title",
    summary="What it is",
    tags=("b", "a", "b"),
    type="code",
    phase="construction",
    references=("docs/a.md", "b"),
    path="src/a.py",
    root="src",
    session="s",
    position=7,
    at=1.5,
    stamp=STAMP,
)


class TestChangeSequence:
    def test_a_fresh_store_is_at_change_zero_and_empty(self, store: Store) -> None:
        """The index compares its stamp with this number."""
        assert store.change() == 0
        assert store.namespaces() == []
        assert store.counts() == NOTHING
        assert store.embedding() is None

    def test_each_write_takes_the_next_number(self, store: Store) -> None:
        """A gap or a repetition would make an index miss a change."""
        assert store.put_owners("n", [memory("a", "one")]) == 1
        assert store.put_owners("m", [memory("a", "one")]) == 2
        assert store.delete_owners("n", [1]) == 3
        assert store.change() == 3

    def test_writes_that_change_nothing_take_no_number(self, store: Store) -> None:
        """An idle loop must not make every index stale."""
        assert store.put_owners("n", []) == 0
        store.put_owners("n", [memory("a", "one")])
        assert store.put_owners("n", []) == 1
        assert store.delete_owners("n", []) == 1
        assert store.delete_owners("n", [99, -1, 2**70]) == 1
        assert store.delete_owners("unknown", [1]) == 1
        assert store.change() == 1

    def test_putting_the_same_again_still_writes(self, store: Store) -> None:
        """The store does not compare texts: who calls it knows whether something changed."""
        store.put_owners("n", [memory("a", "one")])
        assert store.put_owners("n", [memory("a", "one")]) == 2
        assert list(store.passages("n", [1, 2])) == [2]

    def test_putting_nothing_makes_no_namespace(self, store: Store) -> None:
        """A namespace appears with its first owner."""
        store.put_owners("n", [])
        assert store.namespaces() == []

    def test_the_id_is_a_uuid_that_stays(self, store: Store) -> None:
        """An index is bound to its store by this id."""
        assert len(store.id) == 36
        before = store.id
        store.put_owners("n", [memory("a", "one")])
        assert store.id == before


class TestRoundTrip:
    def test_an_owner_comes_back_with_every_field(self, store: Store) -> None:
        """Nothing that was given may be lost or normalised."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, ())])
        assert store.owners("n", [1]) == {1: FULL_OWNER}
        assert store.artifacts("n") == [(1, FULL_OWNER)]

    def test_an_owner_of_defaults_comes_back(self, store: Store) -> None:
        """No time is not time zero, no stamp is not an empty stamp."""
        owner = Owner("a", "knowledge")
        store.put_owners("n", [OwnerWrite(owner, ())])
        assert store.owners("n", [1]) == {1: owner}

    def test_a_passage_comes_back_in_every_form(self, store: Store) -> None:
        """Three readers need three views of the same row."""
        chunk = Chunk("text", 3, 9, "Heading")
        new = NewPassage(UUID, chunk, b"\x01\x00\xff\xff", b"\x00\x80\x7f\xff")
        store.put_owners("n", [OwnerWrite(FULL_OWNER, (new,))])
        entry = IndexEntry(
            number=1,
            owner_number=1,
            namespace="n",
            kind="artifact",
            type="code",
            phase="construction",
            tags=("b", "a", "b"),
            title="Title",
            path="src/a.py",
            heading="Heading",
            summary="What it is",
            text="text",
            token_ids=new.token_ids,
            vector=new.vector,
        )
        tokens = TokenEntry(1, 1, new.token_ids, new.vector)
        assert store.passages("n", [1]) == {1: Passage(1, UUID, 1, 0, chunk)}
        assert store.tokens("n", [1]) == {1: tokens}
        assert store.tail("n", 0) == [tokens]
        assert store.entries("n", [1]) == {1: entry}
        assert list(store.entries_since(0, 1)) == [entry]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "a\0b",
            "\0",
            "\ud800",
            "a\udfffb",
            "\ud83d\ude00",
            "\U0001f600",
            "İıſß",
            "\ufeff\ufffe\uffff",
            "S\udc80",
            UUID,
            UUID.upper(),
            UUID.replace("-", ""),
            "ab" * 32,
            "AB" * 32,
        ],
        ids=ascii,
    )
    def test_any_text_comes_back_as_it_was(self, store: Store, text: str) -> None:
        """Files and chats hold everything; a text that a backend cannot hold must not stop an indexing run."""
        owner = Owner(
            text,
            "artifact",
            title=text,
            summary=text,
            tags=(text, "x"),
            type=text,
            phase=text,
            references=(text,),
            path=text,
            root=text,
            session=text,
            stamp=FileStamp(text, 0, 0, text),
        )
        new = NewPassage(text, Chunk(text, 1, 1, text), b"", b"")
        store.put_owners(text, [OwnerWrite(owner, (new,))])
        assert store.owners(text, [1]) == {1: owner}
        assert store.passages(text, [1]) == {1: Passage(1, text, 1, 0, new.chunk)}
        assert store.namespaces() == [text]
        assert store.matching_owners(text, Filter(types=(text,), phases=(text,), tags=(text,))) == [1]
        assert store.counts(text)["text_bytes"] == len(text.encode("utf-8", "surrogatepass"))
        store.put_owners(text, [OwnerWrite(owner, (new,))])
        assert store.owners(text, [1, 2]) == {1: owner}
        assert store.check() == []

    def test_extreme_numbers_come_back(self, store: Store) -> None:
        """Times before 1970 and positions of foreign systems are ordinary data."""
        owner = replace(FULL_OWNER, position=-(2**63), at=-1e18, stamp=FileStamp("", 2**63 - 1, -(2**63)))
        store.put_owners("n", [OwnerWrite(owner, ())])
        assert store.owners("n", [1]) == {1: owner}

    def test_numbers_that_do_not_fit_are_refused_before_anything_is_written(self, store: Store) -> None:
        """Half a batch would be worse than none."""
        for broken in (Owner("b", "memory", position=2**63), Owner("b", "memory", at=float("nan"))):
            with pytest.raises(UsageError, match="memory 'b'"):
                store.put_owners("n", [memory("a", "one"), OwnerWrite(broken, ())])
        assert store.change() == 0
        assert store.counts() == NOTHING


class TestReplacing:
    def test_an_owner_keeps_its_number_and_its_passages_get_new_ones(self, store: Store) -> None:
        """The index takes a new number for a new text; a hit's owner stays the same."""
        store.put_owners("n", [memory("a", "one", "two"), memory("b", "three")])
        store.put_owners("n", [memory("a", "four", "five")])
        assert sorted(store.passages("n", range(1, 9))) == [3, 4, 5]
        assert {n: (p.owner_number, p.ordinal) for n, p in store.passages("n", [4, 5]).items()} == {
            4: (1, 0),
            5: (1, 1),
        }
        assert store.deleted_since(1, 2) == [1, 2]

    def test_an_artifact_replaces_the_one_with_its_path(self, store: Store) -> None:
        """A file is found again by its path, whatever id it is given."""
        store.put_owners("n", [file("a", "x.py", "one")])
        store.put_owners("n", [file("b", "x.py", "two")])
        assert [(number, owner.id) for number, owner in store.artifacts("n")] == [(1, "b")]

    def test_an_owner_that_takes_the_path_of_another_replaces_both(self, store: Store) -> None:
        """Id and path are each unique; the number of the one with the same id stays."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "y.py", "two")])
        store.put_owners("n", [file("a", "y.py", "three")])
        assert [(number, owner.id, owner.path) for number, owner in store.artifacts("n")] == [(1, "a", "y.py")]
        assert store.deleted_since(0, 2) == [1, 2]
        assert store.check() == []

    def test_two_files_can_swap_their_paths_in_one_call(self, store: Store) -> None:
        """Renames come in batches."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "y.py", "two")])
        store.put_owners("n", [file("a", "y.py", "one"), file("b", "x.py", "two")])
        assert [(owner.id, owner.path) for _, owner in store.artifacts("n")] == [("b", "x.py"), ("a", "y.py")]
        assert store.check() == []

    def test_of_one_id_twice_in_a_call_the_last_counts(self, store: Store) -> None:
        """The first one never was: it takes no number."""
        store.put_owners("n", [memory("a", "one"), memory("b", "two"), memory("a", "three")])
        assert {n: p.chunk.text for n, p in store.passages("n", [1, 2, 3]).items()} == {1: "two", 2: "three"}
        assert store.deleted_since(0, 1) == []

    def test_of_one_path_twice_in_a_call_the_last_counts(self, store: Store) -> None:
        """As with ids."""
        store.put_owners("n", [file("a", "x.py", "one"), file("b", "x.py", "two")])
        assert [(number, owner.id) for number, owner in store.artifacts("n")] == [(1, "b")]

    def test_kinds_and_namespaces_have_ids_of_their_own(self, store: Store) -> None:
        """One agent must never overwrite what another keeps under the same id."""
        store.put_owners("n", [memory("a", "one"), OwnerWrite(Owner("a", "knowledge"), ())])
        store.put_owners("m", [memory("a", "two")])
        assert sorted(store.owners("n", [1, 2, 3])) == [1, 2]
        assert sorted(store.owners("m", [1, 2, 3])) == [3]

    def test_tags_and_stamp_are_replaced_too(self, store: Store) -> None:
        """Nothing of the old owner may answer a filter."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, ())])
        store.put_owners("n", [OwnerWrite(replace(FULL_OWNER, tags=("c",), stamp=None), ())])
        assert store.matching_owners("n", Filter(tags=("a",))) == []
        assert store.matching_owners("n", Filter(tags=("c",))) == [1]
        assert store.owners("n", [1])[1].stamp is None


class TestDeleting:
    def test_a_deleted_owner_is_absent_everywhere(self, store: Store) -> None:
        """Deletion is what forgetting builds on."""
        store.put_owners("n", [OwnerWrite(FULL_OWNER, (passage("one"),)), memory("b", "two")])
        store.delete_owners("n", [1])
        assert list(store.owners("n", [1, 2])) == [2]
        assert list(store.passages("n", [1, 2])) == list(store.tokens("n", [1, 2])) == [2]
        assert list(store.entries("n", [1, 2])) == [2]
        assert [entry.number for entry in store.entries_since(0, 2)] == [2]
        assert [entry.number for entry in store.tail("n", 0)] == [2]
        assert store.artifacts("n") == []
        assert store.matching_owners("n", Filter(tags=("a",))) == []
        assert store.deleted_since(0, 2) == [1]
        assert store.counts("n") == NOTHING | {"owners": 1, "passages": 1, "text_bytes": 3, "memories": 1}
        assert store.check() == []

    def test_numbers_are_never_used_again(self, store: Store) -> None:
        """An index that still holds an old number must not find another passage under it."""
        store.put_owners("n", [memory("a", "one")])
        store.delete_owners("n", [1])
        store.put_owners("n", [memory("a", "two")])
        assert list(store.owners("n", [1, 2])) == [2]
        assert list(store.passages("n", [1, 2])) == [2]

    def test_an_owner_of_another_namespace_is_not_deleted(self, store: Store) -> None:
        """A number that leaked must not be a key."""
        store.put_owners("n", [memory("a", "one")])
        store.put_owners("m", [memory("a", "two")])
        assert store.delete_owners("m", [1]) == 2
        assert store.delete_owners("m", [1, 2, 2, 99]) == 3
        assert list(store.owners("n", [1])) == [1]

    def test_a_namespace_stays_when_its_last_owner_goes(self, store: Store) -> None:
        """Its name was made by its user, not by its rows."""
        store.put_owners("n", [memory("a", "one")])
        store.delete_owners("n", [1])
        assert store.namespaces() == ["n"]
        assert store.counts() == NOTHING


class TestNamespaces:
    def test_every_read_is_bound_to_the_namespace_it_names(self, store: Store) -> None:
        """The promise of isolation, kept where the rows are."""
        store.put_owners("n", [memory("a", "one", session="s"), memory("b", "two", session="s", position=1)])
        for name in ("m", "N", ""):
            assert store.owners(name, [1, 2]) == {}
            assert store.passages(name, [1, 2]) == {}
            assert store.tokens(name, [1, 2]) == {}
            assert store.entries(name, [1, 2]) == {}
            assert store.neighbours(name, [1, 2]) == []
            assert store.matching_owners(name, Filter()) == []
            assert store.tail(name, 0) == []
            assert store.artifacts(name) == []
            assert store.counts(name) == NOTHING

    def test_names_are_sorted_by_code_point(self, store: Store) -> None:
        """The order of results is total and does not depend on the backend's collation."""
        for name in ("b", "É", "a", "B", ""):
            store.put_owners(name, [memory("a")])
        assert store.namespaces() == ["", "B", "a", "b", "É"]


class TestFollowing:
    def test_entries_are_those_of_the_half_open_range(self, store: Store) -> None:
        """Two following reads must neither miss nor repeat a change."""
        for text in ("one", "two", "three", "four"):
            store.put_owners("n", [memory(text, text)])
        assert [entry.text for entry in store.entries_since(1, 3)] == ["two", "three"]
        assert [entry.text for entry in store.entries_since(3, 99)] == ["four"]
        assert (
            list(store.entries_since(4, 99)) == list(store.entries_since(2, 2)) == list(store.entries_since(3, 1)) == []
        )
        assert [entry.number for entry in store.entries_since(-5, 99)] == [1, 2, 3, 4]

    def test_entries_come_from_every_namespace_by_number(self, store: Store) -> None:
        """One index holds all namespaces."""
        for name in "nmn":
            store.put_owners(name, [memory(str(number), "text") for number in range(400)])
        entries = list(store.entries_since(0, 3))
        assert [entry.number for entry in entries] == list(range(401, 1201))
        assert {entry.namespace for entry in entries[:400]} == {"m"}
        assert {entry.namespace for entry in entries[400:]} == {"n"}

    def test_the_store_can_be_written_while_entries_are_read(self, store: Store) -> None:
        """Bringing the index up to date must not stop a memory from being stored."""
        store.put_owners("n", [memory("a", "one"), memory("b", "two")])
        entries = store.entries_since(0, 1)
        first = next(entries)
        store.put_owners("n", [memory("c", "three")])
        assert [first.text, *(entry.text for entry in entries)] == ["one", "two"]

    def test_deletions_are_those_of_the_half_open_range_by_number(self, store: Store) -> None:
        """The same range as for entries."""
        store.put_owners("n", [memory("a", "1"), memory("b", "2"), memory("c", "3")])
        store.delete_owners("n", [3])
        store.delete_owners("n", [1])
        store.delete_owners("n", [2])
        assert store.deleted_since(0, 4) == [1, 2, 3]
        assert store.deleted_since(2, 3) == [1]
        assert store.deleted_since(4, 9) == []

    def test_the_tail_is_what_came_after_a_change(self, store: Store) -> None:
        """Searches score it directly until the index has it."""
        store.put_owners("n", [memory("a", "one")])
        store.put_owners("m", [memory("b", "two")])
        store.put_owners("n", [memory("c", "three", "four")])
        assert [entry.number for entry in store.tail("n", 1)] == [3, 4]
        assert store.tail("n", 3) == []
        assert [entry.number for entry in store.tail("m", -1)] == [2]


class TestNeighbours:
    def test_neighbours_are_the_nearest_positions_on_both_sides(self, store: Store) -> None:
        """A turn lends score to the turn before and after, also across a gap and through several passages."""
        store.put_owners("n", [memory("a", "1", session="s", position=1), memory("d", "2", session="t", position=2)])
        store.put_owners(
            "n", [memory("c", "3", session="s", position=9), memory("b", "4", "5", session="s", position=3)]
        )
        assert store.neighbours("n", [1]) == [(1, 4), (1, 5)]
        assert store.neighbours("n", [5, 4]) == [(4, 1), (4, 3), (5, 1), (5, 3)]
        assert store.neighbours("n", [2]) == []

    def test_an_owner_without_a_session_has_none(self, store: Store) -> None:
        """Else all files would be one conversation."""
        store.put_owners("n", [memory("a", "1", position=1), memory("b", "2", position=2)])
        assert store.neighbours("n", [1, 2]) == []

    def test_owners_at_one_position_are_no_neighbours_but_share_theirs(self, store: Store) -> None:
        """Positions order a conversation; equal positions say nothing about each other."""
        writes = [memory(str(n), "x", session="s", position=position) for n, position in enumerate([0, 1, 1, 2])]
        store.put_owners("n", writes)
        assert store.neighbours("n", [2, 3]) == [(2, 1), (2, 4), (3, 1), (3, 4)]
        assert store.neighbours("n", [1]) == [(1, 2), (1, 3)]

    def test_a_session_is_one_of_its_namespace(self, store: Store) -> None:
        """Two agents may both have a session `1`."""
        store.put_owners("n", [memory("a", "1", session="s", position=1)])
        store.put_owners("m", [memory("b", "2", session="s", position=2)])
        assert store.neighbours("n", [1, 2]) == []

    def test_an_empty_neighbour_is_skipped_not_jumped_over(self, store: Store) -> None:
        """A turn without words still stands between two others."""
        store.put_owners(
            "n",
            [memory(n, *t, session="s", position=p) for p, (n, t) in enumerate([("a", "1"), ("b", ""), ("c", "3")])],
        )
        assert store.neighbours("n", [1, 2]) == []


class TestFiltering:
    @pytest.fixture(autouse=True)
    def fill(self, store: Store) -> None:
        def owner(id_: str, kind: str = "artifact", **fields: object) -> OwnerWrite:
            return OwnerWrite(Owner(id_, kind, **fields), ())  # type: ignore[arg-type]

        store.put_owners("other", [owner("0", type="code", tags=("t",), path="src/a.py")])
        store.put_owners(
            "n",
            [
                owner("2", type="code", phase="construction", tags=("t", "u"), path="src/a.py"),
                owner("3", type="code", tags=("u",), path="src/deep/er/b.py"),
                owner("4", type="test", phase="transition", path="tests/test_a.py"),
                owner("5", type="documentation", phase="inception", tags=("t",), path="docs/a.md"),
                owner("6", kind="memory", tags=("t",)),
                owner("7", kind="knowledge"),
            ],
        )

    @pytest.mark.parametrize(
        ("wanted", "numbers"),
        [
            (Filter(), [2, 3, 4, 5, 6, 7]),
            (Filter(kinds=("memory", "knowledge")), [6, 7]),
            (Filter(types=("code", "test")), [2, 3, 4]),
            (Filter(phases=("construction",)), [2, 3, 6, 7]),
            (Filter(tags=("t",)), [2, 5, 6]),
            (Filter(tags=("t", "u", "unknown")), [2, 3, 5, 6]),
            (Filter(tags=("T",)), []),
            (Filter(kinds=("artifact",), tags=("t",), types=("code",)), [2]),
            (Filter(paths=("src/*.py",)), [2]),
            (Filter(paths=("src/**/*.py",)), [2, 3]),
            (Filter(paths=("src/**",)), [2, 3]),
            (Filter(paths=("src/",)), [2, 3]),
            (Filter(paths=("*.md", "tests/")), [4, 5]),
            (Filter(paths=("*.py", "!src/deep/**")), [2, 4]),
            (Filter(paths=("**",)), [2, 3, 4, 5]),
            (Filter(paths=("*.py",), phases=("construction",)), [2, 3]),
            (Filter(paths=("nothing",)), []),
            (Filter(types=("' OR 1=1 --",)), []),
        ],
        ids=repr,
    )
    def test_a_filter_lets_pass(self, store: Store, wanted: Filter, numbers: list[int]) -> None:
        """Alternatives within a field, all fields together, phases as the contract says, globs as in .gitignore."""
        assert store.matching_owners("n", wanted) == numbers

    def test_only_artifacts_pass_a_path_filter(self, store: Store) -> None:
        """Whoever asks for files asks for files, whatever else carries a path."""
        store.put_owners("n", [OwnerWrite(Owner("8", "memory", path="src/note.py"), ())])
        assert store.matching_owners("n", Filter(paths=("src/*.py",))) == [2]

    def test_a_malformed_glob_is_named(self, store: Store) -> None:
        """The user wrote it and can correct it."""
        with pytest.raises(UsageError, match=r"malformed path pattern in \['!'\]"):
            store.matching_owners("n", Filter(paths=("!",)))


class TestArtifacts:
    def test_only_files_are_listed_by_path(self, store: Store) -> None:
        """Indexing a directory compares its files with this list; documents without a file are not its business."""
        store.put_owners("n", [file("a", "z.py"), file("b", "B.py"), file("c", "a.py"), memory("d")])
        store.put_owners("n", [OwnerWrite(Owner("e", "artifact"), ())])
        assert [owner.path for _, owner in store.artifacts("n")] == ["B.py", "a.py", "z.py"]

    def test_a_new_stamp_takes_no_number(self, store: Store) -> None:
        """A touched file with the same text must not disturb any index."""
        store.put_owners("n", [file("a", "x.py", "one"), OwnerWrite(replace(FULL_OWNER, stamp=None), ())])
        stamp = FileStamp("cd" * 32, 11, 12, "2/256/0")
        store.restamp_artifacts("n", [("x.py", "src", stamp), ("src/a.py", "src", stamp), ("none.py", ".", stamp)])
        store.restamp_artifacts("unknown", [("x.py", ".", STAMP)])
        assert store.change() == 1
        assert [(owner.root, owner.stamp) for _, owner in store.artifacts("n")] == [("src", stamp)] * 2
        assert list(store.passages("n", [1])) == [1]
        assert store.check() == []


class TestCounts:
    def test_counts_follow_writes_replacements_and_deletions(self, store: Store) -> None:
        """They are kept up as rows come and go, and must never drift."""
        store.put_owners("n", [file("a", "x.py", "äb", "\ud800"), memory("b", "two")])
        store.put_owners("m", [OwnerWrite(Owner("k", "knowledge"), (passage("three"),))])
        store.put_owners("n", [file("a", "x.py", "one")])
        assert store.counts("n") == {
            "owners": 2,
            "passages": 2,
            "text_bytes": 6,
            "artifacts": 1,
            "memories": 1,
            "knowledge": 0,
        }
        assert store.counts() == {
            "owners": 3,
            "passages": 3,
            "text_bytes": 11,
            "artifacts": 1,
            "memories": 1,
            "knowledge": 1,
        }
        assert store.check() == []


class TestEmbedding:
    def test_the_stamp_is_kept_and_may_be_set_again(self, store: Store) -> None:
        """Every opening sets it."""
        stamp = Embedding("static", "1", 4)
        store.set_embedding(Embedding("other", "1", 8))
        store.set_embedding(stamp)
        store.put_owners("n", [memory("a", "one")])
        store.set_embedding(stamp)
        assert store.embedding() == stamp

    def test_another_embedder_is_refused_once_there_are_passages(self, store: Store) -> None:
        """Vectors of different embedders must never be compared."""
        store.set_embedding(Embedding("static", "1", 4))
        store.put_owners("n", [memory("a", "one")])
        with pytest.raises(StoreError, match=r"holds 1 passages made by static@1/4, not by static@2/4; open it with"):
            store.set_embedding(Embedding("static", "2", 4))
        assert store.embedding() == Embedding("static", "1", 4)

    def test_a_vector_of_another_length_is_refused(self, store: Store) -> None:
        """It would damage the dense index."""
        store.set_embedding(Embedding("static", "1", 3))
        with pytest.raises(StoreError, match="has 4 dimensions, the store's embedder static has 3"):
            store.put_owners("n", [memory("a", "one")])
        assert store.change() == 0


class TestBackup:
    def test_a_backup_is_a_store_with_the_same_id_numbers_and_changes(self, store: Store, tmp_path: Path) -> None:
        """An index that fits the store fits its backup."""
        store.set_embedding(Embedding("static", "1", 4))
        store.put_owners("n", [OwnerWrite(FULL_OWNER, (passage("one"), passage("two"))), memory("b", "three")])
        store.put_owners("m", [memory("b", "four", session="s")])
        store.put_owners("n", [memory("b", "five")])
        store.delete_owners("m", [3])
        store.backup(tmp_path / "copy.db")
        copy = SqliteStore.open(tmp_path / "copy.db", create=False)
        numbers = range(1, 10)
        for ask in (
            lambda s: (s.id, s.change(), s.embedding(), s.namespaces(), s.counts(), s.check()),
            lambda s: (s.artifacts("n"), s.owners("n", numbers), s.passages("n", numbers), s.tokens("n", numbers)),
            lambda s: [list(s.entries_since(n, n + 1)) for n in range(5)],
            lambda s: [s.deleted_since(n, n + 1) for n in range(5)],
            lambda s: s.put_owners("n", [memory("z", "six")]),
            lambda s: (s.owners("n", numbers), s.passages("n", numbers)),
        ):
            assert ask(copy) == ask(store)
        copy.close()

    def test_a_backup_is_one_file_and_nothing_else(self, store: Store, tmp_path: Path) -> None:
        """People copy the one file that they named."""
        store.put_owners("n", [memory("a", "one")])
        (tmp_path / "backups").mkdir()
        store.backup(tmp_path / "backups" / "copy.db")
        assert [path.name for path in (tmp_path / "backups").iterdir()] == ["copy.db"]

    def test_a_backup_never_writes_over_a_file(self, store: Store, tmp_path: Path) -> None:
        """The last good backup may stand there."""
        target = tmp_path / "copy.db"
        target.write_text("precious")
        with pytest.raises(StoreError, match=r"copy\.db exists already; name a file"):
            store.backup(target)
        assert target.read_text() == "precious"

    def test_a_backup_into_no_directory_says_so(self, store: Store, tmp_path: Path) -> None:
        """And leaves nothing behind."""
        with pytest.raises(StoreError, match=r"nowhere.*copy\.db"):
            store.backup(tmp_path / "nowhere" / "copy.db")


class TestThreadsAndClosing:
    def test_threads_may_write_and_read_at_once(self, store: Store) -> None:
        """Each of the writes must arrive, once, and readers must see whole writes only."""
        broken: list[int] = []

        def write(name: str) -> None:
            for number in range(20):
                store.put_owners("n", [memory(f"{name}{number}", "x", "y")])

        def read() -> None:
            for _ in range(60):
                counts = store.counts("n")
                if counts["passages"] != 2 * counts["owners"]:
                    broken.append(counts["passages"])

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        threads += [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert broken == []
        assert store.change() == 80
        assert store.counts("n")["passages"] == 160
        assert store.check() == []

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        """Cleanup code runs in any order."""
        store.close()
        store.close()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        """Rather than show what the driver thinks of it."""
        store.close()
        with pytest.raises(StoreError, match="is closed"):
            store.change()
        with pytest.raises(StoreError, match="is closed"):
            store.put_owners("n", [memory("a", "one")])
