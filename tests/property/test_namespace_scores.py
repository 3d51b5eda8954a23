"""What a namespace finds, in which order and with which scores, is the same whatever other namespaces hold."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.search.notebook import Notebook, notebook

from commonplace.types import Document

OTHER = "other"
TEXTS = (
    "The login service checks tokens and issues a session.",
    "The billing service sends invoices; billing is done on Mondays.",
    "Anna prefers tea, and the login page in green.",
    "session " * 70,
    "Tokens expire after an hour. The session ends with them, and the login page is shown again, in green or not.",
    "def login(session, token): return session.login(token)",
)
QUERIES = ("login session", "which service issues tokens", "green tea on Mondays", "def login")

PROJECT = ("project", 0, "")
"""Bring the index up to date."""
ours = st.tuples(st.just("ours"), st.integers(0, 5), st.sampled_from(TEXTS))
theirs = st.tuples(st.just("theirs"), st.integers(0, 9), st.sampled_from(TEXTS))
dropped = st.tuples(st.sampled_from(("drop ours", "drop theirs")), st.integers(0, 9), st.just(""))
steps = st.lists(st.one_of(ours, theirs, dropped, st.just(PROJECT)), max_size=25)
Step = tuple[str, int, str]


def take(book: Notebook, other: Notebook | None, step: Step) -> None:
    """Do what a step says, with what others hold only where there is another namespace."""
    action, number, text = step
    of = book if action.endswith("ours") else other
    if action == "project":
        book.project()
    elif of is None:
        return
    elif action.startswith("drop"):
        with of.store.change_memories(of.namespace) as change:
            change.erase([f"m{number}"])
    elif number % 2:
        of.index_documents(Document(f"d{number}", text))
    else:
        of.remember(f"m{number}", text, tags=("login",))


def found(book: Notebook) -> list[Any]:
    """Return all that searches say, to the last bit."""
    return [
        [(hit.owner_id, hit.score, hit.probability, dict(hit.signals)) for hit in result.hits]
        for query in QUERIES
        for method in ("bm25", "semantic", "two-stage")
        for result in [book.search(query, method=method, min_score=0.0)]
    ]


@settings(max_examples=15, deadline=None)
@given(steps)
@example(
    [("ours", 0, TEXTS[0]), ("ours", 2, TEXTS[1]), PROJECT, *[("theirs", n, TEXTS[n % 3]) for n in range(10)], PROJECT]
)
@example(
    [
        *[("theirs", n, TEXTS[0]) for n in range(10)],
        *[("ours", n, TEXTS[n]) for n in range(6)],
        PROJECT,
        *[("drop theirs", n, "") for n in range(0, 10, 2)],
        ("drop ours", 2, ""),
        PROJECT,
        ("drop ours", 0, ""),
        ("ours", 2, TEXTS[4]),
    ]
)
def test_scores_and_order_do_not_depend_on_other_namespaces(history: list[Step]) -> None:
    """One tenant must neither move another's order nor learn from it what a word is worth elsewhere."""
    with tempfile.TemporaryDirectory() as directory:
        alone, shared = (notebook("sqlite", Path(directory) / name) for name in ("alone", "shared"))
        other = replace(shared, namespace=OTHER)
        for step in history:
            take(alone, None, step)
            take(shared, other, step)
            if step == PROJECT:
                assert found(shared) == found(alone)
        assert found(shared) == found(alone)
        for book in (alone, shared):
            book.close()
