"""Start fresh processes over a store and measure what a user of one would feel: start, first answer, memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commonplace.benchmarks.measures import median
from commonplace.errors import CommonplaceError

STARTS = 5
TIMEOUT_S = 600


def measure(store: Path, namespace: str, embedder: str | None, questions: Sequence[str]) -> dict[str, Any]:
    """Return `first_answer_ms` (median of five starts), `bare_python_ms`, and memory after all questions.

    Raises:
        CommonplaceError: a process failed; its message is in the error.
    """
    with TemporaryDirectory(prefix="commonplace-benchmark-") as name:
        one, many = Path(name) / "one.json", Path(name) / "many.json"
        one.write_text(json.dumps(questions[:1]), encoding="utf-8")
        many.write_text(json.dumps(list(questions)), encoding="utf-8")
        command = [sys.executable, "-m", "commonplace.benchmarks.probe", str(store), namespace, embedder or ""]
        starts = [_first_line([*command, str(one)])[0] for _ in range(STARTS)]
        memory: dict[str, Any] = json.loads(_first_line([*command, str(many)])[1])
    bare = [_first_line([sys.executable, "-c", "print()"])[0] for _ in range(STARTS)]
    return {
        "first_answer_ms": round(median(starts), 1),
        "bare_python_ms": round(median(bare), 1),
        "searches": len(questions),
        **memory,
    }


def _first_line(command: Sequence[str]) -> tuple[float, str]:
    """Return the milliseconds until a process wrote its first line, and all that it wrote after that."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ms = (time.perf_counter() - start) * 1000
        rest, complaint = process.communicate(timeout=TIMEOUT_S)
    if process.returncode != 0:
        last = complaint.strip().splitlines()[-1:] or ["it said nothing"]
        raise CommonplaceError(f"a measured process ended with {process.returncode}: {last[0]}")
    return ms, rest
