"""Read the statements of the store from SQL files. A comment above each statement is its name.

They are written for SQLite; `postgres.native` translates those of both databases for PostgreSQL. Placeholders:

* `{space}`: the number of the namespace that a statement reads or writes.
* `{owners:o}`: the columns that hold the record of row `o` of a table; `{owners:=}`: the same for a SET.
* `{text:p}`: the text of passage `p`.
* `{entry}`: the statement, or part of one, with that name above it or in `shared.sql`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from commonplace.store.dialect import SPACE, quoted, selected, statements
from commonplace.store.rows import Form, form_of
from commonplace.store.schema import SCHEMA, TABLES, Table


def named_statements(file: str) -> Iterator[tuple[str, str]]:
    """Yield (name, statement) of a file; drop further comments above a statement, which are for readers."""
    for text in statements(file):
        title, *lines = text.strip().removesuffix(";").split("\n")
        yield title.removeprefix("-- "), "\n".join(line for line in lines if not line.startswith("--"))


class _Columns:
    """The placeholder for the columns of a table's record."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __format__(self, row: str) -> str:
        assert self._table.record is not None
        form: Form[Any] = form_of(self._table.record)
        if row == "=":
            return ", ".join(f"{quoted(column.name)} = :{column.name}" for column in form.columns)
        return form.names(row)


class _Text:
    """The placeholder for the text of a passage, which may be a part of the content of its memory."""

    def __format__(self, row: str) -> str:
        return selected(SCHEMA["passages"]["text"], row)


_PLACEHOLDERS: Final[dict[str, Any]] = {
    **{table.name: _Columns(table) for table in TABLES if table.record},
    "text": _Text(),
    "space": SPACE,
}


class Statements:
    """The statements of a file by name; the file is read at the first access."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __getitem__(self, name: str) -> str:
        return self._found[name]

    @cached_property
    def _found(self) -> dict[str, str]:
        by_name: dict[str, str] = {}
        placeholders = ChainMap(_PLACEHOLDERS, by_name, {} if self is SHARED else SHARED._found)
        for name, sql in named_statements(self._file):
            by_name[name] = sql.format_map(placeholders)
        return by_name


SHARED: Final = Statements("shared")
"""Parts of statements that several files use."""
