"""The errors of the Open Agent Spec: a code, the stage at which it arose, and the envelope it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

Code = Literal[
    "SPEC_LOAD_ERROR",
    "TASK_NOT_FOUND",
    "RUN_ERROR",
    "OUTPUT_SCHEMA_ERROR",
    "PROVIDER_ERROR",
    "CHAIN_CYCLE_ERROR",
    "CHAIN_INPUT_MISSING",
    "CONTRACT_VIOLATION",
    "DELEGATION_CYCLE_ERROR",
]

CODES: Final[Mapping[Code, str]] = {
    "SPEC_LOAD_ERROR": "the spec, or one it refers to, cannot be read or breaks the schema",
    "TASK_NOT_FOUND": "no task has that name: asked for, depended on, or delegated to",
    "RUN_ERROR": "the task cannot be run here, or running it failed in a way that has no code of its own",
    "OUTPUT_SCHEMA_ERROR": "the model's answer breaks the task's output schema and could not be repaired safely",
    "PROVIDER_ERROR": "the model did not answer, or there is no key for it",
    "CHAIN_CYCLE_ERROR": "tasks depend on each other in a circle",
    "CHAIN_INPUT_MISSING": "an input is missing or breaks the task's input schema",
    "CONTRACT_VIOLATION": "the output breaks the behavioural contract",
    "DELEGATION_CYCLE_ERROR": "specs delegate to each other in a circle",
}
"""Every code, with what it means."""

REQUEST_CODES: Final[frozenset[Code]] = frozenset(
    {
        "SPEC_LOAD_ERROR",
        "TASK_NOT_FOUND",
        "CHAIN_CYCLE_ERROR",
        "CHAIN_INPUT_MISSING",
        "DELEGATION_CYCLE_ERROR",
    }
)
"""The codes that say that the request or the spec is wrong; they arise before any model is called."""


class SpecError(Exception):
    """What ends a run. It never leaves the package: whoever asked gets its envelope."""

    def __init__(self, message: str, code: Code, stage: str, task: str | None = None) -> None:
        super().__init__(message)
        self.code: Code = code
        self.stage = stage
        self.task = task

    def envelope(self) -> dict[str, Any]:
        """Return the error as `{error, code, stage, task?}`."""
        described: dict[str, Any] = {"error": str(self), "code": self.code, "stage": self.stage}
        return described if self.task is None else {**described, "task": self.task}
