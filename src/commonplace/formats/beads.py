"""Read and write issues in the JSON Lines format of beads.

Fields that beads lacks are stored in our own field `commonplace`; fields of beads that we lack are kept in `rest` and
written back. What is not as beads has it is refused by a UsageError that names line and field.
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
_OF_NONE: Final = {"status": "open", "issue_type": "task"}
_LISTS: Final = ("labels", "dependencies", "comments")
_TIMES: Final = ("created_at", "updated_at", "closed_at")
_OWN_TIMES: Final = ("retry_at", "claimed_at", "escalated_at")
_PLAIN: Final = ("id", "title", "description", "notes", "status", "priority", "issue_type")
_KNOWN: Final = frozenset(("id", "priority", *_TEXTS, *_LISTS, *_TIMES))
_PRIORITIES: Final = range(5)
_DECODER: Final = json.JSONDecoder()


def to_line(issue: Issue) -> str:
    """Return an issue as one line without its end."""
    told: dict[str, Any] = {
        **{name: getattr(issue, name) for name in _PLAIN},
        "labels": list(issue.labels),
        "dependencies": json.loads(issue.dependencies),
        "comments": json.loads(issue.comments),
        "created_at": iso(issue.created_at),
        "updated_at": iso(issue.updated_at),
    }
    if issue.closed_at is not None:
        told["closed_at"] = iso(issue.closed_at)
    if issue.close_reason:
        told["close_reason"] = issue.close_reason
    told.update({name: value for name, value in json.loads(issue.rest).items() if name not in told})
    own = {name: getattr(issue, name) for name in ("retries", "claimed_by") if getattr(issue, name)}
    own |= {name: iso(at) for name in _OWN_TIMES if (at := getattr(issue, name)) is not None}
    if own:
        told[OWN_FIELD] = own
    line = json.dumps(told, ensure_ascii=False)
    return line if storable(line) == line else json.dumps(told)


def read(lines: Iterable[str], clean: Callable[[Any], Any] = lambda value: value) -> list[Issue]:
    """Return the issues of lines, all or none; empty lines are passed over.

    Args:
        clean: what is to be done with the object of a line before it is read.
    """
    found: dict[str, Issue] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"line {number}"
            try:
                data = read_json(line)
            except (ValueError, RecursionError) as error:
                raise _wrong(where, f"it is not JSON: {error}") from error
            issue = from_object(clean(data), where)
            if issue.id in found:
                raise _wrong(where, f"issue {issue.id!r:.80} was on an earlier line")
            found[issue.id] = issue
    return list(found.values())


def from_object(data: Any, where: str = "the issue") -> Issue:
    """Return the issue of an object.

    Args:
        where: names it in messages.
    """
    if not isinstance(data, dict):
        raise _wrong(where, "it is not an object")
    texts: dict[str, Any] = {name: _given(data, name, "", "text", where) for name in ("id", *_TEXTS)}
    lists = {name: _given(data, name, [], "a list", where) for name in _LISTS}
    for name in ("id", "created_at"):
        if not data.get(name):
            raise _wrong(where, f"{name} is missing")
    if not all(isinstance(label, str) for label in lists["labels"]):
        raise _wrong(where, "labels holds what is not text")
    priority = _given(data, "priority", 2, "one of 0 to 4", where)
    if priority not in _PRIORITIES:
        raise _wrong(where, f"priority is {priority!r:.80}, not one of 0 to 4")
    labels = tuple(sorted(set(lists["labels"])))
    times: dict[str, Any] = {name: _time(data, name, where) for name in _TIMES}
    rest = {name: value for name, value in data.items() if name not in _KNOWN}
    own = _given(rest, OWN_FIELD, {}, "an object", where)
    rest.pop(OWN_FIELD, None)
    where_own = f"{where}, {OWN_FIELD}"
    retries = _given(own, "retries", 0, "a number", where_own)
    if not 0 <= retries < 2**31:
        raise _wrong(where_own, f"retries is {retries!r:.80}")
    own_times: dict[str, Any] = {name: _time(own, name, where_own) for name in _OWN_TIMES}
    agents = [agent for agent in AGENTS if f"{AGENT_LABEL}{agent}" in labels]
    named = split_notes(texts["notes"])[0].get("memory_ids")
    if not isinstance(named, list) or not all(isinstance(id_, str) and id_ for id_ in named):
        named = ()
    return Issue(
        **{**texts, **{name: texts[name] or value for name, value in _OF_NONE.items()}},
        agent=agents[0] if len(agents) == 1 else "",
        memory_ids=tuple(sorted(set(named))),
        priority=priority,
        labels=labels,
        dependencies=_json(lists["dependencies"]),
        comments=_json(lists["comments"]),
        rest=_json(rest),
        created_at=times["created_at"] or 0.0,
        updated_at=(times["created_at"] or 0.0) if times["updated_at"] is None else times["updated_at"],
        closed_at=times["closed_at"],
        retries=retries,
        claimed_by=_given(own, "claimed_by", "", "text", where_own),
        **own_times,
    )


def split_notes(notes: str) -> tuple[dict[str, Any], str]:
    """Return the JSON object in front of notes, {} if there is none, and the text behind it."""
    start = len(notes) - len(notes.lstrip())
    try:
        found, end = _DECODER.raw_decode(notes, start)
    except (ValueError, RecursionError):
        return {}, notes
    return (found, notes[end:]) if isinstance(found, dict) else ({}, notes)


def _given(data: Mapping[str, Any], name: str, default: Any, what: str, where: str) -> Any:
    """Return a value if it has the type of its default, else the default."""
    value = data.get(name)
    if value is not None and type(value) is not type(default):
        raise _wrong(where, f"{name} is not {what}")
    return default if value is None else value


def _time(data: Mapping[str, Any], name: str, where: str) -> float | None:
    value = data.get(name)
    if value is None:
        return None
    try:
        return parse(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(where, f"{name} is {value!r:.80}, no time as 2026-01-31T12:00:00Z") from error


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=isinstance(value, dict))


def _wrong(where: str, what: str) -> UsageError:
    return UsageError(f"{where}: {what}", remedy="correct it; nothing was imported")
