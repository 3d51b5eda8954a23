"""Turn records into rows and rows into records, as the schema says.

What no store could keep is refused or mended here, once for all kinds of records: a number beyond 64 bits, a time that
is not a number, and characters that no database holds.
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
"""One row as the driver gives it: the columns' types are the schema's, which no type checker sees."""
Values = dict[str, Any]
"""What a row holds by column: texts, lists as JSON or once decoded as tuples, numbers, bytes; None for nothing."""

T = TypeVar("T")

_INT64: Final = 2**63
NO_VALUES: Final[Mapping[str, Any]] = {}
_ROWS_AT_ONCE: Final = 12
"""So many rows go in one statement; where there are more, a round trip each counts for little."""


class Form(Generic[T]):
    """How the records of one class are kept in their table.

    Attributes:
        columns: those that hold the record's fields, in the order of the fields.
    """

    def __init__(self, record: type[T]) -> None:
        self.record = record
        self.table = table_of(record)
        self.columns = self.table.record_columns
        self._values = attrgetter(*(column.name for column in self.columns))
        self._names = self.names(self.table.name)
        coded = [(place, column) for place, column in enumerate(self.columns) if column.is_coded]
        self._encoders = [(column.name, _listed if column.is_list else int) for _, column in coded]
        self._decoders = [(place, unlisted if column.is_list else bool) for place, column in coded]

    def names(self, alias: str = "") -> str:
        """Return the columns for a SELECT, in the order that `build` takes."""
        return ", ".join(selected(column, alias) for column in self.columns) if alias else self._names

    def pack(self, record: T, name: object = None) -> Values:
        """Return what a row holds of a record, by column; see `checked`."""
        return self.row(checked(record, name))

    def row(self, record: T) -> Values:
        """Return what a row holds of a record that `checked` has returned."""
        row = dict(zip((column.name for column in self.columns), self._values(record), strict=True))
        for column, encode in self._encoders:
            row[column] = encode(row[column])
        return row

    def build(self, row: Sequence[Any]) -> T:
        """Return the record of a row."""
        return self.record(*self.decode(row))

    def decode(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return the fields of a row's record, in their order."""
        if not self._decoders:
            return row
        values = list(row)
        for place, decode in self._decoders:
            values[place] = decode(values[place])
        return values


_forms: dict[type, Form[Any]] = {}


def form_of(record: type[T]) -> Form[T]:
    """Return how records of a class are stored."""
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
    elif len(rows) <= _ROWS_AT_ONCE:
        values = {f"{name}_{place}": value for place, row in enumerate(rows) for name, value in row.items()}
        db.execute(insert(table, names, conflict, len(rows)), values)
    elif many := getattr(db, "insert_many", None):  # a server has a faster way of its own
        many(table, names, conflict, rows)
    else:
        db.executemany(insert(table, names, conflict), rows)


class _Nothing:
    rowcount = 0


def drop(db: Database, table: str, **key: Any) -> Written:
    """Delete the rows whose columns have these values, or one of a list."""
    chosen = where(SCHEMA[table], key)
    return _Nothing() if chosen is None else db.execute(f"DELETE FROM {table} WHERE {chosen[0]}", chosen[1])


class _Named:
    """What a record is called in a message, put into words only where it is refused."""

    def __init__(self, record: object) -> None:
        self._record = record

    def __str__(self) -> str:
        kind = re.sub(r"\B(?=[A-Z])", " ", type(self._record).__name__).lower()
        id_ = getattr(self._record, "id", getattr(self._record, "name", None))
        return kind if id_ is None else f"{kind} {id_!r:.80}"


def checked(record: T, name: object = None) -> T:
    """Return a record as it is kept: with U+FFFD for what no database holds in a text.

    Args:
        name: what messages call it; else its class and id.

    Raises:
        UsageError: a name or label holds such a character, a number needs more than 64 bits, or a time or share is not
            a number.
    """
    name = name or _Named(record)
    mended = {}
    for column in form_of(type(record)).columns:
        value = getattr(record, column.name)
        if not value:  # nothing is wrong with zero, or with what is empty
            continue
        kept = tuple(_kept(name, column, each) for each in value) if column.is_list else _kept(name, column, value)
        if kept is not value and kept != value:
            mended[column.name] = kept
    return replace(record, **mended) if mended else record  # type: ignore[type-var]


def _kept(name: object, column: Column, value: Any) -> Any:
    """Return what a column keeps of a value."""
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


def refuse_unstorable(what: object, *names: str) -> None:
    """Refuse names and labels with a character that no database holds."""
    for name in names:
        if storable(name) != name:
            raise UsageError(
                f"{what} {name!r:.80} holds NUL or half of a surrogate pair, which no store can keep",
                remedy="give it without such characters",
            )


def check_times(name: object, *times: float | None) -> None:
    """Refuse a time that is not a number; None and the infinities are times.

    Args:
        name: what it is of, put into words only where it is refused.
    """
    if any(time is not None and math.isnan(time) for time in times):
        raise UsageError(f"a time of {name} is not a number", remedy="give seconds since the epoch")


def refuse_wide(name: object, *integers: int) -> None:
    """Refuse an integer beyond 64 bits."""
    for integer in integers:
        if not -_INT64 <= integer < _INT64:
            raise UsageError(f"{integer} in {name} needs more than 64 bits; the limit is 2^63 - 1")


def _listed(values: tuple[Any, ...]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) if values else ""


@lru_cache(maxsize=1024)
def unlisted(text: str) -> tuple[Any, ...]:
    """Return the tuple that a column of a list holds."""
    return tuple(json.loads(text)) if text else ()


Asked = tuple[Table, Mapping[str, Sequence[Any]]]
"""A table, and the values of which its columns must have one; none are all rows."""


def rows_of(db: Database, namespace: str | None, asked: Iterable[Asked]) -> Iterator[tuple[Table, Values]]:
    """Yield rows of several tables, of one namespace or of all; a server is asked for all of them at once."""
    sent: list[tuple[Table, Iterable[Row]]] = []
    for table, among in asked:
        chosen = where(table, among)
        if chosen is not None:
            own = f"namespace = {SPACE}" if namespace is not None and table.has_namespace else ""
            terms = " AND ".join(filter(None, (chosen[0], own))) or "true"
            columns = ", ".join(selected(column, table.name) for column in table.columns)
            sql = f"SELECT {columns} FROM {table.name} WHERE {terms}"
            sent.append((table, db.execute(sql, {"namespace": namespace, **chosen[1]})))
    for table, rows in sent:
        names = [column.name for column in table.columns]
        decoders = [(each.name, unlisted if each.is_list else bool) for each in table.columns if each.is_coded]
        for row in rows:
            values = dict(zip(names, row, strict=True))
            for name, decode in decoders:
                if values[name] is not None:
                    values[name] = decode(values[name])
            yield table, values


def hanging_rows(db: Database, table: Table, namespace: str, numbers: Sequence[int]) -> Iterator[tuple[Table, Values]]:
    """Yield rows of a numbered table, and all that hangs on them through a number, each with its table."""
    asked: list[Asked] = [(table, {table.key[-1]: numbers})]
    while asked:
        held: defaultdict[str, list[int]] = defaultdict(list)
        for one, row in rows_of(db, namespace, asked):
            if one.is_numbered:
                held[one.name].append(row[one.key[-1]])
            yield one, row
        asked = []
        for other in SCHEMA.values():
            # Of two columns that name rows the first counts: what hangs on a passage hangs on its owner, too.
            hooks = (each for each in other.columns if each.role == "key" and each.refers not in ("", "namespaces"))
            hook = next(hooks, None)
            if hook is not None and hook.refers in held:
                asked.append((other, {hook.name: held[hook.refers]}))


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
            cleaned_value = value(parsed := json.loads(given))
            changed |= {} if cleaned_value == parsed else {column.name: json.dumps(cleaned_value, sort_keys=True)}
        elif column.is_cleaned:
            clean = tuple(map(text, given)) if column.is_list else text(given)
            changed[column.name] = clean if clean == given or not column.is_list else tuple(dict.fromkeys(clean))
    return replace(record, **changed)  # type: ignore[type-var] # a dataclass


def names_of(record: object) -> Iterator[str]:
    """Yield the names in a record, which cannot be changed without making it another thing."""
    for column in table_of(type(record)).record_columns:
        if column.is_name:
            given = getattr(record, column.name)
            yield from given if column.is_list else (given,)
