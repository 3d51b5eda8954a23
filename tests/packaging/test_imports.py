"""What importing costs, and which imports the build refuses."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import combinations, pairwise
from pathlib import Path

import pytest

import commonplace
from commonplace import consolidation

ROOT = Path(__file__).resolve().parents[2]

HEAVY = (
    "numpy tantivy sqlite3 yaml rich jsonschema pathspec platformdirs regex Stemmer tomllib asyncio http "
    "urllib.request ssl socket email xml logging.handlers concurrent.futures multiprocessing unittest pydantic httpx"
).split()


def loaded_by(code: str) -> set[str]:
    """Return the names of the modules that a fresh interpreter holds after running some code."""
    program = f"import sys\nbefore = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def test_importing_commonplace_loads_nothing_heavy() -> None:
    """A library that costs a second to import is taken out of every hook and server."""
    assert loaded_by("import commonplace").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", ["Document", "Engine", "Filter", "Hit", "IndexReport", "Memory"])
def test_types_are_listed_before_they_are_loaded(name: str) -> None:
    """Completion in a shell asks `dir`; type checkers and hovers read the imports of the source."""
    assert name in commonplace.__all__
    assert name in dir(commonplace)
    imported = {
        each.asname or each.name
        for node in ast.walk(ast.parse(inspect.getsource(commonplace)))
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert name in imported
    assert getattr(commonplace, name).__name__ == name
    assert loaded_by(f"import commonplace\nassert {name!r} in dir(commonplace)").isdisjoint(HEAVY)


def test_the_engine_has_every_call_with_its_description_in_one_place() -> None:
    """Whoever hovers over a call, or goes to its definition, finds what it does."""
    assert commonplace.Engine.__mro__ == (commonplace.Engine, object)
    calls = {name: call for name, call in vars(commonplace.Engine).items() if not name.startswith("_")}
    assert {"search", "remember", "forget", "graph", "knowledge"} <= calls.keys()
    assert [name for name, call in calls.items() if not inspect.getdoc(call)] == []


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["search", "--help"], ["benchmark", "latency", "--help"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help appears at once, also on a machine where a driver is broken."""
    code = (
        "import contextlib, io\nfrom commonplace.cli.app import cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    cli.main({arguments!r})\n"
    )
    assert loaded_by(code).isdisjoint(HEAVY)


def test_a_server_at_rest_has_no_engine() -> None:
    """It waits in a third of the memory, where no request comes."""
    code = "import commonplace.server.app\nimport commonplace.server.run\nimport commonplace.cli.serve"
    loaded = loaded_by(code)
    assert "starlette.applications" in loaded
    assert loaded.isdisjoint(("numpy", "tantivy", "jinja2", "commonplace.engine", "commonplace.index"))


def test_opening_a_remote_model_loads_no_network() -> None:
    """Who names a model in the settings and asks it nothing pays nothing for it."""
    code = (
        "from commonplace.models.llm import open_generator\n"
        "open_generator('openai:m', environ={'OPENAI_API_KEY': 'sk-x'})\n"
        "open_generator('ollama:m', environ={})\n"
    )
    loaded = loaded_by(code)
    assert "commonplace.models.client" in loaded
    assert loaded.isdisjoint(HEAVY)


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


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source in which wrong imports can be planted."""
    place = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", place)
    return place


SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
LAYERS, _, SKINS = SETTINGS["contracts"]
LINES = [[name.strip() for name in line.split("|")] for line in LAYERS["layers"]]
NEIGHBOURS = [pair for line in LINES for pair in combinations(line, 2)]
UPWARD = [(lower[0], upper[-1]) for upper, lower in pairwise(LINES)]
OUTWARD = [("errors", LINES[-1][0]), ("types", LINES[-1][-1])]
PAST_THE_ENGINE = [("cli", "store"), ("mcp", "store"), ("mcp", "ranking")]
PLANTED = [*NEIGHBOURS, *UPWARD, *OUTWARD, *PAST_THE_ENGINE]


@pytest.fixture(scope="module")
def verdict(tree: Path) -> str:
    """What the build says of a tree that is clean but for one import of every wrong kind."""
    clean = lint(tree)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    for importer, imported in PLANTED:
        module = tree / "src" / "commonplace" / importer
        path = module / "__init__.py" if module.is_dir() else module.with_suffix(".py")
        path.write_text(path.read_text(encoding="utf-8") + f"import commonplace.{imported}\n", encoding="utf-8")
    planted = lint(tree)
    assert planted.returncode == 1
    return planted.stdout


@pytest.mark.parametrize(("importer", "imported"), PLANTED)
def test_planted_wrong_import_is_refused(verdict: str, importer: str, imported: str) -> None:
    """Sideways and upward from each line, out of errors and types, past the engine; the contracts say which."""
    assert re.search(rf"commonplace\.{importer} -> commonplace\.{imported} \(l\.\d+\)", verdict)


def test_planted_stray_module_is_refused(tree: Path, verdict: str) -> None:
    """A module finds its place among the layers before it can merge; there is no `utils`."""
    stray = tree / "src" / "commonplace" / "utils.py"
    stray.write_text('"""Odds and ends."""\n')
    done = lint(tree)
    stray.unlink()
    assert done.returncode == 1
    assert "commonplace.utils" in done.stdout + done.stderr
    assert "commonplace.utils" not in verdict


def test_skins_are_refused_every_package_but_those_that_are_theirs() -> None:
    """A new package stands below the engine, or says why it does not."""
    theirs = {"aio", "cli", "client", "server", "mcp", "benchmarks", "engine", "formats", "settings"}
    packages = {name for line in LINES for name in line}
    assert {name.removeprefix("commonplace.") for name in SKINS["forbidden_modules"]} == packages - theirs


def test_import_by_string_is_no_way_around_the_layers() -> None:
    """The contract does not see a name in quotes: these packages name modules of their own, or Python's.

    The server's OpenAPI document names those of which the engine's annotations speak.
    """
    source = ROOT / "src" / "commonplace"
    by_string = re.compile(r"\b(import_module|__import__)\(")
    found = {
        path.relative_to(source).parts[0]
        for path in source.rglob("*.py")
        if by_string.search(path.read_text(encoding="utf-8"))
    }
    assert found <= {"benchmarks", "cli", "models", "server", "text"}


def test_consolidation_has_every_name_of_its_contract() -> None:
    """Agents written for it import them from the package."""
    for name in consolidation.__all__:
        assert getattr(consolidation, name).__name__ == name
