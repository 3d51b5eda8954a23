"""The client's half of CSP/1: write requests, read responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from commonplace.formats.csp import (
    BLANKS,
    DIRECTED,
    KEYS,
    LISTS,
    MUTUAL,
    NAME,
    NONE,
    OBJECTS,
    RESERVED_KEYS,
    STATUSES,
    TEXTS,
    CspError,
    CspLink,
    CspRequest,
    Reference,
    Response,
    Snippet,
    Value,
    read_list,
    read_string_at,
    read_text,
    read_words,
    refuse_unfit_line,
    write_list,
    write_text,
)
from commonplace.formats.escaping import harmless_json

_TEXTS: Final = ("STATUS", "ERROR", "RATIONALE", "CONTENT")
_BETWEEN: Final = f"{MUTUAL}{DIRECTED}:,"
_RESPONSE_LINE: Final = re.compile(r"([A-Z][A-Z0-9_]*)[ \t]+(.*)\Z")
_NUMBER: Final = re.compile(r"0(?:\.[0-9]+)?|1(?:\.0+)?")

Item = TypeVar("Item")


def format_request(request: CspRequest) -> str:
    """Return the text of a request, with the empty line that ends it.

    Raises:
        CspError: a verb, a scope or an output is no name, a key is unknown or its value of the wrong kind.
    """
    for what, name in (("the verb", request.verb), ("IN:", request.scope), ("OUT:", request.output)):
        if not NAME.fullmatch(name):
            raise CspError(f"{what} is {name!r:.60}", remedy="write letters, digits and _")
    words = f" {_write_words(request.words)}" if request.words else ""
    lines = [f"TASK REQ:{request.verb}{words} IN:{request.scope} OUT:{request.output}"]
    lines += [f"{key} {_write_value(key, value)}" for key, value in request.values.items()]
    return "\n".join((*lines, "", ""))


def _write_value(key: str, value: Value) -> str:
    if key in LISTS and isinstance(value, tuple):
        return write_list(value)
    if key in OBJECTS and isinstance(value, dict):
        return write_object(value)
    if key in TEXTS and isinstance(value, str):
        return write_text(value)
    raise CspError(f"{key:.60} is {value!r:.60}", remedy=f"known are {', '.join(KEYS)}; TAGS is a tuple, PARAMS a dict")


def _write_words(words: str) -> str:
    is_bare = words == write_text(words) or (words.startswith('"') and _is_bare_in_quotes(words))
    return words if is_bare else harmless_json(words)


def _is_bare_in_quotes(words: str) -> bool:
    """Return whether words that begin with a quote come back as they are."""
    return write_text(f"-{words}") == f"-{words}" and read_words(words) == words


def write_object(values: dict[str, Any]) -> str:
    """Return a JSON object on one line."""
    return harmless_json(values)


def parse_response(text: str) -> Response:
    """Return the one response of a text, up to the empty line that ends it or the end.

    Raises:
        CspError: it is no response.
    """
    lines = [line.removesuffix("\r").strip(BLANKS) for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    written: dict[str, str] = {}
    snippets: list[Snippet] = []
    for number, line in enumerate(lines, 1):
        refuse_unfit_line(line, number)
        match = _RESPONSE_LINE.match(line)
        if match is None:
            raise CspError(f"line {number} is {line!r:.60}, not KEY value")
        key, value = match[1], match[2]
        if key == "SNIPPET":
            snippets.append(_passage(value))
        elif key in written:
            raise CspError(f"{key} appears twice", remedy="a response has each line but SNIPPET once")
        else:
            written[key] = value
    return _response(written, tuple(snippets))


def _response(written: Mapping[str, str], snippets: tuple[Snippet, ...]) -> Response:
    keys = list(written)
    texts = {key: read_text(value, key) for key, value in written.items() if key in _TEXTS or key not in RESERVED_KEYS}
    status = texts.get("STATUS")
    if status not in STATUSES:
        raise CspError(f"STATUS is {status!r:.60}", remedy=f"it is one of {', '.join(STATUSES)}")
    relevance = _listed(written, "RELEVANCE", _number)
    rates_links = {"LINKS", "RELEVANCE"} <= written.keys() and keys.index("LINKS") < keys.index("RELEVANCE")
    return Response(
        status=status,
        error=texts.get("ERROR", ""),
        rationale=texts.get("RATIONALE", ""),
        scope=read_list(written["SCOPE"], "SCOPE") if "SCOPE" in written else None,
        data=_listed(written, "DATA", _reference),
        relevance=None if rates_links else relevance,
        links=_listed(written, "LINKS", _relation),
        link_relevance=relevance if rates_links else None,
        snippets=snippets,
        facts=tuple((key, value) for key, value in texts.items() if key not in RESERVED_KEYS),
        content=texts.get("CONTENT", ""),
    )


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
        """Return a JSON string, or what stands before the first of some characters or the end."""
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
        """Return a JSON string."""
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
        """Take one of some characters, and return it."""
        found = self.mark(marks)
        if not found:
            where = "its end" if self.is_done() else f"{self._text[self._at :]!r:.60}"
            raise CspError(f"{self._key} has {where} where {' or '.join(marks)} is expected")
        return found

    def end(self) -> None:
        """Refuse anything in what follows."""
        if not self.is_done():
            raise CspError(f"{self._key} continues where it should end: {self._text[self._at :]!r:.60}")

    def _skip(self) -> None:
        while self._at < len(self._text) and self._text[self._at] in BLANKS:
            self._at += 1


def _listed(written: Mapping[str, str], key: str, read: Callable[[Values], Item]) -> tuple[Item, ...] | None:
    """Return the items of a line; () where it says none, None where there is no such line."""
    if key not in written:
        return None
    if written[key] == NONE:
        return ()
    values = Values(written[key], key)
    items = [read(values)]
    while not values.is_done():
        values.expect(",")
        items.append(read(values))
    return tuple(items)


def _reference(values: Values) -> Reference:
    kind = values.value(":,")
    values.expect(":")
    return Reference(kind, values.value(","))


def _relation(values: Values) -> CspLink:
    source = values.value(_BETWEEN)
    direction = values.expect(MUTUAL + DIRECTED)
    target = values.value(_BETWEEN)
    strength = _number(values) if values.mark(":") else None
    return CspLink(source, target, direction == DIRECTED, strength)


def _number(values: Values) -> float:
    written = values.value(",")
    if not _NUMBER.fullmatch(written):
        raise CspError(f"{written!r:.60} is not a number from 0 to 1")
    return float(written)


def _passage(written: str) -> Snippet:
    values = Values(written, "SNIPPET")
    if written.startswith('"'):
        id_ = values.value(":")
        values.expect(":")
    else:
        # An id may hold colons; the quote that opens the text is the first one on the line.
        before, quote, _ = written.partition('"')
        id_, colon, between = before.rpartition(":")
        id_ = id_.strip(BLANKS)
        if not (id_ and colon and quote) or between.strip(BLANKS):
            raise CspError(f"SNIPPET is {written!r:.60}", remedy='it is id:"text"')
        values = Values(written[len(before) :], "SNIPPET")
    text = values.string()
    values.end()
    return Snippet(id_, text)
