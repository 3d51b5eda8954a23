"""JSON Schemas of the tools' arguments and results. A model reads them in every session, so they are short."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from commonplace.formats.escaping import visible
from commonplace.mcp.schema import Schema
from commonplace.text.budget import MAX_TOKENS, most_tokens

MAX_RESULTS: Final = 50
DEFAULT_RESULTS: Final = 6
MAX_LINES: Final = 400
DEFAULT_LINES: Final = 120
CONTEXT_TOKENS: Final = 2_000
MAX_CONTEXT_TOKENS: Final = 8_000


def _object(properties: Mapping[str, Any], *required: str) -> Schema:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _closed(properties: Mapping[str, Any], *required: str) -> Schema:
    return {**_object(properties, *required), "additionalProperties": False}


def _list(items: Schema, **values: Any) -> Schema:
    return {"type": "array", "items": items, **values}


_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_INTEGER: Final[Schema] = {"type": "integer"}
_FLAG: Final[Schema] = {"type": "boolean"}
_WORDS: Final[Schema] = _list(_TEXT)
_LIST: Final[Schema] = {"type": "array"}
"""Of results, which nobody has to be told how to write."""
_SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}


def _count(most: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": most}


SEARCH: Final = _closed(
    {
        "query": _TEXT,
        "also": _list(_TEXT, maxItems=4),
        "maxResults": _count(MAX_RESULTS),
        "minScore": _SHARE,
        "kinds": _list({"enum": ["memory", "artifact", "knowledge"]}),
        "asOf": {**_TEXT, "description": "known then, as 'last Tuesday'"},
        "validAt": {**_TEXT, "description": "true then"},
    },
    "query",
)
_RESULT: Final = _object(
    {
        "id": _TEXT,
        "path": _TEXT,
        "startLine": _INTEGER,
        "endLine": _INTEGER,
        "score": _NUMBER,
        "confidence": _TEXT,
        "snippet": _TEXT,
        "source": _TEXT,
    }
)
SEARCH_RESULT: Final = _object({"results": _list(_RESULT)})

GET: Final = _closed(
    {
        "path": {**_TEXT, "description": "as memory_search gave it, or memory:ID"},
        "from": {"type": "integer", "minimum": 1},
        "lines": _count(MAX_LINES),
    },
    "path",
)
GET_RESULT: Final = _object({"path": _TEXT, "text": _TEXT, "nextFrom": _INTEGER, "cut": _FLAG})

STORE: Final = _closed(
    {
        "content": {**_TEXT, "description": "self-contained: names, dates, reasons"},
        "tier": {"enum": ["ultra", "short", "medium", "long"], "description": "short fades in days, long stays"},
        "tags": _WORDS,
        "category": {**_TEXT, "description": "decision, preference, fact, context, lesson, event"},
        "origin": {"enum": ["user", "agent", "tool", "document", "web"], "description": "who said it"},
        "source": _TEXT,
        "at": {**_TEXT, "description": "when it happened"},
        "id": {**_TEXT, "description": "of a memory to correct"},
    },
    "content",
)
STORE_RESULT: Final = _object({"id": _TEXT, "outcome": _TEXT, "tier": _TEXT, "notices": _LIST})

LINK: Final = _closed(
    {
        "source": _TEXT,
        "target": _TEXT,
        "type": _TEXT,
        "strength": _NUMBER,
        "fact": {**_TEXT, "description": "a sentence; then of two names"},
    },
    "source",
    "target",
)
LINK_RESULT: Final = _object({"source": _TEXT, "target": _TEXT, "type": _TEXT, "strength": _NUMBER, "notices": _LIST})

GRAPH: Final = _closed(
    {
        "id": {**_TEXT, "description": "or a name, or review: open questions"},
        "query": _TEXT,
        "validAt": _TEXT,
        "asOf": _TEXT,
        "depth": _INTEGER,
        "limit": _INTEGER,
    }
)
GRAPH_RESULT: Final = _object({"facts": _LIST, "entities": _LIST, "memories": _LIST, "links": _LIST})

CONTEXT: Final = _closed(
    {
        "task": {**_TEXT, "description": "empty as a session starts"},
        "maxTokens": {**_count(MAX_CONTEXT_TOKENS), "minimum": 64},
        "agent": {**_TEXT, "description": "such as test-engineer"},
    }
)
CONTEXT_RESULT: Final = _object({"text": _TEXT, "references": _LIST, "tokens": _INTEGER})

FORGET: Final = _closed(
    {
        "ids": _list(_TEXT, maxItems=100),
        "tag": _TEXT,
        "source": _TEXT,
        "session": _TEXT,
        "confirm": {**_FLAG, "description": "only if the user wants it"},
    }
)
FORGET_RESULT: Final = _object(
    {"forgotten": _FLAG, "verified": _FLAG, "ids": _LIST, "counts": {"type": "object"}, "notices": _LIST}
)

WHY: Final = _closed({"query": _TEXT, "id": {**_TEXT, "description": "of a hit, or a path"}}, "query", "id")
WHY_RESULT: Final = _object(
    {
        "rank": _INTEGER,
        "score": _NUMBER,
        "signals": {"type": "object"},
        "matched": _LIST,
        "missing": _LIST,
        "rejected": _LIST,
    }
)


CountTokens = Callable[[str], int]


def has_room(count: CountTokens, *texts: str) -> bool:
    """Return whether each form of a response is within its budget; a short one need not be counted."""
    return all(most_tokens(text) <= MAX_TOKENS or count(text) <= MAX_TOKENS for text in texts)


def largest(count: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number, from 0 to `count`, that fits; whatever fits, fewer do too."""
    return count if fits(count) else bisect_right(range(1, count), False, key=lambda size: not fits(size))


def beginning(text: str, tokens: int, count: CountTokens) -> str:
    """Return a text as it is shown, or as much of its beginning as has so many tokens, with a mark where it was cut."""
    text = visible(text)
    if len(text) <= tokens or count(text) <= tokens:  # a token has a character at least
        return text
    most = min(len(text), tokens * 16)
    size = bisect_right(range(1, most), tokens - 1, key=lambda end: count(text[:end]))
    return text[:size].rstrip() + "…"


def ending(lines: Sequence[str], tokens: int, count: CountTokens) -> list[str]:
    """Return as many of the last lines as have so many tokens."""
    size = largest(len(lines), lambda size: count("\n".join(lines[len(lines) - size :])) <= tokens)
    return list(lines[len(lines) - size :])
