"""Put Django's sources into a directory for the demo: `fetch_django.py VERSION TARGET`.

The directory appears whole or not at all. Where the package index cannot be reached, that is told and the demo goes on
without Django.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ATTEMPTS = 3


def main(version: str, target: Path) -> int:
    """Download, unpack, move into place; 0 also when nothing could be downloaded."""
    if target.is_dir():
        return 0
    print(f"Fetching the sources of Django {version} …", file=sys.stderr)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        archive = download(version, Path(directory))
        if archive is None:
            print("Django could not be downloaded; the demo goes on without it.", file=sys.stderr)
            return 0
        unpacked = Path(directory) / "unpacked"
        with tarfile.open(archive) as tar:
            tar.extractall(unpacked, filter="data")
        (tree,) = unpacked.iterdir()
        tree.replace(target)
    return 0


def download(version: str, directory: Path) -> Path | None:
    """Return the source archive, None where it cannot be had."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", "django", "--dest", str(directory), f"django=={version}"]
    for _ in range(ATTEMPTS):
        process = subprocess.run(command, check=False, capture_output=True, text=True)
        archives = sorted(directory.glob("*.tar.gz"))
        if archives:
            return archives[0]
    print(process.stderr.strip(), file=sys.stderr)
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
