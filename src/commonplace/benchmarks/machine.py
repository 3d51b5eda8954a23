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
    """Return the most memory that this process ever had resident."""
    return _from_proc("VmHWM") or _highest()


def resident_memory_bytes() -> int:
    """Return what this process has resident now; where the system does not tell (no /proc), the most it ever had."""
    return _from_proc("VmRSS") or _highest()


def memory_of(pid: int) -> dict[str, int]:
    """Return what another process has in memory; {} where the system does not tell (no /proc).

    Returns:
        `resident_bytes` (RSS), `proportional_bytes` (PSS, where what several processes share is divided among them),
        `anonymous_bytes` (what is its own and in no file) and `peak_bytes`, the most that it ever had resident.
    """
    status, rollup = (_sizes(Path(f"/proc/{pid}/{name}")) for name in ("status", "smaps_rollup"))
    told = {
        "resident_bytes": status.get("VmRSS"),
        "proportional_bytes": rollup.get("Pss"),
        "anonymous_bytes": rollup.get("Anonymous"),
        "peak_bytes": status.get("VmHWM"),
    }
    return {name: size for name, size in told.items() if size is not None}


def _from_proc(name: str) -> int:
    """Return a line of /proc/self/status, 0 where there is none."""
    return _sizes(Path("/proc/self/status")).get(name, 0)


def _sizes(path: Path) -> dict[str, int]:
    """Return the lines of a file that tell a size, in bytes; {} where there is no such file."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return {}
    # Written as "VmRSS:     1234 kB".
    fields = (line.partition(":") for line in lines if line.endswith(" kB"))
    return {name: int(size.split()[0]) * 1024 for name, _, size in fields}


def _highest() -> int:
    # Linux counts in kibibytes, macOS in bytes. On Linux a started process inherits its parent's figure, which is why
    # /proc is asked first.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def size_bytes(*paths: Path) -> int:
    """Return the sizes of files and of all files in directories, added; what is missing counts nothing."""
    total = 0
    for path in paths:
        if path.is_file():
            total += path.stat().st_size
        elif path.is_dir():
            total += sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return total
