"""Memories stand on pages, and what people change on pages is taken in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.mirroring import Book


@pytest.fixture
def book(tmp_path: Path) -> Book:
    return Book(tmp_path)


def test_a_memory_and_an_edit_of_it_go_round(book: Book) -> None:
    memory = book.remember("We chose Postgres for billing.", tags=["decision"])
    book.sync()
    assert book.page() == (
        "# 2026-11-21\n\n## 12:00 We chose Postgres for billing\n\nWe chose Postgres for billing.\n\nTags: #decision\n"
        f"<!-- memory: {memory.id} -->\n"
    )
    book.edit("Postgres for billing.", "MySQL for billing.")
    report = book.sync()
    assert report.updated == 1
    assert book.contents() == ["We chose MySQL for billing."]
    assert book.is_settled()
