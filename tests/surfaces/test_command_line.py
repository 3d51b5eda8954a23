"""The command line, as a person or a program uses it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import commonplace
from commonplace.cli.app import cli

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

DOCUMENT = "version: 1.0.0\nartifact_index: {}\nretrieval_pipeline: {}\nagent_integration: {}\n"


def test_init_creates_a_store_that_git_ignores_and_leaves_an_old_one_alone(bare: Program) -> None:
    """Typing it twice must not cost anybody their memory."""
    assert "Created" in bare.run("init").stdout
    assert (bare.project / ".commonplace" / ".gitignore").read_text() == "*\n"
    identity = bare.json("index", "status")["store_id"]
    assert bare.json("init") == {
        "store": str(bare.project / ".commonplace"),
        "created": False,
        "hides": None,
        "moved": 0,
        "taken_in": 0,
    }
    assert bare.json("index", "status")["store_id"] == identity


def test_store_that_a_build_or_a_library_creates_is_ignored_by_git(bare: Program, tmp_path: Path) -> None:
    """A project with a settings file needs no `init`, and its store is as private."""
    (bare.project / "commonplace.toml").touch()
    bare.run("index", "build")
    commonplace.open(tmp_path / ".commonplace").close()
    for project in (bare.project, tmp_path):
        assert (project / ".commonplace" / ".gitignore").read_text() == "*\n"


def test_directory_of_another_name_is_not_hidden_from_git(bare: Program) -> None:
    """It may be somebody's own directory with other files in it; and rules that were there stay."""
    bare.run("init", "--store", "docs")
    assert not (bare.project / "docs" / ".gitignore").exists()
    (bare.project / ".commonplace").mkdir()
    (bare.project / ".commonplace" / ".gitignore").write_text("logs/\n")
    bare.run("init")
    assert (bare.project / ".commonplace" / ".gitignore").read_text() == "logs/\n"


def test_build_counts_new_then_unchanged_then_removed_files(program: Program) -> None:
    """A second build costs a glance at each file."""
    (program.project / "docs" / "storage.md").unlink()
    (program.project / "docs" / "new.md").write_text("# New\n\nSomething new.\n")
    (found,) = program.json("index", "build")["roots"].values()
    assert (found["added"], found["changed"], found["unchanged"], found["removed"]) == (1, 0, 3, 1)


def test_force_reads_every_file_again(program: Program) -> None:
    """For the day on which somebody does not trust the stamps."""
    (found,) = program.json("index", "build", "--force")["roots"].values()
    assert (found["changed"], found["unchanged"]) == (4, 0)


def test_search_prints_header_stages_hits_latency_and_references(program: Program) -> None:
    """With -v the form is that of the contract's example."""
    lines = program.run("search", "session", "expires", "-v").stdout.splitlines()
    assert lines[0] == 'Two-stage retrieval for: "session expires"'
    assert lines[2].startswith("Stage 1 (BM25 ")
    assert lines[3].startswith("Stage 2 (late interaction): ")
    assert lines[5] == "Results:"
    assert re.fullmatch(r"1\. docs/auth\.md:\d+ \([01]\.\d\d, sure\) (Sessions|Authentication)", lines[6])
    assert [line for line in lines[7:10] if line.startswith("   A session expires after thirty")]
    assert "tags: [security]" not in "".join(lines)
    assert any(line.startswith("Total latency: ") and line.endswith("ms") for line in lines)
    assert lines[-1].startswith("References: @docs/auth.md#")


def test_split_identifier_is_found(program: Program) -> None:
    """People write words, programs write names."""
    assert program.json("search", "login service")["artifacts"][0]["path"] in ("src/login.py", "test/test_login.py")


def test_search_about_nothing_in_the_index_says_so_and_succeeds(program: Program) -> None:
    """Nothing relevant is an answer, not a failure."""
    assert "Nothing relevant found." in program.run("search", "zebra crossing quagga").stdout
    assert program.json("search", "zebra crossing quagga")["hits"] == []


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        (("--type", "code"), {"src/login.py"}),
        (("--type", "test", "--type", "code"), {"src/login.py", "test/test_login.py"}),
        (("--path", "docs/*.md"), {"docs/auth.md", "docs/storage.md"}),
        (("--tag", "security"), {"docs/auth.md"}),
        (("--kind", "memory"), set()),
    ],
)
def test_filters_restrict_what_is_found(program: Program, filters: tuple[str, ...], paths: set[str]) -> None:
    """Values of one option are alternatives."""
    found = program.json("search", "password session invoices", "--min-score", "0", *filters)
    assert {hit["path"] for hit in found["hits"]} == paths


@pytest.mark.parametrize("option", ["--limit", "--stage2-topk"])
def test_both_names_of_the_limit_work(program: Program, option: str) -> None:
    """One name is the contract's, one is ours."""
    assert len(program.json("search", "password", "--min-score", "0", option, "1")["hits"]) == 1


def test_min_score_auto_asks_for_the_calibrated_cut_again(program: Program) -> None:
    """Messages and settings offer the word, so the option takes it, and it wins over a settings file."""
    (program.project / "commonplace.toml").write_text("[search]\nmin_score = 1.0\n")
    assert program.json("search", "session expires")["hits"] == []
    assert program.json("search", "session expires", "--min-score", "auto")["hits"]
    told = program.error("search", "x", "--min-score", "high", code=2)
    assert "a number from 0 to 1 or 'auto'" in told["message"] + told["remedy"]
    program.error("search", "x", "--min-score", "nan", code=2)


@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_every_method_answers(program: Program, method: str) -> None:
    """The contract compares them."""
    found = program.json("search", "session expires", "--method", method, "--min-score", "0", "--stage1-topk", "50")
    assert found["method"] == method
    assert found["artifacts"][0]["path"] == "docs/auth.md"


@pytest.mark.parametrize("query", ["session expires", "password", "invoices database", "zebra"])
@pytest.mark.parametrize("method", ["bm25", "semantic", "two-stage"])
def test_python_and_command_line_give_the_same_hits_scores_and_order(program: Program, query: str, method: str) -> None:
    """One core, thin skins: a skin that adds a rule of its own is found out here."""
    told = program.json("search", query, "--method", method, "--min-score", "0")
    with commonplace.open() as book:
        found = book.search(query, method=method, min_score=0.0).to_dict()  # type: ignore[arg-type]
    for varying in ("latency_ms", "stages"):
        told.pop(varying)
        found.pop(varying)
    assert told == json.loads(json.dumps(found))


def test_shared_options_work_before_and_after_the_command(program: Program, tmp_path: Path) -> None:
    """Nobody remembers where an option goes."""
    store = str(program.project / ".commonplace")
    before = CliRunner().invoke(cli, ["--json", "--store", store, "index", "status"])
    after = CliRunner().invoke(cli, ["index", "status", "--store", store, "--json"])
    between = CliRunner().invoke(cli, ["index", "--json", "status", "--store", store])
    assert before.stdout == after.stdout == between.stdout
    assert json.loads(before.stdout)["store"] == store


def test_namespaces_do_not_see_each_other(program: Program) -> None:
    """Two agents share a store, not their memories."""
    assert program.json("search", "password", "--namespace", "other", "--min-score", "0")["hits"] == []


def test_missing_store_is_an_error_with_a_remedy(bare: Program) -> None:
    """A search in the wrong directory must not look like an empty answer."""
    told = bare.error("search", "password", code=1)
    assert told["type"] == "StoreMissingError"
    assert "commonplace init" in told["remedy"]
    assert bare.run("search", "password", code=1).stderr.startswith("error: there is no store at ")


@pytest.mark.parametrize(
    "arguments",
    [("search",), ("search", "x", "--method", "magic"), ("nonsense",), ("index", "build", "--nope"), ("search", " ")],
)
def test_wrong_use_exits_with_2(program: Program, arguments: tuple[str, ...]) -> None:
    """A script tells a wrong call from a failed one."""
    told = program.run(*arguments, code=2)
    assert told.stdout == ""
    assert "error: " in told.stderr


@pytest.mark.parametrize("group", [(), ("index",), ("benchmark",), ("settings",)])
def test_group_without_a_command_prints_its_help(bare: Program, group: tuple[str, ...]) -> None:
    """Typing the name alone is how people ask what there is; a script still learns that it did nothing."""
    told = bare.run(*group, code=2)
    assert told.stdout == ""
    assert told.stderr.splitlines() == bare.run(*group, "--help").stdout.splitlines()


@pytest.mark.parametrize("group", [(), ("index",), ("benchmark",), ("graph",), ("spec",)])
def test_no_line_of_a_list_of_commands_is_cut_short_in_80_columns(group: tuple[str, ...]) -> None:
    """Of 80 columns click leaves two free."""
    told = CliRunner().invoke(cli, [*group, "--help"], terminal_width=78).stdout.partition("Options:")[2]
    assert told
    assert "..." not in told


@pytest.mark.parametrize("arguments", [("search", "x", "--watch"), ("index", "build", "--agent")])
def test_an_option_of_another_command_is_not_accepted(program: Program, arguments: tuple[str, ...]) -> None:
    """What is not there is an error, never passed over."""
    assert f"No such option '{arguments[-1]}'" in program.run(*arguments, code=2).stderr


def test_unexpected_error_is_one_sentence_with_the_traceback_in_the_log(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect of ours must not fill somebody's screen, nor be lost."""
    from commonplace.engine import Engine

    def broken(*_: object, **__: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(Engine, "search", broken)
    told = program.run("search", "x", code=1).stderr
    assert told.startswith("error: unexpected KeyError: 'surprise'; the store's log has the traceback")
    assert "Traceback" not in told
    log = program.project / ".commonplace" / "logs" / "commonplace.jsonl"
    assert "KeyError: 'surprise'" in json.loads(log.read_text().splitlines()[-1])["traceback"]
    assert "Traceback" in program.run("search", "x", "--verbose", code=1).stderr


@pytest.mark.parametrize("arguments", [("index", "export"), ("search", "session"), ("search", "session", "--json")])
def test_closed_pipe_is_silent_and_no_failure(program: Program, arguments: tuple[str, ...]) -> None:
    """`commonplace index export | head` is ordinary use, also in a script that stops at the first failure."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", "from commonplace.cli.main import main; main()", *arguments],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.parametrize("arguments", [("search", "session"), ("search", "session", "--json"), ("--help",)])
def test_full_disk_under_the_output_is_told_as_such(program: Program, arguments: tuple[str, ...]) -> None:
    """It is no defect of ours, and half an answer must not pass for a whole one."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", "from commonplace.cli.main import main; main()", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "standard output cannot be written: No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.returncode == 1


# A parent that ignores Ctrl-C, as `nohup` and a shell's background do, would hand that down.
INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from commonplace.engine import Engine
Engine.search = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
from commonplace.cli.main import main
main()
"""


def interrupt(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a search that gets Ctrl-C."""
    command = [sys.executable, "-c", INTERRUPTED, "search", "x", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_interruption_says_so_in_one_line_and_exits_with_130(program: Program) -> None:
    """Ctrl-C leaves no traceback and no blank line behind."""
    done = interrupt()
    assert (done.stdout, done.stderr, done.returncode) == ("", "interrupted\n", 130)


def test_interruption_has_the_shape_of_every_error_in_json(program: Program) -> None:
    """A program that reads our errors needs no case of its own for this one."""
    done = interrupt("--json")
    error = {"type": "Interrupted", "message": "interrupted", "remedy": ""}
    assert (json.loads(done.stderr), done.returncode) == ({"error": error, "exit_code": 130}, 130)


def test_build_with_a_document_uses_and_keeps_its_settings(program: Program) -> None:
    """The next build and the next search agree with the document, until another takes its place."""
    (program.project.parent / "retrieval.yaml").write_text(
        DOCUMENT.replace("artifact_index: {}", "artifact_index: {indexable_paths: ['docs/**/*.md']}").replace(
            "retrieval_pipeline: {}", "retrieval_pipeline: {stage_2_semantic: {top_k: 1}}"
        )
    )
    (found,) = program.json("index", "build", "--config", "../retrieval.yaml")["roots"].values()
    assert (found["unchanged"], found["removed"]) == (2, 2)
    (again,) = program.json("index", "build")["roots"].values()
    assert (again["unchanged"], again["removed"]) == (2, 0)
    assert len(program.json("search", "session invoices", "--min-score", "0")["hits"]) == 1
    shown = program.json("settings", "show")["index.include"]
    assert (shown["value"], Path(shown["origin"]).name) == (["docs/**/*.md"], "settings.json")
    (restored,) = program.json("index", "build", "--no-config")["roots"].values()
    assert restored["added"] == 2


def test_faulty_document_is_refused_by_its_path_and_changes_nothing(program: Program) -> None:
    """Nothing is indexed by half of a document."""
    (program.project.parent / "retrieval.yaml").write_text(
        DOCUMENT.replace("artifact_index: {}", "artifact_index: {x: 1}")
    )
    told = program.error("index", "build", "--config", "../retrieval.yaml", code=2)
    assert (told["type"], told["path"]) == ("ConfigError", "artifact_index.x")
    assert not (program.project / ".commonplace" / "settings.json").exists()


def test_include_takes_other_files(program: Program) -> None:
    """Globs given on the command line stand in place of the usual list."""
    (found,) = program.json("index", "build", "--include", "docs/*.md")["roots"].values()
    assert (found["unchanged"], found["removed"]) == (2, 2)


def test_export_writes_the_contracts_artifact_index(program: Program) -> None:
    """Other tools read it."""
    printed = json.loads(program.run("index", "export").stdout)
    assert [artifact["path"] for artifact in printed["artifacts"]] == sorted(
        ["docs/auth.md", "docs/storage.md", "src/login.py", "test/test_login.py"]
    )
    assert program.json("index", "export", "--output", "index.json")["artifacts"] == 4
    assert json.loads((program.project / "index.json").read_text()) == printed


def test_export_goes_where_the_document_says(program: Program) -> None:
    """`index_path` and `embeddings_path` are below the project, wherever the command is typed."""
    storage = "artifact_index: {storage: {index_path: out/a.json, embeddings_path: out/vectors/}}"
    (program.project.parent / "retrieval.yaml").write_text(DOCUMENT.replace("artifact_index: {}", storage))
    program.run("index", "build", "--config", "../retrieval.yaml")
    program.run("index", "export")
    assert len(json.loads((program.project / "out" / "a.json").read_text())["artifacts"]) == 4
    lines = (program.project / "out" / "vectors" / "embeddings.jsonl").read_text().splitlines()
    assert len(json.loads(lines[0])["embedding"]) == 256


def test_damaged_index_mends_itself_and_says_so_in_one_line(program: Program) -> None:
    """The index is derived; its loss is not the person's problem."""
    import shutil

    shutil.rmtree(program.project / ".commonplace" / "index")
    done = program.run("search", "session expires")
    assert "docs/auth.md" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "it was rebuilt from the store" in done.stderr


def test_doctor_finds_a_healthy_store_well(program: Program) -> None:
    """The first command of every report of a problem."""
    assert program.json("doctor")["healthy"] is True
    assert "store: ok" in program.run("doctor").stdout


def test_doctor_without_mending_tells_and_fails(program: Program) -> None:
    """`--no-mend` is for looking."""
    import shutil

    shutil.rmtree(program.project / ".commonplace" / "index")
    assert program.json("doctor", "--no-mend", code=1)["findings"][0]["mended"] is False
    assert program.json("doctor")["findings"][0]["mended"] is True


def test_settings_show_tells_value_and_origin(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where does this value come from? is the first question about any setting."""
    (program.project / "commonplace.toml").write_text("[search]\nlimit = 7\n")
    monkeypatch.setenv("COMMONPLACE_LOG_LEVEL", "debug")
    shown = program.json("settings", "show")
    assert (shown["search.limit"]["value"], shown["search.limit"]["origin"]) == (
        7,
        str(program.project / "commonplace.toml"),
    )
    assert shown["log.level"]["origin"] == "environment variable COMMONPLACE_LOG_LEVEL"
    assert "limit = 7" in program.run("settings", "show").stdout


def test_search_leaves_one_log_line_without_the_querys_text(program: Program) -> None:
    """Queries tell what a person works on."""
    program.run("search", "very private matter")
    log = program.project / ".commonplace" / "logs" / "retrieval" / "retrieval.jsonl"
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["hits"] == 0
    assert "private" not in line


def test_demo_refuses_a_missing_directory_before_it_makes_a_store(program: Program) -> None:
    shown = program.run("demo", "--store", "demo-store", "nowhere", code=1)
    assert "there is no file or directory" in shown.stderr
    assert not (program.project / "demo-store").exists()


def test_demo_asks_questions_of_a_directory_and_says_what_to_try_next(program: Program) -> None:
    """The first thing that a person sees of us."""
    (program.project / "mine.questions").write_text(
        "# two\nwhen does a session expire\n\nwhich database has invoices\n"
    )
    arguments = ("demo", "--store", "demo-store", "--questions", "mine.questions", "docs")
    shown = program.run(*arguments).stdout
    assert "2 files" in shown
    assert "1. docs/auth.md:" in shown
    assert "Try next:" in shown.splitlines()[-2]
    again = program.json(*arguments)
    (report,) = again["roots"].values()
    assert report["unchanged"] == 2
    assert [answer["query"] for answer in again["answers"]] == [
        "when does a session expire",
        "which database has invoices",
    ]


def test_benchmark_of_a_made_corpus_prints_tables(bare: Program) -> None:
    """The figures in the manual are made by this command."""
    arguments = ("benchmark", "latency", "--passages", "30", "--queries", "3")
    assert "p95 ms" in bare.run(*arguments).stdout


def test_benchmark_of_the_current_index_reads_labelled_queries(program: Program) -> None:
    """JSON lines {query, relevant: [path]} measure somebody's own project."""
    (program.project / "q.jsonl").write_text('{"query": "when does a session expire", "relevant": ["docs/auth.md"]}\n')
    found = program.json("benchmark", "retrieval", "--queries", "q.jsonl", "--methods", "two-stage")
    assert found["methods"]["two-stage"]["recall@10"] == 1.0


def test_front_matter_that_is_not_used_takes_one_line(bare: Program) -> None:
    """A real project has hundreds of such files; what else is wrong must not be lost among them."""
    for number in range(12):
        (bare.project / f"n{number:02}.md").write_text(f"---\ntype: oddity {number}\n---\n# Note {number}\n\nText.\n")
    (bare.project / "broken.txt").write_bytes(b"\xff\xfe\xfa bad")
    shown = " ".join(bare.run("index", "build").stdout.split())
    assert shown.count(" files is not used in full, such as ") == 1
    assert shown.count(" is not one of requirement, ") == 1
    assert len(bare.json("index", "build", "--force")["roots"][str(bare.project)]["problems"]) >= 12
