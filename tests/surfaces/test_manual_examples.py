"""The Python examples of the manual, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.surfaces.conftest import Program

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = [
    pytest.param(code, id=f"{page}-{number}")
    for page in ("README.md", "docs/getting-started.md")
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL), 1)
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_example_runs(program: Program, code: str) -> None:
    """Somebody copies it as the first thing they do."""
    exec(compile(code, "example", "exec"), {})
    assert program.json("index", "status")["counts"]["owners"] >= 4
