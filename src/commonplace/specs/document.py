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
"""Every code, with what it means."""

REQUEST_CODES: Final = frozenset(
    "SPEC_LOAD_ERROR TASK_NOT_FOUND CHAIN_CYCLE_ERROR CHAIN_INPUT_MISSING DELEGATION_CYCLE_ERROR".split()
)
"""The codes that say that the request or the spec is wrong; they arise before any model is called."""


class SpecError(Exception):
    """What ends a run, at any point of it; `CODES` says when.

    It never leaves the package: callers get `{error, code, stage, task?}`.
    """

    def __init__(self, message: str, code: str, stage: str, task: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.stage = stage
        self.task = task


MAX_BYTES: Final = 1024 * 1024
_WHAT: Final = "a spec"


def read_spec(source: Path | bytes, name: str = "") -> Mapping[str, Any]:
    """Return the document in a file, or in some bytes, of YAML or JSON.

    Aliases, deep nesting, keys that occur twice, and values that JSON has no word for are refused.

    Args:
        name: where bytes come from, for messages.
    """
    try:
        if isinstance(source, bytes):
            return plain(parse_document(source, name, MAX_BYTES, _WHAT), name)
        return plain(read_document(source, MAX_BYTES, _WHAT), str(source))
    except (NotFoundError, UsageError) as error:
        raise refused(str(error)) from None


def plain(document: object, name: str) -> Mapping[str, Any]:
    """Return a document that was parsed already, after checking that it is a mapping of plain values."""
    if document is None:
        raise refused(f"{name} is empty; it must be a mapping")
    if not isinstance(document, Mapping):
        raise refused(f"{name} must be a mapping, not {type(document).__name__}")
    for path, problem in not_json(document):
        raise refused(f"{name}, {path or 'the document'}: {problem}")
    return document


def refused(message: str, stage: str = "load", task: str | None = None) -> SpecError:
    """Return the fault of a spec that cannot be loaded."""
    return SpecError(message, "SPEC_LOAD_ERROR", stage, task)


OLDEST: Final = (1, 0, 4)
NEWEST: Final = (1, 6)
"""The versions that are read: from this patch to every patch of that one."""

_VERSION: Final = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class Intelligence:
    """Which model a spec asks for."""

    engine: str
    model: str
    endpoint: str | None = None
    module: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Task:
    """One task.

    Attributes:
        system, user: the prompts that hold for it: its own, else those under its name, else the spec's; None for none.
        contract: its behavioural contract, merged with the spec's.
        delegate: the reference of the spec that implements it, or None; `target` is the task's name there.
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
    """A spec that broke no rule."""

    name: str
    version: str
    intelligence: Intelligence
    tasks: Mapping[str, Task]


def faults_in(document: Mapping[str, Any]) -> list[Fault]:
    """Return everything that is wrong with a document of plain values, with its path; unknown keys are not."""
    faults = faults_of(document, document_schema())
    stated = document.get("open_agent_spec")
    if isinstance(stated, str | int | float) and not isinstance(stated, bool):
        oldest, newest = ".".join(map(str, OLDEST)), ".".join(map(str, NEWEST))
        found = _VERSION.fullmatch(str(stated))
        version = tuple(int(part) for part in found.groups(default="0")) if found else ()
        if found is None:
            message = f"{str(stated)[:40]!r} is no version; write one from {oldest} to {newest}"
            faults.append(Fault("open_agent_spec", message))
        elif version < OLDEST or version[:2] > NEWEST:
            message = f"version {found[0]} is not read; those from {oldest} to {newest} are"
            faults.append(Fault("open_agent_spec", message))
    tasks = document.get("tasks")
    for name, task in tasks.items() if isinstance(tasks, Mapping) else ():
        for part in ("input", "output") if isinstance(task, Mapping) else ():
            if isinstance(task.get(part), Mapping):
                faults += schema_faults(task[part], f"tasks.{name}.{part}")
    # A fault by both schemas is reported once.
    by_path: dict[str, Fault] = {}
    for fault in faults:
        by_path.setdefault(fault.path, fault)
    return list(by_path.values())


def understand(document: Mapping[str, Any], source: str) -> Spec:
    """Return what a document says.

    Args:
        source: where it came from, for messages.
    """
    if faults := faults_in(document):
        more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
        raise refused(f"{source} is not a valid spec: {'; '.join(map(str, faults[:3]))}{more}")
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


def choose(spec: Spec, name: str | None) -> Task:
    """Return the task of that name; without one, the first that can be run."""
    if name is None:
        return next((task for task in spec.tasks.values() if not task.refusal), next(iter(spec.tasks.values())))
    if not isinstance(name, str) or name not in spec.tasks:
        known = ", ".join(spec.tasks)
        raise SpecError(f"there is no task {name!r:.80}; the spec has: {known}", "TASK_NOT_FOUND", "routing", str(name))
    return spec.tasks[name]


def _task(document: Mapping[str, Any], name: str, task: Mapping[str, Any]) -> Task:
    shared = document.get("prompts", {})
    named = shared.get(name)
    prompts: dict[str, str | None] = {}
    for part in ("system", "user"):
        by_name = named.get(part) if isinstance(named, Mapping) else None
        found = task.get("prompts", {}).get(part) or by_name or shared.get(part)
        prompts[part] = found if isinstance(found, str) else None
    # A task that cannot be run here as it promises is refused: ignoring that would be worse than an error.
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
        contract=merged(document.get("behavioural_contract", {}), task.get("behavioural_contract", {})),
        timeout_s=task.get("timeout"),
        delegate=task.get("spec"),
        target=task.get("task", name),
        refusal=refusal,
    )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return two contracts in one: lists are joined without doubles, mappings merged, and else the second wins."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        elif isinstance(old, list) and isinstance(value, list):
            result[key] = old + [item for item in value if item not in old]
        else:
            result[key] = value
    return result
