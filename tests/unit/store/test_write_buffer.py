"""New rows of a transaction are held back, and seen all the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from commonplace.store.change import Change
from commonplace.store.database import begin_store
from commonplace.store.schema import SCHEMA

DUE = SCHEMA["mirror_due"]


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        begin_store(db, "id")
        yield db


def test_rows_of_a_table_are_one_statement_once_another_names_it(db: sqlite3.Connection) -> None:
    """Else a transaction would not read its own writes, or write them one by one."""
    statements: list[str] = []
    buffer = Change(db, "n")
    db.set_trace_callback(statements.append)
    for id_ in "abb":
        buffer.add_rows(DUE, [{"namespace": 1, "id": id_}], "keep")
    buffer.execute("SELECT :mirror_due FROM meta", {"mirror_due": 1})
    assert [each.split()[0] for each in statements if each != "BEGIN "] == ["SELECT"]
    assert buffer.peek("SELECT count(*) FROM mirror_due", {}).fetchone() == (0,)
    assert buffer.execute("SELECT id FROM mirror_due").fetchall() == [("a",), ("b",)]
    assert len([each for each in statements if each.startswith("INSERT")]) == 1


def test_of_two_rows_with_one_key_the_last_replaces(db: sqlite3.Connection) -> None:
    """One statement that writes a row twice is an error to some databases."""
    buffer = Change(db, "n")
    for value in ("old", "new"):
        buffer.add_rows(SCHEMA["meta"], [{"key": "k", "value": value}], "replace")
    buffer.flush()
    assert db.execute("SELECT value FROM meta WHERE key = 'k'").fetchall() == [("new",)]


def test_rows_that_others_refer_to_are_written_first(db: sqlite3.Connection) -> None:
    """The database refuses a count of a namespace that is not there."""
    db.execute("PRAGMA foreign_keys = ON")
    buffer = Change(db, "n")
    buffer.add_rows(SCHEMA["counts"], [{"namespace": 7, "kind": "memory", "owners": 0, "passages": 0, "text_bytes": 0}])
    buffer.add_rows(SCHEMA["namespaces"], [{"number": 7, "name": "n"}])
    assert buffer.execute("SELECT namespace FROM counts").fetchall() == [(7,)]
