"""Replace characters that no store can keep: PostgreSQL rejects NUL, and UTF-8 cannot encode lone surrogates."""

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
    """Return a text with U+FFFD for each NUL and lone surrogate, which no database stores."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def storable_json(text: str) -> str:
    """Return a JSON text with U+FFFD for each NUL and lone surrogate in its values and keys."""
    text = storable(text)
    if not _UNSTORABLE_ESCAPE.search(text):
        return text
    document = json.loads(text)
    mended = _mended(document)
    return text if mended == document else json.dumps(mended, sort_keys=True)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(key): _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value
