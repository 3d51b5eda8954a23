"""Read the rows of any table, and replace secrets in any record, by the roles of the columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from commonplace.dataclasses import replace
from commonplace.store.dialect import SPACE, Database, bound, condition, selected, shape_of
from commonplace.store.rows import Values, decoded
from commonplace.store.schema import SCHEMA, Table, table_of

T = TypeVar("T")


def read_rows(db: Database, table: Table, namespace: str | None, **among: Sequence[Any]) -> Iterator[Values]:
    """Yield the rows of a table, of one namespace or of all.

    Args:
        among: values of which a column must have one.
    """
    terms = [condition(table, shape_of(among))] if among else []
    if namespace is not None and table.has_namespace:
        terms.append(f"namespace = {SPACE}")
    columns = ", ".join(selected(column, table.name) for column in table.columns)
    sql = f"SELECT {columns} FROM {table.name}{' WHERE ' if terms else ''}{' AND '.join(terms)}"  # noqa: S608
    for row in db.execute(sql, {"namespace": namespace, **bound(among)}):
        yield {column.name: decoded(column, value) for column, value in zip(table.columns, row, strict=True)}


def hanging_rows(db: Database, table: Table, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
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
