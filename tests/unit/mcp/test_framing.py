"""Bytes that are no message are answered as JSON-RPC says, and never end the server."""

from __future__ import annotations

import io
import json
import os
import threading
from typing import Any

import pytest
from tests.unit.mcp.conversation import INFO, answers, line, request

from commonplace.formats.jsonrpc import MAX_LINE_LENGTH, LineWriter
from commonplace.mcp.protocol import Registry
from commonplace.mcp.server import CLIENT_GONE, serve

EMPTY = Registry(*INFO)
PING = line("ping")
PONG: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "result": {}}


def error_of(*lines: bytes) -> tuple[int, Any, str]:
    """Return code, id and message of the only answer to some bytes; a ping behind them is answered as ever."""
    error, pong = answers(EMPTY, *lines, PING)
    assert pong == PONG
    assert error["jsonrpc"] == "2.0"
    return error["error"]["code"], error["id"], error["error"]["message"]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"{", "not JSON"),
        (b"hello", "not JSON"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"} x', "not JSON"),
        (b'{"a": "\xff"}', "byte 8 of the line is not UTF-8"),
        (b'{"a": "\x00"}', "not JSON"),
        (b"\x00", "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": 1e999}', "1e999 is too large"),
        (b"[" * 100_000, "too deeply"),
        (b'{"id": ' + b"9" * 5000 + b"}", "not JSON that can be read"),
    ],
)
def test_line_that_is_no_json_is_a_parse_error_without_id(bad: bytes, told: str) -> None:
    code, call_id, message = error_of(bad + b"\n")
    assert (code, call_id) == (-32700, None)
    assert told in message


@pytest.mark.parametrize(
    ("value", "call_id"),
    [
        ("1", None),
        ('"ping"', None),
        ("null", None),
        ("[]", None),
        ('[{"jsonrpc": "2.0", "id": 5, "method": "ping"}]', None),
        ("{}", None),
        ('{"jsonrpc": "1.0", "id": 5, "method": "ping"}', 5),
        ('{"id": 5, "method": "ping"}', 5),
        ('{"jsonrpc": "2.0", "id": 5}', 5),
        ('{"jsonrpc": "2.0", "id": 5, "method": 7}', 5),
        ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None),
        ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None),
        ('{"jsonrpc": "2.0", "id": 1.0, "method": "ping"}', None),
        ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', None),
    ],
)
def test_json_that_is_no_request_is_invalid_and_told_with_its_id_where_it_has_one(value: str, call_id: Any) -> None:
    assert error_of(value.encode() + b"\n")[:2] == (-32600, call_id)


@pytest.mark.parametrize("params", ["[]", '"x"', "3", "true"])
def test_params_that_are_no_object_are_invalid(params: str) -> None:
    bad = f'{{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {params}}}\n'
    assert error_of(bad.encode())[:2] == (-32602, "a")


@pytest.mark.parametrize(
    "silent",
    [
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "nothing"}}',
        '{"jsonrpc": "2.0", "method": "no/such"}',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]}',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}',
        '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}',
        '{"jsonrpc": "2.0", "id": 3, "result": {}}',
        '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
        "",
        " \t\r",
    ],
)
def test_notifications_answers_and_blank_lines_are_never_answered(silent: str) -> None:
    assert answers(EMPTY, silent.encode() + b"\n", PING) == [PONG]


def test_line_over_the_limit_is_refused_by_name_of_the_limit_and_read_past() -> None:
    code, call_id, message = error_of(b'{"a": "' + b"x" * (3 * MAX_LINE_LENGTH) + b'"}\n')
    assert (code, call_id) == (-32600, None)
    assert "4194304 bytes" in message


@pytest.mark.parametrize(
    ("head", "tail", "call_id"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":"', '"}}', 7),
        ('{ "id": "a-1" , "method":"m","params":{"a":"', '"}}', "a-1"),
        ('{"method":"m","params":{"a":"', '"},"jsonrpc":"2.0","id":0}', 0),
        ('{"method":"m","params":{"a":"', '"}, "id" : "z" } \r', "z"),
        ('{"method":"m","id":3,"params":{"a":"', '"}}', None),
        ('{"params":{"id":3,"a":"', '"},"method":"m"}', None),
        ('{"params":{"a":"', '","id":3},"method":"m"}', None),
        ('{"method":"m","params":{"a":"', '","id":3}}', None),
        ('{"jsonrpc":"2.0","id":1.5,"params":{"a":"', '"}}', None),
        ('[{"jsonrpc":"2.0","id":7,"params":{"a":"', '"}}]', None),
    ],
)
def test_line_over_the_limit_is_answered_to_its_id_where_that_stands_first_or_last(
    head: str, tail: str, call_id: Any
) -> None:
    """The official clients write it there; one that gets no answer to its id waits until it gives up."""
    assert error_of(head.encode() + b"x" * MAX_LINE_LENGTH + tail.encode() + b"\n")[:2] == (-32600, call_id)


def test_line_of_just_the_limit_is_served() -> None:
    opening = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "'
    longest = opening + b"x" * (MAX_LINE_LENGTH - len(opening) - 3) + b'"}}'
    assert len(longest) == MAX_LINE_LENGTH
    assert answers(EMPTY, longest + b"\n") == [PONG]
    assert answers(EMPTY, longest + b" \n")[0]["error"]["code"] == -32600


def test_input_that_ends_within_a_line_over_the_limit_is_told() -> None:
    (error,) = answers(EMPTY, b"x" * (MAX_LINE_LENGTH + 2))
    assert error["error"]["code"] == -32600


def test_input_that_ends_within_a_request_is_a_parse_error() -> None:
    """A client killed while it wrote: what it had asked before is answered."""
    pong, error = answers(EMPTY, PING, PING[:20])
    assert pong == PONG
    assert error["error"]["code"] == -32700


def test_last_line_needs_no_newline_and_lines_may_end_as_on_windows() -> None:
    assert answers(EMPTY, PING.rstrip() + b"\r\n", PING.rstrip()) == [PONG, PONG]


@pytest.mark.parametrize("call_id", [0, -7, 2**70, "", "a b", "1", "ключ"])
def test_id_comes_back_as_it_was(call_id: int | str) -> None:
    (answer,) = answers(EMPTY, line("ping", {}, call_id))
    assert answer["id"] == call_id
    assert type(answer["id"]) is type(call_id)


def test_every_answer_is_one_line_of_utf_8() -> None:
    """Newlines within are escaped, and text is not: an answer in Chinese costs three bytes a character."""
    out = io.BytesIO()
    serve(EMPTY, io.BytesIO(json.dumps(request("ping", call_id="a\nb\u2028\u8bb0")).encode() + b"\n"), out)
    assert out.getvalue() == '{"jsonrpc":"2.0","id":"a\\nb\u2028\u8bb0","result":{}}\n'.encode()


def test_no_input_is_no_error() -> None:
    assert answers(EMPTY) == []


def test_client_that_reads_no_more_ends_the_server_with_a_status_of_its_own() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb", 0) as stream:
        assert serve(EMPTY, io.BytesIO(PING * 3), stream) == CLIENT_GONE == 1


def test_lines_of_many_threads_never_mix() -> None:
    out = io.BytesIO()
    writer = LineWriter(out)
    texts = [bytes([65 + number]) * 5000 for number in range(8)]
    threads = [threading.Thread(target=lambda text=text: [writer.write(text) for _ in range(20)]) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(out.getvalue().splitlines()) == sorted(texts * 20)


def test_stream_that_takes_a_part_at_a_time_gets_all_of_a_line() -> None:
    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:3])

    out = Slow()
    LineWriter(out).write(b"0123456789")
    assert out.getvalue() == b"0123456789\n"
