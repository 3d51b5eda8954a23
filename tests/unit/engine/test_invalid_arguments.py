"""What is no fit value of a public call: the error names value and remedy, and is never one of the language's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import commonplace
from commonplace.engine import Engine
from commonplace.errors import CommonplaceError, UsageError

UNFIT: tuple[Any, ...] = (None, True, 1.5, 10**30, b"x", [None], {"a": 1}, object())


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with commonplace.open(tmp_path_factory.mktemp("unfit") / "store") as book:
        yield book


def refuse(call: Callable[[Any], object], *values: Any) -> None:
    for value in values:
        with pytest.raises(UsageError) as caught:
            call(value)
        assert caught.value.remedy, f"{value!r}"


def test_what_is_no_path_is_refused(book: Engine) -> None:
    for call in (book.backup, book.index, book.import_):
        refuse(call, *UNFIT, "", " ", "\0", "a\0b", "\ud800", Path("a\0b"))
    refuse(book.export, *UNFIT, "", "\0", "\ud800")
    refuse(commonplace.open, *UNFIT[1:], 5, 0, " ", "a\0b")
    assert book.index_status().counts["owners"] == 0


def test_an_entry_of_a_directory_is_a_path(tmp_path: Path) -> None:
    """As for Python's own functions: such an entry is no `Path`, and no text."""
    commonplace.open(tmp_path / "store").close()
    with os.scandir(tmp_path) as entries, commonplace.open(next(entries)) as book:
        assert book.directory == tmp_path / "store"


def test_a_path_that_is_too_long_is_an_error_of_ours(book: Engine) -> None:
    """How long a path may be is the file system's to say."""
    for call in (book.backup, book.index, book.import_, book.export):
        with pytest.raises(CommonplaceError):
            call("x" * 100_000)


def test_an_export_takes_a_path_as_such(book: Engine, tmp_path: Path) -> None:
    assert book.export(tmp_path / "all.jsonl").path == tmp_path / "all.jsonl"


def test_what_is_no_id_is_refused(book: Engine) -> None:
    refuse(book.forget, True, 1.5, object(), [None], b"x")
    refuse(book.links, True, 1.5, [None], {}, "")
    refuse(lambda value: book.unlink(value, "b"), *UNFIT)
    refuse(lambda value: book.unlink("a", value), *UNFIT)
    refuse(lambda value: book.unlink("a", "b", value), *UNFIT[1:])
    assert book.receipts() == []


def test_what_is_no_list_of_texts_is_refused(book: Engine) -> None:
    refuse(lambda value: book.list(sources=value), *UNFIT[:-2], "x", [True])
    refuse(lambda value: book.list(sessions=value), *UNFIT[:-2], "x", [True])
    assert book.list(sources=["", "x" * 1000], sessions={"a"}) == []


def test_a_period_that_ends_before_it_begins_is_refused(book: Engine) -> None:
    """No memory is in it, and "none" would be believed."""
    with pytest.raises(UsageError, match="since is 2026-02-01T00:00:00Z, after until, 2026-01-01T00:00:00Z; swap them"):
        book.list(since="2026-02", until="2026-01")


def test_to_force_is_true_or_false(book: Engine) -> None:
    """A text that says "false" would be taken for yes."""
    refuse(lambda value: book.remember("The door is blue.", force=value), "false", None, 1, 10**30, [None])
    refuse(lambda value: book.remember_many([{"content": "x y z", "tier": "ultra"}], force=value), "x", None)
    assert book.list() == []


def test_what_is_no_series_is_refused(book: Engine) -> None:
    refuse(book.remember_many, None, True, 1.5, object(), "text")
    refuse(book.index_documents, None, True, 1.5, object(), "text", [None], [{"id": "a", "text": "b"}])
    assert book.index_status().counts["owners"] == 0


def test_what_is_no_answer_is_refused(book: Engine) -> None:
    refuse(book.count_use, *UNFIT, "text")
    refuse(lambda value: book.why(value, "a"), *UNFIT)
    refuse(book.count_tokens, *UNFIT)
    assert book.count_tokens("text") == 1


def test_what_is_no_text_is_refused(book: Engine) -> None:
    refuse(book.injection, *UNFIT)
    refuse(lambda value: book.injection("x", conversation=value), *UNFIT)
    refuse(book.clear_injected, *UNFIT)
    refuse(lambda value: book.snippet(value, "x"), *UNFIT)
    refuse(lambda value: book.snippet("x", value), *UNFIT)
    refuse(book.cut_tokens, *UNFIT)
    refuse(book.context, *UNFIT)
    assert book.injection("x", conversation="c").text == ""


def test_what_a_call_cannot_work_with_is_refused_before_it_begins(book: Engine) -> None:
    refuse(book.log_retrieval, *UNFIT, "text")
    refuse(book.places, None, True, 1.5, object(), "text")
    refuse(lambda value: book.sync(accept=value), *UNFIT[1:], "", "\0")
    refuse(book.consolidate, True, 1.5, object(), [None])
    refuse(lambda value: book.consolidate(confidence=value), *UNFIT[1:], "text")
    for namespace in (*UNFIT, "", " "):
        with pytest.raises(UsageError, match="is not a printable name"):
            book.in_namespace(namespace)
        with pytest.raises(UsageError, match="is not a printable name"):
            commonplace.open(book.directory, namespace)
    assert book.consolidation_runs() == []
