"""The graph on the command line: what was true when, told to a person and to a program."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from tests.surfaces.conftest import made_once

from commonplace.cli.app import cli

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with made_once(tmp_path_factory) as bare:
        bare.run("init")
        at = "2026-01-10T09:00Z"
        bare.run("graph", "add", "Ada Marsh lives in Lisbon. She works for Globex.", "--at", at)
        at = "2026-03-14T09:00Z"
        bare.run("graph", "add", "Ada Marsh lives in Porto.", "--at", at, "--source-description", "a call")
        at = "2026-02-01T09:00Z"
        bare.run("graph", "add", "auth.ts depends on token.ts for the refresh.", "--at", at)
        bare.run("graph", "fact", "token.ts", "part of", "session", "--valid-from", at)
    return bare.project


@pytest.fixture
def moved(bare: Program, once: Path) -> Program:
    """Somebody who moved, and files that are related."""
    return bare.take(once)


def lines(moved: Program, *arguments: str) -> list[str]:
    return [line.strip() for line in moved.run("graph", *arguments).stdout.splitlines()]


def test_an_episode_says_what_it_brought_and_what_ended_by_it(moved: Program) -> None:
    done = moved.run("graph", "add", "Ada Marsh lives in Madrid.", "--at", "2026-06-01T09:00Z", "--name", "a letter")
    told = [line.strip() for line in done.stdout.splitlines()]
    assert told[0].startswith("Added ")
    assert told[0].endswith(" · 2 entities and 1 fact")
    assert told[1:4] == [
        "Ada Marsh (person), Madrid (place)",
        "Ada Marsh lives in Madrid.",
        told[3],
    ]
    assert told[3].startswith("since 2026-06-01 · Ada Marsh LIVES_IN Madrid")
    ended = told.index("Ended by it:")
    assert told[ended + 1] == "Ada Marsh lives in Porto."
    assert told[ended + 2].startswith("from 2026-03-14 to 2026-06-01 · Ada Marsh LIVES_IN Porto")


def test_what_held_before_is_offered_where_a_fact_tells_of_it(moved: Program) -> None:
    assert (
        lines(moved, "facts", "where does Ada live")[-1]
        == "--valid-at TIME finds what held then, --past what has ended."
    )
    for other in (["what depends on token.ts"], ["where does Ada live", "--past"]):
        assert not any("--valid-at" in line for line in lines(moved, "facts", *other))


def test_what_holds_is_found_and_what_has_ended_where_it_is_asked_for(moved: Program) -> None:
    def found(*options: str) -> list[str]:
        told = moved.json("graph", "facts", "where does Ada live", "--type", "LIVES_IN", *options)
        return [each["fact"] for each in told["relations"]]

    porto, lisbon = "Ada Marsh lives in Porto.", "Ada Marsh lives in Lisbon."
    assert found() == [porto]
    assert found("--valid-at", "2026-02-01") == [lisbon]
    assert sorted(found("--past")) == [lisbon, porto]
    assert found("--group", "elsewhere") == []
    assert lines(moved, "facts", "where does Ada live", "--as-of", "2020-01-01") == [
        "No fact is about this.",
        "--past also looks at what has ended, --valid-at TIME at what held then.",
    ]


def test_entities_are_found_shown_and_followed(moved: Program) -> None:
    told = moved.json("graph", "entities", "Ada", "--limit", "1")
    [ada] = told["entities"]
    assert (ada["name"], ada["entity_type"]) == ("Ada Marsh", "person")
    assert lines(moved, "entities", "Ada", "--type", "person")[0].startswith("1. Ada Marsh · ")
    assert lines(moved, "entities", "zebra") == ["No entity is about this."]
    shown = lines(moved, "entity", ada["uuid"])
    assert shown[0] == f"Ada Marsh · person · {ada['uuid']}"
    assert "Ada Marsh lives in Porto." in shown
    assert "Ada Marsh lives in Lisbon." not in shown
    way = lines(moved, "path", "auth.ts", "session")
    assert [line.split(" · ")[0] for line in way if line[0] in "a—←"] == [
        "auth.ts",
        "—DEPENDS_ON→ token.ts",
        "—PART_OF→ session",
    ]
    assert lines(moved, "path", "session", "auth.ts")[1].startswith("←PART_OF— token.ts")
    assert lines(moved, "path", "Ada Marsh", "session") == ["No path between these entities."]
    assert [line[:17] for line in lines(moved, "timeline", "Ada Marsh")[1:]] == [
        "2026-01-10  began",
        "2026-01-10  began",
        "2026-03-14  began",
        "2026-03-14  ended",
    ]
    assert [line.split(" · ")[1] for line in lines(moved, "communities") if " · " in line] == ["3 entities"] * 2


def test_context_is_for_a_model_and_names_what_is_missing(moved: Program) -> None:
    made = moved.run("graph", "context", "auth.ts", "nobody.ts")
    assert made.stdout.startswith("<recalled note=")
    assert "auth.ts DEPENDS_ON token.ts, since 2026-02-01" in made.stdout
    assert made.stderr == "note: there is no entity 'nobody.ts'\n"
    assert moved.json("graph", "context", "auth.ts", "nobody.ts")["missing"] == ["nobody.ts"]
    nothing = moved.run("graph", "context", "nobody.ts")
    assert (nothing.stdout, nothing.stderr) == ("", "note: there is no entity 'nobody.ts'\n")
    nothing = moved.run("graph", "context", "--query", "the weather in Ulm")
    assert (nothing.stdout, "nothing is known about it, or the token budget is too small" in nothing.stderr) == (
        "",
        True,
    )


def test_an_episode_goes_with_what_only_it_supported(moved: Program) -> None:
    episodes = moved.json("graph", "episodes")
    assert [each["reference_time"][:10] for each in episodes] == ["2026-03-14", "2026-02-01", "2026-01-10"]
    assert lines(moved, "episodes", "--limit", "1")[1] == "Ada Marsh lives in Porto."
    gone = lines(moved, "delete-episode", episodes[0]["uuid"])
    assert gone[:3] == [
        "Deleted, with 1 entity and 1 fact that only it supported.",
        "True again:",
        "Ada Marsh lives in Lisbon.",
    ]
    assert moved.json("index", "status")["graph"]["episodes"] == 2
    assert moved.run("graph", "delete-episode", "nothing", code=1).stderr.startswith("error: there is no episode")


def test_an_abbreviated_id_names_a_fact_an_entity_or_an_episode(moved: Program) -> None:
    fact = moved.json("graph", "facts", "where does Ada live")["relations"][0]
    entity = moved.json("graph", "entity", "Ada Marsh")["uuid"]
    episode = moved.json("graph", "episodes")[0]["uuid"]
    assert lines(moved, "history", fact["uuid"][:8]) == lines(moved, "history", fact["uuid"])
    assert lines(moved, "history", entity[:8]) == lines(moved, "history", "Ada Marsh")
    for number in (1, 2):
        moved.run("graph", "add", "Bo works for Acme.", "--uuid", f"episode-{number}")
    assert (
        "'epis' begins the ids of 2 items of the graph: episode-1, "
        in moved.run("graph", "history", "epis", code=2).stderr
    )
    moved.run("graph", "delete-episode", episode[:8])
    assert episode not in [each["uuid"] for each in moved.json("graph", "episodes")]


def test_the_id_of_an_episode_may_be_the_name_of_an_entity(moved: Program) -> None:
    moved.run("graph", "add", "Bo works for Acme.", "--uuid", "Ada Marsh")
    moved.run("graph", "delete-episode", "Ada Marsh")
    assert "Ada Marsh" not in [each["uuid"] for each in moved.json("graph", "episodes")]


def test_a_fact_to_come_is_marked(moved: Program) -> None:
    moved.run("graph", "fact", "auth.ts", "USES", "token.ts", "--valid-from", "2999-02-01")
    assert "not yet · from 2999-02-01 on" in moved.run("graph", "facts", "what does auth.ts use").stdout
    assert "not yet" not in moved.run("graph", "facts", "where does Ada live").stdout


def test_entities_are_made_one_and_several_again(moved: Program) -> None:
    moved.run("graph", "fact", "The Countess", "USES", "Emacs", "--source-type", "person")
    merged = moved.json("graph", "merge", "Ada Marsh", "The Countess", "--reason", "the same person")
    assert merged["reason"] == "the same person"
    history = lines(moved, "history", merged["entity"]["uuid"])
    assert "Ada Marsh · person · " in history[0]
    assert "merged: the same person" in history[-1]
    parted = moved.json("graph", "split", "Ada Marsh")
    assert [each["name"] for each in parted["parted"]] == ["The Countess"]
    assert moved.error("graph", "split", "Ada Marsh", code=2)["remedy"] == "name what is to be an entity of its own"
    assert lines(moved, "merge", "Ada Marsh", "The Countess")[0] == "The Countess is Ada Marsh now, with 1 fact."
    assert lines(moved, "split", "Ada Marsh")[-1] == "1 fact went with them."


def test_a_dispute_is_shown_and_settled_with_its_reason(moved: Program) -> None:
    """Two things were said of the same day: nobody guesses which is right."""
    moved.run("graph", "add", "Ada Marsh lives in Madrid.", "--at", "2026-03-14T09:00Z")
    told = moved.run("review").stdout
    assert "Ada Marsh lives in Madrid." in told
    assert "Ada Marsh lives in Porto." in told
    assert "disputed · since 2026-03-14" in moved.run("graph", "facts", "where does Ada live").stdout
    [dispute] = moved.json("review")["questions"]
    right = next(each["id"] for each in dispute["sides"] if "Madrid" in each["text"])
    assert "--reason" in moved.run("graph", "settle", right, code=2).stderr
    settled = lines(moved, "settle", right, "--reason", "she said so herself")
    assert settled[:2] == ["This holds:", "Ada Marsh lives in Madrid."]
    assert settled[settled.index("This was never true:") + 1] == "Ada Marsh lives in Porto."
    assert moved.run("review").stdout == "Nothing waits for you.\n"
    assert "`commonplace review`" in moved.error("graph", "settle", right, "--reason", "x", code=2)["remedy"]
    history = lines(moved, "history", right)
    assert history[0].startswith("Ada Marsh ")
    assert any("settled: she said so herself" in line for line in history)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("graph.svg", b"<svg "),
        ("graph.graphml", b"<?xml "),
        ("graph.dot", b"digraph {"),
        ("graph.gv", b"digraph {"),
        ("graph.mmd", b"---\ntitle: "),
        ("graph.mermaid", b"---\ntitle: "),
    ],
)
def test_a_picture_has_the_form_that_its_name_asks_for(moved: Program, name: str, begins: bytes) -> None:
    done = moved.run("graph", "show", "Ada Marsh", "--out", name)
    assert done.stdout == f"Drew 3 entities and 2 facts: {name}\n"
    assert (moved.project / name).read_bytes().startswith(begins)


def test_a_picture_shows_times_and_what_has_ended_where_it_is_asked_for(moved: Program) -> None:
    now = moved.run("graph", "show", "Ada Marsh").stdout
    assert 'title: "Ada Marsh: 3 entities, 2 facts"' in now
    assert "lives in, since 2026-03-14" in now
    assert "Lisbon" not in now
    before = moved.run("graph", "show", "Ada Marsh", "--valid-at", "2026-02-01T00:00Z").stdout
    assert "Ada Marsh: as of 2026-02-01" in before
    assert "Lisbon" in before
    assert "Porto" not in before
    past = moved.json("graph", "show", "Ada Marsh", "--past", "--depth", "1", "--format", "svg")
    assert {name: past[name] for name in ("entity", "format", "out", "entities", "facts", "is_capped")} == {
        "entity": "Ada Marsh",
        "format": "svg",
        "out": None,
        "entities": 4,
        "facts": 3,
        "is_capped": False,
    }
    words = "".join(ElementTree.fromstring(past["drawing"]).itertext())
    assert "Lisbon" in words


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("show", "Ada Marsh", "--out", "graph.pdf"), 2, "graph.pdf does not say what to draw"),
        (("show", "Nobody"), 1, "there is no entity 'Nobody'; see `commonplace graph entities QUERY`"),
        (("show", "Ada Marsh", "--depth", "9"), 2, "--depth is 9"),
        (("show", "Ada Marsh", "--out", "src/login.py/graph.svg"), 1, "src/login.py is no directory"),
        (("add", "   "), 2, "empty"),
        (("add", "{", "--source", "json"), 2, "the content is not JSON"),
        (("add", "Ada.", "--trust", "7"), 2, "--trust is 7"),
        (
            ("add", "Ada.", "--at", "blue"),
            2,
            "--at is 'blue'; give an ISO 8601 time like 2026-03-01T09:30:00Z, of the years 1 to 9999, or words",
        ),
        (("fact", "a", "KNOWS", "b"), 2, "TYPE is 'KNOWS'; give one of DEPENDS_ON"),
        (("fact", "a", "USES", "a"), 2, "SOURCE and TARGET both mean 'a'"),
        (
            ("fact", "a", "USES", "b", "--valid-from", "2026-02-01", "--valid-to", "2026-01"),
            2,
            "--valid-to '2026-01-01T",
        ),
        (("facts", "x", "--limit", "0"), 2, "--limit is 0; give a whole number from 1 to 200"),
        (("facts", "x", "--centre", "Nobody"), 1, "there is no entity 'Nobody'"),
        (("entities", "x", "--type", "colour"), 2, "--type is 'colour'"),
        (("context",), 2, "nothing is asked for"),
        (("entity", "Nobody"), 1, "there is no entity 'Nobody'"),
        (("path", "auth.ts", "Nobody"), 1, "there is no entity 'Nobody'"),
        (("path", "auth.ts", "token.ts", "--max-depth", "99"), 2, "--max-depth is 99"),
        (("history", "nothing"), 1, "there is no entity 'nothing'"),
        (("settle", "nothing", "--reason", "x"), 1, "there is no fact 'nothing'; see `commonplace graph facts QUERY`"),
        (("delete-episode", "nothing"), 1, "there is no episode 'nothing'; see `commonplace graph episodes`"),
        (("merge", "auth.ts", "auth.ts"), 2, "auth.ts"),
    ],
)
def test_a_slip_is_told_with_its_remedy(moved: Program, arguments: tuple[str, ...], code: int, message: str) -> None:
    told = moved.run("graph", *arguments, code=code).stderr
    assert message in told
    assert "Traceback" not in told


def test_days_months_and_years_begin_in_the_zone_of_the_machine(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise March would begin hours before or after the first of March."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Europe/Athens")
        time.tzset()
        for given in ("2026-01-01", "2026-01", "2026"):
            [fact] = bare.json("graph", "fact", f"A {given}", "USES", "B", "--valid-from", given)["relations"]
            assert fact["valid_from"] == "2025-12-31T22:00:00Z"
        told = bare.run("graph", "fact", "A", "USES", "C", "--valid-from", "2026-13", code=2).stderr
        assert "--valid-from is '2026-13'" in told
    time.tzset()


def test_a_wrong_document_is_refused_with_the_place_of_its_fault(bare: Program) -> None:
    (bare.project / "wrong.json").write_text('{"entity_nodes": [{"uuid": 5}]}', "utf-8")
    refused = bare.error("graph", "import", "wrong.json", code=2)
    assert (refused["path"], refused["type"]) == ("entity_nodes[0].uuid", "ConfigError")
    assert "is a directory" in bare.error("graph", "import", ".", code=2)["message"]
    assert bare.error("graph", "import", "nothing.json", code=1)["type"] == "NotFoundError"
    assert bare.json("index", "status")["graph"] == dict.fromkeys(("episodes", "entities", "relations", "disputed"), 0)


def test_the_text_of_an_episode_comes_as_words_from_a_file_or_in_a_pipe(bare: Program) -> None:
    (bare.project / "note.txt").write_text("Bo Lind works for Globex.\n", "utf-8")
    made = bare.run("graph", "add", "--file", "note.txt")
    assert "there is no project here, so your user store is used" in made.stderr
    for arguments in (["-"], []):
        done = CliRunner().invoke(cli, ["graph", "add", *arguments, "--json"], input="Bo Lind lives in Oslo.\n")
        assert json.loads(done.stdout)["episode"]["content"] == "Bo Lind lives in Oslo."
    talk = bare.json("graph", "add", "Bo Lind: I use Emacs.", "--source", "message", "--uuid", "talk 1")
    assert [each["fact"] for each in talk["relations"]]
    assert bare.json("graph", "add", "Bo Lind: I use Emacs.", "--source", "message", "--uuid", "talk 1")["outcome"] == (
        "unchanged"
    )
    assert bare.run("graph", "add", "Bo Lind: I use Emacs.", "--uuid", "talk 1").stdout.startswith("Replaced talk 1")


def test_nothing_of_another_looks_like_a_control_of_the_terminal(bare: Program) -> None:
    bare.run("graph", "fact", "a\x1b[2Jb", "USES", "c\u202ed", "--fact", "x\x1b]0;title\x07 uses y")
    for arguments in (
        ("facts", "uses"),
        ("entities", "uses"),
        ("communities",),
        ("timeline", "a\x1b[2Jb"),
    ):
        assert "\x1b" not in bare.run("graph", *arguments).stdout
        assert "\u202e" not in bare.run("graph", *arguments).stdout


def test_a_namespace_has_its_own_graph(moved: Program) -> None:
    assert moved.json("index", "status", "--namespace", "other")["graph"]["entities"] == 0


def test_a_graph_leaves_in_graphitis_form_and_comes_back(moved: Program) -> None:
    done = moved.run("graph", "export", "graph.json")
    assert done.stdout.startswith("Wrote 3 episodes, 7 entities and 5 facts: ")
    assert moved.run("graph", "export", "-").stdout == (moved.project / "graph.json").read_text("utf-8")
    tried = moved.json("graph", "import", "graph.json", "--dry-run", "--namespace", "copy")
    assert (tried["episodes"], tried["is_dry_run"]) == (3, True)
    assert moved.json("index", "status", "--namespace", "copy")["graph"]["episodes"] == 0
    taken = moved.run("graph", "import", "graph.json", "--namespace", "copy").stdout
    assert taken.startswith("Imported 3 episodes, 7 entities and 5 facts: ")
    again = moved.run("graph", "import", "graph.json", "--namespace", "copy").stdout
    assert again.startswith("Imported nothing new: ")
    assert "15 were already here and are unchanged." in again
    for question in ("where does Ada live", "auth"):
        here, there = (moved.json("graph", "facts", question, "--namespace", name) for name in ("default", "copy"))
        assert [each["uuid"] for each in here["relations"]] == [each["uuid"] for each in there["relations"]]
    assert "graph.json exists already" in moved.run("graph", "export", "graph.json", code=1).stderr
    (moved.project / "wrong.json").write_text("{", "utf-8")
    assert "is not JSON" in moved.run("graph", "import", "wrong.json", code=2).stderr
    assert "there is nothing at" in moved.run("graph", "import", "nothing.json", code=1).stderr


def test_a_local_graph_has_nobody_to_tell(moved: Program) -> None:
    assert lines(moved, "sync") == ["The graph is local: nothing is queued."]
    assert moved.json("graph", "sync")["waiting"] == 0
