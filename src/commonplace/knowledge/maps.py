"""Validate knowledge maps and agents' contexts, and redact secrets in them; invalid input raises a `UsageError`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from itertools import chain
from typing import Any, Final

from commonplace.dataclasses import dataclass, field
from commonplace.errors import UsageError
from commonplace.formats.json_values import View
from commonplace.formats.yaml import not_json
from commonplace.redaction import cleaned_json, find_secrets, redact
from commonplace.text.characters import storable, storable_json
from commonplace.text.hashes import sha256
from commonplace.types.knowledge import ContextRecord, KnowledgeRecord

STANDARD_FIELDS: Final = ("content", "description", "title", "summary", "text", "name")
"""Fields whose texts, joined in this order, are the text of a map that has any of them."""


def text_of(values: Mapping[str, Any]) -> str:
    """Return the text of a map, or "".

    The texts of the standard fields are joined by spaces. Without any, all texts are joined as `key: value`, sorted by
    key; keys of nested maps are dotted, and every text in a list has the key of the list.
    """
    standard = [value for name in STANDARD_FIELDS if isinstance(value := values.get(name), str) and value.strip()]
    if standard:
        return " ".join(standard)
    pairs = sorted(_pairs(values, ""), key=lambda pair: pair[0])
    return " ".join(f"{key}: {value}" for key, value in pairs)


def _pairs(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if value.strip():
            yield key, value
    elif isinstance(value, Mapping):
        # Sorted, so that the order of equal dotted keys does not depend on how the map was written.
        for name in sorted(value):
            yield from _pairs(value[name], f"{key}.{name}" if key else name)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _pairs(inner, key)


MAX_MAP_BYTES: Final = 1024 * 1024
MAX_NAME_CHARACTERS: Final = 200
_BATCH_SIZE: Final = 256
_SEPARATOR: Final = "\n\n"


def checked_name(name: object) -> str:
    fits = isinstance(name, str) and name.strip() and len(name) <= MAX_NAME_CHARACTERS and name.isprintable()
    if not fits:
        raise UsageError(
            f"the name of the agent is {name!r:.80}",
            remedy=f"give a printable text of 1 to {MAX_NAME_CHARACTERS} characters",
        )
    return str(name)


def checked_maps(agent: str, knowledge: object) -> tuple[list[KnowledgeRecord], tuple[str, ...], bool]:
    """Return an agent's maps as records, the kinds of secrets replaced, and whether any characters were replaced.

    Dates become texts. All maps are checked before any is returned.

    Raises:
        UsageError: the input is not a list of maps, or a map is too large or holds a value that JSON cannot represent.
    """
    if isinstance(knowledge, str | bytes | Mapping) or not isinstance(knowledge, Iterable):
        raise UsageError(f"the knowledge is {knowledge!r:.80}", remedy="give a list of maps")
    plain = [plain_map(values, f"knowledge[{index}]") for index, values in enumerate(knowledge)]
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = redact(text)
        kinds.extend(redacted.kinds)
        return redacted.text

    for begin in range(0, len(plain), _BATCH_SIZE):
        batch = plain[begin : begin + _BATCH_SIZE]
        # Scanning many maps at once is far faster, and most hold no secret.
        if find_secrets(_SEPARATOR.join(chain.from_iterable(map(_probes, batch)))):
            plain[begin : begin + _BATCH_SIZE] = [cleaned_json(values, clean) for values in batch]
    maps, is_mended = [], False
    for values in plain:
        text = json.dumps(values, sort_keys=True)
        metadata = storable_json(text)  # done here because the digest covers what is stored
        is_mended |= metadata != text
        # Values that are harmless on their own may form a secret when joined.
        content = storable(clean(text_of(values).strip()))
        maps.append(KnowledgeRecord(agent, content, metadata, digest_of(agent, metadata)))
    return maps, tuple(dict.fromkeys(kinds)), is_mended


def plain_map(values: object, path: str) -> dict[str, Any]:
    """Return a map with JSON values only; dates and times become ISO 8601 texts."""
    if not isinstance(values, Mapping):
        raise UsageError(f"{path} is {values!r:.80}", remedy="give a map of names and values")
    for where, problem in not_json(values, path, extra=(date, time)):
        raise UsageError(f"{where}: {problem}")
    text = json.dumps(values, default=lambda value: dict(value) if isinstance(value, Mapping) else value.isoformat())
    if len(text) > MAX_MAP_BYTES:
        raise UsageError(f"{path} has {len(text):,} bytes of JSON, the limit is {MAX_MAP_BYTES:,}", remedy="split it")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def digest_of(agent: str, metadata: str) -> str:
    """Return a digest that equal maps of one agent share, 64 hexadecimal digits."""
    return sha256(f"{agent}\n{metadata}".encode("utf-8", "surrogatepass")).hexdigest()


def _probes(value: Any, name: str = "") -> Iterator[str]:
    """Yield every text of a map alone, and after its name, which may reveal that it is a secret."""
    if isinstance(value, str):
        yield value
        yield f"{name}: {value}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _probes(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _probes(inner, name)


_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class AgentContext(View):
    """State stored for an agent under its name.

    Attributes:
        last_cursor: how far the agent has read, in a unit of its own choice; 0 to 2^63 - 1.
        metadata: any JSON values.
    """

    name: str
    last_cursor: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, context: object) -> AgentContext:
        """Return a context from an `AgentContext`, or from a mapping with `name`, `last_cursor` and any other keys."""
        if isinstance(context, AgentContext):
            return context
        if not isinstance(context, Mapping):
            raise UsageError(f"the context is {context!r:.80}", remedy="give an AgentContext, or a mapping with a name")
        values = dict(context)
        name, cursor = values.pop("name", None), values.pop("lastCursor", 0)
        cursor = values.pop("last_cursor", cursor)
        metadata = values.pop("metadata", {})
        if not isinstance(metadata, Mapping):
            raise UsageError(f"the metadata of the context is {metadata!r:.80}", remedy="give a map")
        return cls(checked_name(name), cursor, {**values, **metadata})


def record_of(context: AgentContext, now: float) -> ContextRecord:
    """Return the record to store for a context: checked, with secrets replaced."""
    cursor = context.last_cursor
    if isinstance(cursor, bool) or not isinstance(cursor, int) or not 0 <= cursor < _INT64:
        raise UsageError(f"last_cursor is {cursor!r:.80}", remedy="give a whole number from 0 to 2^63 - 1")
    metadata = cleaned_json(plain_map(context.metadata, "metadata"), lambda text: redact(text).text)
    return ContextRecord(checked_name(context.name), cursor, json.dumps(metadata, sort_keys=True), now)


def context_of(record: ContextRecord) -> AgentContext:
    return AgentContext(record.name, record.last_cursor, json.loads(record.metadata))
