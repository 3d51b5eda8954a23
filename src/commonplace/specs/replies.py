"""Read what a model answered: strip the fence, parse, hold it to the task's schema and contract. It calls no model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from commonplace.errors import ProviderError
from commonplace.models.answers import finite, json_of, refuse_constant
from commonplace.specs.document import Task
from commonplace.specs.faults import SpecError
from commonplace.specs.patterns import foreign_faults_of

_FENCED: Final = re.compile(r"```[^\n`]*\n(.*)```", re.DOTALL)


def output_of(task: Task, text: str) -> object:
    """Return a task's output: the text itself where that is its format, else the JSON value that it is or holds.

    Where no schema is promised, nothing can tell a value from an aside: the value must be all there is, bare or in a
    fence, and any other reply is the output as it stands.

    Raises:
        SpecError: OUTPUT_SCHEMA_ERROR: a schema is promised, and the reply holds no JSON.
    """
    if task.is_text:
        return text
    if task.output:
        try:
            return json_of(text)
        except ProviderError:
            what = f"holds no JSON; it begins {text.strip()[:60]!r}" if text.strip() else "is empty"
            raise _broken(task, f"the answer {what}") from None
    fenced = _FENCED.fullmatch(text.strip())
    try:
        return json.loads(fenced[1] if fenced else text, parse_constant=refuse_constant, parse_float=finite)
    except (ValueError, RecursionError):
        return text


def check_output(task: Task, output: object) -> None:
    """Hold an output to the task's schema and contract; text is held to neither.

    Raises:
        SpecError: OUTPUT_SCHEMA_ERROR or CONTRACT_VIOLATION.
    """
    if task.is_text:
        return
    faults = foreign_faults_of(output, {"type": "object", **task.output}) if task.output else []
    if faults:
        raise _broken(task, f"the answer breaks the output schema: {faults[0]}")
    if not isinstance(output, Mapping):
        return
    rules: Any = task.contract.get("response_contract", {}).get("output_format", {})
    missing = [name for name in rules.get("required_fields", ()) if name not in output]
    if missing:
        message = f"the output lacks {', '.join(map(repr, missing))}, which the behavioural contract requires"
        raise SpecError(message, "CONTRACT_VIOLATION", "contract", task.name)


def _broken(task: Task, message: str) -> SpecError:
    return SpecError(message, "OUTPUT_SCHEMA_ERROR", "output_validation", task.name)
