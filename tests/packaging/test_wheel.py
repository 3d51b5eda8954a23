"""The wheel, as somebody installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_bare_wheel_installs_and_answers_within_its_size() -> None:
    """What works only in a checkout works for nobody.

    The one test that uses the network, and only the package index: a wheel is installed with the dependencies that
    it names, or nobody knows that it names them all.
    """
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "smoke.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
