"""Convert records to rows and rows to records, by the schema.

For all kinds of records, this module refuses or repairs what no database can store: an integer beyond 64 bits, a time
that is NaN, and invalid characters.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from commonplace.dataclasses import replace
from commonplace.errors import UsageError
from commonplace.store.dialect import SPACE, Conflict, Database, Written, insert, selected, where
from commonplace.store.schema import SCHEMA, Column, Table, table_of
from commonplace.text.characters import storable, storable_json

Row = tuple[Any, ...]
"""One row as the driver returns it; the schema, which no type checker sees, defines the types of its columns."""
Values = dict[str, Any]
"""The values of a row by column: texts, numbers, bytes, None for NULL, and lists as JSON or, once decoded, tuples."""

T = TypeVar("T")

_INT64: Final = 2**63
NO_VALUES: Final[Mapping[str, Any]] = {}
_MAX_BATCH_ROWS: Final = 12
"""Largest number of rows that one statement inserts; the cost of more round trips is small for larger batches."""


class Form(Generic[T]):
    """The mapping between the records of one class and the rows of their table.

    Attributes:
        columns: the columns that hold the record's fields, in the order of the fields.
    """

    def __init__(self, record: type[T]) -> None:
        self.record = record
        self.table = table_of(record)
        self.columns = self.table.record_columns
        self._values = attrgetter(*(column.name for column in self.columns))
        self._names = self.names(self.table.name)
        coded = [(index, column) for index, column in enumerate(self.columns) if column.is_coded]
        self._encoders = [(column.name, _encoded if column.is_list else int) for _, column in coded]
        self._decoders = [(index, unlisted if column.is_list else bool) for index, column in coded]

    def names(self, alias: str = "") -> str:
        """Return the columns for a SELECT, in the order that `build` takes."""
        return ", ".join(selected(column, alias) for column in self.columns) if alias else self._names

    def pack(self, record: T, name: object = None) -> Values:
        """Check a record with `checked` and return its values by column."""
        return self.row(checked(record, name))

    def row(self, record: T) -> Values:
        """Return the values by column of a record that `checked` returned."""
        row = dict(zip((column.name for column in self.columns), self._values(record), strict=True))
        for column, encode in self._encoders:
            row[column] = encode(row[column])
        return row

    def build(self, row: Sequence[Any]) -> T:
        """Build the record of a row."""
        return self.record(*self.decode(row))

    def decode(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return the fields of a row's record, in the order of the fields."""
        if not self._decoders:
            return row
        values = list(row)
        for index, decode in self._decoders:
            values[index] = decode(values[index])
        return values


_forms: dict[type, Form[Any]] = {}


def form_of(record: type[T]) -> Form[T]:
    """Return the form of the records of a class."""
    form = _forms.get(record)
    if form is None:
        form = _forms[record] = Form(record)
    return form


_WORD: Final = re.compile(r"(?<!:)\b\w+")


@lru_cache(maxsize=512)
def named_in(sql: str) -> frozenset[str]:
    """Return the tables that a statement names."""
    return frozenset(SCHEMA).intersection(_WORD.findall(sql))


def insert_rows(db: Database, table: Table, rows: Sequence[Values], conflict: Conflict = "refuse") -> None:
    """Write rows that have the same columns."""
    if not rows:
        return
    names = tuple(rows[0])
    if len(rows) == 1:
        db.execute(insert(table, names, conflict), rows[0])
    elif len(rows) <= _MAX_BATCH_ROWS:
        values = {f"{name}_{index}": value for index, row in enumerate(rows) for name, value in row.items()}
        db.execute(insert(table, names, conflict, len(rows)), values)
    elif insert_many := getattr(db, "insert_many", None):  # a server has a faster way of its own
        insert_many(table, names, conflict, rows)
    else:
        db.executemany(insert(table, names, conflict), rows)


class _NoRows:
    rowcount = 0


def drop(db: Database, table: str, **key: Any) -> Written:
    """Delete the rows whose columns have these values, or one of a list."""
    condition = where(SCHEMA[table], key)
    return _NoRows() if condition is None else db.execute(f"DELETE FROM {table} WHERE {condition[0]}", condition[1])


class _RecordName:
    """The name of a record in a message, formatted only when a record is refused."""

    def __init__(self, record: object) -> None:
        self._record = record

    def __str__(self) -> str:
        kind = re.sub(r"\B(?=[A-Z])", " ", type(self._record).__name__).lower()
        id_ = getattr(self._record, "id", getattr(self._record, "name", None))
        return kind if id_ is None else f"{kind} {id_!r:.80}"


def checked(record: T, name: object = None) -> T:
    """Return a record as it is stored: with U+FFFD in texts in place of characters that no database can hold.

    Args:
        name: the record's name in messages, by default its class and id.

    Raises:
        UsageError: a name or label contains such a character, an integer needs more than 64 bits, or a time or real
            number is NaN.
    """
    name = name or _RecordName(record)
    mended = {}
    for column in form_of(type(record)).columns:
        value = getattr(record, column.name)
        if not value:  # zero and empty values are valid
            continue
        valid = tuple(_valid(name, column, item) for item in value) if column.is_list else _valid(name, column, value)
        if valid is not value and valid != value:
            mended[column.name] = valid
    return replace(record, **mended) if mended else record  # type: ignore[type-var]


def _valid(name: object, column: Column, value: Any) -> Any:
    """Return a value as its column stores it."""
    match column.role:
        case "text" | "texts":
            return storable(value)
        case "json":
            return storable_json(value)
        case "time" | "times":
            check_times(name, value)
        case "number":
            refuse_wide(name, value)
        case "real":
            if math.isnan(value):
                raise UsageError(f"the {column.name} of {name} is not a number", remedy="give a number")
        case "flag" | "bytes":
            pass
        case _ if storable(value) is not value:
            refuse_unstorable(f"the {column.name} of {name},", value)
    return value


def refuse_unstorable(label: object, *names: str) -> None:
    """Refuse names and labels with characters that no database can hold."""
    for name in names:
        if storable(name) != name:
            raise UsageError(
                f"{label} {name!r:.80} holds NUL or half of a surrogate pair, which no store can keep",
                remedy="give it without such characters",
            )


def check_times(name: object, *times: float | None) -> None:
    """Refuse times that are NaN; None and infinities are valid.

    Args:
        name: what the times belong to, formatted only when one is refused.
    """
    if any(time is not None and math.isnan(time) for time in times):
        raise UsageError(f"a time of {name} is not a number", remedy="give seconds since the epoch")


def refuse_wide(name: object, *integers: int) -> None:
    """Refuse an integer beyond 64 bits."""
    for integer in integers:
        if not -_INT64 <= integer < _INT64:
            raise UsageError(f"{integer} in {name} needs more than 64 bits; the limit is 2^63 - 1")


def _encoded(values: tuple[Any, ...]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) if values else ""


@lru_cache(maxsize=1024)
def unlisted(text: str) -> tuple[Any, ...]:
    """Decode the text of a list column into a tuple."""
    return tuple(json.loads(text)) if text else ()


RowQuery = tuple[Table, Mapping[str, Sequence[Any]]]
"""A table and, by column, the accepted values; no columns select all rows."""


def rows_of(db: Database, namespace: str | None, queries: Iterable[RowQuery]) -> Iterator[tuple[Table, Values]]:
    """Yield rows of several tables, of one namespace or of all; a server gets all queries at once."""
    results: list[tuple[Table, Iterable[Row]]] = []
    for table, wanted in queries:
        condition = where(table, wanted)
        if condition is not None:
            scope = f"namespace = {SPACE}" if namespace is not None and table.has_namespace else ""
            terms = " AND ".join(filter(None, (condition[0], scope))) or "true"
            columns = ", ".join(selected(column, table.name) for column in table.columns)
            sql = f"SELECT {columns} FROM {table.name} WHERE {terms}"
            results.append((table, db.execute(sql, {"namespace": namespace, **condition[1]})))
    for table, rows in results:
        names = [column.name for column in table.columns]
        decoders = [(coded.name, unlisted if coded.is_list else bool) for coded in table.columns if coded.is_coded]
        for row in rows:
            values = dict(zip(names, row, strict=True))
            for name, decode in decoders:
                if values[name] is not None:
                    values[name] = decode(values[name])
            yield table, values


def hanging_rows(db: Database, table: Table, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
    """Yield rows of a numbered table and all rows that refer to them by number, directly or not, with their tables."""
    asked: list[RowQuery] = [(table, {table.key[-1]: numbers})]
    while asked:
        found_numbers: defaultdict[str, list[int]] = defaultdict(list)
        for source, row in rows_of(db, namespace, asked):
            if source.is_numbered:
                found_numbers[source.name].append(row[source.key[-1]])
            yield source, row
        asked = []
        for child in SCHEMA.values():
            # Only the first column that refers to rows counts: rows of a passage also belong to its owner.
            references = (col for col in child.columns if col.role == "key" and col.refers not in ("", "namespaces"))
            reference = next(references, None)
            if reference is not None and reference.refers in found_numbers:
                asked.append((child, {reference.name: found_numbers[reference.refers]}))


def cleaned(record: T, text: Callable[[str], str], value: Callable[[Any], Any]) -> T:
    """Return a record with secrets removed, except in names; drop texts of a list that become equal to earlier ones.

    Args:
        text: cleans a text.
        value: cleans a decoded JSON value.
    """
    changed: dict[str, Any] = {}
    for column in table_of(type(record)).record_columns:
        original = getattr(record, column.name)
        if column.role == "json":
            cleaned_value = value(parsed := json.loads(original))
            changed |= {} if cleaned_value == parsed else {column.name: json.dumps(cleaned_value, sort_keys=True)}
        elif column.is_cleaned:
            clean = tuple(map(text, original)) if column.is_list else text(original)
            changed[column.name] = clean if clean == original or not column.is_list else tuple(dict.fromkeys(clean))
    return replace(record, **changed)  # type: ignore[type-var] # a dataclass


def names_of(record: object) -> Iterator[str]:
    """Yield the names in a record, which cannot change without changing its identity."""
    for column in table_of(type(record)).record_columns:
        if column.is_name:
            value = getattr(record, column.name)
            yield from value if column.is_list else (value,)
