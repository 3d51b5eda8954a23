"""The text of a knowledge map, by which it is found. It is pure, and knows maps of plain values alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

STANDARD_FIELDS: Final = ("content", "description", "title", "summary", "text", "name")
"""Whose texts, in this order, are the text of a map that has any of them."""


def text_of(values: Mapping[str, Any]) -> str:
    """Return the text of a map, "" where it holds no text.

    Texts of the standard fields are joined by spaces. A map that has none gives all its texts as `key: value`, sorted
    by key; keys of nested maps are dotted, and the texts of a list each have the key of the list.
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
        # In order, so that dotted keys that are alike do not come as the map was written down.
        for name in sorted(value):
            yield from _pairs(value[name], f"{key}.{name}" if key else name)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _pairs(inner, key)
