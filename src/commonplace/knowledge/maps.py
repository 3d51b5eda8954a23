"""Knowledge maps as callers give them, checked and with secrets replaced. It knows values, no store."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.formats.guarded_yaml import DEEPEST, LONG_NUMBER, is_long_number
from commonplace.knowledge.texts import text_of
from commonplace.redaction import find_secrets, redact
from commonplace.redaction.structures import cleaned_json
from commonplace.text.digests import sha256

MAX_MAP_BYTES: Final = 1024 * 1024
MAX_NAME_CHARACTERS: Final = 200
_AT_ONCE: Final = 256
_APART: Final = "\n\n"


@dataclass(frozen=True, slots=True)
class KnowledgeMap:
    """A map, ready to be compared with what is stored.

    Attributes:
        content: its text, "" where it has none.
        metadata: the map as JSON, keys sorted.
        digest: of agent and map.
    """

    content: str
    metadata: str
    digest: str


@dataclass(frozen=True, slots=True)
class CheckedMaps:
    """Maps in their order, and the kinds of the secrets that were replaced in them, each once."""

    maps: tuple[KnowledgeMap, ...]
    secrets: tuple[str, ...]


def checked_name(name: object) -> str:
    """Return the name of an agent.

    Raises:
        UsageError: it is no printable text of 1 to 200 characters.
    """
    fits = isinstance(name, str) and name.strip() and len(name) <= MAX_NAME_CHARACTERS and name.isprintable()
    if not fits:
        raise UsageError(
            f"the name of the agent is {name!r:.80}",
            remedy=f"give a printable text of 1 to {MAX_NAME_CHARACTERS} characters",
        )
    return str(name)


def checked_maps(agent: str, given: object) -> CheckedMaps:
    """Return the maps of an agent, to be kept; dates become texts.

    Raises:
        UsageError: it is no list of maps, or one holds what JSON has no word for, or is too large; all are checked
            before any is returned.
    """
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"the knowledge is {given!r:.80}", remedy="give a list of maps")
    plain = [plain_map(values, f"knowledge[{place}]") for place, values in enumerate(given)]
    kinds: list[str] = []
    cleaned = [
        _cleaned(values, kinds)
        for begin in range(0, len(plain), _AT_ONCE)
        for values in _suspected(plain[begin : begin + _AT_ONCE])
    ]
    return CheckedMaps(tuple(_made(agent, values, kinds) for values in cleaned), tuple(dict.fromkeys(kinds)))


def plain_map(values: object, path: str) -> dict[str, Any]:
    """Return a map of values that JSON holds.

    Raises:
        UsageError: naming the path of what it does not.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"{path} is {values!r:.80}", remedy="give a map of names and values")
    found: dict[str, Any] = _plain(values, path, 0)
    size = len(json.dumps(found))
    if size > MAX_MAP_BYTES:
        raise UsageError(f"{path} has {size:,} bytes of JSON, the limit is {MAX_MAP_BYTES:,}", remedy="split it")
    return found


def digest_of(agent: str, metadata: str) -> str:
    """Return what equal maps of one agent have in common, 64 hexadecimal digits."""
    return sha256(f"{agent}\n{metadata}".encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class _Suspected:
    """A map, and whether it has to be looked through for secrets by itself."""

    values: dict[str, Any]
    is_suspect: bool


def _suspected(maps: list[dict[str, Any]]) -> Iterator[_Suspected]:
    """Look through many maps at once, which is faster by far; most hold no secret."""
    texts = [_APART.join(_probes(values)) for values in maps]
    if not find_secrets(_APART.join(texts)):
        yield from (_Suspected(values, is_suspect=False) for values in maps)
        return
    for values, text in zip(maps, texts, strict=True):
        yield _Suspected(values, bool(find_secrets(text)))


def _probes(value: Any, name: str = "") -> Iterator[str]:
    """Yield every text of a map by itself, and behind the name that may tell that it is a secret."""
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


def _cleaned(suspected: _Suspected, kinds: list[str]) -> dict[str, Any]:
    if not suspected.is_suspect:
        return suspected.values

    def clean(text: str) -> str:
        redacted = redact(text)
        kinds.extend(redacted.kinds)
        return redacted.text

    cleaned: dict[str, Any] = cleaned_json(suspected.values, clean)
    return cleaned


def _made(agent: str, values: dict[str, Any], kinds: list[str]) -> KnowledgeMap:
    # What stands apart in a map may be a secret where it stands together.
    content = redact(text_of(values).strip())
    kinds.extend(content.kinds)
    metadata = json.dumps(values, sort_keys=True)
    return KnowledgeMap(content.text, metadata, digest_of(agent, metadata))


def _plain(value: object, path: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise UsageError(f"{path} is nested too deeply, more than {DEEPEST} levels")
    if is_long_number(value):
        raise UsageError(f"{path}: {LONG_NUMBER}", remedy="put it in quotes")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise UsageError(f"{path}: the key {key!r:.80} is no text", remedy="put it in quotes")
        return {key: _plain(inner, f"{path}.{key}", depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, f"{path}[{place}]", depth + 1) for place, inner in enumerate(value)]
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise UsageError(f"{path} is {value!r:.80}, which JSON does not have", remedy="give texts, numbers, lists and maps")
