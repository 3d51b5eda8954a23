"""Read and write issues in the JSON Lines format of beads.

Our fields that beads lacks are written under `commonplace`; fields of beads that we lack are kept in `Issue.rest` and
written back. A value that breaks the format of beads raises a UsageError that names the line and the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from commonplace.dates.time import iso, parse
from commonplace.errors import UsageError
from commonplace.formats.json_values import read_json
from commonplace.text.characters import storable
from commonplace.types.ledger import AGENTS, Issue

AGENT_LABEL: Final = "consolidation:"
OWN_FIELD: Final = "commonplace"

_TEXTS: Final = ("title", "description", "notes", "status", "issue_type", "close_reason")
_DEFAULTS: Final = {"status": "open", "issue_type": "task"}
_LISTS: Final = ("labels", "dependencies", "comments")
_TIMES: Final = ("created_at", "updated_at", "closed_at")
_EXTENSION_TIMES: Final = ("retry_at", "claimed_at", "escalated_at")
_PLAIN: Final = ("id", "title", "description", "notes", "status", "priority", "issue_type")
_FIELDS: Final = frozenset(("id", "priority", *_TEXTS, *_LISTS, *_TIMES))
_PRIORITIES: Final = range(5)
_DECODER: Final = json.JSONDecoder()


def to_line(issue: Issue) -> str:
    """Return an issue as one line without a line end."""
    fields: dict[str, Any] = {
        **{name: getattr(issue, name) for name in _PLAIN},
        "labels": list(issue.labels),
        "dependencies": json.loads(issue.dependencies),
        "comments": json.loads(issue.comments),
        "created_at": iso(issue.created_at),
        "updated_at": iso(issue.updated_at),
    }
    if issue.closed_at is not None:
        fields["closed_at"] = iso(issue.closed_at)
    if issue.close_reason:
        fields["close_reason"] = issue.close_reason
    fields.update({name: value for name, value in json.loads(issue.rest).items() if name not in fields})
    extension = {name: getattr(issue, name) for name in ("retries", "claimed_by") if getattr(issue, name)}
    extension |= {name: iso(timestamp) for name in _EXTENSION_TIMES if (timestamp := getattr(issue, name)) is not None}
    if extension:
        fields[OWN_FIELD] = extension
    line = json.dumps(fields, ensure_ascii=False)
    return line if storable(line) == line else json.dumps(fields)


def read(lines: Iterable[str], clean: Callable[[Any], Any] = lambda value: value) -> list[Issue]:
    """Return the issues of lines, skipping empty lines; one faulty line fails the whole call.

    Args:
        clean: applied to the JSON value of each line before it is read.
    """
    issues: dict[str, Issue] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            location = f"line {number}"
            try:
                data = read_json(line)
            except (ValueError, RecursionError) as error:
                raise _fault(location, f"it is not JSON: {error}") from error
            issue = from_object(clean(data), location)
            if issue.id in issues:
                raise _fault(location, f"issue {issue.id!r:.80} was on an earlier line")
            issues[issue.id] = issue
    return list(issues.values())


def from_object(data: Any, location: str = "the issue") -> Issue:
    """Return the issue in a JSON object.

    Args:
        location: names the object in messages.
    """
    if not isinstance(data, dict):
        raise _fault(location, "it is not an object")
    texts: dict[str, Any] = {name: _field(data, name, "", "text", location) for name in ("id", *_TEXTS)}
    lists = {name: _field(data, name, [], "a list", location) for name in _LISTS}
    for name in ("id", "created_at"):
        if not data.get(name):
            raise _fault(location, f"{name} is missing")
    if not all(isinstance(label, str) for label in lists["labels"]):
        raise _fault(location, "labels holds what is not text")
    priority = _field(data, "priority", 2, "one of 0 to 4", location)
    if priority not in _PRIORITIES:
        raise _fault(location, f"priority is {priority!r:.80}, not one of 0 to 4")
    labels = tuple(sorted(set(lists["labels"])))
    times: dict[str, Any] = {name: _time(data, name, location) for name in _TIMES}
    unknown = {name: value for name, value in data.items() if name not in _FIELDS}
    extension = _field(unknown, OWN_FIELD, {}, "an object", location)
    unknown.pop(OWN_FIELD, None)
    extension_location = f"{location}, {OWN_FIELD}"
    retries = _field(extension, "retries", 0, "a number", extension_location)
    if not 0 <= retries < 2**31:
        raise _fault(extension_location, f"retries is {retries!r:.80}")
    extension_times: dict[str, Any] = {name: _time(extension, name, extension_location) for name in _EXTENSION_TIMES}
    agents = [agent for agent in AGENTS if f"{AGENT_LABEL}{agent}" in labels]
    memory_ids = split_notes(texts["notes"])[0].get("memory_ids")
    if not isinstance(memory_ids, list) or not all(isinstance(id_, str) and id_ for id_ in memory_ids):
        memory_ids = ()
    return Issue(
        **{**texts, **{name: texts[name] or value for name, value in _DEFAULTS.items()}},
        agent=agents[0] if len(agents) == 1 else "",
        memory_ids=tuple(sorted(set(memory_ids))),
        priority=priority,
        labels=labels,
        dependencies=_json(lists["dependencies"]),
        comments=_json(lists["comments"]),
        rest=_json(unknown),
        created_at=times["created_at"] or 0.0,
        updated_at=(times["created_at"] or 0.0) if times["updated_at"] is None else times["updated_at"],
        closed_at=times["closed_at"],
        retries=retries,
        claimed_by=_field(extension, "claimed_by", "", "text", extension_location),
        **extension_times,
    )


def split_notes(notes: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object at the start of notes, {} if there is none, and the text after it."""
    start = len(notes) - len(notes.lstrip())
    try:
        value, end = _DECODER.raw_decode(notes, start)
    except (ValueError, RecursionError):
        return {}, notes
    return (value, notes[end:]) if isinstance(value, dict) else ({}, notes)


def _field(data: Mapping[str, Any], name: str, default: Any, expected: str, location: str) -> Any:
    """Return a field's value, or the default if it is absent or null; refuse one of another type than the default."""
    value = data.get(name)
    if value is not None and type(value) is not type(default):
        raise _fault(location, f"{name} is not {expected}")
    return default if value is None else value


def _time(data: Mapping[str, Any], name: str, location: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    try:
        return parse(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _fault(location, f"{name} is {value!r:.80}, no time as 2026-01-31T12:00:00Z") from error


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=isinstance(value, dict))


def _fault(location: str, problem: str) -> UsageError:
    return UsageError(f"{location}: {problem}", remedy="correct it; nothing was imported")
