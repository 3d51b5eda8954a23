"""Read what a model answered: strip the fence, parse, hold it to the task's schema and contract. It calls no model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from commonplace.specs.checking import faults_of
from commonplace.specs.document import Task
from commonplace.specs.faults import SpecError

_WHOLE: Final = re.compile(r"\s*```[^\n`]*\n(.*?)\n?\s*```\s*", re.DOTALL)
_INSIDE: Final = re.compile(r"^```[^\n`]*\n(.*?)^\s*```\s*$", re.DOTALL | re.MULTILINE)


class _Unparsed:
    """Stands for a reply that is no JSON."""


UNPARSED: Final = _Unparsed()


def parse_reply(text: str) -> object:
    """Return the JSON value of a reply, or UNPARSED.

    The value may stand alone, in a Markdown fence, or in the only fence amid prose.
    """
    whole = _WHOLE.fullmatch(text)
    value = _json(whole[1] if whole else text)
    if value is UNPARSED and not whole:
        blocks = _INSIDE.findall(text)
        return _json(blocks[0]) if len(blocks) == 1 else UNPARSED
    return value


def output_of(task: Task, text: str) -> object:
    """Return a task's output: the text itself where that is its format, else the parsed reply.

    A reply that is no JSON is the output of a task that promises no schema, so that it is not lost.

    Raises:
        SpecError: OUTPUT_SCHEMA_ERROR: the task promises a schema, and the reply is no JSON.
    """
    if task.is_text:
        return text
    value = parse_reply(text)
    if value is not UNPARSED:
        return value
    if task.output:
        what = "is empty" if not text.strip() else f"is no JSON: it begins {text.strip()[:60]!r}"
        raise _broken(task, f"the answer {what}")
    return text


def check_output(task: Task, output: object) -> None:
    """Hold an output to the task's schema and contract; text is held to neither.

    Raises:
        SpecError: OUTPUT_SCHEMA_ERROR or CONTRACT_VIOLATION.
    """
    if task.is_text:
        return
    faults = faults_of(output, {"type": "object", **task.output}) if task.output else []
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


def _json(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return UNPARSED


def _refuse(name: str) -> object:
    raise ValueError(name)
