"""Parse a spec: version, model, prompts, tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import NotFoundError, UsageError
from commonplace.formats.yaml import not_json, parse_document, read_document
from commonplace.specs.check import Fault, document_schema, faults_of, schema_faults

CODES: Final[Mapping[str, str]] = {
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
"""Error code → meaning."""

REQUEST_CODES: Final = frozenset(
    "SPEC_LOAD_ERROR TASK_NOT_FOUND CHAIN_CYCLE_ERROR CHAIN_INPUT_MISSING DELEGATION_CYCLE_ERROR".split()
)
"""The codes of a wrong request or spec; they arise before any model is called."""


class SpecError(Exception):
    """A fault that ends a run, with one of `CODES`.

    It never leaves the package: callers get `{error, code, stage, task?}`.
    """

    def __init__(self, message: str, code: str, stage: str, task: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.stage = stage
        self.task = task


MAX_BYTES: Final = 1024 * 1024
_KIND: Final = "a spec"


def read_spec(source: Path | bytes, name: str = "") -> Mapping[str, Any]:
    """Return the document in a file or in bytes of YAML or JSON.

    Aliases, deep nesting, duplicate keys, and values that JSON cannot express are refused.

    Args:
        name: names the source of bytes in messages.
    """
    try:
        if isinstance(source, bytes):
            return check_plain(parse_document(source, name, MAX_BYTES, _KIND), name)
        return check_plain(read_document(source, MAX_BYTES, _KIND), str(source))
    except (NotFoundError, UsageError) as error:
        raise load_error(str(error)) from None


def check_plain(document: object, name: str) -> Mapping[str, Any]:
    """Return a parsed document after checking that it is a mapping of JSON values."""
    if document is None:
        raise load_error(f"{name} is empty; it must be a mapping")
    if not isinstance(document, Mapping):
        raise load_error(f"{name} must be a mapping, not {type(document).__name__}")
    for path, problem in not_json(document):
        raise load_error(f"{name}, {path or 'the document'}: {problem}")
    return document


def load_error(message: str, stage: str = "load", task: str | None = None) -> SpecError:
    """Return the error for a spec that cannot be loaded."""
    return SpecError(message, "SPEC_LOAD_ERROR", stage, task)


OLDEST: Final = (1, 0, 4)
NEWEST: Final = (1, 6)
"""Supported versions: from the patch `OLDEST` to every patch of `NEWEST`."""

_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Intelligence:
    """The model that a spec requests."""

    engine: str
    model: str
    endpoint: str | None = None
    module: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a spec.

    Attributes:
        system, user: its prompts: its own, else those under its name, else the spec's; None for none.
        contract: its behavioural contract, merged with the spec's.
        delegate: reference to the spec that implements it, or None; `target` is the task's name there.
        refusal: why it cannot be run here, or "".
    """

    name: str
    input: Mapping[str, Any]
    output: Mapping[str, Any]
    system: str | None
    user: str | None
    is_text: bool
    depends_on: tuple[str, ...]
    contract: Mapping[str, Any]
    timeout_s: int | None
    delegate: str | None
    target: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Spec:
    """A valid spec."""

    name: str
    version: str
    intelligence: Intelligence
    tasks: Mapping[str, Task]


def faults_in(document: Mapping[str, Any]) -> list[Fault]:
    """Return all faults of a document of JSON values; unknown keys are allowed."""
    faults = faults_of(document, document_schema())
    version_value = document.get("open_agent_spec")
    if isinstance(version_value, str | int | float) and not isinstance(version_value, bool):
        oldest, newest = ".".join(map(str, OLDEST)), ".".join(map(str, NEWEST))
        match = _VERSION.fullmatch(str(version_value))
        version = tuple(int(part) for part in match.groups(default="0")) if match else ()
        if match is None:
            message = f"{str(version_value)[:40]!r} is no version; write one from {oldest} to {newest}"
            faults.append(Fault("open_agent_spec", message))
        elif version < OLDEST or version[:2] > NEWEST:
            message = f"version {match[0]} is not read; those from {oldest} to {newest} are"
            faults.append(Fault("open_agent_spec", message))
    tasks = document.get("tasks")
    for name, task in tasks.items() if isinstance(tasks, Mapping) else ():
        for part in ("input", "output") if isinstance(task, Mapping) else ():
            if isinstance(task.get(part), Mapping):
                faults += schema_faults(task[part], f"tasks.{name}.{part}")
    # Report only the first fault of each path: both schemas may find it.
    by_path: dict[str, Fault] = {}
    for fault in faults:
        by_path.setdefault(fault.path, fault)
    return list(by_path.values())


def parse_spec(document: Mapping[str, Any], source: str) -> Spec:
    """Validate a document and return its spec.

    Args:
        source: names the document in messages.
    """
    if faults := faults_in(document):
        more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
        raise load_error(f"{source} is not a valid spec: {'; '.join(map(str, faults[:3]))}{more}")
    model = document["intelligence"]
    return Spec(
        name=document["agent"]["name"],
        version=str(document["open_agent_spec"]),
        intelligence=Intelligence(
            engine=model["engine"],
            model=model["model"],
            endpoint=model.get("endpoint"),
            module=model.get("module"),
            config=model.get("config", {}),
        ),
        tasks={name: _task(document, name, task) for name, task in document["tasks"].items()},
    )


def choose_task(spec: Spec, name: str | None) -> Task:
    """Return the task of that name, or for None the first that can be run, else the first."""
    if name is None:
        return next((task for task in spec.tasks.values() if not task.refusal), next(iter(spec.tasks.values())))
    if not isinstance(name, str) or name not in spec.tasks:
        names = ", ".join(spec.tasks)
        raise SpecError(f"there is no task {name!r:.80}; the spec has: {names}", "TASK_NOT_FOUND", "routing", str(name))
    return spec.tasks[name]


def _task(document: Mapping[str, Any], name: str, task: Mapping[str, Any]) -> Task:
    shared = document.get("prompts", {})
    task_prompts = shared.get(name)
    prompts: dict[str, str | None] = {}
    for part in ("system", "user"):
        by_name = task_prompts.get(part) if isinstance(task_prompts, Mapping) else None
        prompt = task.get("prompts", {}).get(part) or by_name or shared.get(part)
        prompts[part] = prompt if isinstance(prompt, str) else None
    # A task that cannot be run here as specified is refused: to ignore part of it would be worse than an error.
    refusal = ""
    if task.get("sandbox") or document.get("sandbox"):
        refusal = "it declares a `sandbox`, which is not enforced here; remove it, as no tools are run either"
    elif task.get("tools"):
        refusal = "it declares `tools`, and none are run here"
    elif task.get("multi_step"):
        refusal = "it is a `multi_step` task, which runs nowhere since 1.4; name its steps in `depends_on`"
    return Task(
        name=name,
        input=task.get("input", {}),
        output=task.get("output", {}),
        system=prompts["system"],
        user=prompts["user"],
        is_text=task.get("response_format") == "text",
        depends_on=tuple(task.get("depends_on", ())),
        contract=merge_contracts(document.get("behavioural_contract", {}), task.get("behavioural_contract", {})),
        timeout_s=task.get("timeout"),
        delegate=task.get("spec"),
        target=task.get("task", name),
        refusal=refusal,
    )


def merge_contracts(base: Mapping[str, Any], override: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge two contracts: join lists without duplicates, merge mappings, else take the second value."""
    result = dict(base)
    for key, value in override.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merge_contracts(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            result[key] = old + [item for item in value if item not in old]
        else:
            result[key] = value
    return result
