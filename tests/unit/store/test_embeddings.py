"""How long a change of embedder holds up whoever writes: by how much is done inside its transactions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contract.knowledge import item
from tests.contract.knowledge import put as put_knowledge
from tests.contract.stores import file, memory

from commonplace.store.database import connect
from commonplace.store.store import Store
from commonplace.types import Embedding

OLD, NEW = Embedding("old", "1", 4), Embedding("new", "2", 6)


@pytest.fixture(params=[40, 400])
def passages(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def store(tmp_path: Path, passages: int) -> Iterator[Store]:
    """A store of files and knowledge whose new vectors are all made."""
    store = Store.open(tmp_path / "store.db", create=True)
    store.set_embedding(OLD)
    store.put_owners("n", [file(f"f{n}", f"{n}.py", f"text {n}") for n in range(passages // 2)])
    put_knowledge(store, *(item(f"k{n}", embedder=str(OLD)) for n in range(passages // 2)))
    store.begin_reembedding(NEW)
    numbers = [entry.number for entry in store.unembedded(10_000)]
    assert len(numbers) == passages
    store.put_reembedded(NEW, [(number, b"123456") for number in numbers])
    yield store
    store.close()


def written_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by the rows that each transaction writes."""
    rows: list[int] = []
    writing = store._connections.writing

    @contextmanager
    def counted() -> Iterator[Any]:
        with writing() as db:
            before = db.total_changes
            yield db
            rows.append(db.total_changes - before)

    monkeypatch.setattr(store._connections, "writing", counted)
    return rows


def test_the_switch_writes_as_few_rows_of_a_large_store_as_of_a_small_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had copied every vector while everybody who wrote was waiting."""
    rows = written_rows(store, monkeypatch)
    assert store.finish_reembedding(NEW)
    (switch,) = rows
    assert switch < 15


def test_what_is_left_is_done_in_transactions_of_a_bounded_size(
    store: Store, monkeypatch: pytest.MonkeyPatch, passages: int
) -> None:
    store.finish_reembedding(NEW)
    rows = written_rows(store, monkeypatch)
    while store.settle_reembedding(20):
        pass
    # Vectors are moved and deleted, recipes and items renamed.
    assert max(rows) <= 4 * 20
    assert len(rows) == passages // 20 + 1
    assert store.check() == []


def test_nothing_left_takes_no_turn_from_whoever_writes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = written_rows(store, monkeypatch)
    assert not store.settle_reembedding(20)
    assert rows == []


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
