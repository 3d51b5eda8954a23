"""What somebody meets in the first minutes: a store that is not there, an empty one, a half-built index, two times."""

from __future__ import annotations

import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.conftest import Program
from tests.unit.mcp.conversation import talking

import commonplace
from commonplace.errors import StoreMissingError, UsageError
from commonplace.mcp.registry import LazyEngine, registry_of
from commonplace.settings.paths import user_store

OPENING = [
    ("remember", "Invoices are sent on Fridays"),
    ("search", "invoices"),
    ("index", "build"),
    ("index", "status"),
    ("graph", "add", "auth.ts depends on token.ts"),
    ("settings", "show"),
    ("doctor",),
    ("csp", "TASK REQ:recall invoices IN:MEM OUT:MEM_REFS"),
    ("ui", "--no-browser"),
]


@pytest.mark.parametrize("arguments", OPENING, ids=" ".join)
def test_a_mistyped_store_is_refused_and_not_made(bare: Program, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """What is remembered in a store by mistake is lost to whoever opens the right one."""
    told = bare.error(*arguments, "--store", "../a stroe", code=1)
    assert told["type"] == "StoreMissingError"
    assert "/../a stroe, where there is no store" in told["message"]
    assert "`commonplace init --store '../a stroe'`" in told["remedy"]
    assert not (tmp_path / "a stroe").exists()


def test_a_remedy_does_not_name_a_command_that_fails(bare: Program, tmp_path: Path) -> None:
    """`init` makes no store of a file."""
    (tmp_path / "notes.md").write_text("Invoices")
    told = bare.error("recall", "invoices", "--store", "../notes.md", code=1)
    assert told["remedy"] == "it is a file; name a directory"
    told = bare.error("recall", "x", "--store", "/dev/null", code=1)
    assert told["remedy"] == "it is a file; name a directory"
    told = bare.error("recall", "x", "--store", "/dev/null/store", code=1)
    assert told["remedy"] == "/dev/null is a file; name a directory"


def test_the_command_that_the_refusal_names_makes_the_store(bare: Program, tmp_path: Path) -> None:
    """A remedy that does not work is worse than none."""
    bare.run("remember", "Invoices are sent on Fridays", "--store", "../new", code=1)
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
    refused = bare.run(
        "context", "--stdin-json", "--store", "../stroe", code=1, stdin='{"prompt": "when are invoices sent"}'
    )
    assert "../stroe, where there is no store" in refused.stderr
    assert not (bare.project.parent / "stroe").exists()


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


def test_an_engine_says_which_store_and_namespace_it_is_of(tmp_path: Path) -> None:
    """In a shell, it is what `commonplace.open()` answers."""
    with commonplace.open(tmp_path / "store", "kitchen") as book:
        assert repr(book) == f"<commonplace.Engine {str(tmp_path / 'store')!r}, namespace 'kitchen'>"
    assert repr(book).endswith(" (closed)>")


def test_when_something_happened_may_be_said_in_words(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks by "last Tuesday" also remembers by it; a day is one of this machine's calendar, as printed."""
    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setattr("commonplace.cli.options.clock", datetime(2026, 3, 5, 2, tzinfo=UTC).timestamp)  # 9 p.m. there
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


def test_a_habit_is_found_by_the_season_that_it_names(tmp_path: Path) -> None:
    """Not by when it was told; what happened to be told in that season stands behind it and is not sure."""
    with commonplace.open(tmp_path / "store", clock=lambda: datetime(2026, 11, 29, 9, tzinfo=UTC).timestamp()) as book:
        book.remember("In winter we go to Austria.", at="2026-07-10")
        book.remember("In May I am in Rome.", at="2026-04-01")
        book.remember("Bought a lamp.", at="2026-05-03")
        book.remember("The gate was painted.", at="2026-02-03")
        for question, answer, others in (
            ("where do we go in winter", "In winter we go to Austria.", {"The gate was painted."}),
            ("where am I in May", "In May I am in Rome.", {"Bought a lamp."}),
        ):
            hits = [(hit.text, hit.confidence) for hit in book.recall(question).hits]
            assert hits[0] == (answer, "sure")
            assert others <= {text for text, confidence in hits if confidence == "weak"}
        assert [hit.text for hit in book.recall("what happened in May").hits] == ["Bought a lamp."]


HISTORY = [
    ("2023-02-01", "home", "Mira lives in Berlin, near the canal."),
    ("2024-06-01", "home", "Mira lives in Lagos, near the harbour."),
    ("2023-03-01", "pet", "Mira has a grey cat."),
]


def imported(book: Program) -> None:
    for at, id_, text in HISTORY:
        book.run("remember", text, "--at", at, "--id", id_)


def texts(result: dict[str, Any]) -> list[str]:
    return [hit["text"] for hit in result["hits"]]


def test_a_history_that_was_imported_is_found_by_when_it_was_true(program: Program) -> None:
    """What was known then and what was true then are two questions, and an import answers only the second."""
    imported(program)
    asked = ("recall", "where does Mira live", "--min-score", "0", "--valid-at")
    assert texts(program.json(*asked, "2023-02-15")) == [HISTORY[0][2]]
    assert set(texts(program.json(*asked, "2023"))) == {HISTORY[0][2], HISTORY[2][2]}
    assert set(texts(program.json(*asked, "2025"))) == {HISTORY[1][2], HISTORY[2][2]}
    assert texts(program.json(*asked, "2022")) == []
    assert program.json("recall", "where does Mira live", "--valid-at", "2023", "--as-of", "2023")["hits"] == []


def test_a_search_of_what_was_known_before_an_import_says_how_to_ask(program: Program) -> None:
    """Nothing found without a word looks as if the history were not there."""
    imported(program)
    [notice] = program.json("recall", "where does Mira live", "--as-of", "2023-12-31T00:00:00Z")["notices"]
    assert notice == (
        "as_of finds in what was stored by 2023-12-31 00:00 UTC; of what had happened by then 2 memories were stored "
        "later: valid_at (--valid-at) finds in them"
    )
    [notice] = program.json("recall", "where does Mira live", "--as-of", "2021")["notices"]
    assert notice == "no memory had been stored by 2021-12-31 23:59 UTC: leave out as_of (--as-of)"
    program.json("remember", "Nils lives in Oslo.", "--tag", "nils")
    [notice] = program.json("recall", "where does Nils live", "--as-of", "2021", "--tag", "nils")["notices"]
    assert notice.startswith("no memory that passes the filters had been stored by 2021-12-31")


def test_python_mcp_and_csp_know_what_was_true_then(program: Program) -> None:
    """One core, thin skins."""
    imported(program)
    host = LazyEngine(lambda _: commonplace.open())
    with commonplace.open() as book, talking(registry_of(host.get)) as talk:
        talk.greet()
        found = book.recall("where does Mira live", valid_at="2023-02-15", min_score=0.0)
        arguments = {"query": "where does Mira live", "validAt": "2023-02-15", "minScore": 0.0}
        called = talk.ask("tools/call", {"name": "memory_search", "arguments": arguments})
        [told] = called["result"]["structuredContent"]["results"]
        csp = book.specialist.handle(
            'TASK REQ:temporal_query where does Mira live IN:MEM OUT:MEM_REFS\nPARAMS {"valid_at": "2023-02-15"}\n'
        )
    host.close()
    assert [hit.text for hit in found.hits] == [HISTORY[0][2]] == [told["snippet"]]
    assert "Berlin" in csp
    assert "Lagos" not in csp


NOTHING = {
    "an empty index": (
        ("search", "invoices"),
        "the index holds no file: `commonplace index build` reads those of a project",
    ),
    "no memories": (("recall", "invoices"), "nothing is remembered yet: `commonplace remember TEXT` stores a text"),
    "no knowledge": (
        ("search", "invoices", "--kind", "knowledge"),
        "no knowledge is indexed yet: `commonplace knowledge index AGENT.YAML` reads an agent's",
    ),
    "a type that is not there": (
        ("search", "invoices", "--type", "research"),
        "no indexed file has the type 'research'; there is code, documentation, test",
    ),
    "a misspelt tag": (
        ("search", "invoices", "--tag", "secrity"),
        "nothing that is stored has the tag 'secrity'; there is security",
    ),
    "a misspelt path": (
        ("search", "invoices", "--path", "dosc/**"),
        "no indexed file has the path 'dosc/**'; there is docs/, src/, test/",
    ),
    "a path of another project": (
        ("search", "invoices", "--path", "zebra/**"),
        "no indexed file has the path 'zebra/**'; there is docs/, src/, test/",
    ),
    "filters that nothing passes together": (
        ("search", "invoices", "--type", "code", "--tag", "security"),
        "nothing that is stored passes --type, --tag together; leave out one of them",
    ),
}


@pytest.mark.parametrize("why", NOTHING)
def test_a_search_that_could_find_nothing_says_why_and_what_to_do(bare: Program, why: str) -> None:
    """An empty index, no memories, a filter and a slip of the hand look alike, and need different commands."""
    bare.run("init")
    if why not in ("an empty index", "no memories"):
        bare.run("index", "build")
    arguments, notice = NOTHING[why]
    assert bare.json(*arguments)["notices"] == [notice]
    told = bare.run(*arguments)
    assert notice in " ".join(told.stderr.split())
    assert "Try other words" not in told.stdout


def test_who_asks_for_files_is_not_sent_to_memories(bare: Program) -> None:
    """Their times are another matter: --valid-at would find memories alone."""
    bare.run("init")
    bare.run("index", "build")
    bare.run("remember", "Invoices were sent on Mondays", "--at", "2019-01-01")
    arguments = ("search", "invoices", "--as-of", "2020-01-01")
    assert "valid_at (--valid-at) finds" in bare.json(*arguments)["notices"][0]
    assert bare.json(*arguments, "--kind", "artifact")["notices"] == []


def test_the_commands_that_a_search_names_carry_its_namespace(bare: Program) -> None:
    """What is indexed in another namespace would not be found there."""
    bare.run("init")
    told = bare.json("search", "invoices", "--namespace", "a b")["notices"]
    assert told == ["the index holds no file: `commonplace index build --namespace 'a b'` reads those of a project"]
    bare.run("index", "build", "--namespace", "a b")
    assert bare.json("search", "invoices", "--namespace", "a b", "--min-score", "0")["hits"]


def test_a_search_that_is_about_nothing_here_has_no_such_notice(program: Program) -> None:
    """There was something to find, and the question is the reason."""
    asked = ("search", "xylophone quartet", "--type", "code")
    assert program.json(*asked)["notices"] == []
    assert "Try other words" in program.run(*asked).stdout


FILES, KEPT = 400, 256
"""A transaction takes 256 files: what is stored when the 300th is read."""


@pytest.fixture
def many(bare: Program) -> Program:
    for number in range(FILES):
        (bare.project / "docs" / f"heron{number:03}.md").write_text(f"# Heron {number}\n\nPond {number} has a heron.\n")
    bare.run("init")
    return bare


def stop_at_300(what: str, done: int, total: int) -> None:
    if what == "Indexing files" and done >= 300:
        raise KeyboardInterrupt


def test_after_an_interruption_every_search_says_what_the_index_lacks_and_how_to_go_on(many: Program) -> None:
    """Answers from a fifteenth of the files would be taken for answers from all of them."""
    docs = many.project / "docs"
    with commonplace.open(progress=stop_at_300) as book, pytest.raises(KeyboardInterrupt) as stopped:
        book.index(docs)
    command = f"`commonplace index build {docs}`"
    counted = f"{KEPT} of {FILES + 2} files"
    assert stopped.value.__notes__ == [f"{counted} are in the store and are kept; {command} continues with the rest"]
    notice = f"the index is incomplete: it has {counted} of {docs}; {command} reads the rest"
    assert notice in many.json("search", "heron by pond 3")["notices"]
    assert notice in many.json("context", "heron by pond 3")["notices"]
    assert notice in many.json("index", "status")["notices"]
    assert notice in " ".join(many.run("search", "heron by pond 3").stderr.split())
    assert many.json("recall", "heron by pond 3")["notices"] == [
        "nothing is remembered yet: `commonplace remember TEXT` stores a text"
    ]
    many.run("index", "build", str(docs))
    assert many.json("search", "heron by pond 3")["notices"] == []
    assert many.json("index", "status")["counts"]["artifacts"] == FILES + 2


def test_a_build_of_the_whole_project_completes_what_was_interrupted_in_a_part(many: Program) -> None:
    """The notice must go when there is nothing left to do."""
    with commonplace.open(progress=stop_at_300) as book, pytest.raises(KeyboardInterrupt):
        book.index(many.project / "docs")
    many.run("index", "build")
    assert many.json("search", "heron by pond 3")["notices"] == []


def test_a_project_that_was_moved_completes_what_was_interrupted_before(
    many: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notice that names the old place, and a command that fails there, would stand over every search for ever."""
    with commonplace.open(progress=stop_at_300) as book, pytest.raises(KeyboardInterrupt):
        book.index(many.project)
    moved = many.project.with_name("moved")
    many.project.rename(moved)
    monkeypatch.chdir(moved)
    *_, notice = many.json("search", "heron by pond 3")["notices"]
    assert notice.endswith(f" files of {moved}; `commonplace index build` reads the rest")
    many.run("index", "build")
    assert many.json("search", "heron by pond 3")["notices"] == []


def test_of_a_directory_that_is_gone_nothing_is_incomplete(many: Program) -> None:
    """The command that would complete it could only fail."""
    docs = many.project / "docs"
    with commonplace.open(progress=stop_at_300) as book, pytest.raises(KeyboardInterrupt):
        book.index(docs)
    docs.rename(docs.with_name("elsewhere"))
    assert not [told for told in many.json("search", "heron by pond 3")["notices"] if "incomplete" in told]


def test_while_a_first_build_runs_searches_say_that_the_rest_is_being_read(many: Program) -> None:
    """Whoever is told to start a build that runs already would wait for nothing."""
    told = []

    def look(what: str, done: int, total: int) -> None:
        if what == "Indexing files" and done in (0, 320):
            with commonplace.open() as other:
                told.append(other.search("heron by pond 3").notices)

    with commonplace.open(progress=look) as book:
        book.index(many.project)
    beginning = "the index is incomplete: it has {} of {} files of {}; the rest is being read"
    assert [each[-1] for each in told] == [beginning.format(count, FILES + 4, many.project) for count in (0, KEPT)]


def test_ctrl_c_says_what_was_kept(many: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """People press it to find out whether they lose anything."""
    monkeypatch.setattr("commonplace.cli.index.progress_bars", lambda _: nullcontext(stop_at_300))
    told = many.run("index", "build", code=130).stderr
    kept = (
        f"{KEPT} of {FILES + 4} files are in the store and are kept; `commonplace index build` continues with the rest"
    )
    assert told == f"interrupted\n{kept}\n"
    monkeypatch.setattr("commonplace.cli.index.progress_bars", lambda _: nullcontext(stop_at_300))
    assert many.error("index", "build", "--force", code=130)["remedy"].endswith("continues with the rest")


def test_a_damaged_store_of_ones_own_stops_nothing_in_a_project(bare: Program) -> None:
    """What a project holds has nothing to do with it; only the offer to move memories cannot be made."""
    bare.run("remember", "Invoices are sent on Fridays")
    (user_store() / "store.db").write_bytes(b"damaged" * 1_000)
    said = " ".join(bare.run("init").stderr.split())
    assert f"your user store, {user_store()}, cannot be read" in said
    assert bare.json("recall", "when are invoices sent")["hits"] == []
    assert "store.db" in bare.error("init", "--move-memories", code=1)["message"]


def test_what_was_remembered_before_there_was_a_project_is_told_of_and_moved(bare: Program) -> None:
    """People try `remember` first, and would never find again what `init` then hides."""
    told = bare.run("remember", "Invoices are sent on Fridays", "--tag", "billing", "--id", "friday")
    said = " ".join(told.stderr.split())
    assert f"your user store is used, {user_store()}; `commonplace init` makes a project's, and offers to move" in said
    bare.run("update", "friday", "Invoices are sent on Mondays")
    said = " ".join(bare.run("init").stderr.split())
    assert f"your user store, {user_store()}, holds 1 memory not found from here" in said
    assert "`commonplace init --move-memories` moves them here" in said
    [_, hint] = bare.json("recall", "when are invoices sent")["notices"]
    assert hint == (
        "your user store holds 1 memory that a project does not find: `commonplace init --move-memories` moves them"
    )
    assert bare.json("init", "--move-memories")["moved"] == 1
    found = bare.json("recall", "when are invoices sent")
    assert [(hit["owner_id"], hit["tags"]) for hit in found["hits"]] == [("friday", ["billing"])]
    assert [each["version"] for each in bare.json("get", "friday", "--versions")] == [1, 2]
    assert bare.json("list", "--store", str(user_store())) == []
    assert bare.json("init", "--move-memories")["moved"] == 0
    assert not [path.name for path in bare.project.rglob("moved.*")]


def test_a_memory_that_is_changed_while_it_is_moved_stays_too(tmp_path: Path) -> None:
    """Another agent may write to the store meanwhile; what was not yet there when it was copied must not be deleted."""

    def changing() -> float:
        with commonplace.open(tmp_path / "own") as other:
            other.update("a", "The heron left the pond.")
        return time.time()

    with commonplace.open(tmp_path / "own") as own:
        own.remember("A heron stands in the pond.", id="a")
        own.remember("The otter sleeps at noon.", id="b")
        with commonplace.open(tmp_path / "here", clock=changing) as here:
            assert own.move_memories(here) == 1
            assert sorted(each.id for each in here.list()) == ["a", "b"]
        assert [each.content for each in own.list()] == ["The heron left the pond."]
