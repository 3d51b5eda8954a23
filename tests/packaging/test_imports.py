"""What importing costs, and which imports the build refuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEAVY = (
    "numpy tantivy sqlite3 yaml rich jsonschema pathspec platformdirs Stemmer tomllib asyncio http urllib.request ssl "
    "socket email xml logging.handlers concurrent.futures multiprocessing unittest pydantic httpx"
).split()


def loaded_by(code: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter holds after running some code."""
    program = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_importing_commonplace_loads_nothing_heavy() -> None:
    """A library that costs a second to import is taken out of every hook and server."""
    assert loaded_by("import commonplace").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["search", "--help"], ["benchmark", "latency", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help appears at once, also on a machine where a driver is broken."""
    code = (
        "import contextlib, io\nfrom commonplace.cli.main import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    cli.main({arguments!r})\n"
    )
    assert loaded_by(code).isdisjoint(HEAVY)


def test_importing_reads_no_environment_of_ours() -> None:
    """Settings are read once, at the edge, by whoever runs the program."""
    code = (
        "import os\n"
        "class Watched(dict):\n"
        "    def get(self, key, default=None):\n"
        "        assert not key.startswith(('COMMONPLACE', 'XDG', 'HOME')), key\n"
        "        return default\n"
        "    __getitem__ = __contains__ = get\n"
        "    __iter__ = keys = items = None\n"
        "os.environ = Watched()\n"
        "import commonplace.settings, commonplace.logs, commonplace.formats.auto_retrieval, commonplace.cli.main\n"
    )
    assert "commonplace.cli.main" in loaded_by(code)


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).with_name("lint-imports"))
    # The copy must be what is checked, not the installed package.
    environment = {"PYTHONPATH": str(tree / "src"), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [program, "--no-cache"], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the source in which a wrong import can be planted."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_layers_hold(tree: Path) -> None:
    """The copy is clean, so that the failures below are those of what was planted."""
    done = lint(tree)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("text/analysis.py", "import commonplace.store.contract"),
        ("store/contract.py", "import commonplace.index.contract"),
        ("types.py", "import commonplace.text.analysis"),
        ("engine/facade.py", "import commonplace.cli.main"),
    ],
)
def test_planted_wrong_import_is_refused(tree: Path, file: str, line: str) -> None:
    """Upward, sideways, out of the types, and from the core into a skin."""
    path = tree / "src" / "commonplace" / file
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = lint(tree)
    assert done.returncode == 1
    assert "BROKEN" in done.stdout


def test_planted_stray_module_is_refused(tree: Path) -> None:
    """A module finds its place among the layers before it can merge; there is no `utils`."""
    (tree / "src" / "commonplace" / "utils.py").write_text('"""Odds and ends."""\n')
    assert lint(tree).returncode == 1
