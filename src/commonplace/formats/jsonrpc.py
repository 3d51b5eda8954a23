"""Encode and decode JSON-RPC 2.0 messages, one a line, as the Model Context Protocol uses them."""

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
"""In characters: a model reads it, and it may repeat what the model sent."""

_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[\w.:-]{0,99}")\s*'
_ID_FIRST = lazy_pattern(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb",")
_ID_LAST = lazy_pattern(rb",\s*" + _ID + rb"\}\s*$")
_OWN_TO_THE_CLIENT = ("jsonrpc", "id")
_SURROGATE = lazy_pattern("[\ud800-\udfff]")

RequestId: TypeAlias = int | str
Answer: TypeAlias = dict[str, Any]


class ProtocolError(CommonplaceError):
    """Answer the request with this JSON-RPC error; `data`, when given, goes with it."""

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
    """A message that is no call: what to answer, and to which id where one could be read."""

    error: ProtocolError
    id: RequestId | None = None


Message: TypeAlias = Call | Malformed | None


def decode(line: bytes) -> Any:
    """Return the JSON value of one line, with U+FFFD for each lone surrogate in it.

    Clients in JavaScript cut a text between the two halves of an emoji; neither UTF-8 nor a database can hold a half.

    Raises:
        ProtocolError: the line is not UTF-8 or not JSON, or the id of a request holds a lone surrogate.
    """
    try:
        value = read_json(line.decode("utf-8"))
        text = json.dumps(value, ensure_ascii=False) if b"\\u" in line else ""
        if text.isascii() or not _SURROGATE.search(text):
            return value
        if isinstance(value, dict) and _SURROGATE.search(str(value.get("id"))):
            # An answer could not repeat it.
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
    """Return what one JSON value asks for: a call, or the error to answer.

    None for what is not answered: an answer, as we ask nothing, and a notification that is malformed.
    """
    if not isinstance(value, dict):
        return Malformed(ProtocolError(INVALID_REQUEST, "a message is a JSON object"))
    given = value.get("id")
    # JSON-RPC allows null and fractions as ids, the protocol does not; bool is an int to Python only.
    known = given if isinstance(given, int | str) and not isinstance(given, bool) else None
    has_method, fault = "method" in value, ""
    if value.get("jsonrpc") != "2.0":
        fault = 'a message has "jsonrpc": "2.0"'
    elif "id" in value and known is None and has_method:
        fault = "the id of a request is a string or an integer"
    elif has_method and not isinstance(value["method"], str):
        fault = "the method is a string"
    elif not (has_method or "result" in value or "error" in value):
        fault = "a message names a method"
    if fault:
        return Malformed(ProtocolError(INVALID_REQUEST, fault), known)
    if not has_method:
        return None
    params = {} if value.get("params") is None else value["params"]
    if isinstance(params, dict):
        return Call(value["method"], params, known)
    return None if known is None else Malformed(ProtocolError(INVALID_PARAMS, "params is a JSON object"), known)


def id_at_an_end(head: bytes, tail: bytes) -> RequestId | None:
    """Return the id of a request of which only the first and last bytes are known.

    Clients write it first or last. Anywhere else an id could as well be one in the parameters.
    """
    found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
    if found is None:
        return None
    text = found[1].decode("ascii")
    return text[1:-1] if text.startswith('"') else int(text)


def result_of(call_id: RequestId | None, result: Mapping[str, Any]) -> Answer:
    """Return the answer to a request that was done."""
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


def error_of(call_id: RequestId | None, error: ProtocolError) -> Answer:
    """Return the answer to a request that was refused; without an id where none could be read."""
    told: dict[str, Any] = {"code": error.code, "message": shortened(str(error))}
    if error.data is not None:
        told["data"] = error.data
    return {"jsonrpc": "2.0", "id": call_id, "error": told}


def shortened(message: str) -> str:
    """Return a message, without its middle if it is long: the problem is at its beginning, the remedy at its end."""
    if len(message) <= MAX_MESSAGE_LENGTH:
        return message
    half = (MAX_MESSAGE_LENGTH - 1) // 2
    return f"{message[:half]}…{message[-half:]}"


def notification(method: str, params: Mapping[str, Any]) -> Answer:
    """Return a message that expects no answer."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Answer) -> bytes:
    """Return a message as one line without its end; JSON escapes every newline within.

    Invisible characters in its texts are escaped, see `escaping`; only its id is as the client gave it.

    Raises:
        ValueError: a value in it is no JSON: not a number, or of a type that JSON lacks.
        TypeError: the same.
    """
    head = {name: message[name] for name in _OWN_TO_THE_CLIENT if name in message}
    rest = {name: value for name, value in message.items() if name not in head}
    return f"{json.dumps(head, ensure_ascii=False, separators=(',', ':'))[:-1]},{visible_json(rest)[1:]}".encode()


MAX_LINE_LENGTH = 4 * 1024 * 1024
_DRAINED_AT_ONCE = 64 * 1024
_KEPT = 256


@dataclass(frozen=True, slots=True)
class TooLong:
    """Stands for a line that was longer than `MAX_LINE_LENGTH` bytes and has been read past: how it began and ended."""

    head: bytes
    tail: bytes


def read_lines(stream: BinaryIO) -> Iterator[bytes | TooLong]:
    """Yield each line without its end; blank ones are passed over, and one that is too long is told, not kept.

    The text after the last newline is yielded too: a writer that died in the middle of a message is answered that
    it is not JSON, and one that only forgot the newline is served.
    """
    while line := stream.readline(MAX_LINE_LENGTH + 1):
        if len(line) > MAX_LINE_LENGTH and not line.endswith(b"\n"):
            tail = line[-_KEPT:]
            while not tail.endswith(b"\n") and (part := stream.readline(_DRAINED_AT_ONCE)):
                tail = (tail + part)[-_KEPT:]
            yield TooLong(line[:_KEPT], tail)
        elif stripped := line.strip(b" \t\r\n"):
            yield stripped


class LineWriter:
    """Writes whole lines from any thread; after the reader has gone it takes lines and drops them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._turn = threading.Lock()
        self._broken = threading.Event()

    @property
    def is_broken(self) -> bool:
        """Return whether the reader has closed the stream."""
        return self._broken.is_set()

    def write(self, line: bytes) -> None:
        """Write one line, given without its end, and flush it."""
        with self._turn:
            if self.is_broken:
                return
            try:
                left = memoryview(line + b"\n")
                while left:
                    left = left[self._stream.write(left) :]
                self._stream.flush()
            except (OSError, ValueError):
                # ValueError: the stream was closed. Either way the client is gone, and no error can be reported to it.
                self._broken.set()
