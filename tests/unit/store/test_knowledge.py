"""The SQL view `knowledge`: the columns of the contract over our tables, for other programs that read the database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.contract.knowledge import FULL, item, put

from commonplace.store.store import Store

COLUMNS = ["id", "created_at", "updated_at", "deleted_at", "agent_name", "content", "metadata", "embedding"]


def rows(path: Path, sql: str = "SELECT * FROM knowledge ORDER BY id") -> list[dict[str, object]]:
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with an item with its own vector, one with the store's, one found by words alone, and a deleted one."""
    store = Store.create(tmp_path / "store.db")
    put(store, replace(item("own"), record=FULL))
    put(store, item("store's", content="abc", embedder="static@1/4"), item("words", metadata='{"a":1}'))
    put(store, item("gone"), at=1e9, until=1e9 + 0.25)
    put(store, item("other"), name="m")
    store.close()
    return tmp_path / "store.db"


def test_it_has_the_columns_of_the_contract_and_then_the_namespace(path: Path) -> None:
    """A program that reads the contract's table reads ours."""
    assert list(rows(path)[0]) == [*COLUMNS, "namespace"]
    assert [row["namespace"] for row in rows(path)] == ["n", "n", "n", "n", "m"]
    first = rows(path)[0]
    assert {name: first[name] for name in ("id", "agent_name", "content", "metadata")} == {
        "id": 1,
        "agent_name": "Travel Agent",
        "content": "cityName: Seoul",
        "metadata": '{"cityName":"Seoul"}',
    }


def test_times_are_texts_that_other_programs_read(path: Path) -> None:
    """As SQLite's own functions write them, in UTC."""
    times = [(row["created_at"], row["deleted_at"]) for row in rows(path)]
    assert times[0] == ("1970-01-01 00:00:10.000+00:00", None)
    assert times[3] == ("2001-09-09 01:46:40.000+00:00", "2001-09-09 01:46:40.250+00:00")


def test_an_embedding_is_a_json_array(path: Path) -> None:
    """Of the item's own vector, else of its first passage's; where nothing was embedded it is NULL."""
    embeddings = [row["embedding"] for row in rows(path)]
    assert json.loads(str(embeddings[0])) == [1.0, 0.0, -1.0, 0.5039]
    assert json.loads(str(embeddings[1])) == [0.0236] * 4
    assert embeddings[2:] == [None, None, None]


def test_every_byte_of_a_vector_is_read_as_the_number_that_it_is(tmp_path: Path) -> None:
    """SQLite cannot read one; the view spells it."""
    store = Store.create(tmp_path / "store.db")
    values = np.arange(-127, 128, dtype=np.int8)
    put(store, replace(item(), record=replace(FULL, vector=values.tobytes())))
    store.close()
    (row,) = rows(tmp_path / "store.db")
    assert json.loads(str(row["embedding"])) == [round(value / 127, 4) for value in values.tolist()]
