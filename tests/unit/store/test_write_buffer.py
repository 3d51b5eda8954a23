"""New rows of a transaction are held back, and seen all the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from commonplace.store.rows import WriteBuffer, add_rows
from commonplace.store.schema import SCHEMA

DUE = SCHEMA["mirror_due"]


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE mirror_due (namespace, id, PRIMARY KEY (namespace, id))")
        db.execute("CREATE TABLE meta (key PRIMARY KEY, value)")
        yield db


def test_rows_of_a_table_are_one_statement_once_another_names_it(db: sqlite3.Connection) -> None:
    """Else a transaction would not read its own writes, or write them one by one."""
    statements: list[str] = []
    buffer = WriteBuffer(db)
    db.set_trace_callback(statements.append)
    for id_ in "abb":
        add_rows(buffer, DUE, [{"namespace": 1, "id": id_}], "keep")
    buffer.execute("SELECT :mirror_due FROM meta", {"mirror_due": 1})
    assert [each.split()[0] for each in statements if each != "BEGIN "] == ["SELECT"]
    assert buffer.peek("SELECT count(*) FROM mirror_due", {}).fetchone() == (0,)
    assert buffer.execute("SELECT id FROM mirror_due").fetchall() == [("a",), ("b",)]
    assert len([each for each in statements if each.startswith("INSERT")]) == 1


def test_of_two_rows_with_one_key_the_last_replaces(db: sqlite3.Connection) -> None:
    """One statement that writes a row twice is an error to some databases."""
    buffer = WriteBuffer(db)
    for value in ("old", "new"):
        add_rows(buffer, SCHEMA["meta"], [{"key": "k", "value": value}], "replace")
    buffer.flush()
    assert db.execute("SELECT key, value FROM meta").fetchall() == [("k", "new")]


def test_rows_that_others_refer_to_are_written_first(db: sqlite3.Connection) -> None:
    """The database refuses a passage whose owner is not there."""
    db.execute("PRAGMA foreign_keys = ON")
    db.execute("CREATE TABLE owners (number INTEGER PRIMARY KEY)")
    db.execute("CREATE TABLE passages (number INTEGER PRIMARY KEY, owner REFERENCES owners)")
    buffer = WriteBuffer(db)
    add_rows(buffer, SCHEMA["passages"], [{"number": 7, "owner": 3}])
    add_rows(buffer, SCHEMA["owners"], [{"number": 3}])
    assert buffer.execute("SELECT owner FROM passages").fetchall() == [(3,)]
