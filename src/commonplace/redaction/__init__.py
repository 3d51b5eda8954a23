"""Find secrets in text and replace them with placeholders.

Detectors prefer a missed secret to a false positive: what is stored is what people search for.
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
"""Each kind of secret and a sentence on it, the surest first: of two that overlap, the first names both."""

_RANK: Final = {kind: rank for rank, kind in enumerate(KINDS)}
_PLACEHOLDER: Final = lazy_pattern(r"\[redacted: (?:" + "|".join(KINDS) + r")\]")
_LINE_BREAK: Final = lazy_pattern("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without secrets, and the kinds of those it had, one entry for each, in order."""

    text: str
    kinds: tuple[str, ...]


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets in a text, in order, none overlapping another or one of our placeholders."""
    if not text:  # most titles and summaries of what is indexed, and all the anchors would be looked for
        return ()
    view = view_of(text)
    found = [*find_tokens(view), *find_in_context(view), *find_cards(view)]
    if not found:
        return ()
    found.sort(key=lambda secret: (secret.start, _RANK[secret.kind]))
    joined: list[Secret] = []
    for secret in found:
        last = joined[-1] if joined else None
        if last is not None and secret.start < last.end:
            kind = min(last.kind, secret.kind, key=_RANK.__getitem__)
            joined[-1] = Secret(kind, last.start, max(last.end, secret.end))
        else:
            joined.append(secret)
    placeholders = [match.span() for match in _PLACEHOLDER.finditer(text)] if "[redacted: " in text else []
    kept, at = [], 0
    for secret in joined:
        while at < len(placeholders) and placeholders[at][1] <= secret.start:
            at += 1
        if at == len(placeholders) or placeholders[at][0] >= secret.end:
            kept.append(secret)
    return tuple(kept)


def without_placeholders(text: str) -> str:
    """Return a redacted text without the marks of what was taken out."""
    return _PLACEHOLDER.sub("", text) if "[redacted: " in text else text


def redact(text: str) -> Redacted:
    """Replace each secret by a placeholder that keeps its line breaks; a redacted text stays as it is.

    A replacement can uncover what its neighbourhood hid, so the text is searched again until nothing is found.
    """
    kinds: list[str] = []
    while secrets := find_secrets(text):
        kinds.extend(secret.kind for secret in secrets)
        text = with_placeholders(text, secrets)
    return Redacted(text, tuple(kinds))


def with_placeholders(text: str, secrets: Iterable[Secret]) -> str:
    """Return a text with placeholders for secrets, which are in order; the line breaks in them stay."""
    done = 0
    pieces: list[str] = []
    for secret in secrets:
        breaks = "".join(_LINE_BREAK.findall(text, secret.start, secret.end))
        pieces += (text[done : secret.start], f"[redacted: {secret.kind}]", breaks)
        done = secret.end
    return "".join([*pieces, text[done:]])


def cleaned_json(value: Any, clean: Callable[[str], str], name: str = "") -> Any:
    """Return what JSON holds without secrets; the key of a text may show that it is one."""
    if isinstance(value, str):
        text, before = clean(value), f"{name}: "
        named = clean(before + text) if name else ""
        return named.removeprefix(before) if named.startswith(before) else text
    if isinstance(value, list):
        return [cleaned_json(each, clean, name) for each in value]
    if not isinstance(value, dict):
        return value
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        kept = clean(key)
        names = chain((kept,), (f"{kept} {number}" for number in count(2)))
        free = key if kept == key else next(name for name in names if name not in value and name not in cleaned)
        cleaned[free] = cleaned_json(inner, clean, key)
    return cleaned
