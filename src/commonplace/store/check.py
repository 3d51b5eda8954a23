"""Check the integrity of the stored data: the references of the schema, and further invariants."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from commonplace.store.dialect import Database, quoted
from commonplace.store.rows import unlisted
from commonplace.store.schema import KINDS, SCHEMA, TABLE_OF_KIND, TABLES, Column, Table
from commonplace.store.statements import Statements, named_statements
from commonplace.store.validate import NEXT, read_embedding

_MAX_PROBLEMS = 20
SQL: Final = Statements("check")

COUNTS: Final = "counts that do not fit the rows"


def problems(db: Database, *, is_file: bool) -> list[str]:
    """Return one sentence per problem; if the file itself is damaged, check nothing else."""
    try:
        rows = db.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})") if is_file else ()
        broken = [text for (text,) in rows if text != "ok"]
        if broken:
            return [f"The database is damaged: {text}." for text in broken]
        checks = [
            (dangling(table.name, column.name), f"SELECT count(*) FROM {table.name} t WHERE {is_gone(column)}")
            for table in TABLES
            for column in table.columns
            if column.refers
        ]
        checks += [*named_statements("consistency"), (COUNTS, SQL["counted"]), (STRAY_TEXTS, SQL["stray_texts"])]
        counts = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in checks]
        listed = set(db.execute("SELECT namespace, tag, owner FROM owner_tags"))
        expected = {
            (namespace_id, tag, number)
            for number, namespace_id, tags in db.execute("SELECT number, namespace, tags FROM owners WHERE tags != ''")
            for tag in unlisted(tags)
        }
        tags = ("tags that do not fit their owners", len(listed ^ expected))
        return [*sentences(counts), *_vector_problems(db), *sentences([tags])]
    except sqlite3.DatabaseError as error:
        return [f"The database is damaged: {error}."]


def dangling(table: str, column: str) -> str:
    """Return the claim about rows whose column refers to nothing that exists."""
    return f"{table} whose {column} is gone"


def is_gone(column: Column) -> str:
    """Return the condition that the column of a row `t` refers to nothing that exists."""
    name = f"t.{quoted(column.name)}"
    if column.refers == KINDS:
        return " OR ".join(
            f"(t.kind = '{kind}' AND {_has_none(name, SCHEMA[table])})" for kind, table in TABLE_OF_KIND.items()
        )
    parent = SCHEMA[column.refers]
    guard = f"{name} != '' AND " if column.may_be_empty else ""
    return guard + _has_none(name, parent, parent.key[-1] if column.role == "key" else "")


def _has_none(name: str, parent: Table, key: str = "") -> str:
    scope = "p.namespace = t.namespace AND " if parent.has_namespace else ""
    key = key or ("id" if any(column.name == "id" for column in parent.columns) else "issue")
    return f"NOT EXISTS (SELECT 1 FROM {parent.name} p WHERE {scope}p.{quoted(key)} = {name})"


STRAY_TEXTS: Final = "texts of entities or relations that are gone"


def sentences(counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return one sentence for each claim with a count above 0."""
    return [f"There are {claim}: {count}." for claim, count in counts if count]


def _vector_problems(db: Database) -> list[str]:
    """Return sentences about vectors whose length is not that of their kind's embedder; an empty one is made later."""
    current, upcoming = read_embedding(db), read_embedding(db, NEXT)
    claims = (
        ("vectors of another length than the embedder's", SQL["lengths"], current, True),
        ("new vectors without an embedder, or of another length than its", SQL["next_lengths"], upcoming, False),
    )
    counts = [
        (
            claim,
            sum(
                count
                for kind, length, count in db.execute(sql)
                if not (may_wait and (length == 0 or embedding is None))
                and (embedding is None or embedding.of(kind).dimensions != length)
            ),
        )
        for claim, sql, embedding, may_wait in claims
    ]
    return sentences(counts)
