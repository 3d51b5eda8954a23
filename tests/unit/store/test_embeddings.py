"""How long a change of embedder holds up whoever writes: by how much is done inside its transactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.stores import memory

from commonplace.store.database import connect
from commonplace.store.store import Store
from commonplace.types import Embedding

OLD, NEW = Embedding("old", "1", 4), Embedding("new", "2", 6)


_ONE_BY_ONE = re.compile(r"\((rowid|namespace=\? AND (owner|rowid|number))=\?")


def fill(store: Store) -> None:
    store.fill_vectors(OLD, [(entry.number, b"1234") for entry in store.pending_vectors(9)])


def reembed(store: Store) -> None:
    store.begin_reembedding(NEW)
    store.put_reembedded(NEW, [(entry.number, b"123456") for entry in store.unembedded(9)])


@pytest.mark.parametrize(("act", "statements"), [(fill, 6), (reembed, 1)])
def test_passages_that_get_their_vectors_are_looked_up_one_by_one(
    tmp_path: Path, act: Callable[[Store], None], statements: int
) -> None:
    """Whoever writes waits meanwhile: to read all passages for each slice took two seconds with a million of them."""
    path = tmp_path / "store.db"
    with closing(Store.create(path)) as store:
        store.set_embedding(OLD)
        write = memory("a", "one", "two")
        store.put_owners("n", [replace(write, passages=tuple(replace(each, vector=b"") for each in write.passages))])
        said: list[str] = []
        with store._connections.writing() as db:
            db.set_trace_callback(said.append)  # type: ignore[attr-defined]
        act(store)
    with closing(connect(path, 5.0)) as db:
        asked = [sql for sql in said if re.search(r"^\s*(SELECT|UPDATE|DELETE)\b.*\bjson_each\b", sql, re.DOTALL)]
        plans = [(sql, [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}")]) for sql in asked]
    of_rows = [(sql, plan[0]) for sql, plan in plans if re.search(r"\b(owners|passages|passage_vectors)\b", sql)]
    assert len(of_rows) >= statements
    assert [each for each in of_rows if not _ONE_BY_ONE.search(each[1])] == []
