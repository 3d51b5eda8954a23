"""What databases say in different words, and what SQLite does; PostgreSQL's part is postgres.py."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol

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


class Written(Protocol):
    """How many rows a statement wrote; a server is waited for where it is asked."""

    @property
    def rowcount(self) -> int: ...


class Rows(Written, Protocol):
    """What a statement found, or how many rows it wrote."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection inside a transaction, whose statements name their values `:name`."""

    def execute(self, sql: str, values: Mapping[str, Any] = ..., /) -> Rows: ...
    def executemany(self, sql: str, rows: Iterable[Mapping[str, Any]], /) -> object: ...


Read = tuple[str, Mapping[str, Any]]
"""A statement and its values."""

Conflict = Literal["refuse", "replace", "keep", "add"]
"""What happens where a row with the key of a new one is there: an error, the new one counts, the old one, their sum."""


def each(name: str) -> str:
    """Return a table of one column `value` with what the list of numbers of that name holds, for a FROM."""
    return f"json_each(:{name})"


def among(name: str) -> str:
    """Return the values of the list of texts of that name, for an IN."""
    return f"(SELECT value FROM json_each(:{name}))"


def among_numbers(name: str) -> str:
    """Return the values of the list of numbers of that name, for an IN."""
    return f"(SELECT j.value FROM {each(name)} j)"


SPACE: Final = "(SELECT number FROM namespaces WHERE name = :namespace)"
"""The number of the namespace that a statement is about."""


def where(table: Table, wanted: Mapping[str, Any]) -> Read | None:
    """Return the condition that columns have some values, and the values as a statement takes them.

    Args:
        wanted: by column a value, or a list of which it must have one. None is returned where a list is empty: no row
            has one of none.
    """
    terms, values = [], {}
    for name, value in wanted.items():
        if isinstance(value, str | int | float):
            terms.append(f"{table.name}.{quoted(name)} = :{name}")
            values[name] = value
        elif value:
            several = among if table[name].is_text else among_numbers
            terms.append(f"{table.name}.{quoted(name)} IN {several(name)}")
            values[name] = listed(value)
        else:
            return None
    return " AND ".join(terms), values


def selected(column: Column, row: str) -> str:
    """Return what a column holds, for a SELECT; `row` is the alias of its table."""
    name = f"{row}.{quoted(column.name)}"
    if not column.is_placed:
        return name
    part = f"substr(w.content, CAST({row}.place AS INTEGER), CAST({row}.length AS INTEGER))"
    placed = f"(SELECT {part} FROM memories w WHERE w.namespace = {row}.namespace AND w.owner = {row}.owner)"
    return f"CASE WHEN {row}.length = 0 THEN {name} ELSE coalesce({placed}, '') END"


def listed(values: Iterable[str | int]) -> str:
    """Return a list as `each` and `among` take it: one value, however long it is."""
    return json.dumps(list(values))


def listed_numbers(numbers: Iterable[int]) -> str:
    """Return numbers, of NumPy's too, as `each` takes them, in the order of the pages they are on.

    One that needs more than 64 bits is left out: nothing has it.
    """
    ordered = sorted(map(int, numbers))
    if ordered and not (ordered[0] >= -(2**63) and ordered[-1] < 2**63):
        ordered = [number for number in ordered if -(2**63) <= number < 2**63]
    return listed(ordered)


@cache
def insert(table: Table, names: tuple[str, ...], conflict: Conflict, rows: int = 0) -> str:
    """Return the statement that writes a row of these columns; with `rows` so many, whose values are named `name_0`."""
    columns, ends = ", ".join(map(quoted, names)), [f"_{row}" for row in range(rows)] or [""]
    values = "), (".join(", ".join(f":{name}{end}" for name in names) for end in ends)
    key = table.unique or table.key
    kept = {*key, *table.key}  # a row that takes another's place takes its number, too
    others = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names if name not in kept)
    sums = ", ".join(f"{name} = {table.name}.{name} + excluded.{name}" for name in names if name not in kept)
    rest = {
        "refuse": "",
        "replace": f" ON CONFLICT ({', '.join(map(quoted, key))}) DO {f'UPDATE SET {others}' if others else 'NOTHING'}",
        "keep": " ON CONFLICT DO NOTHING",
        "add": f" ON CONFLICT ({', '.join(map(quoted, key))}) DO UPDATE SET {sums}",
    }
    return f"INSERT INTO {table.name} ({columns}) VALUES ({values}){rest[conflict]}"


def initial_sql() -> Iterator[str]:
    """Yield the statements that make an empty store: tables from the schema, the rest from files."""
    yield f"PRAGMA application_id = {APPLICATION_ID}"
    for table in TABLES:  # without a number of their own, rows are kept in the order of their key
        yield create_table(table) + ("" if table.is_numbered else " WITHOUT ROWID")
    for name in ("indexes", "indexes_sqlite", "views"):
        yield from statements(name)


def script(name: str) -> str:
    """Return the statements of a file of SQL."""
    return Path(__file__).with_name("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def statements(name: str) -> Iterator[str]:
    """Yield the statements of a file of SQLite's; `executescript` would commit the transaction that it runs in."""
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
    """Return the statement that makes a table.

    Args:
        types: of columns by role, `text` of all others.
        counting: what makes a database number the namespaces.
        is_spread: rows may be in different places by namespace, so that every key names it. Else a number, which
            holds it, is the row's id.
    """
    is_spread &= table.has_namespace
    key = table.key[-1] if table.is_numbered and not is_spread else ""
    lines = [] if key else [f"PRIMARY KEY ({', '.join(map(quoted, table.key))})"]
    for place, column in enumerate(table.columns):
        rest = "" if column.is_optional else " NOT NULL"
        if column.name == key:
            rest = f" PRIMARY KEY {counting}" if table.name == "namespaces" else " PRIMARY KEY"
        if column.is_enforced and is_spread and column.refers != "namespaces":
            lines.append(f"FOREIGN KEY (namespace, {quoted(column.name)}) REFERENCES {column.refers}")
        elif column.is_enforced:
            rest += f" REFERENCES {column.refers}"
        lines.insert(place, f"{quoted(column.name)} {types.get(column.role, text)}{rest}")
    body = ",\n    ".join(lines)
    return f"CREATE TABLE {table.name} (\n    {body}\n)"


def quoted(name: str) -> str:
    """Return the name of a column as SQL takes it, words of SQL too."""
    return f'"{name}"'
