"""Functions stay as small as the build says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_sizes.py"


def check(root: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Check a tree whose one module holds a text."""
    (root / "src").mkdir()
    (root / "src" / "module.py").write_text(text)
    return subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n" * 4_000, ""),
        ("def long():\n" + "    x = 1\n" * 79, ""),
        ("def long():\n" + "    x = 1\n" * 80, "src/module.py:1 long has 81 lines, the limit is 80; name a part\n"),
        ('def told():\n    """Say.\n\n    More.\n    """\n' + "    x = 1\n" * 79, ""),
        (
            "class A:\n    async def long(self):\n" + "        x = 1\n" * 80,
            "src/module.py:2 long has 81 lines, the limit is 80; name a part\n",
        ),
    ],
)
def test_what_is_too_long_is_named_with_its_limit(tmp_path: Path, text: str, told: str) -> None:
    """One engine class of thousands of lines begins with one line too many."""
    done = check(tmp_path, text)
    assert (done.stderr, done.returncode) == (told, 1 if told else 0)
