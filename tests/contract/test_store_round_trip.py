"""What was given to a store comes back as it was, from the store and from its backup."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.stores import FULL_OWNER, NOTHING, UUID, memory, passage

from commonplace.errors import StoreError, UsageError
from commonplace.store.store import Store
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
        tokens = TokenEntry(1, 1, new.token_ids, new.vector, at=1.5, session="s")
        assert store.passages("n", [1]) == {1: Passage(1, UUID, 1, 0, chunk)}
        assert store.tokens("n", [1]) == {1: tokens}
        assert store.tail("n", 0) == [tokens]
        assert store.entries("n", [1]) == {1: entry}
        assert list(store.entries_since("n", 0, 1)) == [entry]

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "a\x01b",
            "\x01",
            "\ue000",
            "a\uf8ffb",
            "\U0001f600",
            "\U0001f600",
            "İıſß",
            "\ufeff\ufffe\uffff",
            "S\ue080",
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


class TestBackup:
    def test_a_backup_is_a_store_with_the_same_id_numbers_and_changes(self, store: Store, tmp_path: Path) -> None:
        """An index that fits the store fits its backup."""
        store.set_embedding(Embedding("static", "1", 4))
        store.put_owners("n", [OwnerWrite(FULL_OWNER, (passage("one"), passage("two"))), memory("b", "three")])
        store.put_owners("m", [memory("b", "four", session="s")])
        store.put_owners("n", [memory("b", "five")])
        store.delete_owners("m", [3])
        store.backup(tmp_path / "copy.db")
        copy = Store.open(tmp_path / "copy.db", create=False)
        numbers = range(1, 10)
        for ask in (
            lambda s: (s.id, s.change(), s.embedding(), s.namespaces(), s.counts(), s.check()),
            lambda s: (s.artifacts("n"), s.owners("n", numbers), s.passages("n", numbers), s.tokens("n", numbers)),
            lambda s: [list(s.entries_since(name, n, n + 1)) for name in "nm" for n in range(5)],
            lambda s: [s.deleted_since("n", n, n + 1) for n in range(5)],
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
