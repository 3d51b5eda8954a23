"""A small project, and the program run on it with nothing of the machine's own settings in the way."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks import mcp
from click.testing import CliRunner, Result

from commonplace.benchmarks import latency
from commonplace.cli.app import cli

FILES = {
    "docs/auth.md": "---\ntags: [security]\nphase: construction\n---\n# Authentication\n\n## Sessions\n\n"
    "A session expires after thirty minutes and is refreshed by the session manager.\n",
    "docs/storage.md": "# Storage\n\nBilling keeps its invoices in a Postgres database.\n",
    "src/login.py": '"""Log people in."""\n\n\nclass LoginService:\n    def check_password(self, name, password):\n'
    "        return self.hasher.verify(name, password)\n",
    "test/test_login.py": "def test_wrong_password_is_refused():\n"
    "    assert not LoginService().check_password('a', 'b')\n",
}


@dataclass
class Program:
    """Runs the command line inside a project."""

    project: Path

    def take(self, project: Path) -> Program:
        """Copy a project here that was made once for many tests."""
        shutil.copytree(project, self.project, dirs_exist_ok=True)
        return self

    def run(self, *arguments: str, code: int = 0, stdin: str | None = None) -> Result:
        done = CliRunner().invoke(cli, list(arguments), input=stdin)
        assert done.exit_code == code, (done.output, done.stderr, done.exception)
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code).stdout)

    def error(self, *arguments: str, code: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.run(*arguments, "--json", code=code).stderr)
        assert told["exit_code"] == code
        error: dict[str, Any] = told["error"]
        return error


@pytest.fixture(scope="session", autouse=True)
def _one_start() -> Iterator[None]:
    """Start measured processes once each: figures that come of them are not asserted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latency, "STARTS", 1)
        patch.setattr(mcp, "STARTS", 1)
        yield


def make(place: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Write the files, and enter their directory."""
    for name in [name for name in os.environ if name.startswith(("COMMONPLACE_", "OPENAI_", "ANTHROPIC_", "OLLAMA_"))]:
        monkeypatch.delenv(name)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(place / "home" / name))
    monkeypatch.setenv("COLUMNS", "100")
    project = place / "project"
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(project)
    return Program(project)


@contextmanager
def made_once(factory: pytest.TempPathFactory) -> Iterator[Program]:
    """Yield the files in a project of which many tests take copies."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield make(factory.mktemp("once"), monkeypatch)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The files, without a store."""
    return make(tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files in a built index, to be copied."""
    with made_once(tmp_path_factory) as program:
        program.run("init")
        program.run("index", "build")
    return program.project


@pytest.fixture
def program(bare: Program, built: Path) -> Program:
    """The files in a built index."""
    return bare.take(built)
