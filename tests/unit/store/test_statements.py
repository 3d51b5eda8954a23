"""Statements in files of SQL."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from commonplace.store.statements import SHARED, Statements, named_statements

STORE = Path(importlib.import_module("commonplace.store").__path__[0])
ORDERS = ("newest", "used", "idle", "stored", "changed", "id", "archived")
FILES = ("change", "check", "embeddings", "graph", "memories", "owners", "postings")


def file_of(text: str) -> str:
    """Return the file of SQL that a module reads, "" where it reads none."""
    return next(iter(re.findall(r'SQL: Final = Statements\("(\w+)"\)', text)), "")


def asked_for() -> set[tuple[str, str]]:
    """Return which statements of which files the store names, those that go by the order of a selection left out."""
    found = set[tuple[str, str]]()
    for path in STORE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for of, name in re.findall(r"""(\w+\.)?SQL\[["'](\w+)["']\]""", text):
            file = "owners" if of in ("owners.", "queries.") else file_of(text)
            found.add((file, name))
        found |= {("owners", name) for name in re.findall(r'_of_numbers\("(\w+)"', text)}
    return found


@pytest.mark.parametrize("file", FILES)
def test_each_statement_of_a_file_is_used(file: str) -> None:
    """A statement that nobody asks for, in the program or in another statement, would never be run."""
    parts = set(re.findall(r"\{(\w+)\}", (STORE / "sql" / f"{file}.sql").read_text(encoding="utf-8")))
    [python] = (text for path in STORE.glob("*.py") if file_of(text := path.read_text(encoding="utf-8")) == file)
    spoken = {name for of, name in asked_for() if of == file} | parts | set(re.findall(r'"(\w+)"', python))
    by_order = {f"by_{order}" for order in ORDERS} if file == "memories" else set()
    assert {name for name, _ in named_statements(file)} <= spoken | by_order


def test_each_statement_that_is_asked_for_is_there() -> None:
    """A misspelt name would show only where it is run."""
    for file, name in asked_for():
        assert Statements(file)[name], (file, name)


@pytest.mark.parametrize("file", FILES)
def test_comments_are_no_part_of_a_statement(file: str) -> None:
    """A colon in a comment would be taken for the name of a value."""
    assert all("--" not in Statements(file)[name] for name, _ in named_statements(file))


def test_a_column_that_is_added_to_a_record_is_read_and_written() -> None:
    """The columns of a record are nowhere spelled out."""
    assert 'o."references"' in Statements("owners")["owners"]
    assert '"references" = :references' in Statements("change")["update_owner"]
    assert "substr(w.content" in SHARED["entry"]
