"""Find secrets in text and replace them with placeholders.

Detectors prefer a missed secret to a false positive: users search the stored text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from commonplace.dataclasses import dataclass
from commonplace.lazy_regex import lazy_pattern
from commonplace.redaction.patterns import VENDORS, Secret, find_cards, find_in_context, find_tokens, view_of

__all__ = ["KINDS", "Redacted", "Secret", "find_secrets", "redact", "with_placeholders"]


def _kinds() -> Iterator[tuple[str, str]]:
    for line in Path(__file__).with_name("kinds.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if line != "[vendors]":
            kind, _, sentence = line.partition("\t")
            yield kind, sentence
            continue
        for vendor, prefixes, _ in VENDORS:
            shown = ", ".join(f"`{prefix}…`" for prefix in prefixes)
            yield f"{vendor.lower()} key", f"A key or token of {vendor} ({shown})."


KINDS: Final[Mapping[str, str]] = MappingProxyType(dict(_kinds()))
"""Description of each kind of secret, most certain first; overlapping secrets get the kind that comes first."""

_RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}
_PLACEHOLDER: Final = lazy_pattern(r"\[redacted: (?:" + "|".join(KINDS) + r")\]")
_LINE_BREAK: Final = lazy_pattern("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A redacted text, and the kind of each secret that was replaced, in order of replacement."""

    text: str
    kinds: tuple[str, ...]


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets in a text, in order; none overlaps another or a placeholder of `redact`."""
    if not text:  # most titles and summaries are empty: skip the search for all anchors
        return ()
    view = view_of(text)
    found = [*find_tokens(view), *find_in_context(view), *find_cards(view)]
    if not found:
        return ()
    found.sort(key=lambda secret: (secret.start, _RANK[secret.kind]))
    merged: list[Secret] = []
    for secret in found:
        last = merged[-1] if merged else None
        if last is not None and secret.start < last.end:
            kind = min(last.kind, secret.kind, key=_RANK.__getitem__)
            merged[-1] = Secret(kind, last.start, max(last.end, secret.end))
        else:
            merged.append(secret)
    placeholders = [match.span() for match in _PLACEHOLDER.finditer(text)] if "[redacted: " in text else []
    outside, index = [], 0
    for secret in merged:
        while index < len(placeholders) and placeholders[index][1] <= secret.start:
            index += 1
        if index == len(placeholders) or placeholders[index][0] >= secret.end:
            outside.append(secret)
    return tuple(outside)


def without_placeholders(text: str) -> str:
    """Return a redacted text without the marks of what was taken out."""
    return _PLACEHOLDER.sub("", text) if "[redacted: " in text else text


def redact(text: str) -> Redacted:
    """Replace each secret with a placeholder that keeps its line breaks; redacting twice changes nothing.

    A replacement can uncover another secret beside it, so the text is searched until none is found.
    """
    kinds: list[str] = []
    while secrets := find_secrets(text):
        kinds.extend(secret.kind for secret in secrets)
        text = with_placeholders(text, secrets)
    return Redacted(text, tuple(kinds))


def with_placeholders(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text with placeholders for the secrets, which must be in order; their line breaks are kept."""
    position = 0
    pieces: list[str] = []
    for secret in secrets:
        breaks = "".join(_LINE_BREAK.findall(text, secret.start, secret.end))
        pieces += (text[position : secret.start], f"[redacted: {secret.kind}]", breaks)
        position = secret.end
    return "".join([*pieces, text[position:]])


def cleaned_json(value: Any, clean: Callable[[str], str], name: str = "") -> Any:
    """Return a JSON value with `clean` applied to its texts and keys; a text is also cleaned together with its key."""
    if isinstance(value, str):
        text, prefix = clean(value), f"{name}: "
        named = clean(prefix + text) if name else ""
        return named.removeprefix(prefix) if named.startswith(prefix) else text
    if isinstance(value, list):
        return [cleaned_json(item, clean, name) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, Any] = {}
    for key, child in value.items():
        base = clean(key)
        names = chain((base,), (f"{base} {number}" for number in count(2)))
        unique = key if base == key else next(name for name in names if name not in value and name not in cleaned)
        cleaned[unique] = cleaned_json(child, clean, key)
    return cleaned
