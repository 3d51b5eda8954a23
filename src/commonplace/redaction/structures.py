"""Take secrets out of what JSON holds, value by value, keys included. How a text is cleaned is told by the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cleaned_json(value: Any, clean: Callable[[str], str], name: str = "") -> Any:
    """Return what JSON holds without secrets; the key that a text stands under may tell that it is one."""
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
        unique = kept = clean(key)
        while unique in cleaned or (unique != key and unique in value):
            unique = f"{kept} {len(cleaned) + 1}"
        cleaned[unique] = cleaned_json(inner, clean, key)
    return cleaned
