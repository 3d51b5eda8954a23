"""Escape control and invisible characters wherever a stored text is shown.

Untrusted text may hold escape sequences that retitle or overwrite a terminal, marks that reverse the direction of
writing and so disguise the text, and characters that people cannot see but a model reads. They are written out:
`\x1b`, `\u202e`, `\U000e0041`. Letters of every script, joiners (U+200C, U+200D), one selector after a character, and
flags, including those made of tags, are text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from commonplace.lazy_regex import lazy_pattern

_DIRECTIONS: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_INVISIBLE: Final = "\u206a-\u206f\ufff9-\ufffb\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
"""Deprecated formatting characters, annotation marks, and code points that Unicode reserves for invisible ones."""
_TAGS: Final = "\U000e0000-\U000e007f"
_FLAG_TAGS: Final = "\U000e0030-\U000e0039\U000e0061-\U000e007a"
_FLAG_END: Final = "\U000e007f"
_FLAG_LENGTHS: Final = (3, 4, 5)
"""Numbers of tags in a flag: a country's two letters, then one to three letters or digits of a region, as in gbsct."""
_RARE_SELECTORS: Final = "\U000e0100-\U000e01ef"
_SELECTORS: Final = f"\ufe00-\ufe0f{_RARE_SELECTORS}"

_ALWAYS: Final = f"\x7f-\x9f\u2028\u2029\ud800-\udfff{_DIRECTIONS}{_INVISIBLE}"
"""Characters always written out: delete, C1 controls, line separators, lone surrogates, directions, invisible ones."""
CHARACTERS: Final = f"{_ALWAYS}{_TAGS}{_RARE_SELECTORS}"
"""Regular expression class body of all characters that are written out, always or in certain positions."""


def _no_flag() -> str:
    """Return an assertion that holds after a tag that is not part of a flag."""
    begin, tag = "\U0001f3f4", f"[{_FLAG_TAGS}]"
    longest = _FLAG_LENGTHS[-1]
    inside = [
        f"(?<={begin}{tag * before})(?={tag}{{{max(0, _FLAG_LENGTHS[0] - before)},{longest - before}}}{_FLAG_END})"
        for before in range(1, longest + 1)
    ]
    ends = [f"(?<={begin}{tag * length}{_FLAG_END})" for length in _FLAG_LENGTHS]
    return f"(?!{'|'.join((*inside, *ends))})"


HIDDEN: Final = f"(?:[{_ALWAYS}]|[{_TAGS}]{_no_flag()}|(?<=[{_SELECTORS}])[{_RARE_SELECTORS}])"
"""Regular expression for one character that is written out; consecutive selectors are, as they can encode bytes."""

_HIDDEN: Final = lazy_pattern(HIDDEN)
_ANY: Final = lazy_pattern(f"[\x00-\x08\x0b-\x1f{CHARACTERS}]")
_ANY_ASCII: Final = lazy_pattern("[\x00-\x08\x0b-\x1f\x7f]")
"""`_ANY` for ASCII text, which most texts are; it compiles in a fiftieth of the time."""
_IN_MODEL_TEXT: Final = lazy_pattern(f"[\x00-\x08\x0b\x0e-\x1f]|{HIDDEN}")
_IN_TEXT: Final = lazy_pattern(f"[\x00-\x08\x0b-\x1f]|{HIDDEN}")
_IN_LINE: Final = lazy_pattern(f"[\x00-\x1f]|{HIDDEN}")
_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPE: Final = lazy_pattern(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_CHARACTERS: Final = lazy_pattern(f"[\x00-\x1f{CHARACTERS}]")


def visible(text: str) -> str:
    r"""Return a text for a model, with invisible characters escaped; tabs and line ends stay."""
    # Most texts need no escapes, and a search for a class of characters is ten times as fast.
    return _IN_MODEL_TEXT.sub(_escaped, text) if _has_any(text) else text


def visible_json(value: Any) -> str:
    r"""Return the shortest JSON text of a value, with invisible characters escaped, such as `\\u202e`.

    Raises:
        ValueError, TypeError: JSON cannot express the value.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _HIDDEN.sub(lambda match: f"\\{_escaped(match)}", text) if _has_any(text) else text


def unescape(text: str) -> str:
    r"""Return a name as it is stored: undo the escapes that `visible` wrote into it."""

    def read(match: re.Match[str]) -> str:
        code = int(match[1] or match[2] or match[3], 16)
        return chr(code) if code < 0x110000 and _CHARACTERS.fullmatch(chr(code)) else match.group()

    return _ESCAPE.sub(read, text)


def harmless(text: str) -> str:
    r"""Return a text for a terminal, with control and invisible characters escaped; line feeds and tabs stay."""
    return _IN_TEXT.sub(_escaped, text) if _has_any(text) else text


def harmless_line(text: str) -> str:
    r"""Return a name, a path or a message for a terminal as one line: line ends and tabs are escaped too."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_escaped, text)


def harmless_json(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Return the JSON text of a value, with control and invisible characters as JSON escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    return _HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text) if _has_any(text) else text


def _has_any(text: str) -> bool:
    return (_ANY_ASCII if text.isascii() else _ANY).search(text) is not None


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code < 0x100:
        return _SHORT_ESCAPES.get(character) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def strings(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
