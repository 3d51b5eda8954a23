"""Read and write responses of CSP/1, the text protocol of the memory specialist. It knows lines, no memories.

    STATUS OK
    SCOPE [billing]
    DATA mem:7d1c,mem:0b8f
    RELEVANCE 0.89,0.76
    LINKS billing↔postgres:0.89
    SNIPPET 7d1c:"We chose Postgres for billing"

RELEVANCE stands below the line that it rates: DATA, or LINKS. Other lines, such as `TIER_WRITTEN short`, are texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, get_args

from commonplace.formats.csp_text import (
    BLANKS,
    DIRECTED,
    MUTUAL,
    NAME,
    CspError,
    Values,
    read_list,
    read_text,
    refuse_unfit_line,
    write_item,
    write_list,
    write_string,
    write_text,
)

Status = Literal["OK", "PARTIAL", "FAIL"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)
NONE: Final = "none"

_OWN_KEYS: Final = ("STATUS", "ERROR", "RATIONALE", "SCOPE", "DATA", "RELEVANCE", "LINKS", "SNIPPET", "CONTENT")
_TEXTS: Final = ("STATUS", "ERROR", "RATIONALE", "CONTENT")
_BETWEEN: Final = f"{MUTUAL}{DIRECTED}:,"
_LINE: Final = re.compile(r"([A-Z][A-Z0-9_]*)[ \t]+(.*)\Z")
_KEY: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_NUMBER: Final = re.compile(r"0(?:\.[0-9]+)?|1(?:\.0+)?")

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Reference:
    """What can be asked for again: `mem:…`, `episode:…`, `entity:…`."""

    kind: str
    id: str


@dataclass(frozen=True, slots=True)
class Relation:
    """How two entities, or two memories by their ids, hang together: `a→b` or `a↔b:0.85`. `strength`: 0–1, or None."""

    source: str
    target: str
    is_directed: bool = False
    strength: float | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The part of a memory that answers, by the memory's id."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Response:
    """An answer. Where a tuple is None its line is left out; an empty one is written `none`, a scope `[]`.

    Attributes:
        error, rationale, content: "" has no line.
        scope: the topics that were found.
        relevance: 0–1, written with two decimals, of each of `data`.
        link_relevance: likewise of each of `links`; only one of both is given.
        facts: any other lines, (key, value).
        content: a text, always written as a JSON string.
    """

    status: Status = "OK"
    error: str = ""
    rationale: str = ""
    scope: tuple[str, ...] | None = None
    data: tuple[Reference, ...] | None = None
    relevance: tuple[float, ...] | None = None
    links: tuple[Relation, ...] | None = None
    link_relevance: tuple[float, ...] | None = None
    snippets: tuple[Passage, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    content: str = ""


def format_response(response: Response) -> str:
    """Return the text of a response, with the empty line that ends it.

    Raises:
        CspError: a key or a kind is no name, or a fact has a key that the response itself writes.
    """
    lines: list[tuple[str, str]] = [("STATUS", response.status)]
    lines += [("ERROR", write_text(response.error))] if response.error else []
    lines += [("RATIONALE", write_text(response.rationale))] if response.rationale else []
    if response.scope is not None:
        lines.append(("SCOPE", write_list(response.scope)))
    if response.data is not None:
        lines.append(("DATA", ",".join(map(write_reference, response.data)) or NONE))
    if response.relevance is not None:
        lines.append(("RELEVANCE", _write_numbers(response.relevance)))
    if response.links is not None:
        lines.append(("LINKS", ",".join(map(write_relation, response.links)) or NONE))
    if response.link_relevance is not None:
        lines.append(("RELEVANCE", _write_numbers(response.link_relevance)))
    for each in response.snippets:
        lines.append(("SNIPPET", f"{write_item(each.id)}:{write_string(each.text)}"))
    for key, value in response.facts:
        if key in _OWN_KEYS or not _KEY.fullmatch(key):
            raise CspError(f"a fact has the key {key!r:.60}", remedy="take a name in capitals that no other line has")
        lines.append((key, write_text(value)))
    lines += [("CONTENT", write_string(response.content))] if response.content else []
    return "\n".join((*(f"{key} {value}" for key, value in lines), "", ""))


def parse_response(text: str) -> Response:
    """Return the one response of a text, up to the empty line that ends it or the end.

    Raises:
        CspError: it is no response.
    """
    lines = [line.removesuffix("\r").strip(BLANKS) for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    written: dict[str, str] = {}
    snippets: list[Passage] = []
    for number, line in enumerate(lines, 1):
        refuse_unfit_line(line, number)
        match = _LINE.match(line)
        if match is None:
            raise CspError(f"line {number} is {line!r:.60}, not KEY value")
        key, value = match[1], match[2]
        if key == "SNIPPET":
            snippets.append(_passage(value))
        elif key in written:
            raise CspError(f"{key} stands there twice", remedy="a response has each line but SNIPPET once")
        else:
            written[key] = value
    return _response(written, tuple(snippets))


def write_reference(reference: Reference) -> str:
    """Return `kind:id`.

    Raises:
        CspError: the kind is no name.
    """
    if not NAME.fullmatch(reference.kind):
        raise CspError(f"a reference is of the kind {reference.kind!r:.60}", remedy="write letters, digits and _")
    return f"{reference.kind}:{write_item(reference.id)}"


def write_relation(relation: Relation) -> str:
    """Return `source→target` or `source↔target`, with the strength where there is one."""
    mark = DIRECTED if relation.is_directed else MUTUAL
    strength = "" if relation.strength is None else f":{relation.strength:.2f}"
    # A colon in a name would be taken for the one before the strength.
    return f"{write_item(relation.source, also=':')}{mark}{write_item(relation.target, also=':')}{strength}"


def read_reference(written: str, key: str) -> Reference:
    """Return the reference that a text is.

    Raises:
        CspError: it is none, or more than one.
    """
    values = Values(written, key)
    found = _reference(values)
    values.end()
    return found


def _response(written: Mapping[str, str], snippets: tuple[Passage, ...]) -> Response:
    keys = list(written)
    texts = {key: read_text(value, key) for key, value in written.items() if key in _TEXTS or key not in _OWN_KEYS}
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
        facts=tuple((key, value) for key, value in texts.items() if key not in _OWN_KEYS),
        content=texts.get("CONTENT", ""),
    )


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


def _relation(values: Values) -> Relation:
    source = values.value(_BETWEEN)
    direction = values.expect(MUTUAL + DIRECTED)
    target = values.value(_BETWEEN)
    strength = _number(values) if values.mark(":") else None
    return Relation(source, target, direction == DIRECTED, strength)


def _number(values: Values) -> float:
    written = values.value(",")
    if not _NUMBER.fullmatch(written):
        raise CspError(f"{written!r:.60} is no number from 0 to 1")
    return float(written)


def _write_numbers(numbers: tuple[float, ...]) -> str:
    return ",".join(f"{number:.2f}" for number in numbers) or NONE


def _passage(written: str) -> Passage:
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
    return Passage(id_, text)
