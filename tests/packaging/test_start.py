"""What a server loads before its first tool is called: a client starts one for every session."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.packaging.test_imports import HEAVY

import commonplace
from commonplace.cli.socket_server import Listener

PROGRAM = """
import sys
from commonplace.cli.main import main
sys.argv = ["commonplace", "mcp", "--namespace", "somebody"]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""
LIGHT = {
    f"commonplace.{name}"
    for name in (
        "dataclasses errors lazy_regex text text.budget "
        "formats formats.escaping formats.jsonrpc formats.json_values".split()
    )
}


def test_a_server_is_listed_before_anything_heavy_is_loaded() -> None:
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    said = "".join(json.dumps(each) + "\n" for each in (opening, {**opening, "id": 1, "method": "tools/list"}))
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], input=said, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout.splitlines()[1])["result"]["tools"]) == 8
    loaded = set(done.stderr.split())
    assert loaded.isdisjoint({*HEAVY, *"click difflib shutil logging pathlib dataclasses inspect".split()})
    ours = {name for name in loaded if name.startswith("commonplace.")}
    assert {name for name in ours if name.split(".")[1] not in {"cli", "mcp"}} == LIGHT


SEARCHED = """
import dataclasses, os, sys, types
made = []
library = dataclasses._process_class
def noted(cls, *arguments, **named):
    ours = sys._getframe(2).f_globals["__name__"] == "commonplace.dataclasses"
    if cls.__module__.startswith("commonplace.") and not ours:
        made.append(f"{cls.__module__}.{cls.__name__}")
    return library(cls, *arguments, **named)
dataclasses._process_class = noted
from commonplace.cli.main import main
sys.argv = ["commonplace", "mcp", "--store", sys.argv[1]]
try:
    main()
finally:
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
    print(*sys.modules, file=sys.stderr)
    print(*made, file=sys.stderr)
    print(sum(os.stat(file).st_size for file in files.values() if file.endswith(".so")), file=sys.stderr)
    print(sum(os.stat(file).st_size for name, file in files.items() if name.startswith("commonplace")), file=sys.stderr)
"""
UNUSED = """
aio benchmarks client consolidation erasure exchange extract graph health knowledge ledger server specialist specs
cli.app cli.watch engine.consolidation_api engine.context_api engine.doctor engine.erasure_api engine.graph_api
engine.index_api engine.knowledge_api engine.upgrade formats.journal_edit ingest.passages
journal.baseline journal.import_edits journal.snapshot journal.write_pages memory.admission
memory.service memory.supersession search.context text.chunk text.similarity
""".split()
"""Packages and modules of ours that no question needs."""
MAX_MODULES, MAX_OURS = 370, 132
"""Of Python 3.11, NumPy 2.4 and ours there are 361, 130 of them ours; each costs memory and time."""
MAX_BINARY, MAX_SOURCE = 26_000_000, 1_400_000
"""Bytes of the libraries that are loaded as modules, 19.5 MB on Linux, and of our own modules, 1.33 MB."""


def test_a_server_that_searched_has_loaded_no_more_than_it_needs(tmp_path: Path) -> None:
    """Every agent's session pays for each module, and for each class that the library makes in place of ours."""
    with commonplace.open(tmp_path / "store") as book:
        book.remember("We chose Postgres for billing.")
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    asked = {"name": "memory_search", "arguments": {"query": "what does billing use"}}
    searching = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    said = "".join(json.dumps(each) + "\n" for each in (opening, searching))
    program = [sys.executable, "-I", "-c", SEARCHED, str(tmp_path / "store")]
    done = subprocess.run(program, input=said, capture_output=True, text=True, check=True)
    assert "Postgres" in done.stdout.splitlines()[1]
    modules, made, binary, source = done.stderr.splitlines()[-4:]
    assert made == ""
    loaded = set(modules.split())
    assert "commonplace.search.retrieve" in loaded
    assert loaded.isdisjoint(
        "hashlib _hashlib ssl asyncio rich click yaml jsonschema numpy.random numpy.ma tantivy".split()
    )
    ours = {name.removeprefix("commonplace.") for name in loaded if name.startswith("commonplace.")}
    assert {name for name in ours if name in UNUSED or name.partition(".")[0] in UNUSED} == set()
    assert len(ours) <= MAX_OURS
    assert len(loaded) < MAX_MODULES
    assert int(binary) < MAX_BINARY
    assert int(source) < MAX_SOURCE


COMMAND = """
import sys
from commonplace.cli.main import main
sys.argv = ["commonplace", "recall", "billing"]
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def test_a_command_that_a_server_runs_loads_nothing_heavy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own start is most of what it takes."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cp-") as runtime, commonplace.open(tmp_path / "store") as book:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        monkeypatch.setenv("COMMONPLACE_STORE", str(tmp_path / "store"))
        book.remember("We chose Postgres for billing.")
        listener = Listener()
        listener.begin(book.settings, lambda: book)
        done = subprocess.run([sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True)
        listener.end()
    assert "Postgres" in done.stdout
    loaded = set(done.stderr.split())
    assert loaded.isdisjoint({*HEAVY, "click", "logging", "pathlib", "tempfile", "shutil"} - {"socket"})
    ours = {name for name in loaded if name.startswith("commonplace.")}
    assert ours == {"commonplace.cli", "commonplace.cli.main", "commonplace.cli.socket_client", "commonplace.errors"}


def test_every_exported_name_is_there_when_it_is_asked_for() -> None:
    """Types are loaded late, which a checker does not see."""
    for name in commonplace.__all__:
        assert getattr(commonplace, name) is not None
    assert commonplace.Memory.__module__ == "commonplace.memory.view"
    assert commonplace.Hit.__module__ == "commonplace.types"
    assert not hasattr(commonplace, "Dream")


def test_the_package_is_a_program_too() -> None:
    """Where no console script is on the path, the interpreter still is."""
    done = subprocess.run(
        [sys.executable, "-m", "commonplace", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"commonplace, version {commonplace.__version__}\n"
