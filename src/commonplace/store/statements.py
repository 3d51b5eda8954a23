"""Read the statements of the store from files of SQL, each of which stands under a comment that names it.

They are written for SQLite; `postgres.native` turns those of both databases into PostgreSQL's words. In braces stands
what is not written out:

* `{space}`: the number of the namespace that a statement is about.
* `{owners:o}`: the columns that hold a record of a table, of its row `o`; `{owners:=}` the same for a SET.
* `{text:p}`: the text of a passage `p`.
* `{entry}`: the statement, or part of one, of that name above it or in `shared.sql`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from commonplace.store.dialect import SPACE, quoted, selected, statements
from commonplace.store.rows import Form, form_of
from commonplace.store.schema import SCHEMA, TABLES, Table


def named(file: str) -> Iterator[tuple[str, str]]:
    """Yield the statements of a file with their names; further comments before a statement are for readers."""
    for text in statements(file):
        title, *lines = text.strip().removesuffix(";").split("\n")
        yield title.removeprefix("-- "), "\n".join(line for line in lines if not line.startswith("--"))


class _Columns:
    """Stands for the columns of a table's record."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __format__(self, row: str) -> str:
        assert self._table.record is not None
        form: Form[Any] = form_of(self._table.record)
        if row == "=":
            return ", ".join(f"{quoted(column.name)} = :{column.name}" for column in form.columns)
        return form.names(row)


class _Text:
    """Stands for the text of a passage, which may be a part of the content of its memory."""

    def __format__(self, row: str) -> str:
        return selected(SCHEMA["passages"]["text"], row)


_KNOWN: Final[dict[str, Any]] = {
    **{table.name: _Columns(table) for table in TABLES if table.record},
    "text": _Text(),
    "space": SPACE,
}


class Statements:
    """The statements of a file by name; it is read when the first of them is asked for."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __getitem__(self, name: str) -> str:
        return self._found[name]

    @cached_property
    def _found(self) -> dict[str, str]:
        found: dict[str, str] = {}
        known = ChainMap(_KNOWN, found, {} if self is SHARED else SHARED._found)
        for name, sql in named(self._file):
            found[name] = sql.format_map(known)
        return found


SHARED: Final = Statements("shared")
"""Parts of statements of several files."""
