"""Forgetting through the command line: the same as through Python, asked about on a terminal, told in sentences."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.surfaces.conftest import made_once
from tests.surfaces.test_terminal import MAIN, STYLE, environment

import commonplace
from commonplace.cli.app import cli

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

TALK = [
    "Ada: the charity race on Sunday starts beside the windmill.",
    "Ben: my sister keeps bees behind the windmill, by the way.",
    "Ada: honey from there tastes of lime trees.",
]
OWN = {"id", "at", "checked"}
"""What differs between two receipts of the same forgetting: the index's files have names made by chance."""


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with made_once(tmp_path_factory) as bare:
        bare.run("init")
        with commonplace.open(bare.project / ".commonplace") as book:
            turns = [{"content": text, "id": f"t{number}", "session": "chat"} for number, text in enumerate(TALK)]
            book.remember_many(turns)
            book.remember("Carol's telephone number is 030 1234567", id="carol", tags=["private"], source="mail")
            book.remember("The lift is out of order until March", id="lift")
            book.archive("lift")
    return bare.project


@pytest.fixture
def talked(bare: Program, once: Path) -> Program:
    """A store with a conversation, a note on a phone number, and an old note that was archived."""
    return bare.take(once)


def test_parts_of_the_graph_are_shown_by_what_they_say(bare: Program) -> None:
    """Whoever types an id of the graph sees which facts and names go with it before they do."""
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        book.graph.add_episode("Carol works for Larkspur.", uuid="talk", reference_time="2026-01-05")
    lines = bare.run("forget", "talk", "--dry-run").stdout.splitlines()
    assert lines[0] == "Would forget 1 episode, 2 entities and 1 fact"
    assert [word for word in ("talk", "Carol", "Larkspur", "Carol works for Larkspur.") if word in str(lines)] == [
        "talk",
        "Carol",
        "Larkspur",
        "Carol works for Larkspur.",
    ]
    assert bare.run("forget", "--yes", "talk").stdout.splitlines()[0] == "Forgot 1 episode, 2 entities and 1 fact"


def without(receipt: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in receipt.items() if name not in OWN}


def kept(program: Program) -> list[str]:
    statuses = ("--status", "active", "--status", "archived")
    return sorted(memory["id"] for memory in program.json("list", *statuses))


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        (["t0", "t2"], {"id": ["t0", "t2"]}),
        (["--tag", "private"], {"tag": "private"}),
        (["--source", "mail"], {"source": "mail"}),
        (["--session", "chat"], {"session": "chat"}),
    ],
)
def test_the_same_is_forgotten_through_python_and_the_command_line(
    talked: Program, tmp_path: Path, arguments: list[str], given: dict[str, Any]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(talked.project / ".commonplace", copy)
    with commonplace.open(copy) as book:
        plan, done = book.forget(**given, dry_run=True).to_dict(), book.forget(**given).to_dict()
    assert without(talked.json("forget", *arguments, "--dry-run")) == without(plan)
    assert len(kept(talked)) == 5
    told = talked.json("forget", "--yes", *arguments)
    assert without(told) == without(done)
    assert (told["verified"], set(told)) == (True, set(done))
    with commonplace.open(copy) as book:
        assert kept(talked) == sorted(memory.id for memory in book.list(statuses=[]))
    assert talked.json("forget", "--receipts") == [told]


def test_what_was_archived_long_ago_goes_as_through_python(talked: Program, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(talked.project / ".commonplace", copy)
    with commonplace.open(copy) as book:
        done = book.gc(0).to_dict()
    assert talked.json("store", "gc")["counts"]["memories"] == 0
    assert talked.json("store", "gc", "--older-than-days", "0", "--dry-run")["ids"] == ["lift"]
    assert without(talked.json("store", "gc", "--older-than-days", "0")) == without(done)
    assert kept(talked) == ["carol", "t0", "t1", "t2"]


def test_a_receipt_reads_as_sentences(talked: Program) -> None:
    lines = talked.run("forget", "--yes", "carol").stdout.splitlines()
    assert lines[0] == "Forgot 1 memory"
    assert re.match(r"   with 1 version, 1 passage(,| and) ", lines[1])
    assert lines[2] == "   carol"
    assert re.fullmatch(r"Searched \d+ files of the store \([\d.]+ KiB\): nothing of it is left\.", lines[3])
    assert lines[4] == "Not deleted, because it is outside the store:"
    assert re.fullmatch("Receipt [0-9a-f-]{36}", lines[-1])
    listed = talked.run("forget", "--receipts").stdout.splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d  1 memory: verified", listed[0])
    assert listed[1].split() == lines[-1].lower().split()


def test_a_dry_run_shows_the_texts_that_would_go_and_changes_nothing(talked: Program) -> None:
    """An id alone does not tell a person what it is that will be gone for ever."""
    lines = talked.run("forget", "--session", "chat", "--dry-run").stdout.splitlines()
    assert lines[0] == "Would forget 3 memories"
    assert [line for line in lines if line.startswith("   t")] == [f"   t{n} · {text}" for n, text in enumerate(TALK)]
    assert talked.json("forget", "--receipts") == []
    assert len(kept(talked)) == 5


def test_of_a_long_text_without_spaces_the_beginning_is_shown(bare: Program) -> None:
    """Some scripts have none, nor has an address."""
    bare.run("init")
    bare.run("remember", "--id", "move", "我们上周把办公室搬到了柏林，因为旧的合同到期了" * 5)
    bare.run("remember", "--id", "page", "https://example.com/" + "a" * 90)
    shown = bare.run("forget", "--dry-run", "move", "page").stdout
    assert "我们上周把办公室搬到了柏林，因为旧的合同到期了" in shown
    assert "https://example.com/aaa" in shown
    assert "a" * 80 not in shown


def test_many_are_shown_by_the_first_and_their_number(bare: Program) -> None:
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember_many([{"content": f"Entry {n} of the log of lamp{n}", "id": f"e{n:02}"} for n in range(12)])
        for entry in book.list():
            book.update(entry.id, tags=["log"])
    shown = bare.run("forget", "--tag", "log", "--dry-run").stdout
    assert "   e09 · Entry 9 of the log of lamp9\n   … 2 more; --json lists all\n" in shown
    assert len(bare.json("forget", "--tag", "log", "--dry-run")["ids"]) == 12


def test_sources_of_a_merge_go_as_copies_of_what_is_forgotten(bare: Program) -> None:
    """They were not made from it; it was made from them."""
    with commonplace.open(bare.project / ".commonplace") as book:
        ids = [book.remember(f"{word} is on the left pier", id=word).id for word in ("kiosk", "crane")]
        book.process_issue(book.ledger.create("merge", ids, "merge"))
        (merged,) = book.list()
    assert "3 memories, 2 of them as copies of the others" in bare.run("forget", merged.id, "--dry-run").stdout


def test_nothing_old_enough_is_told_and_no_failure(talked: Program) -> None:
    for arguments in (("store", "gc"), ("store", "gc", "--dry-run")):
        assert talked.run(*arguments).stdout == "Nothing to forget: nothing was archived that long ago.\n"
    assert talked.run("forget", "--receipts").stdout == "Nothing was forgotten in this namespace.\n"


def test_a_backup_is_named_as_out_of_reach(talked: Program, tmp_path: Path) -> None:
    talked.run("backup", str(tmp_path / "b.zip"))
    shown = " ".join(talked.run("forget", "--yes", "carol").stdout.split())
    assert f"Not deleted, because it is outside the store: the backup {tmp_path / 'b.zip'} of " in shown


def test_what_is_left_is_told_with_exit_code_1(talked: Program) -> None:
    """A proof that failed must not look like one that did not."""
    stray = talked.project / ".commonplace" / "stray.txt"
    stray.write_text("somebody's copy: Carol's telephone number is 030 1234567\n")
    told = talked.run("forget", "--yes", "carol", code=1).stdout
    assert re.search(r"Searched \d+ files of the store \([\d.]+ KiB\): found \d traces?\.\n   stray\.txt: ", told)
    assert "traces remain: review what was found, remove or edit those files" in " ".join(told.split())
    assert "not verified" in talked.run("forget", "--receipts").stdout
    assert stray.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message", "remedy"),
    [
        ([], 2, "nothing was selected", "give exactly one of id, tag, source, session, path"),
        (
            ["t0", "--tag", "private"],
            2,
            "id and tag cannot be combined",
            "give exactly one of",
        ),
        (
            ["--session", "s", "--source", "x", "--tag", "y"],
            2,
            "tag, source and session cannot be combined",
            "give exactly one of",
        ),
        (["t0", "nobody"], 1, "there is nothing with the id 'nobody'", "see `commonplace list`"),
        (["--tag", "nosuch"], 1, "nothing has the tag 'nosuch'", "see `commonplace list`"),
        (["--session", "Chat"], 1, "nothing has the session 'Chat'", "see `commonplace list`"),
        (["--tag", ""], 2, "it is empty", ""),
        (["--tga", "x"], 2, "No such option '--tga'", ""),
        (["--receipts", "t0"], 2, "it takes no other option", ""),
    ],
)
def test_a_wrong_request_forgets_nothing(
    talked: Program, arguments: list[str], code: int, message: str, remedy: str
) -> None:
    error = talked.error("forget", "--yes", *arguments, code=code)
    assert message in error["message"]
    assert remedy in error["remedy"]
    done = talked.run("forget", "--yes", *arguments, code=code)
    assert done.stdout == ""
    assert f"error: {error['message']}" in done.stderr
    assert len(kept(talked)) == 5


@pytest.mark.parametrize("days", ["-1", "36501", "nan", "soon"])
def test_days_out_of_range_forget_nothing(talked: Program, days: str) -> None:
    assert days in talked.error("store", "gc", f"--older-than-days={days}", code=2)["message"]
    assert len(kept(talked)) == 5


def test_a_namespace_goes_by_its_exact_name_alone(talked: Program) -> None:
    talked.run("remember", "The other team meets on Thursdays", "--namespace", "team")
    wrong = talked.error("store", "forget-namespace", "team", "--confirm", "Team", code=2)
    assert wrong["message"] == "the namespace is 'team' and what confirms it is 'Team'; nothing was forgotten"
    assert "--confirm" in talked.error("store", "forget-namespace", "team", code=2)["message"]
    missing = talked.error("store", "forget-namespace", "tea", "--confirm", "tea", code=1)
    assert missing == {
        "type": "NotFoundError",
        "message": "there is no namespace 'tea'",
        "remedy": "the store has 'default', 'team'",
    }
    plan = talked.run("store", "forget-namespace", "team", "--confirm", "team", "--dry-run").stdout
    assert plan.startswith("Would forget namespace 'team' with 1 memory\n")
    assert len(talked.json("list", "--namespace", "team")) == 1
    done = talked.run("store", "forget-namespace", "team", "--confirm", "team").stdout
    assert done.startswith("Forgot namespace 'team' with 1 memory\n")
    assert talked.json("list", "--namespace", "team") == []
    assert len(kept(talked)) == 5


def test_every_command_that_a_message_names_is_there() -> None:
    """A remedy that cannot be followed is worse than none."""
    source = Path(commonplace.__file__).parent
    pages = [path.read_text("utf-8") for path in sorted(source.rglob("*.py"))]
    named = {name for page in pages for name in re.findall(r"`commonplace ([a-z][a-z-]*)", page)}
    assert {"list", "memory", "store"} <= named
    assert named - set(cli.commands) == set()


@contextmanager
def asking(*arguments: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run a command whose standard input, output and error are a terminal, and give its other end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", MAIN, *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(COLUMNS="100"), start_new_session=True
    )
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def shown_until(terminal: int, end: str) -> str:
    """Return what appears on a terminal up to some words, or to its end."""
    text = ""
    while end not in text and select.select([terminal], [], [], 30)[0]:
        try:
            text += STYLE.sub("", os.read(terminal, 65536).decode()).replace("\r\n", "\n")
        except OSError:  # the program has ended
            break
    return text


QUESTION = "Forget this for good? [y/N]: "


@pytest.mark.parametrize(
    ("answer", "code", "end", "left"),
    [
        (b"n\n", 1, "Nothing was forgotten.", 5),
        (b"\n", 1, "Nothing was forgotten.", 5),
        (b"\x04", 130, "interrupted", 5),
        (b"y\n", 0, "nothing of it is left.", 4),
    ],
)
def test_on_a_terminal_it_is_asked_about_with_the_text(
    talked: Program, answer: bytes, code: int, end: str, left: int
) -> None:
    """Nothing brings it back, and an id is soon mistaken."""
    with asking("forget", "carol") as (terminal, process):
        plan = shown_until(terminal, QUESTION)
        assert "carol · Carol's telephone number is 030 1234567\n" in plan
        assert plan.endswith(QUESTION)
        os.write(terminal, answer)
        assert end in shown_until(terminal, end)
        shown_until(terminal, "\0")
        assert process.wait(30) == code
    assert len(kept(talked)) == left


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_who_says_yes_or_only_looks_is_not_asked(talked: Program, option: str) -> None:
    with asking("forget", "carol", option) as (terminal, process):
        assert QUESTION not in shown_until(terminal, "\0")
        assert process.wait(30) == 0
    assert len(kept(talked)) == (5 if option == "--dry-run" else 4)


def test_forget_without_a_selector_says_which_there_are(talked: Program) -> None:
    """To be told to pass --yes would be the wrong advice."""
    error = talked.error("forget", code=2)
    assert error["message"] == "nothing was selected"


def test_nothing_is_forgotten_where_nobody_can_be_asked(talked: Program) -> None:
    """The shell of an agent is no terminal, and nothing brings back what was forgotten."""
    for option in ((), ("--json",)):
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "forget", "carol", *option],
            capture_output=True,
            env=environment(),
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"pass --yes to forget for good, or --dry-run to see what would go" in done.stderr
    with asking("forget", "carol", "--json") as (terminal, process):
        assert "--json never asks: pass --yes" in shown_until(terminal, "\0")
        assert process.wait(30) == 2
    assert len(kept(talked)) == 5


def test_the_answer_in_a_pipe_is_json_alone(talked: Program) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "forget", "--yes", "carol", "--json"],
        capture_output=True,
        env=environment(),
        check=True,
    )
    assert (json.loads(done.stdout)["ids"], done.stderr) == (["carol"], b"")


@pytest.mark.parametrize("source", ["MEMORY.md", "memory/2025-02-01.md"])
def test_what_came_from_a_page_named_as_the_store_s_own_is_forgotten_and_proved(bare: Program, source: str) -> None:
    """Other systems keep their memories in files of the same names, which the store's own pages go on bearing."""
    theirs = bare.project / "theirs"
    (theirs / "memory").mkdir(parents=True)
    (theirs / "MEMORY.md").write_text("# Memory\n\n- The windmill turns to the left\n")
    (theirs / "memory" / "2025-02-01.md").write_text("## 10:00 Standup\n\nThe release moves to Friday\n")
    bare.run("import", str(theirs))
    bare.run("remember", "Something else stays", "--tier", "long")
    bare.run("remember", "Standup moved to ten", "--tier", "short", "--at", "2025-02-01T12:00:00Z")
    receipt = bare.json("forget", "--yes", "--source", source)
    assert (receipt["found"], receipt["verified"]) == ([], True)
