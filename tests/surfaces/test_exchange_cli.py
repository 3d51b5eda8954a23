"""Backup, restore, export and import through the command line: as through Python, in sentences, and never by halves."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.surfaces.test_terminal import MAIN, environment

import commonplace
from commonplace.errors import CommonplaceError

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

NOTES = ["Billing keeps its invoices in Postgres.", "The staging cluster is rebuilt every Sunday night."]
MEM0 = {
    "results": [
        {"id": "m1", "memory": "Prefers tea in the morning", "created_at": "2025-03-01T10:00:00+00:00"},
        {"id": "m2", "memory": "Allergic to peanuts", "created_at": "2025-03-02T10:00:00+00:00"},
    ]
}


@pytest.fixture
def kept(bare: Program) -> Program:
    """A store with two memories, one of them of two versions, and a link between them."""
    bare.run("init")
    with commonplace.open(bare.project / ".commonplace") as book:
        for number, note in enumerate(NOTES):
            book.remember(note, id=f"n{number}")
        book.update("n1", "The staging cluster is rebuilt every Monday night.")
        book.link("n0", "n1")
    return bare


@pytest.fixture
def mem0(bare: Program) -> str:
    """A file of another system with two memories."""
    path = bare.project / "mem0.json"
    path.write_text(json.dumps(MEM0))
    return str(path)


LONG_STORY = "A long story, " * 20_000
"""One sentence: the graph reads each."""


@pytest.fixture
def fast(bare: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bare  # it removes such variables
    monkeypatch.setenv("COMMONPLACE_EMBEDDER_NAME", "static")  # long texts take the transformer a minute


def exported(program: Program, *arguments: str) -> bytes:
    return program.run("export", "-", *arguments).stdout_bytes


def limited(*arguments: str, size: int) -> subprocess.CompletedProcess[str]:
    """Run a command on what a disk without more room looks like: no file may grow over a size."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), preexec_fn=limit)


def test_an_export_has_the_same_bytes_through_python_and_the_command_line(kept: Program, tmp_path: Path) -> None:
    with commonplace.open(kept.project / ".commonplace") as book:
        report = book.export(tmp_path / "python.jsonl")
    told = kept.json("export", str(tmp_path / "line.jsonl"))
    same = (tmp_path / "python.jsonl").read_bytes()
    assert (tmp_path / "line.jsonl").read_bytes() == exported(kept) == same
    assert (told["path"], told["sha256"], told["size"]) == (str(tmp_path / "line.jsonl"), report.sha256, report.size)
    assert (told["memories"], told["versions"], told["links"]) == (2, 3, 1)
    assert set(told) == set(report.__dataclass_fields__)


def test_what_is_exported_and_imported_is_exported_as_the_same_bytes(kept: Program, tmp_path: Path) -> None:
    kept.run("export", str(tmp_path / "e.jsonl"))
    other = str(tmp_path / "other")
    first = kept.run("import", str(tmp_path / "e.jsonl"), "--store", other).stdout
    assert first == f"Imported 2 memories, 1 link, 1 episode and 1 entity from {tmp_path / 'e.jsonl'} (commonplace)\n"
    assert exported(kept, "--store", other) == exported(kept)
    again = kept.run("import", str(tmp_path / "e.jsonl"), "--store", other).stdout
    assert again.splitlines()[1:] == ["   Already here: 2 memories, 1 link, 1 episode and 1 entity"]
    assert exported(kept, "--store", other) == exported(kept)


def test_an_import_reports_the_same_through_python_and_the_command_line(
    bare: Program, mem0: str, tmp_path: Path
) -> None:
    with commonplace.open(tmp_path / "python") as book:
        report = book.import_(mem0)
    bare.run("init")
    plan = bare.json("import", mem0, "--dry-run")
    assert bare.json("list") == []
    told = bare.json("import", mem0)
    assert told == {**plan, "is_dry_run": False, "seconds": told["seconds"]}
    assert told["memories"] == {"added": 2, "replaced": 0, "unchanged": 0, "skipped": 0}
    assert (told["format"], told["problems"], told["conflicts"]) == (report.format, [], [])
    assert set(told) == set(report.__dataclass_fields__)
    python, line = (
        # What tells of no use counts as used when it is imported; the last line is a checksum.
        [re.sub(rb'"last_used":[^,}]+', b"", each) for each in exported(bare, *store).splitlines()[:-1]]
        for store in (("--store", str(tmp_path / "python")), ())
    )
    assert python == line


def test_a_backup_is_restored_and_both_report_as_python_does(kept: Program, tmp_path: Path) -> None:
    before = exported(kept)
    told = kept.json("backup", str(tmp_path / "b.zip"))
    assert (told["path"], told["size"]) == (str(tmp_path / "b.zip"), (tmp_path / "b.zip").stat().st_size)
    with commonplace.open(kept.project / ".commonplace") as book:
        report = book.backup(tmp_path / "python.zip")
    assert set(told) == set(report.__dataclass_fields__)
    assert (told["store"], told["notices"]) == (report.store, [])
    restored = kept.json("restore", str(tmp_path / "b.zip"), "--store", str(tmp_path / "new"))
    assert (restored["store"], restored["change"], restored["kept"]) == (told["store"], told["change"], None)
    assert restored["backed_up_at"] == told["created_at"]
    assert exported(kept, "--store", str(tmp_path / "new")) == before
    kept.run("remember", "Something later", "--store", str(tmp_path / "new"))
    replaced = kept.json("restore", str(tmp_path / "b.zip"), "--store", str(tmp_path / "new"), "--replace")
    assert exported(kept, "--store", str(tmp_path / "new")) == before
    assert len(kept.json("list", "--store", replaced["kept"])) == 3


def test_reports_read_as_sentences(kept: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = kept.run("backup", "b.zip", "--store", str(kept.project / ".commonplace")).stdout.splitlines()
    assert first.startswith(f"Backed up to {tmp_path / 'b.zip'} (")
    assert first.endswith(" KiB)")
    assert second.startswith("   The whole store and 1 Markdown page, as of change ")
    kept.run("init", "--store", "new")
    first, second, *rest = kept.run("restore", "b.zip", "--store", "new", "--replace").stdout.splitlines()
    assert first == f"Restored {tmp_path / 'new'} from b.zip"
    assert second.startswith("   As it was on ")
    assert second.endswith(", with 1 Markdown page; the next search builds the index.")
    assert " ".join("".join(rest).split()).startswith(f"The store that was there is kept at {tmp_path / 'new'}.")
    first, second, third = kept.run("export", "e.jsonl", "--store", "new").stdout.splitlines()
    assert first == f"Exported 2 memories, 1 link, 1 episode and 1 entity to {tmp_path / 'e.jsonl'}"
    assert second.startswith("   3 versions of the memories, 8 lines, ")
    assert third.startswith("   sha256 ")


def test_a_report_names_what_was_left_out_and_why(bare: Program, mem0: str) -> None:
    bare.run("import", mem0)
    bare.run("update", "m1", "Prefers coffee in the morning")
    Path(mem0).write_text(json.dumps({"results": [*MEM0["results"], {"id": "m3", "memory": ""}]}))
    refused = bare.error("import", mem0, "--skip-problems", code=2)
    assert "memory 'm1'" in refused["message"]
    told = bare.run("import", mem0, "--skip-problems", "--on-conflict", "skip").stdout.splitlines()
    assert told == [
        f"Imported nothing new from {mem0} (mem0)",
        "   Already here: 1 memory",
        "   Skipped, because the id is taken: 1 memory",
        "      memory 'm1'",
        "   1 problem:",
        "      mem0.json:memory 3: has no text under memory, text, data and was skipped",
    ]
    told = bare.run("import", mem0, "--skip-problems", "--on-conflict", "replace", "--dry-run").stdout.splitlines()
    assert told[0] == f"Would import nothing new from {mem0} (mem0)"
    assert told[2] == "   Replaced what had the same id: 1 memory"
    assert told[-1] == "   Nothing was written."
    assert bare.json("get", "m1")["content"] == "Prefers coffee in the morning"


def test_a_path_that_cannot_be_looked_at_is_told_by_python_and_the_command_line(kept: Program) -> None:
    """As one in a directory without rights, which the superuser never meets."""
    name = "x" * 300
    assert kept.error("import", name, code=1)["message"] == f"{name} cannot be read: File name too long"
    with (
        commonplace.open(kept.project / ".commonplace") as book,
        pytest.raises(CommonplaceError, match="cannot be read: File name too long; make it readable"),
    ):
        book.import_(name)


def test_what_is_named_to_be_imported_and_cannot_be_read_is_named_as_it_was_given(bare: Program) -> None:
    bare.run("init")
    for arguments, message in (
        (("/dev/zero",), "/dev/zero cannot be read: it is not a regular file"),
        ((".", "--format", "mem0"), ". cannot be read: it is a directory"),
    ):
        assert bare.error("import", *arguments, code=2)["message"] == message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", '{"format":"commonplace-export","version":1}\n{"type":"memory"'),
        ("new.jsonl", '{"format":"commonplace-export","version":9}\n'),
        ("m.json", '[{"id": "a", "memory": ""}, {"id": "b", "memory": "Tea"}]'),
        ("x.json", "{}"),
    ],
)
def test_a_new_store_holds_nothing_of_what_is_refused(bare: Program, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    place = tmp_path / "place"
    bare.run("import", str(tmp_path / name), "--store", str(place), code=1 if name == "new.jsonl" else 2)
    assert bare.json("list", "--store", str(place)) == []


def test_one_problem_is_told_in_the_singular(bare: Program, mem0: str) -> None:
    Path(mem0).write_text(json.dumps([*MEM0["results"], {"id": "m3"}]))
    assert bare.error("import", mem0, code=2)["message"].startswith("1 item cannot be stored, nothing was imported: ")
    bare.run("import", mem0, "--skip-problems")
    bare.run("update", "m1", "Prefers coffee in the morning")
    error = bare.error("import", mem0, "--skip-problems", code=2)
    assert error["message"] == "1 item is here with other content, nothing was imported: memory 'm1'"
    assert "--on-conflict skip" in error["remedy"]


def test_help_names_every_format(bare: Program) -> None:
    shown = "".join(bare.run("import", "--help").stdout.split())
    assert "[auto|commonplace|basic-memory|chat|chatgpt|claude|cortexgraph|markdown|mcp-memory|mem0|openclaw]" in shown
    assert (
        "format is 'notion'; give one of auto, commonplace,"
        in bare.run("import", ".", "--format", "notion", code=2).stderr
    )


@pytest.mark.parametrize(
    ("name", "content", "code", "message"),
    [
        ("missing.json", None, 1, "missing.json cannot be read: No such file or directory"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\xff", 2, "image.png is not UTF-8"),
        ("empty.json", b"", 2, "empty.json cannot be read: it is empty"),
        ("other.json", b'{"rows": [1, 2]}', 2, "is in no known format"),
        ("bad.jsonl", b'{"format":"commonplace-export"', 2, "bad.jsonl"),
        ("half.json", b'{"results": [{"id": "m1", "memory": "Prefers tea"}, {"id": "m2"}]}', 2, "nothing was imported"),
    ],
)
def test_what_cannot_be_imported_leaves_the_store_as_it_was(
    kept: Program, name: str, content: bytes | None, code: int, message: str
) -> None:
    before = exported(kept)
    if content is not None:
        (kept.project / name).write_bytes(content)
    error = kept.error("import", name, code=code)
    assert message in error["message"]
    assert error["remedy"]
    done = kept.run("import", name, code=code)
    assert (done.stdout, done.stderr) == ("", f"error: {error['message']}; {error['remedy']}\n")
    assert exported(kept) == before


def test_who_imports_a_graph_of_graphitis_is_told_of_the_command_for_it(kept: Program) -> None:
    (kept.project / "graph.json").write_text('{"entity_nodes": []}', encoding="utf-8")
    error = kept.error("import", "graph.json", code=2)
    assert error["remedy"].endswith("; Graphiti's graph is for `commonplace graph import`")


def test_a_cut_or_changed_export_is_refused_whole(kept: Program, tmp_path: Path) -> None:
    whole = exported(kept)
    before = kept.json("list", "--store", kept.json("init", "--store", str(tmp_path / "new"))["store"])
    for number, damaged in enumerate((whole[:-40], whole[: len(whole) // 2], whole.replace(b"Postgres", b"Postgrey"))):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(damaged)
        error = kept.error("import", str(path), "--store", str(tmp_path / "new"), code=2)
        assert error["remedy"] == "export it again"
    assert kept.json("list", "--store", str(tmp_path / "new")) == before == []


@pytest.mark.parametrize("arguments", [("gone.json",), ("mem0.json", "--dry-run")])
def test_what_imports_nothing_makes_no_store(bare: Program, mem0: str, arguments: tuple[str, ...]) -> None:
    """A slip in a name must not leave an empty store that later commands then find."""
    assert Path(mem0).exists()
    bare.error("import", *arguments, "--store", "new", code=1)
    assert not (bare.project / "new").exists()


@pytest.mark.parametrize("command", ["backup", "export"])
def test_a_file_that_exists_is_never_written_over(kept: Program, command: str) -> None:
    (kept.project / "there").write_text("precious")
    for target in ("there", "."):
        error = kept.error(command, target, code=1)
        assert error["message"].endswith("exists already")
        assert error["remedy"] == "name a file that does not exist yet"
    assert (kept.project / "there").read_text() == "precious"


@pytest.mark.parametrize("command", ["backup", "export"])
def test_what_leaves_a_store_makes_no_directory(kept: Program, command: str) -> None:
    """It may be for another disk: one that is not there must not become a directory on this one."""
    assert kept.error(command, "none/file", code=1)["remedy"]
    assert not (kept.project / "none").exists()


def test_no_store_is_replaced_unless_that_is_said(kept: Program, tmp_path: Path) -> None:
    kept.run("backup", str(tmp_path / "b.zip"))
    before = exported(kept)
    error = kept.error("restore", str(tmp_path / "b.zip"), code=1)
    assert error["message"].endswith("holds a store already")
    assert "--replace" in error["remedy"]
    assert "there is no" in kept.error("restore", str(tmp_path / "none.zip"), code=1)["message"]  # --replace is no help
    assert "is a file" in kept.error("restore", str(tmp_path / "b.zip"), "--store", "docs/auth.md", code=1)["message"]
    assert "holds no store, but" in kept.error("restore", str(tmp_path / "b.zip"), "--store", "docs", code=1)["message"]
    assert exported(kept) == before


@pytest.mark.parametrize("how", ["missing", "cut", "changed", "other"])
def test_a_damaged_backup_is_refused_and_the_store_stays(kept: Program, tmp_path: Path, how: str) -> None:
    backup = tmp_path / "b.zip"
    kept.run("backup", str(backup))
    data = backup.read_bytes()
    middle = len(data) // 2
    changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    backup.unlink()
    if how != "missing":
        backup.write_bytes({"cut": data[:middle], "changed": changed, "other": exported(kept)}[how])
    before = exported(kept)
    error = kept.error("restore", str(backup), "--replace", code=1)
    assert error["remedy"]
    assert exported(kept) == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("b.zip.")] == []
    assert sorted(path.name for path in kept.project.iterdir() if path.name.startswith(".commonplace")) == [
        ".commonplace"
    ]


@pytest.mark.parametrize("command", ["backup", "export"])
@pytest.mark.usefixtures("fast")
def test_a_full_disk_is_told_and_nothing_half_written_stays(kept: Program, tmp_path: Path, command: str) -> None:
    if command == "export":
        kept.run("remember", LONG_STORY)
    target = tmp_path / "out" / "file"
    target.parent.mkdir()
    # Read once before, so that the store's own files need not grow.
    kept.run("list")
    done = limited(command, str(target), size=100_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert "room" in done.stderr
    assert list(target.parent.iterdir()) == []
    kept.run(command, str(target))
    assert target.is_file()


def test_a_restore_on_a_full_disk_keeps_the_store(kept: Program, tmp_path: Path) -> None:
    kept.run("backup", str(tmp_path / "b.zip"))
    before = exported(kept)
    done = limited("restore", str(tmp_path / "b.zip"), "--replace", size=50_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot restore to" in done.stderr
    assert exported(kept) == before


@pytest.mark.usefixtures("fast")
def test_an_export_into_a_pipe_that_is_closed_ends_quietly(bare: Program) -> None:
    """`commonplace export - | head -1` is a fair question."""
    bare.run("remember", LONG_STORY)
    reading, writing = os.pipe()
    command = [sys.executable, "-c", MAIN, "export", "-"]
    process = subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, env=environment())
    os.close(writing)
    assert os.read(reading, 10) == b'{"format":'
    os.close(reading)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, b"")


@pytest.mark.usefixtures("fast")
def test_ctrl_c_in_an_import_is_told_and_importing_again_completes_it(bare: Program, tmp_path: Path) -> None:
    bare.run("init")
    entries = [{"id": f"m{n}", "memory": f"Fact {n} of the keeper of lamp{n}"} for n in range(400)]
    path = tmp_path / "many.json"
    path.write_text(json.dumps(entries))
    # Interrupted by itself once writing has begun: whoever presses the keys is no better timed.
    program = (
        "import os, signal\nfrom commonplace.exchange.import_ import Writer\nadd = Writer.add\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs the tests may ignore it
        "def interrupted(*given, count=[0]):\n"
        "    count[0] += 1\n"
        "    if count[0] == 300:\n        os.kill(os.getpid(), signal.SIGINT)\n"
        f"    add(*given)\nWriter.add = interrupted\n{MAIN}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "import", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert bare.json("doctor")["healthy"]
    told = bare.json("import", str(path))["memories"]
    assert told["added"] + told["unchanged"] == 400
    assert bare.json("import", str(path))["memories"]["unchanged"] == 400


def test_a_link_of_a_vault_that_leads_nowhere_is_told_and_the_vault_taken_in(bare: Program, tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "tea.md").write_text("---\npermalink: tea\n---\n# Tea\n\nBetter than [[Coffee]].\n")
    told = bare.run("import", str(tmp_path / "vault"), "--format", "basic-memory").stdout.splitlines()
    assert told[0] == f"Imported 1 memory from {tmp_path / 'vault'} (basic-memory)"
    assert "note: tea.md:6: links [[Coffee]], which is no note here" in told[1]
