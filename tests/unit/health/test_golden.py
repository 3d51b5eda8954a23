"""Golden queries that a person makes by saying of hits that they are right or wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import NotFoundError, UsageError
from commonplace.types.ledger import Verdict

QUERY = "where do ravens nest"


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Engine]:
    with commonplace.open(tmp_path / "store", embedder="hashing") as book:
        book.remember("Ravens nest in the old lighthouse of Skagen", id="ravens")
        book.remember("The ferry to Aegina leaves at noon", id="ferry")
        book.remember("Ravens nest in the wood behind the mill", id="wood")
        yield book


def wrong(book: Engine) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(each.found, each.shown) for each in book.health().failed]


def test_what_is_marked_right_is_asked_by_health_from_then_on(book: Engine) -> None:
    made = book.mark(f"  {QUERY} ", "ravens")
    assert (made.query, made.relevant) == (QUERY, ("ravens",))
    assert wrong(book) == []
    book.archive("ravens")
    assert wrong(book) == [((), ())]
    assert book.health().to_dict()["golden"] == [{**made.to_dict(), "found": [], "shown": []}]


def test_what_is_marked_wrong_must_not_be_shown(book: Engine) -> None:
    book.mark(QUERY, "wood", "wrong")
    assert wrong(book) == [((), ("wood",))]
    book.archive("wood")
    assert wrong(book) == []


def test_one_query_has_all_that_was_said_of_it_and_the_last_counts(book: Engine) -> None:
    said: list[tuple[str, Verdict]] = [("ravens", "right"), ("wood", "right"), ("wood", "wrong")]
    for id_, verdict in said:
        book.mark(QUERY, id_, verdict)
    (kept,) = book.golden_queries()
    assert (kept.relevant, kept.irrelevant) == (("ravens",), ("wood",))
    for id_ in ("ravens", "wood"):
        book.mark(QUERY, id_, "none")
    assert book.golden_queries() == []
    assert book.ledger.show(kept.issue)["status"] == "closed"
    assert book.mark(QUERY, "ravens", "none").relevant == ()
    assert len(book.ledger.every()) == 1


def test_it_is_listed_and_closed_in_the_ledger_and_waits_for_nobody(book: Engine) -> None:
    book.mark(QUERY, "ravens")
    (issue,) = book.ledger.query()
    assert (issue["title"], issue["memory_ids"]) == (f"Golden query: {QUERY}", ["ravens"])
    assert book.questions() == []
    assert book.health().pending == {}
    book.ledger.close(issue["id"], "not asked any more")
    assert book.golden_queries() == []


def test_forgetting_a_memory_erases_its_golden_queries(book: Engine) -> None:
    book.mark("who lives in the tower of zorblax", "ravens")
    book.mark("who lives in the tower of zorblax", "wood", "wrong")
    (kept,) = book.golden_queries()
    receipt = book.forget(id="wood")
    assert receipt.verified
    assert book.golden_queries() == []
    assert "zorblax" not in str((book.ledger.every(), book.ledger.history(kept.issue)))
    book.ledger.reopen(kept.issue)
    assert book.golden_queries() == []
    assert wrong(book) == []


def test_golden_queries_are_exported_and_imported(book: Engine, tmp_path: Path) -> None:
    book.mark(QUERY, "ravens")
    book.mark(QUERY, "wood", "wrong")
    book.export(tmp_path / "lines")
    with commonplace.open(tmp_path / "other", embedder="hashing") as other:
        other.import_(tmp_path / "lines")
        assert other.golden_queries() == book.golden_queries()
        assert wrong(other) == wrong(book)


def test_a_secret_in_a_query_is_replaced(book: Engine) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    assert secret not in book.mark(f"whose is {secret[:40]}", "ravens").query
    assert secret[:40] not in str(book.ledger.every())


@pytest.mark.parametrize(
    ("query", "id_", "verdict", "error"),
    [
        (" ", "ravens", "right", UsageError),
        ("a\0b", "ravens", "right", UsageError),
        (QUERY, "nowhere", "right", NotFoundError),
        (QUERY, "ravens", "perhaps", UsageError),
    ],
)
def test_what_cannot_be_marked_is_refused(
    book: Engine, query: str, id_: str, verdict: Verdict, error: type[Exception]
) -> None:
    with pytest.raises(error):
        book.mark(query, id_, verdict)
    assert book.ledger.every() == []
