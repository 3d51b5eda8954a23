"""Read the rows of any table, and replace secrets in any record, by the roles of the columns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from commonplace.store.dialect import quoted
from commonplace.store.rows import pack_id, pack_text, unpack
from commonplace.store.schema import SCHEMA, Column, Table, table_of

T = TypeVar("T")

Values = dict[str, Any]
"""What a row holds by column: texts, tuples of texts or times, numbers, bytes; None where there is nothing."""

_AT_ONCE: Final = 500


def read_rows(db: sqlite3.Connection, table: Table, namespace: str | None, **among: Sequence[Any]) -> Iterator[Values]:
    """Yield the rows of a table, of one namespace or of all.

    Args:
        among: values of which a column must have one; of several columns the first may have many.
    """
    columns = ", ".join(quoted(column.name) for column in table.columns)
    terms, rest = [], list[Any]()
    if namespace is not None and table.has_namespace:
        terms.append("namespace = (SELECT number FROM namespaces WHERE name = ?)")
        rest.append(pack_text(namespace))
    first, *others = among.items() if among else [("", [])]
    for name, values in others:
        terms.append(f"{quoted(name)} IN ({', '.join('?' * len(values))})")
        rest += map(_packed, values)
    for begin in range(0, len(first[1]) if among else 1, _AT_ONCE):
        some = [_packed(value) for value in first[1][begin : begin + _AT_ONCE]]
        chosen = [*terms, f"{quoted(first[0])} IN ({', '.join('?' * len(some))})"] if among else terms
        where = f" WHERE {' AND '.join(chosen)}" if chosen else ""
        for row in db.execute(f"SELECT {columns} FROM {table.name}{where}", (*rest, *some)):  # noqa: S608 - names of ours
            yield {column.name: _plain(column, value) for column, value in zip(table.columns, row, strict=True)}


def hanging_rows(db: sqlite3.Connection, table: Table, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
    """Yield rows of a numbered table, and all that hangs on them through a number, each with its table."""
    held = {table.name: list(numbers)}
    for row in read_rows(db, table, None, **{table.key[-1]: held[table.name]}):
        yield table, row
    for other in SCHEMA.values():
        column = next((each for each in other.columns if each.role == "key" and each.refers in held), None)
        if column is None or not held[column.refers]:
            continue
        rows = list(read_rows(db, other, None, **{column.name: held[column.refers]}))
        yield from ((other, row) for row in rows)
        if other.is_numbered and other.name not in held:
            held[other.name] = [row[other.key[-1]] for row in rows]


def _packed(value: Any) -> Any:
    return pack_id(value) if isinstance(value, str) else value


def _plain(column: Column, value: Any) -> Any:
    if column.role == "bytes" or value is None:
        return value
    if isinstance(value, bytes):
        value = unpack(value)
    if column.is_list:
        return tuple(json.loads(value)) if value else ()
    return bool(value) if column.role == "flag" else value


def cleaned(record: T, text: Callable[[str], str], value: Callable[[Any], Any]) -> T:
    """Return a record without secrets, but for those in names; of two texts of a list that become one, the first.

    Args:
        text: cleans a text.
        value: cleans what JSON holds.
    """
    changed: dict[str, Any] = {}
    for column in table_of(type(record)).record_columns:
        given = getattr(record, column.name)
        if column.role == "json":
            parsed = json.loads(given)
            clean = value(parsed)
            changed |= {} if clean == parsed else {column.name: json.dumps(clean, sort_keys=True)}
        elif column.is_cleaned:
            changed[column.name] = tuple(dict.fromkeys(map(text, given))) if column.is_list else text(given)
    return replace(record, **changed)  # type: ignore[type-var] # a dataclass


def names_of(record: object) -> Iterator[str]:
    """Yield the names in a record, which cannot be changed without making it another thing."""
    for column in table_of(type(record)).record_columns:
        if column.is_name:
            given = getattr(record, column.name)
            yield from given if column.is_list else (given,)
