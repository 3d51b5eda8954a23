"""What goes into a task: copied, filled up with defaults, held to the task's schema before any model is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.formats.guarded_yaml import fault_of
from commonplace.models.contract import Message
from commonplace.specs import retrieving
from commonplace.specs.checking import Fault, faults_of, joined
from commonplace.specs.document import Task
from commonplace.specs.faults import SpecError
from commonplace.specs.patterns import foreign_faults_of
from commonplace.specs.planning import Step

HISTORY = "history"
"""The input that is not put into the prompt's text but becomes turns of the conversation."""

_TURNS: Mapping[str, Any] = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {"role": {"enum": ["user", "assistant"]}, "content": {"type": "string"}},
    },
}


def copied(values: object, task: str) -> dict[str, Any]:
    """Return a deep copy of an input, which nothing that happens here can change.

    Raises:
        SpecError: CHAIN_INPUT_MISSING: it is no mapping, or holds what JSON cannot.
    """
    if not isinstance(values, Mapping):
        raise _unfit(f"the input must be an object, not {type(values).__name__}", task)
    try:
        text = json.dumps(dict(values), ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        raise _unfit("the input holds half a character, which no encoding has", task) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _unfit(f"the input is no JSON: {fault_of(error)}", task) from None
    copy: dict[str, Any] = json.loads(text)
    return copy


def with_defaults(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values with the default of every input that is missing and has one."""
    defaults = {
        name: field["default"]
        for name, field in task.input.get("properties", {}).items()
        if isinstance(field, Mapping) and "default" in field
    }
    if retrieving.is_retriever(task):
        defaults.setdefault("top_k", retrieving.DEFAULT_TOP_K)
    return {**values, **{name: value for name, value in defaults.items() if name not in values}}


def check_input(step: Step, values: Mapping[str, Any]) -> None:
    """Hold an input to its task's schema.

    Raises:
        SpecError: CHAIN_INPUT_MISSING.
    """
    faults = foreign_faults_of(values, step.task.input)
    if HISTORY in values:
        found = faults_of(values[HISTORY], _TURNS)
        faults += [Fault(joined(HISTORY, fault.path), fault.message) for fault in found]
    if not faults and retrieving.is_retriever(step.task):
        faults = retrieving.input_faults(values)
    if faults:
        raise _unfit(f"{_wrong(faults)}{_hint(step.task, faults)}", step.name)


def check_early(step: Step, given: Mapping[str, Any]) -> None:
    """Find what no dependency can mend, before the first of them costs anything.

    Raises:
        SpecError: CHAIN_INPUT_MISSING.
    """
    if not step.before:
        return
    outputs = [{} if before.task.is_text else before.task.output.get("properties", {}) for before in step.before]
    made = {name for properties in outputs for name in properties}
    values = {name: value for name, value in with_defaults(step.task, dict(given)).items() if name not in made}
    # A dependency that does not say what it gives may give anything.
    required = [name for name in step.task.input.get("required", ()) if name not in made] if all(outputs) else []
    faults = foreign_faults_of(values, {**step.task.input, "required": required})
    if faults:
        raise _unfit(_wrong(faults), step.name)


def turns_of(values: Mapping[str, Any]) -> Sequence[Message]:
    """Return the history that an input brings along, as it came."""
    return [Message(turn["role"], turn["content"]) for turn in values.get(HISTORY) or ()]


def _wrong(faults: Sequence[Fault]) -> str:
    return f"the input is wrong: {'; '.join(map(str, faults[:3]))}"


def _hint(task: Task, faults: Sequence[Fault]) -> str:
    if task.depends_on and any(fault.message == "is missing" for fault in faults):
        names = ", ".join(task.depends_on)
        return f"; {task.name!r} depends on {names}: name what it needs in `depends_on` of the called task too"
    return ""


def _unfit(message: str, task: str) -> SpecError:
    return SpecError(message, "CHAIN_INPUT_MISSING", "input_validation", task)
