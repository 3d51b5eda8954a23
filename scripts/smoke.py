"""Build the wheel, install it with nothing but its dependencies in a bare environment, and run a five-line example.

Also holds the wheel to its size. Prints the seconds of each step; exits with 1 when anything is not as it must be.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
MAX_WHEEL_BYTES = 40_000_000

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")

EXAMPLE = """
import commonplace
with commonplace.open("store") as book:
    book.index("project")
    hits = book.search("how are passwords hashed").hits
    assert hits[0].path.endswith("security.md"), hits
"""


def main() -> int:
    """Run all steps."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        wheel = timed("build", lambda: build(directory))
        size = wheel.stat().st_size
        print(f"wheel: {size:,} bytes, the limit is {MAX_WHEEL_BYTES:,}")
        if size > MAX_WHEEL_BYTES:
            return 1
        python = timed("install", lambda: install(wheel, directory / "environment"))
        timed("example", lambda: run_example(python, directory))
    return 0


def build(directory: Path) -> Path:
    """Build the wheel from the working tree."""
    run(*PIP, "wheel", "--quiet", "--no-deps", "--wheel-dir", str(directory / "dist"), str(ROOT))
    (wheel,) = (directory / "dist").glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """Return the Python of a fresh environment that holds the wheel and its dependencies, and no installer."""
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    run(*PIP, "--python", str(python), "install", "--quiet", "--retries", "10", str(wheel))
    return python


def run_example(python: Path, directory: Path) -> None:
    """Index two files and find one of them, from the library and from the command line."""
    project = directory / "project"
    project.mkdir()
    (project / "security.md").write_text("# Security\n\nPasswords are hashed with scrypt and a salt for each user.\n")
    (project / "cooking.md").write_text("# Cooking\n\nRice is boiled for twelve minutes in salted water.\n")
    run(str(python), "-c", EXAMPLE, cwd=directory)
    run(str(python.parent / "commonplace"), "--store", "store", "search", "password hashing", "--json", cwd=directory)


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a command quietly; show what it said when it fails."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("COMMONPLACE_", "PYTHON"))}
    process = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        print(process.stdout + process.stderr, file=sys.stderr)
        raise SystemExit(1)


def timed(name: str, step: Callable[[], T]) -> T:
    """Run a step and print how long it took."""
    begun = time.perf_counter()
    result = step()
    print(f"{name}: {time.perf_counter() - begun:.1f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
