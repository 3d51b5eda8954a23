"""Parse requests and format responses of CSP/1, the text protocol of the memory specialist.

The manual, docs/formats/csp.md, has the grammar. No value can end its line, list or quotes: control characters, marks
that change the direction of writing and invisible characters are always written as JSON escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, get_args

from commonplace.dataclasses import dataclass, field
from commonplace.errors import UsageError
from commonplace.formats.escaping import HIDDEN, harmless_json
from commonplace.formats.json_values import read_json

T = TypeVar("T")

BAD_REQUEST: Final = "BAD_REQUEST"
BAD_JSON: Final = "BAD_JSON"
BAD_ENCODING: Final = "BAD_ENCODING"

NAME: Final = re.compile(r"[A-Za-z0-9_]+")
"""Pattern of a scope, an output type and a kind of reference."""

BLANKS: Final = " \t"
DIRECTED: Final = "→"
MUTUAL: Final = "↔"

_UNSAFE: Final = re.compile(f"[\x00-\x1f]|{HIDDEN}")
_IN_ITEM: Final = re.compile(f'[",{MUTUAL}{DIRECTED}\x00-\x1f]|{HIDDEN}')
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_SKIP_BLANKS: Final = re.compile(r"[ \t]*")
_DECODER: Final = json.JSONDecoder()


class CspError(UsageError):
    """Correct the text: it is not CSP/1. `code` goes into the ERROR line.

    Every reader raises it, and every writer whose value CSP/1 cannot express.
    """

    def __init__(self, message: str, *, code: str = BAD_REQUEST, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.code = code


def read_list(text: str, key: str) -> tuple[str, ...]:
    """Return the items of `[one,two]`."""
    if len(text) < len("[]") or text[0] != "[" or text[-1] != "]":
        raise CspError(f"{key} is {text!r:.60}, not a list", remedy=f"write {key} [one,two]")
    inner, position, items = text[1:-1], 0, list[str]()
    while position <= len(inner) and inner.strip(BLANKS):
        item, position = _read_value(inner, position, key)
        items.append(item)
        if position < len(inner) and inner[position] != ",":
            raise CspError(f"{key} has {inner[position:]!r:.60} where , is expected")
        position += 1
    return tuple(items)


def _read_value(text: str, position: int, key: str) -> tuple[str, int]:
    """Return the JSON string at a position, or the text before the next comma, and where the value ends."""
    position = _SKIP_BLANKS.match(text, position).end()  # type: ignore[union-attr] # it matches "" too
    if text.startswith('"', position):
        value, position = read_string_at(text, position, key)
        return value, _SKIP_BLANKS.match(text, position).end()  # type: ignore[union-attr]
    end = text.find(",", position)
    end = len(text) if end < 0 else end
    bare = text[position:end].strip(BLANKS)
    if not bare or '"' in bare:
        problem = "an empty value" if not bare else f"a quote inside the value {bare!r:.60}"
        raise CspError(f"{key} has {problem}", remedy='write the value as one JSON string, "…"')
    return bare, end


def write_list(items: tuple[str, ...]) -> str:
    """Return items as `[one,two]`."""
    return f"[{','.join(map(write_item, items))}]"


def write_item(text: str, also: str = "") -> str:
    """Return a value as an item of a list: bare, or as a JSON string if it holds characters that delimit a list.

    Args:
        also: further characters that must not occur outside a JSON string.
    """
    is_bare = text and text == text.strip() and not _IN_ITEM.search(text) and not any(char in text for char in also)
    return text if is_bare else harmless_json(text)


def read_text(text: str, key: str) -> str:
    """Return the value that fills the rest of a line; one that starts with a quote must be one JSON string."""
    if not text.startswith('"'):
        return text
    value, end = read_string_at(text, 0, key)
    if text[end:].strip(BLANKS):
        raise CspError(
            f"{key} continues after its closing quote: {text[end:]!r:.60}",
            code=BAD_JSON,
            remedy=r"a value that starts with a quote is one JSON string: write quotes inside it as \"",
        )
    return value


def write_text(text: str) -> str:
    """Return a value for the rest of a line: bare if `read_text` would return it unchanged, else as a JSON string."""
    is_bare = text and text == text.strip() and text[0] != '"' and not _UNSAFE.search(text)
    return text if is_bare else harmless_json(text)


def read_string_at(text: str, at: int, key: str) -> tuple[str, int]:
    """Return the value of the JSON string at a position, and the position after it."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        value, end = None, at
    if not isinstance(value, str):
        raise CspError(
            f"{key} is not a JSON string: {text[at:]!r:.60}",
            code=BAD_JSON,
            remedy=r"open and close it with a quote, and write quotes inside it as \" and line ends as \n",
        )
    return value, end


def read_object(text: str, key: str) -> dict[str, Any]:
    """Return the JSON object in a text; refuse duplicate names."""

    def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for name, value in pairs:
            if name in members:
                raise ValueError(f"{name!r} appears twice")
            members[name] = value
        return members

    remedy = f'write {key} {{"name": value}}'
    try:
        data = read_json(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        message = f"{key} is not JSON: {reason:.120}"
        raise CspError(message, code=BAD_JSON, remedy=f"{remedy} on one line") from error
    if not isinstance(data, dict):
        raise CspError(f"{key} is not a JSON object: {text!r:.60}", code=BAD_JSON, remedy=remedy)
    return data


def refuse_unfit_line(line: str, number: int) -> None:
    """Refuse a line with lone surrogates, or with control characters, which must be escaped in a JSON string."""
    if _SURROGATE.search(line):
        raise CspError(f"line {number} is not UTF-8", code=BAD_ENCODING, remedy="send the request as UTF-8")
    if control := _CONTROL.search(line):
        raise CspError(
            f"line {number} holds the control character U+{ord(control.group()):04X}",
            remedy="write the value as a JSON string with an escape, or leave the character out",
        )


Value = str | tuple[str, ...] | dict[str, Any]
"""The value of a line: a list for TAGS, a JSON object for PARAMS, else text."""

LISTS: Final = ("TAGS",)
OBJECTS: Final = ("PARAMS",)
TEXTS: Final = ("QUERY", "MAX_RESULTS", "ENTITY1", "ENTITY2", "CONTENT", "CONTEXT", "TIER")
KEYS: Final = (*TEXTS, *LISTS, *OBJECTS)

_TASK: Final = re.compile(r"TASK[ \t]+REQ:([^ \t]+)(.*)\Z")
_TARGET: Final = re.compile(r"(.*)[ \t]IN:([^ \t]*)[ \t]+OUT:([^ \t]*)\Z")
_LINE: Final = re.compile(r"([A-Z][A-Z0-9_]*)(?:[ \t]+(.*))?\Z")
_FORM: Final = "TASK REQ:<verb> [words] IN:MEM OUT:<type>"


@dataclass(frozen=True, slots=True)
class CspRequest:
    """A request to the specialist.

    Attributes:
        words: the text after the verb, or "".
        scope: where to look, from IN:.
        output: the type of output to return, from OUT:.
        values: the values of the lines below, by key, in their order.
    """

    verb: str
    words: str = ""
    scope: str = "MEM"
    output: str = "MEM_REFS"
    values: Mapping[str, Value] = field(default_factory=dict)


def parse_request(text: str) -> CspRequest:
    """Return the only request in a text, skipping empty lines before and after it."""
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
    task = _TASK.match(lines[first])
    target = _TARGET.match(task[2]) if task else None
    if task is None or target is None:
        raise CspError(f"the request line is {lines[first]!r:.80}", remedy=f"write {_FORM}")
    verb, (words, scope, output) = task[1], target.groups()
    for part, name in (("verb", verb), ("IN:", scope), ("OUT:", output)):
        if not NAME.fullmatch(name):
            raise CspError(f"{part} is {name!r:.60}", remedy=f"write {_FORM}")
    values: dict[str, Value] = {}
    for number in filled[1:]:
        key, value = _line(lines[number], number + 1)
        if key in values:
            raise CspError(f"{key} appears twice, again in line {number + 1}", remedy="give it once")
        values[key] = value
    return CspRequest(verb, read_words(words.strip(BLANKS)), scope, output, values)


def _line(line: str, number: int) -> tuple[str, Value]:
    match = _LINE.match(line)
    if match is None:
        message = f"line {number} is {line!r:.60}, not KEY value"
        raise CspError(message, remedy="write a text of several lines as one JSON string")
    key, text = match[1], match[2]
    if key not in KEYS:
        raise CspError(f"line {number} has the unknown key {key:.60}", remedy=f"known are {', '.join(KEYS)}")
    if not text:
        raise CspError(f"{key} in line {number} has no value", remedy="give one, or leave the line out")
    if key in LISTS:
        return key, read_list(text, key)
    return key, read_object(text, key) if key in OBJECTS else read_text(text, key)


def read_words(text: str) -> str:
    """Return the words after a verb: the value if they are one complete JSON string, else the words unchanged.

    People quote words in questions, so an opening quote alone does not announce a JSON string as it does in a line.
    """
    try:
        return read_text(text, "REQ:")
    except CspError:
        return text


Status = Literal["OK", "PARTIAL", "FAIL"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
NONE: Final = "none"

RESERVED_KEYS: Final = ("STATUS", "ERROR", "RATIONALE", "SCOPE", "DATA", "RELEVANCE", "LINKS", "SNIPPET", "CONTENT")
_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Reference:
    """An id that a later request can name: `mem:…`, `episode:…`, `entity:…`."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class CspLink:
    """A relation of two entities, or of two memories by id: `a→b` or `a↔b:0.85`. `strength`: 0–1, or None."""

    source: str
    target: str
    is_directed: bool = False
    strength: float | None = None


@dataclass(frozen=True, slots=True)
class Snippet:
    """The part of a memory that answers the request; `id` is the memory's."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Response:
    """A response. A tuple that is None has no line; an empty one is written `none`, an empty scope `[]`.

    Attributes:
        error, rationale, content: "" has no line.
        scope: the topics that were found.
        relevance: one score per item of `data`, 0–1, written with two decimals.
        link_relevance: likewise per item of `links`; only one of the two is set.
        facts: any other lines, (key, value).
        content: a text, always written as a JSON string.
    """

    status: Status = "OK"
    error: str = ""
    rationale: str = ""
    scope: tuple[str, ...] | None = None
    data: tuple[Reference, ...] | None = None
    relevance: tuple[float, ...] | None = None
    links: tuple[CspLink, ...] | None = None
    link_relevance: tuple[float, ...] | None = None
    snippets: tuple[Snippet, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    content: str = ""


def format_response(response: Response) -> str:
    """Return a response as text that ends with an empty line."""
    optional = [
        ("STATUS", response.status),
        ("ERROR", response.error and write_text(response.error)),
        ("RATIONALE", response.rationale and write_text(response.rationale)),
        ("SCOPE", "" if response.scope is None else write_list(response.scope)),
        ("DATA", _join(response.data, write_reference)),
        ("RELEVANCE", _join(response.relevance, "{:.2f}".format)),
        ("LINKS", _join(response.links, write_relation)),
        ("RELEVANCE", _join(response.link_relevance, "{:.2f}".format)),
        *(("SNIPPET", f"{write_item(snippet.id)}:{harmless_json(snippet.text)}") for snippet in response.snippets),
    ]
    lines = [line for line in optional if line[1]]
    for key, value in response.facts:
        if key in RESERVED_KEYS or not _KEY.fullmatch(key):
            raise CspError(f"a fact has the key {key!r:.60}", remedy="take a name in capitals that no other line has")
        lines.append((key, write_text(value)))
    lines += [("CONTENT", harmless_json(response.content))] if response.content else []
    return "\n".join((*(f"{key} {value}" for key, value in lines), "", ""))


def write_reference(reference: Reference) -> str:
    """Return `kind:id`."""
    if not NAME.fullmatch(reference.kind):
        raise CspError(f"a reference is of the kind {reference.kind!r:.60}", remedy="write letters, digits and _")
    return f"{reference.kind}:{write_item(reference.id)}"


def write_relation(relation: CspLink) -> str:
    """Return `source→target` or `source↔target`, with `:strength` if it has one."""
    mark = DIRECTED if relation.is_directed else MUTUAL
    strength = "" if relation.strength is None else f":{relation.strength:.2f}"
    # A bare colon in a name would read as the one before the strength.
    return f"{write_item(relation.source, also=':')}{mark}{write_item(relation.target, also=':')}{strength}"


def read_reference(text: str, key: str) -> Reference:
    """Parse `kind:id`."""
    kind, _, id_text = text.partition(":")
    id_, end = _read_value(id_text, 0, key)
    if end < len(id_text):
        raise CspError(f"{key} continues where it should end: {id_text[end:]!r:.60}")
    return Reference(kind.strip(BLANKS), id_)


def _join(values: Sequence[T] | None, write: Callable[[T], str]) -> str:
    return "" if values is None else ",".join(map(write, values)) or NONE
