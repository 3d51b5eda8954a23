"""`index build --watch` as a process: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.conftest import Program

from commonplace.cli.watch import POLLING

PROGRAM = str(Path(sys.executable).with_name("commonplace"))
END_S = 60


@contextmanager
def watching(bare: Program, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [PROGRAM, "index", "build", "--watch", *arguments]
    with subprocess.Popen(
        command,
        cwd=bare.project,
        env=os.environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def counts(told: Any) -> tuple[int, int, int, int]:
    (report,) = told["roots"].values()
    return report["added"], report["changed"], report["unchanged"], report["removed"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_tells_each_run_in_a_line_until_it_is_told_to_stop(bare: Program, sent: signal.Signals) -> None:
    with watching(bare, "docs", "--json") as process:
        assert counts(line(process)) == (2, 0, 0, 0)
        (bare.project / "docs/storage.md").write_text("# Storage\n\nBilling keeps its invoices in SQLite.\n")
        assert counts(line(process)) == (0, 1, 1, 0)
        (bare.project / "docs/auth.md").unlink()
        assert counts(line(process)) == (0, 0, 1, 1)
        second = bare.run("index", "build", "--watch", "docs", code=1)
        assert "is watched already" in second.stderr
        assert "SQLite" in bare.run("search", "where are invoices").stdout
        process.send_signal(sent)
        assert process.wait(END_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert bare.json("doctor")["findings"] == []


def test_a_directory_that_is_gone_is_told_and_the_store_keeps_its_files(bare: Program) -> None:
    with watching(bare, "docs", "--json") as process:
        line(process)
        (bare.project / "docs").rename(bare.project / "elsewhere")
        assert process.stderr is not None
        error = json.loads(process.stderr.readline())["error"]
        assert (error["type"], "no file or directory" in error["message"]) == ("NotFoundError", True)
        assert bare.json("index", "status")["counts"]["artifacts"] == 2
        (bare.project / "elsewhere").rename(bare.project / "docs")
        assert counts(line(process)) == (0, 0, 2, 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0


def test_a_person_is_told_what_is_watched_and_how_to_end_it(bare: Program) -> None:
    with watching(bare) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "4 files indexed (4 new" in process.stdout.readline()
        notes = iter(process.stderr.readline, "")
        assert any("Ctrl-C ends it" in each for each in notes)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(END_S) == 0
    assert "interrupted" not in rest
    assert POLLING not in rest


def test_several_roots_are_wrong_use(bare: Program) -> None:
    assert "--watch follows one ROOT" in bare.run("index", "build", "--watch", "docs", "src", code=2).stderr


def test_a_root_that_is_not_there_is_refused_before_a_store_is_made(bare: Program) -> None:
    assert "there is no file or directory nowhere" in bare.run("index", "build", "--watch", "nowhere", code=1).stderr
    assert not (bare.project / ".commonplace" / "store.db").exists()


def test_a_document_of_settings_holds_from_the_first_run_on(bare: Program) -> None:
    (bare.project / "retrieval.yaml").write_text(
        "version: 1.0.0\nartifact_index:\n  indexable_paths: ['docs/**/*.md']\nretrieval_pipeline: {}\n"
        "agent_integration: {}\n"
    )
    with watching(bare, "--json", "--config", "retrieval.yaml") as process:
        assert counts(line(process)) == (2, 0, 0, 0)
        (bare.project / "src/new.py").write_text("x = 1\n")
        (bare.project / "docs/new.md").write_text("# New\n\nA new page.\n")
        assert counts(line(process)) == (1, 0, 2, 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0
    assert bare.json("index", "build")["roots"][str(bare.project)]["unchanged"] == 3


def test_a_signal_in_the_middle_of_a_run_ends_it_and_leaves_whole_files(bare: Program) -> None:
    """As soon as there is a lock the first run is under way, or about to begin."""
    bare.run("init")
    for number in range(2000):
        (bare.project / f"docs/n{number}.md").write_text(f"# Note {number}\n\nThis is note {number} of many.\n")
    with watching(bare, "docs", "--json") as process:
        while not list((bare.project / ".commonplace").glob("watch-*.lock")):
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_S) == 0
    (report,) = bare.json("index", "build", "docs")["roots"].values()
    assert report["added"] + report["unchanged"] == 2002
    assert bare.json("doctor")["findings"] == []
