"""The health of memories through Python and the command line, as text, JSON and a page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commonplace
from commonplace.retention import DAY_S

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

NOW = 1_750_000_000.0


@pytest.fixture
def ailing(bare: Program) -> Iterator[Program]:
    """A store in which something of each kind is wrong."""
    now = [NOW - 61 * DAY_S]
    with commonplace.open(bare.project / ".commonplace", clock=lambda: now[0]) as book:
        book.remember("The bug is in src/login.py, where the hash is compared", id="changed", force=True)
        book.remember("docs/storage.md tells where invoices are", id="gone", force=True)
        book.remember("docs/auth.md tells when a session expires", id="same", force=True)
        book.remember("Ravens nest in the old lighthouse of Skagen", id="one")
        now[0] = NOW
        book.remember("Ravens nest in the old lighthouse of Skagen.", id="other", force=True)
        book.remember("ok", id="ok", force=True)
        book.graph.add_triplet("Ann", "LIVES_IN", "Oslo")
        book.graph.add_triplet("Ann", "LIVES_IN", "Rome")
    (bare.project / "src/login.py").write_text("pass\n")
    (bare.project / "docs/storage.md").unlink()
    yield bare


def test_what_is_wrong_is_found_and_nothing_else(ailing: Program) -> None:
    told = ailing.json("health")
    found = [(each["kind"], each["ids"], each["why"]) for each in told["findings"] if each["kind"] != "contradiction"]
    assert found == [
        ("duplicate", ["one", "other"], "duplicates"),
        ("stale", ["changed"], "src/login.py has changed since it was written"),
        ("stale", ["gone"], "docs/storage.md was deleted since it was written"),
        ("junk", ["ok"], "it is a pleasantry or a placeholder"),
    ]
    (contradiction,) = [each for each in told["findings"] if each["kind"] == "contradiction"]
    assert len(contradiction["ids"]) == 2
    assert "Oslo" in contradiction["why"] and "Rome" in contradiction["why"]
    assert told["counts"] == {"duplicate": 1, "contradiction": 1, "overtaken": 0, "stale": 2, "orphan": 0, "junk": 1}
    assert (told["memories"], told["tiers"]["short"], told["statuses"]["active"]) == (6, 6, 6)
    assert sum(told["retention"].values()) == 6


def test_duplicates_are_those_of_the_texts_as_they_are_now(bare: Program) -> None:
    said = "On Monday, the whole team deploys the billing service to production"
    nearly = "on Monday the whole team deploys the billing service to production."
    with commonplace.open() as book:

        def duplicates() -> list[tuple[str, ...]]:
            return [each.ids for each in book.health().findings if each.kind == "duplicate"]

        book.remember(said, id="one")
        book.remember(said, id="turn", force=True, session="talk")
        assert duplicates() == []
        book.remember(nearly, id="other", force=True)
        assert duplicates() == [("one", "other")]
        book.update("other", "The whole team deploys the billing service to production on Tuesday")
        assert duplicates() == []
        book.update("other", said)
        book.remember(nearly, id="third", force=True)
        assert duplicates() == [("one", "other"), ("one", "third"), ("other", "third")]
        book.forget(["one"])
        assert duplicates() == [("other", "third")]


def test_a_merged_memory_is_as_stale_as_what_it_was_made_of(ailing: Program) -> None:
    with commonplace.open() as book:
        made = book.process_issue(book.ledger.create("merge", ["changed", "gone"], "merge")).results["merge"][0]
        stale = {each.ids: each.why for each in book.health().findings if each.kind == "stale"}
    (merged,) = {id_ for ids in stale for id_ in ids}
    assert merged == made.model_dump()["new_memory_id"]
    assert "docs/storage.md was deleted" in stale[merged,] and "src/login.py has changed" in stale[merged,]


def test_python_and_the_command_line_tell_the_same(ailing: Program) -> None:
    told = ailing.json("health")
    with commonplace.open() as book:
        found = book.health().to_dict()
    assert {**found, "retention": None} == {**told, "retention": None}


def test_a_person_reads_what_is_wrong_with_the_words(ailing: Program) -> None:
    printed = ailing.run("health").stdout
    assert "6 memories" in printed
    assert "Duplicates: 1" in printed
    assert "Ravens nest in the old lighthouse" in printed
    assert "src/login.py has changed since it was written" in printed


def test_archived_memories_are_counted_apart(ailing: Program) -> None:
    """Else the status would not add up to the memories."""
    ailing.run("memory", "archive", "ok")
    assert ailing.run("health").stdout.startswith("5 memories, and 1 archived (not counted)\n")


def test_a_store_without_memories_has_nothing_wrong(bare: Program) -> None:
    bare.run("init")
    assert "Nothing to look at." in bare.run("health").stdout
    assert "retention" not in bare.run("health").stdout


def test_health_points_to_the_proposals_that_wait(bare: Program) -> None:
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember("The office has a piano on the second floor", id="one")
        book.remember("Gulls steal sandwiches at the harbour", id="two")
        book.ledger.create("merge", ["one", "two"], "merge")
    assert bare.run("health").stdout.endswith("Nothing to look at but what `commonplace review` asks.\n")


def test_a_promoted_memory_without_its_note_and_a_note_without_its_memory_are_found(bare: Program) -> None:
    with commonplace.open(bare.project / ".commonplace") as book:
        book.remember("We chose Postgres for billing, after a long debate", id="chosen")
        for _ in range(5):
            book.touch("chosen")
        book.process_issue(book.ledger.create("promote", ["chosen"], "promote"))
        (note,) = (book.directory / "vault").glob("*.md")
    assert bare.json("health")["counts"]["orphan"] == 0
    note.rename(note.with_name("elsewhere.md"))
    assert bare.json("health")["counts"]["orphan"] == 2
    with commonplace.open() as book:
        assert {each.ids for each in book.health().findings} == {("chosen",)}


def test_golden_queries_that_fail_make_the_exit_code_1(ailing: Program, tmp_path: Path) -> None:
    golden = tmp_path / "golden.jsonl"
    lines = [
        {"query": "where do ravens nest", "relevant": ["one"]},
        {"query": "where do ravens nest", "relevant": ["one", "nowhere"]},
    ]
    golden.write_text("\n".join(map(json.dumps, lines)))
    told = ailing.json("health", "--golden", str(golden), code=1)
    assert [each["found"] for each in told["golden"]] == [["one"], ["one"]]
    assert "does not find nowhere" in ailing.run("health", "--golden", str(golden), code=1).stdout
    golden.write_text(json.dumps(lines[0]))
    assert "each finds its expected results" in ailing.run("health", "--golden", str(golden)).stdout


def test_a_directory_of_golden_queries_is_refused(ailing: Program) -> None:
    assert "--golden" in ailing.run("health", "--golden", ".", code=2).stderr


def test_a_hit_is_marked_on_the_command_line_and_health_tells_when_it_is_lost(ailing: Program) -> None:
    done = ailing.run("why", "where do ravens nest", "one", "--kind", "memory", "--mark", "right")
    assert "marked right" in done.stderr
    assert "1 golden query: each finds its expected results" in ailing.run("health").stdout
    ailing.run("why", "where do ravens nest", "other", "--kind", "memory", "--mark", "wrong")
    assert "golden query 'where do ravens nest' shows other" in ailing.run("health", code=1).stdout
    assert "Golden query: where do ravens nest" in ailing.run("ledger", "list").stdout
    (golden,) = ailing.json("health", code=1)["golden"]
    ailing.run("ledger", "close", golden["issue"], "--reason", "settled")
    assert ailing.json("health")["golden"] == []


def test_a_command_to_paste_quotes_an_id(ailing: Program) -> None:
    """An id is any text, and the shell would read two of it."""
    ailing.run("remember", "lorem ipsum dolor", "--id", "a placeholder")
    assert "commonplace memory archive 'a placeholder'" in ailing.run("health").stdout
