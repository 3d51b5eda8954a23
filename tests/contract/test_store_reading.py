"""What every store promises to those that ask it: the index that follows it, and a search that filters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.stores import FULL_OWNER, SECOND, STAMP, UUID, file, memory, passage

from commonplace.errors import UsageError
from commonplace.store.store import Store
from commonplace.types import Chunk, FileStamp, Filter, Owner, OwnerWrite


def test_a_heading_that_does_not_name_one_section_is_told(store: Store) -> None:
    """A link to it would lead to another section of the text."""
    headed = [
        ("Fixed", "## Fixed\nthe lamp"),
        ("Fixed", "## Fixed\nthe door"),
        ("Long", "## Long\nfirst piece"),
        ("Long", "second piece"),
        ("The option", "## The `option`\nsays"),
        ("", "nothing above"),
        ("", "nor here"),
    ]
    passages = tuple(replace(passage(text, text), chunk=Chunk(text, 1, 2, heading)) for heading, text in headed)
    store.put_owners("n", [OwnerWrite(Owner(UUID, "artifact", path="a.md"), passages), memory("m", "Fixed")])
    assert store.repeated_headings("n", range(1, 9)) == {1, 2}
    assert store.repeated_headings("n", [3]) == store.repeated_headings("other", [1]) == set()


class TestFollowing:
    def test_entries_are_those_of_the_half_open_range(self, store: Store) -> None:
        """Two following reads must neither miss nor repeat a change."""
        for text in ("one", "two", "three", "four"):
            store.put_owners("n", [memory(text, text)])
        assert [entry.text for entry in store.entries_since("n", 1, 3)] == ["two", "three"]
        assert [entry.text for entry in store.entries_since("n", 3, 99)] == ["four"]
        assert (
            list(store.entries_since("n", 4, 99))
            == list(store.entries_since("n", 2, 2))
            == list(store.entries_since("n", 3, 1))
            == []
        )
        assert [entry.number for entry in store.entries_since("n", -5, 99)] == [1, 2, 3, 4]

    def test_entries_come_by_number_and_of_no_two_namespaces_with_the_same(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One index holds all namespaces."""
        monkeypatch.setattr("commonplace.store.store._ENTRIES_A_READ", 50)
        for name in "nmn":
            store.put_owners(name, [memory(str(number), "text") for number in range(70)])
        entries = {name: list(store.entries_since(name, 0, 2)) for name in "nm"}
        numbers = {name: [entry.number for entry in found] for name, found in entries.items()}
        assert numbers["n"] == list(range(71, 141))
        assert numbers["m"] == sorted(numbers["m"])
        assert {entry.namespace for entry in entries["m"]} == {"m"}
        assert (len(numbers["m"]), {*numbers["m"]} & {*numbers["n"]}) == (70, set())

    def test_the_store_can_be_written_while_entries_are_read(self, store: Store) -> None:
        """Bringing the index up to date must not stop a memory from being stored."""
        store.put_owners("n", [memory("a", "one"), memory("b", "two")])
        entries = store.entries_since("n", 0, 1)
        first = next(entries)
        store.put_owners("n", [memory("c", "three")])
        assert [first.text, *(entry.text for entry in entries)] == ["one", "two"]

    def test_deletions_are_those_of_the_half_open_range_by_number(self, store: Store) -> None:
        """The same range as for entries."""
        store.put_owners("n", [memory("a", "1"), memory("b", "2"), memory("c", "3")])
        store.delete_owners("n", [3])
        store.delete_owners("n", [1])
        store.delete_owners("n", [2])
        assert store.deleted_since("n", 0, 4) == [1, 2, 3]
        assert store.deleted_since("n", 2, 3) == [1]
        assert store.deleted_since("n", 4, 9) == []

    def test_the_tail_is_what_came_after_a_change(self, store: Store) -> None:
        """Searches score it directly until the index has it."""
        store.put_owners("n", [memory("a", "one")])
        store.put_owners("m", [memory("b", "two")])
        store.put_owners("n", [memory("c", "three", "four")])
        assert [entry.number for entry in store.tail("n", 1)] == [2, 3]
        assert store.tail("n", 2) == []
        assert [entry.number for entry in store.tail("m", -1)] == [SECOND + 1]


class TestNeighbours:
    def test_neighbours_are_the_nearest_positions_on_both_sides(self, store: Store) -> None:
        """A turn lends score to the turn before and after, also across a gap and through several passages."""
        store.put_owners("n", [memory("a", "1", session="s", position=1), memory("d", "2", session="t", position=2)])
        store.put_owners(
            "n", [memory("c", "3", session="s", position=9), memory("b", "4", "5", session="s", position=3)]
        )
        assert store.neighbours("n", [1]) == [(1, 4), (1, 5), (4, 1), (4, 3), (5, 1), (5, 3)]
        assert store.neighbours("n", [3]) == [(3, 4), (3, 5), (4, 1), (4, 3), (5, 1), (5, 3)]
        assert store.neighbours("n", [2]) == []
        for asked, near in (([1], [1, 4, 5]), ([3, 2], [2, 3, 4, 5]), ([4, 99], [1, 3, 4])):
            assert store.tokens_beside("n", asked) == (store.tokens("n", near), store.neighbours("n", asked))

    def test_an_owner_without_a_session_has_none(self, store: Store) -> None:
        """Else all files would be one conversation."""
        store.put_owners("n", [memory("a", "1", position=1), memory("b", "2", position=2)])
        assert store.neighbours("n", [1, 2]) == []

    def test_owners_at_one_position_are_no_neighbours_but_share_theirs(self, store: Store) -> None:
        """Positions order a conversation; equal positions say nothing about each other."""
        writes = [memory(str(n), "x", session="s", position=position) for n, position in enumerate([0, 1, 1, 2])]
        store.put_owners("n", writes)
        assert store.neighbours("n", [2]) == [(1, 2), (1, 3), (2, 1), (2, 4), (4, 2), (4, 3)]
        assert store.neighbours("n", [1]) == [(1, 2), (1, 3), (2, 1), (2, 4), (3, 1), (3, 4)]

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


class TestSessions:
    def test_the_last_position_is_the_highest_of_the_session(self, store: Store) -> None:
        """What is added to a conversation comes after what it holds."""
        store.put_owners("n", [memory("a", session="s", position=7), memory("b", session="s", position=3)])
        store.put_owners("n", [memory("c", session=UUID, position=-5), memory("d", position=9)])
        store.put_owners("m", [memory("a", session="s", position=8)])
        assert store.last_position("n", "s") == 7
        assert store.last_position("n", UUID) == -5
        store.delete_owners("n", [1])
        assert store.last_position("n", "s") == 3

    def test_what_is_no_session_has_no_position(self, store: Store) -> None:
        """Its first document takes place 0."""
        store.put_owners("n", [memory("a", position=9)])
        assert store.last_position("n", "") == store.last_position("n", "s") == store.last_position("m", "s") == -1

    def test_places_are_told_by_kind_and_id(self, store: Store) -> None:
        """A document that is indexed again keeps its place."""
        store.put_owners("n", [memory("a", session="s", position=7), memory(UUID, session=UUID), memory("b")])
        store.put_owners("m", [memory("c", session="s")])
        places = {"a": ("s", 7), UUID: (UUID, 0), "b": ("", 0)}
        assert store.places("n", "memory", ["a", UUID, "b", "c", ""]) == places
        assert store.places("n", "knowledge", ["a"]) == store.places("unknown", "memory", ["a"]) == {}
        numbers = store.owner_numbers("n", "memory", ["a", "b", "c"])
        assert {store.owners("n", [number])[number].id for number in numbers.values()} == numbers.keys() == {"a", "b"}


class TestFiltering:
    @pytest.fixture(autouse=True)
    def fill(self, store: Store) -> None:
        def owner(id_: str, kind: str = "artifact", **fields: object) -> OwnerWrite:
            return OwnerWrite(Owner(id_, kind, **fields), ())  # type: ignore[arg-type]

        store.put_owners(
            "n",
            [
                owner("1", type="data"),
                owner("2", type="code", phase="construction", tags=("t", "u"), path="src/a.py"),
                owner("3", type="code", tags=("u",), path="src/deep/er/b.py"),
                owner("4", type="test", phase="transition", path="tests/test_a.py"),
                owner("5", type="documentation", phase="inception", tags=("t",), path="docs/a.md"),
                owner("6", kind="memory", tags=("t",)),
                owner("7", kind="knowledge"),
            ],
        )
        store.delete_owners("n", [1])
        store.put_owners("other", [owner("0", type="code", tags=("t",), path="src/a.py")])

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
        with pytest.raises(UsageError, match="'!' is not a glob"):
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
