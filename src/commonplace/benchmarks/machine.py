"""Say what a benchmark ran on and what it took of it: versions, memory, disk. Knows no engine."""

from __future__ import annotations

import os
import platform
import resource
import sys
from pathlib import Path
from typing import Any

import commonplace


def describe() -> dict[str, Any]:
    """Return versions and processor count, so that figures are never quoted without them."""
    return {
        "commonplace": commonplace.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count() or 0,
    }


def peak_memory_bytes() -> int:
    """Return the most memory that this process ever had resident, or any child it waited for, whichever is more."""
    # Linux counts in kibibytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def resident_memory_bytes() -> int:
    """Return what this process has resident now; where the system does not tell (no /proc), the most it ever had."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()


def size_bytes(*paths: Path) -> int:
    """Return the sizes of files and of all files in directories, added; what is missing counts nothing."""
    total = 0
    for path in paths:
        if path.is_file():
            total += path.stat().st_size
        elif path.is_dir():
            total += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return total
