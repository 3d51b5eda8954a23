"""Check the integrity of what is stored: what names another row, by the schema, and what else must hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from commonplace.store.dialect import Database, quoted
from commonplace.store.rows import unlisted
from commonplace.store.schema import KINDS, SCHEMA, TABLE_OF_KIND, TABLES, Column, Table
from commonplace.store.statements import Statements, named
from commonplace.store.validate import NEXT, read_embedding

_MAX_PROBLEMS = 20
SQL: Final = Statements("check")

COUNTS: Final = "counts that do not fit the rows"


def problems(db: Database, *, is_file: bool) -> list[str]:
    """Return one sentence for each thing that is wrong; where the file itself is damaged, nothing more is asked."""
    try:
        found = db.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})") if is_file else ()
        broken = [text for (text,) in found if text != "ok"]
        if broken:
            return [f"The database is damaged: {text}." for text in broken]
        counted = [
            (gone(table.name, column.name), f"SELECT count(*) FROM {table.name} t WHERE {is_gone(column)}")
            for table in TABLES
            for column in table.columns
            if column.refers
        ]
        counted += [*named("consistency"), (COUNTS, SQL["counted"]), (STRAY_TEXTS, SQL["stray_texts"])]
        counts = [(claim, db.execute(sql).fetchone()[0]) for claim, sql in counted]
        listed = set(db.execute("SELECT namespace, tag, owner FROM owner_tags"))
        owned = {
            (space, tag, number)
            for number, space, tags in db.execute("SELECT number, namespace, tags FROM owners WHERE tags != ''")
            for tag in unlisted(tags)
        }
        tags = ("tags that do not fit their owners", len(listed ^ owned))
        return [*sentences(counts), *_vector_problems(db), *sentences([tags])]
    except sqlite3.DatabaseError as error:
        return [f"The database is damaged: {error}."]


def gone(table: str, column: str) -> str:
    """Return what rows are called whose column names nothing that is there."""
    return f"{table} whose {column} is gone"


def is_gone(column: Column) -> str:
    """Return the condition for a row `t` whose column names nothing that is there."""
    name = f"t.{quoted(column.name)}"
    if column.refers == KINDS:
        return " OR ".join(
            f"(t.kind = '{kind}' AND {_has_none(name, SCHEMA[table])})" for kind, table in TABLE_OF_KIND.items()
        )
    parent = SCHEMA[column.refers]
    named = f"{name} != '' AND " if column.may_be_empty else ""
    return named + _has_none(name, parent, parent.key[-1] if column.role == "key" else "")


def _has_none(name: str, parent: Table, key: str = "") -> str:
    own = "p.namespace = t.namespace AND " if parent.has_namespace else ""
    key = key or ("id" if any(column.name == "id" for column in parent.columns) else "issue")
    return f"NOT EXISTS (SELECT 1 FROM {parent.name} p WHERE {own}p.{quoted(key)} = {name})"


STRAY_TEXTS: Final = "texts of entities or relations that are gone"


def sentences(counts: Iterable[tuple[str, int]]) -> list[str]:
    """Return one sentence for each claim that counts anything."""
    return [f"There are {claim}: {count}." for claim, count in counts if count]


def _vector_problems(db: Database) -> list[str]:
    """Say which vectors do not have the length of their kind's embedder; an empty one is made later."""
    own, coming = read_embedding(db), read_embedding(db, NEXT)
    claims = (
        ("vectors of another length than the embedder's", SQL["lengths"], own, True),
        ("new vectors without an embedder, or of another length than its", SQL["next_lengths"], coming, False),
    )
    counts = [
        (
            claim,
            sum(
                count
                for kind, length, count in db.execute(lengths)
                if not (may_wait and (length == 0 or embedding is None))
                and (embedding is None or embedding.of(kind).dimensions != length)
            ),
        )
        for claim, lengths, embedding, may_wait in claims
    ]
    return sentences(counts)
