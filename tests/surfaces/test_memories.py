"""Memories through the command line, and the same through Python: the same hits, scores and order."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import commonplace
from commonplace.cli.app import cli

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

NOTES = [
    "Billing keeps its invoices in Postgres since the move in March.",
    "The user wants short answers with the command to run first.",
    "The staging cluster is rebuilt every Sunday night.",
    "Ada decided that refunds above a hundred euros need a second pair of eyes.",
]


def test_the_same_recall_gives_the_same_through_python_and_the_command_line(bare: Program) -> None:
    bare.run("init")
    for note in NOTES:
        bare.run("remember", note)
    with commonplace.open(bare.project / ".commonplace") as book:
        for question in ("where are invoices kept", "who decides about refunds", "staging cluster", "the weather"):
            told = bare.json("recall", question, "--min-score", "0")
            found = book.recall(question, min_score=0).to_dict()
            assert [(hit["id"], hit["score"]) for hit in told["hits"]] == [
                (hit["id"], hit["score"]) for hit in found["hits"]
            ]


def test_a_memory_goes_its_way_by_commands_alone(bare: Program) -> None:
    kept = bare.json("remember", NOTES[0], "--tag", "db", "--category", "decision", "--metadata", '{"ticket": 7}')
    assert (kept["tags"], kept["category"], kept["metadata"]) == (["db"], "decision", {"ticket": 7})
    id_ = kept["id"]
    assert bare.json("remember", NOTES[0])["outcome"] == "touched"
    assert bare.json("update", id_, "Billing keeps its invoices in SQLite.")["version"] == 2
    assert bare.json("get", id_)["content"] == "Billing keeps its invoices in SQLite."
    assert bare.json("get", id_, "--as-of", kept["updated_at"])["content"] == NOTES[0]
    assert [each["version"] for each in bare.json("get", id_, "--versions")] == [1, 2]
    assert bare.json("touch", id_)[0]["use_count"] == 2
    assert bare.json("review", id_)[0]["review_count"] == 1
    assert bare.run("review", id_).stdout == f"Reviewed: {id_} (medium)\n"
    other = bare.json("remember", NOTES[1])["id"]
    assert bare.json("memory", "link", id_, other, "--type", "because")[0]["target"] == other
    assert len(bare.json("memory", "link", id_)) == 1
    assert bare.json("memory", "link", id_, other, "--remove") == {"removed": 1}
    assert [each["id"] for each in bare.json("list", "--tag", "db")] == [id_]
    assert bare.json("why", "invoices", id_)["rank"] == 1
    assert bare.json("memory", "archive", id_)[0]["status"] == "archived"
    assert bare.json("recall", "invoices")["hits"] == []
    assert bare.json("memory", "restore", id_)[0]["outcome"] == "restored"
    assert bare.json("recall", "invoices")["hits"][0]["owner_id"] == id_


def test_what_people_see_reads_well(bare: Program) -> None:
    done = bare.run("remember", NOTES[0], "--id", "invoices", "--tag", "db")
    assert done.stdout == "Remembered: invoices (short)\n"
    again = bare.run("remember", NOTES[0])
    assert again.stdout == "Remembered before; touched: invoices (short)\n"
    assert again.stderr.splitlines()[-1].startswith("note: this was remembered before, exactly, as invoices")
    listed = bare.run("list").stdout.splitlines()
    assert listed[0].startswith("invoices · short · ")
    assert listed[0].endswith("· #db")
    assert listed[1:] == [f"   {NOTES[0]}"]
    shown = bare.run("get", "invoices").stdout
    assert "short (active)" in shown
    assert "agent, trust 0.80" in shown
    fenced = bare.run("recall", "where are invoices kept", "--fenced").stdout
    assert fenced.startswith("<recalled ")
    assert NOTES[0] in fenced


def test_a_list_that_is_cut_off_says_how_to_go_on(bare: Program) -> None:
    for note in NOTES:
        bare.run("remember", note)
    assert bare.run("list", "--limit", "4").stderr == ""
    assert bare.run("list", "--limit", "3").stderr == "note: there are more; see them with --offset 3\n"
    last = bare.run("list", "--limit", "3", "--offset", "3")
    assert (len(last.stdout.splitlines()), last.stderr) == (2, "")
    assert bare.run("list", "--tag", "none").stdout == "No such memories.\n"


def test_what_is_long_is_shown_by_its_first_lines_and_its_lines_stay_apart(bare: Program) -> None:
    bare.run("remember", f"# Retries\n\nFive times.\n{'and then again ' * 40}", "--id", "retries")
    _, title, sentence, _, cut = bare.run("list").stdout.splitlines()
    assert (title, sentence, cut) == ("   # Retries", "   Five times.", "   …")


def test_recalled_memories_are_shown_with_id_score_and_date(bare: Program) -> None:
    bare.run("remember", NOTES[0], "--id", "invoices", "--at", "2024-03-05T12:00:00Z", "--tag", "db")
    bare.run("remember", NOTES[1])
    head, text, *rest, found = bare.run("recall", "where are invoices kept").stdout.splitlines()
    assert all("below the minimum score" in line for line in rest)
    assert re.fullmatch(r"1\. invoices · [01]\.\d\d, sure · short · 2024-03-05 \d\d:\d\d · #db", head)
    assert text == f"   {NOTES[0]}"
    assert re.fullmatch(r"1 memory in \d+ ms", found)
    assert bare.run("recall", "zebra").stdout.startswith("No memory is about this.\n   Try other words")


def test_no_line_is_wider_than_the_terminal(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id of 36 characters leaves no room for the rest beside it, and is never broken itself."""
    monkeypatch.setenv("COLUMNS", "40")
    for note in NOTES:
        bare.run("remember", note, "--source", "the standup", "--tag", "decision", "--tag", "db")
    id_ = bare.json("list")[0]["id"]
    for command in (["list"], ["get", id_], ["get", id_, "--versions"], ["recall", "invoices", "--min-score", "0"]):
        lines = bare.run(*command).stdout.splitlines()
        assert [line for line in lines if len(line) > 40 and not line.endswith(f"id  {id_}")] == [], command


def test_text_comes_from_a_file_or_a_pipe_too(bare: Program) -> None:
    (bare.project / "note.txt").write_text("From a file", "utf-8")
    assert bare.json("remember", "--file", "note.txt")["content"] == "From a file"
    (bare.project / "latin.txt").write_bytes(b"caf\xe9")
    assert "is not UTF-8" in bare.error("remember", "--file", "latin.txt", code=2)["message"]
    assert "cannot be read" in bare.error("remember", "--file", "none.txt", code=1)["message"]
    piped = CliRunner().invoke(cli, ["remember", "--json"], input="From a pipe")
    assert json.loads(piped.stdout)["content"] == "From a pipe"


@pytest.mark.parametrize("command", [("remember",), ("graph", "add"), ("update", "note")])
def test_text_that_never_ends_or_never_comes_is_refused(bare: Program, command: tuple[str, ...]) -> None:
    """A device would fill the memory of the machine, and a pipe that nobody writes to would hold the command up."""
    bare.run("remember", "A note", "--id", "note")
    os.mkfifo(bare.project / "queue")
    for name, why in (
        ("/dev/zero", "it is not a regular file"),
        ("queue", "it is not a regular file"),
        (".", "it is a directory"),
    ):
        told = bare.error(*command, "--file", name, code=2)
        assert (told["message"], "standard input" in told["remedy"]) == (f"{name} cannot be read: {why}", True)
    limit = 1024 * 1024
    (bare.project / "long.txt").write_bytes(b"a" * (limit + 3))
    assert f"more than {limit:,} bytes, the limit" in bare.error(*command, "--file", "long.txt", code=2)["message"]
    piped = CliRunner().invoke(cli, [*command, "-"], input="a" * (limit + 3))
    assert (piped.exit_code, f"standard input has more than {limit:,} bytes" in piped.stderr) == (2, True)


def test_text_of_exactly_the_limit_is_taken_with_the_end_of_its_line(
    bare: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit is on what is remembered; the newline that an editor adds is no part of that."""
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "static")  # a mebibyte takes the transformer seconds
    monkeypatch.setenv("COMMONPLACE_GRAPH_REMEMBER", "off")
    (bare.project / "whole.txt").write_text("word " * (1024 * 1024 // 5) + "a\n", "utf-8")
    assert len(bare.json("remember", "--file", "whole.txt")["content"]) == 1024 * 1024


def test_wrong_use_is_told_with_a_remedy(bare: Program) -> None:
    bare.run("init")
    assert bare.error("remember", " ", code=2)["message"] == "the content is empty"
    assert "is not JSON" in bare.error("remember", "x", "--metadata", "{", code=2)["message"]
    assert bare.error("get", "nobody", code=1)["remedy"] == "see `commonplace list`"
    assert bare.error("memory", "link", "nobody", code=1)["remedy"] == "see `commonplace list`"
    assert bare.error("touch", "nobody", code=1)["type"] == "NotFoundError"
    assert "trust is 2.0" in bare.error("remember", "x", "--trust", "2", code=2)["message"]
    assert "--as-of is 'blue'" in bare.error("recall", "x", "--as-of", "blue", code=2)["message"]
    assert bare.error("why", "nothing here", code=1)["message"] == "nothing was found"


@pytest.mark.parametrize(("words", "code"), [(("why", "invoices", "postgres"), 1), (("why", "a", "b", "c"), 2)])
def test_a_query_of_why_that_was_not_quoted_is_told_to_be(bare: Program, words: tuple[str, ...], code: int) -> None:
    """Other commands take the words of a query as they come; here the second one would be taken for a hit."""
    bare.run("remember", NOTES[0])
    assert "quotation marks" in bare.error(*words, code=code)["remedy"]


def test_one_wrong_id_among_many_changes_nothing(bare: Program) -> None:
    bare.run("remember", NOTES[0], "--id", "one")
    bare.error("memory", "archive", "one", "nobody", code=1)
    assert bare.json("get", "one")["status"] == "active"


def test_a_time_in_words_is_one_wherever_a_time_is_asked_for(bare: Program) -> None:
    bare.run("remember", NOTES[0], "--id", "invoices")
    for words in ("an hour ago", "half an hour ago", "last Tuesday"):
        error = bare.error("get", "invoices", "--as-of", words, code=1)
        assert re.match(r"memory 'invoices' was not known at 20\d\d-\d\d-\d\dT[\d:]{8}Z in", error["message"])
        assert bare.json("recall", "invoices", "--as-of", words)["hits"] == []


def test_a_new_store_holds_nothing_of_a_text_that_is_refused(bare: Program) -> None:
    for arguments in (("",), ("x", "--at", "some day"), ("x", "--trust", "7"), ("x", "--tag", "t" * 300)):
        bare.run("remember", *arguments, code=2)
    assert bare.json("list") == []


def test_times_without_a_zone_are_those_of_this_machine_as_they_are_printed(
    bare: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare.run("init")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        kept = bare.json("remember", NOTES[0], "--at", "2026-03-01 12:00", "--id", "invoices")
        assert kept["at"] == "2026-03-01T17:00:00Z"
        assert "2026-03-01 12:00" in bare.run("get", "invoices").stdout
        assert len(bare.json("list", "--since", "2026-03-01 11:59", "--until", "2026-03-01 12:01")) == 1
        assert bare.json("remember", NOTES[1], "--at", "2026-03-01T12:00:00Z")["at"] == "2026-03-01T12:00:00Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_newline_that_ends_a_pipe_is_no_part_of_what_is_said(bare: Program) -> None:
    bare.run("init")
    done = CliRunner().invoke(cli, ["remember", "--json"], input="From a pipe\n")
    assert json.loads(done.stdout)["content"] == "From a pipe"


def test_a_store_that_is_made_by_the_way_is_told(bare: Program) -> None:
    told = bare.run("remember", NOTES[0]).stderr
    assert told.startswith("note: there is no project here, so your user store is used, ")
    bare.run("init")
    assert bare.run("remember", NOTES[1]).stderr == ""


def test_ids_may_be_abbreviated(bare: Program) -> None:
    """Nobody types 36 characters; a beginning that only one memory has is enough, as in git."""
    bare.run("init")
    one = bare.json("remember", "The heron stands in the reeds")["id"]
    bare.run("remember", "Egrets came")
    assert bare.json("get", one[:8])["id"] == one
    assert bare.json("memory", "archive", one[:8])[0]["status"] == "archived"
    bare.run("memory", "restore", one[:8])
    assert bare.json("forget", one[:8], "--yes")["ids"] == [one]
    assert bare.error("get", one[:8], code=1)["message"].startswith("there is no memory")


def test_the_whole_id_of_a_document_is_no_abbreviation(bare: Program) -> None:
    """A memory whose id begins with it must not be forgotten in its place."""
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember("The guide needs a chapter on herons", id="guide-notes")
        book.index_documents([commonplace.Document("guide", "The guide says where the egrets are.")])
    assert bare.json("forget", "guide", "--yes")["ids"] == ["guide"]
    assert bare.json("get", "guide")["id"] == "guide-notes"


def test_an_abbreviation_of_several_ids_names_them(bare: Program) -> None:
    """Acting on one of them would be a guess."""
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember_many([{"content": text, "id": f"note-{text}"} for text in ("alpha", "beta")])
        assert book.resolve_id("note-a") == "note-alpha"
        assert (book.resolve_id("not"), book.resolve_id("zzzzz")) == ("not", "zzzzz")
    error = bare.error("memory", "archive", "note-", code=2)
    assert error["message"] == "'note-' begins the ids of 2 memories: note-alpha, note-beta"
    assert error["remedy"] == "give more characters"
