"""SQL that depends on the database, and SQLite's part of it; PostgreSQL's part is in postgres.py."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from commonplace.store.schema import TABLES, Column, Role, Table

APPLICATION_ID: Final = 1131245680
"""SQLite application id of a store file: “Cmnp” in ASCII."""

_TYPES: Final[Mapping[Role, str]] = {
    "key": "INTEGER",
    "number": "INTEGER",
    "flag": "INTEGER",
    "time": "REAL",
    "real": "REAL",
    "bytes": "BLOB",
}


class Written(Protocol):
    """The number of rows that a statement wrote; reading it waits for a server's response."""

    @property
    def rowcount(self) -> int: ...


class Rows(Written, Protocol):
    """The rows that a statement returned, or how many it wrote."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection inside a transaction; statements refer to their values as `:name`."""

    def execute(self, sql: str, values: Mapping[str, Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> object: ...


Read = tuple[str, Mapping[str, Any]]
"""A statement and its values."""

Conflict = Literal["refuse", "replace", "keep", "add"]
"""What to do if a row with a new row's key exists: raise an error, keep the new row, keep the old one, or add them."""


def unnest(name: str) -> str:
    """Return a FROM item with one column `value` that lists the numbers in the statement's value `name`."""
    return f"json_each(:{name})"


def among(name: str) -> str:
    """Return the operand of an IN over the list of texts in the statement's value `name`."""
    return f"(SELECT value FROM json_each(:{name}))"


def among_numbers(name: str) -> str:
    """Return the operand of an IN over the list of numbers in the statement's value `name`."""
    return f"(SELECT j.value FROM {unnest(name)} j)"


SPACE: Final = "(SELECT number FROM namespaces WHERE name = :namespace)"
"""SQL for the number of the namespace that the value `namespace` of a statement names."""


def where(table: Table, criteria: Mapping[str, Any]) -> Read | None:
    """Return the condition that columns have these values, and the values of the statement.

    Args:
        criteria: by column, the value or a list of alternatives. If a list is empty, no row can match: the result is
            None.
    """
    terms, values = [], {}
    for name, value in criteria.items():
        if isinstance(value, str | int | float):
            terms.append(f"{table.name}.{quoted(name)} = :{name}")
            values[name] = value
        elif value:
            operand = among if table[name].is_text else among_numbers
            terms.append(f"{table.name}.{quoted(name)} IN {operand(name)}")
            values[name] = listed(value)
        else:
            return None
    return " AND ".join(terms), values


def selected(column: Column, row: str) -> str:
    """Return the expression that selects the value of a column; `row` is the alias of its table."""
    name = f"{row}.{quoted(column.name)}"
    if not column.is_placed:
        return name
    excerpt = f"substr(w.content, CAST({row}.place AS INTEGER), CAST({row}.length AS INTEGER))"
    placed = f"(SELECT {excerpt} FROM memories w WHERE w.namespace = {row}.namespace AND w.owner = {row}.owner)"
    return f"CASE WHEN {row}.length = 0 THEN {name} ELSE coalesce({placed}, '') END"


def listed(values: Iterable[str | int]) -> str:
    """Encode a list, of any length, as one value of a statement for `unnest` and `among`."""
    return json.dumps(list(values))


def listed_numbers(numbers: Iterable[int]) -> str:
    """Encode numbers, also NumPy's, as one value for `unnest`: ascending, which is the order of their database pages.

    Numbers beyond 64 bits are left out: no row has one.
    """
    ordered = sorted(map(int, numbers))
    if ordered and not (ordered[0] >= -(2**63) and ordered[-1] < 2**63):
        ordered = [number for number in ordered if -(2**63) <= number < 2**63]
    return listed(ordered)


@cache
def insert(table: Table, names: tuple[str, ...], conflict: Conflict, rows: int = 0) -> str:
    """Return the statement that inserts a row of these columns, or `rows` rows with values `name_0`, `name_1`, …"""
    columns, ends = ", ".join(map(quoted, names)), [f"_{row}" for row in range(rows)] or [""]
    values = "), (".join(", ".join(f":{name}{end}" for name in names) for end in ends)
    key = table.unique or table.key
    fixed = {*key, *table.key}  # a row that replaces another one keeps its number
    sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names if name not in fixed)
    sums = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in names if name not in fixed)
    clauses = {
        "refuse": "",
        "replace": f" ON CONFLICT ({', '.join(map(quoted, key))}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}",
        "keep": " ON CONFLICT DO NOTHING",
        "add": f" ON CONFLICT ({', '.join(map(quoted, key))}) DO UPDATE SET {sums}",
    }
    return f"INSERT INTO {table.name} ({columns}) VALUES ({values}){clauses[conflict]}"


def initial_sql() -> Iterator[str]:
    """Yield the statements that create an empty store: tables from the schema, the rest from files."""
    yield f"PRAGMA application_id = {APPLICATION_ID}"
    for table in TABLES:  # rows without a number are stored in the order of their key
        yield create_table(table) + ("" if table.is_numbered else " WITHOUT ROWID")
    for name in ("indexes", "indexes_sqlite", "views"):
        yield from statements(name)


def script(name: str) -> str:
    """Return the text of an SQL file."""
    return Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def statements(name: str) -> Iterator[str]:
    """Yield the statements of a SQLite script one by one; `executescript` would commit the open transaction."""
    pending = ""
    for line in script(name).splitlines(True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def create_table(
    table: Table,
    types: Mapping[Role, str] = _TYPES,
    text: str = "TEXT",
    *,
    counting: str = "AUTOINCREMENT",
    is_spread: bool = False,
) -> str:
    """Return the statement that creates a table.

    Args:
        types: column types by role; all other roles have the type `text`.
        counting: the constraint that makes the database number namespaces.
        is_spread: the table is partitioned by namespace, so that every key includes it. Otherwise the row's number,
            which contains the namespace's, is the primary key.
    """
    is_spread &= table.has_namespace
    key = table.key[-1] if table.is_numbered and not is_spread else ""
    lines = [] if key else [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"]
    for index, column in enumerate(table.columns):
        constraint = "" if column.is_optional else " NOT NULL"
        if column.name == key:
            constraint = f" PRIMARY KEY {counting}" if table.name == "namespaces" else " PRIMARY KEY"
        if column.is_enforced and is_spread and column.refers != "namespaces":
            lines.append(f"FOREIGN KEY (namespace, {quoted(column.name)}) REFERENCES {column.refers}")
        elif column.is_enforced:
            constraint += f" REFERENCES {column.refers}"
        lines.insert(index, f"{quoted(column.name)} {types.get(column.role, text)}{constraint}")
    body = ",\n    ".join(lines)
    return f"CREATE TABLE {table.name} (\n    {body}\n)"


def quoted(name: str) -> str:
    """Quote the name of a column, which may be a keyword of SQL."""
    return f'"{name}"'
