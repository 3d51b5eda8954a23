"""The figures of the source and of single calls can be measured again by anybody."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def trace(*arguments: str) -> dict[str, dict[str, int]]:
    """Return what the script prints as JSON."""
    command = [sys.executable, str(ROOT / "scripts" / "trace_calls.py"), *arguments]
    found: dict[str, dict[str, int]] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def test_figures_of_the_tree_fit_the_budget() -> None:
    """Two scripts count the same tree."""
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["commonplace"]["budget"]
    found = trace("--tree", "--json")
    assert (found["files"], found["lines"]) <= (budget["files"], budget["lines"])
    assert set(found) == {
        "files",
        "lines",
        "packages",
        "statements",
        "TYPE_CHECKING blocks",
        "imports inside functions",
        "modules with one importer",
        "comments in 100 lines",
    }


def test_first_call_runs_more_than_a_later_one(tmp_path: Path) -> None:
    """What a call costs to follow is counted with its start and without."""
    trace_store = tmp_path / "store"
    subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "trace_calls.py"), "--make", str(trace_store)], check=True, cwd=tmp_path
    )
    found = trace("--one", "search", str(trace_store))
    assert all(found["cold"][unit] > found["warm"][unit] > 5 for unit in ("functions", "modules", "packages"))
