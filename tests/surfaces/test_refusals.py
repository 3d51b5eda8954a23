"""What the command line refuses before it does anything, and where it never writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.surfaces.test_forget_cli import asking, shown_until

from commonplace.settings.paths import user_store
from commonplace.store.drafts import draft

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

PARTS = "version: 1.0.0\nretrieval_pipeline: {}\nagent_integration: {}\n"


def document(program: Program, artifact_index: str = "{}") -> str:
    """Write an auto-retrieval document beside the project and return its name as typed."""
    (program.project.parent / "retrieval.yaml").write_text(f"{PARTS}artifact_index: {artifact_index}\n")
    return "../retrieval.yaml"


def kept(program: Program) -> Path:
    return program.project / ".commonplace" / "settings.json"


# -- exports --------------------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(program: Program) -> Path:
    """A directory outside the project, into which a link leads that came with the clone."""
    outside = program.project.parent / "outside"
    outside.mkdir()
    (program.project / "out").symlink_to(outside)
    return outside


@pytest.mark.parametrize("setting", ["export_path", "export_embeddings"])
def test_export_never_follows_a_link_out_of_the_project(program: Program, elsewhere: Path, setting: str) -> None:
    """The path is relative and looks harmless; the link beside it arrived with the same clone."""
    (program.project / "commonplace.toml").write_text(f'[index]\n{setting} = "out/x"\n')
    told = program.error("index", "export", code=2)
    assert told["type"] == "SettingsError"
    assert f"index.{setting} is 'out/x" in told["message"]
    assert str(elsewhere) in told["message"]
    assert "--output" in told["remedy"]
    assert list(elsewhere.iterdir()) == []


def test_export_never_follows_a_link_that_stands_for_the_file_itself(program: Program, elsewhere: Path) -> None:
    """The directory of the vectors is inside, the file in it is a link to somebody's key."""
    (elsewhere / "key").write_text("secret")
    (program.project / "vectors").mkdir()
    (program.project / "vectors" / "embeddings.jsonl").symlink_to(elsewhere / "key")
    storage = "{storage: {embeddings_path: vectors/}}"
    program.run("index", "build", "--config", document(program, storage))
    program.run("index", "export", code=2)
    assert (elsewhere / "key").read_text() == "secret"


def test_export_never_writes_into_the_store(program: Program) -> None:
    """A settings file that names the database would cost its owner their memory."""
    (program.project / "commonplace.toml").write_text('[index]\nexport_path = ".commonplace/store.db"\n')
    assert "inside the store" in program.error("index", "export", code=2)["message"]
    assert program.json("doctor")["healthy"] is True


@pytest.mark.parametrize("setting", ["export_path", "export_embeddings"])
@pytest.mark.parametrize(
    ("named", "why"),
    [
        (".git/config", "belongs to git"),
        (".git/fresh", "belongs to git"),
        ("docs/.GIT/config", "belongs to git"),
        ("link", "belongs to git"),
        ("commonplace.toml", "holds settings"),
        ("docs/Commonplace.toml", "holds settings"),
        ("docs/.commonplace/fresh", "inside the store"),
        ("docs/auth.md", "exists and is no earlier export"),
        ("empty", "exists and is no earlier export"),
        ("queue", "exists and is no earlier export"),
    ],
)
def test_export_never_destroys_what_a_settings_file_names(
    program: Program, monkeypatch: pytest.MonkeyPatch, setting: str, named: str, why: str
) -> None:
    """The file arrived with somebody's clone; it must not cost its reader their checkout."""
    for directory in (".git", "docs/.GIT"):
        (program.project / directory).mkdir()
        (program.project / directory / "config").write_text("[core]\n")
    (program.project / "empty").touch()
    (program.project / "link").symlink_to(".git/config")
    os.mkfifo(program.project / "queue")
    (program.project / "commonplace.toml").write_text(f'[index]\n{setting} = "{named}"\n')
    monkeypatch.setattr("commonplace.settings.paths.VECTORS_FILE", "")  # so that both settings name the file itself
    before = {path: path.read_bytes() for path in program.project.rglob("*") if path.is_file()}
    told = program.error("index", "export", code=2)
    assert (told["type"], why in told["message"]) == ("SettingsError", True)
    after = {path: path.read_bytes() for path in program.project.rglob("*") if path.is_file()}
    assert {path for path in before if "logs" not in path.parts and after[path] != before[path]} == set()


@pytest.mark.parametrize("namespace", ["default", 'none "here"'])
def test_export_replaces_its_own_earlier_export(program: Program, namespace: str) -> None:
    """Whoever exports daily to the same place is not asked to clear it first, be the export empty or not."""
    (program.project / "docs" / 'a"b.md').write_text("# Quoted\n\nA name with a mark.\n")
    program.run("index", "build")
    (program.project / "commonplace.toml").write_text('[index]\nexport_path = "i.json"\nexport_embeddings = "v"\n')
    for _ in range(2):
        written = program.json("index", "export", "--namespace", namespace)["written"]
        assert set(written) == {"index", "embeddings"}


def test_person_may_export_anywhere(program: Program, elsewhere: Path) -> None:
    """What is typed is meant, links included."""
    assert program.json("index", "export", "--output", "out/index.json")["artifacts"] == 4
    assert len(json.loads((elsewhere / "index.json").read_text())["artifacts"]) == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ("remember", "--file"),
        ("restore",),
        ("import",),
        ("graph", "import"),
        ("ledger", "import"),
        ("index", "build"),
        ("index", "build", "--config"),
        ("knowledge", "index"),
        ("spec", "validate"),
        ("spec", "run", "--spec"),
        ("demo", "--store", "../shown"),
        ("demo", "--store", "../shown", "--questions"),
        ("health", "--golden"),
        ("consolidate", "run", "--all", "--golden"),
        ("benchmark", "retrieval", "--queries"),
        ("benchmark", "recall", "nowhere"),
    ],
    ids=" ".join,
)
def test_a_file_that_does_not_exist_is_no_wrong_use(program: Program, arguments: tuple[str, ...]) -> None:
    """A script that tells a slip in its own command from a file that is not there yet needs one code for it."""
    told = program.run(*arguments, "nowhere", code=1)
    assert "nowhere" in told.stdout + told.stderr
    assert "Usage:" not in told.stderr


@pytest.mark.parametrize("arguments", [("index", "export", "--output"), ("graph", "show", "PostgreSQL", "--out")])
def test_a_file_is_not_written_to_a_directory_that_does_not_exist(program: Program, arguments: tuple[str, ...]) -> None:
    """A slip in a path must not make a directory, as with `backup` and `export`."""
    program.run("graph", "add", "Billing uses PostgreSQL")
    told = program.error(*arguments, "nowhere/found.svg", code=1)
    assert (told["remedy"], "is no directory" in told["message"]) == ("make it, or name another one", True)
    assert not (program.project / "nowhere").exists()


def test_export_replaces_a_file_whole_and_leaves_nothing_beside_it(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the file while it is written, or after a crash, reads the old one or the new one."""
    target = program.project / "index.json"
    target.write_text("old")

    def full(_: Path, __: Path) -> Path:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        assert "No space left" in program.error("index", "export", "--output", "index.json", code=1)["message"]
    assert target.read_text() == "old"
    program.run("index", "export", "--output", "index.json")
    assert len(json.loads(target.read_text())["artifacts"]) == 4
    assert [path.name for path in program.project.iterdir() if "index.json" in path.name] == ["index.json"]


def test_export_leaves_alone_the_draft_of_another(program: Program) -> None:
    """Two may write the same file at once; each clears away what is its own."""
    with draft(program.project / ".commonplace", program.project / "index.json") as base:
        other = base.with_name(f"{base.name}.new")
        other.write_text("of another")
        program.run("index", "export", "--output", "index.json")
        assert other.read_text() == "of another"
    assert not other.exists()


def test_export_keeps_the_rights_of_the_file_it_replaces(program: Program) -> None:
    """Who kept the old index to themselves keeps the new one; a new file is as readable as any other."""
    for name in ("fresh.json", "private.json"):
        (program.project / name).touch()
    usual = (program.project / "fresh.json").stat().st_mode
    (program.project / "fresh.json").unlink()
    (program.project / "private.json").chmod(0o600)
    for name in ("fresh.json", "private.json"):
        program.run("index", "export", "--output", name)
    assert (program.project / "private.json").stat().st_mode & 0o777 == 0o600
    assert (program.project / "fresh.json").stat().st_mode == usual


def test_export_to_a_device_leaves_the_device(program: Program) -> None:
    """A device that were moved away for a file would be gone for everybody."""
    program.run("index", "export", "--output", "/dev/null")
    assert Path("/dev/null").is_char_device()


# -- slips of the hand ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("docs", "nosuch"), 1),
        (("docs", "--include", "!x"), 2),
        (("docs", "--include", ""), 2),
        (("docs", "--include", "/"), 2),
        (("docs", "--include", "*.xyz"), 2),
        (("docs", "--include", "*.md", "--include", "nosuch/**"), 2),
        (("",), 2),
        (("--config", "nosuch.yaml"), 1),
        (("--namespace", "a\nb"), 2),
    ],
)
def test_build_that_cannot_work_makes_no_store(bare: Program, arguments: tuple[str, ...], code: int) -> None:
    """A mistyped command must leave nothing behind, not even the half that was right."""
    bare.run("index", "build", *arguments, code=code)
    assert not user_store().exists()
    assert not (bare.project / ".commonplace").exists()


def indexed(program: Program) -> int:
    return int(program.json("index", "status")["counts"]["artifacts"])


@pytest.mark.parametrize("watch", [(), ("--watch",)])
def test_glob_that_matches_no_file_removes_nothing(program: Program, watch: tuple[str, ...]) -> None:
    """It is a typing error: the run would remove all that it was to keep."""
    (program.project / ".env").write_text("KEY=1")
    for globs in (("*.xyz",), ("docs/**", "scr/**"), (".env",)):
        options = [option for glob in globs for option in ("--include", glob)]
        told = program.error("index", "build", *options, *watch, code=2)
        assert f"no file below {program.project} that may be indexed matches {globs[-1]!r}" in told["message"]
    assert indexed(program) == 4


def test_glob_may_match_below_one_root_alone(program: Program) -> None:
    """Several roots share the globs of a run."""
    program.run("index", "build", "docs", "src", "--include", "*.md", "--include", "*.py", "--include", "!nothing")
    assert indexed(program) == 4


def test_more_than_half_is_removed_only_with_consent(program: Program) -> None:
    """Files that are indexed already took time; a program cannot be asked whether it is meant."""
    for name in ("docs/auth.md", "docs/storage.md", "src/login.py"):
        (program.project / name).unlink()
    told = program.error("index", "build", code=2)
    assert told["type"] == "RemovalError"
    assert (
        told["message"] == f"3 of the 4 files that are indexed below {program.project} would be removed from the index"
    )
    assert "--yes" in told["remedy"]
    assert "--yes" in program.run("index", "build", code=2).stderr
    assert indexed(program) == 4
    (found,) = program.json("index", "build", "--yes")["roots"].values()
    assert (found["unchanged"], found["removed"]) == (1, 3)


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 1, 4), (b"y\n", 0, 1)])
def test_person_is_asked_before_more_than_half_is_removed(
    program: Program, answer: bytes, code: int, left: int
) -> None:
    with asking("index", "build", "--include", "src/**") as (terminal, process):
        shown = shown_until(terminal, "Remove them? [y/N]: ")
        assert "3 of the 4 files that are indexed below" in shown
        os.write(terminal, answer)
        shown_until(terminal, "\0")
        assert process.wait(30) == code
    assert indexed(program) == left


def test_build_with_a_root_that_is_missing_indexes_none_of_the_others(program: Program) -> None:
    """All roots are looked at first."""
    (program.project / "docs" / "new.md").write_text("# New\n\nSomething new.\n")
    assert "nosuch" in program.error("index", "build", "docs", "nosuch", code=1)["message"]
    assert program.json("index", "status")["counts"]["artifacts"] == 4


def test_store_that_is_a_file_is_a_store_error_also_with_a_document(bare: Program) -> None:
    """Whether a document comes along makes no difference to what is wrong."""
    (bare.project / "file").write_text("mine")
    for more in ((), ("--config", document(bare))):
        told = bare.error("index", "build", "--store", "file", *more, code=1)
        assert (told["type"], told["remedy"]) == ("StoreError", "name a directory with --store")
    assert (bare.project / "file").read_text() == "mine"


def test_documents_settings_are_kept_only_after_a_build_that_succeeded(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document whose build failed must not rule the next search."""
    from commonplace.engine import Engine

    def broken(*_: object, **__: object) -> None:
        raise OSError("disk gone")

    name = document(program, "{indexable_paths: ['docs/**/*.md']}")
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "index", broken)
        program.run("index", "build", "--config", name, code=1)
    assert not kept(program).exists()
    program.run("index", "build", "--config", name)
    assert json.loads(kept(program).read_text()) == {"index": {"include": ["docs/**/*.md"]}}
    with monkeypatch.context() as patched:
        patched.setattr(Engine, "index", broken)
        program.run("index", "build", "--no-config", code=1)
    assert kept(program).exists()
    program.run("index", "build", "--no-config")
    assert not kept(program).exists()


@pytest.mark.parametrize("option", ["--namespace", "--store", "--path", "--tag", "--type"])
@pytest.mark.parametrize("value", ["", " "])
def test_empty_value_of_an_option_is_wrong_use(program: Program, option: str, value: str) -> None:
    """A shell makes it of a variable that is not set; a search of everything is not what was meant."""
    assert option in program.error("search", "password", option, value, code=2)["message"]


def test_globs_that_only_take_away_are_wrong_use(program: Program) -> None:
    """They name no file at all, so that nothing would ever be found."""
    told = program.error("search", "password", "--path", "!docs/**", code=2)["message"]
    assert "--path" in told
    assert "only takes away" in told
    found = program.json("search", "password", "--path", "**/*.md", "--path", "!docs/auth.md", "--min-score", "0")
    assert {hit["path"] for hit in found["hits"]} == {"docs/storage.md"}


# -- saying what is so ----------------------------------------------------------------------------------------------


def test_unknown_namespace_is_told_with_those_that_there_are(program: Program) -> None:
    """A mistyped name looks like an empty memory."""
    notice = "namespace 'defualt' holds nothing; the store has: 'default'"
    assert notice in program.json("search", "password", "--namespace", "defualt")["notices"]
    assert f"note: {notice}\n" in program.run("search", "password", "--namespace", "defualt").stderr
    assert program.json("search", "zebra crossing quagga")["notices"] == []


def test_init_below_another_store_says_that_it_hides_it(program: Program) -> None:
    """From there downward nothing of the outer store is found any more."""
    outer = str(program.project / ".commonplace")
    done = program.run("init", "docs")
    assert done.stderr == f"note: from here downward this store is used, not {outer}\n"
    assert program.json("init", "docs")["hides"] == outer
    assert program.run("init", "--store", "docs/mine").stderr == ""


@pytest.mark.parametrize(
    ("change", "indexed", "waiting", "fault", "state", "told"),
    [
        (4, 4, 0, "", "up to date", "up to date"),
        (5, 4, 0, "", "behind", "behind; 0 passages searched directly"),
        (5, 4, 3, "", "behind", "behind; 3 passages searched directly"),
        (4, 6, 0, "is ahead of its store", "faulty", "the stored index is ahead of its store; the next search"),
        (4, 4, 0, "belongs to another history of its store", "faulty", "the stored index belongs to another history"),
    ],
)
def test_status_tells_how_the_index_stands(
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    change: int,
    indexed: int,
    waiting: int,
    fault: str,
    state: str,
    told: str,
) -> None:
    """Deletions leave the index behind without one passage that waits; that is not up to date."""
    from dataclasses import replace

    from commonplace.engine import Engine

    real = Engine.index_status

    def status(engine: Engine) -> object:
        return replace(real(engine), change=change, indexed_change=indexed, waiting=waiting, fault=fault)

    monkeypatch.setattr(Engine, "index_status", status)
    assert program.json("index", "status")["state"] == state
    said = " ".join(program.run("index", "status").stdout.split())
    assert f" index {told}" in said
    assert f"change {indexed} of {change}" in said


def test_size_of_a_directory_that_goes_while_it_is_read_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process sweeps old generations of the index while somebody asks how large it is."""
    from commonplace.engine.maintenance import size

    (tmp_path / "swept").mkdir()
    (tmp_path / "kept").write_text("four")
    is_dir = Path.is_dir

    def seen_for_the_last_time(path: Path) -> bool:
        found = is_dir(path)
        if path.name == "swept":
            path.rmdir()
        return found

    monkeypatch.setattr(Path, "is_dir", seen_for_the_last_time)
    assert size(tmp_path) == 4


def test_a_limit_that_is_out_of_range_is_called_as_it_was_given(program: Program) -> None:
    """The library's name of it says nothing to whoever typed an option."""
    told = program.error("context", "invoices", "--limit", "-1", code=2)
    assert (told["message"], told["remedy"]) == ("--limit is -1", "give it a whole number from 1 to 1000")


def test_a_token_that_never_expires_is_told_as_such(program: Program) -> None:
    """Without an end, the sentence was taken for one that was cut off."""
    assert "read in default, never expires" in program.run("token", "create").stderr
