"""`Engine.in_namespace`: another namespace of the same store, by the same connections."""

from __future__ import annotations

from pathlib import Path

import pytest

import commonplace
from commonplace.errors import UsageError, VersionConflictError


def test_namespaces_of_one_engine_see_nothing_of_each_other(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book, book.in_namespace("second") as other:
        kept = other.remember("The kettle is in the attic")
        assert [hit.owner_id for hit in other.recall("kettle attic").hits] == [kept.id]
        assert not book.recall("kettle attic").hits
        assert other.namespace == other.settings.store.namespace == "second"
        assert book.namespaces() == ["second"]


def test_closing_the_second_leaves_the_first_open(tmp_path: Path) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        with book.in_namespace("second") as other:
            other.remember("The kettle is in the attic")
        assert book.remember("The ladder is in the shed").version == 1


@pytest.mark.parametrize("name", ["", " ", "a\nb", "n" * 201])
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book, pytest.raises(UsageError, match="namespace"):
        book.in_namespace(name)


def test_of_two_writers_that_saw_one_version_the_second_is_refused(tmp_path: Path) -> None:
    """Whoever changes what they have not seen overwrites it."""
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        memory = book.remember("The office is in Porto")
        assert book.update(memory.id, "The office is in Lisbon", if_version=1).version == 2
        with pytest.raises(VersionConflictError, match="has version 2, not 1") as caught:
            book.update(memory.id, "The office is in Faro", if_version=1)
        assert caught.value.version == 2
        assert book.update(memory.id, tier="long", if_version=2).tier == "long"
        with pytest.raises(VersionConflictError):
            book.update(memory.id, tier="medium", if_version=2)
        assert book.get(memory.id).content == "The office is in Lisbon"
