"""Validate memories and metadata that callers give, and replace secrets in them.

Every check raises a `UsageError` that names the value, and the limit or the choices.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from commonplace.dataclasses import dataclass, replace
from commonplace.dates.time import Moment, moment_in_words, seconds
from commonplace.errors import UsageError
from commonplace.redaction import cleaned_json, redact
from commonplace.text.characters import MENDED, storable, storable_json
from commonplace.types import ORIGIN_OF_ROLE, ORIGINS, TEXT_PARTS, TIERS, MemoryRecord, Origin, Owner, Tier

MAX_CONTENT_BYTES: Final = 1024 * 1024
MAX_METADATA_BYTES: Final = 64 * 1024
MAX_LABELS: Final = 100
MAX_LABEL_CHARACTERS: Final = 200
MAX_TEXT_CHARACTERS: Final = 1000
MAX_CONTROL_SHARE: Final = 0.1
"""Share of control characters above which a text is taken for binary."""
TRUST: Final[Mapping[Origin, float]] = {"user": 1.0, "agent": 0.8, "tool": 0.6, "document": 0.6, "web": 0.3}
"""Default trust of a memory by its origin, 0–1."""
_CONTROLS = frozenset(map(chr, range(32))) - set("\t\n\r\f\v\x1b")


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory as given, validated. `at`: seconds since the epoch.

    Attributes:
        tier, origin, trust, at: None if not given.
    """

    content: str
    id: str = ""
    tier: Tier | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    category: str = ""
    source: str = ""
    origin: Origin | None = None
    trust: float | None = None
    metadata: str = "{}"
    session: str = ""
    at: float | None = None
    derived_from: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def validate_memory(
    values: Mapping[str, Any], *, max_bytes: int = MAX_CONTENT_BYTES, force: bool = False, now: float | None = None
) -> NewMemory:
    """Return a memory to write from the values that a caller gave.

    Args:
        values: `content`, and any other field of `NewMemory` except its notices; None counts as absent. A chat message
            also has `role`, may have `name`, and its content may be a list of parts.
        max_bytes: maximum size of the content in UTF-8.
        force: accept a text that looks binary.
        now: the time against which an `at` in words is resolved; None accepts no words.

    Raises:
        UsageError: a key is unknown, or a value is of the wrong kind, empty, too large or out of its range.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"a memory is given as {type(values).__name__}", remedy="give a mapping with `content`")
    fields = {name: value for name, value in values.items() if value is not None}
    if "role" in fields:
        fields = _fields_of_message(fields)
    unknown = sorted(map(str, fields.keys() - {"content", "at", *_CHECKS}))
    if unknown:
        raise UsageError(f"a memory has no {unknown[0]!r}", remedy=f"it may have content, {', '.join(_CHECKS)}, at")
    if "content" not in fields:
        raise UsageError("a memory has no content", remedy="say what is to be remembered")
    content, at = fields.pop("content"), moment("at", fields.pop("at", None), now)
    reject_invalid(content, max_bytes=max_bytes, force=force)
    checked = {name: _CHECKS[name](name, value) for name, value in fields.items()}
    storable_text, metadata = storable(content), checked.pop("metadata", "{}")
    mended = storable_json(metadata)
    notices = (MENDED,) if storable_text != content or mended != metadata else ()
    return NewMemory(storable_text, at=at, metadata=mended, notices=notices, **checked)


def _fields_of_message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a chat message, with `role` and `content`, to the fields of a memory; the role gives the origin."""
    fields = dict(message)
    role, name = fields.pop("role"), fields.pop("name", "")
    if not isinstance(role, str) or role not in ORIGIN_OF_ROLE:
        raise UsageError(
            f"role is {role!r:.80}",
            remedy=f"give one of {', '.join(ORIGIN_OF_ROLE)}, or an `origin` in its place; leave out system messages",
        )
    fields = {"origin": ORIGIN_OF_ROLE[role], "source": name, **fields}
    if isinstance(fields.get("content"), list):
        texts = [
            part["text"]
            for part in fields["content"]
            if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)
        ]
        if len(texts) < len(fields["content"]):
            raise UsageError(
                "a message has parts that are no text", remedy="leave images and tool calls out, or say them in words"
            )
        fields["content"] = "\n\n".join(texts)
    return fields


def input_fields(owner: Owner, record: MemoryRecord) -> dict[str, Any]:
    """Return the fields of a stored memory in the form that `validate_memory` accepts."""
    fields = {name: getattr(owner if hasattr(owner, name) else record, name) for name in ("content", "at", *_CHECKS)}
    return {**fields, "metadata": json.loads(record.metadata)}


def without_secrets(new: NewMemory) -> NewMemory:
    """Replace secrets with placeholders, and add a notice that names their kinds."""
    kinds: list[str] = []

    def clean(text: str) -> str:
        redacted = redact(text)
        kinds.extend(redacted.kinds)
        return redacted.text

    cleaned = replace(
        new,
        content=clean(new.content),
        tags=tuple(map(clean, new.tags)),
        entities=tuple(map(clean, new.entities)),
        source=clean(new.source),
        metadata=json.dumps(cleaned_json(json.loads(new.metadata), clean), sort_keys=True),
    )
    if not kinds:
        return cleaned
    kind_names = ", ".join(dict.fromkeys(kinds))
    return replace(cleaned, notices=(*new.notices, f"what looks like a secret was replaced: {kind_names}"))


def reject_invalid(content: object, *, max_bytes: int = MAX_CONTENT_BYTES, force: bool = False) -> None:
    """Refuse content that is not text, empty, too large, or binary."""
    if not isinstance(content, str):
        raise UsageError(f"the content is {type(content).__name__}, not str", remedy="give a text, decoded")
    if not content.strip("\ufeff\u200b\u2060 \t\r\n\f\v\0\u00a0\u3000"):
        raise UsageError("the content is empty", remedy="say what is to be remembered")
    size = len(content) if content.isascii() else len(content.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise UsageError(
            f"the content has {size:,} bytes, the limit is {max_bytes:,}",
            remedy="remember the essential part, or index the whole as a document",
        )
    if force:
        return
    controls = sum(map(_CONTROLS.__contains__, content))
    if "\0" in content or controls > MAX_CONTROL_SHARE * len(content):
        raise UsageError(
            "the content is binary: it holds NUL or many other control characters",
            remedy="give a text; only `remember` with force=True keeps it as it is",
        )


def reject_invalid_id(id_: object) -> str:
    """Return an id; refuse one that is not text, empty or too long."""
    if not isinstance(id_, str) or not id_.strip() or len(id_) > MAX_TEXT_CHARACTERS:
        raise UsageError(f"the id is {id_!r:.80}", remedy=f"give a text of 1 to {MAX_TEXT_CHARACTERS} characters")
    _refuse_unstorable("id", id_)
    return id_


def _refuse_unstorable(name: str, text: str) -> None:
    if storable(text) != text:
        raise UsageError(
            f"{name} {text!r:.80} holds NUL or half of a surrogate pair, which no store can keep",
            remedy="give it without such characters",
            parameters=(name,),
        )


def invalid(name: str, value: object, remedy: str) -> UsageError:
    """Return an error with a parameter's value and what it must be."""
    return UsageError(f"{name} is {value!r:.80}", remedy=remedy, parameters=(name,))


def labels(name: str, values: object) -> tuple[str, ...]:
    """Return tags, entities or ids without repetitions, in order; those of a set are sorted."""
    if isinstance(values, str) or not isinstance(values, Sequence | set | frozenset):
        raise invalid(name, values, "give a list of texts")
    cleaned = [" ".join(value.split()) if isinstance(value, str) else value for value in values]
    for value in cleaned:
        if not isinstance(value, str) or not value or len(value) > MAX_LABEL_CHARACTERS:
            raise UsageError(
                f"{name} holds {value!r:.80}",
                remedy=f"give texts of 1 to {MAX_LABEL_CHARACTERS} characters",
                parameters=(name,),
            )
        _refuse_unstorable(name, value)
    if len(cleaned) > MAX_LABELS:
        raise UsageError(
            f"there are {len(cleaned)} {name}, the limit is {MAX_LABELS}", remedy="give fewer", parameters=(name,)
        )
    return tuple(dict.fromkeys(sorted(cleaned) if isinstance(values, set | frozenset) else cleaned))


def text(name: str, value: object) -> str:
    """Return a text of any length, which may be empty."""
    if not isinstance(value, str):
        raise invalid(name, value, "give a text")
    return value


def short_text(name: str, value: object) -> str:
    """Return a text of at most 1,000 characters."""
    if not isinstance(value, str) or len(value) > MAX_TEXT_CHARACTERS:
        raise invalid(name, value, f"give a text of at most {MAX_TEXT_CHARACTERS} characters")
    return value


def label(name: str, value: object) -> str:
    """Return a text of at most 1,000 characters that a filter can match.

    Raises:
        UsageError: it is not a text, is longer, or holds characters that no store can keep.
    """
    text = short_text(name, value)
    _refuse_unstorable(name, text)
    return text


def texts(name: str, values: object) -> tuple[str, ...]:
    """Return texts of at most 1,000 characters, which may be empty."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | set | frozenset):
        raise invalid(name, values, "give a list of texts")
    return tuple(short_text(name, value) for value in values)


def series(name: str, value: Iterable[Any]) -> Iterable[Any]:
    """Return an iterable that is not a text."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise invalid(name, value, "give a list")
    return value


def int_in(name: str, value: object, minimum: int, maximum: int) -> int:
    """Return a whole number within a range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise invalid(name, value, f"give a whole number from {minimum:,} to {maximum:,}")
    return value


def boolean(name: str, value: object) -> bool:
    """Return True or False; a text such as "false" is refused."""
    if not isinstance(value, bool):
        raise invalid(name, value, "give true or false")
    return value


def path_value(name: str, value: object) -> Path:
    """Return the path of a file or directory, which need not exist."""
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(value, str) and value.strip() and "\0" not in value:
        with suppress(UnicodeEncodeError):
            os.fsencode(value)
            return Path(value)
    raise invalid(name, value, "name a file or a directory")


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """Return a value that is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise invalid(name, value, f"give one of {', '.join(choices)}")
    return value


def fraction(name: str, value: object) -> float:
    """Return a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise invalid(name, value, "give a number from 0 to 1")
    return float(value)


def json_object(name: str, value: object) -> str:
    """Return a mapping as JSON with sorted keys."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise invalid(name, value, "give a mapping with texts as keys")
    try:
        text = json.dumps(dict(value), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{name} cannot be kept: {error}", remedy="give what JSON can hold", parameters=(name,)
        ) from error
    if len(text) > MAX_METADATA_BYTES:
        raise UsageError(
            f"{name} has {len(text):,} bytes of JSON, the limit is {MAX_METADATA_BYTES:,}", parameters=(name,)
        )
    return text


def moment(name: str, value: Moment | None, now: float | None) -> float | None:
    """Return the start of a time in seconds since the epoch, None for None; words such as "yesterday" need `now`."""
    if value is None or now is None:
        return None if value is None else seconds(name, value)
    return moment_in_words(name, value, now, is_start=True)


def link_type(value: str) -> str:
    """Return the type of a link as stored, secrets replaced."""
    return redact(" ".join(short_text("type", value).split())).text


_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "id": lambda _, value: reject_invalid_id(value),
    "tier": partial(one_of, choices=TIERS),
    "tags": labels,
    "entities": labels,
    "category": lambda name, value: label(name, value).strip().lower(),
    "source": label,
    "origin": partial(one_of, choices=ORIGINS),
    "trust": fraction,
    "metadata": json_object,
    "session": label,
    "derived_from": labels,
}
"""Checks of the fields of a memory other than content and time."""
