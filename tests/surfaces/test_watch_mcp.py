"""`commonplace mcp` that watches its project: what files say is found while the server runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.surfaces.conftest import Program
from tests.surfaces.mcp_process import Wire, call, structured

import commonplace
from commonplace.errors import StoreBusyError


@contextmanager
def server(program: Program, *options: str) -> Iterator[Wire]:
    wire = Wire(program.project, options=options)
    try:
        wire.greet()
        yield wire
    finally:
        wire.close()


def found(wire: Wire, question: str, path: str) -> None:
    """Ask until the file is found; a server that never finds it is killed, which fails the test."""
    while path not in str(structured(wire.ask(call("memory_context", task=question)))):
        pass


@pytest.mark.parametrize("way", ["option", "setting"])
def test_a_server_that_watches_finds_what_files_say(bare: Program, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.run("init")
    if way == "setting":
        monkeypatch.setenv("COMMONPLACE_INDEX_WATCH", "on")
    with server(bare, *(["--watch"] if way == "option" else [])) as wire:
        found(wire, "When does a session expire?", "docs/auth.md")
        (bare.project / "docs/new.md").write_text("# Penguins\n\nPenguins are fed at four in the afternoon.\n")
        found(wire, "When are penguins fed?", "docs/new.md")
        with commonplace.open(bare.project / ".commonplace") as book, pytest.raises(StoreBusyError):
            book.index(bare.project, watch=True)
        assert wire.end() == []
    with commonplace.open(bare.project / ".commonplace") as book, book.index(bare.project, watch=True) as watch:
        run = next(watch)
    assert run.report is not None
    assert (run.report.unchanged, run.report.removed) == (5, 0)


def test_a_server_watches_nothing_unless_it_is_asked(bare: Program) -> None:
    bare.run("init")
    with server(bare) as wire:
        assert "docs/auth.md" not in str(structured(wire.ask(call("memory_context", task="When do sessions expire?"))))
        with commonplace.open(bare.project / ".commonplace") as book, book.index(bare.project, watch=True) as watch:
            assert next(watch).error is None
        assert wire.end() == []


def test_a_client_is_told_to_start_a_server_that_watches(bare: Program) -> None:
    for client in ("claude-code", "codex"):
        told = bare.run("mcp", "--print-config", client, "--watch").stdout
        assert "--watch" in told
        assert "--watch" not in bare.run("mcp", "--print-config", client).stdout


def test_a_project_may_not_ask_for_it(bare: Program) -> None:
    """Its file comes with somebody's clone, and where an embedder is behind an API, texts would leave the machine."""
    bare.run("init")
    (bare.project / "commonplace.toml").write_text('[index]\nwatch = "on"\n')
    assert "which a project's own file may not" in bare.run("index", "status", code=2).stderr
