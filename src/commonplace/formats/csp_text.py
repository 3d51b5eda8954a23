"""How CSP/1 writes values on its lines: bare where that is plain, as a JSON string where it is not. It knows no line.

Nothing in a value can end its line, its list or its quotes, and control characters, marks that change the direction of
writing and characters that nobody sees are always written as escapes of JSON.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from commonplace.errors import UsageError
from commonplace.text.escaping import HIDDEN, harmless_json

BAD_REQUEST: Final = "BAD_REQUEST"
BAD_JSON: Final = "BAD_JSON"
BAD_ENCODING: Final = "BAD_ENCODING"

NAME: Final = re.compile(r"[A-Za-z0-9_]+")
"""What a scope, a type of output or a kind of reference is written with."""

BLANKS: Final = " \t"
DIRECTED: Final = "→"
MUTUAL: Final = "↔"

_UNSAFE: Final = re.compile(f"[\x00-\x1f]|{HIDDEN}")
_IN_ITEM: Final = re.compile(f'[",{MUTUAL}{DIRECTED}\x00-\x1f]|{HIDDEN}')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DECODER: Final = json.JSONDecoder()


class CspError(UsageError):
    """Correct the text: it is no CSP/1. `code` is what an ERROR line says of it."""

    def __init__(self, message: str, *, code: str = BAD_REQUEST, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


class Values:
    """Reads the values of one line from left to right, past blanks."""

    def __init__(self, text: str, key: str) -> None:
        self._text = text
        self._key = key
        self._at = 0

    def is_done(self) -> bool:
        """Return whether nothing but blanks follows."""
        self._skip()
        return self._at == len(self._text)

    def value(self, ends: str) -> str:
        """Return a JSON string, or what stands before the first of some characters or the end.

        Raises:
            CspError: it is empty, or holds a quote.
        """
        self._skip()
        if self._text.startswith('"', self._at):
            return self.string()
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        bare = self._text[start : self._at].strip(BLANKS)
        if not bare or '"' in bare:
            what = "an empty value" if not bare else f"a quote inside the value {bare!r:.60}"
            raise CspError(f"{self._key} has {what}", remedy='write the value as one JSON string, "…"')
        return bare

    def string(self) -> str:
        """Return a JSON string.

        Raises:
            CspError: none comes next.
        """
        self._skip()
        found, self._at = read_string_at(self._text, self._at, self._key)
        return found

    def mark(self, marks: str) -> str:
        """Take one of some characters if it comes next, and return it, else ""."""
        if self.is_done() or self._text[self._at] not in marks:
            return ""
        self._at += 1
        return self._text[self._at - 1]

    def expect(self, marks: str) -> str:
        """Take one of some characters, and return it.

        Raises:
            CspError: something else comes next.
        """
        found = self.mark(marks)
        if not found:
            where = "its end" if self.is_done() else f"{self._text[self._at :]!r:.60}"
            raise CspError(f"{self._key} has {where} where {' or '.join(marks)} is expected")
        return found

    def end(self) -> None:
        """Refuse anything in what follows.

        Raises:
            CspError: something does follow.
        """
        if not self.is_done():
            raise CspError(f"{self._key} goes on where it should end: {self._text[self._at :]!r:.60}")

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in BLANKS:
            self._at += 1


def read_list(text: str, key: str) -> tuple[str, ...]:
    """Return the items of `[one,two]`.

    Raises:
        CspError: it is no list.
    """
    if len(text) < len("[]") or text[0] != "[" or text[-1] != "]":
        raise CspError(f"{key} is {text!r:.60}, not a list", remedy=f"write {key} [one,two]")
    values = Values(text[1:-1], key)
    items: list[str] = []
    if not values.is_done():
        items.append(values.value(","))
        while not values.is_done():
            values.expect(",")
            items.append(values.value(","))
    return tuple(items)


def write_list(items: tuple[str, ...]) -> str:
    """Return items as `[one,two]`."""
    return f"[{','.join(map(write_item, items))}]"


def write_item(text: str, also: str = "") -> str:
    """Return a value as an item of a list: bare, or as a JSON string where it holds what a list needs.

    Args:
        also: further characters that must not stand in it bare.
    """
    is_bare = text and text == text.strip() and not _IN_ITEM.search(text) and not any(each in text for each in also)
    return text if is_bare else write_string(text)


def read_text(text: str, key: str) -> str:
    """Return a value that runs to the end of its line; one that starts with a quote is one JSON string.

    Raises:
        CspError: it starts with a quote and is no JSON string.
    """
    return read_string(text, key) if text.startswith('"') else text


def write_text(text: str) -> str:
    """Return a value that runs to the end of its line, as a JSON string where it would not survive that."""
    is_bare = text and text == text.strip() and text[0] != '"' and not _UNSAFE.search(text)
    return text if is_bare else write_string(text)


def read_string(text: str, key: str) -> str:
    """Return what a JSON string says.

    Raises:
        CspError: it is none, or something follows it.
    """
    found, end = read_string_at(text, 0, key)
    if text[end:].strip(BLANKS):
        raise CspError(
            f"{key} goes on after its closing quote: {text[end:]!r:.60}",
            code=BAD_JSON,
            remedy=r"a value that starts with a quote is one JSON string: write quotes inside it as \"",
        )
    return found


def read_string_at(text: str, at: int, key: str) -> tuple[str, int]:
    """Return what the JSON string at a place says, and where it ends.

    Raises:
        CspError: it is none.
    """
    try:
        found, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        found, end = None, at
    if not isinstance(found, str):
        raise CspError(
            f"{key} is no JSON string: {text[at:]!r:.60}",
            code=BAD_JSON,
            remedy=r"open and close it with a quote, and write quotes inside it as \" and line ends as \n",
        )
    return found, end


def write_string(text: str) -> str:
    """Return a JSON string on one line, in which everything that could act or hide is an escape."""
    return harmless_json(text)


def read_object(text: str, key: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        CspError: it is none, names a member twice, or holds a number that JSON has not.
    """
    try:
        found = json.loads(text, object_pairs_hook=_members, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CspError(
            f"{key} is no JSON: {reason:.120}", code=BAD_JSON, remedy=f'write {key} {{"name": value}} on one line'
        ) from error
    if not isinstance(found, dict):
        raise CspError(f"{key} is no JSON object: {text!r:.60}", code=BAD_JSON, remedy=f'write {key} {{"name": value}}')
    return found


def write_object(values: dict[str, Any]) -> str:
    """Return a JSON object on one line."""
    return harmless_json(values, allow_nan=False)


def refuse_unfit_line(line: str, number: int) -> None:
    """Refuse a line with characters that only a JSON string may stand for.

    Raises:
        CspError: naming the character.
    """
    if _SURROGATE.search(line):
        raise CspError(f"line {number} is no UTF-8", code=BAD_ENCODING, remedy="send the request as UTF-8")
    if control := _CONTROL.search(line):
        raise CspError(
            f"line {number} holds the control character U+{ord(control.group()):04X}",
            remedy="write the value as a JSON string with an escape, or leave the character out",
        )


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} stands there twice")
        found[name] = value
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is too large")
    return number
