"""The notes of an issue: a JSON object, and after it whatever was appended. It knows texts, no issues and no store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.formats.beads import split_notes
from commonplace.redaction import redact
from commonplace.redaction.structures import cleaned_json

_LONGEST_LINE: Final = 2000
_OURS: Final = ("memory_ids", "agent", "action")


def new_notes(agent: str, memory_ids: tuple[str, ...], action: str, extra: Mapping[str, Any] | None) -> str:
    """Return the notes of a new issue; secrets in what is added are replaced by placeholders.

    Raises:
        UsageError: what is added is no JSON, or has a name of ours.
    """
    added = dict(extra or {})
    taken = [name for name in _OURS if name in added]
    if taken:
        raise UsageError(
            f"extra_data has {taken[0]!r}, which the ledger writes itself",
            remedy="give it another name",
            parameters=("extra_data",),
        )
    told = {"memory_ids": list(memory_ids), "agent": agent, "action": action}
    try:
        plain = json.loads(json.dumps(added, allow_nan=False))
        return json.dumps({**told, **without_secrets(plain)}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"extra_data cannot be written as JSON: {error}",
            remedy="give texts, numbers, lists and objects",
            parameters=("extra_data",),
        ) from error


def log(notes: str) -> list[str]:
    """Return the lines that were appended."""
    return [line for line in split_notes(notes)[1].splitlines() if line.strip()]


def appended(notes: str, text: str, at: float) -> str:
    """Return notes with one more line; the JSON in front of them stays as it is."""
    return f"{notes.rstrip()}\n{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ} {line_of(text)}"


def line_of(text: str) -> str:
    """Return a text as one line without secrets, cut where it is very long."""
    line = redact(" ".join(text.split())).text
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def without_secrets(value: Any) -> Any:
    """Return what JSON holds, with placeholders for secrets."""
    return cleaned_json(value, lambda text: redact(text).text)
