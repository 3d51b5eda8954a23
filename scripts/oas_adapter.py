"""Let the Open Agent Spec project's conformance harness drive our runner: one case as JSON in, one envelope out.

    cd open-agent-spec          # its repository or its source distribution
    python -m spec.conformance.harness.harness --adapter "python …/scripts/oas_adapter.py"

The protocol is that project's `spec/conformance/PROTOCOL.md`, version 1.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import commonplace

CAPABILITIES = [
    "core",
    "depends-on",
    "delegation",
    "response-format-text",
    "output-schema-validation",
    "history",
    "contracts",
]


def main() -> None:
    """Answer one request of the harness."""
    if "--capabilities" in sys.argv:
        answer: dict[str, Any] = {
            "runtime": "commonplace",
            "version": commonplace.__version__,
            "capabilities": CAPABILITIES,
        }
    else:
        with tempfile.TemporaryDirectory() as scratch:
            outcome = ran(json.load(sys.stdin), Path(scratch))
        answer = {"status": "error", "error": outcome} if "code" in outcome else {"status": "ok", "result": outcome}
    print(json.dumps({"protocol": 1, **answer}))


def ran(case: Mapping[str, Any], scratch: Path) -> dict[str, Any]:
    """Run a case from its directory, or else from one of ours."""
    file = Path(case.get("files_dir") or scratch) / "main.yaml"
    file.write_text(case["spec"], encoding="utf-8")
    invoke = case["invoke"]
    return commonplace.run_spec(
        file,
        invoke.get("task"),
        invoke.get("input") or {},
        generator=replies(case.get("mock_responses") or {}),
        system=invoke.get("override_system"),
        user=invoke.get("override_user"),
    )


def replies(by_task: Mapping[str, str]) -> Callable[[str, str], str]:
    """Return a model that gives each reply once: to a prompt that names its task, else in their order."""
    left = dict(by_task)

    def answer(system: str, user: str) -> str:
        match = next((name for name in left if name in user or name in system), None)
        return left.pop(match or next(iter(left), ""), "{}")

    return answer


if __name__ == "__main__":
    main()
