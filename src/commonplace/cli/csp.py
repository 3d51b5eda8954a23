"""The command `csp`: answer requests of the text protocol CSP/1."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import click

from commonplace.cli.app import FAILURE, SUCCESS, command
from commonplace.cli.invocation import Invocation
from commonplace.cli.output import print_json, say
from commonplace.dataclasses import asdict

if TYPE_CHECKING:
    from commonplace.formats.csp import Response

MAX_REQUEST_BYTES = 4 * 1024 * 1024
"""Enough for the longest memory, even if every character is a JSON escape."""

_TOO_LARGE = f"the request has more than {MAX_REQUEST_BYTES:,} bytes, the limit; store it in parts"
_READ_AT_ONCE = 64 * 1024


@command(None, click.argument("request", nargs=-1, metavar="[LINE]..."))
def csp(invocation: Invocation, /, request: tuple[str, ...]) -> int:
    """Answer requests in the text protocol CSP/1.

    Each LINE is one line of a request; the exit code is 1 if it fails. Without any, requests are read from standard
    input, each ended by an empty line. A missing store is created (the nearest project's, or else the user store).

    Example: commonplace csp "TASK REQ:recall auth IN:MEM OUT:MEM_REFS"
    """
    from commonplace.formats.csp import format_response
    from commonplace.specialist import refusal

    def write(response: Response) -> None:
        if invocation.as_json:
            print_json(asdict(response), indent=None)
        else:
            sys.stdout.write(format_response(response))
            sys.stdout.flush()

    # The protocol is UTF-8, regardless of the terminal.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    with invocation.open(create=True, low_memory=not request) as engine:
        answer = engine.specialist.answer
        if request:
            response = answer("\n".join(request), is_last=True)
            write(response)
            return FAILURE if response.status == "FAIL" else SUCCESS
        if sys.stdin.isatty():
            say("Answering CSP/1 requests; an empty line ends each one, Ctrl-D the program.", err=True)
        for data in requests(sys.stdin.buffer):
            try:
                response = refusal("TOO_LARGE", _TOO_LARGE) if data is None else answer(data.decode())
            except UnicodeDecodeError as error:
                reason = f"the request is not UTF-8: {error.reason} at byte {error.start}; convert it"
                response = refusal("BAD_ENCODING", reason)
            write(response)
    return SUCCESS


def requests(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield each request when the empty line that ends it arrives; the last may end with the input.

    A request over the limit is discarded, and None is yielded instead.
    """
    parts: list[bytes] = []
    size, begins_line = 0, True
    while part := stream.readline(_READ_AT_ONCE):
        if begins_line and part.endswith(b"\n") and not part.strip(b" \t\r\n"):
            if size:
                yield b"".join(parts) if size <= MAX_REQUEST_BYTES else None
            parts, size = [], 0
            continue
        begins_line = part.endswith(b"\n")
        size += len(part)
        if size <= MAX_REQUEST_BYTES:
            parts.append(part)
        else:
            parts.clear()
    if size:
        yield b"".join(parts) if size <= MAX_REQUEST_BYTES else None
