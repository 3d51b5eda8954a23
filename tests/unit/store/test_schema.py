"""The list of what is stored agrees with the database, with the records, and with what is erased and exported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from commonplace.errors import StoreVersionError
from commonplace.store import check, memories
from commonplace.store.database import begin_store
from commonplace.store.schema import KINDS, SCHEMA, TABLE_OF_KIND, TABLES, VERSION, Column, Role, Table
from commonplace.store.store import Store
from commonplace.types import Owner

ROLES = {
    "str": {"id", "label", "text", "json", "word", "digest"},
    "tuple[str, ...]": {"ids", "labels", "texts"},
    "int": {"number"},
    "float": {"time", "real"},
    "float | None": {"time"},
    "tuple[float, ...]": {"times"},
    "bool": {"flag"},
    "bytes": {"bytes"},
}
"""By the type of a field, the roles that its column may have; a type of another name is a choice of words."""


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        begin_store(db, "id")
        yield db


def test_each_column_has_a_role_and_names_a_table_that_is_there() -> None:
    """They are written in a line of words, which no type checker reads."""
    columns = [column for table in TABLES for column in table.columns]
    assert {column.role for column in columns} <= {*get_args(Role)}
    assert {column.refers for column in columns} <= {"", KINDS, *SCHEMA}


def test_the_database_has_these_tables_and_columns(db: sqlite3.Connection) -> None:
    """Whatever else is in the database would be neither exported, nor erased, nor checked."""
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    names.remove("sqlite_sequence")  # SQLite's own, for the numbers of namespaces
    assert names == list(SCHEMA)
    for table in TABLES:
        found = [(name, not_null) for _, name, _, not_null, _, _ in db.execute(f"PRAGMA table_info({table.name})")]
        assert [name for name, _ in found] == [column.name for column in table.columns]
        optional = {column.name for column in table.columns if column.is_optional}
        assert {name for name, not_null in found if not not_null} == optional | (
            {table.key[-1]} if table.is_numbered else set()
        )


def _kept(table: Table) -> list[Field[Any]]:
    """Return the fields of a table's record, but for the stamp of an owner, which has a table of its own."""
    found = fields(table.record) if table.record else ()
    return [field for field in found if (table.record, field.name) != (Owner, "stamp")]


@pytest.mark.parametrize("table", [table for table in TABLES if table.record], ids=lambda table: table.name)
def test_a_record_has_a_column_for_each_field(table: Table) -> None:
    """A field without a column would be lost without a word; a stamp has a table of its own."""
    kept = _kept(table)
    assert [column.name for column in table.record_columns] == [field.name for field in kept]
    for column, field in zip(table.record_columns, kept, strict=True):
        assert column.role in ROLES.get(str(field.type), {"word"}), (table.name, column.name)
        assert column.is_optional == str(field.type).endswith("| None")


def test_every_text_is_in_the_erasure_scan(db: sqlite3.Connection) -> None:
    """A word that is stored in a column which nobody looks through cannot be proved to be gone."""
    for table in TABLES:
        for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table.name})"):
            if kind in {"TEXT", "BLOB"} and table[name].role != "times":
                assert table[name].is_erased, (table.name, name)


def test_what_is_exported_is_in_no_two_places() -> None:
    """What is derived is made anew, and what a line tells is not repeated in it."""
    assert [column.name for column in SCHEMA["knowledge_items"].exported] == ["agent", "metadata"]
    assert [column.name for column in SCHEMA["aliases"].exported] == ["name", "normal", "created_at", "episode"]
    assert SCHEMA["notes"].exported == SCHEMA["counts"].exported == ()


def test_what_a_column_names_is_a_table() -> None:
    """The checks of integrity look for the row in it."""
    named = {column.refers for table in TABLES for column in table.columns} - {""}
    assert named - {KINDS} <= set(SCHEMA)
    assert set(TABLE_OF_KIND.values()) <= set(SCHEMA)


def test_a_key_leads_with_the_namespace() -> None:
    """A database that is spread over several machines puts each namespace on one of them."""
    shared = {"meta", "schema_versions", "namespaces", "operations"}
    for table in TABLES:
        assert table.has_namespace == (table.name not in shared)
        assert (table.key[0] == "namespace") == table.has_namespace


def test_a_secret_is_replaced_in_words_and_reported_in_names() -> None:
    """To rename something would make it another thing."""
    id_, text, word = Column("a", "id"), Column("b", "text"), Column("c", "word")
    assert [column.is_name for column in (id_, text, word)] == [True, False, False]
    assert [column.is_cleaned for column in (id_, text, word)] == [False, True, False]


def test_a_free_text_is_none_of_our_own_words() -> None:
    """A secret in a `word` or a `digest` is never replaced: what people write, as why they close an issue, is text.

    Whoever adds a column of one of these roles for a field that is any text names it here, too.
    """
    free = {
        (table.name, column.name)
        for table in TABLES
        for column, field in zip(table.record_columns, _kept(table), strict=True)
        if column.role in ("word", "digest") and str(field.type) == "str"
    }
    sums = {("file_stamps", "sha256"), ("mirror_pages", "sha256"), ("mirror_blocks", "digest")}
    assert free == sums | {
        ("knowledge_items", "digest"),
        ("notes", "kind"),
        ("happenings", "what"),
        ("issue_events", "act"),
    }


@pytest.mark.parametrize(("version", "remedy"), [(VERSION - 1, "export it"), (VERSION + 1, "upgrade Commonplace")])
def test_a_store_of_another_schema_is_refused(tmp_path: Path, version: int, remedy: str) -> None:
    """No program writes what it does not understand, and an older store is not taken for a damaged one."""
    path = tmp_path / "store.db"
    Store.create(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE schema_versions SET version = ?", (version,))
    with pytest.raises(StoreVersionError, match=f"has schema version {version}, .*{VERSION}; {remedy}"):
        Store.open(path, create=False)


def test_a_column_that_names_a_row_is_checked_without_another_line(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who adds a column must not have to think of `doctor`."""
    links = SCHEMA["links"]
    columns = tuple(replace(each, refers="episodes") if each.name == "source" else each for each in links.columns)
    monkeypatch.setattr(check, "TABLES", (replace(links, columns=columns),))
    db.execute("INSERT INTO namespaces VALUES (1, 'n')")
    db.execute("INSERT INTO links VALUES (1, 'a', 'b', 'related', '', 1.0, 0.0, NULL, '')")
    assert check.problems(db, is_file=True) == ["There are links whose source is gone: 1."]


def test_what_says_the_same_is_found_by_its_digest_and_bands_alone(db: sqlite3.Connection) -> None:
    """It is asked before each memory that is stored: to read all of a namespace would cost more with each."""
    asked = {"namespace": "n", "digest": "ab", "bands": "[1]"}
    plan = [detail for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {memories.SQL['alike']}", asked)]
    assert "SEARCH memories USING INDEX memories_by_digest (namespace=? AND digest=?)" in plan
    assert "SEARCH memory_bands USING PRIMARY KEY (namespace=? AND band=?)" in plan


def test_what_overtook_a_memory_is_found_by_its_links_and_episodes_alone(db: sqlite3.Connection) -> None:
    """It is asked of each hit of every search: to read all links of a namespace for each takes longer than the rest."""
    asked = {"namespace": "n", "numbers": "[1]", "as_of": None, "doubt": 0.25}
    plan = [detail for *_, detail in db.execute(f"EXPLAIN QUERY PLAN {memories.SQL['statements']}", asked)]
    assert "SEARCH l USING INDEX links_by_target (namespace=? AND target=?) LEFT-JOIN" in plan
    assert [line for line in plan if line.endswith("(namespace=?)")] == []
