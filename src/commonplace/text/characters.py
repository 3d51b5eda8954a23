"""Characters that no store keeps: PostgreSQL refuses NUL, and UTF-8 has no half of a surrogate pair."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from commonplace.lazy_regex import lazy_pattern

_UNSTORABLE: Final = lazy_pattern("[\0\ud800-\udfff]")
_UNSTORABLE_ESCAPE: Final = lazy_pattern(r"\\u(?:0000|d[89a-f])", re.IGNORECASE)
MENDED: Final = "NUL and halves of surrogate pairs, which no store can keep, were replaced by U+FFFD"
"""The notice for a text that `storable` changed."""


def storable(text: str) -> str:
    """Return a text with U+FFFD for each NUL and each half of a surrogate pair, which no database holds."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def storable_json(text: str) -> str:
    """Return a JSON text with U+FFFD for what no database holds, in its values and in its keys."""
    text = storable(text)
    if not _UNSTORABLE_ESCAPE.search(text):
        return text
    found = json.loads(text)
    mended = _mended(found)
    return text if mended == found else json.dumps(mended, sort_keys=True)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): _mended(each) for key, each in value.items()}
    return [_mended(each) for each in value] if isinstance(value, list) else value
