"""A wire between a client and a server on 127.0.0.1 that can be cut, held and fouled for chosen requests."""

from __future__ import annotations

import contextlib
import socket
import socketserver
from typing import Literal

from tests.stubs.serving import Serving

Manner = Literal["pass", "hang", "cut", "lost", "garbage", "huge", "fail"]
_FOUL = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


class Wire(Serving):
    """Passes each request on over a connection of its own.

    Attributes:
        manner: what happens to requests whose body holds `only`: they are held for ever ("hang"), cut off unseen
            ("cut"), passed on while the answer is lost ("lost"), or answered with nonsense.
        seen: how many such requests came.
    """

    def __init__(self, port: int) -> None:
        super().__init__(_Handler, socketserver.ThreadingTCPServer)
        self.server_port = port
        self.manner: Manner = "pass"
        self.only = b"tools/call"
        self.seen = 0

    @property
    def url(self) -> str:
        return f"{self.address}/mcp"


class _Handler(socketserver.StreamRequestHandler):
    stub: Wire

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            self._handle()

    def _handle(self) -> None:
        request = self._request()
        is_meant = self.stub.only in request
        self.stub.seen += is_meant
        manner = self.stub.manner if is_meant else "pass"
        if manner == "hang":
            self.stub.closing.wait()
        elif manner == "garbage":
            self.wfile.write(_FOUL + b'\r\n{"jsonrpc": "2.0", "id": ')
        elif manner == "fail":
            self.wfile.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        elif manner == "huge":
            self.wfile.write(_FOUL + b"\r\n")
            while not self.stub.closing.is_set():
                self.wfile.write(b" " * 65_536)
        elif manner != "cut":
            self._pass(request, is_lost=manner == "lost")

    def _request(self) -> bytes:
        head, length = b"", 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            # The server believes that it is asked for directly.
            head += f"Host: 127.0.0.1:{self.stub.server_port}\r\n".encode() if name.lower() == b"host" else line
        return head + b"\r\n" + self.rfile.read(length)

    def _pass(self, request: bytes, *, is_lost: bool) -> None:
        with socket.create_connection(("127.0.0.1", self.stub.server_port)) as server:
            server.sendall(request)
            while data := server.recv(65_536):
                if not is_lost:
                    self.wfile.write(data)
