"""Make text that somebody else wrote harmless on a terminal: it shows control characters, it never sends them.

A file that is indexed may hold escape sequences that recolour, retitle or overwrite a terminal, or marks that reverse
the direction of writing and so hide what is there. It knows characters, not where they are printed.
"""

from __future__ import annotations

import json
import re
from typing import Any

_FORMATTING = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_SEPARATORS = "\u2028\u2029"
_SURROGATES = "\ud800-\udfff"
_ALWAYS = f"\x7f-\x9f{_FORMATTING}{_SEPARATORS}{_SURROGATES}"
"""Delete, the second set of control characters, direction marks, and what no encoding can write."""

_IN_TEXT = re.compile(f"[\x00-\x08\x0b-\x1f{_ALWAYS}]")
_IN_LINE = re.compile(f"[\x00-\x1f{_ALWAYS}]")
_IN_JSON = re.compile(f"[{_ALWAYS}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def harmless(text: str) -> str:
    r"""Return a text with its control characters written out, `\x1b` for escape; line ends and tabs stay."""
    return _IN_TEXT.sub(_written, text)


def harmless_line(text: str) -> str:
    r"""Return a name, a path or a message as one line: line ends and tabs are written out too."""
    return _IN_LINE.sub(_written, text)


def harmless_json(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Return a JSON text of the same value, in which every control character is an escape of JSON's own."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    return _IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def _written(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
