"""Markdown beside the store: written by every command, taken in by the next one, gone when it is forgotten."""

from __future__ import annotations

import os
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

import commonplace
from commonplace.errors import StoreBusyError
from commonplace.locks import FileLock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.surfaces.conftest import Program

LEDGER = "The ledger lives in Postgres because it needs serializable isolation."
TABS = "The user prefers tabs."


@pytest.fixture
def stored(bare: Program) -> Program:
    """A project with an empty store."""
    bare.run("init")
    return bare


def edit(page: Path, old: str, new: str) -> None:
    """Change a page as an editor does that saved it a while ago: a page just saved may still be being written."""
    text = page.read_text("utf-8")
    assert old in text
    page.write_text(text.replace(old, new), "utf-8")
    long_ago(page)


def long_ago(page: Path) -> None:
    before = page.stat().st_mtime_ns - 10**9
    os.utime(page, ns=(before, before))


def day_page(program: Program) -> Path:
    return program.project / ".commonplace" / "memory" / f"{datetime.now().astimezone():%Y-%m-%d}.md"


def test_a_command_that_remembers_leaves_the_page_written(stored: Program) -> None:
    kept = stored.json("remember", LEDGER, "--tag", "db", "--at", datetime.now().astimezone().isoformat())
    page = day_page(stored).read_text("utf-8")
    assert LEDGER in page
    assert "Tags: #db" in page
    assert f"<!-- memory: {kept['id']} -->" in page
    stored.run("remember", TABS, "--tier", "long", "--category", "preference")
    assert TABS in (stored.project / ".commonplace" / "MEMORY.md").read_text("utf-8")


def test_what_people_write_into_a_page_is_found_by_the_next_command(stored: Program) -> None:
    stored.run("remember", LEDGER, "--at", datetime.now().astimezone().isoformat())
    edit(day_page(stored), " -->\n", " -->\n\n## 09:12 Lunch\n\nThe canteen closes at two.\n")
    hit = stored.json("recall", "when does the canteen close")["hits"][0]
    assert hit["text"].endswith("The canteen closes at two.")
    assert stored.json("get", hit["owner_id"])["origin"] == "user"


def test_an_edit_is_a_new_version_and_the_old_one_stays_readable(stored: Program) -> None:
    kept = stored.json("remember", TABS, "--tier", "long")
    edit(stored.project / ".commonplace" / "MEMORY.md", f"\n{TABS}", "\nThe user prefers spaces.")
    assert stored.json("sync")["updated"] == 1
    assert [each["content"] for each in stored.json("get", kept["id"], "--versions")] == [
        TABS,
        "The user prefers spaces.",
    ]
    assert stored.json("get", kept["id"], "--as-of", kept["updated_at"])["content"] == TABS


def test_sync_does_the_same_through_python_and_says_the_same(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    first = page.read_text("utf-8")
    edit(page, LEDGER, "The ledger lives in SQLite.")
    told = stored.json("sync")
    edit(page, "The ledger lives in SQLite.", "The ledger lives in DuckDB.")
    with commonplace.open(stored.project / ".commonplace") as book:
        report = book.sync()
    assert {**asdict(report), "conflicts": [], "notices": []} == told
    assert "DuckDB" in page.read_text("utf-8")
    assert first != page.read_text("utf-8")


def test_sync_tells_in_a_sentence_what_it_did(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long")
    assert stored.run("sync").stdout == "Markdown and memories agree.\n"
    page = stored.project / ".commonplace" / "MEMORY.md"
    edit(page, LEDGER, "The ledger lives in SQLite.\n\n### Lunch\n\nThe canteen closes at two.")
    told = stored.run("sync").stdout
    assert told == "1 page written; memories imported: 1 new, 1 edited.\n"


def test_what_cannot_be_taken_in_is_a_note_on_standard_error(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    page.write_bytes(b"caf\xe9")
    long_ago(page)
    told = stored.run("recall", "where does the ledger live")
    assert told.stderr == (
        "note: MEMORY.md is not UTF-8 (at byte 3); it was left as it is: make it readable UTF-8 text, "
        "or delete it to have it written again\n"
    )
    assert page.read_bytes() == b"caf\xe9"
    assert stored.json("recall", "where does the ledger live")["hits"][0]["text"] == LEDGER


def test_a_deleted_page_is_written_again_and_nothing_is_lost(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    before = page.read_text("utf-8")
    page.unlink()
    told = stored.run("list")
    assert LEDGER in told.stdout
    assert told.stderr == "note: MEMORY.md was deleted or emptied; it was written again from the store\n"
    assert page.read_text("utf-8") == before


def test_without_the_setting_only_sync_writes_pages(stored: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_MEMORY_MIRROR", "off")
    stored.run("remember", LEDGER, "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    stored.run("list")
    assert not page.exists()
    stored.run("sync")
    assert LEDGER in page.read_text("utf-8")


def test_what_is_forgotten_leaves_the_pages_too(stored: Program) -> None:
    kept = stored.json("remember", LEDGER, "--tier", "long")
    stored.run("remember", TABS, "--tier", "long")
    receipt = stored.json("forget", "--yes", kept["id"])
    assert receipt["verified"] is True
    assert receipt["counts"]["blocks"] == 1
    page = (stored.project / ".commonplace" / "MEMORY.md").read_text("utf-8")
    assert "ledger" not in page
    assert TABS in page


def test_a_forgotten_namespace_leaves_no_page_not_even_words_of_no_memory(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long", "--namespace", "Team A")
    stored.run("remember", TABS, "--tier", "long")
    page = stored.project / ".commonplace" / "memory" / "%54eam%20%41" / "MEMORY.md"
    edit(page, "# Memory", "# Memory\n\nA preface about zebras.")
    receipt = stored.json("store", "forget-namespace", "Team A", "--confirm", "Team A")
    assert receipt["verified"] is True
    assert receipt["counts"]["pages"] == 1
    assert not page.parent.exists()
    assert TABS in (stored.project / ".commonplace" / "MEMORY.md").read_text("utf-8")


def test_pages_come_along_in_a_backup(stored: Program) -> None:
    stored.run("remember", LEDGER, "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    edit(page, "# Memory", "# Memory\n\nA preface about zebras.")
    stored.run("sync")
    stored.run("backup", "kept.tar")
    stored.run("restore", "kept.tar", "--store", "copy")
    assert (stored.project / "copy" / "MEMORY.md").read_text("utf-8") == page.read_text("utf-8")
    assert stored.run("sync", "--store", "copy").stdout == "Markdown and memories agree.\n"


def test_sync_says_so_when_another_process_does_not_end(stored: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commonplace.journal.sync._SYNC_WAIT_S", 0.0)
    held = FileLock(stored.project / ".commonplace" / "memory.lock")
    with held.hold(0.0), commonplace.open(stored.project / ".commonplace") as book, pytest.raises(StoreBusyError):
        book.sync()


def test_a_page_that_lost_many_entries_is_written_again_and_accepted_by_one_command(stored: Program) -> None:
    """Whoever removes many entries on purpose reads in the notice what to do, and no memory goes by accident."""
    for number in range(8):
        stored.run("remember", f"Service {number} has port {3000 + 7 * number}.", "--tier", "long")
    page = stored.project / ".commonplace" / "MEMORY.md"
    edit(page, "# Memory", "# Memory\n\nServices and their ports.")
    stored.run("sync")
    whole = page.read_text("utf-8")
    text = whole[: whole.index("\n###", whole.index("Service 1 has"))] + "\n\n- A new item\n"
    page.write_text(text, "utf-8")
    long_ago(page)
    told = stored.run("list")
    [copy] = [path.name for path in page.parent.glob("MEMORY.damaged-*.md")]
    assert f"commonplace sync --accept {copy}" in told.stderr.replace("\n", " ")
    assert page.read_text("utf-8") == whole
    assert len(stored.json("list")) == 8
    report = stored.json("sync", "--accept", copy)
    assert (report["archived"], report["added"]) == (6, 1)
    assert not (page.parent / copy).exists()
    error = stored.error("sync", "--accept", copy, code=1)
    assert error["message"].startswith(f"there is no page '{copy}'")


def test_a_store_that_lost_its_database_is_begun_anew_from_its_pages_when_asked_to(stored: Program) -> None:
    """Neither a command nor a hook may go on with an empty store as if nothing had been remembered."""
    stored.run("remember", LEDGER, "--tier", "long")
    stored.run("remember", TABS, "--tier", "long")
    stored.run("recall", "ledger")
    store = stored.project / ".commonplace"
    (store / "store.db").unlink()
    for arguments in (["init"], ["remember", "New."], ["list"], ["sync"], ["doctor"], ["index", "status"]):
        error = stored.error(*arguments, code=1)
        assert error["type"] == "StoreDamagedError"
        assert f"`commonplace init --anew --store {store}`" in error["remedy"]
        assert not (store / "store.db").exists()
    made = stored.json("init", "--anew", "--store", str(store))
    assert (made["created"], made["taken_in"]) == (True, 2)
    assert sorted(memory["content"] for memory in stored.json("list")) == [LEDGER, TABS]
    assert stored.json("init", "--anew")["created"] is False
    assert len(stored.json("list")) == 2
