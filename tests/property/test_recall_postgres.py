"""What PostgreSQL finds, and with which scores, is what the index beside a file finds, whatever was written before."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.search.notebook import Notebook, notebook

from commonplace.store import postings
from commonplace.store.store import Store
from commonplace.types import Document, Filter

TEXTS = (
    "The login service checks tokens and issues a session.",
    "The billing service sends invoices; billing is done on Mondays.",
    "Anna prefers tea, and the login page in green.",
    "session " * 70,
    "Tokens expire after an hour. The session ends with them, and the login page is shown again, in green or not.",
    "Die Anmeldung prüft die Marken und beginnt eine Sitzung, die nach einer Stunde endet.",
)
QUERIES = ("login session", "which service issues tokens", "green tea on Mondays", "Sitzungen", "sesion ends")
FILTERS = (Filter(), Filter(tags=("even",)), Filter(kinds=("memory",)), Filter(as_of=3.5))

LEFT_EMPTY = ("passage_terms", "passage_signs", "postings")

remembered = st.tuples(st.just("remember"), st.integers(0, 9), st.sampled_from(TEXTS))
indexed = st.tuples(st.just("index"), st.integers(0, 4), st.sampled_from(TEXTS))
gone = st.tuples(st.sampled_from(("erase", "archive", "delete")), st.integers(0, 9), st.just(""))
Step = tuple[str, int, str]


def take(book: Notebook, step: Step) -> None:
    """Do what a step says, where it can be done."""
    action, number, text = step
    if action == "remember":
        book.remember(f"m{number}", text, tags=("even",) if number % 2 == 0 else ())
    elif action == "index":
        book.index_documents(Document(f"d{number}", "\n\n".join([text] * (number + 1))))
    elif action == "delete":
        found = book.store.owner_numbers(book.namespace, "artifact", [f"d{number}"])
        book.store.delete_owners(book.namespace, list(found.values()))
    elif f"m{number}" in book.store.owner_numbers(book.namespace, "memory", [f"m{number}"]):
        if action == "archive":
            book.archive(f"m{number}")
        else:
            with book.store.change_memories(book.namespace) as change:
                change.erase([f"m{number}"])


def found(book: Notebook) -> list[Any]:
    """Return what searches say, with scores as exact as both tell them."""
    return [
        [(hit.owner_id, hit.score, hit.probability, dict(hit.signals)) for hit in result.hits]
        for query in QUERIES
        for method, wanted in (("bm25", Filter()), ("semantic", Filter()), *(("two-stage", each) for each in FILTERS))
        for result in [book.search(query, method=method, min_score=0.0, wanted=wanted)]
    ]


def assert_same(one: Any, other: Any) -> None:
    """Compare answers: texts and order exactly, numbers within 1e-4."""
    if isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-4)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), (one, other)
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    else:
        assert one == other


def rows(store: Store, table: str) -> list[Any]:
    return store._connections.rows(f"SELECT * FROM {table}", {"namespace": None})


@settings(max_examples=8, deadline=None)
@given(st.lists(st.one_of(remembered, remembered, indexed, gone), max_size=30), st.integers(1, 4))
@example([("remember", n % 10, TEXTS[n % 6]) for n in range(30)], 1)
@example(
    [
        *[("remember", n, TEXTS[n % 6]) for n in range(10)],
        *[("index", n, TEXTS[n]) for n in range(5)],
        *[("erase", n, "") for n in range(0, 10, 2)],
        ("archive", 1, ""),
        ("delete", 3, ""),
        ("remember", 0, TEXTS[4]),
    ],
    2,
)
def test_postgres_finds_what_an_index_finds(history: list[Step], tail: int) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "TAIL", tail)
        patch.setattr(postings, "MERGED", 3)
        patch.setattr(postings, "LARGE", 12)
        local, stored = (notebook(name, Path(directory) / name) for name in ("sqlite", "postgres"))
        assert stored.store.postings is not None
        for step in history:
            take(local, step)
            take(stored, step)
        local.project()
        assert stored.store.check() == []
        assert_same(found(stored), found(local))
        with stored.store.change_memories(stored.namespace) as change:
            change.erase([f"m{n}" for n in range(10)])
        for n in range(5):
            take(stored, ("delete", n, ""))
        assert {table: rows(stored.store, table) for table in LEFT_EMPTY} == {table: [] for table in LEFT_EMPTY}
        for book in (local, stored):
            book.close()
