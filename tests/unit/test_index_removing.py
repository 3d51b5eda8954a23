"""How older generations of the index go: whose files are emptied, and whose are left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.test_index_directory import created, entry, held, make, published

from commonplace.errors import IndexFaultError
from commonplace.index.contract import Scope
from commonplace.types import Filter


def test_only_the_published_generation_is_left_where_nobody_has_an_older_one_open(tmp_path: Path) -> None:
    """What was forgotten stands in the generations before: they must go, not some update later."""
    index = created(tmp_path)
    index.update([entry(1, "apple")], [], upto=1)
    index.update([entry(2, "pear")], [], upto=2, rebuild=True)
    assert len(published(tmp_path)) == 2
    assert index.claim(0)
    assert index.remove_older() == []
    index.release()
    assert published(tmp_path) == ["g00000003"]
    assert held(index, "pear") == [2]


def test_an_update_leaves_a_generation_that_somebody_has_open(tmp_path: Path) -> None:
    """A file that is only removed while it is open is on the disk all the same, and then nobody can find it."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], upto=1)
    assert reader.reader().change == 1
    for number in range(2, 5):
        writer.update([entry(number, "pear")], [], upto=number, rebuild=True)
    assert published(tmp_path) == ["g00000002", "g00000004", "g00000005"]


def test_whoever_rests_in_an_older_generation_cannot_keep_it(tmp_path: Path) -> None:
    """A server that nobody asks for days must not keep on the disk what was forgotten meanwhile."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(number, "apple") for number in range(1, 50)], [], upto=1)
    old = reader.reader()
    kept = [os.open(path, os.O_RDONLY) for path in tmp_path.rglob("g00000002/*/*")]
    writer.update([entry(2, "pear")], [], upto=2, rebuild=True)
    assert writer.remove_older() == []
    assert published(tmp_path) == ["g00000003"]
    assert len(kept) > 5
    assert [os.read(descriptor, 1) for descriptor in kept] == [b""] * len(kept)
    for descriptor in kept:
        os.close(descriptor)
    with pytest.raises(IndexFaultError), old.in_use():
        pytest.fail("it was given out")
    assert held(reader, "pear") == [2]


def test_a_generation_that_is_read_stays_and_is_named_until_that_ends(tmp_path: Path) -> None:
    """To empty a file under a search would end its process."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], upto=1)
    with reader.reading() as old, reader.reading() as same:
        assert same is old
        writer.update([entry(2, "pear")], [], upto=2, rebuild=True)
        assert writer.remove_older() == ["g00000002"]
        assert len(old.lexical.search(["appl"], Scope("default", Filter()), 10).numbers) == 1
    assert writer.remove_older() == []
    assert published(tmp_path) == ["g00000003"]


def test_files_that_two_generations_share_are_emptied_with_the_last_of_them(tmp_path: Path) -> None:
    """An update links what stays the same: the generation in use must lose nothing with the one before it."""
    writer = created(tmp_path)
    writer.update([entry(number, "apple") for number in range(1, 50)], [], upto=1)
    writer.update([entry(50, "pear")], [], upto=2)
    assert writer.remove_older() == []
    assert (writer.verify(), held(writer, "appl"), held(writer, "pear")) == ([], [*range(1, 50)], [50])


def test_what_is_removed_between_choosing_and_reading_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes to forget in that instant must not end a search."""
    writer, reader = created(tmp_path), make(tmp_path)
    writer.update([entry(1, "apple")], [], upto=1)
    old = reader.reader()
    writer.update([entry(2, "pear")], [], upto=2, rebuild=True)
    assert writer.remove_older() == []
    current, chosen = reader.reader, [old]
    monkeypatch.setattr(reader, "reader", lambda: chosen.pop() if chosen else current())
    with reader.reading() as generation:
        assert generation.change == 2
