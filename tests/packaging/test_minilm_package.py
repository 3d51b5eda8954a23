"""The second distribution, whose model no checkout holds: what can be said of it without building it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from commonplace.models import minilm

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "packages" / "commonplace-minilm"


def test_the_extra_takes_the_distribution_of_this_tree() -> None:
    """A release of one that the other does not accept cannot be installed."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    version = re.search(r'__version__ = "(\d+)\.(\d+)\.', (PACKAGE / "src/commonplace_minilm/__init__.py").read_text())
    assert version is not None
    major, minor = map(int, version.groups())
    assert f"commonplace-minilm>={major}.{minor},<{major}.{minor + 1}" in extras["minilm"]


def test_what_git_ignores_is_what_the_wheel_takes_in() -> None:
    """The build leaves out what git ignores, unless it is named."""
    build = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert build["artifacts"] == ["src/commonplace_minilm/model.*"]
    assert "packages/*/src/*/model.*" in (ROOT / ".gitignore").read_text().splitlines()
    assert {Path(name).stem for name in (minilm.MODEL, minilm.MANIFEST)} == {"model"}


def test_the_licence_is_the_same() -> None:
    """It stands there twice, because a wheel holds only what lies below its own directory."""
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
