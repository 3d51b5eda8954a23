"""A store of an older version is brought up to date when it is opened, all at once, and keeps what it has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.contract.graphs import entity, put, relation
from tests.contract.memories import add, latest, written
from tests.contract.stores import file

from commonplace.errors import StoreError
from commonplace.store import database
from commonplace.store.graph import PUT_RELATION, pack_relation
from commonplace.store.store import SqliteStore
from commonplace.types.graph import GraphCounts, GraphFilter
from commonplace.types.ledger import Issue, IssueSelection


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a store of schema version 2 with a memory of two versions and a file."""
    path = tmp_path / "store.db"
    with monkeypatch.context() as patch:
        for module in (database, database):
            patch.setattr(module, "NEWEST", 2)
        store = SqliteStore.create(path)
        add(store, written("m", "one"), until=20.0)
        add(store, written("m", "two"), at=20.0)
        store.put_owners("n", [file("f", "a.py", "text")])
        store.close()
    assert tables(path).isdisjoint({"episodes", "entities", "relations"})
    return path


def tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def versions(path: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT version, name FROM schema_versions ORDER BY version").fetchall()


def test_it_keeps_what_it_has_and_takes_a_graph(old: Path) -> None:
    """Numbers, changes and versions go on: an index of it stays right."""
    store = SqliteStore.open(old, create=False)
    assert [version.number for version in store.versions("n", "m")] == [1, 2]
    assert latest(store, "m").record.content == "two"
    assert (store.change(), store.counts("n")["owners"]) == (3, 2)
    assert store.graph("n").counts() == GraphCounts()
    put(store, entity("a"))
    assert (store.change(), store.graph("n").counts()) == (4, GraphCounts(entities=1))
    assert store.check() == []
    store.close()
    assert versions(old) == [*enumerate(database.MIGRATIONS, 1)]


def test_opening_it_again_changes_nothing(old: Path) -> None:
    """Each migration runs once."""
    for _ in range(2):
        SqliteStore.open(old, create=False).close()
    assert len(versions(old)) == database.NEWEST


def test_a_migration_that_fails_leaves_nothing(old: Path) -> None:
    """A store is of one version or of the next, never between."""
    with closing(sqlite3.connect(old)) as db:
        db.execute("CREATE TABLE happenings (number)")
    before = tables(old)
    with pytest.raises(StoreError, match="happenings already exists"):
        SqliteStore.open(old, create=False)
    assert (tables(old), len(versions(old))) == (before, 2)
    with closing(sqlite3.connect(old)) as db:
        db.execute("DROP TABLE happenings")
    SqliteStore.open(old, create=False).close()
    assert len(versions(old)) == database.NEWEST


def test_a_store_before_the_ledger_takes_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 5 had knowledge and a change of embedder, and no issues."""
    path = tmp_path / "store.db"
    with monkeypatch.context() as patch:
        for module in (database, database):
            patch.setattr(module, "NEWEST", 5)
        store = SqliteStore.create(path)
        add(store, written("m", "one"))
        store.close()
    assert "issues" not in tables(path)
    store = SqliteStore.open(path, create=False)
    with store.change_memories("n") as change:
        change.ledger.put_issue(Issue("x", "t", memory_ids=("m",)))
    assert [issue.id for issue in store.ledger("n").issues(IssueSelection(memory_ids=("m",)))] == ["x"]
    assert (latest(store, "m").record.content, store.change(), store.check()) == ("one", 1, [])
    store.close()


def test_facts_of_an_older_store_are_found_by_where_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 6 knew only whether a fact had expired or was retracted, and looked at all that had ended."""
    path = tmp_path / "store.db"
    facts = [
        relation("open"),
        relation("stated", valid_to=5.0, stated_to=5.0),
        relation("ended", valid_to=7.0, expired_at=20.0),
        relation("never", valid_to=None, is_retracted=True),
    ]
    with monkeypatch.context() as patch:
        for module in (database, database):
            patch.setattr(module, "NEWEST", 6)
        store = SqliteStore.create(path)
        add(store, written("m", "one"))
        store.close()
    with closing(sqlite3.connect(path)) as db, db:
        for fact in facts:
            is_past = fact.expired_at is not None or fact.is_retracted
            db.execute(PUT_RELATION.replace("stage", "is_past"), (1, *pack_relation(fact)[:-1], is_past))
    store = SqliteStore.open(path, create=False)
    assert store.check()[1:] == []  # the ends of the facts are no entities, which is told first
    graph = store.graph("n")
    assert graph.facts("a", "USES") == sorted(facts, key=lambda each: each.id)
    for wanted, found in ((GraphFilter(), ["open", "stated"]), (GraphFilter(open_at=6.0), ["ended", "open"])):
        assert [each.id for each in graph.relations_of(["a"], wanted)["a"]] == found
    store.close()
