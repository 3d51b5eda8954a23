"""The context of an agent: what it keeps of itself between its runs. It knows values, no store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from commonplace.errors import UsageError
from commonplace.knowledge.maps import checked_name, plain_map
from commonplace.redaction import redact
from commonplace.redaction.structures import cleaned_json
from commonplace.types.knowledge import ContextRecord

_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class AgentContext:
    """What is kept of an agent under its name.

    Attributes:
        last_cursor: 0 or more; up to where the agent has read, in whatever it counts by.
        metadata: anything that JSON holds.
    """

    name: str
    last_cursor: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: object) -> AgentContext:
        """Return a context that is given as such, or as a mapping with `name`, `last_cursor` and anything else.

        Raises:
            UsageError: it is neither.
        """
        if isinstance(given, AgentContext):
            return given
        if not isinstance(given, Mapping):
            raise UsageError(f"the context is {given!r:.80}", remedy="give an AgentContext, or a mapping with a name")
        values = dict(given)
        name, cursor = values.pop("name", None), values.pop("lastCursor", 0)
        cursor = values.pop("last_cursor", cursor)
        metadata = values.pop("metadata", {})
        if not isinstance(metadata, Mapping):
            raise UsageError(f"the metadata of the context is {metadata!r:.80}", remedy="give a map")
        return cls(checked_name(name), cursor, {**values, **metadata})

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"name": self.name, "last_cursor": self.last_cursor, "metadata": dict(self.metadata)}


def record_of(context: AgentContext, now: float) -> ContextRecord:
    """Return a context as it is stored: checked, with secrets replaced.

    Raises:
        UsageError: a value is of the wrong kind or out of its range.
    """
    cursor = context.last_cursor
    if isinstance(cursor, bool) or not isinstance(cursor, int) or not 0 <= cursor < _INT64:
        raise UsageError(f"last_cursor is {cursor!r:.80}", remedy="give a whole number from 0 to 2^63 - 1")
    metadata = cleaned_json(plain_map(context.metadata, "metadata"), lambda text: redact(text).text)
    return ContextRecord(checked_name(context.name), cursor, json.dumps(metadata, sort_keys=True), now)


def context_of(record: ContextRecord) -> AgentContext:
    """Return a stored context."""
    return AgentContext(record.name, record.last_cursor, json.loads(record.metadata))
