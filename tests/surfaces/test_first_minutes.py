"""What somebody meets in the first minutes: a store that is not there, an empty one, a half-built index, two times."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.surfaces.conftest import Program

import commonplace
from commonplace.errors import StoreMissingError, UsageError

OPENING = [
    ("remember", "Invoices are sent on Fridays"),
    ("search", "invoices"),
    ("index", "build"),
    ("index", "status"),
    ("graph", "add", "auth.ts depends on token.ts"),
    ("settings", "show"),
    ("doctor",),
    ("csp", "TASK REQ:recall invoices IN:MEM OUT:MEM_REFS"),
]


@pytest.mark.parametrize("arguments", OPENING, ids=" ".join)
def test_a_mistyped_store_is_refused_and_not_made(bare: Program, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """What is remembered in a store by mistake is lost to whoever opens the right one."""
    told = bare.error(*arguments, "--store", "../a stroe", code=2)
    assert told["type"] == "UsageError"
    assert "/../a stroe, where there is no store" in told["message"]
    assert "`commonplace init --store '../a stroe'`" in told["remedy"]
    assert not (tmp_path / "a stroe").exists()


def test_the_command_that_the_refusal_names_makes_the_store(bare: Program, tmp_path: Path) -> None:
    """A remedy that does not work is worse than none."""
    bare.run("remember", "Invoices are sent on Fridays", "--store", "../new", code=2)
    bare.run("init", "--store", "../new")
    bare.run("remember", "Invoices are sent on Fridays", "--store", "../new")
    assert (tmp_path / "new" / "store.db").is_file()


def test_restore_import_and_demo_make_the_store_that_is_named(program: Program, tmp_path: Path) -> None:
    """They are how a store comes to a new place."""
    program.run("remember", "Invoices are sent on Fridays")
    program.run("backup", "../backup.zip")
    program.run("export", "../export.jsonl")
    program.run("restore", "../backup.zip", "--store", "../restored")
    program.run("import", "../export.jsonl", "--store", "../imported")
    program.run("demo", "docs", "--store", "../shown")
    assert all((tmp_path / name / "store.db").is_file() for name in ("restored", "imported", "shown"))


def test_a_hook_with_a_mistyped_store_fails_without_stopping_its_client(bare: Program) -> None:
    """Clients take exit code 2 of a hook for a refusal of what the user typed."""
    bare.run("context", "--stdin-json", "--store", "../stroe", code=1)


def test_the_default_store_is_made_without_being_named(bare: Program) -> None:
    """Remembering something must need no preparation."""
    bare.run("remember", "Invoices are sent on Fridays")
    assert bare.json("recall", "when are invoices sent")["hits"]


def test_open_makes_a_store_unless_it_is_told_not_to(tmp_path: Path) -> None:
    """A program that only reads must be able to say so, before a wrong path looks like an empty store."""
    with pytest.raises(StoreMissingError, match=r"there is no store at .*none; make one with create=True"):
        commonplace.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()
    commonplace.open(tmp_path / "made").close()
    commonplace.open(tmp_path / "made", create=False).close()
    with pytest.raises(UsageError, match="create is 'no'"):
        commonplace.open(tmp_path / "made", create="no")  # type: ignore[arg-type]


def test_when_something_happened_may_be_said_in_words(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks by "last Tuesday" also remembers by it; a day is one of this machine's calendar, as printed."""
    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setattr("commonplace.cli.values.clock", datetime(2026, 3, 5, 2, tzinfo=UTC).timestamp)  # 9 p.m. there
    time.tzset()
    try:
        yesterday = datetime(2026, 3, 3, 5, tzinfo=UTC)
        for number, words in enumerate(("yesterday", "Yesterday", "2026-03-03")):
            kept = bare.json("remember", f"Note {number} on herons", "--at", words, "--force")
            assert datetime.fromisoformat(kept["at"]) == yesterday
        assert len(bare.json("list", "--since", "yesterday")) == 3
        assert bare.json("list", "--until", "yesterday") == []
    finally:
        monkeypatch.undo()
        time.tzset()


def test_python_reads_the_words_by_its_clock(tmp_path: Path) -> None:
    """The library knows no zone but UTC, and no time but its clock's."""
    with commonplace.open(tmp_path / "store", clock=lambda: datetime(2026, 3, 5, 9, tzinfo=UTC).timestamp()) as book:
        assert book.remember("A heron came", at="yesterday").at == datetime(2026, 3, 4, tzinfo=UTC)
        assert book.update(book.list()[0].id, at="two hours ago").at == datetime(2026, 3, 5, 7, tzinfo=UTC)
        assert [each.content for each in book.list(since="today")] == ["A heron came"]
        with pytest.raises(UsageError, match=r'at is .some day.; give .* or words such as "last Tuesday"'):
            book.remember("An egret came", at="some day")
