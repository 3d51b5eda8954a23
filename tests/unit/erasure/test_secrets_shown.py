"""What an older release, or an import with redaction off, has stored with a secret is never given out with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.erasure.test_secrets import GONE, TOKEN, spoil

import commonplace
from commonplace.engine import Engine


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store") as book:
        book.remember("Kettle", id="kettle 1", tags=["hot"], entities=["tea"], source="me", metadata={"a": ["b"]})
        book.remember("Teapot", id="pot")
        yield book


def test_memories_are_given_out_with_placeholders_whichever_way(book: Engine) -> None:
    book.link("pot", "kettle 1")
    metadata = f'{{"a": ["{TOKEN}", 1], "token": "x"}}'
    record = {"content": f"Kettle {TOKEN}", "entities": (TOKEN,), "source": TOKEN, "metadata": metadata}
    spoil(book, "kettle 1", record=record)
    assert TOKEN in book._runtime.store.memory("default", "kettle 1").record.content  # type: ignore[union-attr]
    around = book.neighbourhood("pot").memories
    for seen in (book.get("kettle 1"), book.list()[-1], book.versions("kettle 1")[-1], book.touch("kettle 1"), *around):
        if seen.id == "kettle 1":
            assert TOKEN not in str(seen.to_dict())
            assert (seen.content, seen.entities, seen.source) == (f"Kettle {GONE}", (GONE,), GONE)
            assert seen.metadata == {"a": [GONE, 1], "token": "x"}


def test_the_type_of_a_link_is_stored_without_secrets(book: Engine) -> None:
    assert book.link("kettle 1", "pot", f"opened with  {TOKEN}").type == f"opened with {GONE}"
    assert f"opened with {GONE}" in {link.type for link in book.links()}
    assert book.unlink("kettle 1", "pot", f"opened with {TOKEN}") == 1
    book.link("kettle 1", "pot", "warms")
    assert book.unlink("kettle 1", "pot", "warms") == 1
    assert [link for link in book.links() if link.origin != "rule"] == []
