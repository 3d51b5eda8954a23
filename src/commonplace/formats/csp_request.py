"""Read and write requests of CSP/1, the text protocol of the memory specialist. It knows lines, not what a verb does.

    TASK REQ:recall project setup IN:MEM OUT:MEM_REFS
    PARAMS {"max_results": 5, "min_relevance": 0.3}

A request ends at an empty line or with its text. Its grammar stands in the manual, docs/formats/csp.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from commonplace.formats.csp_text import (
    BLANKS,
    NAME,
    CspError,
    read_list,
    read_object,
    read_string,
    read_text,
    refuse_unfit_line,
    write_list,
    write_object,
    write_string,
    write_text,
)

Value = str | tuple[str, ...] | dict[str, Any]
"""Of a line: a text; for TAGS, a list; for PARAMS, a JSON object."""

LISTS: Final = ("TAGS",)
OBJECTS: Final = ("PARAMS",)
TEXTS: Final = ("QUERY", "MAX_RESULTS", "ENTITY1", "ENTITY2", "CONTENT", "CONTEXT", "TIER")
KEYS: Final = (*TEXTS, *LISTS, *OBJECTS)

_TASK: Final = re.compile(r"TASK[ \t]+REQ:([^ \t]+)(.*)\Z")
_WHERE: Final = re.compile(r"(.*)[ \t]IN:([^ \t]*)[ \t]+OUT:([^ \t]*)\Z")
_LINE: Final = re.compile(r"([A-Z][A-Z0-9_]*)(?:[ \t]+(.*))?\Z")
_FORM: Final = "TASK REQ:<verb> [words] IN:MEM OUT:<type>"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of the specialist.

    Attributes:
        words: what follows the verb, "" where nothing does.
        scope: where it is to be looked for, after IN:.
        output: what is expected back, after OUT:.
        values: what the lines below say, by key, in their order.
    """

    verb: str
    words: str = ""
    scope: str = "MEM"
    output: str = "MEM_REFS"
    values: Mapping[str, Value] = field(default_factory=dict)


def parse_request(text: str) -> Request:
    """Return the one request of a text; empty lines before and after it are passed over.

    Raises:
        CspError: it is no request, or more than one.
    """
    lines = [line.removesuffix("\r").strip(BLANKS) for line in text.removeprefix("\ufeff").split("\n")]
    filled = [number for number, line in enumerate(lines) if line]
    if not filled:
        raise CspError("the request is empty", remedy=f"write {_FORM}")
    first, last = filled[0], filled[-1]
    if len(filled) != last - first + 1:
        raise CspError(
            f"line {first + 1} begins a request, an empty line ends it, and line {last + 1} follows",
            remedy="send one request at a time, and write a text of several lines as one JSON string",
        )
    for number in filled:
        refuse_unfit_line(lines[number], number + 1)
    verb, words, scope, output = _task(lines[first])
    values: dict[str, Value] = {}
    for number in filled[1:]:
        key, value = _line(lines[number], number + 1)
        if key in values:
            raise CspError(f"{key} stands there twice, again in line {number + 1}", remedy="give it once")
        values[key] = value
    return Request(verb, words, scope, output, values)


def format_request(request: Request) -> str:
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


def _task(line: str) -> tuple[str, str, str, str]:
    """Return verb, words, scope and output of a request line."""
    task = _TASK.match(line)
    where = _WHERE.match(task[2]) if task else None
    if task is None or where is None:
        raise CspError(f"the request line is {line!r:.80}", remedy=f"write {_FORM}")
    for what, name in (("verb", task[1]), ("IN:", where[2]), ("OUT:", where[3])):
        if not NAME.fullmatch(name):
            raise CspError(f"{what} is {name!r:.60}", remedy=f"write {_FORM}")
    return task[1], _read_words(where[1].strip(BLANKS)), where[2], where[3]


def _line(line: str, number: int) -> tuple[str, Value]:
    match = _LINE.match(line)
    if match is None:
        raise CspError(
            f"line {number} is {line!r:.60}, not KEY value",
            remedy="write a text of several lines as one JSON string",
        )
    key, written = match[1], match[2]
    if key not in KEYS:
        raise CspError(f"line {number} has the unknown key {key:.60}", remedy=f"known are {', '.join(KEYS)}")
    if not written:
        raise CspError(f"{key} in line {number} has no value", remedy="give one, or leave the line out")
    if key in LISTS:
        return key, read_list(written, key)
    return key, read_object(written, key) if key in OBJECTS else read_text(written, key)


def _write_value(key: str, value: Value) -> str:
    if key in LISTS and isinstance(value, tuple):
        return write_list(value)
    if key in OBJECTS and isinstance(value, dict):
        return write_object(value)
    if key in TEXTS and isinstance(value, str):
        return write_text(value)
    raise CspError(f"{key:.60} is {value!r:.60}", remedy=f"known are {', '.join(KEYS)}; TAGS is a tuple, PARAMS a dict")


def _read_words(written: str) -> str:
    """Return the words after a verb: people quote words in questions, so only what is a JSON string as a whole is one.

    Not so for the values of lines, where a quote at the start announces a JSON string.
    """
    if written.startswith('"'):
        try:
            return read_string(written, "REQ:")
        except CspError:
            return written
    return written


def _write_words(words: str) -> str:
    is_bare = words == write_text(words) or (words.startswith('"') and _is_bare_in_quotes(words))
    return words if is_bare else write_string(words)


def _is_bare_in_quotes(words: str) -> bool:
    """Return whether words that begin with a quote come back as they are."""
    return write_text(f"-{words}") == f"-{words}" and _read_words(words) == words
