"""Encode and decode JSON-RPC 2.0 messages, one per line, as in the Model Context Protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, TypeAlias

from commonplace.dataclasses import dataclass
from commonplace.errors import CommonplaceError
from commonplace.formats.escaping import visible_json
from commonplace.formats.json_values import read_json
from commonplace.lazy_regex import lazy_pattern

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_MESSAGE_LENGTH = 2_000
"""Characters of an error message: a model reads it, and it may repeat the model's own input."""

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[\w.:-]{0,99}")\s*'
_ID_FIRST = lazy_pattern(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb",")
_ID_LAST = lazy_pattern(rb",\s*" + _ID + rb"\}\s*$")
_ENVELOPE = ("jsonrpc", "id")
_SURROGATE = lazy_pattern("[\ud800-\udfff]")

RequestId: TypeAlias = int | str
Answer: TypeAlias = dict[str, Any]


class ProtocolError(CommonplaceError):
    """Answer the request with this JSON-RPC error and its `data`, if any."""

    def __init__(self, code: int, message: str, *, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


@dataclass(frozen=True, slots=True)
class Call:
    """A request, or a notification where `id` is None."""

    method: str
    params: Mapping[str, Any]
    id: RequestId | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message that is not a valid call: the error to answer, and the id if it could be read."""

    error: ProtocolError
    id: RequestId | None = None


Message: TypeAlias = Call | Malformed | None


def decode(line: bytes) -> Any:
    """Return the JSON value of one line, with U+FFFD in place of lone surrogates.

    JavaScript clients may cut a text between the two halves of an emoji; neither UTF-8 nor a database can hold a half.

    Raises:
        ProtocolError: the line is not UTF-8 or not JSON, or the id of a request holds a lone surrogate.
    """
    try:
        value = read_json(line.decode("utf-8"))
        text = json.dumps(value, ensure_ascii=False) if b"\\u" in line else ""
        if text.isascii() or not _SURROGATE.search(text):
            return value
        if isinstance(value, dict) and _SURROGATE.search(str(value.get("id"))):
            # The answer could not repeat the id.
            raise ProtocolError(INVALID_REQUEST, "the id holds half of a surrogate pair, which is no character")
        return json.loads(_SURROGATE.sub("\ufffd", text))
    except UnicodeDecodeError as error:
        raise ProtocolError(PARSE_ERROR, f"byte {error.start + 1} of the line is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ProtocolError(PARSE_ERROR, f"the line is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ProtocolError(PARSE_ERROR, "the line nests arrays or objects too deeply") from error
    except ValueError as error:
        raise ProtocolError(PARSE_ERROR, f"the line is not JSON that can be read: {error}") from error


def read_message(value: Any) -> Message:
    """Return the call in a JSON value, or the error to answer.

    Return None for messages without an answer: responses, since we send no requests, and malformed notifications.
    """
    if not isinstance(value, dict):
        return Malformed(ProtocolError(INVALID_REQUEST, "a message is a JSON object"))
    raw_id = value.get("id")
    # JSON-RPC allows null and fractional ids, MCP does not; a bool is an int only in Python.
    call_id = raw_id if isinstance(raw_id, int | str) and not isinstance(raw_id, bool) else None
    has_method, fault = "method" in value, ""
    if value.get("jsonrpc") != "2.0":
        fault = 'a message has "jsonrpc": "2.0"'
    elif "id" in value and call_id is None and has_method:
        fault = "the id of a request is a string or an integer"
    elif has_method and not isinstance(value["method"], str):
        fault = "the method is a string"
    elif not (has_method or "result" in value or "error" in value):
        fault = "a message names a method"
    if fault:
        return Malformed(ProtocolError(INVALID_REQUEST, fault), call_id)
    if not has_method:
        return None
    params = {} if value.get("params") is None else value["params"]
    if isinstance(params, dict):
        return Call(value["method"], params, call_id)
    return None if call_id is None else Malformed(ProtocolError(INVALID_PARAMS, "params is a JSON object"), call_id)


def find_request_id(head: bytes, tail: bytes) -> RequestId | None:
    """Return the id of a request from its first and last bytes, or None.

    Clients write it first or last; an id anywhere else could belong to the parameters.
    """
    match = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    if match is None:
        return None
    text = match[1].decode("ascii")
    return text[1:-1] if text.startswith('"') else int(text)


def result_of(call_id: RequestId | None, result: Mapping[str, Any]) -> Answer:
    """Return the answer to a successful request."""
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def error_of(call_id: RequestId | None, error: ProtocolError) -> Answer:
    """Return the answer to a refused request; its id is None if none could be read."""
    payload: dict[str, Any] = {"code": error.code, "message": shorten(str(error))}
    if error.data is not None:
        payload["data"] = error.data
    return {"jsonrpc": "2.0", "id": call_id, "error": payload}


def shorten(message: str) -> str:
    """Return a message, without its middle if it is too long: it begins with the problem and ends with the remedy."""
    if len(message) <= MAX_MESSAGE_LENGTH:
        return message
    half = (MAX_MESSAGE_LENGTH - 1) // 2
    return f"{message[:half]}…{message[-half:]}"


def notification(method: str, params: Mapping[str, Any]) -> Answer:
    """Return a message that expects no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Answer) -> bytes:
    """Return a message as one line without a line end; JSON escapes every newline within.

    Invisible characters in its texts are escaped, see `escaping`; only the id stays as the client sent it.

    Raises:
        ValueError, TypeError: a value is NaN, infinite, or of a type that JSON lacks.
    """
    head = {name: message[name] for name in _ENVELOPE if name in message}
    body = {name: value for name, value in message.items() if name not in head}
    return f"{json.dumps(head, ensure_ascii=False, separators=(',', ':'))[:-1]},{visible_json(body)[1:]}".encode()


MAX_LINE_LENGTH = 4 * 1024 * 1024
_DRAIN_BYTES = 64 * 1024
_END_BYTES = 256


@dataclass(frozen=True, slots=True)
class OversizedLine:
    """A line longer than `MAX_LINE_LENGTH` bytes, of which only the first and last bytes are kept."""

    head: bytes
    tail: bytes


def read_lines(stream: BinaryIO) -> Iterator[bytes | OversizedLine]:
    """Yield each line without its end; skip blank lines, and replace a line that is too long by an `OversizedLine`.

    Text after the last newline is yielded too: a writer that only forgot the newline is served, and one that died
    within a message is answered that it is not JSON.
    """
    while line := stream.readline(MAX_LINE_LENGTH + 1):
        if len(line) > MAX_LINE_LENGTH and not line.endswith(b"\n"):
            tail = line[-_END_BYTES:]
            while not tail.endswith(b"\n") and (part := stream.readline(_DRAIN_BYTES)):
                tail = (tail + part)[-_END_BYTES:]
            yield OversizedLine(line[:_END_BYTES], tail)
        elif stripped := line.strip(b" \t\r\n"):
            yield stripped


class LineWriter:
    """Write whole lines from any thread; once the reader is gone, drop them silently."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = threading.Lock()
        self._broken = threading.Event()

    @property
    def is_broken(self) -> bool:
        """Whether the reader has closed the stream."""
        return self._broken.is_set()

    def write(self, line: bytes) -> None:
        """Write one line, given without its end, and flush it."""
        with self._turn:
            if self.is_broken:
                return
            try:
                unwritten = memoryview(line + b"\n")
                while unwritten:
                    unwritten = unwritten[self._stream.write(unwritten) :]
                self._stream.flush()
            except (OSError, ValueError):
                # ValueError: the stream was closed. Either way the client is gone, and no error can be reported to it.
                self._broken.set()
