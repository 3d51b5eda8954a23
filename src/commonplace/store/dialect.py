"""What SQLite says in other words than another database would."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from commonplace.store.schema import TABLES, Column, Role, Table

APPLICATION_ID: Final = 1131245680
"""“Cmnp”, by which a file is known as a store."""

_TYPES: Final[Mapping[Role, str]] = {
    "key": "INTEGER",
    "number": "INTEGER",
    "flag": "INTEGER",
    "time": "REAL",
    "real": "REAL",
    "bytes": "BLOB",
}
_FILES: Final = ("indexes", "views")


def initial_sql() -> Iterator[str]:
    """Yield the statements that make an empty store: tables from the schema, indexes and views from their files."""
    yield f"PRAGMA application_id = {APPLICATION_ID}"
    yield from map(create_table, TABLES)
    for name in _FILES:
        yield from _statements(Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8"))


def create_table(table: Table) -> str:
    """Return the statement that makes a table.

    Where one number tells rows apart it is the row's id, and unique in the whole table without naming the namespace;
    other tables are kept in the order of their key.
    """
    key = table.key[-1] if table.is_numbered else ""
    lines = [_column(each, is_key=each.name == key) for each in table.columns]
    if not key:
        lines.append(f"PRIMARY KEY ({', '.join(map(quoted, table.key))})")
    body = ",\n    ".join(lines)
    return f"CREATE TABLE {table.name} (\n    {body}\n)" + ("" if key else " WITHOUT ROWID")


def quoted(name: str) -> str:
    """Return the name of a column as SQL takes it, words of SQL too."""
    return f'"{name}"'


def _column(column: Column, *, is_key: bool) -> str:
    rest = " PRIMARY KEY" if is_key else "" if column.is_optional else " NOT NULL"
    if column.is_enforced:
        rest += f" REFERENCES {column.refers}"
    return f"{quoted(column.name)} {_TYPES.get(column.role, 'TEXT')}{rest}"


def _statements(script: str) -> Iterator[str]:
    """Split a script into statements; `executescript` would commit the transaction that it runs in."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
