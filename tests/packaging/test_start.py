"""What a server loads before its first tool is called: a client starts one for every session."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.packaging.test_imports import HEAVY

import commonplace

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
        "errors text text.budget formats formats.escaping formats.jsonrpc formats.plain formats.strict_json".split()
    )
}


def test_a_server_is_listed_before_anything_heavy_is_loaded() -> None:
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    said = "".join(json.dumps(each) + "\n" for each in (opening, {**opening, "id": 1, "method": "tools/list"}))
    done = subprocess.run([sys.executable, "-I", "-c", PROGRAM], input=said, capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout.splitlines()[1])["result"]["tools"]) == 8
    loaded = set(done.stderr.split())
    assert loaded.isdisjoint({*HEAVY, "click", "difflib", "shutil"})
    ours = {name for name in loaded if name.startswith("commonplace.")}
    assert {name for name in ours if name.split(".")[1] not in {"cli", "mcp"}} == LIGHT


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
