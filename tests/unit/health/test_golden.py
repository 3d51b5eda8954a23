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
    assert len(book.ledger.selected()) == 1


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
    assert "zorblax" not in str((book.ledger.selected(), book.ledger.history(kept.issue)))
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
    assert secret[:40] not in str(book.ledger.selected())


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
    assert book.ledger.selected() == []


CLINIC = "Zanzibar clinic appointment with doctor Quill on Friday"


class TestForgettingWhatAQueryQuotes:
    @pytest.fixture(autouse=True)
    def said(self, book: Engine) -> None:
        book.remember(CLINIC, id="appointment-7", tags=["health"], session="talk")

    @staticmethod
    def told(book: Engine) -> str:
        every, events = book.ledger.selected(), [book.ledger.history(each.id) for each in book.ledger.selected()]
        return str((every, events, book.golden_queries()))

    @pytest.mark.parametrize("by", [{"id": "appointment-7"}, {"tag": "health"}, {"session": "talk"}])
    @pytest.mark.parametrize("query", [CLINIC, CLINIC.upper(), "when is the clinic of zanzibar"])
    @pytest.mark.parametrize("is_open", [True, False])
    def test_a_query_for_another_memory_is_erased_too(
        self, book: Engine, by: dict[str, str], query: str, is_open: bool
    ) -> None:
        book.mark(query, "ferry", "wrong")
        book.mark(QUERY, "ravens")
        book.mark("who goes to aegina", "ferry")
        if not is_open:
            book.mark(query, "ferry", "none")
        assert book.forget(**by, dry_run=True).counts["issues"] == 1
        assert "zanzibar" in self.told(book).lower()
        receipt = book.forget(**by)
        assert (receipt.verified, receipt.counts["issues"]) == (True, 1)
        assert "zanzibar" not in self.told(book).lower()
        assert {each.query for each in book.golden_queries()} == {QUERY, "who goes to aegina"}
        assert b"zanzibar" not in (book.directory / "store.db").read_bytes().lower()

    def test_a_word_that_another_memory_has_betrays_nothing(self, book: Engine) -> None:
        book.forget(id="ferry")  # so that the index has seen the rest
        book.mark("where is zanzibar", "ravens", "wrong")
        book.remember("The harbour of Zanzibar is full of dhows", id="dhows")
        assert book.forget(id="appointment-7").counts["issues"] == 0
        assert len(book.golden_queries()) == 1
        assert book.forget(id="dhows").counts["issues"] == 1
        assert book.golden_queries() == []

    def test_a_memory_that_is_not_marked_any_more_still_belongs_to_the_query(self, book: Engine) -> None:
        said: list[tuple[str, Verdict]] = [("appointment-7", "right"), ("ferry", "wrong")]
        for id_, verdict in [*said, ("appointment-7", "none")]:
            made = book.mark("who is ill", id_, verdict)
        assert (made.relevant, made.irrelevant) == ((), ("ferry",))
        assert book.ledger.show(made.issue)["memory_ids"] == ["appointment-7", "ferry"]
        assert "appointment-7" not in str(book.ledger.history(made.issue))
        assert book.forget(id="appointment-7").verified
        assert book.golden_queries() == []
        assert "appointment-7" not in self.told(book)

    def test_a_namespace_takes_its_queries_along(self, book: Engine) -> None:
        with commonplace.open(book.directory, "other") as other:
            other.remember("The ferry leaves at noon", id="ferry")
            other.mark("what says quillfeather", "ferry", "wrong")
            assert other.forget_namespace("other", confirm="other", dry_run=True).counts["issues"] == 1
            receipt = other.forget_namespace("other", confirm="other")
            assert (receipt.verified, receipt.counts["issues"]) == (True, 1)
        assert b"quillfeather" not in (book.directory / "store.db").read_bytes()

    def test_the_words_of_another_namespace_do_not_keep_it(self, book: Engine) -> None:
        book.mark("where is zanzibar", "ravens", "wrong")
        with commonplace.open(book.directory, "other") as other:
            other.remember(CLINIC, id="a")
            assert book.forget(id="appointment-7").counts["issues"] == 1
            other.mark("where is zanzibar", "a")
            assert len(other.golden_queries()) == 1
        assert book.golden_queries() == []

    def test_a_run_that_is_killed_after_it_erased_has_erased_it(
        self, book: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from commonplace.erasure import erase

        def killed(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        book.mark(CLINIC, "ferry", "wrong")
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(erase, "remove_pages", killed)
            book.forget(id="appointment-7")
        assert book.golden_queries() == []
        assert [finding.mended for finding in book.doctor().findings] == [True]
        assert b"zanzibar clinic" not in (book.directory / "store.db").read_bytes().lower()

    def test_a_memory_of_this_process_takes_its_queries_along(self, book: Engine) -> None:
        made = book.remember("Bartholomew lent the telescope", tier="ultra")
        book.mark("who is bartholomew", "ferry", "wrong")
        assert book.forget(id=made.id, dry_run=True).counts["issues"] == 1
        receipt = book.forget(id=made.id)
        assert (receipt.verified, receipt.counts["issues"]) == (True, 1)
        assert b"bartholomew" not in (book.directory / "store.db").read_bytes().lower()

    def test_where_the_index_is_damaged_nothing_is_left_either(
        self, book: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from commonplace.erasure import verify
        from commonplace.errors import IndexFaultError

        whole = verify.parts_of

        def damaged(*_: object) -> object:
            monkeypatch.setattr(verify, "parts_of", whole)  # the index is made anew when something was erased
            raise IndexFaultError("is damaged")

        monkeypatch.setattr(verify, "parts_of", damaged)
        book.mark("where is zanzibar", "ferry", "wrong")
        assert book.forget(id="appointment-7").verified
        assert book.golden_queries() == []
