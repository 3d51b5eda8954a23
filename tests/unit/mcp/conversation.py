"""A client of the protocol for tests: speaks bytes to a server in a thread, and reads what comes back line by line."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from commonplace.mcp.protocol import Offer, Registry
from commonplace.mcp.server import serve

INFO = "toy", "1.2.3", "A toy", "Ask the toy."
LIMIT_S = 20


def tool(
    name: str, title: str, description: str, schema: Mapping[str, Any], handler: Any, **more: Mapping[str, Any]
) -> Offer:
    form = {"name": name, "title": title, "description": description, "inputSchema": schema, **more}
    return Offer(form, handler)


def resource(uri: str, name: str, title: str, description: str, handler: Any, kind: str = "text/markdown") -> Offer:
    form = {"uri": uri, "name": name, "title": title, "description": description, "mimeType": kind}
    return Offer(form, handler)


def prompt(name: str, title: str, description: str, handler: Any, *arguments: tuple[str, str, bool]) -> Offer:
    listed = [dict(zip(("name", "description", "required"), each, strict=True)) for each in arguments]
    return Offer({"name": name, "title": title, "description": description, "arguments": listed}, handler)


class Talk:
    """One connection; `status` is what `serve` returned."""

    def __init__(self, registry: Registry, **limits: int) -> None:
        (server_in, client_out), (client_in, server_out) = os.pipe(), os.pipe()
        self.out: BinaryIO = os.fdopen(client_out, "wb", 0)
        self.into: BinaryIO = os.fdopen(client_in, "rb")
        self.status: int | None = None
        streams = os.fdopen(server_in, "rb"), os.fdopen(server_out, "wb", 0)
        self._thread = threading.Thread(target=self._serve, args=(registry, streams, limits), daemon=True)
        self._thread.start()

    def _serve(self, registry: Registry, streams: tuple[BinaryIO, BinaryIO], limits: dict[str, int]) -> None:
        with streams[0], streams[1]:
            self.status = serve(registry, *streams, **limits)

    def say(self, value: Any) -> None:
        self.out.write(json.dumps(value).encode() + b"\n")

    def hear(self) -> Any:
        return json.loads(self.into.readline())

    def ask(self, method: str, params: Mapping[str, Any] | None = None, call_id: int | str = 1) -> Any:
        self.say(request(method, params, call_id))
        answer = self.hear()
        assert answer["id"] == call_id
        return answer

    def greet(self, version: str = "2025-11-25") -> dict[str, Any]:
        opening = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
        result: dict[str, Any] = self.ask("initialize", opening, "greeting")["result"]
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def end(self) -> list[Any]:
        """Close the input, and return all that was still said."""
        self.out.close()
        rest = [json.loads(line) for line in self.into]
        self.wait()
        return rest

    def wait(self) -> None:
        """Wait until the server has ended."""
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


@contextmanager
def talking(registry: Registry, **limits: int) -> Iterator[Talk]:
    talk = Talk(registry, **limits)
    try:
        yield talk
    finally:
        if not talk.out.closed:
            talk.end()
        talk.into.close()


def request(method: str, params: Mapping[str, Any] | None = None, call_id: int | str = 1) -> dict[str, Any]:
    value: dict[str, Any] = {"jsonrpc": "2.0", "id": call_id, "method": method}
    return value if params is None else {**value, "params": params}


def stateless(params: Mapping[str, Any] | None = None, version: str = "2026-07-28", **meta: Any) -> dict[str, Any]:
    """Return params as the stateless era sends them."""
    own = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {**(params or {}), "_meta": {**own, **meta}}


def answers(registry: Registry, *lines: bytes) -> list[Any]:
    """Return what a server answers to bytes that end at once."""
    out = io.BytesIO()
    assert serve(registry, io.BytesIO(b"".join(lines)), out) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def line(method: str, params: Mapping[str, Any] | None = None, call_id: int | str = 1) -> bytes:
    return json.dumps(request(method, params, call_id)).encode() + b"\n"
