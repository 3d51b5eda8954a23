"""An index in a place that cannot be written is used all the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from tests.unit.store.test_read_only import without_rights

from commonplace.index.contract import Scope
from commonplace.index.generations import Index
from commonplace.types import Embedding, Head, IndexEntry

EMBEDDING = Embedding("test", "1", 2)


def test_an_index_on_a_read_only_place_is_searched() -> None:
    """People search what others keep and they may not change."""
    directory = Path(tempfile.mkdtemp())
    try:
        entry = IndexEntry(1, 1, "n", "memory", "", "", (), "", "", "", "", "apple", b"\1\0", b"\x7f\x01")
        writer = Index(directory / "index", store_id="s", embedding=EMBEDDING)
        assert writer.claim(0.0)
        writer.update([entry], [], heads={"n": Head(1)}, rebuild=True)
        writer.release()
        writer.close()
        directory.chmod(0o755)
        for place, folders, files in os.walk(directory / "index", topdown=False):
            for name in (*files, *folders):
                path = Path(place) / name
                path.chmod(0o555 if path.is_dir() else 0o444)
        (directory / "index").chmod(0o555)
        with without_rights():
            index = Index(directory / "index", store_id="s", embedding=EMBEDDING)
            generation = index.reader()
            assert generation.fault == ""
            with generation.in_use():
                found = generation.lexical.search(["appl"], Scope("n"), 10)
            index.close()
        assert found.numbers.tolist() == [1]
    finally:
        for place, _, _ in os.walk(directory):
            Path(place).chmod(0o755)
        shutil.rmtree(directory)
